/* SPDX-License-Identifier: Apache-2.0
 *
 * Scheduler workers: threads that take a job from a bounded queue, run it, and sleep when there is
 * none. They share nothing: a job brings its snapshot and hands its result back by
 * server_post_apply.
 */
#ifndef PADDOCK_SERVER_LEADER_WORKER_H
#define PADDOCK_SERVER_LEADER_WORKER_H

#include <stdbool.h>

#include "server/limits.h"

struct workers;

/* Returns how many a server has that is not told: one per two processors, at least one. */
unsigned workers_default(void);
struct workers *workers_start(const void *ctx, unsigned n);
/* Any thread: how many have something to do. */
unsigned workers_busy(struct workers *w);
/* Any thread. False: stopping, or the queue is full. */
bool workers_submit(struct workers *w, void (*fn)(void *arg), void *arg);
/* Runs what is queued, joins; further submits are refused until workers_free(), when no thread may
 * come any more. */
void workers_stop(struct workers *w);
void workers_free(struct workers *w);

#endif
