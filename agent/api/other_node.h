/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests for the client role of another node: passed on by the servers, over the connection that
 * the node made to them (Client.Http), as HTTP, and answered there by the same routes. Once at
 * most: a node that is asked so passes nothing on.
 */
#ifndef PADDOCK_AGENT_API_OTHER_NODE_H
#define PADDOCK_AGENT_API_OTHER_NODE_H

#include "agent/api/api.h"

void other_node_ask(struct request *a, const char *node_id);

#endif
