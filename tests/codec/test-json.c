/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON reader and writer: what Nomad's clients send, what enemies send, and jansson as oracle.
 */
#include <jansson.h>
#include <stdlib.h>

#include "api/api.h"
#include "common/str.h"
#include "tests/codec/filler.h"
#include "tests/lib/test.h"

static int
decode(const void *ctx, const struct type *t, const char *s, bool strict, void **ret, struct err *e)
{
    struct slice text = SLICE(s, strlen(s));
    return strict ? json_decode_strict(ctx, t, text, BUDGET(1 << 20), ret, e)
                  : json_decode(ctx, t, text, BUDGET(1 << 20), ret, e);
}

static struct job *
job(const void *ctx, const char *s)
{
    struct err e = ERR_INIT;
    void *ret = NULL;
    ck_assert_msg(decode(ctx, &type_job, s, false, &ret, &e) == 0, "%s", e.text);
    return ret;
}

/* The text must fail with exactly this error. */
static void
refuse(const char *s, bool strict, const char *error)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    void *ret = NULL;
    ck_assert_int_lt(decode(ctx, &type_job, s, strict, &ret, &e), 0);
    ck_assert_str_eq(e.text, error);
    ck_assert_ptr_null(ret);
}

START_TEST(integers_are_exact)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = job(ctx, "{\"Priority\":9223372036854775807,\"SubmitTime\":-9223372036854775808,"
                             "\"Version\":18446744073709551615,\"CreateIndex\":9007199254740993}");
    ck_assert_int_eq(j->priority.v, INT64_MAX);
    ck_assert_int_eq(j->submit_time, INT64_MIN);
    ck_assert_uint_eq(j->version, UINT64_MAX);
    ck_assert_uint_eq(j->create_index, UINT64_C(9007199254740993));
    auto_buf struct buf b = BUF_INIT(1 << 20);
    json_encode(&b, &type_job, j, 0);
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"Priority\":9223372036854775807,"));
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"SubmitTime\":-9223372036854775808,"));
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"Version\":18446744073709551615,"));
    /* integers in other clothes, and what is none */
    ck_assert_int_eq(job(ctx, "{\"SubmitTime\":1e3}")->submit_time, 1000);
    ck_assert_int_eq(job(ctx, "{\"SubmitTime\":5.0}")->submit_time, 5);
    refuse("{\"SubmitTime\":9223372036854775808}", false,
           "json: SubmitTime (line 1, column 15): number 9223372036854775808 does not fit 64 bits");
    refuse("{\"SubmitTime\":1.5}", false,
           "json: SubmitTime (line 1, column 15): expected an integer, found a fraction");
    refuse("{\"Version\":-1}", false, "json: Version (line 1, column 12): must not be negative");
    refuse("{\"SubmitTime\":\"1\"}", false,
           "json: SubmitTime (line 1, column 15): expected an integer, found a string");
}
END_TEST

START_TEST(names_ignore_case_and_unknown_ones_are_skipped)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = job(ctx, "{\"id\":\"a\",\"NAME\":\"b\",\"what\":{\"x\":[1,{\"y\":null}]},"
                             "\"taskgroups\":[{\"name\":\"g\"}]}");
    ck_assert_str_eq(j->id, "a");
    ck_assert_str_eq(j->name, "b");
    ck_assert_str_eq(j->task_groups.v[0]->name, "g");
    refuse("{\"Priorty\":1}", true,
           "json: Job (line 1, column 12): unknown field \"Priorty\" in Job, did you mean "
           "\"Priority\"?");
    refuse("{\"Xyzzyplugh\":1}", true, "json: Job (line 1, column 15): unknown field \"Xyzzyplugh\" in Job");
}
END_TEST

START_TEST(durations_times_and_bytes)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = job(ctx, "{\"Update\":{\"Stagger\":\"1m30s\",\"MinHealthyTime\":5},"
                             "\"Payload\":\"aGVsbG8=\"}");
    ck_assert(j->update->stagger.set);
    ck_assert_int_eq(j->update->stagger.v, INT64_C(90000000000));
    ck_assert_int_eq(j->update->min_healthy_time.v, 5);
    ck_assert(!j->update->healthy_deadline.set);
    j = job(ctx, "{\"Update\":{\"Stagger\":\"\",\"MinHealthyTime\":\"\"},\"Payload\":\"aGVsbG8=\"}");
    ck_assert(!j->update->stagger.set && !j->update->min_healthy_time.set);
    struct err e = ERR_INIT;
    void *ret = NULL;
    ck_assert_int_eq(decode(ctx, &type_node_pool, "{\"NodeIdentityTTL\":\"\"}", false, &ret, &e), 0);
    ck_assert_int_eq(((struct node_pool *)ret)->node_identity_ttl, 0);
    ck_assert_uint_eq(j->payload.n, 5);
    ck_assert_mem_eq(j->payload.v, "hello", 5);
    refuse("{\"Update\":{\"Stagger\":\"soon\"}}", false,
           "json: Update.Stagger (line 1, column 22): \"soon\" is not a duration like \"1m30s\"");
    refuse("{\"Payload\":\"aGVsbG8\"}", false, "json: Payload (line 1, column 12): not valid base64");
    refuse("{\"Payload\":\"aGVsbG9=\"}", false, "json: Payload (line 1, column 12): not valid base64");
    ck_assert_int_eq(
        decode(ctx, &type_task_state, "{\"StartedAt\":\"2026-11-21T10:00:00.5+01:00\"}", false, &ret, &e), 0);
    ck_assert_int_eq(((struct task_state *)ret)->started_at, INT64_C(1795251600500000000));
    auto_buf struct buf b = BUF_INIT(1 << 20);
    json_encode(&b, &type_task_state, ret, 0);
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"StartedAt\":\"2026-11-21T09:00:00.5Z\""));
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"FinishedAt\":null"));
}
END_TEST

START_TEST(maps_that_clients_read_without_looking_are_never_null)
{
    struct node n = {.id = "x"};
    struct task_event ev = {.type = "Started"};
    auto_buf struct buf b = BUF_INIT(1 << 20);
    json_encode(&b, &type_node, &n, 0);
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"Links\":{},\"Meta\":{},"));
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"HostVolumes\":{}"));
    json_encode(&b, &type_task_event, &ev, 0);
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"Details\":{}"));
}
END_TEST

START_TEST(evaluations_leave_out_what_is_empty)
{
    struct evaluation e = {.id = "x", .status = "complete"};
    auto_buf struct buf b = BUF_INIT(1 << 20);
    json_encode(&b, &type_evaluation, &e, 0);
    ck_assert_str_eq(buf_str(&b), "{\"ID\":\"x\",\"Status\":\"complete\"}");
}
END_TEST

START_TEST(null_and_empty_are_told_apart)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = job(ctx, "{\"Datacenters\":[],\"Meta\":{},\"TaskGroups\":null,\"Priority\":null,"
                             "\"Name\":null,\"Constraints\":[]}");
    ck_assert(j->datacenters.v && !j->datacenters.n && j->meta.v && !j->meta.n);
    ck_assert(!j->task_groups.v && !j->priority.set && !j->name);
    auto_buf struct buf b = BUF_INIT(1 << 20);
    json_encode(&b, &type_job, j, 0);
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"Datacenters\":[],"));
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"TaskGroups\":null,"));
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"Meta\":{},"));
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"Priority\":null,"));
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"Name\":\"\","));
    /* no NULL inside a list or map */
    j = job(ctx, "{\"Datacenters\":[null],\"Meta\":{\"a\":null}}");
    ck_assert_str_eq(j->datacenters.v[0], "");
    ck_assert_str_eq(str_map_get(&j->meta, "a"), "");
    refuse("{\"TaskGroups\":[null]}", false,
           "json: TaskGroups[0] (line 1, column 20): null is not allowed here");
}
END_TEST

START_TEST(what_is_no_json_is_refused)
{
    static const char *const bad[] = {
        "", " ", "{", "}", "[]", "1", "null", "{\"ID\"}", "{\"ID\":}", "{\"ID\":\"a\",}", "{,}",
        "{\"ID\":\"a\"}x", "{'ID':\"a\"}", "{ID:\"a\"}", "{\"ID\":\"a}", "{\"ID\":\"a\nb\"}",
        "{\"ID\":\"\\x\"}", "{\"ID\":\"\\u12g4\"}", "{\"ID\":\"\\ud800\"}", "{\"ID\":\"\\udc00\"}",
        "{\"ID\":\"\\ud800\\u0041\"}", "{\"ID\":\"\\u0000\"}", "{\"ID\":\"\xff\"}",
        "{\"ID\":\"\xc0\x80\"}", "{\"ID\":\"\xed\xa0\x80\"}", "{\"Priority\":01}",
        "{\"Priority\":+1}", "{\"Priority\":1.}", "{\"Priority\":.5}", "{\"Priority\":1e}",
        "{\"Priority\":-}", "{\"Priority\":nan}", "{\"Priority\":Infinity}", "{\"Stop\":tru}",
        "{\"Stop\":True}", "{\"Datacenters\":[1,]}", "{\"Datacenters\":[\"a\" \"b\"]}",
        "{\"Datacenters\":{\"a\":1}}", "{\"Meta\":[]}", "{\"TaskGroups\":[[]]}", "{\"x\":01}",
        "{\"x\":[1,]}", "{\"x\":{\"a\"}}", "/* c */{}", "{\"Config\":[1,}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct err e = ERR_INIT;
        void *ret = NULL;
        const struct type *t = strstr(bad[i], "Config") != NULL ? &type_task : &type_job;
        ck_assert_msg(decode(ctx, t, bad[i], false, &ret, &e) == -ERR_INVALID, "took %s", bad[i]);
        ck_assert(str_prefix(e.text, "json: "));
    }
    refuse("{\n  \"TaskGroups\": [\n    {\"Count\": \"two\"}\n  ]\n}", false,
           "json: TaskGroups[0].Count (line 3, column 15): expected an integer, found a string");
    refuse("{\"ID\":\"a\",\"id\":\"b\"}", false, "json: ID (line 1, column 16): field is there twice");
    refuse("{\"Meta\":{\"b\":\"1\",\"a\":\"2\",\"b\":\"3\"}}", false,
           "json: Meta (line 1, column 9): key \"b\" is there twice");
    refuse("{\"TaskGroups\":[{\"Tasks\":[{\"Config\":{\"b\":1,\"b\":2}}]}]}", false,
           "json: TaskGroups[0].Tasks[0].Config (line 1, column 36): key \"b\" is there twice");
}
END_TEST

static char *
repeat(const void *ctx, const char *open, size_t n, const char *middle, const char *close)
{
    auto_buf struct buf b = BUF_INIT(64 << 20);
    for (size_t i = 0; i < n; i++)
        buf_puts(&b, open);
    buf_puts(&b, middle);
    for (size_t i = 0; i < n; i++)
        buf_puts(&b, close);
    return mem_strdup(ctx, buf_str(&b));
}

START_TEST(depth_and_memory_are_bounded)
{
    auto_mem void *ctx = mem_ctx("test");
    static const char *const in[] = {"Config", "unknown"};
    for (int k = 0; k < 2; k++) {
        char *deep = repeat(ctx, "[", 100000, "", "]"), *ok = repeat(ctx, "[", 60, "", "]");
        struct err e = ERR_INIT;
        void *ret = NULL;
        const char *too = mem_printf(ctx, "{\"%s\":%s}", in[k], deep);
        ck_assert_int_lt(decode(ctx, &type_task, too, false, &ret, &e), 0);
        ck_assert_ptr_nonnull(strstr(e.text, "nested deeper than 64 levels"));
        ck_assert_int_eq(decode(ctx, &type_task, mem_printf(ctx, "{\"%s\":%s}", in[k], ok), false, &ret, &e),
                         0);
    }
    /* 20,000 empty groups want far more memory than 1 MiB */
    char *wide = repeat(ctx, "{},", 20000, "{}", "");
    struct err e = ERR_INIT;
    void *ret = NULL;
    size_t before = talloc_total_size(ctx);
    char *text = mem_printf(ctx, "{\"TaskGroups\":[%s]}", wide);
    ck_assert_int_eq(decode(ctx, &type_job, text, false, &ret, &e), -ERR_LIMIT);
    ck_assert_uint_le(talloc_total_size(ctx), before + strlen(text) + 64);
    ck_assert_ptr_nonnull(strstr(e.text, "needs more memory than one may take: 1024 KiB for 60"));
    /* schema limits */
    text = mem_printf(ctx, "{\"ID\":\"%s\"}", repeat(ctx, "x", 1025, "", ""));
    err_clear(&e);
    ck_assert_int_lt(decode(ctx, &type_job, text, false, &ret, &e), 0);
    ck_assert_str_eq(e.text, "json: ID (line 1, column 7): 1025 bytes are more than the 1024 allowed");
}
END_TEST

START_TEST(garbage_gives_one_error)
{
    struct filler f = {.state = 7};
    for (int i = 0; i < 300; i++) {
        auto_mem void *ctx = mem_ctx("test");
        size_t n = i ? filler_u64(&f) % 400 : 1 << 20;
        char *p = mem_array(ctx, char, n + 1);
        for (size_t j = 0; j < n; j++)
            p[j] = i % 2 ? (char)filler_u64(&f) : "{}[]:,\"\\u0123abcIDnull"[filler_u64(&f) % 22];
        struct err e = ERR_INIT;
        void *ret = NULL;
        ck_assert_int_lt(json_decode(ctx, &type_job, SLICE(p, n), BUDGET(1 << 20), &ret, &e), 0);
        ck_assert(e.text[0] && strlen(e.text) < ERR_TEXT_MAX);
    }
}
END_TEST

/* jansson reads what we write and finds the same document; we read what jansson writes. */
START_TEST(jansson_agrees)
{
    size_t compared = 0;
    for (size_t i = 0; i < api_types_n; i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct filler f = {.state = i, .depth_max = 3, .list_max = 2, .empty_percent = 30};
        const struct type *t = api_types[i];
        void *obj = filler_object(ctx, &f, t), *back = NULL;
        auto_buf struct buf b = BUF_INIT(64 << 20);
        struct err e = ERR_INIT;
        json_error_t je;
        json_encode(&b, t, obj, 0);
        /* unsigned beyond int64 is where jansson stops */
        json_t *j = json_loadb((char *)b.data, b.len, JSON_REJECT_DUPLICATES, &je);
        if (!j && strstr(je.text, "too big"))
            continue;
        ck_assert_msg(j != NULL, "%s: %s at %d", t->name, je.text, je.position);
        char *text = json_dumps(j, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
        ck_assert_msg(json_decode_strict(ctx, t, SLICE(text, strlen(text)), BUDGET(64 << 20), &back, &e) == 0,
                      "%s: %s", t->name, e.text);
        ck_assert_msg(codec_equal(t, obj, back, 0), "%s", t->name);
        free(text);
        json_decref(j);
        compared++;
    }
    ck_assert_uint_gt(compared, api_types_n * 2 / 3);
}
END_TEST

START_TEST(writer_is_always_valid)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = type_new(ctx, &type_job);
    j->id = "a\xff" "b\xe2\x82" "c\x01\"\\/<&>";
    auto_buf struct buf b = BUF_INIT(1 << 20);
    json_encode(&b, &type_job, j, 0);
    ck_assert_ptr_nonnull(
        strstr(buf_str(&b), "\"ID\":\"a\xef\xbf\xbd" "b\xef\xbf\xbd\xef\xbf\xbd" "c\\u0001\\\"\\\\/<&>\""));
    json_t *parsed = json_loads(buf_str(&b), 0, NULL);
    ck_assert_ptr_nonnull(parsed);
    json_decref(parsed);
}
END_TEST

START_TEST(layout_and_flags)
{
    auto_mem void *ctx = mem_ctx("test");
    struct constraint c = {.operand = "="};
    struct node n = {.secret_id = "s3cret", .name = "n"};
    auto_buf struct buf b = BUF_INIT(1 << 20);
    json_encode(&b, &type_constraint, &c, JSON_PRETTY);
    ck_assert_str_eq(buf_str(&b), "{\n    \"LTarget\": \"\",\n    \"RTarget\": \"\",\n"
                                  "    \"Operand\": \"=\"\n}");
    buf_reset(&b);
    json_encode(&b, &type_node, &n, JSON_HIDE_SECRETS);
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\"SecretID\":\"\","));
    buf_reset(&b);
    json_encode(&b, &type_stream_frame, &(struct stream_frame){.offset = 0}, 0);
    ck_assert_str_eq(buf_str(&b), "{}");
    buf_reset(&b);
    json_encode_list(&b, &type_constraint, NULL, 0, 0);
    ck_assert_str_eq(buf_str(&b), "[]");
    struct constraint_list l;
    struct err e = ERR_INIT;
    static const char text[] = "[{\"Operand\":\"=\"},{\"Operand\":\"<\"}]";
    struct object_list ol;
    ck_assert_int_eq(
        json_decode_list(ctx, &type_constraint, SLICE(text, strlen(text)), BUDGET(9999), &ol, &e), 0);
    memcpy(&l, &ol, sizeof(l));
    ck_assert_uint_eq(l.n, 2);
    ck_assert_str_eq(l.v[1]->operand, "<");
}
END_TEST

TEST_SUITE("json", integers_are_exact, names_ignore_case_and_unknown_ones_are_skipped,
           durations_times_and_bytes, evaluations_leave_out_what_is_empty,
           maps_that_clients_read_without_looking_are_never_null,
           null_and_empty_are_told_apart, what_is_no_json_is_refused,
           depth_and_memory_are_bounded, garbage_gives_one_error, jansson_agrees,
           writer_is_always_valid, layout_and_flags)
