/* SPDX-License-Identifier: Apache-2.0
 *
 * The intents, a row each: its name in enum intent_member, the member of struct intent, and what it does
 * to the room that is left (`m` is the member). apply_MEMBER() applies it: its prototype is made of the row.
 * An entry that has none of these does not get here: core/core.c ends the server.
 */
#ifndef PADDOCK_SERVER_FSM_INTENTS_H
#define PADDOCK_SERVER_FSM_INTENTS_H

#define INTENTS(X)                                                                           \
    X(NODE_REGISTER, node_register, ROOM_CHANGES)                                            \
    X(NODE_STATUS, node_status, ROOM_CHANGES)                                                \
    X(NODE_ELIGIBILITY, node_eligibility, ROOM_CHANGES)                                      \
    X(NODE_DRAIN, node_drain, ROOM_CHANGES)                                                  \
    X(NODE_DRAINED, node_drained, ROOM_CHANGES)                                              \
    X(NODE_PURGE, node_purge, ROOM_MAKES)                                                    \
    X(NODE_EVALUATE, node_evaluate, ROOM_CHANGES)                                            \
    X(JOB_REGISTER, job_register, ROOM_ADDS)                                                 \
    X(JOB_DEREGISTER, job_deregister, m->purge ? ROOM_MAKES : ROOM_STOPS)                    \
    X(EVAL_UPDATE, eval_update, ROOM_CHANGES)                                                \
    X(PLAN_RESULT, plan_result, m->placed.n == 0 ? ROOM_STOPS : ROOM_CHANGES)                \
    X(ALLOC_UPDATE, alloc_update, ROOM_CHANGES)                                              \
    X(ALLOC_TRANSITION, alloc_transition, ROOM_CHANGES)                                      \
    X(REAP, reap, ROOM_MAKES)                                                                \
    X(SCHEDULER_CONFIG, scheduler_config, ROOM_CHANGES)                                      \
    X(SCHEDULER_CAS, scheduler_cas, ROOM_CHANGES)                                            \
    X(NOOP, noop, ROOM_CHANGES)

#endif
