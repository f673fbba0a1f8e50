/* SPDX-License-Identifier: Apache-2.0
 *
 * How much a node is liked: affinities of job, group and tasks.
 */
#ifndef PADDOCK_SERVER_SCHED_AFFINITY_H
#define PADDOCK_SERVER_SCHED_AFFINITY_H

#include "server/sched/constraint.h"
#include "server/sched/nodes.h"

/* Row -> sum of the weights that match over the sum of all without their signs, -1 .. 1; NULL when
 * nothing is liked or disliked. Owned by ctx. */
double *affinity_column(const void *ctx, struct regexes *rx, const struct node_table *t,
                        const struct job *job, const struct task_group *tg);

#endif
