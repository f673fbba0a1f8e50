/* SPDX-License-Identifier: Apache-2.0
 *
 * Heartbeat timers: the rate rule, and who is missed when.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"

#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/loop.h"
#include "server/leader/heartbeat.h"

/* V55: the base of the TTL. */
START_TEST(rate_rule)
{
    static const struct heartbeat_config c = {.min_ms = 10000, .per_second = 50};
    static const struct {
        size_t n;
        int64_t s;
    } t[] = {{0, 10}, {100, 10}, {500, 10}, {1000, 20}, {5000, 100}, {10000, 200}};

    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        ck_assert_int_eq(heartbeat_interval(&c, t[i].n), t[i].s * 1000);
}
END_TEST

struct seen {
    struct heartbeats *h;
    struct loop *loop;
    int a, b;
    bool both;
};

static void
missed(void *arg, const struct str_list *ids)
{
    struct seen *s = arg;

    s->a += str_list_has(ids, "a");
    s->b += str_list_has(ids, "b");
    s->both = s->a > 0 && s->b > 0;
}

static void
beat(void *arg)
{
    struct seen *s = arg;

    heartbeats_reset(s->h, "b");
    /* "a" was due before this beat of "b" was given a new deadline */
    ck_assert_int_eq(s->b, 0);
}

START_TEST(silent_nodes_are_missed)
{
    static const struct heartbeat_config c = {
        .min_ms = 40, .grace_ms = 40, .failover_ms = 20, .per_second = 0};
    struct seen s = {.loop = loop_new()};

    struct env env;
    env_of_loop(&env, s.loop);
    s.h = heartbeats_new(NULL, &env, &c, missed, &s);
    heartbeats_failover(s.h, "a");
    heartbeats_failover(s.h, "b");
    int64_t ttl = heartbeats_reset(s.h, "b");
    ck_assert_int_ge(ttl, 40 * NS_PER_MS);
    ck_assert_int_lt(ttl, 80 * NS_PER_MS);
    ck_assert_uint_eq(heartbeats_count(s.h), 2);
    timer_start(s.loop, 30, beat, &s);
    ck_assert(loop_run_until(s.loop, &s.both, 5000));
    ck_assert_int_eq(s.a, 1);
    ck_assert_int_eq(s.b, 1);
    ck_assert_uint_eq(heartbeats_count(s.h), 0);
    heartbeats_reset(s.h, "c");
    heartbeats_remove(s.h, "c");
    heartbeats_reset(s.h, "d");
    heartbeats_clear(s.h);
    talloc_free(s.h);
    loop_free(s.loop);
}
END_TEST

enum { STILL_MS = 1500 };

static void
stands_still(void *arg)
{
    struct seen *s = arg;

    loop_post(s->loop, beat, s); /* it came meanwhile, and is read when the loop turns again */
    poll(NULL, 0, STILL_MS);
}

/* A11: the client's time is without the grace, and by the timers that are there: who is down has none. */
START_TEST(times_by_the_number_of_timers)
{
    static const struct heartbeat_config c = {
        .min_ms = 10000, .grace_ms = 10000, .failover_ms = 300000, .per_second = 50};
    static const struct {
        size_t n;
        int64_t s;
    } t[] = {{10, 10}, {500, 10}, {1000, 20}, {5000, 100}, {10000, 200}, {5000, 100}, {10, 10}};
    struct seen s = {.loop = loop_new()};
    char id[32];

    struct env env;
    env_of_loop(&env, s.loop);
    s.h = heartbeats_new(NULL, &env, &c, missed, &s);
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        for (size_t n = heartbeats_count(s.h); n != t[i].n; n = heartbeats_count(s.h)) {
            snprintf(id, sizeof(id), "n%zu", n < t[i].n ? n : n - 1);
            if (n < t[i].n)
                heartbeats_failover(s.h, id);
            else
                heartbeats_remove(s.h, id);
        }
        int64_t least = INT64_MAX, most = 0;
        for (int k = 0; k < 200; k++) {
            int64_t ttl = heartbeats_reset(s.h, "n0");
            least = ttl < least ? ttl : least;
            most = ttl > most ? ttl : most;
        }
        ck_assert_uint_eq(heartbeats_count(s.h), t[i].n);
        ck_assert_int_ge(least, t[i].s * NS_PER_S);
        ck_assert_int_lt(most, 2 * t[i].s * NS_PER_S);
        ck_assert_int_gt(most, 3 * t[i].s * NS_PER_S / 2); /* all of the range, but for one chance in 2^200 */
    }
    mem_free(s.h);
    loop_free(s.loop);
}
END_TEST

/* Nobody was heard while the server stood still: who was due then has as long as before. */
START_TEST(a_server_that_stood_still_misses_nobody)
{
    static const struct heartbeat_config c = {
        .min_ms = 10000, .grace_ms = 500, .failover_ms = 300, .per_second = 0};
    struct seen s = {.loop = loop_new()};
    bool over = false;

    struct env env;
    env_of_loop(&env, s.loop);
    s.h = heartbeats_new(NULL, &env, &c, missed, &s);
    heartbeats_failover(s.h, "a");
    heartbeats_failover(s.h, "b");
    timer_start(s.loop, 10, stands_still, &s);
    loop_run_until(s.loop, &over, STILL_MS + 100);
    ck_assert_int_eq(s.a, 0);
    while (s.a == 0)
        loop_run_until(s.loop, &over, 10);
    ck_assert_int_eq(s.b, 0);
    talloc_free(s.h);
    loop_free(s.loop);
}
END_TEST

/* --- in virtual time --- */

enum { GRACE_MS = 1000 };

struct virtual {
    struct env env;
    struct heartbeats *h;
    int64_t now_ms, due_ms; /* of the one timer */
    env_fn *fn;
    void *fn_arg;
    char log[1024]; /* "1300 a b; ": who was missed when */
};

static int64_t
virtual_mono(void *arg)
{
    return ((struct virtual *)arg)->now_ms * NS_PER_MS;
}

static uint64_t
virtual_random(void *arg)
{
    (void)arg;
    return 0;
}

static struct timer *
virtual_timer(void *arg, int64_t delay_ms, env_fn *fn, void *x)
{
    struct virtual *v = arg;

    v->due_ms = v->now_ms + (delay_ms > 0 ? delay_ms : 0);
    v->fn = fn;
    v->fn_arg = x;
    return arg;
}

static void
virtual_timer_end(void *arg, struct timer *t)
{
    (void)arg;
    if (t != NULL)
        ((struct virtual *)t)->fn = NULL;
}

static void
virtual_missed(void *arg, const struct str_list *ids)
{
    struct virtual *v = arg;
    size_t n = strlen(v->log);

    n += (size_t)snprintf(v->log + n, sizeof(v->log) - n, "%lld", (long long)v->now_ms);
    for (size_t i = 0; i < ids->n; i++)
        n += (size_t)snprintf(v->log + n, sizeof(v->log) - n, " %s", ids->v[i]);
    n += (size_t)snprintf(v->log + n, sizeof(v->log) - n, "; ");
    ck_assert_uint_lt(n, sizeof(v->log));
}

static void
virtual_begin(struct virtual *v)
{
    static const struct heartbeat_config c = {
        .min_ms = 10000, .grace_ms = GRACE_MS, .failover_ms = 0, .per_second = 0};

    *v = (struct virtual){.env = {.mono_ns = virtual_mono,
                                  .random = virtual_random,
                                  .timer = virtual_timer,
                                  .timer_end = virtual_timer_end}};
    v->env.arg = v;
    v->h = heartbeats_new(NULL, &v->env, &c, virtual_missed, v);
}

/* Until then every timer fires when it is due. */
static void
until(struct virtual *v, int64_t ms)
{
    while (v->fn != NULL && v->due_ms <= ms) {
        env_fn *fn = v->fn;
        v->now_ms = v->due_ms;
        v->fn = NULL;
        fn(v->fn_arg);
    }
    v->now_ms = ms;
}

/* Its time is over then. */
static void
silent_from(struct virtual *v, const char *id, int64_t ms)
{
    until(v, ms);
    heartbeats_failover(v->h, id);
}

START_TEST(what_goes_together_is_missed_together)
{
    struct virtual v;

    virtual_begin(&v);
    silent_from(&v, "alone", 100);
    silent_from(&v, "a", 5000);
    silent_from(&v, "b", 5300);
    silent_from(&v, "c", 6200); /* while b is looked at again */
    silent_from(&v, "d", 9000);
    until(&v, 20000);
    ck_assert_str_eq(v.log, "1100 alone; 7200 a b c; 10000 d; ");
    mem_free(v.h);
}
END_TEST

/* Nobody waits for more than two seconds, however many follow. */
START_TEST(one_after_the_other_they_do_not_wait_for_ever)
{
    struct virtual v;
    static const char *const ids[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

    virtual_begin(&v);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        silent_from(&v, ids[i], 1000 + 900 * (int64_t)i);
    until(&v, 20000);
    ck_assert_str_eq(v.log, "4000 a b c; 6700 d e f; 8300 g h; ");
    mem_free(v.h);
}
END_TEST

/* A heartbeat takes the node out, whatever was about to happen to it. */
START_TEST(one_that_is_heard_is_not_missed_with_the_others)
{
    struct virtual v;

    virtual_begin(&v);
    silent_from(&v, "a", 1000);
    silent_from(&v, "b", 1500);
    silent_from(&v, "c", 1600);
    until(&v, 2100); /* a is over, and waits */
    ck_assert_str_eq(v.log, "");
    heartbeats_reset(v.h, "a");
    heartbeats_remove(v.h, "c");
    until(&v, 12000);
    ck_assert_str_eq(v.log, "2500 b; ");
    until(&v, 20000);
    ck_assert_str_eq(v.log, "2500 b; 14100 a; "); /* a TTL, a grace, a second look */
    mem_free(v.h);
}
END_TEST

TEST_SUITE("heartbeat", rate_rule, times_by_the_number_of_timers, silent_nodes_are_missed,
           a_server_that_stood_still_misses_nobody, what_goes_together_is_missed_together,
           one_after_the_other_they_do_not_wait_for_ever,
           one_that_is_heard_is_not_missed_with_the_others)
