/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports of one node: what is taken on each of its addresses, and the assignment of the ports that a
 * group asks for. Built for the one node that is about to be chosen (or verified), not for a scan.
 */
#ifndef PADDOCK_SERVER_SCHED_PORTS_H
#define PADDOCK_SERVER_SCHED_PORTS_H

#include "api/api.h"
#include "server/sched/rng.h"

enum {
    PORT_MAX = 65535,
    PORT_DYNAMIC_MIN = 20000, /* inclusive, unless the node says otherwise */
    PORT_DYNAMIC_MAX = 32000, /* inclusive */
    PORT_DRAWS = 20           /* random tries before the free ports are counted */
};

struct ports;

/* With the node's reserved ports taken. `n` must outlive it. */
struct ports *ports_new(const void *ctx, const struct node *n);

/* Marks what an allocation holds. NULL, or "<label>=<port>" (owned by `ctx`) of the first port that
 * was taken already. */
const char *ports_add(struct ports *p, const void *ctx, const struct allocation *a);

/* Static feasibility: the network mode and every host network exist on the node. NULL, or the
 * reason as metrics name it. */
const char *ports_infeasible(const void *ctx, const struct node *n, const struct task_group *tg);

/* Gives every port of the group and of its tasks a number and an address, and writes them to `out`
 * (Shared.Networks, Shared.Ports, Tasks[].Networks; the tasks are in `out` already). NULL, or the
 * exhausted dimension as metrics name it; `p` and `out` are then not to be used any more. */
const char *ports_assign(struct ports *p, const void *ctx, const struct task_group *tg,
                         struct rng *rng, struct allocated_resources *out);

#endif
