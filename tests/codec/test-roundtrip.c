/* SPDX-License-Identifier: Apache-2.0
 *
 * Every described type, filled at random: JSON and msgpack there and back, clone, equality, hash.
 */
#include "api/api.h"
#include "codec/intern.h"
#include "tests/codec/filler.h"
#include "tests/lib/test.h"

enum { SEEDS = 8 };

static struct filler
filler_for(size_t type, uint64_t seed)
{
    return (struct filler){.state = type * 1000 + seed,
                           .depth_max = 4,
                           .list_max = 3,
                           .empty_percent = seed % 4 == 3 ? 90 : 40};
}

static void
check_json(const void *ctx, const struct type *t, const void *obj, unsigned flags)
{
    auto_buf struct buf b = BUF_INIT(64 << 20), again = BUF_INIT(64 << 20);
    struct err e = ERR_INIT;
    void *back = NULL;
    json_encode(&b, t, obj, flags);
    ck_assert_int_eq(buf_error(&b), 0);
    int rc = json_decode_strict(ctx, t, SLICE(b.data, b.len), BUDGET(64 << 20), &back, &e);
    ck_assert_msg(rc == 0, "%s: %s\n%s", t->name, e.text, buf_str(&b));
    ck_assert_msg(codec_equal(t, obj, back, 0), "%s differs: %s", t->name, buf_str(&b));
    json_encode(&again, t, back, flags);
    ck_assert_str_eq(buf_str(&b), buf_str(&again));
}

static void
check_msgpack(const void *ctx, const struct type *t, const void *obj)
{
    auto_buf struct buf b = BUF_INIT(64 << 20), again = BUF_INIT(64 << 20);
    struct err e = ERR_INIT;
    void *back = NULL;
    mp_encode(&b, t, obj);
    ck_assert_int_eq(buf_error(&b), 0);
    int rc = mp_decode(ctx, t, SLICE(b.data, b.len), BUDGET(64 << 20), &back, &e);
    ck_assert_msg(rc == 0, "%s: %s", t->name, e.text);
    ck_assert_msg(codec_equal(t, obj, back, 0), "%s differs", t->name);
    mp_encode(&again, t, back);
    ck_assert_uint_eq(b.len, again.len);
    ck_assert_mem_eq(b.data, again.data, b.len);
    /* every truncation fails with words, and without a leak for the sanitizer to find */
    for (size_t n = 0; n < b.len && n < 300; n++) {
        struct err te = ERR_INIT;
        ck_assert_int_lt(mp_decode(ctx, t, SLICE(b.data, n), BUDGET(64 << 20), &back, &te), 0);
        ck_assert(te.text[0]);
    }
}

/* JSON from the bytes is that of the object, and of broken bytes an error. */
static void
check_lean(const void *ctx, const struct type *t, const void *obj, unsigned flags)
{
    auto_buf struct buf b = BUF_INIT(64 << 20), want = BUF_INIT(64 << 20), got = BUF_INIT(64 << 20);
    struct lean *l = lean_new(ctx, t, t, t->n_fields > 0 ? t->fields[0].wire : "", "");
    struct err e = ERR_INIT;
    void *part = NULL;
    mp_encode(&b, t, obj);
    json_encode(&want, t, obj, flags);
    json_encode_row(&want, t, obj, flags);
    ck_assert_int_eq(lean_open(ctx, l, SLICE(b.data, b.len), BUDGET(64 << 20), &part, &e), 0);
    lean_write(&got, l, part, flags);
    lean_write_row(&got, l, part, flags);
    ck_assert_str_eq(buf_str(&want), buf_str(&got));
    const struct field *first = &t->fields[0];
    if (t->n_fields > 0)
        ck_assert_int_eq(codec_field_empty(first, part), codec_field_empty(first, obj));
    for (size_t n = 0; n < b.len && n < 300; n++)
        ck_assert_int_lt(lean_open(ctx, l, SLICE(b.data, n), BUDGET(64 << 20), &part, &e), 0);
    for (size_t at = 1; at < b.len && at < 300; at++) { /* no crash; whatever it says */
        auto_buf struct buf any = BUF_INIT(64 << 20);
        b.data[at] ^= 0xc1;
        if (lean_open(ctx, l, SLICE(b.data, b.len), BUDGET(64 << 20), &part, &e) == 0)
            lean_write(&any, l, part, flags);
        b.data[at] ^= 0xc1;
    }
}

START_TEST(every_type_survives)
{
    for (size_t i = 0; i < api_types_n; i++) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            auto_mem void *ctx = mem_ctx("test");
            const struct type *t = api_types[i];
            struct filler f = filler_for(i, seed);
            void *obj = filler_object(ctx, &f, t);
            check_json(ctx, t, obj, seed % 2 ? JSON_PRETTY : 0);
            check_json(ctx, t, obj, JSON_NO_OMIT);
            check_msgpack(ctx, t, obj);
            check_lean(ctx, t, obj,
                       seed % 2   ? JSON_PRETTY | JSON_HIDE_SECRETS
                       : seed % 4 ? JSON_NO_OMIT
                                  : 0);
            void *copy = codec_clone(ctx, t, obj);
            ck_assert(codec_equal(t, obj, copy, 0));
            ck_assert(codec_equal_but_inplace(t, obj, copy));
            ck_assert_uint_eq(codec_hash(t, obj, 0), codec_hash(t, copy, 0));
        }
    }
}
END_TEST

/* Two objects are equal exactly when their canonical bytes are. */
START_TEST(equality_and_hash_agree)
{
    for (size_t i = 0; i < api_types_n; i++) {
        auto_mem void *ctx = mem_ctx("test");
        const struct type *t = api_types[i];
        void *objs[SEEDS];
        for (uint64_t s = 0; s < SEEDS; s++) {
            struct filler f = filler_for(i, s * 2);
            f.empty_percent = 97;
            objs[s] = filler_object(ctx, &f, t);
        }
        for (size_t a = 0; a < SEEDS; a++)
            for (size_t b = 0; b < SEEDS; b++)
                ck_assert_int_eq(codec_equal(t, objs[a], objs[b], 0),
                                 codec_hash(t, objs[a], 0) == codec_hash(t, objs[b], 0));
    }
}
END_TEST

/* Members in another order, outside and inside, twice nested: rows of a release with another
 * schema. */
START_TEST(json_of_bytes_is_in_the_order_of_the_schema)
{
    auto_mem void *ctx = mem_ctx("test");
    struct constraint c = {.l_target = "l", .r_target = "r", .operand = "="}, *cs[] = {&c};
    struct task_group g = {.name = "g", .count = {true, 3}, .constraints = {cs, 1}}, *gs[] = {&g};
    struct job j = {.id = "j", .name = "n", .task_groups = {gs, 1}};
    auto_buf struct buf b = BUF_INIT(1 << 20), want = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
    struct lean *l = lean_new(ctx, &type_job, &type_job, "", "");
    struct err e = ERR_INIT;
    void *obj = NULL;
    mp_encode(&b, &type_job, &j);
    /* ID and Name; Name and Count; LTarget and RTarget change places */
    static const struct {
        const char *as, *to;
        size_t n;
    } swaps[] = {{"\4\xa1j\6\xa1n", "\6\xa1n\4\xa1j", 6},
                 {"\1\xa1g\2\3", "\2\3\1\xa1g", 5},
                 {"\1\xa1l\2\xa1r", "\2\xa1r\1\xa1l", 6}};
    for (size_t i = 0; i < ARRAY_LEN(swaps); i++) {
        void *at = memmem(b.data, b.len, swaps[i].as, swaps[i].n);
        ck_assert_msg(at != NULL, "%zu: the schema has changed", i);
        memcpy(at, swaps[i].to, swaps[i].n);
    }
    json_encode(&want, &type_job, &j, 0);
    ck_assert_int_eq(lean_open(ctx, l, SLICE(b.data, b.len), BUDGET(1 << 20), &obj, &e), 0);
    lean_write(&got, l, obj, 0);
    ck_assert_str_eq(buf_str(&want), buf_str(&got));
}
END_TEST

/* A lean row has decoded the members that are looked at; the others are written as they came. */
START_TEST(a_lean_row_is_a_projection)
{
    auto_mem void *ctx = mem_ctx("test");
    struct parameterized_job_config p = {0};
    struct job j = {.id = "j",
                    .name = "n",
                    .status = "running",
                    .parameterized_job = &p,
                    .priority = {true, 7}};
    auto_buf struct buf b = BUF_INIT(1 << 20), want = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
    str_map_set(ctx, &j.meta, "some", "x");
    str_map_set(ctx, &j.meta, "more", "y");
    struct lean *l =
        lean_new(ctx, &type_job_list_stub, &type_job, "ID NoSuchMember Status", "Status Meta");
    const struct projection *project = projection_new(ctx, &type_job_list_stub, &type_job);
    struct err e = ERR_INIT;
    void *obj = NULL;
    mp_encode(&b, &type_job, &j);
    struct job_list_stub *s = codec_project(ctx, project, &j);
    s->status = "made";
    s->meta = (struct str_map){0};
    json_encode(&want, &type_job_list_stub, s, 0);
    ck_assert_int_eq(lean_open(ctx, l, SLICE(b.data, b.len), BUDGET(1 << 20), &obj, &e), 0);
    const struct job *part = obj;
    ck_assert_str_eq(part->id, "j");
    ck_assert_str_eq(part->status, "running");
    ck_assert_ptr_null(part->name);
    ck_assert_str_eq(lean_text(ctx, l, "Meta", "more"), "y");
    ck_assert_ptr_null(lean_text(ctx, l, "Meta", "mor"));
    s = codec_project(ctx, project, part);
    s->status = "made";
    lean_write(&got, l, s, 0);
    ck_assert_str_eq(buf_str(&want), buf_str(&got));
}
END_TEST

/* Lists and maps that a decoder or clone made can be added to. */
START_TEST(decoded_containers_grow)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    void *ret = NULL;
    static const char text[] = "{\"Datacenters\":[\"a\",\"b\",\"c\"],\"Meta\":{\"b\":\"1\",\"a\":\"2\","
                               "\"c\":\"3\"},\"TaskGroups\":[]}";
    ck_assert_int_eq(json_decode(ctx, &type_job, SLICE(text, strlen(text)), BUDGET(1 << 20), &ret, &e), 0);
    struct job *jobs[2] = {ret, codec_clone(ctx, &type_job, ret)};
    for (int k = 0; k < 2; k++) {
        struct job *j = jobs[k];
        for (int i = 0; i < 20; i++) {
            list_add(j, j->datacenters, mem_printf(j, "dc%d", i));
            list_add(j, j->task_groups, type_new(j, &type_task_group));
            str_map_set(j, &j->meta, mem_printf(ctx, "k%d", i), "v");
        }
        ck_assert_uint_eq(j->datacenters.n, 23);
        ck_assert_uint_eq(j->meta.n, 23);
        ck_assert_str_eq(str_map_get(&j->meta, "a"), "2");
        ck_assert_str_eq(str_map_get(&j->meta, "k19"), "v");
        ck_assert_ptr_null(str_map_get(&j->meta, "k20"));
    }
}
END_TEST

TEST_SUITE_TIMEOUT("codec round trip", 60, every_type_survives, equality_and_hash_agree,
                   json_of_bytes_is_in_the_order_of_the_schema, a_lean_row_is_a_projection,
                   decoded_containers_grow)
