/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of cgroup*.c: what the levels above a task's leaves need. A weight counts among siblings
 * and protected memory only as far as the parent is protected: so an allocation has the sums of its
 * tasks, and for memory the parent of all tasks, where nobody else owns it, those of the
 * allocations. Cores that a task has for itself are taken from all tasks that have none.
 */
#ifndef PADDOCK_ISOLATION_CGROUP_LEVELS_H
#define PADDOCK_ISOLATION_CGROUP_LEVELS_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/codec.h"
#include "isolation/cgroup/cgroup.h"

/* Text of a small file, terminated; 0 or -errno. */
int cgroup_read(int dirfd, const char *name, char *buf, size_t size);
/* Names of the directories in `dirfd`, read before anything changes there; owned by ctx. */
void cgroup_dirs(const void *ctx, int dirfd, struct str_list *ret);
/* A directory below, not through links; or -errno. */
int cgroup_open_dir(int dirfd, const char *name);

/* After a change in the allocation `allocfd` (-1: it is gone). `kept`: protected memory is new or
 * other; without it the sums of memory are looked at only where there are any. */
void levels_update(const struct cgroup_root *r, int allocfd, bool kept);
/* `taskfd`: TASK, the parent of its leaves. */
bool levels_has_cores(int taskfd);
/* Looks at all tasks; sets r->cores and r->shared. */
void levels_share_cores(struct cgroup_root *r);

#endif
