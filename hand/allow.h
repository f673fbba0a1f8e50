/* SPDX-License-Identifier: Apache-2.0
 *
 * Refusals of a container by every client, whatever its plugin block says: those that follow from
 * the job alone, for whoever takes jobs. Pure; any thread.
 */
#ifndef PADDOCK_HAND_ALLOW_H
#define PADDOCK_HAND_ALLOW_H

#include "api/api.h"
#include "common/err.h"

/* -ERR_POLICY, -ERR_INVALID, -ERR_UNSUPPORTED. */
int allow_ever(const struct hand_task *t, struct err *e);

#endif
