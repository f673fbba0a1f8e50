/* SPDX-License-Identifier: Apache-2.0
 *
 * Consensus over libraft's raft_step(): see consensus.h.
 *
 * Ownership in 0.22.1 (read from its source): of an array given to raft_step() the caller frees the
 * array itself; the batch of received entries is freed by the library unless the update hands them
 * back to be persisted; submitted entries always stay ours; configurations given are taken over.
 */
#include "server/raft/consensus.h"

#include <string.h>

#include "common/mem.h"
#include "server/raft/consensus_int.h"

/* Guard 13: how long a peer to which a snapshot was sent may say nothing. */
enum { SNAPSHOT_TIMEOUT_MS = 2000 };

struct consensus {
    struct raft r;
    consensus_update_fn *on_update;
    void *arg;
    struct consensus_opts o;
    bool is_quiet;          /* of a leader: what its appends say */
    int64_t busy_ms;        /* of a leader: when something was proposed last */
    bool to_all;            /* the next step is a heartbeat of all followers */
    bool new_term;          /* guard 9: the start made one */
    int64_t heard_ms;       /* when a leader of the current term sent something; 0: never */
    uint64_t own_first;     /* first entry proposed since we lead; 0: none */
    struct peer_list peers; /* answer of consensus_peers() */
};

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
        o->quiet = c->is_quiet;
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

/* --- pace --- */

static void
set_pace(struct consensus *c, const struct consensus_pace *p)
{
    raft_set_heartbeat_timeout(&c->r, p->heartbeat_ms);
    if (c->r.election_timeout != p->election_ms)
        raft_set_election_timeout(&c->r, p->election_ms); /* draws a timeout */
}

static bool
is_slow(const struct consensus *c)
{
    return c->r.election_timeout != c->o.busy.election_ms;
}

/* Sets a leader's pace. When nothing was proposed for a while and each server has what was, its
 * appends say so, and a few appends later they are fewer: their receivers know by then. True: now
 * they are. */
static bool
leader_pace(struct consensus *c, int64_t now)
{
    raft_index last = raft_last_index(&c->r), match = 0;
    int64_t still = now - c->busy_ms - (int64_t)c->o.quiet_after_ms;
    bool all = c->r.commit_index == last;
    for (unsigned i = 0; i < c->r.configuration.n && all; i++)
        all = raft_match_index(&c->r, c->r.configuration.servers[i].id, &match) == 0 &&
              match == last;
    c->is_quiet = all && c->o.quiet_after_ms != 0 && still >= 0;
    bool slow = c->is_quiet && still >= (int64_t)c->o.busy.election_ms;
    bool was_slow = is_slow(c);
    set_pace(c, slow ? &c->o.quiet : &c->o.busy);
    return slow && !was_slow;
}

/* The quorum clock went slower until now. */
static void
leader_busy(struct consensus *c, int64_t now)
{
    if (is_slow(c))
        c->r.election_timer_start = (raft_time)now;
    c->busy_ms = now;
    c->is_quiet = false;
    set_pace(c, &c->o.busy);
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
consensus_step(struct consensus *c, struct raft_event *ev)
{
    struct raft_update in;
    memset(&in, 0, sizeof(in));
    uint64_t term = c->r.current_term;
    uint64_t vote = c->r.voted_for;
    uint64_t commit = ev->type != RAFT_START ? raft_commit_index(&c->r) : 0;
    unsigned heartbeat = c->r.heartbeat_timeout;
    if (TAKE(c->to_all))
        c->r.heartbeat_timeout = 0;
    int rv = raft_step(&c->r, ev, &in);
    c->r.heartbeat_timeout = heartbeat;
    if (rv != 0)
        return library_code(rv);
    if (c->r.commit_index < commit) /* Guard 8. */
        c->r.commit_index = commit;
    auto_mem void *tmp = mem_ctx("consensus update");
    struct consensus_update u = {.term = c->r.current_term, .vote = c->r.voted_for};
    /* Compared, not read from the flags: START sets none. */
    u.hard = ev->type == RAFT_START ? c->new_term : term != u.term || vote != u.vote;
    u.role = library_role(c->r.state);
    u.role_changed = (in.flags & (RAFT_UPDATE_STATE)) != 0;
    if (u.role_changed)
        c->own_first = 0;
    if (u.role_changed && u.role == CONSENSUS_LEADER)
        leader_busy(c, (int64_t)ev->time);
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
        library_conf_read(tmp, &in.snapshot.metadata.configuration, &snap.conf);
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
    /* an election won may have appended the library's barrier: its data is ours. */
    if ((in.flags & (RAFT_UPDATE_ENTRIES)) && in.entries.batch == &c->r.barrier) {
        raft_free(c->r.barrier.buf.base);
        c->r.barrier.buf.base = NULL;
    }
    /* Tells receive() who owns the batch. */
    ev->unused = (in.flags & (RAFT_UPDATE_ENTRIES)) != 0;
    return 0;
}

static struct raft_event
consensus_event(enum raft_event_type type, int64_t now)
{
    struct raft_event ev;
    memset(&ev, 0, sizeof(ev));
    ev.type = type;
    ev.time = (raft_time)now;
    return ev;
}

static void
begin_empty(struct consensus *c)
{
    ASSERT(raft_init(&c->r, NULL, NULL, c->o.id, c->o.addr) == 0);
    c->r.tracer = NULL;
    raft_seed(&c->r, c->o.seed);
    raft_set_pre_vote(&c->r, true);
    set_pace(c, &c->o.busy);
    raft_set_install_snapshot_timeout(&c->r, SNAPSHOT_TIMEOUT_MS); /* guard 13 */
    raft_set_max_inflight_entries(&c->r, CONSENSUS_INFLIGHT_MAX);
}

struct consensus *
consensus_new(const struct consensus_opts *o, consensus_update_fn *on_update, void *arg)
{
    struct consensus *c = mem_new(NULL, struct consensus);
    ASSERT(o->quiet_after_ms == 0 || o->quiet.election_ms > o->busy.election_ms);
    *c = (struct consensus){.on_update = on_update, .arg = arg, .o = *o};
    begin_empty(c);
    return c;
}

int
consensus_again(struct consensus *c, int64_t now, const struct consensus_start *s)
{
    raft_close(&c->r, NULL);
    talloc_free_children(c);
    *c = (struct consensus){.on_update = c->on_update, .arg = c->arg, .o = c->o};
    begin_empty(c);
    return consensus_begin(c, now, s);
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
    return consensus_conf_valid(&s->conf) ? library_conf(&s->conf, &m->configuration)
                                          : -ERR_INVALID;
}

int
consensus_begin(struct consensus *c, int64_t now, const struct consensus_start *s)
{
    struct raft_event ev = consensus_event(RAFT_START, now);
    struct raft_snapshot_metadata meta;
    c->new_term = consensus_sole_voter(s, c->r.id); /* guard 9 */
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
    int rc = consensus_step(c, &ev);
    if (rc == 0)
        entries_free(ev.start.entries, true);
    return rc; /* on failure the library has freed them */
}

int
consensus_timeout(struct consensus *c, int64_t now)
{
    struct raft_event ev = consensus_event(RAFT_TIMEOUT, now);
    bool due = ev.time >= raft_timeout(&c->r);
    if (c->r.state == RAFT_LEADER)
        c->to_all = leader_pace(c, now); /* and from now on it is one turn */
    else if (due) /* elections are quick once they began */
        set_pace(c, &c->o.busy);
    if (c->r.state == RAFT_CANDIDATE && due) { /* guard 14 */
        c->r.candidate_state.in_pre_vote = true;
        c->r.candidate_state.disrupt_leader = false;
    }
    return consensus_step(c, &ev);
}

int
consensus_persisted(struct consensus *c, int64_t now, uint64_t index)
{
    /* A truncation may have overtaken the report. */
    if (index <= c->r.last_stored || c->r.snapshot.installing)
        return 0;
    ASSERT(index <= raft_last_index(&c->r));
    struct raft_event ev = consensus_event(RAFT_PERSISTED_ENTRIES, now);
    ev.persisted_entries.index = index;
    return consensus_step(c, &ev);
}

int
consensus_propose(struct consensus *c, int64_t now, const struct record *r, size_t n)
{
    if (c->r.state != RAFT_LEADER)
        return -ERR_NOT_LEADER;
    ASSERT(n > 0);
    struct raft_event ev = consensus_event(RAFT_SUBMIT, now);
    ev.submit.entries = entries_lent(r, n, c->r.current_term);
    ev.submit.n = (unsigned)n;
    /* the library lets a probed server wait for a heartbeat, and probes servers not heard in a lull
     */
    c->to_all = now - c->busy_ms >= (int64_t)c->o.busy.heartbeat_ms;
    leader_busy(c, now);
    int rc = consensus_step(c, &ev);
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
    struct raft_event ev = consensus_event(RAFT_CONFIGURATION, now);
    ev.configuration.index = index;
    int rc = library_conf(&l, &ev.configuration.conf);
    return rc < 0 ? rc : consensus_step(c, &ev);
}

int
consensus_snapshot_taken(struct consensus *c, int64_t now, const struct consensus_snapshot *s,
                         unsigned trailing)
{
    struct raft_event ev = consensus_event(RAFT_SNAPSHOT, now);
    ev.snapshot.trailing = trailing;
    int rc = metadata_in(s, &ev.snapshot.metadata);
    return rc < 0 ? rc : consensus_step(c, &ev);
}

int
consensus_installed(struct consensus *c, int64_t now, const struct consensus_snapshot *s)
{
    if (!c->r.snapshot.installing || c->r.state != RAFT_FOLLOWER)
        return -ERR_INVALID;
    struct raft_event ev = consensus_event(RAFT_PERSISTED_SNAPSHOT, now);
    ev.persisted_snapshot.last = true;
    int rc = metadata_in(s, &ev.persisted_snapshot.metadata);
    return rc < 0 ? rc : consensus_step(c, &ev);
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
    struct raft_event ev = consensus_event(RAFT_RECEIVE, now);
    ev.receive.message = &rm;
    int rc = consensus_step(c, &ev);
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
receive_split(struct consensus *c, int64_t now, const struct peer_msg *whole)
{
    const struct peer_msg part = clamp_append(c, whole), *m = &part;
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
        return consensus_step(c, ev);
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
    int rc = consensus_step(c, ev);
    c->r.configuration = real;
    mem_free(servers);
    return rc;
}

/* Guard 7: in probe mode the library takes it, its next index falls below the match index, and that
 * peer gets empty messages until the end of the term. */
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
    struct raft_event ev = consensus_event(RAFT_RECEIVE, now);
    ev.receive.message = &rm;
    switch (m->type) {
    case MSG_APPEND_RESULT:
        if (stale_rejection(c, m))
            return 0;
        rm.type = RAFT_APPEND_ENTRIES_RESULT;
        rm.append_entries_result = (struct raft_append_entries_result){
            .version = 1, .term = m->term, .rejected = m->rejected, .last_log_index = m->last};
        return consensus_step(c, &ev);
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
        return consensus_step(c, &ev);
    case MSG_SNAPSHOT:
        rm.type = RAFT_INSTALL_SNAPSHOT;
        rm.install_snapshot = (struct raft_install_snapshot){.version = 0,
                                                             .term = m->term,
                                                             .last_index = m->index,
                                                             .last_term = m->log_term,
                                                             .conf_index = m->conf_index};
        if (library_conf(&m->conf, &rm.install_snapshot.conf) < 0)
            return -ERR_INVALID;
        if (c->r.snapshot.installing) { /* the library would not free the configuration */
            raft_configuration_close(&rm.install_snapshot.conf);
            return 0;
        }
        return consensus_step(c, &ev);
    default:
        rm.type = RAFT_TIMEOUT_NOW;
        rm.timeout_now = (struct raft_timeout_now){.version = 1,
                                                   .term = m->term,
                                                   .last_log_index = m->index,
                                                   .last_log_term = m->log_term};
        return consensus_step(c, &ev);
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
    if (m->type == MSG_APPEND && m->term >= c->r.current_term && c->o.quiet_after_ms != 0)
        set_pace(c, m->quiet ? &c->o.quiet : &c->o.busy);
    rc = m->type == MSG_APPEND ? receive_split(c, now, m) : receive_other(c, now, m);
    if (rc < 0)
        err_set(e, rc, "raft message of type %d from server %llu: %s", (int)m->type,
                (unsigned long long)m->peer, err_name(rc));
    return rc;
}

/* --- membership --- */

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
    auto_mem void *tmp = mem_ctx("change");
    struct peer_list old; /* not consensus_peers(): the caller's texts may be from there */
    library_conf_read(tmp, &c->r.configuration, &old);
    if (consensus_conf_changes(&old, conf) > 1) /* guard 12 */
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
    struct raft_event ev = consensus_event(RAFT_TRANSFER, now);
    ev.transfer.server_id = id;
    return consensus_step(c, &ev);
}

/* --- questions --- */

enum consensus_role
consensus_role(const struct consensus *c)
{
    return library_role(c->r.state);
}

const struct peer_list *
consensus_peers(struct consensus *c)
{
    mem_free(c->peers.v);
    library_conf_read(c, &c->r.configuration, &c->peers);
    return &c->peers;
}

void
consensus_status(struct consensus *c, struct consensus_status *ret)
{
    *ret = (struct consensus_status){.role = library_role(c->r.state),
                                     .term = c->r.current_term,
                                     .last = raft_last_index(&c->r),
                                     .commit = c->r.commit_index,
                                     .heard_ms = c->heard_ms,
                                     .quiet = c->r.state == RAFT_LEADER && c->is_quiet};
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
