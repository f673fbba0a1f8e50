/* SPDX-License-Identifier: Apache-2.0
 *
 * Who becomes a member, who gets a vote, and who is taken out.
 */
#include "common/mem.h"
#include "server/peer/grow.h"
#include "server/peer/pilot.h"
#include "tests/lib/test.h"

static struct peer peers[] = {
    {1, "a:1", PEER_VOTER}, {2, "b:1", PEER_VOTER}, {3, "c:1", PEER_VOTER}, {4, "d:1", PEER_STANDBY}};

static struct core_status
status(size_t n)
{
    struct core_status st = {.role = CONSENSUS_LEADER, .leader = 1, .last = 1000};
    st.conf = (struct peer_list){peers, n};
    for (size_t i = 0; i < n; i++)
        st.match[i] = 1000;
    return st;
}

START_TEST(one_change_at_a_time_and_a_vote_before_a_new_one)
{
    auto_mem void *tmp = mem_ctx("test");
    struct core_status st = status(4);
    struct grow_server v[] = {{5, "e:1"}, {4, "d:1"}, {2, "b:1"}};
    const struct grow_server *who = NULL;
    struct peer_list l;
    ck_assert_int_eq(grow_next(tmp, &st, v, 3, &l, &who), GROW_VOTES);
    ck_assert_uint_eq(who->id, 4);
    ck_assert_uint_eq(l.n, 4);
    ck_assert_int_eq(l.v[3].role, PEER_VOTER);
    ck_assert_int_eq(peers[3].role, PEER_STANDBY);
    st.match[3] = 1000 - GROW_NEAR - 1; /* it has not got the log yet */
    ck_assert_int_eq(grow_next(tmp, &st, v, 3, &l, &who), GROW_JOINS);
    ck_assert_uint_eq(l.n, 5);
    ck_assert_uint_eq(l.v[4].id, 5);
    ck_assert_int_eq(l.v[4].role, PEER_STANDBY);
    st.match[3] = 0; /* nor said a word */
    st.last = 100;
    ck_assert_int_eq(grow_next(tmp, &st, v + 1, 2, &l, &who), GROW_NOTHING);
}
END_TEST

START_TEST(who_is_not_to_vote_stays_without_one)
{
    auto_mem void *tmp = mem_ctx("test");
    struct core_status st = status(4);
    const struct grow_server *who = NULL;
    struct peer_list l;
    struct grow_server d = {4, "d:1", true}, v[] = {{3, "c:1", true}, {2, "b:1", false}};
    ck_assert_int_eq(grow_next(tmp, &st, &d, 1, &l, &who), GROW_NOTHING);
    st.conf.n = 3;
    ck_assert_int_eq(grow_next(tmp, &st, &d, 1, &l, &who), GROW_JOINS);
    ck_assert_int_eq(l.v[3].role, PEER_STANDBY);
    /* one that had a vote gives it back, where those that are left can decide without it */
    ck_assert_int_eq(grow_next(tmp, &st, v, 2, &l, &who), GROW_YIELDS);
    ck_assert_uint_eq(who->id, 3);
    ck_assert_uint_eq(l.n, 3);
    ck_assert_int_eq(l.v[2].role, PEER_STANDBY);
    ck_assert_int_eq(grow_next(tmp, &st, v, 1, &l, &who), GROW_NOTHING);
    ck_assert_int_eq(grow_next(tmp, &st, &(struct grow_server){1, "a:1", true}, 1, &l, &who), GROW_NOTHING);
}
END_TEST

START_TEST(an_address_is_of_one_server)
{
    auto_mem void *tmp = mem_ctx("test");
    struct core_status st = status(3);
    const struct grow_server *who = NULL;
    struct peer_list l;
    /* one that lost its data takes the place of what it was, if that leaves a majority of who is heard */
    struct grow_server v[] = {{9, "b:1", false}, {3, "c:1", false}, {2, "b:9", false}};
    ck_assert_int_eq(grow_next(tmp, &st, v, 1, &l, &who), GROW_NOTHING);
    ck_assert_int_eq(grow_next(tmp, &st, v, 2, &l, &who), GROW_REPLACES);
    ck_assert_uint_eq(l.n, 2);
    ck_assert(l.v[0].id == 1 && l.v[1].id == 3);
    ck_assert_int_eq(grow_next(tmp, &st, v, 3, &l, &who), GROW_MOVES); /* it has moved */
    ck_assert_uint_eq(who->id, 2);
    ck_assert_int_eq(grow_next(tmp, &st, &(struct grow_server){9, "a:1"}, 1, &l, &who), GROW_NOTHING);
    ck_assert_int_eq(grow_next(tmp, &st, &(struct grow_server){2, "c:1"}, 1, &l, &who), GROW_NOTHING);
    ck_assert_int_eq(grow_next(tmp, &st, &(struct grow_server){2, "b:2"}, 1, &l, &who), GROW_MOVES);
    ck_assert_str_eq(l.v[1].addr, "b:2");
    ck_assert_int_eq(l.v[1].role, PEER_VOTER);
}
END_TEST

START_TEST(neither_the_leader_nor_the_last_vote_is_taken_out)
{
    auto_mem void *tmp = mem_ctx("test");
    struct core_status st = status(4);
    struct peer_list l;
    ck_assert(grow_without(tmp, &st, 2, &l));
    ck_assert_uint_eq(l.n, 3);
    ck_assert_uint_eq(l.v[1].id, 3);
    ck_assert(!grow_without(tmp, &st, 1, &l));
    ck_assert(!grow_without(tmp, &st, 7, &l));
    st.conf = (struct peer_list){&peers[2], 2};
    ck_assert(!grow_without(tmp, &st, 3, &l));
}
END_TEST

/* Voters: the first leads, `alive` of them are there, the others have been dead for `dead_ms`. */
static size_t
cluster_of(struct pilot_server *v, size_t n, size_t alive, int64_t dead_ms)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (struct pilot_server){.id = i + 1,
                                     .voter = true,
                                     .leader = i == 0,
                                     .alive = i < alive,
                                     .silent_ms = i < alive ? 100 : 60000,
                                     .dead_ms = i < alive ? 0 : dead_ms + (int64_t)i};
    return n;
}

static const struct pilot_rules rules = {
    .cleanup = true, .contact_ms = 200, .behind_max = 250, .dead_ms = 10000};

START_TEST(who_is_silent_dead_or_behind_is_not_well)
{
    struct pilot_server v[7];
    size_t n = cluster_of(v, 5, 4, 20000);
    ck_assert_uint_eq(pilot_judge(&rules, v, n), 1);
    ck_assert(v[0].well && v[3].well && !v[4].well);
    v[1].behind = 251;
    ck_assert_uint_eq(pilot_judge(&rules, v, n), 0);
    ck_assert(!v[1].well);
    v[1].behind = 250;
    v[2].silent_ms = PILOT_BEAT_MS + 201;
    (void)pilot_judge(&rules, v, n);
    ck_assert(v[1].well && !v[2].well);
    v[2].silent_ms = PILOT_BEAT_MS + 200;
    v[3].silent_ms = INT64_MAX;
    (void)pilot_judge(&rules, v, n);
    ck_assert(v[2].well && !v[3].well);
    n = cluster_of(v, 3, 3, 0);
    ck_assert_uint_eq(pilot_judge(&rules, v, n), 1);
    n = cluster_of(v, 1, 1, 0);
    ck_assert_uint_eq(pilot_judge(&rules, v, n), 0);
}
END_TEST

START_TEST(a_dead_server_goes_only_where_enough_are_left)
{
    struct pilot_server v[7];
    size_t n = cluster_of(v, 5, 3, 20000);
    struct pilot_rules r = rules;
    ck_assert_uint_eq(pilot_dead(&r, v, n)->id, 5); /* longest dead */
    n = cluster_of(v, 4, 3, 20000);
    ck_assert_uint_eq(pilot_dead(&r, v, n)->id, 4);
    r.voters_min = 4;
    ck_assert_ptr_null(pilot_dead(&r, v, n));
    r = rules;
    r.cleanup = false;
    ck_assert_ptr_null(pilot_dead(&r, v, n));
    v[3].dead_ms = 9999; /* not yet */
    ck_assert_ptr_null(pilot_dead(&rules, v, n));
    v[3].dead_ms = 0; /* gossip does not know it */
    ck_assert_ptr_null(pilot_dead(&rules, v, n));
    n = cluster_of(v, 3, 2, 20000); /* two would be left */
    ck_assert_ptr_null(pilot_dead(&rules, v, n));
    v[2].voter = false;
    ck_assert_uint_eq(pilot_dead(&rules, v, n)->id, 3);
    for (n = 1; n <= 7; n++) /* never without a majority that is alive, whoever is dead */
        for (size_t alive = 1; alive <= n; alive++) {
            cluster_of(v, n, alive, 20000);
            const struct pilot_server *d = pilot_dead(&rules, v, n);
            ck_assert(d == NULL || (alive > n / 2 && n > PILOT_VOTERS_MIN && !d->alive));
            ck_assert(d != NULL || alive <= n / 2 || n <= PILOT_VOTERS_MIN || alive == n);
        }
}
END_TEST

TEST_SUITE("grow", who_is_silent_dead_or_behind_is_not_well,
           a_dead_server_goes_only_where_enough_are_left,
           one_change_at_a_time_and_a_vote_before_a_new_one, who_is_not_to_vote_stays_without_one,
           an_address_is_of_one_server, neither_the_leader_nor_the_last_vote_is_taken_out)
