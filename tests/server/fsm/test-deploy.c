/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine and deployments: counters, deadlines, promotion, what ends one, stable
 * versions, garbage.
 */
#include "common/duration.h"
#include "server/leader/rollback.h"
#include "tests/lib/test.h"
#include "tests/server/fsm/fx.h"

static struct deployment *
get(struct fx *f, const char *id)
{
    return READ(f, struct deployment *, state_deployment(rt, f->ctx, id));
}

static const struct deployment_state *
group(struct fx *f, const char *id)
{
    return get(f, id)->task_groups.v[0].v;
}

/* A plan that makes the deployment and places `n` allocations a1.. of it on n1. */
static struct job *
deploy(struct fx *f, const char *id, size_t n, bool canary)
{
    struct job *j = make_job(f, "web", 1);
    ready_node(f, "n1");
    put_job(f, j, NULL);
    j = get_job(f, "web");
    struct deployment *d = type_new(f, &type_deployment);
    *d = (struct deployment){.id = id,
                             .namespace = j->namespace,
                             .job_id = j->id,
                             .job_version = j->version,
                             .job_create_index = j->create_index,
                             .status = DEPLOYMENT_RUNNING,
                             .status_description = DESC_DEPLOY_PROMOTE};
    struct deployment_state *s = type_new(f, &type_deployment_state);
    *s = (struct deployment_state){.desired_total = (int64_t)n, .progress_deadline = 60 * NS_PER_S};
    s->desired_canaries = canary ? (int64_t)n : 0;
    map_put(f, d->task_groups, "g")->v = s;
    struct plan_result pr = {.job = j, .deployment = d};
    for (size_t i = 0; i < n; i++) {
        struct allocation *a = make_alloc(f, j, mem_printf(f, "a%zu", i + 1), "n1");
        a->name = mem_printf(f, "web.g[%zu]", i);
        a->task_group = "g";
        a->deployment_id = id;
        if (canary) {
            a->deployment_status = type_new(f, &type_alloc_deployment_status);
            a->deployment_status->canary = true;
        }
        list_add(f, pr.placed, a);
    }
    apply(f, &(struct intent){.plan_result = &pr});
    return j;
}

static struct fsm_result *
says(struct fx *f, const char *alloc, bool healthy)
{
    struct alloc_deployment_status s = {.healthy = {true, healthy}, .timestamp = f->now};
    struct allocation a = {.id = alloc,
                           .client_status = ALLOC_RUNNING,
                           .deployment_id = get_alloc(f, alloc)->deployment_id,
                           .deployment_status = &s};
    struct allocation *v[] = {&a};
    struct intent_alloc_update up = {.node_id = "n1", .allocs = {v, 1}};
    return apply(f, &(struct intent){.alloc_update = &up});
}

static struct fsm_result *
promote(struct fx *f, const char *id)
{
    struct intent_deployment_promote p = {.deployment_id = id, .all = true};
    return apply(f, &(struct intent){.deployment_promote = &p});
}

static struct fsm_result *
set_status(struct fx *f, const char *id, const char *status, struct job *to)
{
    struct deployment_status_update u = {id, status, "because"};
    struct intent_deployment_update up = {.update = &u, .job = to};
    return apply(f, &(struct intent){.deployment_update = &up});
}

START_TEST(counters_follow_placements_and_health)
{
    struct fx *f = fx_new();
    deploy(f, "d1", 2, false);
    int64_t placed = f->now;
    ck_assert_int_eq(group(f, "d1")->placed_allocs, 2);
    ck_assert_int_eq(group(f, "d1")->require_progress_by, placed + 60 * NS_PER_S);
    ck_assert_uint_eq(get(f, "d1")->create_index, f->index);
    f->now += 5 * NS_PER_S;
    struct fsm_result *r = says(f, "a1", true);
    ck_assert_uint_eq(FSM_COUNT(r, DEPLOYMENTS, STORED), 1);
    ck_assert_int_eq(group(f, "d1")->healthy_allocs, 1);
    ck_assert_int_ge(group(f, "d1")->require_progress_by, placed + 65 * NS_PER_S);
    ck_assert_uint_eq(get_alloc(f, "a1")->deployment_status->modify_index, f->index);
    /* said twice is said once */
    ck_assert_uint_eq(FSM_COUNT(says(f, "a1", true), DEPLOYMENTS, STORED), 0);
    says(f, "a2", false);
    says(f, "a1", false);
    ck_assert_int_eq(group(f, "d1")->healthy_allocs, 0);
    ck_assert_int_eq(group(f, "d1")->unhealthy_allocs, 2);
    fx_free(f);
}
END_TEST

START_TEST(promotion_needs_healthy_canaries)
{
    struct fx *f = fx_new();
    deploy(f, "d1", 2, true);
    ck_assert_uint_eq(group(f, "d1")->placed_canaries.n, 2);
    says(f, "a1", true);
    struct fsm_result *r = promote(f, "d1");
    ck_assert_int_eq(r->err.code, -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(r->err.text, "Task group \"g\" has 1/2 healthy allocations"));
    says(f, "a2", true);
    ck_assert_int_eq(promote(f, "d1")->err.code, 0);
    ck_assert(group(f, "d1")->promoted);
    ck_assert_str_eq(get(f, "d1")->status_description, DESC_DEPLOY_RUNNING);
    ck_assert(!get_alloc(f, "a1")->deployment_status->canary);
    fx_free(f);
}
END_TEST

START_TEST(success_makes_the_version_stable)
{
    struct fx *f = fx_new();
    deploy(f, "d1", 1, false);
    /* a deployment keeps its job running, whatever becomes of its allocations */
    report(f, "n1", "a1", ALLOC_COMPLETE);
    ck_assert_str_eq(get_job(f, "web")->status, JOB_STATUS_RUNNING);
    ck_assert(!get_job(f, "web")->stable);
    set_status(f, "d1", DEPLOYMENT_SUCCESSFUL, NULL);
    ck_assert(get_job(f, "web")->stable);
    ck_assert_str_eq(get_job(f, "web")->status, JOB_STATUS_DEAD);
    /* an end stays one */
    ck_assert_int_eq(set_status(f, "d1", DEPLOYMENT_FAILED, NULL)->err.code, -ERR_CONFLICT);
    ck_assert_int_eq(promote(f, "d1")->err.code, -ERR_CONFLICT);
    ck_assert_int_eq(set_status(f, "nope", DEPLOYMENT_FAILED, NULL)->err.code, -ERR_NOT_FOUND);
    fx_free(f);
}
END_TEST

START_TEST(rolls_back_to_a_new_version)
{
    struct fx *f = fx_new();
    struct job *old = deploy(f, "d1", 1, false);
    struct fsm_result *r = set_status(f, "d1", DEPLOYMENT_FAILED, old);
    ck_assert_uint_eq(r->job->version, old->version + 1);
    ck_assert_uint_eq(get_job(f, "web")->version, old->version + 1);
    ck_assert_str_eq(get(f, "d1")->status_description, "because");
    fx_free(f);
}
END_TEST

/* The job has been changed by somebody: what the failed deployment would go back to does not
 * replace it. */
START_TEST(does_not_roll_back_another_version)
{
    struct fx *f = fx_new();
    struct job *old = deploy(f, "d1", 1, false);
    struct job *j = make_job(f, "web", 7);
    put_job(f, j, NULL);
    uint64_t version = get_job(f, "web")->version;
    ck_assert_uint_gt(version, old->version);
    set_status(f, "d1", DEPLOYMENT_FAILED, old);
    ck_assert_uint_eq(get_job(f, "web")->version, version);
    fx_free(f);
}
END_TEST

/* Nor does a version whose node pool was deleted meanwhile. */
START_TEST(does_not_roll_back_into_a_pool_that_is_gone)
{
    struct fx *f = fx_new();
    make_pools(f);
    struct job *old = deploy(f, "d1", 1, false);
    uint64_t version = get_job(f, "web")->version;
    old->node_pool = "gone";
    ck_assert_int_eq(set_status(f, "d1", DEPLOYMENT_FAILED, old)->err.code, 0);
    ck_assert_str_eq(get(f, "d1")->status, DEPLOYMENT_FAILED);
    ck_assert_uint_eq(get_job(f, "web")->version, version);
    fx_free(f);
}
END_TEST

START_TEST(says_why_it_does_not_roll_back)
{
    struct fx *f = fx_new();
    make_pools(f);
    put_pool(f, "old");
    struct job *j = make_job(f, "web", 1);
    j->node_pool = "old";
    put_job(f, j, NULL);
    struct intent_job_stable stable = {.namespace = "default", .job_id = "web", .stable = true};
    apply(f, &(struct intent){.job_stable = &stable});
    put_job(f, make_job(f, "web", 2), NULL);
    struct deployment d = {.id = "d1", .namespace = "default", .job_id = "web"};
    struct deployment_status_update u;
    for (int gone = 0; gone < 2; gone++) {
        ck_assert(gone == 0 || delete_pool(f, "old")->err.code == 0);
        const struct job *to = READ(f, struct job *, rollback_job(f, rt, &d, "failed", true, &u));
        ck_assert((to == NULL) == (gone == 1));
        ck_assert_str_eq(u.status_description,
                         gone == 0 ? "failed - rolling back to job version 0"
                                   : "failed - not rolling back to stable job version 0 as its node "
                                     "pool \"old\" was deleted");
    }
    fx_free(f);
}
END_TEST

START_TEST(health_by_hand)
{
    struct fx *f = fx_new();
    const char *a1 = "a1", *other = "nope";
    deploy(f, "d1", 1, false);
    struct intent_deployment_health h = {.deployment_id = "d1", .healthy = {&a1, 1}};
    struct intent in = {.deployment_health = &h};
    apply(f, &in);
    ck_assert_int_eq(group(f, "d1")->healthy_allocs, 1);
    h.healthy.v = &other;
    struct fsm_result *r = apply(f, &in);
    ck_assert_str_eq(r->err.text, "unknown alloc \"nope\"");
    fx_free(f);
}
END_TEST

START_TEST(only_what_is_over_is_reaped)
{
    struct fx *f = fx_new();
    const char *id = "d1";
    deploy(f, "d1", 1, false);
    struct intent_reap reap = {.deployments = {&id, 1}};
    apply(f, &(struct intent){.reap = &reap});
    ck_assert_ptr_nonnull(get(f, "d1"));
    set_status(f, "d1", DEPLOYMENT_FAILED, NULL);
    apply(f, &(struct intent){.reap = &reap});
    ck_assert_ptr_nonnull(get(f, "d1")); /* one of its allocations lives */
    report(f, "n1", "a1", ALLOC_COMPLETE);
    apply(f, &(struct intent){.reap = &reap});
    ck_assert_ptr_null(get(f, "d1"));
    fx_free(f);
}
END_TEST

/* Whoever registers a job of that name again finds none of the one that was. */
START_TEST(deployments_go_with_their_job)
{
    struct fx *f = fx_new();
    deploy(f, "d1", 1, false);
    struct job *j = get_job(f, "web");
    struct fsm_result *r = stop_job(f, "web", true, "e1");
    ck_assert_uint_eq(FSM_COUNT(r, DEPLOYMENTS, DELETED), 1);
    ck_assert_ptr_null(get(f, "d1"));
    report(f, "n1", "a1", ALLOC_RUNNING); /* of what is still there of it */
    put_job(f, make_job(f, "web", 2), NULL);
    ck_assert(get_job(f, "web")->create_index != j->create_index);
    /* a plan from before the purge */
    struct deployment *d = type_new(f, &type_deployment);
    *d = (struct deployment){.id = "d2",
                             .namespace = j->namespace,
                             .job_id = j->id,
                             .job_create_index = j->create_index,
                             .status = DEPLOYMENT_RUNNING};
    struct plan_result pr = {.job = j, .deployment = d};
    apply(f, &(struct intent){.plan_result = &pr});
    ck_assert_ptr_null(get(f, "d2"));
    fx_free(f);
}
END_TEST

TEST_SUITE("fsm-deploy", deployments_go_with_their_job,
           counters_follow_placements_and_health, promotion_needs_healthy_canaries,
           success_makes_the_version_stable, rolls_back_to_a_new_version,
           does_not_roll_back_another_version, does_not_roll_back_into_a_pool_that_is_gone,
           says_why_it_does_not_roll_back, health_by_hand, only_what_is_over_is_reaped)
