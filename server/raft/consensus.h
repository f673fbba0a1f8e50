/* SPDX-License-Identifier: Apache-2.0
 *
 * Consensus: a facade over the pure core of libraft 0.22.1, raft_step(). An event goes in, updates
 * come out (on_update, synchronously, in order); it does no I/O and reads no clock. consensus.c
 * alone sees <raft.h> (consensus_int.h), so the core can be replaced.
 *
 * The owner of a struct consensus (the raft thread) does what an update says, in this order: make
 * term and vote durable; truncate and append entries (durable later: consensus_persisted); send
 * messages; apply entries that are committed *and* persisted; arm the timer.
 *
 * Fourteen defects of the library are contained here (pinned by tests/server/raft/test-consensus.c,
 * and 9, 10, 11, 13 by seeds of test-sim.c):
 *  1 a received AppendEntries is split so that a config change is alone in its part;
 *  2 an append that starts below our own snapshot is clamped to it;
 *  3 no config change before an entry of the current term is committed;
 *  4 a follower answers RequestVote whatever its own config says about itself;
 *  5 a denied pre-vote carries our real term;
 *  6 a leader does not remove or demote itself: it transfers first;
 *  7 a rejection overtaken by an acknowledgement is dropped;
 *  8 an append that ends before what is known to be committed does not take the commit index back;
 *  9 a sole voter begins in a new term: in its old one another may have led;
 * 10 a follower that has heard no leader for an election timeout has none, and does not deny votes;
 * 11 is the transport's: a configuration leaves only when it is durable here (struct peer_msg,
 *    entries);
 * 12 a change is of one server;
 * 13 a snapshot transfer that failed blocks its peer for 2 s, not for 30;
 * 14 a candidate whose election ran out asks for pre-votes again, or a removed one deposes each
 *    leader.
 * Its asserts are compiled out, so every field of a peer's message is checked before a step.
 */
#ifndef PADDOCK_SERVER_RAFT_CONSENSUS_H
#define PADDOCK_SERVER_RAFT_CONSENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "server/limits.h"
#include "server/raft/segment.h"

#define CONSENSUS_NEVER INT64_MAX

enum consensus_role { CONSENSUS_FOLLOWER, CONSENSUS_CANDIDATE, CONSENSUS_LEADER };

/* A member of the cluster's configuration. */
struct peer {
    uint64_t id; /* not 0 */
    const char *addr;
    enum { PEER_STANDBY, PEER_VOTER, PEER_SPARE } role;
};

struct peer_list {
    struct peer *v;
    size_t n;
};

enum peer_msg_type {
    MSG_APPEND = 1,
    MSG_APPEND_RESULT,
    MSG_VOTE,
    MSG_VOTE_RESULT,
    MSG_SNAPSHOT,
    MSG_TIMEOUT_NOW
};

/* A message to or from another server. Fields not named for its type are 0. */
struct peer_msg {
    enum peer_msg_type type;
    uint64_t peer; /* receiver, or sender */
    const char *addr;
    uint64_t term;
    uint64_t index; /* append: of the entry before; vote, timeout now: last; snapshot: its index */
    uint64_t log_term; /* term of that entry */
    uint64_t commit;   /* append */
    uint64_t rejected; /* append result: index that was refused, 0: accepted */
    uint64_t last;     /* append result */
    uint64_t stamp;    /* append: when it left; its result: of the newest one (core/lease.c) */
    bool disrupt;      /* vote: sent by leave of the leader */
    bool pre_vote;     /* vote, vote result */
    bool granted;      /* vote result */
    bool quiet; /* append: nothing is written; the next comes at the pace of a quiet cluster */
    /* Append. Outgoing: only `n`; the transport reads entries index + 1 .. index + n from the log.
     * They end before a configuration that is not durable here (guard 11).
     * Incoming: borrowed for the call; record.index is not used. */
    const struct record *entries;
    size_t n;
    struct peer_list conf; /* snapshot */
    uint64_t conf_index;
};

/* The part of a snapshot that consensus needs. */
struct consensus_snapshot {
    uint64_t index;
    uint64_t term;
    struct peer_list conf;
    uint64_t conf_index;
};

struct consensus_update {
    bool hard; /* term and vote changed */
    uint64_t term;
    uint64_t vote;
    uint64_t first; /* 0: no entries. Else: entries to append at `first`; what is stored there or
                     * behind is truncated first. record.index is filled. */
    const struct record *entries;
    size_t n;
    const struct peer_msg *msgs;
    size_t n_msgs;
    const struct consensus_snapshot *install; /* NULL: none; fetch, store, then _installed() */
    bool role_changed;
    enum consensus_role role;
    uint64_t commit;
    int64_t timeout_ms; /* when to call consensus_timeout(); CONSENSUS_NEVER: no timer needed */
};

typedef void consensus_update_fn(void *arg, const struct consensus_update *u);

struct consensus;

struct consensus_start {
    uint64_t term;
    uint64_t vote;
    const struct consensus_snapshot *snapshot; /* NULL: none */
    uint64_t first; /* index of entries[0]; snapshot index + 1 when n == 0 */
    const struct record *entries;              /* data of RECORD_CONFIG only */
    size_t n;
};

struct consensus_pace {
    unsigned election_ms;  /* a follower stands after this to twice this without a leader */
    unsigned heartbeat_ms; /* a leader says so much apart that it leads */
};

/* The paces of a server that runs. */
#define CONSENSUS_BUSY                                                                             \
    (struct consensus_pace){.election_ms = 300, .heartbeat_ms = 100}
#define CONSENSUS_QUIET                                                                            \
    (struct consensus_pace){.election_ms = 750, .heartbeat_ms = 500}
enum { CONSENSUS_QUIET_AFTER_MS = 3000 };

/* A leader to which nothing is proposed for `quiet_after_ms` and whose log is everywhere takes the
 * quiet pace, until something is; its followers take the pace that its last append names. A process
 * that ends is noticed at once at any pace (consensus_leader_gone). */
struct consensus_opts {
    uint64_t id;
    const char *addr; /* borrowed */
    uint32_t seed; /* of election timeouts */
    struct consensus_pace busy;
    struct consensus_pace quiet; /* slower than busy */
    unsigned quiet_after_ms;     /* 0: always busy */
};

/* All times are monotonic milliseconds. */
struct consensus *consensus_new(const struct consensus_opts *o, consensus_update_fn *on_update,
                                void *arg);
void consensus_free(struct consensus *c);

/* A sole voter is leader when this returns, of a new term. */
int consensus_begin(struct consensus *c, int64_t now, const struct consensus_start *s);
/* Forgets all but its options, and begins from there: as a process that ended and came back. */
int consensus_again(struct consensus *c, int64_t now, const struct consensus_start *s);
int consensus_timeout(struct consensus *c, int64_t now);
/* Entries up to `index` are durable. Not called while a snapshot is being installed. */
int consensus_persisted(struct consensus *c, int64_t now, uint64_t index);
/* Replicates commands or barriers. -ERR_NOT_LEADER. */
int consensus_propose(struct consensus *c, int64_t now, const struct record *r, size_t n);
/* A message of another server; -ERR_INVALID when it makes no sense (and nothing happened). */
int consensus_receive(struct consensus *c, int64_t now, const struct peer_msg *m, struct err *e);
/* A committed RECORD_CONFIG entry is applied. */
int consensus_config_applied(struct consensus *c, int64_t now, uint64_t index, const void *data,
                             size_t n);
/* A local snapshot up to `index` is stored; the log keeps `trailing` entries before it. */
int consensus_snapshot_taken(struct consensus *c, int64_t now, const struct consensus_snapshot *s,
                             unsigned trailing);
/* The snapshot of update.install is stored and the state replaced by it. */
int consensus_installed(struct consensus *c, int64_t now, const struct consensus_snapshot *s);

/* Proposes a new configuration (one server added, removed or changed). Guards 3, 6 and 12. */
int consensus_change(struct consensus *c, int64_t now, const struct peer_list *conf, struct err *e);
int consensus_transfer(struct consensus *c, int64_t now, uint64_t id);

enum consensus_role consensus_role(const struct consensus *c);
/* Servers in the current configuration, borrowed until the next call. */
const struct peer_list *consensus_peers(struct consensus *c);

struct consensus_status {
    enum consensus_role role;
    uint64_t leader; /* 0: none is known */
    uint64_t term;
    uint64_t last; /* entry of the log */
    uint64_t commit;
    int64_t heard_ms; /* when a leader was heard last; 0: never */
    bool quiet;       /* a leader at the quiet pace: all that it wrote is everywhere */
};
void consensus_status(struct consensus *c, struct consensus_status *ret);
/* Returns what that server is known to hold, to a leader; 0: nothing, or we do not lead. */
uint64_t consensus_match(const struct consensus *c, uint64_t id);
/* The process of server `id` is gone (its host refuses connections). If we follow it as leader, it
 * is forgotten, and we stand for election after `after_ms` more. Returns when to call
 * consensus_timeout(). */
int64_t consensus_leader_gone(struct consensus *c, int64_t now, uint64_t id, unsigned after_ms);

/* Whether a message to server `id` makes sense; `lead_term`: of a leader, its term; else 0
 * (message.c). */
int consensus_msg_check(uint64_t id, uint64_t lead_term, const struct peer_msg *m, struct err *e);

/* --- configurations (conf.c) --- */
/* 1..CONSENSUS_PEERS_MAX servers, ids unique and not 0, at least one voter. */
bool consensus_conf_valid(const struct peer_list *l);
/* The data of a RECORD_CONFIG entry, owned by ctx. */
int consensus_conf_encode(const void *ctx, const struct peer_list *conf, void **ret, size_t *ret_n);
/* -ERR_CORRUPT; what it gives is owned by ctx. */
int consensus_conf_decode(const void *ctx, const void *data, size_t n, struct peer_list *ret);
/* How many servers differ: those of `to` that are not in `from` as they are, and those of `from`
 * alone. */
size_t consensus_conf_changes(const struct peer_list *from, const struct peer_list *to);
/* Server `id` is the only voter of the configuration that it starts with. */
bool consensus_sole_voter(const struct consensus_start *s, uint64_t id);

void consensus_conf_copy(const void *ctx, const struct peer_list *from, struct peer_list *ret);

#endif
