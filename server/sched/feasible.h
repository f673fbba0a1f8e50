/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a node can run a group at all, apart from what else runs there: datacenter, pool,
 * constraints, drivers, network. The part that only depends on the node's computed class is decided
 * once per class.
 */
#ifndef PADDOCK_SERVER_SCHED_FEASIBLE_H
#define PADDOCK_SERVER_SCHED_FEASIBLE_H

#include <stdbool.h>

#include "server/sched/compare/constraint.h"
#include "server/sched/nodes.h"

#define FILTER_CLASS "computed class ineligible"
#define FILTER_DRIVERS "missing drivers"
#define FILTER_VOLUMES "missing compatible host volumes"
#define FILTER_DEVICES "missing devices"
#define FILTER_DISTINCT_HOSTS "distinct_hosts"

/* One group of one job; owned by ctx. */
struct feasible;

struct feasible *feasible_new(const void *ctx, struct regexes *rx, const struct job *job,
                              const struct task_group *tg);
/* Checks what is the same for all nodes of a computed class. NULL: feasible. Else the reason, as
 * AllocMetric.ConstraintFiltered names it. */
const char *feasible_class(struct feasible *f, const struct node *n);
/* Says whether each driver of the group is there and healthy. */
bool feasible_has_drivers(const struct task_group *tg, const struct node *n);
/* NULL, or that a driver of the group is not there or not healthy, which may differ within a class.
 */
const char *feasible_drivers(const struct feasible *f, const struct node *n);
/* Which driver is not there or not healthy, and what the node says of it; owned by ctx. NULL: none.
 */
char *feasible_driver_words(const void *ctx, const struct task_group *tg, const struct node *n);
/* The rest: constraints on unique keys, host networks. */
bool feasible_has_node_part(const struct feasible *f);
const char *feasible_node(struct feasible *f, const struct node *n);
/* Says whether the node has the volumes of the group; of per_alloc those of that allocation (NULL:
 * of any). */
bool feasible_volumes(const struct feasible *f, const struct node *n, const char *alloc_name);
/* Says whether it has volumes that depend on the name of the allocation (per_alloc, sticky). */
bool feasible_by_name(const struct task_group *tg);
/* Some constraint names a key that is unique to a node. */
bool feasible_escapes(const struct feasible *f);

bool feasible_datacenter(const struct job *job, const struct node *n);
bool feasible_pool(const struct job *job, const struct node *n);
/* distinct_hosts of a list of constraints: present and not switched off by the value "false". */
bool feasible_distinct_hosts(const struct constraint_list *l);

#endif
