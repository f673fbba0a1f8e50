/* SPDX-License-Identifier: Apache-2.0
 *
 * Broker and blocked evaluations: traces, and a random walk that holds the invariants.
 */
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

#include "api/terms.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/num.h"
#include "server/leader/blocked.h"
#include "server/leader/broker.h"
#include "server/sched/rng.h"

static struct evaluation
ev(const char *id, const char *job, int64_t priority, uint64_t index)
{
    return (struct evaluation){.id = id,
                               .namespace = NS_DEFAULT,
                               .job_id = job,
                               .priority = priority,
                               .type = JOB_SERVICE,
                               .status = EVAL_PENDING,
                               .create_index = index,
                               .modify_index = index};
}

static void
put(struct broker *b, struct evaluation e, int64_t now)
{
    broker_enqueue(b, &e, now, 0);
}

static const char *
next(struct broker *b, int64_t now, uint64_t *token)
{
    const struct evaluation *e = broker_dequeue(b, now, token);

    return e ? e->id : "";
}

START_TEST(order_of_ready)
{
    struct broker *b = broker_new(NULL);
    uint64_t t;

    put(b, ev("low", "a", 10, 1), 0);
    put(b, ev("late", "b", 50, 3), 0);
    put(b, ev("early", "c", 50, 2), 0);
    ck_assert_str_eq(next(b, 0, &t), "early");
    ck_assert_str_eq(next(b, 0, &t), "late");
    ck_assert_str_eq(next(b, 0, &t), "low");
    ck_assert_str_eq(next(b, 0, &t), "");
    talloc_free(b);
}
END_TEST

START_TEST(one_per_job)
{
    struct broker *b = broker_new(NULL);
    uint64_t t, t2;

    put(b, ev("e1", "a", 50, 1), 0);
    put(b, ev("e2", "a", 50, 2), 0);
    put(b, ev("e3", "a", 50, 3), 0);
    put(b, ev("e4", "a", 50, 4), 0);
    struct evaluation other = ev("x1", "a", 50, 5);
    other.namespace = "else";
    put(b, other, 0);
    ck_assert_str_eq(next(b, 0, &t), "e1");
    ck_assert_str_eq(next(b, 0, &t2), "x1");
    ck_assert_str_eq(next(b, 0, &t2), "");
    ck_assert(broker_ack(b, "e1", t, 0, 0));
    /* the newest sees everything; the others are cancelled */
    ck_assert_str_eq(next(b, 0, &t), "e4");
    void *ctx = mem_ctx("t");
    size_t n = 0;
    while (broker_take_cancelable(b, ctx) != NULL)
        n++;
    ck_assert_uint_eq(n, 2);
    ck_assert(broker_ack(b, "e4", t, 0, 0));
    ck_assert_uint_eq(broker_stats(b).ready + broker_stats(b).pending, 0);
    talloc_free(ctx);
    talloc_free(b);
}
END_TEST

START_TEST(tokens)
{
    struct broker *b = broker_new(NULL);
    uint64_t t, t2;

    put(b, ev("e1", "a", 50, 1), 0);
    put(b, ev("e1", "a", 50, 1), 0);
    next(b, 0, &t);
    ck_assert(!broker_ack(b, "e1", t + 1, 0, 0));
    ck_assert(!broker_ack(b, "e2", t, 0, 0));
    ck_assert(!broker_nack(b, "e1", t + 1, 0));
    ck_assert(broker_nack(b, "e1", t, 0));
    ck_assert(!broker_ack(b, "e1", t, 0, 0));
    ck_assert_str_eq(next(b, 999, &t2), "");
    broker_tick(b, 1000);
    ck_assert_str_eq(next(b, 1000, &t2), "e1");
    ck_assert_uint_ne(t, t2);
    ck_assert(broker_ack(b, "e1", t2, 1000, 0));
    ck_assert_str_eq(next(b, 1000, &t2), "");
    talloc_free(b);
}
END_TEST

/* V58: 1 s, 20 s, then the failed list at the third delivery. */
START_TEST(delivery_limit)
{
    struct broker *b = broker_new(NULL);
    void *ctx = mem_ctx("t");
    uint64_t t;

    put(b, ev("e1", "a", 50, 1), 0);
    put(b, ev("e2", "a", 50, 2), 0);
    ck_assert_str_eq(next(b, 0, &t), "e1");
    broker_nack(b, "e1", t, 0);
    ck_assert_int_eq(broker_next_ms(b), 1000);
    broker_tick(b, 1000);
    ck_assert_str_eq(next(b, 1000, &t), "e1");
    broker_nack(b, "e1", t, 1000);
    ck_assert_int_eq(broker_next_ms(b), 21000);
    broker_tick(b, 21000);
    ck_assert_str_eq(next(b, 21000, &t), "e1");
    /* nobody answers: the timer nacks */
    broker_tick(b, 21000 + BROKER_NACK_MS - 1);
    ck_assert_uint_eq(broker_stats(b).failed, 0);
    broker_tick(b, 21000 + BROKER_NACK_MS);
    ck_assert_uint_eq(broker_stats(b).failed, 1);
    ck_assert_str_eq(broker_take_failed(b, ctx)->id, "e1");
    /* the job goes on */
    ck_assert_str_eq(next(b, 90000, &t), "e2");
    talloc_free(ctx);
    talloc_free(b);
}
END_TEST

START_TEST(touch_extends)
{
    struct broker *b = broker_new(NULL);
    uint64_t t, t2;

    put(b, ev("e1", "a", 50, 1), 0);
    next(b, 0, &t);
    ck_assert(broker_touch(b, "e1", t, 50000));
    broker_tick(b, BROKER_NACK_MS);
    ck_assert(broker_ack(b, "e1", t, BROKER_NACK_MS, 0));
    ck_assert_str_eq(next(b, 0, &t2), "");
    talloc_free(b);
}
END_TEST

/* The workers stood still as well, so their time does not run. */
START_TEST(a_server_that_stood_still_takes_no_work_away)
{
    struct broker *b = broker_new(NULL);
    uint64_t t;

    put(b, ev("e1", "a", 50, 1), 0);
    next(b, 0, &t);
    broker_tick(b, 30000);
    broker_tick(b, 90000);
    ck_assert_int_eq(broker_next_ms(b), BROKER_NACK_MS + 60000);
    ck_assert(broker_ack(b, "e1", t, 90001, 0));
    talloc_free(b);
}
END_TEST

/* The log has an evaluation's plan: nobody else gets it, however long that takes. */
START_TEST(what_waits_for_the_log_is_held)
{
    struct broker *b = broker_new(NULL);
    uint64_t t;

    put(b, ev("e1", "a", 50, 1), 0);
    next(b, 0, &t);
    ck_assert(!broker_hold(b, "e1", t + 1));
    ck_assert(broker_hold(b, "e1", t));
    ck_assert_int_eq(broker_next_ms(b), INT64_MAX);
    broker_tick(b, 100 * BROKER_NACK_MS);
    ck_assert(broker_touch(b, "e1", t, 100 * BROKER_NACK_MS));
    ck_assert_int_eq(broker_next_ms(b), 101 * BROKER_NACK_MS);
    broker_tick(b, 101 * BROKER_NACK_MS);
    ck_assert(!broker_hold(b, "e1", t));
    talloc_free(b);
}
END_TEST

START_TEST(waits)
{
    struct broker *b = broker_new(NULL);
    struct evaluation e = ev("later", "a", 50, 1), f = ev("wait", "b", 50, 2);
    uint64_t t;

    e.wait_until = 1000 * NS_PER_S + 500 * NS_PER_MS;
    broker_enqueue(b, &e, 7000, 1000 * NS_PER_S);
    f.wait = 200 * NS_PER_MS;
    broker_enqueue(b, &f, 7000, 1000 * NS_PER_S);
    ck_assert_str_eq(next(b, 7000, &t), "");
    ck_assert_int_eq(broker_next_ms(b), 7200);
    broker_tick(b, 7200);
    ck_assert_str_eq(next(b, 7200, &t), "wait");
    broker_tick(b, 7500);
    ck_assert_str_eq(next(b, 7500, &t), "later");
    /* one that is due already does not wait */
    struct evaluation g = ev("past", "c", 50, 3);
    g.wait_until = 999 * NS_PER_S;
    broker_enqueue(b, &g, 7500, 1000 * NS_PER_S);
    ck_assert_str_eq(next(b, 7500, &t), "past");
    talloc_free(b);
}
END_TEST

/* The wall clock is set: forward, and what waits for its time comes; back, and that changes nothing. */
START_TEST(wall_clock_is_set)
{
    struct broker *b = broker_new(NULL);
    struct evaluation e = ev("later", "a", 50, 1), f = ev("wait", "b", 50, 2);
    uint64_t t;

    e.wait_until = 1500 * NS_PER_S;
    f.wait = 600 * NS_PER_S;
    broker_clock(b, 7000, 1000 * NS_PER_S);
    broker_enqueue(b, &e, 7000, 1000 * NS_PER_S);
    broker_enqueue(b, &f, 7000, 1000 * NS_PER_S);
    ck_assert_int_eq(broker_next_ms(b), 507000);
    broker_clock(b, 8000, 1001 * NS_PER_S);
    broker_clock(b, 9000, 400 * NS_PER_S);
    ck_assert_int_eq(broker_next_ms(b), 507000);
    broker_clock(b, 9000, 1402 * NS_PER_S);
    ck_assert_int_eq(broker_next_ms(b), 107001);
    broker_clock(b, 10000, 1503 * NS_PER_S);
    broker_tick(b, 10000);
    ck_assert_str_eq(next(b, 10000, &t), "later");
    ck_assert(broker_ack(b, "later", t, 10000, 0));
    ck_assert_int_eq(broker_next_ms(b), 607000);
    talloc_free(b);
}
END_TEST

START_TEST(requeue_while_out)
{
    struct broker *b = broker_new(NULL);
    uint64_t t;

    put(b, ev("e1", "a", 50, 1), 0);
    next(b, 0, &t);
    put(b, ev("e1", "a", 50, 9), 0);
    broker_ack(b, "e1", t, 0, 0);
    ck_assert_str_eq(next(b, 0, &t), "e1");
    talloc_free(b);
}
END_TEST

START_TEST(paused)
{
    struct broker *b = broker_new(NULL);
    uint64_t t;

    broker_pause(b, true);
    put(b, ev("e1", "a", 50, 1), 0);
    ck_assert_str_eq(next(b, 0, &t), "");
    broker_pause(b, false);
    ck_assert_str_eq(next(b, 0, &t), "e1");
    talloc_free(b);
}
END_TEST

enum { WALK_EVALS = 400, WALK_JOBS = 9 };

struct walk_eval {
    char id[16], job[8];
    uint64_t token;
    bool out, done;
};

static struct walk_eval *
walk_find(struct walk_eval *v, const char *id)
{
    int64_t i = -1;

    ck_assert_int_eq(num_parse_i64(id + 1, &i), 0);
    return &v[i];
}

/* Everything that goes in comes out once, and a job is never worked on twice at a time. */
START_TEST(random_walk)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct broker *b = broker_new(NULL);
        struct rng r = rng_seed(seed, 7);
        struct walk_eval v[WALK_EVALS] = {0};
        void *ctx = mem_ctx("t");
        size_t made = 0;
        int64_t now = 0;
        for (int step = 0; step < 4000; step++) {
            now += (int64_t)rng_below(&r, 2000);
            broker_tick(b, now);
            if (made < WALK_EVALS && rng_below(&r, 3) == 0) {
                struct walk_eval *w = &v[made];
                snprintf(w->id, sizeof(w->id), "e%zu", made);
                snprintf(w->job, sizeof(w->job), "j%d", (int)rng_below(&r, WALK_JOBS));
                made++;
                put(b, ev(w->id, w->job, (int64_t)rng_below(&r, 3) * 10, made), now);
            }
            uint64_t t;
            const struct evaluation *e = broker_dequeue(b, now, &t);
            if (e != NULL) {
                struct walk_eval *w = walk_find(v, e->id);
                for (size_t i = 0; i < made; i++)
                    ck_assert(!v[i].out || strcmp(v[i].job, w->job) != 0 || &v[i] == w);
                ck_assert(!w->done);
                w->out = true;
                w->token = t;
            }
            for (size_t i = 0; i < made; i++) {
                if (!v[i].out || rng_below(&r, 4) != 0)
                    continue;
                bool ack = rng_below(&r, 4) != 0;
                v[i].out = false;
                if (ack && broker_ack(b, v[i].id, v[i].token, now, 0))
                    v[i].done = true;
                else if (!ack)
                    broker_nack(b, v[i].id, v[i].token, now);
            }
            for (struct evaluation *c; (c = broker_take_cancelable(b, ctx)) != NULL;)
                walk_find(v, c->id)->done = true;
            for (struct evaluation *c; (c = broker_take_failed(b, ctx)) != NULL;)
                walk_find(v, c->id)->done = true;
        }
        for (int step = 0; step < 2000; step++) {
            uint64_t t;
            now += 70000;
            broker_tick(b, now);
            for (const struct evaluation *e; (e = broker_dequeue(b, now, &t)) != NULL;) {
                struct walk_eval *w = walk_find(v, e->id);
                ck_assert(broker_ack(b, w->id, t, now, 0));
                w->done = true;
            }
            for (struct evaluation *c; (c = broker_take_cancelable(b, ctx)) != NULL;)
                walk_find(v, c->id)->done = true;
            for (struct evaluation *c; (c = broker_take_failed(b, ctx)) != NULL;)
                walk_find(v, c->id)->done = true;
        }
        for (size_t i = 0; i < made; i++)
            ck_assert_msg(v[i].done, "seed %llu: %s was lost", (unsigned long long)seed, v[i].id);
        struct broker_stats st = broker_stats(b);
        ck_assert_uint_eq(st.ready + st.unacked + st.pending + st.waiting + st.failed, 0);
        talloc_free(ctx);
        talloc_free(b);
    }
}
END_TEST

/* --- blocked --- */

static struct evaluation
blocked_ev(void *ctx, const char *id, const char *job, uint64_t snapshot, const char *ok_class)
{
    struct evaluation e = ev(id, job, 50, 1);

    e.status = EVAL_BLOCKED;
    e.snapshot_index = snapshot;
    map_put(ctx, e.class_eligibility, "v1:bad")->v = false;
    if (ok_class != NULL)
        map_put(ctx, e.class_eligibility, ok_class)->v = true;
    return e;
}

static const char *
released(struct blocked *b, void *ctx)
{
    struct evaluation *e = blocked_take_released(b, ctx);

    return e ? e->id : "";
}

START_TEST(blocked_by_class)
{
    void *ctx = mem_ctx("t");
    struct blocked *b = blocked_new(ctx);
    struct evaluation e = blocked_ev(ctx, "e1", "a", 100, "v1:good");

    blocked_add(b, &e, 0);
    blocked_capacity(b, "v1:bad", 101);
    ck_assert_str_eq(released(b, ctx), "");
    blocked_capacity(b, "v1:good", 102);
    ck_assert_str_eq(released(b, ctx), "e1");
    /* a class it never saw may fit */
    e = blocked_ev(ctx, "e2", "a", 110, NULL);
    blocked_add(b, &e, 0);
    blocked_capacity(b, "v1:new", 111);
    ck_assert_str_eq(released(b, ctx), "e2");
    e = blocked_ev(ctx, "e3", "a", 120, NULL);
    e.escaped_computed_class = true;
    blocked_add(b, &e, 0);
    blocked_capacity(b, "v1:bad", 121);
    ck_assert_str_eq(released(b, ctx), "e3");
    ck_assert_uint_eq(blocked_count(b), 0);
    talloc_free(ctx);
}
END_TEST

START_TEST(blocked_by_quota)
{
    void *ctx = mem_ctx("t");
    struct blocked *b = blocked_new(ctx);
    struct evaluation e = blocked_ev(ctx, "e1", "a", 100, NULL);

    e.quota_limit_reached = "q";
    e.class_eligibility.n = 0;
    blocked_add(b, &e, 0);
    blocked_capacity(b, "v1:new", 101); /* nodes do not help */
    blocked_quota(b, "other", 102);
    ck_assert_str_eq(released(b, ctx), "");
    blocked_quota(b, "q", 103);
    ck_assert_str_eq(released(b, ctx), "e1");
    e = blocked_ev(ctx, "e2", "a", 102, NULL); /* the room came behind its snapshot */
    e.quota_limit_reached = "q";
    blocked_add(b, &e, 0);
    ck_assert_str_eq(released(b, ctx), "e2");
    e = blocked_ev(ctx, "e3", "a", 110, "v1:good"); /* another group waits for a node */
    e.quota_limit_reached = "q";
    blocked_add(b, &e, 0);
    blocked_capacity(b, "v1:good", 111);
    ck_assert_str_eq(released(b, ctx), "e3");
    e = blocked_ev(ctx, "e4", "a", 120, "v1:good");
    blocked_add(b, &e, 0);
    blocked_quota(b, "q", 121); /* it is in no quota's way */
    ck_assert_str_eq(released(b, ctx), "");
    talloc_free(ctx);
}
END_TEST

START_TEST(no_lost_wake_up)
{
    void *ctx = mem_ctx("t");
    struct blocked *b = blocked_new(ctx);
    struct evaluation e = blocked_ev(ctx, "e1", "a", 100, "v1:good");

    /* capacity came after its snapshot and before it was blocked */
    blocked_capacity(b, "v1:good", 105);
    blocked_add(b, &e, 0);
    ck_assert_str_eq(released(b, ctx), "e1");
    e = blocked_ev(ctx, "e2", "a", 105, "v1:good");
    blocked_add(b, &e, 0);
    ck_assert_str_eq(released(b, ctx), "");
    ck_assert_uint_eq(blocked_count(b), 1);
    talloc_free(ctx);
}
END_TEST

START_TEST(one_blocked_per_job)
{
    void *ctx = mem_ctx("t");
    struct blocked *b = blocked_new(ctx);
    struct evaluation old = blocked_ev(ctx, "old", "a", 100, NULL);
    struct evaluation new = blocked_ev(ctx, "new", "a", 200, NULL);

    blocked_add(b, &new, 0);
    blocked_add(b, &old, 0);
    ck_assert_str_eq(blocked_take_duplicate(b, ctx)->id, "old");
    ck_assert_uint_eq(blocked_count(b), 1);
    blocked_untrack(b, NS_DEFAULT, "a");
    ck_assert_uint_eq(blocked_count(b), 0);
    blocked_add(b, &old, 0);
    blocked_add(b, &new, 0);
    ck_assert_str_eq(blocked_take_duplicate(b, ctx)->id, "old");
    talloc_free(ctx);
}
END_TEST

/* The evaluations of one job go: what is ready, waits behind it, is delayed or out, and in any
 * order. */
START_TEST(what_is_deleted_is_forgotten)
{
    void *ctx = mem_ctx("t");
    uint64_t t;
    for (int first = 0; first < 3; first++) {
        static const char *const ids[] = {"e1", "e2", "e3"};
        struct broker *b = broker_new(ctx);
        struct evaluation late = ev("later", "b", 50, 9);
        late.wait = 5 * NS_PER_S;
        put(b, late, 0);
        for (size_t i = 0; i < 3; i++)
            put(b, ev(ids[i], "a", 50, i + 1), 0);
        broker_forget(b, "nobodys");
        broker_forget(b, "later");
        ck_assert(broker_next_ms(b) == INT64_MAX);
        for (int i = 0; i < 3; i++)
            broker_forget(b, ids[(first + i) % 3]);
        ck_assert_str_eq(next(b, 10000, &t), "");
        struct broker_stats s = broker_stats(b);
        ck_assert_uint_eq(s.ready + s.pending + s.waiting + s.unacked, 0);
        /* the holder keeps it, and its job goes on after that */
        put(b, ev("e1", "a", 50, 1), 0);
        ck_assert_str_eq(next(b, 0, &t), "e1");
        put(b, ev("e1", "a", 50, 2), 0);
        broker_forget(b, "e1");
        put(b, ev("e4", "a", 50, 4), 0);
        ck_assert(broker_ack(b, "e1", t, 0, 0));
        ck_assert_str_eq(next(b, 0, &t), "e4");
        ck_assert(broker_ack(b, "e4", t, 0, 0));
        ck_assert_str_eq(next(b, 0, &t), "");
    }
    struct blocked *bl = blocked_new(ctx);
    struct evaluation e = blocked_ev(ctx, "e1", "a", 100, NULL);
    e.triggered_by = TRIGGER_MAX_PLANS;
    blocked_add(bl, &e, 0);
    struct evaluation other = blocked_ev(ctx, "e2", "a", 100, NULL);
    blocked_forget(bl, &other);
    ck_assert_uint_eq(blocked_count(bl), 1);
    blocked_forget(bl, &e);
    ck_assert_uint_eq(blocked_count(bl), 0);
    ck_assert(blocked_next_ms(bl) == INT64_MAX);
    talloc_free(ctx);
}
END_TEST

START_TEST(losers_retry_by_time)
{
    void *ctx = mem_ctx("t");
    struct blocked *b = blocked_new(ctx);
    struct evaluation e = blocked_ev(ctx, "e1", "a", 100, NULL);

    ck_assert(blocked_next_ms(b) == INT64_MAX);
    e.triggered_by = TRIGGER_MAX_PLANS;
    blocked_add(b, &e, 1000);
    ck_assert_int_eq(blocked_next_ms(b), 1000 + BLOCKED_RETRY_MS);
    blocked_tick(b, 1000 + BLOCKED_RETRY_MS);
    ck_assert_str_eq(released(b, ctx), "e1");
    ck_assert(blocked_next_ms(b) == INT64_MAX);
    talloc_free(ctx);
}
END_TEST

TEST_SUITE("broker", order_of_ready, one_per_job, tokens, delivery_limit, touch_extends,
           a_server_that_stood_still_takes_no_work_away, what_waits_for_the_log_is_held, waits,
           wall_clock_is_set, requeue_while_out, paused, random_walk, blocked_by_class,
           blocked_by_quota, no_lost_wake_up, one_blocked_per_job, what_is_deleted_is_forgotten,
           losers_retry_by_time)
