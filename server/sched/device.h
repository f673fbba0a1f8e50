/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices of nodes: instances in groups of one vendor, type and name, of which each is one
 * allocation's at a time. Pure.
 */
#ifndef PADDOCK_SERVER_SCHED_DEVICE_H
#define PADDOCK_SERVER_SCHED_DEVICE_H

#include "server/sched/compare/constraint.h"

/* Says whether a task of the group asks for devices. */
bool device_wanted(const struct task_group *tg);
/* Says whether an allocation was given devices. */
bool device_named(const struct allocation *a);
/* Adds the devices of an allocation to `used`. False: one of them was in it. */
bool device_take(const void *ctx, struct str_list *used, const struct allocation *a);
/* Gives each task of the group what it asks for, in `out` (NULL: only says whether that can be), of
 * the healthy instances that are not in `used`; affinities choose among groups. False: they do not
 * suffice. */
bool device_assign(const void *ctx, struct regexes *rx, const struct node *n,
                   const struct task_group *tg, const struct str_list *used,
                   struct allocated_resources *out);

#endif
