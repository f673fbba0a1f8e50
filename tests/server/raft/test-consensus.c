/* SPDX-License-Identifier: Apache-2.0
 *
 * Consensus, driven message by message through raft_step(): a sole server, an election, the
 * old-term commit rule (figure 8 of the Raft dissertation), each guard of consensus.h, and peer
 * messages that make no sense.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "server/raft/consensus.h"
#include "tests/lib/test.h"

enum { LOG_MAX = 64, OUT_MAX = 256 };

/* A server: its facade, and a disk that does what updates say. */
struct sim {
    struct consensus *c;
    void *ctx;
    uint64_t term;
    uint64_t vote;
    struct record log[LOG_MAX]; /* by index */
    uint64_t last;
    uint64_t commit;
    int64_t timeout;
    enum consensus_role role;
    struct peer_msg out[OUT_MAX];
    size_t n_out;
    size_t appends; /* updates that carried entries */
    uint64_t first; /* of the last of them */
    int64_t now;
};

static void
on_update(void *arg, const struct consensus_update *u)
{
    struct sim *s = arg;
    if (u->hard) {
        s->term = u->term;
        s->vote = u->vote;
    }
    for (size_t i = 0; i < u->n; i++) {
        uint64_t ix = u->first + i;
        ck_assert_uint_lt(ix, LOG_MAX);
        ck_assert_uint_eq(u->entries[i].index, ix);
        s->log[ix] = u->entries[i];
        s->log[ix].data = mem_dup(s->ctx, u->entries[i].data, u->entries[i].n);
        s->last = ix;
    }
    if (u->first != 0) {
        s->appends++;
        s->first = u->first;
    }
    for (size_t i = 0; i < u->n_msgs; i++) {
        ck_assert_uint_lt(s->n_out, OUT_MAX);
        s->out[s->n_out] = u->msgs[i];
        s->out[s->n_out++].addr = mem_strdup(s->ctx, u->msgs[i].addr);
    }
    s->commit = u->commit;
    s->timeout = u->timeout_ms;
    s->role = u->role;
}

static struct peer_list
conf_of(const void *ctx, unsigned n)
{
    struct peer_list l = {.v = mem_array(ctx, struct peer, n), .n = n};
    for (unsigned i = 0; i < n; i++)
        l.v[i] =
            (struct peer){.id = i + 1, .addr = mem_printf(ctx, "s%u", i + 1), .role = PEER_VOTER};
    return l;
}

static struct sim *
sim_new(uint64_t id)
{
    struct sim *s = mem_new(NULL, struct sim);
    s->ctx = s;
    s->now = 1000;
    struct consensus_opts o = {.id = id,
                               .addr = mem_printf(s, "s%u", (unsigned)id),
                               .seed = 42,
                               .busy = {.election_ms = 1000, .heartbeat_ms = 100},
                               .quiet = {.election_ms = 3000, .heartbeat_ms = 2000},
                               .quiet_after_ms = 5000};
    s->c = consensus_new(&o, on_update, s);
    return s;
}

static void
sim_free(struct sim *s)
{
    consensus_free(s->c);
    mem_free(s);
}

static struct record
conf_record(const void *ctx, struct peer_list conf, uint64_t term)
{
    struct record r = {.term = term, .type = RECORD_CONFIG};
    void *data = NULL;
    ck_assert_int_eq(consensus_conf_encode(ctx, &conf, &data, &r.n), 0);
    r.data = data;
    return r;
}

static struct record
command(uint64_t term)
{
    return (struct record){.term = term, .type = RECORD_COMMAND, .data = "x", .n = 1};
}

/* A server of a cluster of `n`, with commands of the given terms behind the configuration. */
static struct sim *
sim_start(uint64_t id, unsigned n, uint64_t term, const uint64_t *terms, size_t n_terms)
{
    struct sim *s = sim_new(id);
    struct record log[LOG_MAX];
    log[0] = conf_record(s, conf_of(s, n), 1);
    for (size_t i = 0; i < n_terms; i++)
        log[i + 1] = command(terms[i]);
    for (size_t i = 0; i <= n_terms; i++)
        s->log[i + 1] = log[i];
    s->last = n_terms + 1;
    s->term = term;
    struct consensus_start st = {.term = term, .first = 1, .entries = log, .n = n_terms + 1};
    ck_assert_int_eq(consensus_begin(s->c, s->now, &st), 0);
    return s;
}

static void
persist(struct sim *s)
{
    ck_assert_int_eq(consensus_persisted(s->c, s->now, s->last), 0);
}

static int
receive(struct sim *s, struct peer_msg m)
{
    struct err e = ERR_INIT;
    if (m.addr == NULL)
        m.addr = "peer";
    return consensus_receive(s->c, s->now, &m, &e);
}

static const struct peer_msg *
last_out(const struct sim *s, enum peer_msg_type type)
{
    for (size_t i = s->n_out; i > 0; i--) {
        if (s->out[i - 1].type == type)
            return &s->out[i - 1];
    }
    return NULL;
}

static struct peer_msg
append_msg(uint64_t from, uint64_t term, uint64_t prev, uint64_t prev_term, const struct record *r,
           size_t n)
{
    return (struct peer_msg){.type = MSG_APPEND,
                             .peer = from,
                             .term = term,
                             .index = prev,
                             .log_term = prev_term,
                             .entries = r,
                             .n = n};
}

/* Lets `s` win an election with the votes of `voters`. */
static void
elect(struct sim *s, const uint64_t *voters, size_t n)
{
    for (int i = 0; i < 4 && s->role == CONSENSUS_FOLLOWER; i++) {
        s->now = s->timeout;
        ck_assert_int_eq(consensus_timeout(s->c, s->now), 0);
    }
    ck_assert_int_eq(s->role, CONSENSUS_CANDIDATE);
    for (int round = 0; round < 2 && s->role == CONSENSUS_CANDIDATE; round++) {
        const struct peer_msg *ask = last_out(s, MSG_VOTE);
        bool pre = ask->pre_vote;
        uint64_t term = ask->term;
        for (size_t i = 0; i < n; i++)
            ck_assert_int_eq(receive(s, (struct peer_msg){.type = MSG_VOTE_RESULT,
                                                          .peer = voters[i],
                                                          .term = term,
                                                          .pre_vote = pre,
                                                          .granted = true}),
                             0);
    }
    ck_assert_int_eq(s->role, CONSENSUS_LEADER);
}

/* --- a sole server --- */

START_TEST(sole_server_leads_without_a_timer)
{
    struct sim *s = sim_start(1, 1, 1, NULL, 0);
    ck_assert_int_eq(consensus_role(s->c), CONSENSUS_LEADER);
    ck_assert_int_eq(s->timeout, CONSENSUS_NEVER);
    struct record r = command(0);
    ck_assert_int_eq(consensus_propose(s->c, s->now, &r, 1), 0);
    ck_assert_uint_eq(s->last, 2);
    ck_assert_uint_eq(s->commit, 1); /* not before it is durable */
    persist(s);
    ck_assert_uint_eq(s->commit, 2);
    ck_assert_int_eq(s->timeout, CONSENSUS_NEVER);
    ck_assert_uint_eq(s->n_out, 0);
    sim_free(s);
}
END_TEST

START_TEST(restarted_sole_server_commits_its_log)
{
    struct sim *s = sim_start(1, 1, 3, (const uint64_t[]){1, 2, 3}, 3);
    ck_assert_int_eq(consensus_role(s->c), CONSENSUS_LEADER);
    ck_assert_uint_eq(s->commit, 4);
    sim_free(s);
}
END_TEST

START_TEST(follower_does_not_propose)
{
    struct sim *s = sim_start(1, 3, 1, NULL, 0);
    struct record r = command(0);
    ck_assert_int_eq(consensus_propose(s->c, s->now, &r, 1), -ERR_NOT_LEADER);
    ck_assert_int_ne(s->timeout, CONSENSUS_NEVER);
    sim_free(s);
}
END_TEST

START_TEST(three_servers_elect_and_replicate)
{
    struct sim *s = sim_start(1, 3, 1, NULL, 0);
    elect(s, (const uint64_t[]){2}, 1);
    ck_assert_uint_eq(s->term, 2);
    ck_assert_uint_eq(s->vote, 1); /* durable before the request went out */
    ck_assert_int_ne(s->timeout, CONSENSUS_NEVER);
    struct record r = command(0);
    ck_assert_int_eq(consensus_propose(s->c, s->now, &r, 1), 0);
    persist(s);
    ck_assert_uint_eq(s->commit, 1);
    receive(s, (struct peer_msg){.type = MSG_APPEND_RESULT, .peer = 2, .term = 2, .last = s->last});
    ck_assert_uint_eq(s->commit, s->last);
    sim_free(s);
}
END_TEST

/* Figure 8: an entry of an old term on a majority is not committed by counting. */
START_TEST(old_term_entry_is_not_committed_by_counting)
{
    struct sim *s = sim_start(1, 5, 3, (const uint64_t[]){2}, 1);
    elect(s, (const uint64_t[]){2, 3}, 2);
    ck_assert_uint_eq(s->term, 4);
    ck_assert_uint_eq(s->last, 3); /* the no-op of the new term */
    ck_assert_uint_eq(s->log[3].term, 4);
    persist(s);
    for (uint64_t p = 2; p <= 4; p++)
        receive(s, (struct peer_msg){.type = MSG_APPEND_RESULT, .peer = p, .term = 4, .last = 2});
    ck_assert_uint_eq(s->commit, 1);
    for (uint64_t p = 2; p <= 3; p++)
        receive(s, (struct peer_msg){.type = MSG_APPEND_RESULT, .peer = p, .term = 4, .last = 3});
    ck_assert_uint_eq(s->commit, 3);
    sim_free(s);
}
END_TEST

/* --- guards --- */

START_TEST(guard1_config_change_is_rolled_back_where_it_stands)
{
    struct sim *s = sim_start(1, 3, 1, NULL, 0);
    struct record r[] = {command(2), conf_record(s, conf_of(s, 4), 2), command(2)};
    ck_assert_int_eq(receive(s, append_msg(2, 2, 1, 1, r, 3)), 0);
    ck_assert_uint_eq(s->appends, 3); /* the change went alone */
    persist(s);
    ck_assert_uint_eq(consensus_peers(s->c)->n, 4);
    /* Another leader replaces the change, but not the entry that came in the same message. */
    struct record other = command(3);
    ck_assert_int_eq(receive(s, append_msg(3, 3, 2, 2, &other, 1)), 0);
    ck_assert_uint_eq(s->first, 3);
    ck_assert_uint_eq(consensus_peers(s->c)->n, 3);
    sim_free(s);
}
END_TEST

static struct sim *
sim_from_snapshot(void)
{
    struct sim *s = sim_new(1);
    struct consensus_snapshot snap = {.index = 10, .term = 2, .conf_index = 1};
    snap.conf = conf_of(s, 3);
    s->last = 10;
    struct consensus_start st = {.term = 2, .snapshot = &snap, .first = 11};
    ck_assert_int_eq(consensus_begin(s->c, s->now, &st), 0);
    return s;
}

START_TEST(guard2_entries_below_the_snapshot_are_clamped)
{
    struct record r[12];
    for (size_t i = 0; i < 12; i++)
        r[i] = command(2);
    static const uint64_t prev[] = {5, 0, 9};
    for (size_t i = 0; i < 3; i++) {
        struct sim *s = sim_from_snapshot();
        struct record mine[12];
        memcpy(mine, r, sizeof(r));
        if (prev[i] == 0)
            mine[0] = conf_record(s, conf_of(s, 3), 2);
        ck_assert_int_eq(
            receive(s, append_msg(2, 2, prev[i], prev[i] == 0 ? 0 : 2, mine, 12 - prev[i])), 0);
        ck_assert_uint_eq(s->appends, 1);
        ck_assert_uint_eq(s->first, 11);
        ck_assert_uint_eq(s->last, 12);
        persist(s);
        ck_assert_uint_eq(last_out(s, MSG_APPEND_RESULT)->rejected, 0);
        ck_assert_uint_eq(last_out(s, MSG_APPEND_RESULT)->last, 12);
        sim_free(s);
    }
    /* Nothing but what the snapshot holds: acknowledged up to it. */
    struct sim *s = sim_from_snapshot();
    ck_assert_int_eq(receive(s, append_msg(2, 2, 3, 2, r, 4)), 0);
    ck_assert_uint_eq(s->appends, 0);
    ck_assert_uint_eq(last_out(s, MSG_APPEND_RESULT)->rejected, 0);
    ck_assert_uint_eq(last_out(s, MSG_APPEND_RESULT)->last, 10);
    sim_free(s);
}
END_TEST

START_TEST(guard3_no_change_before_an_entry_of_the_term)
{
    struct sim *s = sim_start(1, 3, 1, NULL, 0);
    elect(s, (const uint64_t[]){2}, 1);
    struct peer_list four = conf_of(s, 4);
    struct err e = ERR_INIT;
    ck_assert_int_eq(consensus_change(s->c, s->now, &four, &e), -ERR_BUSY);
    ck_assert_uint_eq(s->last, 1);
    struct record r = {.type = RECORD_BARRIER, .data = "12345678", .n = 8};
    ck_assert_int_eq(consensus_propose(s->c, s->now, &r, 1), 0);
    err_clear(&e);
    ck_assert_int_eq(consensus_change(s->c, s->now, &four, &e), -ERR_BUSY);
    persist(s);
    receive(s, (struct peer_msg){.type = MSG_APPEND_RESULT, .peer = 2, .term = 2, .last = 2});
    err_clear(&e);
    ck_assert_int_eq(consensus_change(s->c, s->now, &four, &e), 0);
    ck_assert_int_eq(s->log[3].type, RECORD_CONFIG);
    sim_free(s);
}
END_TEST

START_TEST(guard4_votes_whatever_its_own_config_says)
{
    for (int k = 0; k < 2; k++) {
        struct sim *s = sim_new(4);
        struct peer_list conf = conf_of(s, k == 0 ? 4 : 3);
        if (k == 0)
            conf.v[3].role = PEER_STANDBY; /* the change that makes it a voter is not here yet */
        struct record r = conf_record(s, conf, 1);
        struct consensus_start st = {.term = 1, .first = 1, .entries = &r, .n = 1};
        ck_assert_int_eq(consensus_begin(s->c, s->now, &st), 0);
        ck_assert_int_eq(
            receive(s,
                    (struct peer_msg){
                        .type = MSG_VOTE, .peer = 1, .term = 2, .index = 5, .log_term = 1}),
            0);
        ck_assert(last_out(s, MSG_VOTE_RESULT)->granted);
        ck_assert_uint_eq(s->term, 2);
        ck_assert_uint_eq(s->vote, 1);
        ck_assert_uint_eq(consensus_peers(s->c)->n, conf.n); /* unchanged */
        sim_free(s);
    }
}
END_TEST

START_TEST(guard5_denied_pre_vote_tells_the_real_term)
{
    struct sim *s = sim_start(1, 3, 7, (const uint64_t[]){7, 7}, 2);
    ck_assert_int_eq(receive(s, (struct peer_msg){.type = MSG_VOTE,
                                                  .peer = 2,
                                                  .term = 3,
                                                  .index = 9,
                                                  .log_term = 2,
                                                  .pre_vote = true}),
                     0);
    const struct peer_msg *m = last_out(s, MSG_VOTE_RESULT);
    ck_assert(!m->granted);
    ck_assert_uint_eq(m->term, 7);
    /* The one that asked learns it. */
    struct sim *asker = sim_start(2, 3, 2, (const uint64_t[]){2}, 1);
    asker->now = asker->timeout;
    ck_assert_int_eq(consensus_timeout(asker->c, asker->now), 0);
    ck_assert(last_out(asker, MSG_VOTE)->pre_vote);
    ck_assert_int_eq(
        receive(asker,
                (struct peer_msg){.type = MSG_VOTE_RESULT, .peer = 1, .term = 7, .pre_vote = true}),
        0);
    ck_assert_uint_eq(asker->term, 7);
    ck_assert_int_eq(asker->role, CONSENSUS_FOLLOWER);
    sim_free(s);
    sim_free(asker);
}
END_TEST

START_TEST(guard6_leader_does_not_remove_itself)
{
    struct sim *s = sim_start(1, 3, 1, NULL, 0);
    elect(s, (const uint64_t[]){2}, 1);
    struct record r = command(0);
    ck_assert_int_eq(consensus_propose(s->c, s->now, &r, 1), 0);
    persist(s);
    receive(s, (struct peer_msg){.type = MSG_APPEND_RESULT, .peer = 2, .term = 2, .last = 2});
    struct err e = ERR_INIT;
    struct peer_list without = conf_of(s, 3);
    without.v++;
    without.n--;
    ck_assert_int_eq(consensus_change(s->c, s->now, &without, &e), -ERR_CONFLICT);
    struct peer_list demoted = conf_of(s, 3);
    demoted.v[0].role = PEER_STANDBY;
    err_clear(&e);
    ck_assert_int_eq(consensus_change(s->c, s->now, &demoted, &e), -ERR_CONFLICT);
    ck_assert_int_eq(consensus_transfer(s->c, s->now, 9), -ERR_INVALID);
    ck_assert_int_eq(consensus_transfer(s->c, s->now, 2), 0);
    ck_assert_uint_eq(last_out(s, MSG_TIMEOUT_NOW)->peer, 2);
    sim_free(s);
}
END_TEST

START_TEST(guard7_stale_rejection_does_not_wedge_a_peer)
{
    struct sim *s = sim_start(1, 3, 2, (const uint64_t[]){2, 2, 2}, 3);
    elect(s, (const uint64_t[]){3}, 1);
    persist(s);
    receive(s, (struct peer_msg){.type = MSG_APPEND_RESULT, .peer = 2, .term = s->term, .last = 4});
    /* Silence: the pipeline is given up, the leader probes at 5 (only 3 answers). */
    for (int i = 0; i < 12; i++) {
        s->now = s->timeout;
        ck_assert_int_eq(consensus_timeout(s->c, s->now), 0);
        receive(s, (struct peer_msg){
                       .type = MSG_APPEND_RESULT, .peer = 3, .term = s->term, .last = s->last});
    }
    /* a message that 2 sent before it had entry 4 arrives now */
    receive(s,
            (struct peer_msg){
                .type = MSG_APPEND_RESULT, .peer = 2, .term = s->term, .rejected = 4, .last = 1});
    struct record r = command(0);
    ck_assert_int_eq(consensus_propose(s->c, s->now, &r, 1), 0);
    persist(s);
    size_t sent = 0;
    s->n_out = 0;
    for (int i = 0; i < 12; i++) {
        s->now = s->timeout;
        ck_assert_int_eq(consensus_timeout(s->c, s->now), 0);
        receive(s, (struct peer_msg){
                       .type = MSG_APPEND_RESULT, .peer = 3, .term = s->term, .last = s->last});
        for (size_t k = 0; k < s->n_out; k++)
            sent += s->out[k].type == MSG_APPEND && s->out[k].peer == 2 ? s->out[k].n : 0;
        s->n_out = 0;
    }
    ck_assert_uint_gt(sent, 0);
    sim_free(s);
}
END_TEST

/* A probe at an earlier entry, as a leader sends that has lost answers, takes nothing back. */
START_TEST(guard8_commit_does_not_fall_back)
{
    struct sim *s = sim_start(1, 3, 1, NULL, 0);
    struct record r[] = {command(1), command(1), command(1)};
    struct peer_msg m = append_msg(2, 1, 1, 1, r, ARRAY_LEN(r));
    m.commit = 4;
    ck_assert_int_eq(receive(s, m), 0);
    ck_assert_uint_eq(s->commit, 4); /* before it is durable here */
    m = append_msg(2, 1, 2, 1, NULL, 0);
    m.commit = 5;
    ck_assert_int_eq(receive(s, m), 0);
    ck_assert_uint_eq(s->commit, 4);
    persist(s);
    ck_assert_uint_eq(s->commit, 4);
    sim_free(s);
}
END_TEST

START_TEST(guard9_sole_server_begins_in_a_new_term)
{
    struct sim *s = sim_start(1, 1, 3, (const uint64_t[]){1, 2, 3}, 3);
    ck_assert_uint_eq(s->term, 4);
    ck_assert_uint_eq(s->vote, 1);
    struct record r = command(0);
    ck_assert_int_eq(consensus_propose(s->c, s->now, &r, 1), 0);
    ck_assert_uint_eq(s->log[5].term, 4);
    sim_free(s);
}
END_TEST

START_TEST(guard10_votes_when_its_leader_is_silent)
{
    struct consensus_status st;
    for (int late = 0; late < 2; late++) {
        struct sim *s = sim_start(1, 3, 2, NULL, 0);
        ck_assert_int_eq(receive(s, append_msg(2, 2, 1, 1, NULL, 0)), 0);
        consensus_status(s->c, &st);
        ck_assert_uint_eq(st.leader, 2);
        ck_assert_int_eq(st.heard_ms, s->now);
        s->now += late ? 1000 : 999;
        ck_assert_int_eq(receive(s, (struct peer_msg){.type = MSG_VOTE,
                                                      .peer = 3,
                                                      .term = 3,
                                                      .index = 1,
                                                      .log_term = 1,
                                                      .pre_vote = true}),
                         0);
        ck_assert_int_eq(last_out(s, MSG_VOTE_RESULT)->granted, late == 1);
        consensus_status(s->c, &st);
        ck_assert_uint_eq(st.leader, late ? 0 : 2);
        s->n_out = 0;
        persist(s); /* a report to no leader goes nowhere */
        for (size_t i = 0; i < s->n_out; i++)
            ck_assert_uint_ne(s->out[i].peer, 0);
        sim_free(s);
    }
}
END_TEST

START_TEST(guard12_a_change_is_of_one_server)
{
    struct sim *s = sim_start(1, 1, 1, NULL, 0);
    struct record r = command(0);
    ck_assert_int_eq(consensus_propose(s->c, s->now, &r, 1), 0);
    persist(s);
    struct err e = ERR_INIT;
    struct peer_list three = conf_of(s, 3);
    ck_assert_int_eq(consensus_change(s->c, s->now, &three, &e), -ERR_CONFLICT);
    three.n = 2;
    ck_assert_int_eq(consensus_change(s->c, s->now, &three, &e), 0);
    sim_free(s);
}
END_TEST

START_TEST(guard14_election_that_ran_out_begins_with_pre_votes)
{
    struct sim *s = sim_start(1, 3, 1, NULL, 0);
    s->now = s->timeout;
    ck_assert_int_eq(consensus_timeout(s->c, s->now), 0);
    struct peer_msg yes = {
        .type = MSG_VOTE_RESULT, .peer = 2, .term = 2, .pre_vote = true, .granted = true};
    ck_assert_int_eq(receive(s, yes), 0);
    ck_assert(!last_out(s, MSG_VOTE)->pre_vote);
    s->now = s->timeout;
    ck_assert_int_eq(consensus_timeout(s->c, s->now), 0);
    ck_assert(last_out(s, MSG_VOTE)->pre_vote);
    sim_free(s);
}
END_TEST

START_TEST(who_hears_that_its_leader_is_gone_stands_soon)
{
    struct sim *s = sim_start(1, 3, 2, NULL, 0);
    ck_assert_int_eq(receive(s, append_msg(2, 2, 1, 1, NULL, 0)), 0);
    int64_t before = s->timeout;
    ck_assert_int_ge(before, s->now + 1000);
    ck_assert_int_eq(consensus_leader_gone(s->c, s->now, 3, 50), before); /* another one */
    ck_assert_int_eq(consensus_leader_gone(s->c, s->now, 2, 50), s->now + 50);
    s->now += 50;
    ck_assert_int_eq(consensus_timeout(s->c, s->now), 0);
    ck_assert_int_eq(s->role, CONSENSUS_CANDIDATE);
    ck_assert(last_out(s, MSG_VOTE)->pre_vote);
    sim_free(s);
}
END_TEST

/* A leader whose only peers are new has a quorum clock that stood still: it must not step down. */
START_TEST(sole_leader_takes_a_second_server)
{
    struct sim *s = sim_start(1, 1, 1, NULL, 0);
    struct record r = command(0);
    ck_assert_int_eq(consensus_propose(s->c, s->now, &r, 1), 0);
    persist(s);
    s->now += 3600 * 1000;
    struct err e = ERR_INIT;
    struct peer_list two = conf_of(s, 2);
    ck_assert_int_eq(consensus_change(s->c, s->now, &two, &e), 0);
    ck_assert_int_eq(s->role, CONSENSUS_LEADER);
    ck_assert_int_ne(s->timeout, CONSENSUS_NEVER);
    s->now += 100;
    ck_assert_int_eq(consensus_timeout(s->c, s->now), 0);
    ck_assert_int_eq(s->role, CONSENSUS_LEADER);
    sim_free(s);
}
END_TEST

/* --- messages that make no sense --- */

START_TEST(senseless_messages_are_refused)
{
    struct sim *s = sim_start(1, 3, 2, (const uint64_t[]){2}, 1);
    struct record zero_term = command(0);
    struct record late = command(9);
    struct record backwards[] = {command(2), command(1)};
    struct record odd = {.term = 2, .type = (enum record_type)9, .data = "x", .n = 1};
    struct record no_conf = {.term = 2, .type = RECORD_CONFIG, .data = "garbage", .n = 7};
    struct record huge_conf = {.term = 2,
                               .type = RECORD_CONFIG,
                               .data = "\x01\xff\xff\xff\xff\xff\xff\xff\x7f\0\0\0\0\0\0\0",
                               .n = 16};
    struct record no_data = {.term = 2, .type = RECORD_COMMAND, .n = 5};
    const struct peer_msg bad[] = {
        append_msg(0, 2, 1, 1, NULL, 0),
        append_msg(1, 2, 1, 1, NULL, 0), /* ourselves */
        append_msg(2, 0, 1, 1, NULL, 0),
        append_msg(2, UINT64_MAX, 1, 1, NULL, 0),
        append_msg(2, 2, 0, 1, NULL, 0),
        append_msg(2, 2, 1, 0, NULL, 0),
        append_msg(2, 2, 1, 3, NULL, 0),
        append_msg(2, 2, UINT64_MAX - 1, 1, NULL, 0),
        append_msg(2, 2, 1, 1, NULL, 1),
        append_msg(2, 2, 1, 1, &zero_term, 1),
        append_msg(2, 2, 1, 1, &late, 1),
        append_msg(2, 2, 1, 1, backwards, 2),
        append_msg(2, 2, 1, 1, &odd, 1),
        append_msg(2, 2, 1, 1, &no_conf, 1),
        append_msg(2, 2, 1, 1, &huge_conf, 1),
        append_msg(2, 2, 1, 1, &no_data, 1),
        {.type = MSG_VOTE, .peer = 2, .term = 3, .index = 4, .log_term = 4},
        {.type = MSG_VOTE, .peer = 2, .term = 3, .index = 4},
        {.type = MSG_APPEND_RESULT, .peer = 2, .term = 3, .last = UINT64_MAX},
        {.type = MSG_SNAPSHOT, .peer = 2, .term = 3, .index = 4, .log_term = 2, .conf_index = 1},
        {.type = MSG_SNAPSHOT, .peer = 2, .term = 3, .conf = conf_of(s, 3)},
        {.type = MSG_SNAPSHOT,
         .peer = 2,
         .term = 3,
         .index = 4,
         .log_term = 2,
         .conf_index = 5,
         .conf = conf_of(s, 3)},
        {.type = MSG_TIMEOUT_NOW, .peer = 2, .term = 1, .index = 4, .log_term = 2},
        {.type = (enum peer_msg_type)77, .peer = 2, .term = 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ck_assert_msg(receive(s, bad[i]) == -ERR_INVALID, "message %zu was taken", i);
        ck_assert_uint_eq(s->n_out, 0);
        ck_assert_uint_eq(s->term, 2);
        ck_assert_uint_eq(s->appends, 0);
    }
    sim_free(s);
}
END_TEST

START_TEST(second_leader_of_a_term_is_refused)
{
    struct sim *s = sim_start(1, 3, 1, NULL, 0);
    elect(s, (const uint64_t[]){2}, 1);
    ck_assert_int_eq(receive(s, append_msg(3, 2, 1, 1, NULL, 0)), -ERR_INVALID);
    ck_assert_int_eq(s->role, CONSENSUS_LEADER);
    ck_assert_int_eq(receive(s, append_msg(3, 3, 1, 1, NULL, 0)), 0);
    ck_assert_int_eq(s->role, CONSENSUS_FOLLOWER);
    sim_free(s);
}
END_TEST

START_TEST(late_vote_result_is_dropped)
{
    struct sim *s = sim_start(1, 3, 1, NULL, 0);
    ck_assert_int_eq(
        receive(s,
                (struct peer_msg){.type = MSG_VOTE_RESULT, .peer = 2, .term = 5, .granted = true}),
        0);
    ck_assert_uint_eq(s->term, 1);
    sim_free(s);
}
END_TEST

START_TEST(snapshot_install_is_asked_for)
{
    struct sim *s = sim_start(1, 3, 2, (const uint64_t[]){2}, 1);
    struct peer_msg m = {.type = MSG_SNAPSHOT,
                         .peer = 2,
                         .term = 2,
                         .index = 40,
                         .log_term = 2,
                         .conf_index = 1,
                         .conf = conf_of(s, 3)};
    ck_assert_int_eq(receive(s, m), 0);
    ck_assert_int_eq(receive(s, m), 0); /* again, while it is being installed */
    struct consensus_snapshot snap = {.index = 40, .term = 2, .conf_index = 1};
    snap.conf = conf_of(s, 3);
    ck_assert_int_eq(consensus_installed(s->c, s->now, &snap), 0);
    ck_assert_uint_eq(s->commit, 40);
    ck_assert_int_eq(consensus_installed(s->c, s->now, &snap), -ERR_INVALID);
    struct record r = command(2);
    ck_assert_int_eq(receive(s, append_msg(2, 2, 40, 2, &r, 1)), 0);
    ck_assert_uint_eq(s->first, 41);
    sim_free(s);
}
END_TEST

/* All timers of a leader up to `to`; server 2 has all, 3 what is up to `last`. Returns the number of
 * appends. */
static size_t
lead_until(struct sim *s, int64_t to, uint64_t last)
{
    size_t n = 0;
    while (s->timeout <= to) {
        s->now = s->timeout;
        s->n_out = 0;
        ck_assert_int_eq(consensus_timeout(s->c, s->now), 0);
        ck_assert_int_eq(s->role, CONSENSUS_LEADER);
        for (uint64_t id = 2; id <= 3; id++)
            receive(s, (struct peer_msg){.type = MSG_APPEND_RESULT,
                                         .peer = id,
                                         .term = s->term,
                                         .last = id == 2 ? s->last : last});
        for (size_t i = 0; i < s->n_out; i++)
            n += s->out[i].type == MSG_APPEND;
    }
    return n;
}

START_TEST(a_leader_with_nothing_to_say_says_so_seldom)
{
    struct consensus_status st;
    struct sim *s = sim_start(1, 3, 1, NULL, 0);
    elect(s, (const uint64_t[]){2}, 1);
    struct record r = command(0);
    ck_assert_int_eq(consensus_propose(s->c, s->now, &r, 1), 0);
    persist(s);
    int64_t begin = s->now;
    ck_assert_uint_gt(lead_until(s, begin + 4000, s->last), 2 * 4000 / 100 - 4);
    consensus_status(s->c, &st);
    ck_assert(!st.quiet);
    lead_until(s, begin + 6000, s->last);
    consensus_status(s->c, &st);
    ck_assert(st.quiet);
    ck_assert_uint_le(lead_until(s, begin + 26000, s->last), 2 * 20000 / 2000 + 2);
    s->n_out = 0;
    ck_assert_int_eq(consensus_propose(s->c, s->now, &r, 1), 0);
    ck_assert(!last_out(s, MSG_APPEND)->quiet);
    consensus_status(s->c, &st);
    ck_assert(!st.quiet);
    ck_assert_int_le(s->timeout, s->now + 100);
    sim_free(s);
}
END_TEST

/* One that answers and does not get further. */
START_TEST(a_leader_that_waits_for_a_server_is_not_quiet)
{
    struct consensus_status st;
    struct sim *s = sim_start(1, 3, 1, NULL, 0);
    elect(s, (const uint64_t[]){2}, 1);
    struct record r = command(0);
    ck_assert_int_eq(consensus_propose(s->c, s->now, &r, 1), 0);
    persist(s);
    for (int64_t end = s->now + 20000; s->now < end;) {
        lead_until(s, s->timeout, 1);
        consensus_status(s->c, &st);
        ck_assert(!st.quiet);
    }
    sim_free(s);
}
END_TEST

START_TEST(a_follower_takes_the_pace_of_its_leader)
{
    struct sim *s = sim_start(1, 3, 1, NULL, 0);
    struct peer_msg m = append_msg(2, 2, 1, 1, NULL, 0);
    ck_assert_int_eq(receive(s, m), 0);
    ck_assert_int_le(s->timeout, s->now + 2000);
    m.quiet = true;
    ck_assert_int_eq(receive(s, m), 0);
    ck_assert_int_ge(s->timeout, s->now + 3000);
    int64_t heard = s->now;
    s->now = heard + 2500; /* a vote is denied as long as the leader may be silent */
    struct peer_msg vote = {
        .type = MSG_VOTE, .peer = 3, .term = 3, .index = 1, .log_term = 1, .pre_vote = true};
    ck_assert_int_eq(receive(s, vote), 0);
    ck_assert(!last_out(s, MSG_VOTE_RESULT)->granted);
    s->now = s->timeout; /* it stands, and what follows is quick */
    ck_assert_int_eq(consensus_timeout(s->c, s->now), 0);
    ck_assert_int_eq(s->role, CONSENSUS_CANDIDATE);
    ck_assert_int_le(s->timeout, s->now + 2000);
    sim_free(s);
}
END_TEST

TEST_SUITE("consensus", sole_server_leads_without_a_timer, restarted_sole_server_commits_its_log,
           follower_does_not_propose, three_servers_elect_and_replicate,
           old_term_entry_is_not_committed_by_counting,
           guard1_config_change_is_rolled_back_where_it_stands,
           guard2_entries_below_the_snapshot_are_clamped,
           guard3_no_change_before_an_entry_of_the_term, guard4_votes_whatever_its_own_config_says,
           guard5_denied_pre_vote_tells_the_real_term, guard6_leader_does_not_remove_itself,
           guard7_stale_rejection_does_not_wedge_a_peer, guard8_commit_does_not_fall_back,
           guard9_sole_server_begins_in_a_new_term, guard10_votes_when_its_leader_is_silent,
           guard12_a_change_is_of_one_server, guard14_election_that_ran_out_begins_with_pre_votes,
           who_hears_that_its_leader_is_gone_stands_soon,
           sole_leader_takes_a_second_server, senseless_messages_are_refused,
           second_leader_of_a_term_is_refused, late_vote_result_is_dropped,
           snapshot_install_is_asked_for, a_leader_with_nothing_to_say_says_so_seldom,
           a_leader_that_waits_for_a_server_is_not_quiet, a_follower_takes_the_pace_of_its_leader)
