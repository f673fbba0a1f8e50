/* SPDX-License-Identifier: Apache-2.0
 *
 * Consensus over libraft's raft_step(): see consensus.h. The only file that includes <raft.h>.
 *
 * Ownership in 0.22.1 (read from its source): of an array given to raft_step() the caller frees the
 * array itself; the batch of received entries is freed by the library unless the update hands them
 * back to be persisted; submitted entries always stay ours; configurations given are taken over.
 */
#include "server/raft/consensus.h"

#include <errno.h>
#include <limits.h>
#include <raft.h>
#include <string.h>

#include "common/mem.h"

#if RAFT_VERSION_NUMBER != 2201
#error                                                                                             \
    "libraft 0.22.1 is needed: ownership and the guards below are written for exactly that version"
#endif

/* Guard 13: how long a peer to which a snapshot was sent may say nothing. */
enum { SNAPSHOT_TIMEOUT_MS = 2000 };

struct consensus {
    struct raft r;
    consensus_update_fn *on_update;
    void *arg;
    bool new_term;          /* guard 9: the start made one */
    int64_t heard_ms;       /* when a leader of the current term sent something; 0: never */
    uint64_t own_first;     /* first entry proposed since we lead; 0: none */
    struct peer_list peers; /* answer of consensus_peers() */
};

static int
code_of(int rv)
{
    switch (rv) {
    case 0:
        return 0;
    case RAFT_NOTLEADER:
    case RAFT_LEADERSHIPLOST:
        return -ERR_NOT_LEADER;
    case RAFT_CANTCHANGE:
    case RAFT_BUSY:
        return -ERR_BUSY;
    case RAFT_NOSPACE:
        return -ENOSPC;
    case RAFT_BADID:
    case RAFT_BADROLE:
    case RAFT_INVALID:
        return -ERR_INVALID;
    case RAFT_MALFORMED:
    case RAFT_CORRUPT:
    case RAFT_SHUTDOWN: /* a committed entry conflicts with the leader's */
        return -ERR_CORRUPT;
    case RAFT_NOMEM:
        return -ENOMEM;
    default:
        return -ERR_INTERNAL;
    }
}

static enum consensus_role
role_of(unsigned short state)
{
    return state == RAFT_LEADER      ? CONSENSUS_LEADER
           : state == RAFT_CANDIDATE ? CONSENSUS_CANDIDATE
                                     : CONSENSUS_FOLLOWER;
}

/* --- configurations --- */

static int
conf_to_raft(const struct peer_list *l, struct raft_configuration *ret)
{
    raft_configuration_init(ret);
    for (size_t i = 0; i < l->n; i++) {
        static const int roles[] = {
            [PEER_STANDBY] = RAFT_STANDBY, [PEER_VOTER] = RAFT_VOTER, [PEER_SPARE] = RAFT_SPARE};
        if (l->v[i].role > PEER_SPARE || l->v[i].addr == NULL ||
            raft_configuration_add(ret, l->v[i].id, l->v[i].addr, roles[l->v[i].role]) != 0) {
            raft_configuration_close(ret);
            return -ERR_INVALID;
        }
    }
    return 0;
}

static void
conf_from_raft(const void *ctx, const struct raft_configuration *c, struct peer_list *ret)
{
    ret->v = mem_array(ctx, struct peer, c->n);
    ret->n = c->n;
    for (unsigned i = 0; i < c->n; i++) {
        int role = c->servers[i].role;
        ret->v[i] = (struct peer){.id = c->servers[i].id,
                                  .addr = mem_strdup(ret->v, c->servers[i].address),
                                  .role = role == RAFT_VOTER     ? PEER_VOTER
                                          : role == RAFT_STANDBY ? PEER_STANDBY
                                                                 : PEER_SPARE};
    }
}

/* --- stepping --- */

static void
message_out(const struct consensus *c, const struct raft_message *m, struct peer_msg *o)
{
    *o = (struct peer_msg){.peer = m->server_id, .addr = m->server_address};
    switch (m->type) {
    case RAFT_APPEND_ENTRIES:
        o->type = MSG_APPEND;
        o->term = m->append_entries.term;
        o->index = m->append_entries.prev_log_index;
        o->log_term = m->append_entries.prev_log_term;
        o->commit = m->append_entries.leader_commit;
        o->n = m->append_entries.n_entries;
        break;
    case RAFT_APPEND_ENTRIES_RESULT:
        o->type = MSG_APPEND_RESULT;
        o->term = m->append_entries_result.term;
        o->rejected = m->append_entries_result.rejected;
        o->last = m->append_entries_result.last_log_index;
        break;
    case RAFT_REQUEST_VOTE:
        o->type = MSG_VOTE;
        o->term = m->request_vote.term;
        o->index = m->request_vote.last_log_index;
        o->log_term = m->request_vote.last_log_term;
        o->disrupt = m->request_vote.disrupt_leader;
        o->pre_vote = m->request_vote.pre_vote;
        break;
    case RAFT_REQUEST_VOTE_RESULT:
        o->type = MSG_VOTE_RESULT;
        o->term = m->request_vote_result.term;
        o->granted = m->request_vote_result.vote_granted;
        o->pre_vote = m->request_vote_result.pre_vote;
        /* Guard 5. */
        if (o->pre_vote && !o->granted)
            o->term = c->r.current_term;
        break;
    case RAFT_INSTALL_SNAPSHOT:
        o->type = MSG_SNAPSHOT;
        o->term = m->install_snapshot.term;
        o->index = m->install_snapshot.last_index;
        o->log_term = m->install_snapshot.last_term;
        o->conf_index = m->install_snapshot.conf_index;
        break;
    case RAFT_TIMEOUT_NOW:
        o->type = MSG_TIMEOUT_NOW;
        o->term = m->timeout_now.term;
        o->index = m->timeout_now.last_log_index;
        o->log_term = m->timeout_now.last_log_term;
        break;
    }
}

/* A leader without peers has nobody to send heartbeats to and no quorum to lose: it needs no timer.
 */
static int64_t
next_timeout(const struct consensus *c)
{
    if (c->r.configuration.n == 0)
        return CONSENSUS_NEVER;
    if (c->r.state == RAFT_LEADER && c->r.configuration.n == 1)
        return CONSENSUS_NEVER;
    raft_time t = raft_timeout(&c->r);
    return t > INT64_MAX ? CONSENSUS_NEVER : (int64_t)t;
}

static void
entries_out(struct consensus *c, const void *ctx, const struct raft_update *in,
            struct consensus_update *u)
{
    struct record *r = mem_array(ctx, struct record, in->entries.n);
    for (unsigned i = 0; i < in->entries.n; i++) {
        const struct raft_entry *en = &in->entries.batch[i];
        r[i] = (struct record){.index = in->entries.index + i,
                               .term = en->term,
                               .type = en->type == RAFT_COMMAND   ? RECORD_COMMAND
                                       : en->type == RAFT_BARRIER ? RECORD_BARRIER
                                                                  : RECORD_CONFIG,
                               .data = en->buf.base,
                               .n = en->buf.len};
    }
    u->first = in->entries.index;
    u->entries = r;
    u->n = in->entries.n;
    if (c->r.state == RAFT_LEADER && c->own_first == 0)
        c->own_first = in->entries.index;
}

static int
step(struct consensus *c, struct raft_event *ev)
{
    struct raft_update in;
    memset(&in, 0, sizeof(in));
    uint64_t term = c->r.current_term;
    uint64_t vote = c->r.voted_for;
    uint64_t commit = ev->type != RAFT_START ? raft_commit_index(&c->r) : 0;
    int rv = raft_step(&c->r, ev, &in);
    if (rv != 0)
        return code_of(rv);
    if (c->r.commit_index < commit) /* Guard 8. */
        c->r.commit_index = commit;
    auto_mem void *tmp = mem_ctx("consensus update");
    struct consensus_update u = {.term = c->r.current_term, .vote = c->r.voted_for};
    /* Compared, not read from the flags: START sets none. */
    u.hard = ev->type == RAFT_START ? c->new_term : term != u.term || vote != u.vote;
    u.role = role_of(c->r.state);
    u.role_changed = (in.flags & (RAFT_UPDATE_STATE)) != 0;
    if (u.role_changed)
        c->own_first = 0;
    if (in.flags & (RAFT_UPDATE_ENTRIES))
        entries_out(c, tmp, &in, &u);
    if (in.flags & (RAFT_UPDATE_MESSAGES)) {
        struct peer_msg *msgs = mem_array(tmp, struct peer_msg, in.messages.n);
        for (unsigned i = 0; i < in.messages.n; i++)
            if (in.messages.batch[i].server_id != 0) /* an answer to a leader that is forgotten */
                message_out(c, &in.messages.batch[i], &msgs[u.n_msgs++]);
        u.msgs = msgs;
    }
    struct consensus_snapshot snap;
    if (in.flags & (RAFT_UPDATE_SNAPSHOT)) {
        snap = (struct consensus_snapshot){.index = in.snapshot.metadata.index,
                                           .term = in.snapshot.metadata.term,
                                           .conf_index = in.snapshot.metadata.configuration_index};
        conf_from_raft(tmp, &in.snapshot.metadata.configuration, &snap.conf);
        raft_configuration_close(&in.snapshot.metadata.configuration);
        u.install = &snap;
    }
    u.commit = raft_commit_index(&c->r);
    if (ev->type != RAFT_START) { /* what the paper promises, whatever the library did */
        ASSERT(u.term >= term && (u.term > term || vote == 0 || u.vote == vote));
        ASSERT(u.first == 0 || u.first > commit); /* nothing committed is replaced */
        ASSERT(u.commit >= commit);
    }
    u.timeout_ms = next_timeout(c);
    c->on_update(c->arg, &u);
    /* What became leader by election may have appended the library's barrier: its data is ours. */
    if ((in.flags & (RAFT_UPDATE_ENTRIES)) && in.entries.batch == &c->r.barrier) {
        raft_free(c->r.barrier.buf.base);
        c->r.barrier.buf.base = NULL;
    }
    /* Tells receive() who owns the batch. */
    ev->unused = (in.flags & (RAFT_UPDATE_ENTRIES)) != 0;
    return 0;
}

static struct raft_event
event(enum raft_event_type type, int64_t now)
{
    struct raft_event ev;
    memset(&ev, 0, sizeof(ev));
    ev.type = type;
    ev.time = (raft_time)now;
    return ev;
}

struct consensus *
consensus_new(const struct consensus_opts *o, consensus_update_fn *on_update, void *arg)
{
    struct consensus *c = mem_new(NULL, struct consensus);
    c->on_update = on_update;
    c->arg = arg;
    ASSERT(raft_init(&c->r, NULL, NULL, o->id, o->addr) == 0);
    c->r.tracer = NULL;
    raft_seed(&c->r, o->seed);
    raft_set_pre_vote(&c->r, true);
    raft_set_election_timeout(&c->r, o->election_ms);
    raft_set_heartbeat_timeout(&c->r, o->heartbeat_ms);
    raft_set_install_snapshot_timeout(&c->r, SNAPSHOT_TIMEOUT_MS); /* guard 13 */
    raft_set_max_inflight_entries(&c->r, CONSENSUS_INFLIGHT_MAX);
    return c;
}

void
consensus_free(struct consensus *c)
{
    if (c == NULL)
        return;
    raft_close(&c->r, NULL);
    mem_free(c);
}

/* --- entries in --- */

static enum raft_entry_type
type_in(enum record_type t)
{
    return t == RECORD_COMMAND ? RAFT_COMMAND : t == RECORD_BARRIER ? RAFT_BARRIER : RAFT_CHANGE;
}

/* An array of entries whose data is copied to one batch. Free with entries_free(). */
static struct raft_entry *
entries_in(const struct record *r, size_t n, uint64_t term, bool all_data)
{
    size_t size = 8;
    for (size_t i = 0; i < n; i++)
        size += all_data || r[i].type == RECORD_CONFIG ? r[i].n : 0;
    uint8_t *batch = raft_malloc(size);
    struct raft_entry *e = raft_malloc(n * sizeof(*e));
    ASSERT(batch != NULL && e != NULL);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t len = all_data || r[i].type == RECORD_CONFIG ? r[i].n : 0;
        if (len > 0)
            memcpy(batch + at, r[i].data, len);
        e[i] = (struct raft_entry){.term = term != 0 ? term : r[i].term,
                                   .type = type_in(r[i].type),
                                   .buf = {.base = batch + at, .len = len},
                                   .batch = batch};
        at += len;
    }
    return e;
}

static void
entries_free(struct raft_entry *e, bool batch)
{
    if (e == NULL)
        return;
    if (batch)
        raft_free(e[0].batch);
    raft_free(e);
}

/* Borrowed: submitted entries stay ours, and the library reads their data where it is a
 * configuration. */
static struct raft_entry *
entries_lent(const struct record *r, size_t n, uint64_t term)
{
    struct raft_entry *e = raft_malloc(n * sizeof(*e));
    ASSERT(e != NULL);
    for (size_t i = 0; i < n; i++)
        e[i] = (struct raft_entry){.term = term,
                                   .type = type_in(r[i].type),
                                   .buf = {.base = (void *)(uintptr_t)r[i].data, .len = r[i].n}};
    return e;
}

static int
metadata_in(const struct consensus_snapshot *s, struct raft_snapshot_metadata *m)
{
    m->index = s->index;
    m->term = s->term;
    m->configuration_index = s->conf_index;
    if (!consensus_conf_valid(&s->conf))
        return -ERR_INVALID;
    return conf_to_raft(&s->conf, &m->configuration);
}

/* Guard 9: this server is the only voter of the configuration that it starts with. */
static bool
sole_voter(const struct consensus *c, const struct consensus_start *s)
{
    auto_mem void *tmp = mem_ctx("sole voter");
    struct peer_list conf = s->snapshot != NULL ? s->snapshot->conf : (struct peer_list){NULL, 0};
    size_t voters = 0;
    bool self = false;
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].type == RECORD_CONFIG)
            consensus_conf_decode(tmp, s->entries[i].data, s->entries[i].n, &conf);
    for (size_t i = 0; i < conf.n; i++) {
        voters += conf.v[i].role == PEER_VOTER;
        self |= conf.v[i].role == PEER_VOTER && conf.v[i].id == c->r.id;
    }
    return voters == 1 && self;
}

int
consensus_begin(struct consensus *c, int64_t now, const struct consensus_start *s)
{
    struct raft_event ev = event(RAFT_START, now);
    struct raft_snapshot_metadata meta;
    c->new_term = sole_voter(c, s);
    ev.start.term = c->new_term ? s->term + 1 : s->term;
    ev.start.voted_for = c->new_term ? c->r.id : s->vote;
    if (s->snapshot != NULL) {
        int rc = metadata_in(s->snapshot, &meta);
        if (rc < 0)
            return rc;
        ev.start.metadata = &meta;
    }
    ev.start.start_index = s->first;
    ev.start.n_entries = (unsigned)s->n;
    if (s->n > 0)
        ev.start.entries = entries_in(s->entries, s->n, 0, false);
    int rc = step(c, &ev);
    if (rc == 0)
        entries_free(ev.start.entries, true);
    return rc; /* on failure the library has freed them */
}

int
consensus_timeout(struct consensus *c, int64_t now)
{
    struct raft_event ev = event(RAFT_TIMEOUT, now);
    if (c->r.state == RAFT_CANDIDATE && ev.time >= raft_timeout(&c->r)) { /* guard 14 */
        c->r.candidate_state.in_pre_vote = true;
        c->r.candidate_state.disrupt_leader = false;
    }
    return step(c, &ev);
}

int
consensus_persisted(struct consensus *c, int64_t now, uint64_t index)
{
    /* A truncation may have overtaken the report. */
    if (index <= c->r.last_stored || c->r.snapshot.installing)
        return 0;
    ASSERT(index <= raft_last_index(&c->r));
    struct raft_event ev = event(RAFT_PERSISTED_ENTRIES, now);
    ev.persisted_entries.index = index;
    return step(c, &ev);
}

int
consensus_propose(struct consensus *c, int64_t now, const struct record *r, size_t n)
{
    if (c->r.state != RAFT_LEADER)
        return -ERR_NOT_LEADER;
    ASSERT(n > 0);
    struct raft_event ev = event(RAFT_SUBMIT, now);
    ev.submit.entries = entries_lent(r, n, c->r.current_term);
    ev.submit.n = (unsigned)n;
    int rc = step(c, &ev);
    entries_free(ev.submit.entries, false);
    return rc;
}

int
consensus_config_applied(struct consensus *c, int64_t now, uint64_t index, const void *data,
                         size_t n)
{
    auto_mem void *tmp = mem_ctx("config applied");
    struct peer_list l;
    if (consensus_conf_decode(tmp, data, n, &l) < 0)
        return -ERR_CORRUPT;
    struct raft_event ev = event(RAFT_CONFIGURATION, now);
    ev.configuration.index = index;
    int rc = conf_to_raft(&l, &ev.configuration.conf);
    return rc < 0 ? rc : step(c, &ev);
}

int
consensus_snapshot_taken(struct consensus *c, int64_t now, const struct consensus_snapshot *s,
                         unsigned trailing)
{
    struct raft_event ev = event(RAFT_SNAPSHOT, now);
    ev.snapshot.trailing = trailing;
    int rc = metadata_in(s, &ev.snapshot.metadata);
    return rc < 0 ? rc : step(c, &ev);
}

int
consensus_installed(struct consensus *c, int64_t now, const struct consensus_snapshot *s)
{
    if (!c->r.snapshot.installing || c->r.state != RAFT_FOLLOWER)
        return -ERR_INVALID;
    struct raft_event ev = event(RAFT_PERSISTED_SNAPSHOT, now);
    ev.persisted_snapshot.last = true;
    int rc = metadata_in(s, &ev.persisted_snapshot.metadata);
    return rc < 0 ? rc : step(c, &ev);
}

/* --- messages in --- */

static int
receive_append(struct consensus *c, int64_t now, const struct peer_msg *m, size_t from, size_t n)
{
    struct raft_message rm = {
        .type = RAFT_APPEND_ENTRIES, .server_id = m->peer, .server_address = m->addr};
    uint64_t prev = m->index + from;
    rm.append_entries = (struct raft_append_entries){
        .term = m->term,
        .prev_log_index = prev,
        .prev_log_term = from > 0 ? m->entries[from - 1].term : m->log_term,
        .leader_commit = m->commit,
        .n_entries = (unsigned)n};
    if (n > 0)
        rm.append_entries.entries = entries_in(m->entries + from, n, 0, true);
    struct raft_event ev = event(RAFT_RECEIVE, now);
    ev.receive.message = &rm;
    int rc = step(c, &ev);
    if (n > 0)
        entries_free(rm.append_entries.entries, rc == 0 && ev.unused);
    return rc;
}

/* Guard 2: the part of the message that lies behind our snapshot. */
static struct peer_msg
clamp_append(const struct consensus *c, const struct peer_msg *m)
{
    struct peer_msg r = *m;
    uint64_t snap = c->r.trail.snapshot.index;
    if (m->term < c->r.current_term || m->index >= snap)
        return r;
    size_t skip = snap - m->index < m->n ? (size_t)(snap - m->index) : m->n;
    r.entries = m->entries + skip;
    r.n = m->n - skip;
    r.index = snap;
    r.log_term = c->r.trail.snapshot.term;
    return r;
}

/* Guard 1: a configuration entry goes alone. */
static int
receive_split(struct consensus *c, int64_t now, const struct peer_msg *m)
{
    size_t from = 0;
    do {
        size_t n = 0;
        while (from + n < m->n && m->entries[from + n].type != RECORD_CONFIG)
            n++;
        if (n == 0 && from < m->n)
            n = 1;
        int rc = receive_append(c, now, m, from, n);
        if (rc != 0)
            return rc;
        from += n;
    } while (from < m->n);
    ASSERT(from == m->n);
    return 0;
}

static void
forget_leader(struct consensus *c)
{
    c->r.follower_state.current_leader.id = 0;
    raft_free(c->r.follower_state.current_leader.address);
    c->r.follower_state.current_leader.address = NULL;
}

/* Guard 4: while a vote is asked for, our own configuration says that we may vote. */
static int
receive_vote(struct consensus *c, struct raft_event *ev)
{
    struct raft_configuration real = c->r.configuration;
    if (c->r.state != RAFT_FOLLOWER)
        return step(c, ev);
    /* Guard 10. */
    if ((int64_t)ev->time - c->heard_ms >= (int64_t)c->r.election_timeout &&
        !c->r.snapshot.installing)
        forget_leader(c);
    struct raft_server *servers = mem_array(NULL, struct raft_server, real.n + 1);
    bool found = false;
    for (unsigned i = 0; i < real.n; i++) {
        servers[i] = real.servers[i];
        if (servers[i].id == c->r.id) {
            servers[i].role = RAFT_VOTER;
            found = true;
        }
    }
    unsigned n = real.n;
    if (!found)
        servers[n++] =
            (struct raft_server){.id = c->r.id, .address = c->r.address, .role = RAFT_VOTER};
    c->r.configuration = (struct raft_configuration){.servers = servers, .n = n};
    int rc = step(c, ev);
    c->r.configuration = real;
    mem_free(servers);
    return rc;
}

/* A rejection that was overtaken by the acknowledgement of the same entry or a later one: in probe
 * mode the library takes it, its next index falls below the match index, and that peer gets empty
 * messages until the end of the term (found by test-raft-sim, seed 2249). */
static bool
stale_rejection(const struct consensus *c, const struct peer_msg *m)
{
    raft_index match = 0;
    return m->rejected > 0 && m->term == c->r.current_term && c->r.state == RAFT_LEADER &&
           raft_match_index(&c->r, m->peer, &match) == 0 && m->rejected <= match;
}

static int
receive_other(struct consensus *c, int64_t now, const struct peer_msg *m)
{
    struct raft_message rm;
    memset(&rm, 0, sizeof(rm));
    rm.server_id = m->peer;
    rm.server_address = m->addr;
    struct raft_event ev = event(RAFT_RECEIVE, now);
    ev.receive.message = &rm;
    switch (m->type) {
    case MSG_APPEND_RESULT:
        if (stale_rejection(c, m))
            return 0;
        rm.type = RAFT_APPEND_ENTRIES_RESULT;
        rm.append_entries_result = (struct raft_append_entries_result){
            .version = 1, .term = m->term, .rejected = m->rejected, .last_log_index = m->last};
        return step(c, &ev);
    case MSG_VOTE:
        rm.type = RAFT_REQUEST_VOTE;
        rm.request_vote = (struct raft_request_vote){.version = 2,
                                                     .term = m->term,
                                                     .candidate_id = m->peer,
                                                     .last_log_index = m->index,
                                                     .last_log_term = m->log_term,
                                                     .disrupt_leader = m->disrupt,
                                                     .pre_vote = m->pre_vote};
        return receive_vote(c, &ev);
    case MSG_VOTE_RESULT:
        /* Too late, and in another state the library reads a union member that is not there. */
        if (c->r.state != RAFT_CANDIDATE)
            return 0;
        /* A granted pre-vote of a term beyond the one asked for cannot be. */
        if (m->pre_vote && m->granted && m->term > c->r.current_term + 1)
            return 0;
        rm.type = RAFT_REQUEST_VOTE_RESULT;
        rm.request_vote_result = (struct raft_request_vote_result){
            .version = 2, .term = m->term, .vote_granted = m->granted, .pre_vote = m->pre_vote};
        return step(c, &ev);
    case MSG_SNAPSHOT:
        rm.type = RAFT_INSTALL_SNAPSHOT;
        rm.install_snapshot = (struct raft_install_snapshot){.version = 0,
                                                             .term = m->term,
                                                             .last_index = m->index,
                                                             .last_term = m->log_term,
                                                             .conf_index = m->conf_index};
        if (conf_to_raft(&m->conf, &rm.install_snapshot.conf) < 0)
            return -ERR_INVALID;
        if (c->r.snapshot.installing) { /* the library would not free the configuration */
            raft_configuration_close(&rm.install_snapshot.conf);
            return 0;
        }
        return step(c, &ev);
    default:
        rm.type = RAFT_TIMEOUT_NOW;
        rm.timeout_now = (struct raft_timeout_now){.version = 1,
                                                   .term = m->term,
                                                   .last_log_index = m->index,
                                                   .last_log_term = m->log_term};
        return step(c, &ev);
    }
}

int
consensus_receive(struct consensus *c, int64_t now, const struct peer_msg *m, struct err *e)
{
    uint64_t leads = c->r.state == RAFT_LEADER ? c->r.current_term : 0;
    int rc = consensus_msg_check(c->r.id, leads, m, e);
    if (rc < 0)
        return rc;
    if ((m->type == MSG_APPEND || m->type == MSG_SNAPSHOT) && m->term >= c->r.current_term)
        c->heard_ms = now;
    if (m->type != MSG_APPEND) {
        rc = receive_other(c, now, m);
    } else {
        struct peer_msg part = clamp_append(c, m);
        rc = receive_split(c, now, &part);
    }
    if (rc < 0)
        err_set(e, rc, "raft message of type %d from server %llu: %s", (int)m->type,
                (unsigned long long)m->peer, err_name(rc));
    return rc;
}

/* --- membership --- */

/* Servers of `conf` that are not as they are in the configuration, and those that are not in it. */
static size_t
members_changed(const struct consensus *c, const struct peer_list *conf)
{
    auto_mem void *tmp = mem_ctx("members changed");
    struct peer_list now;
    conf_from_raft(tmp, &c->r.configuration, &now);
    size_t changed = 0, same_ids = 0;
    for (size_t i = 0; i < conf->n; i++) {
        const struct peer *a = &conf->v[i], *b = NULL;
        for (size_t k = 0; k < now.n; k++)
            if (now.v[k].id == a->id)
                b = &now.v[k];
        changed += b == NULL || b->role != a->role || strcmp(b->addr, a->addr) != 0;
        same_ids += b != NULL;
    }
    return changed + now.n - same_ids;
}

int
consensus_change(struct consensus *c, int64_t now, const struct peer_list *conf, struct err *e)
{
    if (c->r.state != RAFT_LEADER)
        return err_set(e, -ERR_NOT_LEADER, "change the servers: not the leader");
    if (!consensus_conf_valid(conf))
        return err_set(e, -ERR_INVALID, "change the servers: the new configuration is invalid");
    bool stays = false;
    for (size_t i = 0; i < conf->n; i++)
        stays |= conf->v[i].id == c->r.id && conf->v[i].role == PEER_VOTER;
    if (!stays)
        return err_set(
            e, -ERR_CONFLICT,
            "change the servers: the leader cannot remove or demote itself; transfer the "
            "leadership to another server first");
    if (members_changed(c, conf) > 1) /* guard 12 */
        return err_set(
            e, -ERR_CONFLICT,
            "change the servers: more than one would be added, removed or changed: do it "
            "one after the other");
    if (c->own_first == 0 || c->r.commit_index < c->own_first)
        return err_set(e, -ERR_BUSY,
                       "change the servers: no entry of this term is committed yet; try again");
    /* The quorum clock of a leader that had no peers stood still. */
    if (c->r.configuration.n == 1) {
        int rc = consensus_timeout(c, now);
        if (rc < 0)
            return err_set(e, rc, "change the servers: %s", err_name(rc));
    }
    auto_mem void *tmp = mem_ctx("change");
    struct record r = {.type = RECORD_CONFIG};
    void *data = NULL;
    int rc = consensus_conf_encode(tmp, conf, &data, &r.n);
    r.data = data;
    if (rc == 0)
        rc = consensus_propose(c, now, &r, 1);
    return rc < 0 ? err_set(e, rc, "change the servers: %s", err_name(rc)) : 0;
}

int
consensus_transfer(struct consensus *c, int64_t now, uint64_t id)
{
    if (c->r.state != RAFT_LEADER)
        return -ERR_NOT_LEADER;
    bool voter = false;
    for (unsigned i = 0; i < c->r.configuration.n; i++)
        voter |= c->r.configuration.servers[i].id == id &&
                 c->r.configuration.servers[i].role == RAFT_VOTER;
    if (!voter || id == c->r.id)
        return -ERR_INVALID;
    struct raft_event ev = event(RAFT_TRANSFER, now);
    ev.transfer.server_id = id;
    return step(c, &ev);
}

/* --- questions --- */

enum consensus_role
consensus_role(const struct consensus *c)
{
    return role_of(c->r.state);
}

const struct peer_list *
consensus_peers(struct consensus *c)
{
    mem_free(c->peers.v);
    conf_from_raft(c, &c->r.configuration, &c->peers);
    return &c->peers;
}

void
consensus_status(struct consensus *c, struct consensus_status *ret)
{
    *ret = (struct consensus_status){.role = role_of(c->r.state),
                                     .term = c->r.current_term,
                                     .last = raft_last_index(&c->r),
                                     .commit = c->r.commit_index,
                                     .heard_ms = c->heard_ms};
    if (c->r.state == RAFT_LEADER)
        ret->leader = c->r.id;
    else if (c->r.state == RAFT_FOLLOWER)
        ret->leader = c->r.follower_state.current_leader.id;
}

uint64_t
consensus_match(const struct consensus *c, uint64_t id)
{
    raft_index match = 0;
    return c->r.state == RAFT_LEADER && raft_match_index(&c->r, id, &match) == 0 ? match : 0;
}

int64_t
consensus_leader_gone(struct consensus *c, int64_t now, uint64_t id, unsigned after_ms)
{
    if (c->r.state != RAFT_FOLLOWER || id == 0 || c->r.follower_state.current_leader.id != id ||
        c->r.snapshot.installing)
        return next_timeout(c);
    forget_leader(c);
    c->r.election_timer_start =
        (raft_time)now + after_ms - c->r.follower_state.randomized_election_timeout;
    return next_timeout(c);
}
