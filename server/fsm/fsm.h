/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: applies intents (api/schema/intents.schema) to the state. Deterministic: same entry,
 * same state, same result; it reads no clock and makes no id. What an entry does is decided here,
 * from the state at its index (doc/reconnect.md, rules S1-S19), not by who proposed it.
 */
#ifndef PADDOCK_SERVER_FSM_FSM_H
#define PADDOCK_SERVER_FSM_FSM_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "common/err.h"

struct state_txn;

/* What an entry did; a talloc context of its own. Strings and objects below are owned by it. */
struct fsm_result {
    struct err err;                /* code 0: accepted. Otherwise nothing was changed. */
    uint64_t index;                /* of the entry */
    bool changed;                  /* false: accepted without effect (e.g. heartbeat of a ready node) */
    struct evaluation_list evals;  /* as stored now: created or changed by this entry */
    struct allocation_list allocs; /* as stored now, without Job: changed by this entry */
    struct deployment_list deployments; /* as stored now: created or changed by this entry */
    struct node *node;             /* as stored now (node intents); NULL after a purge */
    const char *node_was;          /* status before, NULL: the node is new */
    struct job *job;               /* as stored now (job intents); NULL after a purge */
    bool job_changed;              /* a new version was made */
    uint64_t node_modify_index;    /* of the node after the entry */
    struct str_list rejected_nodes; /* plan result: parts refused at apply (rule S13) */
    size_t names_taken;            /* plan result: rows that are void, by others or by clients */
    struct str_list purged_nodes;
    struct evaluation_list deleted_evals; /* by somebody who asked for it: id, namespace and job alone */
};

/* What is done to the room that is left, in the order in which it is refused when there is none. */
enum intent_room {
    ROOM_ADDS,    /* work */
    ROOM_CHANGES, /* what is there goes on */
    ROOM_STOPS,   /* what is there ends */
    ROOM_MAKES,   /* never refused */
};
enum intent_room fsm_room(const struct intent *in);

/* Applies one decoded entry inside the write transaction. Never fails for a reason that differs
 * between servers; an error of the disk ends the process. When state_refused() afterwards, the result is
 * void: the transaction is to be aborted, and the entry has no effect. */
struct fsm_result *fsm_apply(const void *ctx, struct state_txn *t, uint64_t index,
                             const struct intent *in);

/* Of an entry that state_refused() when it was applied: the result, without effect. */
struct fsm_result *fsm_refused(const void *ctx, uint64_t index, const struct err *why);

/* The node is initializing, and a heartbeat would not change that: its entry would be without effect. */
bool fsm_gate_shut(struct state_txn *t, void *ctx, const char *node_id);

#endif
