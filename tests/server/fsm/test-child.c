/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: launches of periodic jobs, dispatches of parameterized ones, and what their parents say.
 */
#include <string.h>

#include "common/duration.h"
#include "common/str.h"
#include "server/state/state_int.h"
#include "tests/lib/test.h"
#include "tests/server/fsm/fx.h"

static struct job *
periodic(struct fx *f, bool prohibit_overlap)
{
    struct job *j = make_job(f, "cron", 1);
    j->type = JOB_BATCH;
    j->periodic = mem_new(j, struct periodic_config);
    j->periodic->enabled = (struct opt_bool){true, true};
    j->periodic->spec = "* * * * *";
    j->periodic->prohibit_overlap = prohibit_overlap;
    return j;
}

static struct fsm_result *
launch(struct fx *f, int64_t at_s, const char *eval, bool force)
{
    struct intent_periodic_launch pl = {
        .namespace = "default", .job_id = "cron", .launch = at_s, .eval_id = eval, .force = force};
    return apply(f, &(struct intent){.periodic_launch = &pl});
}

static const struct job_children_summary *
children(struct fx *f, const char *id)
{
    return READ(f, struct job_summary *, state_summary(rt, f->ctx, "default", id))->children;
}

#define CHILDREN(f, id, p, r, d)                                        \
    do {                                                                \
        const struct job_children_summary *_c = children((f), (id));    \
        ck_assert_int_eq(_c->pending, (p));                             \
        ck_assert_int_eq(_c->running, (r));                             \
        ck_assert_int_eq(_c->dead, (d));                                \
    } while (0)

static int64_t
launched(struct fx *f)
{
    const struct periodic_launch *p =
        READ(f, struct periodic_launch *, state_periodic_launch(rt, f->ctx, "default", "cron"));
    return p != NULL ? p->launch : -1;
}

static void
end_eval(struct fx *f, const char *id)
{
    struct evaluation *e = get_eval(f, id);
    e->status = EVAL_COMPLETE;
    struct intent_eval_update up = {.evals = {&e, 1}};
    apply(f, &(struct intent){.eval_update = &up});
}

START_TEST(a_time_is_launched_once)
{
    struct fx *f = fx_new();
    put_job(f, periodic(f, false), NULL);
    ck_assert_str_eq(get_job(f, "cron")->status, JOB_STATUS_RUNNING);
    int64_t since = launched(f);
    ck_assert_int_ge(since, 0);
    ck_assert(!launch(f, since, "e0", false)->changed); /* it was not there yet */

    struct fsm_result *r = launch(f, since + 60, "e1", false);
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 1);
    ck_assert_str_eq(ROW(r, EVALS, STORED, 0)->triggered_by, "periodic-job");
    ck_assert_str_eq(r->job->parent_id, "cron");
    ck_assert_ptr_null(r->job->periodic);
    ck_assert_str_eq(r->job->status, JOB_STATUS_PENDING);
    ck_assert_str_eq(r->job->id, mem_printf(f->ctx, "cron/periodic-%lld", (long long)since + 60));
    ck_assert_str_eq(r->job->name, r->job->id);
    ck_assert_int_eq(launched(f), since + 60);
    CHILDREN(f, "cron", 1, 0, 0);

    ck_assert(!launch(f, since + 60, "e2", false)->changed);
    ck_assert(!launch(f, since + 30, "e3", false)->changed);
    ck_assert_ptr_null(get_eval(f, "e2"));
    CHILDREN(f, "cron", 1, 0, 0);
    ck_assert(launch(f, since + 120, "e4", false)->changed);
    CHILDREN(f, "cron", 2, 0, 0);
    end_eval(f, "e1");
    CHILDREN(f, "cron", 1, 0, 1);
    fx_free(f);
}
END_TEST

START_TEST(what_runs_prohibits_the_next)
{
    struct fx *f = fx_new();
    put_job(f, periodic(f, true), NULL);
    int64_t t = launched(f) + 60;
    launch(f, t, "e1", false);
    struct fsm_result *r = launch(f, t + 60, "e2", false);
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 0);
    ck_assert_int_eq(launched(f), t + 60); /* that time is over */
    CHILDREN(f, "cron", 1, 0, 0);
    /* but who asks for it gets it */
    ck_assert_uint_eq(FSM_COUNT(launch(f, t + 61, "e3", true), EVALS, STORED), 1);
    CHILDREN(f, "cron", 2, 0, 0);
    end_eval(f, "e1");
    end_eval(f, "e3");
    CHILDREN(f, "cron", 0, 0, 2);
    ck_assert_uint_eq(FSM_COUNT(launch(f, t + 120, "e4", false), EVALS, STORED), 1);
    fx_free(f);
}
END_TEST

START_TEST(a_stopped_job_is_not_launched_and_its_children_live)
{
    struct fx *f = fx_new();
    put_job(f, periodic(f, false), NULL);
    int64_t t = launched(f) + 60;
    struct fsm_result *r = launch(f, t, "e1", false);
    const char *child = r->job->id;
    stop_job(f, "cron", false, NULL);
    ck_assert_str_eq(get_job(f, "cron")->status, JOB_STATUS_DEAD);
    ck_assert_int_eq(launched(f), -1);
    ck_assert(!launch(f, t + 60, "e2", false)->changed);
    ck_assert_int_lt(launch(f, t + 60, "e2", true)->err.code, 0);
    ck_assert(!get_job(f, child)->stop);

    /* again: times before are not made up for, the child is counted */
    stop_job(f, "cron", true, NULL);
    f->now += 3600 * NS_PER_S;
    put_job(f, periodic(f, false), NULL);
    ck_assert_int_ge(launched(f), t + 3000);
    CHILDREN(f, "cron", 1, 0, 0);
    stop_job(f, child, true, NULL);
    CHILDREN(f, "cron", 0, 0, 1);
    fx_free(f);
}
END_TEST

static struct fsm_result *
dispatch(struct fx *f, const char *child, const char *token)
{
    struct intent_job_dispatch jd = {.namespace = "default",
                                     .job_id = "par",
                                     .child_id = child,
                                     .payload = {(uint8_t *)(uintptr_t) "hello", 5},
                                     .priority = 77,
                                     .idempotency_token = token,
                                     .eval_id = child};
    str_map_set(f->ctx, &jd.meta, "who", "me");
    return apply(f, &(struct intent){.job_dispatch = &jd});
}

START_TEST(a_dispatch_makes_a_child)
{
    struct fx *f = fx_new();
    struct job *j = make_job(f, "par", 1);
    j->type = JOB_BATCH;
    j->parameterized_job = mem_new(j, struct parameterized_job_config);
    str_map_set(j, &j->meta, "who", "nobody");
    str_map_set(j, &j->meta, "base", "1");
    put_job(f, j, NULL);
    ck_assert_str_eq(get_job(f, "par")->status, JOB_STATUS_RUNNING);

    struct fsm_result *r = dispatch(f, "par/dispatch-1-a", "tok");
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 1);
    ck_assert_str_eq(ROW(r, EVALS, STORED, 0)->triggered_by, "job-register");
    ck_assert_int_eq(ROW(r, EVALS, STORED, 0)->priority, 77);
    struct job *c = get_job(f, "par/dispatch-1-a");
    ck_assert(c->dispatched && c->parameterized_job != NULL && !c->stop);
    ck_assert_str_eq(c->status, JOB_STATUS_PENDING);
    ck_assert_str_eq(str_map_get(&c->meta, "who"), "me");
    ck_assert_str_eq(str_map_get(&c->meta, "base"), "1");
    ck_assert_uint_eq(c->payload.n, 5);
    CHILDREN(f, "par", 1, 0, 0);

    /* with its token only this one, as long as it is there */
    r = dispatch(f, "par/dispatch-1-b", "tok");
    ck_assert(!r->changed);
    ck_assert_str_eq(r->job->id, "par/dispatch-1-a");
    ck_assert(dispatch(f, "par/dispatch-1-c", "other")->changed);
    ck_assert(dispatch(f, "par/dispatch-1-d", NULL)->changed);
    ck_assert(dispatch(f, "par/dispatch-1-e", NULL)->changed);
    CHILDREN(f, "par", 4, 0, 0);
    end_eval(f, "par/dispatch-1-a");
    ck_assert_str_eq(get_job(f, "par/dispatch-1-a")->status, JOB_STATUS_DEAD);
    CHILDREN(f, "par", 3, 0, 1);
    stop_job(f, "par/dispatch-1-a", true, NULL);
    ck_assert(dispatch(f, "par/dispatch-1-f", "tok")->changed);

    stop_job(f, "par", false, NULL);
    ck_assert_str_eq(dispatch(f, "par/dispatch-1-g", NULL)->err.text, "Specified job \"par\" is stopped");
    ck_assert_str_eq(dispatch(f, "par/dispatch-1-g", "tok")->err.text, "Specified job \"par\" is stopped");
    fx_free(f);
}
END_TEST

/* Two registrations that were admitted on the same snapshot: what is decided is decided here. */
START_TEST(a_job_stays_what_it_is)
{
    struct fx *f = fx_new();
    struct job *service = make_job(f, "cron", 1), *plain = make_job(f, "cron", 1);

    put_job(f, periodic(f, false), NULL);
    plain->type = periodic(f, false)->type;
    struct fsm_result *r = put_job(f, plain, NULL);
    ck_assert_int_eq(r->err.code, -ERR_INTERNAL);
    ck_assert_str_eq(r->err.text, "cannot update periodic job to being non-periodic");
    service->type = "sysbatch";
    ck_assert_int_eq(put_job(f, service, NULL)->err.code, -ERR_INVALID);
    ck_assert_ptr_nonnull(get_job(f, "cron")->periodic);
    ck_assert_uint_eq(get_job(f, "cron")->version, 0);
    struct job *par = make_job(f, "plain", 1);
    put_job(f, make_job(f, "plain", 1), NULL);
    par->parameterized_job = type_new(par, &type_parameterized_job_config);
    ck_assert_int_eq(put_job(f, par, NULL)->err.code, -ERR_INTERNAL);
    fx_free(f);
}
END_TEST

TEST_SUITE("child", a_job_stays_what_it_is, a_time_is_launched_once, what_runs_prohibits_the_next,
           a_stopped_job_is_not_launched_and_its_children_live, a_dispatch_makes_a_child)
