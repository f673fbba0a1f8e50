/* SPDX-License-Identifier: Apache-2.0
 *
 * Heartbeat timers: the rate rule, and who is missed when.
 */
#include <poll.h>

#include "tests/lib/test.h"

#include "common/mem.h"
#include "common/num.h"
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
missed(void *arg, const char *id)
{
    struct seen *s = arg;

    s->a += str_eq(id, "a");
    s->b += str_eq(id, "b");
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

TEST_SUITE("heartbeat", rate_rule, times_by_the_number_of_timers, silent_nodes_are_missed,
           a_server_that_stood_still_misses_nobody)
