/* SPDX-License-Identifier: Apache-2.0
 *
 * The drain of this node before a shutdown (client_drain): ask, then follow the node until its
 * drain is over. The servers do the rest; our part in it is to end what they stop, as always.
 */
#ifndef PADDOCK_CLIENT_NODE_DRAIN_H
#define PADDOCK_CLIENT_NODE_DRAIN_H

#include "client/ground.h"

struct node_drain;

/* *slot is NULL, and is again after the drain. */
void drain_start(struct node_drain **slot, struct ground *g, const struct drain_spec *spec,
                 client_done *done, void *arg);
void drain_stop(struct node_drain *d); /* NULL: there is none */

#endif
