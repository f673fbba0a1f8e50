/* SPDX-License-Identifier: Apache-2.0
 *
 * The reconciler of service and batch jobs: from the wishes of a job and its allocations to those
 * that must stop, start and change. A pure function; it chooses no nodes.
 *
 * Services with an update block are paced by their deployment. What runs on a node of which nobody
 * hears is waited for, replaced and taken back as doc/reconnect.md says (rules S8, S15, S16 there).
 */
#ifndef PADDOCK_SERVER_SCHED_RECONCILE_H
#define PADDOCK_SERVER_SCHED_RECONCILE_H

#include "server/sched/alloc/recon.h"

/* Result owned by ctx; points into the input. */
struct recon *reconcile(const void *ctx, const struct recon_in *in);

#endif
