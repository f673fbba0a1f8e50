/* SPDX-License-Identifier: Apache-2.0
 *
 * The wishes of the servers for this node, and what became of them. Down: a blocking list of
 * allocation ids and indexes, then the changed ones in full (fetch.h). Up: reports, of a new status
 * at once, of further events together within SYNC_BATCH_NS; a report is sent again until a server
 * takes it.
 */
#ifndef PADDOCK_CLIENT_NODE_SYNC_H
#define PADDOCK_CLIENT_NODE_SYNC_H

#include "client/alloc/gc.h"
#include "client/node/gone.h"
#include "client/node/register.h"

#define SYNC_BATCH_NS (200 * 1000 * 1000) /* reports without a new status wait so long */

struct sync;

struct sync *sync_new(struct allocs *allocs, struct gc *gc, struct gone_set *gone,
                      struct registration *reg);
/* From the first heartbeat on. */
void sync_start(struct sync *s);
void sync_stop(struct sync *s);
void sync_anew(struct sync *s); /* the next list is the first */
/* Mark an allocation, or all: what is to be reported may have changed. */
void sync_dirty(struct sync *s, struct alloc_runner *ar);
void sync_all_dirty(struct sync *s); /* a full report, and a heartbeat after it */

#endif
