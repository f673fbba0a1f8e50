/* SPDX-License-Identifier: Apache-2.0
 *
 * Deployments, evaluation after evaluation over the harness: behaviours 20, 21, 35, 52, 58 to 63.
 */
#include "tests/lib/test.h"

#include <string.h>

#include "common/duration.h"
#include "server/sched/reconcile.h"
#include "tests/server/sched/harness.h"

static const struct desired_updates *
updates(const struct sched_out *o)
{
    return map_get(o->annotations->desired_tg_updates, "web")->v;
}

static struct harness *
nodes(size_t n)
{
    struct harness *h = h_new();
    char name[16];

    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "n%zu", i + 1);
        h_node(h, name);
    }
    return h;
}

static struct job *
paced(struct harness *h, int64_t count, int64_t parallel, int64_t canary)
{
    struct job *j = h_job(h, "a", JOB_SERVICE, count);
    struct update_strategy *u = j->task_groups.v[0]->update;

    u->max_parallel = (struct opt_i64){true, parallel};
    u->canary = canary;
    h_register(h, j);
    h_eval(h, "a");
    h_all_healthy(h);
    h_eval(h, "a");
    return j;
}

static void
change(struct harness *h, struct job *j, const char *value)
{
    str_map_set(j, &j->task_groups.v[0]->tasks.v[0]->env, "A", value);
    h_register(h, j);
}

static size_t
of_version(struct harness *h, uint64_t version)
{
    size_t n = 0;

    for (size_t i = 0; i < h->allocs.n; i++)
        n += !alloc_terminal(h->allocs.v[i]) && h->allocs.v[i]->job->version == version;
    return n;
}

START_TEST(updates_roll_by_health)
{
    struct harness *h = nodes(3);
    struct job *j = paced(h, 5, 2, 0);

    ck_assert_str_eq(h_deployment(h, "a")->status_description, DESC_DEPLOY_DONE); /* 63 */
    ck_assert_ptr_null(h_eval(h, "a")->plan);                                    /* 58: no change, none */
    change(h, j, "2");
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(updates(o)->destructive_update, 2); /* 20, 52 */
    ck_assert_uint_eq(updates(o)->ignore, 3);
    ck_assert_str_eq(h_deployment(h, "a")->status, DEPLOYMENT_RUNNING);
    ck_assert_int_eq(h_deployment(h, "a")->task_groups.v[0].v->desired_total, 5);
    ck_assert_ptr_null(h_eval(h, "a")->plan); /* 61: none is healthy yet */
    h_all_healthy(h);
    h_eval(h, "a");
    ck_assert_uint_eq(of_version(h, 1), 4);
    /* 61: one that is unhealthy stops it */
    struct allocation *bad = NULL;
    for (size_t i = 0; i < h->allocs.n; i++)
        if (!alloc_terminal(h->allocs.v[i]) && h->allocs.v[i]->deployment_status == NULL)
            bad = h->allocs.v[i];
    h_healthy(h, bad, false);
    ck_assert_ptr_null(h_eval(h, "a")->plan);
    /* 58, 35: a newer version cancels it, a stop the next one */
    struct deployment *d = h_deployment(h, "a");
    change(h, j, "3");
    h_eval(h, "a");
    ck_assert_str_eq(d->status_description, DESC_DEPLOY_NEWER);
    d = h_deployment(h, "a");
    j->stop = true;
    h_register(h, j);
    h_eval(h, "a");
    ck_assert_str_eq(d->status_description, DESC_DEPLOY_STOPPED);
    h_check(h);
    h_free(h);
}
END_TEST

/* It is not placed again while its deployment goes on; when that has succeeded, somebody looks. */
START_TEST(what_failed_during_a_deployment_is_not_forgotten)
{
    struct harness *h = nodes(3);
    struct job *j = paced(h, 2, 2, 0);

    change(h, j, "2");
    h_eval(h, "a");
    h_all_healthy(h);
    h_fail(h, h_alloc(h, "a.web[0]"));
    struct sched_out *o = h_eval(h, "a");
    ck_assert_str_eq(h_deployment(h, "a")->status, DEPLOYMENT_SUCCESSFUL);
    ck_assert_uint_eq(h_live(h, "a"), 1);
    ck_assert(o->followups.n == 1 && o->followups.v[0]->wait_until <= h->now);
    h->now += 3600 * NS_PER_S;
    h_eval(h, "a");
    ck_assert_uint_eq(h_live(h, "a"), 2);
    ck_assert_uint_eq(h_eval(h, "a")->followups.n, 0);
    h_free(h);
}
END_TEST

START_TEST(canaries_wait_and_replace)
{
    struct harness *h = nodes(3);
    struct job *j = paced(h, 3, 1, 2);

    change(h, j, "2");
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(updates(o)->canary, 2); /* 21, 60 */
    ck_assert_uint_eq(updates(o)->destructive_update, 0);
    ck_assert_uint_eq(of_version(h, 0), 3);
    ck_assert_uint_eq(of_version(h, 1), 2);
    struct deployment *d = h_deployment(h, "a");
    ck_assert_str_eq(d->status_description, DESC_DEPLOY_PROMOTE);
    h_all_healthy(h);
    ck_assert_ptr_null(h_eval(h, "a")->plan);
    d->task_groups.v[0].v->promoted = true;
    for (int i = 0; i < 4; i++) {
        h_eval(h, "a");
        h_all_healthy(h);
    }
    ck_assert_uint_eq(of_version(h, 0), 0);
    ck_assert_uint_eq(of_version(h, 1), 3);
    ck_assert_str_eq(d->status, DEPLOYMENT_SUCCESSFUL);
    /* those of a version that was not promoted go with it */
    change(h, j, "3");
    h_eval(h, "a");
    ck_assert_uint_eq(of_version(h, 2), 2);
    change(h, j, "4");
    h_eval(h, "a");
    ck_assert_uint_eq(of_version(h, 2), 0);
    ck_assert_uint_eq(of_version(h, 3), 2);
    ck_assert_uint_eq(of_version(h, 1), 3);
    h_free(h);
}
END_TEST

/* Fewer are wanted, by a version that may yet fail. */
START_TEST(surplus_stays_until_the_promotion)
{
    for (int how = 0; how < 3; how++) { /* promoted, failed, failed and followed by another */
        struct harness *h = nodes(3);
        struct job *j = paced(h, 6, 1, 2);

        j->task_groups.v[0]->count.v = 4;
        change(h, j, "2");
        struct sched_out *o = h_eval(h, "a");
        ck_assert_uint_eq(updates(o)->stop, 0);
        ck_assert_uint_eq(updates(o)->canary, 2);
        ck_assert_uint_eq(of_version(h, 0), 6);
        struct deployment *d = h_deployment(h, "a");
        ck_assert_int_eq(d->task_groups.v[0].v->desired_total, 4);
        h_all_healthy(h);
        if (how == 0) {
            h_eval(h, "a");
            d->task_groups.v[0].v->promoted = true;
            h_eval(h, "a");
            ck_assert_uint_eq(h_live(h, "a"), 4);
            for (int i = 0; i < 4; i++) {
                h_eval(h, "a");
                h_all_healthy(h);
            }
            ck_assert_uint_eq(of_version(h, 0), 0);
            ck_assert_uint_eq(of_version(h, 1), 4);
            ck_assert_str_eq(d->status, DEPLOYMENT_SUCCESSFUL);
            h_free(h);
            continue;
        }
        d->status = DEPLOYMENT_FAILED;
        h_eval(h, "a");
        ck_assert_uint_eq(of_version(h, 0), 6);
        ck_assert_uint_eq(of_version(h, 1), 0);
        if (how == 2) {
            change(h, j, "3");
            h_eval(h, "a");
            ck_assert_uint_eq(of_version(h, 0), 6);
            ck_assert_uint_eq(of_version(h, 2), 2);
        } else {
            h_find(h, "n1")->status = NODE_DOWN; /* what is lost is placed again */
            h_eval(h, "a");
            ck_assert_uint_eq(h_live(h, "a"), 6);
        }
        h_free(h);
    }
    /* nothing is to be replaced: no canaries, and nobody waits */
    struct harness *h = nodes(3);
    struct job *j = paced(h, 6, 1, 2);
    j->task_groups.v[0]->count.v = 4;
    h_register(h, j);
    h_eval(h, "a");
    ck_assert_uint_eq(h_live(h, "a"), 4);
    h_free(h);
}
END_TEST

START_TEST(paused_and_failed_ones_place_nothing)
{
    for (int failed = 0; failed < 2; failed++) { /* 59 */
        struct harness *h = nodes(3);
        struct job *j = paced(h, 4, 1, 0);

        change(h, j, "2");
        h_eval(h, "a");
        h_all_healthy(h);
        h_deployment(h, "a")->status = failed ? DEPLOYMENT_FAILED : DEPLOYMENT_PAUSED;
        ck_assert_ptr_null(h_eval(h, "a")->plan);
        ck_assert_uint_eq(of_version(h, 1), 1);
        /* 62: what is lost is replaced all the same */
        h_find(h, "n1")->status = NODE_DOWN;
        h_eval(h, "a");
        ck_assert_uint_eq(h_live(h, "a"), 4);
        h_free(h);
    }
}
END_TEST

TEST_SUITE("rollout", updates_roll_by_health, what_failed_during_a_deployment_is_not_forgotten,
           canaries_wait_and_replace, surplus_stays_until_the_promotion,
           paused_and_failed_ones_place_nothing)
