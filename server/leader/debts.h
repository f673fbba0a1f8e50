/* SPDX-License-Identifier: Apache-2.0
 *
 * What the leader owes the log: writes for which nobody waits and which must not be lost (missed
 * heartbeats, evaluations made or ended on its own). Each is proposed until the log has it, also
 * where the FSM refused it there, or until the leadership is over: the next leader finds its reason
 * in the state. Loop thread.
 */
#ifndef PADDOCK_SERVER_LEADER_DEBTS_H
#define PADDOCK_SERVER_LEADER_DEBTS_H

#include <stdbool.h>

#include "server/host.h"

enum { OWED_RETRY_MIN_MS = 500, OWED_RETRY_MAX_MS = 30000 };

struct debts;

/* server_propose, or what a test has in its place. */
typedef void debts_propose_fn(void *arg, struct intent *in, propose_fn *done, void *done_arg);
/* The log has it; `res` as in propose_fn. */
typedef void debts_stored_fn(void *arg, const struct fsm_result *res);

struct debts *debts_new(const void *ctx, const struct env *env, debts_propose_fn *propose,
                        void *arg);
/* Between both things are taken. At the end all is dropped; answers may still come until `o` is
 * freed. */
void debts_start(struct debts *o);
void debts_stop(struct debts *o);

/* `keys` (the nodes that it says were missed) and `stored` may be NULL. Takes the intent, with all
 * that it refers to. */
void debts_add(struct debts *o, struct intent *in, const struct str_list *keys,
               debts_stored_fn *stored, void *arg);
/* Calls back what is owed about that node. False: it is on its way to the log and cannot be called
 * back. */
bool debts_cancel(struct debts *o, const char *key);

#endif
