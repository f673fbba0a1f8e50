/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations of which nobody hears, evaluation after evaluation: unknown, replaced, expired, held back, back
 * again. As on a server, an entry is a little younger than the evaluation that made it.
 */
#include "tests/lib/test.h"

#include "api/away.h"
#include "common/duration.h"
#include "common/uuid.h"
#include "tests/server/sched/harness.h"

#define AT_ONCE (3 * NS_PER_MS) /* from an evaluation to its entry */
#define HOUR (3600 * NS_PER_S)

/* A job of `count` on the node n1, which runs; n2 and n3 are there. */
static struct harness *
one(const char *type, int64_t count, const struct disconnect_strategy *d)
{
    struct harness *h = h_new();
    struct job *j = h_job(h, "a", type, count);

    h->entry_ns = AT_ONCE;
    j->task_groups.v[0]->disconnect = codec_clone(j, &type_disconnect_strategy, d);
    j->task_groups.v[0]->reschedule_policy = type_new(j, &type_reschedule_policy);
    *j->task_groups.v[0]->reschedule_policy = (struct reschedule_policy){
        .delay = {true, 5 * NS_PER_S}, .delay_function = "constant", .unlimited = {true, true}};
    h_node(h, "n1");
    h_register(h, j);
    h_eval(h, "a");
    h_all_running(h);
    h_node(h, "n2");
    h_node(h, "n3");
    return h;
}

static const struct disconnect_strategy hour = {
    .lost_after = {true, HOUR}, .replace = {true, true}, .reconcile = "best_score"};

static void
node_is(struct harness *h, const char *name, const char *status)
{
    h_find(h, name)->status = status;
}

/* The follow-up of that kind; NULL: there is none. */
static const struct evaluation *
later(const struct sched_out *o, const char *trigger)
{
    for (size_t i = 0; i < o->followups.n; i++)
        if (str_eq(o->followups.v[i]->triggered_by, trigger))
            return o->followups.v[i];
    return NULL;
}

/* The evaluation that was made for then runs then. */
static struct sched_out *
run_later(struct harness *h, const struct evaluation *ev)
{
    char id[UUID_TEXT];

    ck_assert_ptr_nonnull(ev);
    (void)str_copy(id, sizeof(id), ev->id);
    h->trigger = str_eq(ev->triggered_by, TRIGGER_MAX_DISCONNECT) ? TRIGGER_MAX_DISCONNECT
                                                                  : TRIGGER_ALLOC_RESCHEDULE;
    h->now = ev->wait_until;
    struct sched_out *o = h_eval_as(h, "a", mem_strdup(h, id));
    h->trigger = NULL;
    return o;
}

static size_t
with_status(const struct harness *h, const char *client_status)
{
    size_t n = 0;

    for (size_t i = 0; i < h->allocs.n; i++)
        n += str_eq(h->allocs.v[i]->client_status, client_status);
    return n;
}

START_TEST(a_job_that_was_held_back_is_placed)
{
    struct disconnect_strategy d = {.stop_on_client_after = {true, 90 * NS_PER_S}, .replace = {true, true}};
    struct harness *h = one(JOB_SERVICE, 2, &d);

    node_is(h, "n1", NODE_DOWN);
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(with_status(h, ALLOC_LOST), 2);
    ck_assert_uint_eq(h_live(h, "a"), 0);
    ck_assert_uint_eq(o->followups.n, 1);
    /* it comes 3 ms before the time that the entry says: another one comes in time */
    o = run_later(h, later(o, TRIGGER_ALLOC_RESCHEDULE));
    ck_assert_uint_eq(h_live(h, "a"), 0);
    o = run_later(h, later(o, TRIGGER_ALLOC_RESCHEDULE));
    ck_assert_uint_eq(h_live(h, "a"), 2);
    ck_assert_uint_eq(o->followups.n, 0);
    ck_assert_uint_eq(h_eval(h, "a")->followups.n, 0);
    h_check(h);
    h_free(h);
}
END_TEST

/* The evaluation that was to look again may be gone: a heartbeat cancels the evaluations of its
 * miss. */
START_TEST(whoever_holds_back_says_when_to_look_again)
{
    struct disconnect_strategy d = {.stop_on_client_after = {true, 90 * NS_PER_S}, .replace = {true, true}};
    struct harness *h = one(JOB_SERVICE, 1, &d);

    node_is(h, "n1", NODE_DOWN);
    h_eval(h, "a");
    node_is(h, "n1", NODE_READY);
    h->now += 10 * NS_PER_S;
    ck_assert_uint_eq(h_eval(h, "a")->followups.n, 0); /* the one there is will do */
    h->waiting.n = 0;
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(h_live(h, "a"), 0);
    run_later(h, later(o, TRIGGER_ALLOC_RESCHEDULE));
    ck_assert_uint_eq(h_live(h, "a"), 1);
    h_free(h);
}
END_TEST

START_TEST(what_has_expired_is_lost_in_time)
{
    for (int replaced = 0; replaced < 2; replaced++) {
        struct disconnect_strategy d = hour;
        d.replace.v = replaced;
        struct harness *h = one(JOB_SERVICE, 1, &d);
        struct allocation *a = h->allocs.v[0];

        node_is(h, "n1", NODE_DISCONNECTED);
        struct sched_out *o = h_eval(h, "a");
        ck_assert_str_eq(a->client_status, ALLOC_UNKNOWN);
        char id[UUID_TEXT];
        const struct evaluation *end = later(o, TRIGGER_MAX_DISCONNECT);
        ck_assert_ptr_nonnull(end);
        struct evaluation kept = *end;
        (void)str_copy(id, sizeof(id), end->id);
        kept.id = id;
        kept.triggered_by = TRIGGER_MAX_DISCONNECT;
        ck_assert(!replaced == (later(o, TRIGGER_ALLOC_RESCHEDULE) == NULL));
        if (replaced)
            run_later(h, later(o, TRIGGER_ALLOC_RESCHEDULE));
        ck_assert_uint_eq(h->allocs.n, replaced ? 2 : 1);
        h_all_running(h);
        a->client_status = ALLOC_UNKNOWN;
        o = run_later(h, &kept); /* 3 ms before the recorded time */
        ck_assert_str_eq(a->client_status, ALLOC_UNKNOWN);
        run_later(h, later(o, TRIGGER_MAX_DISCONNECT));
        ck_assert_str_eq(a->client_status, ALLOC_LOST);
        ck_assert_uint_eq(h_live(h, "a"), 1);
        ck_assert_uint_eq(h->allocs.n, 2);
        h_free(h);
    }
}
END_TEST

/* Nobody looks more often than it takes: an evaluation of another kind makes none. */
START_TEST(who_waits_makes_no_more_evaluations)
{
    struct harness *h = one(JOB_SERVICE, 1, &hour);

    node_is(h, "n1", NODE_DISCONNECTED);
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(o->followups.n, 2);
    h->now += NS_PER_S;
    ck_assert_uint_eq(h_eval(h, "a")->followups.n, 0);
    h->now += HOUR - 2 * NS_PER_S;
    ck_assert_uint_eq(h_eval(h, "a")->followups.n, 0);
    h_free(h);
}
END_TEST

/* Two nodes of one job away at once: each is replaced once, and the replacement's node goes as well. */
START_TEST(two_nodes_and_that_of_a_replacement)
{
    struct harness *h = one(JOB_SERVICE, 2, &hour);

    node_is(h, "n1", NODE_DISCONNECTED);
    node_is(h, "n3", NODE_INIT);
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(o->followups.n, 2); /* both in one evaluation of each kind */
    run_later(h, later(o, TRIGGER_ALLOC_RESCHEDULE));
    ck_assert_uint_eq(h->allocs.n, 4);
    for (size_t i = 2; i < 4; i++) {
        ck_assert_str_eq(h->allocs.v[i]->node_name, "n2");
        h->allocs.v[i]->client_status = ALLOC_RUNNING;
    }
    node_is(h, "n3", NODE_READY);
    node_is(h, "n2", NODE_DISCONNECTED);
    h->now += NS_PER_S;
    o = h_eval(h, "a");
    ck_assert_uint_eq(with_status(h, ALLOC_UNKNOWN), 4);
    run_later(h, later(o, TRIGGER_ALLOC_RESCHEDULE));
    ck_assert_uint_eq(h->allocs.n, 6); /* on n3, for those of n2 alone (S16) */
    for (size_t i = 4; i < 6; i++) {
        ck_assert_str_eq(h->allocs.v[i]->node_name, "n3");
        h->allocs.v[i]->client_status = ALLOC_RUNNING;
    }
    h->now += NS_PER_S;
    ck_assert_ptr_null(h_eval(h, "a")->plan);
    /* all come back: one of each name stays */
    node_is(h, "n1", NODE_READY);
    node_is(h, "n2", NODE_READY);
    for (size_t i = 0; i < 4; i++)
        h->allocs.v[i]->client_status = ALLOC_RUNNING;
    h_eval(h, "a");
    ck_assert_uint_eq(h_live(h, "a"), 2);
    ck_assert_uint_eq(h->allocs.n, 6);
    h_check(h);
    h_free(h);
}
END_TEST

/* The job changes while one is away: fewer, stopped, purged. Nothing is placed for what is gone. */
START_TEST(a_job_that_changes_meanwhile)
{
    for (int how = 0; how < 3; how++) {
        struct harness *h = one(JOB_SERVICE, 2, &hour);
        struct job *j = codec_clone(h, &type_job, h_latest(h, "a"));

        node_is(h, "n1", NODE_DISCONNECTED);
        h_eval(h, "a");
        ck_assert_uint_eq(with_status(h, ALLOC_UNKNOWN), 2);
        j->task_groups.v[0]->count.v = how == 0 ? 1 : 2;
        j->stop = how > 0;
        h_register(h, j);
        h->now += NS_PER_S;
        h_eval(h, "a");
        if (how == 2)
            h->jobs.n = 0;
        h->now += HOUR;
        h_eval(h, "a");
        node_is(h, "n1", NODE_READY);
        for (size_t i = 0; i < h->allocs.n; i++)
            if (str_eq(h->allocs.v[i]->client_status, ALLOC_UNKNOWN))
                h->allocs.v[i]->client_status = ALLOC_RUNNING;
        h_eval(h, "a");
        ck_assert_uint_eq(h_live(h, "a"), how == 0);
        h_free(h);
    }
}
END_TEST

/* Nothing had room for what was to replace it; then its client is back, and stops it as it was told. */
START_TEST(a_batch_that_was_lost_is_not_done)
{
    struct disconnect_strategy none = {0};
    struct harness *h = one(JOB_BATCH, 1, &none);
    struct task_state *s = type_new(h, &type_task_state);

    node_is(h, "n1", NODE_DOWN);
    node_is(h, "n2", NODE_DOWN);
    node_is(h, "n3", NODE_DOWN);
    h_eval(h, "a");
    struct allocation *a = h->allocs.v[0];
    ck_assert_str_eq(a->client_status, ALLOC_LOST);
    ck_assert_uint_eq(h_live(h, "a"), 0);
    s->state = "dead";
    map_put(h, a->task_states, "t")->v = s;
    a->client_status = ALLOC_COMPLETE;
    node_is(h, "n2", NODE_READY);
    h_eval(h, "a");
    ck_assert_uint_eq(h_live(h, "a"), 1);
    h_free(h);
}
END_TEST

TEST_SUITE("away", a_batch_that_was_lost_is_not_done, a_job_that_was_held_back_is_placed,
           whoever_holds_back_says_when_to_look_again, what_has_expired_is_lost_in_time,
           who_waits_makes_no_more_evaluations, two_nodes_and_that_of_a_replacement,
           a_job_that_changes_meanwhile)
