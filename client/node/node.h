/* SPDX-License-Identifier: Apache-2.0
 *
 * The node as it is registered: identity, configuration, fingerprint, drivers.
 */
#ifndef PADDOCK_CLIENT_NODE_NODE_H
#define PADDOCK_CLIENT_NODE_NODE_H

#include "client/node/meta.h"

/* Makes g->node anew. */
void node_build(struct ground *g, const struct meta *meta);
/* Much more disk is free than the servers were told of: it was full when the agent started. */
bool node_disk_grew(const struct ground *g);

#endif
