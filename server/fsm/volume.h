/* SPDX-License-Identifier: Apache-2.0
 *
 * Host volumes in the state: who uses one.
 */
#ifndef PADDOCK_SERVER_FSM_VOLUME_H
#define PADDOCK_SERVER_FSM_VOLUME_H

#include "server/state/state.h"

/* Returns the allocations on its node that have the volume and have not ended; owned by ctx. */
struct allocation_list volume_claims(struct state_txn *t, const void *ctx,
                                     const struct host_volume *v);

#endif
