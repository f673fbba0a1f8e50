/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is there, in a world of virtual time (world.h). PADDOCK_SEED=n repeats one of the random worlds, of
 * which check-long (PADDOCK_LONG=1) tries 10,000.
 */
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "tests/lib/test.h"
#include "tests/server/gossip/world.h"

enum { SEEDS = 300, SEEDS_LONG = 10000 };

/* How often somebody said that another one failed; not of `except`. */
static unsigned
verdicts(const struct world *w, size_t except)
{
    unsigned n = 0;
    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < w->n; k++)
            n += k != except && w->v[i].swim != NULL ? w->v[i].failed_n[k] : 0;
    return n;
}

/* A member of a cluster of n is killed: when the last of the others knows. */
static int64_t
time_to_fail(uint64_t seed, size_t n, unsigned loss)
{
    struct world *w = world_joined(seed, n);
    w->loss = loss;
    world_run(w, 3000 + (int64_t)world_random(w, 2000));
    int64_t at = w->t, last = 0;
    w->v[1].dead = true;
    for (size_t i = 0; i < n; i++)
        ck_assert(i == 1 || world_until(w, i, 1, MEMBER_FAILED, 60000));
    for (size_t i = 0; i < n; i++)
        if (i != 1 && w->v[i].failed_at[1] - at > last)
            last = w->v[i].failed_at[1] - at;
    world_free(w);
    return last;
}

START_TEST(who_is_killed_has_failed_soon)
{
    static const size_t sizes[] = {3, 5, 7, 16};
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        int64_t worst = 0, sum = 0;
        for (uint64_t seed = 1; seed <= 100; seed++) {
            int64_t ms = time_to_fail(seed, sizes[k], 0);
            worst = ms > worst ? ms : worst;
            sum += ms;
        }
        printf("# %zu members: failed after %lld ms, at worst %lld\n", sizes[k], (long long)sum / 100,
               (long long)worst);
        fflush(stdout);
        ck_assert_int_le(worst, 5000);
    }
}
END_TEST

/* Five members that have nothing to tell wake each other seldom. */
START_TEST(idle_members_wake_seldom)
{
    enum { SECONDS = 300, N = 5 };
    uint64_t sum = 0, sent = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world *w = world_joined(seed, N);
        w->delay_min = 1;
        w->delay_max = 2;
        world_run(w, 60000);
        uint64_t before = 0;
        for (size_t i = 0; i < N; i++)
            before += w->v[i].woken;
        uint64_t sent_before = w->sent;
        world_run(w, SECONDS * 1000);
        for (size_t i = 0; i < N; i++)
            sum += w->v[i].woken;
        sum -= before;
        sent += w->sent - sent_before;
        world_free(w);
    }
    double rate = (double)sum / (20 * N * SECONDS);
    printf("# an idle member of %d wakes %.2f times a second, and sends %.2f packets\n", N, rate,
           (double)sent / (20 * N * SECONDS));
    fflush(stdout);
    ck_assert(rate < 2.5);
}
END_TEST

START_TEST(losses_delay_a_verdict)
{
    for (uint64_t seed = 1; seed <= 30; seed++)
        ck_assert_int_le(time_to_fail(seed, 5, 10), 15000);
}
END_TEST

/* One member gets the processor for moments only. */
static void
starve(struct world *w, size_t i, int64_t ms)
{
    for (int64_t end = w->t + ms; w->t < end;) {
        w->v[i].frozen = true;
        world_run(w, 100 + (int64_t)world_random(w, 3000));
        w->v[i].frozen = false;
        world_run(w, 1 + (int64_t)world_random(w, 50));
    }
}

START_TEST(one_that_is_starved_condemns_nobody)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        size_t n = seed % 2 ? 3 : 5;
        struct world *w = world_joined(seed, n);
        w->delay_max = 5;
        w->loss = seed % 4 == 0 ? 2 : 0;
        starve(w, 0, 30000);
        world_run(w, 10000);
        ck_assert_msg(verdicts(w, 0) == 0, "seed %llu: %u wrong verdicts", (unsigned long long)seed,
                      verdicts(w, 0));
        ck_assert(world_agrees(w));
        ck_assert_uint_gt(swim_figures(w->v[0].swim)->stalls, 0);
        world_free(w);
    }
}
END_TEST

START_TEST(one_that_stands_still_has_failed_and_comes_back)
{
    int64_t worst = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        size_t n = seed % 2 ? 3 : 5;
        struct world *w = world_joined(seed, n);
        int64_t at = w->t;
        w->v[0].frozen = true;
        world_run(w, 30000);
        for (size_t i = 1; i < n; i++) {
            ck_assert_int_ge(w->v[i].failed_at[0], 0);
            worst = w->v[i].failed_at[0] - at > worst ? w->v[i].failed_at[0] - at : worst;
        }
        w->v[0].frozen = false;
        world_run(w, 5000);
        ck_assert_uint_eq(verdicts(w, 0), 0);
        ck_assert(world_agrees(w));
        world_free(w);
    }
    printf("# one that stands still has failed after %lld ms at worst\n", (long long)worst);
    ck_assert_int_le(worst, 15000);
}
END_TEST

START_TEST(clocks_that_jump_condemn_nobody)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct world *w = world_joined(seed, 5);
        for (int i = 0; i < 20; i++) {
            struct host *x = &w->v[world_random(w, 5)];
            x->ahead += (int64_t)world_random(w, 2 * 3600000) - 3600000;
            world_run(w, 500 + (int64_t)world_random(w, 1000));
        }
        world_run(w, 3000);
        ck_assert_uint_eq(verdicts(w, NODES_MAX), 0);
        ck_assert(world_agrees(w));
        world_free(w);
    }
}
END_TEST

START_TEST(halves_that_are_cut_apart_come_together)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct world *w = world_joined(seed, 5);
        for (size_t i = 0; i < 5; i++)
            for (size_t k = 0; k < 5; k++)
                w->v[i].cut[k] = (i < 2) != (k < 2);
        world_run(w, 30000);
        for (size_t i = 0; i < 5; i++)
            for (size_t k = 0; k < 5; k++)
                ck_assert_int_eq(world_state(w, i, k),
                                 (i < 2) == (k < 2) ? MEMBER_ALIVE : MEMBER_FAILED);
        for (size_t i = 0; i < 5; i++)
            for (size_t k = 0; k < 5; k++)
                w->v[i].cut[k] = false;
        world_run(w, 15000);
        ck_assert(world_agrees(w));
        world_free(w);
    }
}
END_TEST

/* A link between two is cut in one direction or both: the others know better. */
START_TEST(a_cut_link_is_gone_around)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct world *w = world_joined(seed, 5);
        w->v[0].cut[1] = true;
        w->v[1].cut[0] = seed % 2;
        world_run(w, 60000);
        ck_assert_uint_eq(verdicts(w, NODES_MAX), 0);
        world_free(w);
    }
}
END_TEST

START_TEST(who_leaves_has_not_failed)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct world *w = world_joined(seed, 5);
        world_leave(w, 2);
        world_run(w, 2000);
        w->v[2].dead = true;
        for (size_t i = 0; i < 5; i++)
            ck_assert(i == 2 || world_state(w, i, 2) == MEMBER_LEFT);
        world_run(w, 20000);
        ck_assert_uint_eq(verdicts(w, NODES_MAX), 0);
        world_start(w, 2); /* and comes back */
        world_join(w, 2, 4);
        world_run(w, 3000);
        ck_assert(world_agrees(w));
        ck_assert_uint_eq(w->v[0].joined_n[2], 2);
        world_free(w);
    }
}
END_TEST

/* Half of the members do not hear the farewell: to them it has failed, until a link is whole again. Nobody
 * hears it: it has failed. */
START_TEST(who_leaves_while_cut_off_has_left_in_the_end)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        bool heard = seed % 3 != 0;
        struct world *w = world_joined(seed, 5);
        for (size_t i = 0; i < 5; i++)
            for (size_t k = 0; k < 5; k++)
                w->v[i].cut[k] = i != k && (heard ? (i < 3) != (k < 3) : i == 2 || k == 2);
        world_leave(w, 2);
        world_run(w, 2000);
        w->v[2].dead = true;
        ck_assert(!heard || world_state(w, 0, 2) == MEMBER_LEFT);
        world_run(w, 20000);
        ck_assert_int_eq(world_state(w, 4, 2), MEMBER_FAILED);
        for (size_t i = 0; i < 5; i++)
            memset(w->v[i].cut, 0, sizeof(w->v[i].cut));
        world_run(w, 15000);
        for (size_t i = 0; i < 5; i++)
            ck_assert(i == 2 || world_state(w, i, 2) == (heard ? MEMBER_LEFT : MEMBER_FAILED));
        ck_assert(world_agrees(w));
        world_free(w);
    }
}
END_TEST

START_TEST(who_is_started_again_is_known_at_once)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct world *w = world_joined(seed, 5);
        w->v[3].dead = true;
        world_run(w, (int64_t)world_random(w, 8000));
        world_start(w, 3);
        world_join(w, 3, 0);
        world_run(w, 3000);
        ck_assert(world_agrees(w));
        world_free(w);
    }
}
END_TEST

/* Two servers: what is said of one that failed, by an operator. */
START_TEST(who_failed_can_be_made_to_have_left)
{
    struct world *w = world_joined(1, 3);
    struct swim_out out = {.ctx = mem_ctx("out")};
    swim_force(w->v[0].swim, w->t, 2, true, &out); /* alive: without effect */
    ck_assert_uint_eq(out.events.n, 0);
    w->v[1].dead = true;
    ck_assert(world_until(w, 0, 1, MEMBER_FAILED, 10000));
    swim_force(w->v[0].swim, w->t, 2, false, &out);
    ck_assert_uint_eq(out.events.n, 1);
    ck_assert_int_eq(out.events.v[0].change, SWIM_LEAVE);
    mem_free(out.ctx);
    ck_assert(world_until(w, 2, 1, MEMBER_LEFT, 3000));
    /* and not to be shown any more, by nobody, until it comes back */
    out = (struct swim_out){.ctx = mem_ctx("out")};
    swim_force(w->v[2].swim, w->t, 2, true, &out);
    swim_force(w->v[2].swim, w->t, 2, true, &out);
    ck_assert_uint_eq(out.events.n, 1);
    ck_assert_int_eq(out.events.v[0].change, SWIM_REAP);
    mem_free(out.ctx);
    ck_assert(world_until(w, 0, 1, MEMBER_PRUNED, 3000));
    world_run(w, 70000);
    ck_assert_int_eq(world_state(w, 0, 1), MEMBER_PRUNED);
    world_start(w, 1);
    world_join(w, 1, 0);
    world_run(w, 3000);
    ck_assert(world_agrees(w));
    world_free(w);
}
END_TEST

START_TEST(gone_members_are_forgotten)
{
    struct world *w = world_joined(1, 3);
    w->v[1].dead = true;
    ck_assert(world_until(w, 0, 1, MEMBER_FAILED, 10000));
    int64_t next = 0;
    for (int64_t t = 0; t <= SWIM_REAP_MS + 60000 && world_state(w, 0, 1) != 0; t = next) {
        struct swim_out out = {.ctx = mem_ctx("out")};
        next = swim_next(w->v[0].swim, w->t);
        w->t = next > w->t ? next : w->t;
        swim_tick(w->v[0].swim, w->t, &out);
        mem_free(out.ctx);
    }
    ck_assert_int_eq(world_state(w, 0, 1), 0);
    world_free(w);
}
END_TEST

static const char *
three_regions(size_t i)
{
    return i % 3 == 0 ? "us" : i % 3 == 1 ? "eu" : "asia";
}

START_TEST(regions_are_one_pool)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world *w = world_new(seed, 9);
        w->region = three_regions;
        w->delay_min = 1;
        w->delay_max = 100;
        for (size_t i = 0; i < 9; i++) {
            world_start(w, i);
            if (i > 0)
                world_join(w, i, i - 1);
        }
        world_run(w, 10000);
        ck_assert(world_agrees(w));
        w->v[4].dead = true;
        ck_assert(world_until(w, 1, 4, MEMBER_FAILED, 6000)); /* eu sees it first, */
        ck_assert(world_until(w, 0, 4, MEMBER_FAILED, 3000)); /* and says so */
        ck_assert_uint_eq(verdicts(w, 4), 0);
        world_free(w);
    }
}
END_TEST

START_TEST(packets_sent_again_are_refused)
{
    struct world *w = world_joined(3, 5);
    ck_assert_uint_eq(w->refused, 0);
    w->doubles = 50;
    world_run(w, 20000);
    ck_assert_uint_gt(w->refused, 50);
    ck_assert_uint_eq(verdicts(w, NODES_MAX), 0);
    world_free(w);
}
END_TEST

START_TEST(of_another_cluster_is_no_member)
{
    struct swim *s;
    struct err e = ERR_INIT;
    struct swim_out out = {.ctx = mem_ctx("out")};
    struct server_hello us = {.id = 1, .name = "a", .region = "r", .addr = "a:1", .serf = "a:1"}, it = us;
    us.cluster = "x";
    it.cluster = "y";
    it.id = 2;
    it.name = "b";
    it.serf = "b:1";
    struct swim_opts o = {&us, 1, 1, 0};
    ck_assert_int_eq(swim_new(NULL, &o, &s, &e), 0);
    struct statement st = {MEMBER_ALIVE, 2, 2, 5, &it};
    struct packet p = {.kind = PACKET_TELL, .from = 2, .to = 1, .says = {&st, 1}};
    swim_take(s, 0, &p, "b:1", &out);
    ck_assert_uint_eq(out.events.n, 0);
    ck_assert_uint_eq(swim_figures(s)->foreign, 1);
    ck_assert_str_eq(swim_figures(s)->foreign_name, "b");
    it.region = "elsewhere";
    swim_take(s, 0, &p, "b:1", &out);
    ck_assert_uint_eq(out.events.n, 1);
    mem_free(out.ctx);
    mem_free(s);
}
END_TEST

/* One that failed is told so, unless another server is at its address. */
START_TEST(who_began_again_is_not_looked_for)
{
    for (int succeeded = 0; succeeded < 2; succeeded++) {
        struct swim *s;
        struct err e = ERR_INIT;
        struct server_hello us = {.id = 1, .name = "a", .region = "r", .addr = "a:1", .serf = "a:1"}, it = us;
        struct swim_opts o = {&us, 1, 1, 0};
        ck_assert_int_eq(swim_new(NULL, &o, &s, &e), 0);
        it.serf = "b:1";
        for (uint64_t id = 2; id < 4; id++) {
            struct swim_out out = {.ctx = mem_ctx("out")};
            it.id = id;
            struct statement st = {id == 2 ? MEMBER_FAILED : MEMBER_ALIVE, id, id, 5, &it};
            struct packet p = {.kind = PACKET_TELL, .from = 3, .to = 1, .says = {&st, 1}};
            if (id == 2 || succeeded)
                swim_take(s, 0, &p, "b:1", &out);
            mem_free(out.ctx);
        }
        unsigned tried = 0;
        for (int64_t t = 0; t < 2500; t = swim_next(s, t)) {
            struct swim_out out = {.ctx = mem_ctx("out")};
            swim_tick(s, t, &out);
            for (size_t i = 0; i < out.sends.n; i++)
                tried += out.sends.v[i].to == 2;
            mem_free(out.ctx);
        }
        ck_assert_msg(succeeded ? tried == 0 : tried > 3, "%d: %u", succeeded, tried);
        mem_free(s);
    }
}
END_TEST

/* A server that others would refuse is refused at its start. */
START_TEST(a_server_that_others_would_refuse_does_not_begin)
{
    char name[GOSSIP_ADDR_MAX + 2] = "";
    memset(name, 'n', sizeof(name) - 1);
    struct swim *s;
    struct err e = ERR_INIT;
    struct server_hello us = {.id = 1, .name = name, .region = "r", .addr = "a:1", .serf = "a:1"};
    struct swim_opts o = {&us, 1, 1, 0};
    ck_assert_int_eq(swim_new(NULL, &o, &s, &e), -ERR_INVALID);
    name[GOSSIP_ADDR_MAX] = '\0';
    us.zone = "rack 1";
    err_clear(&e);
    ck_assert_int_eq(swim_new(NULL, &o, &s, &e), 0);
    mem_free(s);
    us.zone = "rack\n1";
    ck_assert_int_eq(swim_new(NULL, &o, &s, &e), -ERR_INVALID);
}
END_TEST

START_TEST(members_are_bounded)
{
    struct swim *s;
    struct err e = ERR_INIT;
    struct server_hello us = {.id = 1, .name = "a", .region = "r", .addr = "a:1", .serf = "a:1"};
    struct swim_opts o = {&us, 1, 1, 0};
    ck_assert_int_eq(swim_new(NULL, &o, &s, &e), 0);
    for (uint64_t id = 2; id < 1500; id++) {
        struct swim_out out = {.ctx = mem_ctx("out")};
        us.id = id;
        struct statement st = {MEMBER_ALIVE, id, id, 5, &us};
        struct packet p = {.kind = PACKET_TELL, .from = 2, .to = 1, .says = {&st, 1}};
        swim_take(s, 0, &p, "b:1", &out);
        mem_free(out.ctx);
    }
    auto_mem void *tmp = mem_ctx("members");
    static const struct gossip_keys key = {.n = 1, .v = {{.n = 32}}};
    struct swim_sync all;
    size_t n;
    (void)swim_members(s, tmp, &n);
    ck_assert_uint_eq(n, GOSSIP_MEMBERS_MAX);
    ck_assert_uint_eq(swim_figures(s)->full, 1498 - (GOSSIP_MEMBERS_MAX - 1));
    swim_all(s, tmp, 2, &all); /* and all of them fit into packets */
    size_t said = 0;
    for (size_t i = 0; i < all.n; i++) {
        struct buf b = BUF_INIT(GOSSIP_PACKET_MAX);
        all.v[i].session = 1;
        packet_put(&b, &all.v[i], &key, (uint8_t[PACKET_NONCE]){0});
        ck_assert_int_eq(buf_error(&b), 0);
        ck_assert(all.v[i].more == (i + 1 < all.n));
        said += all.v[i].says.n;
        buf_done(&b);
    }
    ck_assert_uint_eq(said, n);
    mem_free(s);
}
END_TEST

/* --- random worlds --- */

static void
something(struct world *w)
{
    size_t i = (size_t)world_random(w, w->n);
    struct host *x = &w->v[i];
    switch (world_random(w, 8)) {
    case 0:
        x->dead = true;
        break;
    case 1:
        if (x->dead) {
            world_start(w, i);
            world_join(w, i, (i + 1 + (size_t)world_random(w, w->n - 1)) % w->n);
        }
        break;
    case 2:
        starve(w, i, (int64_t)world_random(w, 10000));
        break;
    case 3:
        x->frozen = !x->frozen;
        break;
    case 4:
        x->cut[world_random(w, w->n)] ^= true;
        break;
    case 5:
        x->ahead += (int64_t)world_random(w, 100000) - 50000;
        break;
    case 6:
        w->loss = (unsigned)world_random(w, 30);
        break;
    case 7:
        w->delay_max = 1 + (int64_t)world_random(w, 300);
        w->doubles = (unsigned)world_random(w, 10);
        break;
    }
}

static bool
has_settled(const struct world *w)
{
    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < w->n && !w->v[i].dead; k++) {
            enum member_state st = world_state(w, i, k);
            if (w->v[k].dead ? st == MEMBER_ALIVE || st == MEMBER_SUSPECT : st != MEMBER_ALIVE)
                return false;
        }
    return true;
}

static void
random_world(uint64_t seed)
{
    struct world *w = world_joined(seed, 3 + seed % 5);
    for (int i = 0; i < 10; i++) {
        something(w);
        world_run(w, (int64_t)world_random(w, 4000));
    }
    w->loss = w->doubles = 0;
    w->delay_max = 5;
    for (size_t i = 0; i < w->n; i++) {
        struct host *x = &w->v[i];
        x->frozen = false;
        memset(x->cut, 0, sizeof(x->cut));
    }
    world_run(w, 1000);
    for (size_t i = 0; i < w->n; i++) /* retry_join */
        for (size_t k = 0; k < w->n; k++)
            if (i != k && !w->v[i].dead && !w->v[k].dead && world_state(w, i, k) == 0)
                world_join(w, i, k);
    int64_t end = w->t + 120000;
    while (w->t < end && !has_settled(w))
        world_run(w, 500);
    ck_assert_msg(has_settled(w), "PADDOCK_SEED=%llu: not of one opinion after two minutes",
                  (unsigned long long)seed);
    world_free(w);
}

START_TEST(whatever_happens_they_agree_in_the_end)
{
    uint64_t from = 1, n = getenv("PADDOCK_LONG") != NULL ? SEEDS_LONG : SEEDS;
    const char *one = getenv("PADDOCK_SEED");
    if (one != NULL && num_parse_u64(one, &from) == 0)
        n = 1;
    for (uint64_t seed = from; seed < from + n; seed++)
        random_world(seed);
}
END_TEST

TEST_SUITE_TIMEOUT("swim", 3600, who_is_killed_has_failed_soon, idle_members_wake_seldom,
                   losses_delay_a_verdict,
                   one_that_is_starved_condemns_nobody, one_that_stands_still_has_failed_and_comes_back,
                   clocks_that_jump_condemn_nobody, halves_that_are_cut_apart_come_together,
                   a_cut_link_is_gone_around, who_leaves_has_not_failed,
                   who_leaves_while_cut_off_has_left_in_the_end,
                   who_is_started_again_is_known_at_once, who_failed_can_be_made_to_have_left,
                   gone_members_are_forgotten, regions_are_one_pool, packets_sent_again_are_refused,
                   of_another_cluster_is_no_member, who_began_again_is_not_looked_for,
                   a_server_that_others_would_refuse_does_not_begin, members_are_bounded,
                   whatever_happens_they_agree_in_the_end)
