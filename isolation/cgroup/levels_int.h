/* SPDX-License-Identifier: Apache-2.0
 *
 * What the levels above a task's leaves need. A weight counts among siblings
 * and protected memory only as far as the parent is protected: so an allocation has the sums of its
 * tasks, and for memory the parent of all tasks, where nobody else owns it, those of the
 * allocations. Cores that a task has for itself are taken from all tasks that have none.
 */
#ifndef PADDOCK_ISOLATION_CGROUP_LEVELS_INT_H
#define PADDOCK_ISOLATION_CGROUP_LEVELS_INT_H

#include <stdbool.h>

#include "isolation/cgroup/root.h"

/* After a change in the allocation `allocfd` (-1: it is gone). `kept`: protected memory is new or
 * other; without it the sums of memory are looked at only where there are any. */
void levels_update(const struct cgroup_root *r, int allocfd, bool kept);
/* `taskfd`: TASK, the parent of its leaves. */
bool levels_has_cores(int taskfd);
/* Looks at all tasks; sets r->cores and r->shared. */
void levels_share_cores(struct cgroup_root *r);

#endif
