/* SPDX-License-Identifier: Apache-2.0
 *
 * The health of an allocation: a table of what its tasks are, and what comes of it; and that it is
 * told.
 */
#include <string.h>
#include <unistd.h>

#include "client/alloc/health.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "drivers/driver.h"
#include "tests/lib/mock.h"
#include "tests/client/world.h"
#include "tests/lib/test.h"

#define T0 (INT64_C(1700000000) * NS_PER_S)

struct task_row {
    enum task_role role;
    bool sidecar;
    char state;  /* p(ending), r(unning), d(ead), f(ailed) */
    int started; /* s after T0; 0: never */
};

enum { MAX = 3 };

static const struct row {
    struct task_row t[MAX];
    size_t n;
    int now;
    enum health is;
    int at; /* HEALTH_OPEN: when it is looked at again */
    const char *why[MAX];
} rows[] = {
    /* one task: not up, up, up long enough; up too late */
    {{{0, 0, 'p', 0}}, 1, 1, HEALTH_OPEN, 60, {0}},
    {{{0, 0, 'r', 5}}, 1, 14, HEALTH_OPEN, 15, {0}},
    {{{0, 0, 'r', 5}}, 1, 15, HEALTH_GOOD, 0, {0}},
    {{{0, 0, 'r', -100}}, 1, 9, HEALTH_OPEN, 10, {0}}, /* from before one looked */
    {{{0, 0, 'r', 50}}, 1, 70, HEALTH_GOOD, 0, {0}},
    {{{0, 0, 'r', 51}}, 1, 59, HEALTH_OPEN, 60, {0}},
    {{{0, 0, 'r', 51}},
     1,
     61,
     HEALTH_BAD,
     0,
     {"Task not running for min_healthy_time of 10s by healthy_deadline of 1m0s"}},
    /* it started by a clock that was set back since: the time begins with the look at it */
    {{{0, 0, 'r', 3600}}, 1, 9, HEALTH_OPEN, 10, {0}},
    {{{0, 0, 'r', 3600}}, 1, 10, HEALTH_GOOD, 0, {0}},
    {{{0, 0, 'p', 0}}, 1, 60, HEALTH_BAD, 0, {"Task not running by healthy_deadline of 1m0s"}},
    /* a restart that waits is no failure, and the time begins again */
    {{{0, 0, 'p', 3}}, 1, 20, HEALTH_OPEN, 60, {0}},
    {{{0, 0, 'r', 3}, {0, 0, 'r', 22}}, 2, 25, HEALTH_OPEN, 32, {0}},
    /* ends: of a main task, of a sidecar, of tasks that may */
    {{{0, 0, 'd', 1}, {0, 0, 'r', 1}},
     2,
     2,
     HEALTH_BAD,
     0,
     {"Unhealthy because of dead task", NULL}},
    {{{0, 0, 'f', 1}, {0, 0, 'r', 1}},
     2,
     2,
     HEALTH_BAD,
     0,
     {"Unhealthy because of failed task", NULL}},
    {{{ROLE_PRESTART, 0, 'd', 1}, {0, 0, 'r', 2}}, 2, 12, HEALTH_GOOD, 0, {0}},
    {{{ROLE_PRESTART, 0, 'f', 1}, {0, 0, 'p', 0}},
     2,
     2,
     HEALTH_BAD,
     0,
     {"Unhealthy because of failed task", NULL}},
    {{{ROLE_PRESTART, 0, 'r', 1}, {0, 0, 'p', 0}}, 2, 30, HEALTH_OPEN, 60, {0}},
    {{{ROLE_PRESTART, 1, 'd', 1}, {0, 0, 'r', 2}},
     2,
     3,
     HEALTH_BAD,
     0,
     {"Unhealthy because of dead task", NULL}},
    {{{0, 0, 'r', 2}, {ROLE_POSTSTART, 0, 'd', 8}}, 2, 12, HEALTH_GOOD, 0, {0}},
    {{{0, 0, 'r', 2}, {ROLE_POSTSTART, 0, 'r', 8}}, 2, 12, HEALTH_OPEN, 18, {0}},
    {{{0, 0, 'r', 2}, {ROLE_POSTSTART, 0, 'f', 8}},
     2,
     9,
     HEALTH_BAD,
     0,
     {NULL, "Unhealthy because of failed task"}},
    {{{0, 0, 'r', 2}, {ROLE_POSTSTOP, 0, 'p', 0}}, 2, 12, HEALTH_GOOD, 0, {0}},
    {{{0, 0, 'p', 0}, {ROLE_POSTSTOP, 0, 'p', 0}, {ROLE_PRESTART, 0, 'd', 1}},
     3,
     60,
     HEALTH_BAD,
     0,
     {"Task not running by healthy_deadline of 1m0s", NULL, NULL}},
};

static void
take(const void *ctx, const struct task_row *r, struct task_sm *m)
{
    *m = (struct task_sm){.cfg = {.role = r->role, .sidecar = r->sidecar}};
    m->t = task_sm_new_record(ctx, "t", T0);
    m->t->state->state = r->state == 'p' ? "pending" : r->state == 'r' ? "running" : "dead";
    m->t->state->failed = r->state == 'f';
    m->t->state->started_at = r->started ? T0 + r->started * NS_PER_S : 0;
}

START_TEST(judged_by_its_tasks)
{
    auto_mem void *ctx = mem_ctx("t");
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        const struct row *r = &rows[k];
        struct task_sm sm[MAX];
        const struct task_sm *list[MAX];
        for (size_t i = 0; i < r->n; i++) {
            take(ctx, &r->t[i], &sm[i]);
            list[i] = &sm[i];
        }
        struct health_in in = {
            .tasks = list,
            .n = r->n,
            .policy = {.judged = true, .deploy = true, .min_ns = 10 * NS_PER_S,
                       .max_ns = 60 * NS_PER_S},
            .now = T0 + r->now * NS_PER_S,
            .began = T0};
        int64_t at = 0;
        enum health is = health_judge(&in, &at);
        ck_assert_msg(is == r->is, "row %zu: %d", k, (int)is);
        if (is == HEALTH_OPEN)
            ck_assert_msg(at == T0 + r->at * NS_PER_S, "row %zu: at %lld", k,
                          (long long)((at - T0) / NS_PER_S));
        for (size_t i = 0; is == HEALTH_BAD && i < r->n; i++) {
            const char *why = health_reason(ctx, &in, i);
            ck_assert_msg(str_eq(why, r->why[i]), "row %zu: %s", k, str_or(why, "none"));
        }
    }
}
END_TEST

/* A task runs from T0 + 2 on. */
START_TEST(judged_by_checks_too)
{
    static const struct {
        bool off;
        size_t checks, passing;
        int since, now;
        enum health is;
        int at;
        const char *why;
    } table[] = {
        {0, 0, 0, 0, 12, HEALTH_GOOD, 0, NULL},
        {0, 2, 2, 1, 12, HEALTH_GOOD, 0, NULL},
        {0, 2, 2, 30, 12, HEALTH_GOOD, 0, NULL}, /* by a clock that was set back since */
        {0, 2, 2, 7, 16, HEALTH_OPEN, 17, NULL},
        {0, 2, 2, 7, 17, HEALTH_GOOD, 0, NULL},
        {0, 2, 1, 7, 40, HEALTH_OPEN, 60, NULL},
        {1, 2, 1, 7, 40, HEALTH_GOOD, 0, NULL}, /* task_states */
        {0, 2, 1, 7, 60, HEALTH_BAD, 0, "Only 1 out of 2 checks registered and passing"},
        {0, 2, 2, 55, 60, HEALTH_BAD, 0,
         "Services not healthy by deadline: checks passed for less than 10s"},
    };
    auto_mem void *ctx = mem_ctx("t");
    for (size_t k = 0; k < ARRAY_LEN(table); k++) {
        struct task_sm sm;
        const struct task_sm *list[] = {&sm};
        take(ctx, &(struct task_row){0, 0, 'r', 2}, &sm);
        struct health_in in = {.tasks = list,
                               .n = 1,
                               .policy = {.judged = true, .deploy = true, .checks = !table[k].off,
                                          .min_ns = 10 * NS_PER_S, .max_ns = 60 * NS_PER_S},
                               .now = T0 + table[k].now * NS_PER_S,
                               .began = T0,
                               .checks = table[k].checks,
                               .passing = table[k].passing,
                               .passing_since = T0 + table[k].since * NS_PER_S};
        int64_t at = 0;
        enum health is = health_judge(&in, &at);
        ck_assert_msg(is == table[k].is, "row %zu: %d", k, (int)is);
        if (is == HEALTH_OPEN)
            ck_assert_msg(at == T0 + table[k].at * NS_PER_S, "row %zu", k);
        if (is == HEALTH_BAD)
            ck_assert_msg(str_eq(health_reason(ctx, &in, 0), table[k].why), "row %zu: %s", k,
                          str_or(health_reason(ctx, &in, 0), "none"));
    }
}
END_TEST

START_TEST(policy_of_the_job)
{
    struct update_strategy u = {.min_healthy_time = {true, 1}, .healthy_deadline = {true, 2}};
    struct migrate_strategy m = {.min_healthy_time = {true, 3}, .healthy_deadline = {true, 4}};
    struct job j = {.type = "service"};
    struct task_group tg = {.update = &u, .migrate = &m};
    struct allocation a = {.job = &j, .deployment_id = "d"};
    struct health_policy p = health_policy_of(&a, &tg);
    ck_assert(p.judged && p.deploy && p.checks && p.min_ns == 1 && p.max_ns == 2);
    u.health_check = "task_states";
    ck_assert(health_policy_of(&a, &tg).judged && !health_policy_of(&a, &tg).checks);
    u.health_check = "manual";
    ck_assert(!health_policy_of(&a, &tg).judged);
    u.health_check = "checks";
    u.max_parallel = (struct opt_i64){true, 0};
    ck_assert(!health_policy_of(&a, &tg).judged);
    a.deployment_id = "";
    p = health_policy_of(&a, &tg);
    ck_assert(p.judged && !p.deploy && p.min_ns == 3 && p.max_ns == 4);
    tg.migrate = NULL;
    p = health_policy_of(&a, &tg);
    ck_assert(p.judged && p.min_ns == 10 * NS_PER_S && p.max_ns == 300 * NS_PER_S);
    j.type = "batch";
    ck_assert(!health_policy_of(&a, &tg).judged);
    j.type = "system";
    ck_assert(health_policy_of(&a, &tg).judged);
}
END_TEST

#define HEALTH(min, max)                                                                           \
    ",\"Update\":{\"MaxParallel\":1,\"HealthCheck\":\"task_states\",\"MinHealthyTime\":" min       \
    ",\"HealthyDeadline\":" max "}"

static bool
told(const struct world_alloc *x, bool healthy)
{
    const struct alloc_deployment_status *d = x->last ? x->last->deployment_status : NULL;
    return d && d->healthy.set && d->healthy.v == healthy && d->timestamp != 0;
}

/* Told once for each deployment, also over the end of the agent; without one it is for drains. */
START_TEST(health_is_told)
{
    struct world w;
    world_start(&w, geteuid());
    driver_add(&driver_mock);
    const char *forever = "{\"run_for\":\"1h\"}";
    struct world_alloc *x = world_script(&w, "service", "exec sleep 1000");
    struct update_strategy u = {.min_healthy_time = {true, 50 * NS_PER_MS}};
    x->a->job->task_groups.v[0]->update = &u;
    x->a->deployment_id = "one";
    struct world_alloc *y = world_add(&w, "service", "mock_driver", "{\"start_error\":\"boom\"}",
                                      HEALTH("50000000", "60000000000"));
    y->a->deployment_id = "one";
    /* its task runs long before the deadline, also on a machine that is slow */
    struct world_alloc *z =
        world_add(&w, "service", "mock_driver", forever, HEALTH("60000000000", "5000000000"));
    z->a->deployment_id = "one";
    struct world_alloc *m = world_add(&w, "service", "mock_driver", forever,
                                      ",\"Migrate\":{\"MinHealthyTime\":50000000}");
    struct world_alloc *b = world_add(&w, "batch", "mock_driver", "{\"start_error\":\"boom\"}", "");
    b->a->deployment_id = "one";
    world_client(&w);
    world_until(&w, told(x, true) && told(y, false) && told(z, false) && told(m, true) &&
                        told(b, false));
    ck_assert_str_eq(x->last->deployment_id, "one");
    ck_assert_str_eq(world_event(y, "Alloc Unhealthy")->display_message,
                     "Unhealthy because of failed task");
    ck_assert_str_eq(world_event(z, "Alloc Unhealthy")->display_message,
                     "Task not running for min_healthy_time of 1m0s by healthy_deadline of 5s");
    ck_assert_ptr_null(world_event(b, "Alloc Unhealthy"));
    int64_t at = x->last->deployment_status->timestamp;
    world_client_stop(&w);
    world_client(&w);
    u.min_healthy_time.v = NS_PER_MS;
    world_changed(&w, x);
    world_until(&w, w.parked);
    ck_assert(told(x, true));
    ck_assert_int_eq(x->last->deployment_status->timestamp, at);
    x->a->deployment_id = "two";
    world_changed(&w, x);
    world_until(&w, str_eq(x->last->deployment_id, "two") && told(x, true));
    ck_assert_int_gt(x->last->deployment_status->timestamp, at);
    world_stop(&w);
}
END_TEST

TEST_SUITE_TIMEOUT("health", 60, judged_by_its_tasks, judged_by_checks_too, policy_of_the_job, health_is_told)
