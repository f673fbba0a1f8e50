/* SPDX-License-Identifier: Apache-2.0
 *
 * The msgpack reader and writer: exact bytes, forward compatibility, enemies, msgpack-c as oracle.
 */
#include <msgpack.h>

#include "api/api.h"
#include "codec/intern.h"
#include "common/str.h"
#include "tests/codec/filler.h"
#include "tests/lib/test.h"

static int
decode(const void *ctx, const struct type *t, struct slice in, void **ret, struct err *e)
{
    return mp_decode(ctx, t, in, BUDGET(1 << 20), ret, e);
}

#define BYTES(...) SLICE(((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__}))

static void
refuse(const struct type *t, struct slice in, const char *error)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    void *ret = NULL;
    ck_assert_int_lt(decode(ctx, t, in, &ret, &e), 0);
    ck_assert_str_eq(e.text, error);
    ck_assert_ptr_null(ret);
}

START_TEST(bytes_on_the_wire)
{
    struct constraint c = {.l_target = "a", .operand = "="};
    auto_buf struct buf b = BUF_INIT(1000);
    mp_encode(&b, &type_constraint, &c);
    static const uint8_t want[] = {0x82, 1, 0xa1, 'a', 3, 0xa1, '='};
    ck_assert_uint_eq(b.len, sizeof(want));
    ck_assert_mem_eq(b.data, want, sizeof(want));
}
END_TEST

START_TEST(other_writers_are_understood)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    void *ret = NULL;
    /* map32, id as uint64, value as uint16 of a small number; unknown ids of every kind between */
    static const uint8_t p[] = {
        0xdf, 0, 0, 0, 6,
        0xcf, 0, 0, 0, 0, 0, 0, 0, 2, 0xcd, 0, 7,
        0xcd, 0x7f, 0xff, 0x92, 0x81, 1, 2, 0xc0,
        0xd0, 0xff, 0xc7, 3, 1, 'a', 'b', 'c',
        0x7f, 0xda, 0, 1, 'x',
        0x7e, 0xd6, 1, 2, 3, 4, 5,
        1, 0xd9, 2, 'm', 'e'};
    ck_assert_msg(decode(ctx, &type_task_group, SLICE(p, sizeof(p)), &ret, &e) == 0, "%s", e.text);
    struct task_group *g = ret;
    ck_assert_int_eq(g->count.v, 7);
    ck_assert_str_eq(g->name, "me");
    /* but not where the outermost object may hold nothing unknown */
    ck_assert_int_eq(mp_decode_strict(ctx, &type_task_group, SLICE(p, sizeof(p)), BUDGET(1 << 20), &ret, &e),
                     -ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(e.text, "field 32767 is not known"));
    err_clear(&e);
    ck_assert_int_eq(mp_decode_strict(ctx, &type_task_group, BYTES(0x81, 2, 3), BUDGET(1 << 20), &ret,
                                      &e),
                     0);
    /* nil is absent */
    ck_assert_int_eq(decode(ctx, &type_task_group, BYTES(0x82, 1, 0xc0, 2, 0xc0), &ret, &e), 0);
    ck_assert(!((struct task_group *)ret)->count.set);
    /* floats and doubles */
    ck_assert_int_eq(decode(ctx, &type_cpu_stats, BYTES(0x81, 1, 0xca, 0x3f, 0x80, 0, 0), &ret, &e), 0);
    ck_assert_double_eq(((struct cpu_stats *)ret)->system_mode, 1.0);
}
END_TEST

START_TEST(a_union_has_one_member)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    struct budget *b = BUDGET(1 << 20);
    void *ret = NULL;
    /* Time 7 and NodeStatus, with Noop, and alone */
    ck_assert_int_eq(mp_decode_strict(ctx, &type_intent, BYTES(0x82, 1, 7, 3, 0x80), b, &ret, &e), 0);
    ck_assert_uint_eq(codec_member(&type_intent, ret), INTENT_NODE_STATUS);
    ck_assert_int_eq(mp_decode_strict(ctx, &type_intent, BYTES(0x82, 3, 0x80, 14, 0x80), b, &ret, &e),
                     -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "exactly one"));
    err_clear(&e);
    ck_assert_int_eq(mp_decode_strict(ctx, &type_intent, BYTES(0x81, 1, 7), b, &ret, &e), -ERR_INVALID);
}
END_TEST

START_TEST(wrong_types_and_lies)
{
    const struct type *t = &type_task_group;
    refuse(t, BYTES(0x91, 1), "msgpack: TaskGroup (byte 0): expected a map, found a list");
    refuse(t, BYTES(0x81, 1, 7), "msgpack: Name (byte 2): expected a string, found an integer");
    refuse(t, BYTES(0x81, 2, 0xa1, '7'), "msgpack: Count (byte 2): expected an integer, found a string");
    refuse(t, BYTES(0x81, 0xa1, 'x', 7), "msgpack: TaskGroup (byte 1): expected a field id, found a "
                                         "string");
    refuse(t, BYTES(0x82, 1, 0xa1, 'a', 1, 0xa1, 'b'), "msgpack: Name (byte 4): field is there twice");
    refuse(t, BYTES(0x81, 2, 0xcf, 0xff, 0, 0, 0, 0, 0, 0, 0),
           "msgpack: Count (byte 2): integer does not fit 63 bits");
    refuse(t, BYTES(0x81, 1, 0xa2, 'a', 0), "msgpack: Name (byte 2): string holds a zero byte");
    refuse(t, BYTES(0x81, 1, 0xc1), "msgpack: Name (byte 2): byte 0xc1 is no msgpack");
    refuse(t, BYTES(0x80, 0), "msgpack: TaskGroup (byte 1): 1 bytes left over");
    refuse(t, BYTES(0x81, 9, 0x91, 0xc0), "msgpack: Tasks[0] (byte 3): expected a map, found nil");
    /* counts that nothing backs */
    refuse(t, BYTES(0x81, 9, 0xdd, 0xff, 0xff, 0xff, 0xff),
           "msgpack: Tasks (byte 2): 4294967295 elements are more than 1048576");
    refuse(t, BYTES(0x81, 9, 0xdc, 0xff, 0xff),
           "msgpack: Tasks (byte 2): truncated: 65535 elements announced, 0 bytes there");
    refuse(t, BYTES(0xdf, 0, 0x0f, 0xff, 0xff),
           "msgpack: TaskGroup (byte 0): truncated: 1048575 elements announced, 0 bytes there");
    refuse(t, BYTES(0x81, 1, 0xdb, 0x7f, 0xff, 0xff, 0xff),
           "msgpack: Name (byte 2): truncated: 2147483647 bytes announced, 0 there");
    refuse(t, BYTES(0x81, 11, 0x82, 0xa1, 'a', 0xa1, '1', 0xa1, 'a', 0xa1, '2'),
           "msgpack: Meta (byte 2): key \"a\" is there twice");
}
END_TEST

START_TEST(depth_and_memory_are_bounded)
{
    auto_mem void *ctx = mem_ctx("test");
    /* id 4 (Config) is a value, id 99 is unknown */
    for (int k = 0; k < 2; k++) {
        uint8_t *deep = mem_array(ctx, uint8_t, 100002);
        struct err e = ERR_INIT;
        void *ret = NULL;
        memset(deep, 0x91, 100002);
        deep[0] = 0x81;
        deep[1] = k ? 4 : 99;
        ck_assert_int_lt(decode(ctx, &type_task, SLICE(deep, 100002), &ret, &e), 0);
        ck_assert_ptr_nonnull(strstr(e.text, "nested deeper than 64 levels"));
    }
    /* a list of empty tasks: one byte each on the wire, hundreds in memory */
    size_t n = 60000;
    uint8_t *wide = mem_array(ctx, uint8_t, n + 5);
    struct err e = ERR_INIT;
    void *ret = NULL;
    memset(wide, 0x80, n + 5);
    memcpy(wide, (uint8_t[]){0x81, 9, 0xdc, (uint8_t)(n >> 8), (uint8_t)n}, 5);
    size_t before = talloc_total_size(ctx);
    ck_assert_int_eq(decode(ctx, &type_task_group, SLICE(wide, n + 5), &ret, &e), -ERR_LIMIT);
    ck_assert_uint_eq(talloc_total_size(ctx), before);
    ck_assert_ptr_nonnull(strstr(e.text, "needs more memory than one may take: 1024 KiB for 60005 bytes"));
}
END_TEST

START_TEST(garbage_gives_one_error_or_an_object)
{
    struct filler f = {.state = 11};
    for (int i = 0; i < 2000; i++) {
        auto_mem void *ctx = mem_ctx("test");
        const struct type *t = api_types[filler_u64(&f) % api_types_n];
        size_t n = filler_u64(&f) % 200;
        uint8_t *p = mem_array(ctx, uint8_t, n + 1);
        for (size_t j = 0; j < n; j++)
            p[j] = (uint8_t)(j == 0 ? 0x80 + filler_u64(&f) % 16 : filler_u64(&f));
        struct err e = ERR_INIT;
        void *ret = NULL;
        int rc = decode(ctx, t, SLICE(p, n), &ret, &e);
        ck_assert((rc == 0) == (e.text[0] == 0));
    }
}
END_TEST

/* Flipped bits of real messages: an error or an object, never worse (the sanitizers watch). */
START_TEST(mutations)
{
    struct filler f = {.state = 5, .depth_max = 3, .list_max = 2, .empty_percent = 50};
    for (int i = 0; i < 200; i++) {
        auto_mem void *ctx = mem_ctx("test");
        auto_buf struct buf b = BUF_INIT(1 << 20);
        mp_encode(&b, &type_allocation, filler_object(ctx, &f, &type_allocation));
        for (int k = 0; k < 20 && b.len; k++) {
            struct err e = ERR_INIT;
            void *ret = NULL;
            b.data[filler_u64(&f) % b.len] ^= (uint8_t)(1 << filler_u64(&f) % 8);
            if (mp_decode(ctx, &type_allocation, SLICE(b.data, b.len), BUDGET(8 << 20), &ret, &e) == 0) {
                auto_buf struct buf again = BUF_INIT(64 << 20);
                mp_encode(&again, &type_allocation, ret);
                ck_assert_int_eq(buf_error(&again), 0);
            }
        }
    }
}
END_TEST

/* --- msgpack-c --- */

/* Asserts that msgpack-c parsed what our object says, field by field (scalars of the top level). */
static void
check_scalar(const struct field *f, const void *obj, const msgpack_object *o)
{
    const void *p = field_ptr(f, obj);
    p = f->flags & F_OPT ? opt_value(f, p) : p;
    switch ((enum field_type)f->type) {
    case FT_BOOL:
        ck_assert_int_eq(o->type, MSGPACK_OBJECT_BOOLEAN);
        ck_assert_int_eq(o->via.boolean, *(const bool *)p);
        break;
    case FT_INT:
    case FT_DURATION:
    case FT_TIME:
        ck_assert(o->type == MSGPACK_OBJECT_POSITIVE_INTEGER ||
                  o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER);
        ck_assert_int_eq(o->via.i64, *(const int64_t *)p);
        break;
    case FT_UINT:
        ck_assert_uint_eq(o->via.u64, *(const uint64_t *)p);
        break;
    case FT_STRING:
        ck_assert_int_eq(o->type, MSGPACK_OBJECT_STR);
        ck_assert_uint_eq(o->via.str.size, strlen(*(const char *const *)p));
        ck_assert_mem_eq(o->via.str.ptr, *(const char *const *)p, o->via.str.size);
        break;
    case FT_FLOAT:
        ck_assert_double_eq(o->via.f64, *(const double *)p);
        break;
    default:
        break;
    }
}

START_TEST(msgpack_c_agrees)
{
    for (size_t i = 0; i < api_types_n; i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct filler fl = {.state = i + 1, .depth_max = 3, .list_max = 3, .empty_percent = 30};
        const struct type *t = api_types[i];
        void *obj = filler_object(ctx, &fl, t);
        auto_buf struct buf b = BUF_INIT(64 << 20);
        mp_encode(&b, t, obj);
        msgpack_unpacked u;
        msgpack_unpacked_init(&u);
        size_t off = 0;
        ck_assert_int_eq(msgpack_unpack_next(&u, (const char *)b.data, b.len, &off),
                         MSGPACK_UNPACK_SUCCESS);
        ck_assert_uint_eq(off, b.len);
        ck_assert_int_eq(u.data.type, MSGPACK_OBJECT_MAP);
        for (uint32_t k = 0; k < u.data.via.map.size; k++) {
            const msgpack_object_kv *kv = &u.data.via.map.ptr[k];
            for (size_t j = 0; j < t->n_fields; j++)
                if (t->fields[j].id == kv->key.via.u64 && t->fields[j].shape == FS_ONE)
                    check_scalar(&t->fields[j], obj, &kv->val);
        }
        /* and packed again by msgpack-c (canonical sizes), we read the same object */
        msgpack_sbuffer sb;
        msgpack_packer pk;
        msgpack_sbuffer_init(&sb);
        msgpack_packer_init(&pk, &sb, msgpack_sbuffer_write);
        msgpack_pack_object(&pk, u.data);
        struct err e = ERR_INIT;
        void *back = NULL;
        ck_assert_msg(mp_decode(ctx, t, SLICE(sb.data, sb.size), BUDGET(64 << 20), &back, &e) == 0, "%s: %s",
                      t->name, e.text);
        ck_assert(codec_equal(t, obj, back, 0));
        msgpack_sbuffer_destroy(&sb);
        msgpack_unpacked_destroy(&u);
    }
}
END_TEST

/* Asserts that all that is written can be read, and that nothing is written that cannot. */
static void
written_as_read(const void *ctx, const struct type *t, const void *obj, const struct field *f,
                bool fits)
{
    auto_buf struct buf b = BUF_INIT(64 << 20);
    struct err e = ERR_INIT;
    void *back = NULL;
    mp_encode(&b, t, obj);
    ck_assert_msg(buf_error(&b) == (fits ? 0 : -ERR_INVALID), "%s.%s", t->name, f->wire);
    ck_assert_msg((codec_check(t, obj, &e) == 0) == fits, "%s.%s", t->name, f->wire);
    if (fits)
        ck_assert_msg(mp_decode(ctx, t, SLICE(b.data, b.len), BUDGET(64 << 20), &back, &e) == 0, "%s.%s: %s",
                      t->name, f->wire, e.text);
}

static char *
text_of(const void *ctx, size_t n)
{
    char *s = mem_printf(ctx, "%*s", (int)n, "");
    memset(s, 'x', n);
    return s;
}

START_TEST(limits_of_the_schema_hold_for_the_writer)
{
    size_t n = 0;
    for (size_t i = 0; i < api_types_n; i++) {
        const struct type *t = api_types[i];
        for (size_t k = 0; k < t->n_fields; k++) {
            auto_mem void *ctx = mem_ctx("test");
            const struct field *f = &t->fields[k];
            void *obj = type_new(ctx, t), *p = (char *)obj + f->offset;
            if (f->max == 0 || f->type != FT_STRING || (f->shape != FS_ONE && f->shape != FS_LIST))
                continue;
            struct str_list *l = p;
            for (size_t over = 0; over < 2; over++) {
                if (f->shape == FS_ONE)
                    *(const char **)p = text_of(ctx, f->max + over);
                else
                    for (*l = (struct str_list){0}; l->n < f->max + over;)
                        list_add(ctx, *l, "x");
                written_as_read(ctx, t, obj, f, over == 0);
            }
            n++;
        }
    }
    ck_assert_uint_gt(n, 30);
}
END_TEST

START_TEST(what_the_reader_refuses_is_not_written)
{
    auto_mem void *ctx = mem_ctx("test");
    struct value zero = {.kind = VALUE_STRING, .str = {"a\0b", 3}}, *v = &zero;
    for (int depth = 0; depth < CODEC_DEPTH_MAX + 2; depth++) {
        struct task t = {.config = v};
        auto_buf struct buf b = BUF_INIT(1 << 20);
        struct err e = ERR_INIT;
        void *back = NULL;
        mp_encode(&b, &type_task, &t);
        ck_assert_int_eq(buf_error(&b), depth == 0 || depth >= CODEC_DEPTH_MAX ? -ERR_INVALID : 0);
        if (buf_error(&b) == 0)
            ck_assert_msg(decode(ctx, &type_task, SLICE(b.data, b.len), &back, &e) == 0, "%s", e.text);
        if (depth == 0)
            zero = (struct value){.kind = VALUE_NULL};
        struct value *up = mem_new(ctx, struct value), **one = mem_new(ctx, struct value *);
        *one = v;
        *up = (struct value){.kind = VALUE_LIST, .list = {one, 1}};
        v = up;
    }
}
END_TEST

TEST_SUITE("msgpack", limits_of_the_schema_hold_for_the_writer,
           what_the_reader_refuses_is_not_written, bytes_on_the_wire, other_writers_are_understood,
           a_union_has_one_member, wrong_types_and_lies, depth_and_memory_are_bounded,
           garbage_gives_one_error_or_an_object, mutations, msgpack_c_agrees)
