/* SPDX-License-Identifier: Apache-2.0
 *
 * The volumes of this node that are made while servers run. The servers' rows come with the list of
 * allocations (sync.c); the warden makes and removes directories, one at a time, and the servers
 * are told. Volumes that are there become part of the node; a file remembers them, for tasks that
 * start while no server is heard.
 */
#ifndef PADDOCK_CLIENT_NODE_VOLUMES_H
#define PADDOCK_CLIENT_NODE_VOLUMES_H

#include "client/ground.h"

struct volumes;

/* `changed`: other volumes are there. */
struct volumes *volumes_new(struct ground *g, void (*changed)(void *arg), void *arg);
/* Takes all rows that the servers have of this node; cloned. */
void volumes_take(struct volumes *v, const struct host_volume_list *rows);
/* The warden is there again. */
void volumes_link_up(struct volumes *v);
/* Adds the volumes that are there to the node. */
void volumes_fill(const struct volumes *v, struct node *n);
void volumes_stop(struct volumes *v);

#endif
