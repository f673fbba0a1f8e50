/* SPDX-License-Identifier: Apache-2.0
 *
 * How a server answers who writes and who waits, and whom it tells what is applied.
 */
#ifndef PADDOCK_SERVER_PROPOSE_H
#define PADDOCK_SERVER_PROPOSE_H

#include <stdint.h>

#include "common/err.h"

struct fsm_result;
struct intent;
struct state_txn;

/* --- who writes --- */
/* `e` is NULL when the entry is committed and the FSM accepted it. Otherwise e->code says why:
 * refused by the FSM at apply (index > 0, `res` set), or never committed (index 0, res NULL):
 * -ERR_NOT_LEADER, -ERR_BUSY, -ERR_LIMIT, -ERR_CANCELED, -ENOSPC. `res` lives during the call (use
 * talloc_steal to keep it). */
typedef void propose_fn(void *arg, const struct err *e, uint64_t index, struct fsm_result *res);
/* The thread on which a completion is called. */
enum home {
    HOME_LOOP,
    HOME_APPLY, /* of what the apply thread proposed */
};

/* --- who waits for news (state/watch.h) --- */
struct server_watch;
enum wake_reason {
    WAKE_CHANGED,
    WAKE_TIMEOUT,
    WAKE_SHUTDOWN,
    WAKE_LEADER, /* is another one, or none */
    WAKE_RIGHTS  /* may be others, of a watch that asks for that */
};
typedef void wake_fn(void *arg, enum wake_reason why);
struct watch_on {
    unsigned tables; /* mask of STATE_BIT */
    uint64_t key;    /* 0: any row of the tables; else only what state_key_*() names */
    uint64_t seen;   /* state_applied() of the snapshot that gave the unsatisfying answer */
    int64_t timeout_ms;
    bool rights;          /* woken when rights may have changed as well, for WAKE_RIGHTS */
    uint64_t rights_seen; /* server_rights_index() before who parks was looked at */
};
/* fn() does not come any more. NULL is fine. */
void server_watch_cancel(struct server_watch *w);

/* --- what follows the log --- */
/* A listener hears of all that is applied; several do in the order in which they were added. Each
 * function may be NULL. Called on the apply thread; must not block. */
struct log_listener {
    /* Before everything else, and again when the state of a leader took the place of ours: the
     * state as it was found. */
    void (*on_open)(void *arg, struct state_txn *t);
    /* The first entry of our own term is applied: rebuild from state. */
    void (*on_leader)(void *arg, struct state_txn *t);
    void (*on_lose)(void *arg);
    /* The same as on_applied, before those who wait for news are woken: for what they read. Must
     * be short. */
    void (*on_committed)(void *arg, uint64_t index, const struct intent *in,
                         const struct fsm_result *res);
    /* After the commit of the entry to the state, leading or not, in log order, once per entry.
     * `in` and `res` live during the call, res->events for as long as they are counted
     * (fsm_events_ref), and `in` with them. */
    void (*on_applied)(void *arg, uint64_t index, const struct intent *in,
                       const struct fsm_result *res);
    /* After each batch of on_applied, while leading: a good place to hand out work. */
    void (*on_batch)(void *arg);
};

#endif
