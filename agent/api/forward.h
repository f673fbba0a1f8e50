/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests for the client role of another node: looked up at the servers and passed on to that node's
 * HTTP address, the answer streamed back. (With the cluster's TLS they go over the RPC connection of
 * the node instead, in the other direction.)
 */
#ifndef PADDOCK_AGENT_API_FORWARD_H
#define PADDOCK_AGENT_API_FORWARD_H

#include "agent/api/api.h"

void forward_alloc(struct ask *a); /* to the node that runs allocation a->id */
void forward_node(struct ask *a, const char *node_id);

#endif
