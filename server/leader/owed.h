/* SPDX-License-Identifier: Apache-2.0
 *
 * What the leader owes the log: writes for which nobody waits and which must not be lost (missed
 * heartbeats, evaluations made or ended on its own). Each is proposed until the log has it, also
 * where the FSM refused it there, or until the leadership is over: the next leader finds its reason
 * in the state. Loop thread.
 */
#ifndef PADDOCK_SERVER_LEADER_OWED_H
#define PADDOCK_SERVER_LEADER_OWED_H

#include <stdbool.h>

#include "server/host.h"

enum { OWED_RETRY_MIN_MS = 500, OWED_RETRY_MAX_MS = 30000 };

struct owed;

/* server_propose, or what a test has in its place. */
typedef void owed_propose_fn(void *arg, struct intent *in, propose_fn *done, void *done_arg);
/* The log has it; `res` as in propose_fn. */
typedef void owed_stored_fn(void *arg, const struct fsm_result *res);

struct owed *owed_new(const void *ctx, const struct env *env, owed_propose_fn *propose, void *arg);
/* Between both things are taken. At the end all is dropped; answers may still come until `o` is
 * freed. */
void owed_start(struct owed *o);
void owed_stop(struct owed *o);

/* `keys` (the nodes that it says were missed) and `stored` may be NULL. Takes the intent, with all
 * that it refers to. */
void owed_add(struct owed *o, struct intent *in, const struct str_list *keys,
              owed_stored_fn *stored, void *arg);
/* What is owed is not to be about that node any more. False: it is on its way to the log and cannot
 * be called back. */
bool owed_cancel(struct owed *o, const char *key);

#endif
