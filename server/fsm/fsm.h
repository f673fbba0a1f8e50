/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: applies intents (api/schema/intents.schema) to the state. Deterministic: same
 * entry, same state, same result; it reads no clock and makes no id. What an entry does is decided
 * here, from the state at its index (doc/reconnect.md, rules S1-S19), not by who proposed it.
 */
#ifndef PADDOCK_SERVER_FSM_FSM_H
#define PADDOCK_SERVER_FSM_FSM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "common/err.h"
#include "common/mem.h"
#include "server/state/state.h"

/* The change that an entry made to a row, of any table. */
enum fsm_what {
    FSM_STORED,  /* it is as the row says now */
    FSM_STAMPED, /* the same, and nothing but its ModifyIndex is otherwise: the evaluation of a plan
                  */
    FSM_QUIET,   /* the same, and neither its ModifyIndex moved nor whoever waits was woken: a node
                  * that was heard */
    FSM_DELETED, /* it is gone, and was as the row says */
};
struct fsm_event {
    enum state_table table;
    enum fsm_what what;
    const void *row; /* of the table's type; an allocation is without Job */
};

/* The rows that an entry wrote, those that went along with others too: each once, in the order in
 * which they were first written. Counted, a talloc context of its own and read-only, so that who
 * follows the log may keep it. Rows borrow from the intent: who applies an entry gives it to the
 * events before anybody hears of them. */
struct fsm_events {
    atomic_uint refs;
    struct fsm_event *v;
    size_t n;
};
static inline struct fsm_events *
fsm_events_ref(struct fsm_events *e)
{
    atomic_fetch_add(&e->refs, 1);
    return e;
}

/* NULL is fine; from any thread. */
static inline void
fsm_events_unref(struct fsm_events *e)
{
    if (e != NULL && atomic_fetch_sub(&e->refs, 1) == 1)
        mem_free(e);
}

/* The effects of an entry; a talloc context of its own, which holds the events, and these what is
 * pointed to below. */
struct fsm_result {
    struct err err; /* code 0: accepted. Otherwise nothing was changed. */
    uint64_t index; /* of the entry */
    bool changed;   /* false: accepted without effect (e.g. heartbeat of a ready node) */
    struct fsm_events *events;
    /* the rest is for replies */
    struct node *node; /* of a node intent, whether it was written or not; NULL after a purge */
    uint64_t node_modify_index;     /* of the node after the entry */
    struct job *job;                /* as stored now (job intents); NULL after a purge */
    bool job_changed;               /* a new version was made */
    bool conflict; /* variable: it is otherwise than the entry wants, or another's lock is on it */
    const struct sealed_variable *variable; /* as it is now; NULL: there is none */
    struct str_list rejected_nodes; /* plan result: parts refused at apply (rule S13) */
    const struct intent_restore_end *restore; /* of the intent: the core is to do it; else NULL */
    size_t names_taken;             /* plan result: rows that are void, by others or by clients */
};

/* The row of the i-th event, if that did this to a row of this table; else NULL. */
static inline const void *
fsm_row(const struct fsm_result *r, size_t i, enum state_table table, enum fsm_what what)
{
    const struct fsm_event *e = &r->events->v[i];
    return e->table == table && e->what == what ? e->row : NULL;
}

/* FSM_EACH(res, EVALS, STORED, ev): each such row. No break: it would leave the row, not the list.
 */
#define FSM_EACH(res, TABLE, WHAT, row)                                                            \
    for (size_t row##_i = 0; row##_i < (res)->events->n; row##_i++)                                \
        for (const __typeof__(*((struct state_types *)0)->TABLE) *row =                            \
                 fsm_row((res), row##_i, STATE_##TABLE, FSM_##WHAT);                               \
             row != NULL; row = NULL)

/* FSM_COUNT(res, EVALS, STORED): how many there are. */
#define FSM_COUNT(res, TABLE, WHAT) fsm_count((res), STATE_##TABLE, FSM_##WHAT)
static inline size_t
fsm_count(const struct fsm_result *r, enum state_table table, enum fsm_what what)
{
    size_t n = 0;
    for (size_t i = 0; i < r->events->n; i++)
        n += fsm_row(r, i, table, what) != NULL;
    return n;
}

/* The effect of an intent on the room left, in the order of refusal when there is none. */
enum intent_room {
    ROOM_ADDS,    /* work */
    ROOM_CHANGES, /* what is there goes on */
    ROOM_STOPS,   /* what is there ends */
    ROOM_MAKES,   /* never refused */
};
enum intent_room fsm_room(const struct intent *in);

/* Applies one decoded entry inside the write transaction. Never fails for a reason that differs
 * between servers; an error of the disk ends the process. When state_refused() afterwards, the
 * result is void: the transaction is to be aborted, and the entry has no effect. */
struct fsm_result *fsm_apply(const void *ctx, struct state_txn *t, uint64_t index,
                             const struct intent *in);

/* Doubts all that a state, just restored, says of running tasks. Nobody hears of single rows. */
void fsm_restored(struct state_txn *t, uint64_t index, int64_t now, struct fsm_result *res);

/* Makes the result, without effect, of an entry that state_refused() when it was applied. */
struct fsm_result *fsm_refused(const void *ctx, uint64_t index, const struct err *why);

/* The node is initializing, and a heartbeat would not change that: its entry would be without
 * effect. Shut by the gate (S6), or since the node's pool is not there. */
bool fsm_gate_shut(struct state_txn *t, void *ctx, const char *node_id);

/* Adds to *why, owned by ctx, who uses an object with a name, so that it may not go. */
void fsm_object_uses(struct state_txn *t, void *ctx, enum state_table table, const char *name,
                     const char *region, struct str_list *why);

/* The objects that the collector may take, whatever their age, as `t` has it; asked again when its
 * entry is applied. `j`: the job as registered, NULL: there is none. */
/* Over on both sides, or on the client's when the job is not wanted any more (else what ended by
 * itself fills its place), and no link of a chain. */
bool fsm_alloc_may_go(struct state_txn *t, const struct allocation *al, const struct job *j);
/* Apart from its allocations, with which it stays. */
bool fsm_eval_may_go(const struct evaluation *ev, const struct job *j);
bool fsm_job_may_go(struct state_txn *t, const struct job *j);
bool fsm_deployment_may_go(struct state_txn *t, const struct deployment *d);

#endif
