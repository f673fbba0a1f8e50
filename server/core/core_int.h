/* SPDX-License-Identifier: Apache-2.0
 *
 * What core.c (the step), thread.c (the thread around it) and open.c (opening, replay, snapshots) share.
 */
#ifndef PADDOCK_SERVER_CORE_CORE_INT_H
#define PADDOCK_SERVER_CORE_CORE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/buf.h"
#include "server/core/core.h"
#include "server/raft/consensus.h"
#include "server/raft/log.h"

struct proposal {
    propose_fn *done;
    void *arg;
    struct buf data;
    size_t bytes;
    enum intent_room room;
};

/* One of both. */
struct item {
    struct item *next;
    struct proposal *proposal;
    void (*fn)(void *arg);
    void *arg;
};

/* In the log, not applied yet. */
struct entry {
    struct entry *next;
    uint64_t index;
    uint64_t term;
    enum record_type type;
    void *data; /* owned */
    size_t n;
    struct proposal *proposal; /* ours, waiting; NULL: from the log or a peer */
};

struct core {
    struct core_opts o; /* strings owned */
    uint64_t id;
    struct raft_log *log;
    struct state *state;
    struct consensus *consensus;
    const struct env *env;
    struct leader_hooks hooks;
    void *hooks_arg;
    /* what consensus starts from; dropped after core_begin() */
    struct consensus_start start;
    void *start_ctx;
    /* of core_step() */
    int64_t now_ms;
    int64_t space_ms; /* the state waits for space until then; 0: it does not */
    enum consensus_role role;
    bool role_new;  /* became leader: propose a barrier */
    bool leading;   /* hooks were told */
    uint64_t barrier;
    uint64_t commit;
    uint64_t stored; /* durable here */
    uint64_t applied;
    uint64_t applied_term;
    size_t unapplied; /* bytes of `entries` */
    int64_t timeout_ms;
    struct peer_list conf; /* as of `applied` */
    uint64_t conf_index;
    struct entry *entries;
    struct entry **entries_last;
    struct proposal *batch[256];
    size_t batch_n;
    /* local snapshots */
    uint64_t since_snapshot;
    uint64_t bytes_since_snapshot;
    bool snapshotting;
    bool disk_short;      /* work is refused, the disk is nearly full: a snapshot may make room */
    uint64_t began_bytes; /* raft_log_bytes() when the last snapshot was begun, */
    size_t began_used;    /* and what the state used then */
    pthread_t snapshot_thread;
    struct snapshot_job *job;
    /* shared */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_t thread;
    bool started;
    atomic_bool stopping; /* written with the lock held */
    struct item *queue;
    struct item **queue_last;
    uint64_t durable;
    bool durable_news;
    size_t n_proposals;
    size_t proposal_bytes;
    atomic_bool leader;
    atomic_bool short_of; /* space: committed entries wait */
};

/* A snapshot for want of space frees so much of the log and of the one before it, or is not tried. */
enum { CORE_SPACE_RETRY_MS = 100, CORE_SHORT_GAIN = 8 << 20 };

/* What has come in since the last step. */
struct core_input {
    struct item *items; /* the step frees them */
    uint64_t durable;   /* 0: nothing new */
};
/* Takes what has come in, applies what is committed. Does not wait; the caller is the only one inside. */
void core_step(struct core *c, int64_t now_ms, const struct core_input *in);
/* Waits until there is something to step for; false when the core is to end. */
bool core_wait(struct core *c, struct core_input *ret);
/* False: the core is stopping, `it` stays the caller's. */
bool core_enqueue(struct core *c, struct item *it);
/* Completes what was proposed here and is not applied. */
void core_fail_entries(struct core *c, int code, const char *why);

/* raft_log_opts.on_durable */
void core_durable(void *arg, uint64_t index);
/* consensus' on_update */
void core_update(void *arg, const struct consensus_update *u);
/* Before the first step: starts consensus from what was loaded. */
void core_begin(struct core *c, int64_t now_ms);
void core_maybe_snapshot(struct core *c);
void core_join_snapshot(struct core *c);

#endif
