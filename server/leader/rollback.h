/* SPDX-License-Identifier: Apache-2.0
 *
 * What a deployment that fails leads to: its status, the version of the job to go back to, the
 * evaluation that follows. For the endpoints of deployments and the leader's controller.
 */
#ifndef PADDOCK_SERVER_LEADER_ROLLBACK_H
#define PADDOCK_SERVER_LEADER_ROLLBACK_H

#include "server/env.h"
#include "server/state/state.h"

/* `u` becomes "failed" with `desc` and, when `revert`, what is done about it. The job to roll back
 * to, NULL: none (nothing is stable, or it is the same specification). Owned by ctx. */
struct job *rollback_job(const void *ctx, struct state_txn *t, const struct deployment *d,
                         const char *desc, bool revert, struct deployment_status_update *u);
/* Some group asks for it. */
bool rollback_wanted(const struct deployment *d);
/* By its own priority. NULL: its job is gone. */
struct evaluation *rollback_eval(const void *ctx, const struct env *env, struct state_txn *t,
                                 const struct deployment *d);

#endif
