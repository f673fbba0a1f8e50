/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes a mount plan. Two halves:
 *
 *   mounts_open()   the warden: opens what of the host goes into the box, as detached trees with
 *                   their attributes
 *   mounts_apply()  the shim: puts them and the templates together and makes the result its root
 *
 * mounts_apply() runs in a process that is alone in a copy of the launch pad's mount namespace
 * (base_enter()), which holds an empty read-only directory with the templates on it and nothing
 * else of the host; pid 1 of its pid namespace, with CAP_SYS_ADMIN. Templates are moved out of the
 * copy, so in the end there is nothing beneath the task's root but that empty directory: nothing to
 * pivot away and nothing to detach. (pivot_root(2) looks at every thread of the machine, and each
 * detach waits for the other processors.)
 *
 * mounts_apply.c is free-standing: raw system calls, no allocation; it runs in the shim.
 */
#ifndef PADDOCK_ISOLATION_ROOT_MOUNTS_APPLY_H
#define PADDOCK_ISOLATION_ROOT_MOUNTS_APPLY_H

#include "isolation/root/mounts_op.h"

struct mounts_fail {
    uint32_t op;      /* index in the plan */
    const char *what; /* the system call or check that failed: a literal */
};

/* How many trees the plan takes. */
uint32_t mounts_trees(const struct mounts_plan *plan);
/* Opens the first `upto` of them but those *n that are open already, into trees[mounts_trees()],
 * owned by the caller, and counts them in *n. The first is the new root. `userns`: for
 * MOUNTS_F_IDMAP. 0, or -errno with *fail set. */
int mounts_open(const struct mounts_plan *plan, int userns, uint32_t upto, int *trees, uint32_t *n,
                struct mounts_fail *fail);

/* 0, or -errno with *fail set. `trees` are closed. After a failure the namespace is half built:
 * exit. -EXDEV from a check means that a path to mask is not on procfs. */
int mounts_apply(const struct mounts_plan *plan, const int *trees, uint32_t n_trees,
                 struct mounts_fail *fail);

/* Bounds and termination of a plan that came as bytes. 0 or -EINVAL. */
int mounts_check(const void *p, uint32_t bytes);

#endif
