/* SPDX-License-Identifier: Apache-2.0
 *
 * The node's own identity: claims that the servers sign, for whoever asks this agent. They are
 * asked for when somebody wants them, and again when less than a third of their time is left; the
 * node proves itself to servers by its secret.
 */
#ifndef PADDOCK_CLIENT_NODE_IDENTITY_H
#define PADDOCK_CLIENT_NODE_IDENTITY_H

#include "client/ground.h"

struct node_claims;

struct node_claims *node_claims_new(struct ground *g);
/* Does what client_identity() says. */
void node_claims_get(struct node_claims *n, bool renew, client_identity_done *done, void *arg);

#endif
