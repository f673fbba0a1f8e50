/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of requests: what the agent may ask for, and who does it (handlers.h).
 */
#ifndef PADDOCK_ISOLATION_WARDEN_TABLE_H
#define PADDOCK_ISOLATION_WARDEN_TABLE_H

#include "isolation/warden/warden.h"

/* Takes one packet (`n` bytes in w->in) of connection `conn`. False: not a request that is allowed
 * in this phase, the connection is to be closed. */
bool table_serve(struct warden *w, uint64_t conn, enum proto_phase *phase, size_t n);

#endif
