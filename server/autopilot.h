/* SPDX-License-Identifier: Apache-2.0
 *
 * Autopilot: what the leader knows of the health of the cluster's servers, and takes out of them
 * (server/peer/pilot.h says when). Loop thread.
 */
#ifndef PADDOCK_SERVER_AUTOPILOT_H
#define PADDOCK_SERVER_AUTOPILOT_H

#include "server/host.h"

struct autopilot;

struct autopilot *autopilot_new(struct server *s);
/* A round: a server that is dead is taken out, if this server leads and may. */
void autopilot_round(struct autopilot *a);

#endif
