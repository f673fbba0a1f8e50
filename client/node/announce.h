/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells the servers under which names an allocation is found: always the whole set, the latest
 * alone, one call at a time for each allocation, again until a server has taken it. A set that is
 * refused for good is not sent again: tasks have an event, and the allocation does not become
 * healthy. Servers end the names with their allocation, so nothing is told of one that has ended.
 */
#ifndef PADDOCK_CLIENT_NODE_ANNOUNCE_H
#define PADDOCK_CLIENT_NODE_ANNOUNCE_H

#include "client/alloc/alloc_runner.h"

struct announcer;

struct announcer *announce_new(struct allocs *allocs); /* owned by the ground */
/* The allocation's names.set is another one. */
void announce_set(struct announcer *an, struct alloc_runner *ar);
/* A server has heard of the node. `anew`: names may have been ended meanwhile. */
void announce_start(struct announcer *an, bool anew);
void announce_stop(struct announcer *an);

#endif
