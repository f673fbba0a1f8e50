/* SPDX-License-Identifier: Apache-2.0
 *
 * Differences of jobs: what kind each change is, and that nothing unchanged shows.
 */
#include "api/jobdiff.h"
#include "common/str.h"
#include "tests/lib/test.h"

static const char base[] =
    "{\"ID\":\"web\",\"Priority\":50,\"Datacenters\":[\"dc1\",\"dc2\"],\"Meta\":{\"a\":\"1\",\"b\":\"2\"},"
    "\"Constraints\":[{\"LTarget\":\"${attr.kernel.name}\",\"RTarget\":\"linux\",\"Operand\":\"=\"}],"
    "\"Version\":3,\"TaskGroups\":[{\"Name\":\"cache\",\"Count\":2,\"Tasks\":[{\"Name\":\"redis\","
    "\"Driver\":\"exec\",\"Config\":{\"command\":\"redis-server\",\"args\":[\"--port\",\"1\"]},"
    "\"KillTimeout\":5000000000}]},{\"Name\":\"idle\",\"Count\":1}]}";

static const char changed[] =
    "{\"ID\":\"web\",\"Priority\":60,\"Datacenters\":[\"dc2\",\"dc3\"],\"Meta\":{\"a\":\"1\",\"c\":\"3\"},"
    "\"Constraints\":[{\"LTarget\":\"${attr.kernel.name}\",\"RTarget\":\"linux\",\"Operand\":\"=\"},"
    "{\"Operand\":\"distinct_hosts\",\"RTarget\":\"true\"}],"
    "\"Version\":4,\"TaskGroups\":[{\"Name\":\"idle\",\"Count\":1},{\"Name\":\"cache\",\"Count\":3,"
    "\"Tasks\":[{\"Name\":\"redis\",\"Driver\":\"exec\",\"Config\":{\"command\":\"redis-server\","
    "\"args\":[\"--port\",\"2\"]},\"KillTimeout\":9000000000},{\"Name\":\"log\",\"Driver\":\"exec\"}]}]}";

static struct job *
parse(const void *ctx, const char *s)
{
    struct err e = ERR_INIT;
    void *j = NULL;
    int rc = json_decode_strict(ctx, &type_job, SLICE(s, strlen(s)), BUDGET(1 << 20), &j, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    return j;
}

static const struct field_diff *
field(const struct field_diff_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i]->name, name))
            return l->v[i];
    return NULL;
}

static const struct object_diff *
object(const struct object_diff_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i]->name, name))
            return l->v[i];
    return NULL;
}

static void
check_field(const struct field_diff_list *l, const char *name, const char *type, const char *old,
            const char *new)
{
    const struct field_diff *f = field(l, name);
    ck_assert_msg(f != NULL, "no field %s", name);
    ck_assert_str_eq(f->type, type);
    ck_assert_str_eq(f->old, old);
    ck_assert_str_eq(f->new, new);
}

START_TEST(equal_jobs_have_no_diff)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job_diff *d = job_diff(ctx, parse(ctx, base), parse(ctx, base), false);
    ck_assert_str_eq(d->type, "None");
    ck_assert_uint_eq(d->fields.n + d->objects.n, 0);
    ck_assert_uint_eq(d->task_groups.n, 2);
    ck_assert_str_eq(d->task_groups.v[0]->type, "None");
    ck_assert_str_eq(d->task_groups.v[0]->tasks.v[0]->type, "None");
}
END_TEST

START_TEST(job_level_changes)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job_diff *d = job_diff(ctx, parse(ctx, base), parse(ctx, changed), false);
    ck_assert_str_eq(d->type, "Edited");
    ck_assert_str_eq(d->id, "web");
    check_field(&d->fields, "Priority", "Edited", "50", "60");
    check_field(&d->fields, "Meta[b]", "Deleted", "2", "");
    check_field(&d->fields, "Meta[c]", "Added", "", "3");
    ck_assert_uint_eq(d->fields.n, 3);
    const struct object_diff *dc = object(&d->objects, "Datacenters");
    ck_assert_ptr_nonnull(dc);
    ck_assert_uint_eq(dc->fields.n, 2);
    const struct object_diff *c = object(&d->objects, "Constraint");
    ck_assert_str_eq(c->type, "Added");
    check_field(&c->fields, "Operand", "Added", "", "distinct_hosts");
    ck_assert_uint_eq(d->objects.n, 2);
}
END_TEST

START_TEST(groups_and_tasks)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *a = parse(ctx, base), *b = parse(ctx, changed);
    struct job_diff *d = job_diff(ctx, a, b, false);
    struct plan_annotations ann = {0};
    struct desired_updates u = {.place = 1, .destructive_update = 2};
    map_put(ctx, ann.desired_tg_updates, "cache")->v = &u;
    job_diff_annotate(d, a, b, &ann);
    const struct task_group_diff *g = d->task_groups.v[0];
    ck_assert_str_eq(g->name, "cache");
    ck_assert_str_eq(g->type, "Edited");
    check_field(&g->fields, "Count", "Edited", "2", "3");
    ck_assert_str_eq(g->fields.v[0]->annotations.v[0], "forces create");
    ck_assert_int_eq(map_get(g->updates, "create/destroy update")->v, 2);
    ck_assert_uint_eq(g->tasks.n, 2);
    ck_assert_str_eq(g->tasks.v[0]->name, "log");
    ck_assert_str_eq(g->tasks.v[0]->type, "Added");
    const struct task_diff *t = g->tasks.v[1];
    check_field(&t->fields, "KillTimeout", "Edited", "5000000000", "9000000000");
    const struct object_diff *cfg = object(&t->objects, "Config");
    ck_assert_uint_eq(cfg->fields.n, 1);
    check_field(&cfg->fields, "args[1]", "Edited", "1", "2");
    ck_assert_str_eq(t->annotations.v[0], "forces create/destroy update");
    ck_assert_str_eq(d->task_groups.v[1]->type, "None");
}
END_TEST

START_TEST(tasks_of_a_new_group_are_created)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *a = parse(ctx, base);
    for (int gone = 0; gone < 2; gone++) {
        const struct job *was = gone ? a : NULL, *now = gone ? NULL : a;
        struct job_diff *d = job_diff(ctx, was, now, false);
        job_diff_annotate(d, was, now, NULL);
        for (size_t g = 0; g < d->task_groups.n; g++)
            for (size_t i = 0; i < d->task_groups.v[g]->tasks.n; i++) {
                const struct task_diff *t = d->task_groups.v[g]->tasks.v[i];
                ck_assert_uint_eq(t->annotations.n, 1);
                ck_assert_str_eq(t->annotations.v[0], gone ? "forces destroy" : "forces create");
            }
    }
}
END_TEST

START_TEST(in_place_only)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *a = parse(ctx, base), *b = codec_clone(ctx, &type_job, a);
    b->task_groups.v[0]->tasks.v[0]->kill_timeout.v = 1;
    struct job_diff *d = job_diff(ctx, a, b, false);
    job_diff_annotate(d, a, b, NULL);
    ck_assert_str_eq(d->task_groups.v[0]->tasks.v[0]->annotations.v[0], "forces in-place update");
}
END_TEST

START_TEST(contextual_shows_the_rest_of_a_changed_object)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job_diff *d = job_diff(ctx, parse(ctx, base), parse(ctx, changed), true);
    for (size_t i = 0; i < d->fields.n; i++)
        ck_assert_str_ne(d->fields.v[i]->type, "None"); /* context is for objects only */
    const struct object_diff *cfg = object(&d->task_groups.v[0]->tasks.v[1]->objects, "Config");
    check_field(&cfg->fields, "command", "None", "redis-server", "redis-server");
}
END_TEST

START_TEST(new_and_deleted_jobs)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job_diff *d = job_diff(ctx, NULL, parse(ctx, base), false);
    ck_assert_str_eq(d->type, "Added");
    check_field(&d->fields, "Priority", "Added", "", "50");
    d = job_diff(ctx, parse(ctx, base), NULL, false);
    ck_assert_str_eq(d->type, "Deleted");
    ck_assert_str_eq(d->task_groups.v[0]->tasks.v[0]->type, "Deleted");
}
END_TEST

TEST_SUITE("job diff", equal_jobs_have_no_diff, job_level_changes, groups_and_tasks,
           tasks_of_a_new_group_are_created, in_place_only,
           contextual_shows_the_rest_of_a_changed_object, new_and_deleted_jobs)
