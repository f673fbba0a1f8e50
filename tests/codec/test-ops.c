/* SPDX-License-Identifier: Apache-2.0
 *
 * Values, maps, defaults, limits, fields without effect, in-place equality.
 */
#include "api/api.h"
#include "common/str.h"
#include "tests/lib/test.h"

START_TEST(values)
{
    auto_mem void *ctx = mem_ctx("test");
    struct value *m = value_map(ctx), *l = value_list(ctx);
    value_map_set(m, "b", value_int(ctx, 1));
    value_map_set(m, "a", l);
    value_map_set(m, "b", value_float(ctx, 1.0));
    for (int i = 0; i < 9; i++)
        value_list_add(l, value_str(ctx, "x"));
    ck_assert_uint_eq(m->map.n, 2);
    ck_assert_str_eq(m->map.v[0].k, "b");
    ck_assert_ptr_null(value_get(m, "c"));
    struct value *c = value_clone(ctx, m), *other = value_map(ctx);
    ck_assert(value_equal(m, c) && c != m);
    value_map_set(other, "a", value_clone(ctx, l));
    value_map_set(other, "b", value_int(ctx, 1));
    ck_assert(value_equal(m, other)); /* order and 1 against 1.0 do not count */
    value_list_add(value_get(c, "a"), value_null(ctx));
    ck_assert(!value_equal(m, c));
    ck_assert_int_eq(value_compare(m, c), -1);
    ck_assert_int_eq(value_compare(c, m), 1);
    ck_assert(value_equal(NULL, value_null(ctx)));
    ck_assert_int_eq(value_compare(value_int(ctx, INT64_C(9007199254740993)),
                                   value_float(ctx, 9007199254740992.0)), 1);
    ck_assert_int_eq(value_compare(value_int(ctx, INT64_MAX), value_float(ctx, 9.3e18)), -1);
}
END_TEST

START_TEST(maps_stay_sorted)
{
    auto_mem void *ctx = mem_ctx("test");
    struct i64_map m = {NULL, 0};
    static const char *const keys[] = {"m", "c", "z", "a", "c", "q"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        map_put(ctx, m, keys[i])->v += 1;
    ck_assert_uint_eq(m.n, 5);
    for (size_t i = 1; i < m.n; i++)
        ck_assert_int_lt(strcmp(m.v[i - 1].k, m.v[i].k), 0);
    ck_assert_int_eq(map_get(m, "c")->v, 2);
    ck_assert_ptr_null(map_get(m, "b"));
}
END_TEST

START_TEST(defaults_fill_what_is_absent)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = type_new(ctx, &type_job);
    struct task_group *g = type_new(j, &type_task_group);
    struct task *t = type_new(j, &type_task);
    t->kill_timeout = (struct opt_i64){true, 7};
    t->resources = type_new(j, &type_resources);
    t->resources->memory_mb = (struct opt_i64){true, 0};
    list_add(j, g->tasks, t);
    list_add(j, j->task_groups, g);
    j->priority = (struct opt_i64){true, 0};
    codec_defaults(j, &type_job, j);
    ck_assert_str_eq(j->region, "global");
    ck_assert_int_eq(j->priority.v, 0); /* zero was said */
    ck_assert_int_eq(g->count.v, 1);
    ck_assert_int_eq(t->kill_timeout.v, 7);
    ck_assert_int_eq(t->resources->cpu.v, 100);
    ck_assert_int_eq(t->resources->memory_mb.v, 0);
    ck_assert_ptr_null(g->update);
}
END_TEST

/* Every default of the schema is one of its type: set_default aborts otherwise. */
START_TEST(every_default_is_valid)
{
    auto_mem void *ctx = mem_ctx("test");
    for (size_t i = 0; i < api_types_n; i++)
        codec_defaults(ctx, api_types[i], type_new(ctx, api_types[i]));
}
END_TEST

START_TEST(limits_of_the_schema)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    struct job *j = type_new(ctx, &type_job);
    char *name = mem_array(j, char, 1026);
    memset(name, 'x', 1025);
    j->name = name;
    ck_assert_int_eq(codec_check(&type_job, j, &e), -ERR_LIMIT);
    ck_assert_str_eq(e.text, "Name: 1025 bytes are more than the 1024 allowed");
    name[1024] = 0;
    ck_assert_int_eq(codec_check(&type_job, j, NULL), 0);
    j->ui = type_new(j, &type_job_ui_config);
    j->ui->description = name;
    err_clear(&e);
    ck_assert_int_eq(codec_check(&type_job, j, &e), -ERR_LIMIT);
    ck_assert_str_eq(e.text, "UI: Description: 1024 bytes are more than the 1000 allowed");
}
END_TEST

START_TEST(fields_without_effect_are_named)
{
    auto_mem void *ctx = mem_ctx("test");
    struct str_list found = {NULL, 0};
    struct job *j = type_new(ctx, &type_job);
    struct task_group *g = type_new(j, &type_task_group);
    struct task *t = type_new(j, &type_task);
    g->name = "web";
    t->name = "x";
    list_add(j, g->tasks, t);
    list_add(j, j->task_groups, g);
    codec_list_later(ctx, &type_job, j, &found);
    ck_assert_uint_eq(found.n, 0);
    t->csi_plugin_config = type_new(j, &type_task_csi_plugin_config);
    list_add(j, t->templates, type_new(j, &type_template));
    list_add(j, t->artifacts, type_new(j, &type_task_artifact));
    codec_list_later(ctx, &type_job, j, &found);
    ck_assert_uint_eq(found.n, 1);
    ck_assert_str_eq(found.v[0], "group \"web\": task \"x\": csi_plugin");
}
END_TEST

START_TEST(in_place_changes)
{
    auto_mem void *ctx = mem_ctx("test");
    struct task a = {.name = "t", .kill_timeout = {true, 1}}, b = a;
    b.kill_timeout.v = 2;
    ck_assert(!codec_equal(&type_task, &a, &b, 0));
    ck_assert(codec_equal_but_inplace(&type_task, &a, &b));
    /* Nomad's order; logs that are switched off are another allocation's */
    struct log_config l = {.max_files = {true, 3}}, k2 = {.max_files = {true, 4}};
    a.log_config = &l;
    b.log_config = &k2;
    b.leader = true;
    ck_assert(codec_equal_but_inplace(&type_task, &a, &b));
    k2.disabled = true;
    ck_assert(!codec_equal_but_inplace(&type_task, &a, &b));
    k2.disabled = false;
    b.driver = "exec";
    ck_assert(!codec_equal_but_inplace(&type_task, &a, &b));
    struct job j = {.id = "a", .modify_index = 1}, k = {.id = "a", .modify_index = 2};
    ck_assert(!codec_equal(&type_job, &j, &k, 0));
    ck_assert(codec_equal(&type_job, &j, &k, F_SERVER));
    ck_assert_uint_eq(codec_hash(&type_job, &j, F_SERVER), codec_hash(&type_job, &k, F_SERVER));
    ck_assert_uint_ne(codec_hash(&type_job, &j, 0), codec_hash(&type_job, &k, 0));
}
END_TEST

START_TEST(a_projection_copies_what_has_the_same_name)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job j = {.id = "a", .priority = {true, 70}, .stop = true, .modify_index = 9};
    struct periodic_config p = {0};
    j.periodic = &p;
    list_add(ctx, j.datacenters, "dc1");
    str_map_set(ctx, &j.meta, "k", "v");
    const struct projection *to_stub = projection_new(ctx, &type_job_list_stub, &type_job);
    const struct job_list_stub *s = codec_project(ctx, to_stub, &j);
    ck_assert_ptr_eq(s->id, j.id);
    ck_assert_int_eq(s->priority, 70); /* its value; whether it was set does not fit */
    ck_assert(s->stop && s->periodic && !s->parameterized_job);
    ck_assert_ptr_eq(s->datacenters.v, j.datacenters.v);
    ck_assert_str_eq(str_map_get(&s->meta, "k"), "v");
    ck_assert_uint_eq(s->modify_index, 9);
    ck_assert_ptr_null(s->job_summary); /* a job has none */
    /* every field of a stub of evaluations is one of an evaluation, of the same kind */
    struct evaluation e = {0};
    auto_buf struct buf a = BUF_INIT(1 << 16), b = BUF_INIT(1 << 16);
    for (size_t i = 0; i < type_evaluation_stub.n_fields; i++) {
        const struct field *f = &type_evaluation_stub.fields[i];
        const struct field *of = type_field(&type_evaluation, f->wire, f->wire_len);
        ck_assert(of != NULL && of->type == f->type);
        if (of->type == FT_STRING)
            *(const char **)(void *)((char *)&e + of->offset) = of->wire;
        else
            *(int64_t *)(void *)((char *)&e + of->offset) = (int64_t)i + 1;
    }
    const struct projection *self = projection_new(ctx, &type_evaluation, &type_evaluation);
    mp_encode(&a, &type_evaluation, &e);
    mp_encode(&b, &type_evaluation, codec_project(ctx, self, &e));
    ck_assert(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
    const struct evaluation_stub *es =
        codec_project(ctx, projection_new(ctx, &type_evaluation_stub, &type_evaluation), &e);
    ck_assert_str_eq(es->blocked_eval, "BlockedEval");
    ck_assert(es->modify_index == e.modify_index && es->wait_until == e.wait_until);
}
END_TEST

TEST_SUITE("codec operations", a_projection_copies_what_has_the_same_name,
           values, maps_stay_sorted, defaults_fill_what_is_absent,
           every_default_is_valid, limits_of_the_schema, fields_without_effect_are_named,
           in_place_changes)
