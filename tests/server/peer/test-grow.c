/* SPDX-License-Identifier: Apache-2.0
 *
 * Who becomes a member, who gets a vote, and who is taken out.
 */
#include "common/mem.h"
#include "server/peer/grow.h"
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

TEST_SUITE("grow", one_change_at_a_time_and_a_vote_before_a_new_one, who_is_not_to_vote_stays_without_one,
           an_address_is_of_one_server, neither_the_leader_nor_the_last_vote_is_taken_out)
