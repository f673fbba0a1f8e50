/* SPDX-License-Identifier: Apache-2.0
 *
 * The core in two threads: raft steps consensus and feeds the log writer; apply applies what is
 * committed and durable, a table transaction per batch, and tells who follows the log. Both sleep
 * without ticking when there is nothing to do (a sole server has no Raft timer at all). How they
 * meet: core_int.h.
 *
 * Opened and closed by server.c; the thread-safe calls below are what everybody else sees through
 * server.h.
 */
#ifndef PADDOCK_SERVER_CORE_CORE_H
#define PADDOCK_SERVER_CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "server/fsm/fsm.h"
#include "server/env.h"
#include "server/propose.h"
#include "server/raft/consensus.h"
#include "server/state/state.h"
#include "server/state/write.h"

struct core;
struct core_msg;

/* The way to the other servers. Called on the core's threads; must not block. */
struct core_net {
    /* Takes the memory of a body (server/raft/wire.h). False: too much waits for that server
     * already; the body is dropped, which consensus survives. */
    bool (*send)(void *arg, uint64_t to, const char *addr, struct buf *body);
    /* This server follows another leader, or none, or leads itself (twice: when it is elected, and
     * when it serves), or not any more. */
    void (*leader_changed)(void *arg);
    /* The leader's state, which took the place of this core's log, cannot be opened while the
     * process runs: it is to begin again. Does not return, or the core does nothing more. */
    void (*begin_again)(void *arg);
    void *arg;
};

struct core_opts {
    const char *dir;     /* ours: raft/ and state/ are made below it */
    const char *addr;    /* "ip:port" of this server */
    const char *boot_id; /* NULL: the kernel's */
    size_t state_max;    /* bytes that the state may use */
    size_t segment_bytes;
    uint64_t snapshot_entries;
    uint64_t snapshot_bytes;
    uint64_t trailing;    /* entries kept behind a snapshot, for servers that lag; 0: 10,240 */
    unsigned expect;      /* servers that found the cluster; 0, 1: this one alone does */
    uint64_t id;          /* of a new server; 0: made by chance. One that is kept wins */
    const struct core_net *net; /* NULL: there are no others. Borrowed */
    const struct env *env; /* its functions post to the loop thread; borrowed */
    /* Apply thread, after a commit: what changed up to `index`; `v` NULL: a leader's state took the
     * place of this one's, and all may have changed. May be NULL. */
    void (*on_changes)(void *arg, uint64_t index, const struct state_change *v, size_t n);
    void *on_changes_arg;
};

/* Opens log and state and replays; strings are copied. */
int core_open(const struct core_opts *o, struct core **ret, struct err *e);
int core_start(struct core *c, struct err *e);
/* Says whether the log is empty and the server is not to found a cluster alone: it waits for a
 * leader's entries, or for core_found(). */
bool core_is_new(const struct core *c);
/* Before core_start(), of a new server: writes the first entry, durably: the configuration. */
int core_found(struct core *c, const struct peer_list *conf, struct err *e);
/* Ends the threads; what was proposed and not applied completes with -ERR_CANCELED (through post).
 * Blocks for milliseconds; not on the core's threads. Works on a core that was not started. */
void core_stop(struct core *c);
void core_free(struct core *c); /* after core_stop() */

/* A snapshot of the state, for state_read_end(); any thread. A leader's state may take the place of
 * this one meanwhile: what was begun before sees the old one to its end. */
struct state_txn *core_read_begin(struct core *c, const void *ctx);
/* Before core_start(); both are borrowed. */
void core_add_listener(struct core *c, const struct log_listener *ops, void *arg);
void core_propose(struct core *c, struct intent *in, enum home home, propose_fn *done, void *arg);
bool core_post(struct core *c, void (*fn)(void *arg), void *arg);
bool core_is_leader(const struct core *c);
/* Any thread. No server that leads a later term was elected more than `within_ms` ago; false: not
 * known. core_is_leader() alone may be true a while after this server stood still. */
bool core_leads_surely(const struct core *c, int64_t within_ms);
/* Any thread: the leader's RPC address, as its configuration has it; false: none is known. */
bool core_leader_addr(const struct core *c, char *out, size_t size);
uint64_t core_id(const struct core *c);
/* Before core_start(): its log names no other server. */
bool core_is_alone(const struct core *c);

/* --- backups (any thread, one at a time) --- */
enum { BACKUP_DIGEST = 32 };
struct core_backup {
    uint64_t index; /* its name */
    uint64_t size;
    uint8_t digest[BACKUP_DIGEST]; /* SHA-256 */
};
/* Writes the state as `t` has it to a file, which takes the place of the one before. */
int core_backup(struct core *c, struct state_txn *t, struct core_backup *ret, struct err *e);
/* Returns how many bytes of it there were from `offset` on, 0 at its end. */
int core_backup_read(struct core *c, uint64_t index, uint64_t offset, void *to, size_t n,
                     struct err *e);
void core_backup_drop(struct core *c, uint64_t index);
/* Returns how large a backup may be to be restored: its pieces and what they hold are here at one
 * time. */
uint64_t core_restore_max(const struct core *c);

struct core_status {
    enum consensus_role role;
    uint64_t leader; /* 0: none is known */
    uint64_t term, last, commit;
    int64_t heard_ms;     /* when a leader was heard last; 0: never. Of a leader: now */
    struct peer_list conf; /* owned by ctx */
    uint64_t match[CONSENSUS_PEERS_MAX]; /* of a leader: what the servers of conf hold */
};
/* Any thread. */
void core_status(struct core *c, const void *ctx, struct core_status *ret);
/* Milliseconds since the leader was heard, 0 when this server leads; INT64_MAX: never. */
int64_t core_last_contact_ms(const struct core *c);

/* --- from other servers (any thread) --- */
/* A message of server `from`: `body` as it came. -ERR_INVALID: it does not decode, drop the
 * connection. -ERR_BUSY: too many wait, it is dropped. */
int core_receive(struct core *c, uint64_t from, const char *addr, const uint8_t *body, size_t n,
                 struct err *e);
/* Returns when that server last sent something; 0: not yet, or long ago. */
int64_t core_peer_heard_ms(struct core *c, uint64_t id);
/* Asks a leader to hand over to that server; 0: the one that holds most of the log. It may not come
 * to that. */
void core_transfer(struct core *c, uint64_t to);
/* Asks a leader to make the cluster's servers these, of which one is changed. It may not come to
 * that. */
void core_change(struct core *c, const struct peer_list *conf);
/* The process of that server is gone: its host refuses connections. */
void core_gone(struct core *c, uint64_t id);
/* The longest turn of each thread so far, ns. */
void core_turns(const struct core *c, int64_t *ret_raft_ns, int64_t *ret_apply_ns);

#endif
