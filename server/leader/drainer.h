/* SPDX-License-Identifier: Apache-2.0
 *
 * The drainer: carries out what drain_step() says, while this server leads and some node drains. A
 * pass reads a snapshot on a worker thread of the loop and proposes entries; what follows in the log
 * asks for the next pass. Loop thread only, unless it says otherwise. Without a draining node there is
 * no timer and no work.
 */
#ifndef PADDOCK_SERVER_LEADER_DRAINER_H
#define PADDOCK_SERVER_LEADER_DRAINER_H

struct drainer;
struct leader;

enum {
    DRAINER_PAUSE_MS = 100,      /* between two passes: what happens meanwhile is seen together */
    DRAINER_SLEEP_MAX_MS = 60000 /* deadlines are by the wall clock, which may be set */
};

/* Owned by the leader. */
struct drainer *drainer_new(struct leader *l);
/* This server leads now, or does not any more. */
void drainer_start(struct drainer *d);
void drainer_stop(struct drainer *d);
/* Something that draining depends on has changed. */
void drainer_kick(struct drainer *d);

#endif
