/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes a mount plan in the calling process, which must be alone in a fresh mount namespace
 * whose mounts are private (a child of the warden made with CLONE_NEWNS), with CAP_SYS_ADMIN, and,
 * for procfs, pid 1 of its pid namespace. Ends in the new root with the old one detached and the
 * working directory at "/". Free-standing: raw system calls, no allocation; runs in the shim.
 */
#ifndef PADDOCK_ISOLATION_MOUNTS_APPLY_H
#define PADDOCK_ISOLATION_MOUNTS_APPLY_H

#include "isolation/mounts_op.h"

struct mounts_fail {
    uint32_t op;      /* index in the plan */
    const char *what; /* the system call or check that failed: a literal */
};

/* 0, or -errno with *fail set. After a failure the namespace is half built: exit. -EXDEV from a
 * check means that a path to mask is not on procfs or sysfs. */
int mounts_apply(const struct mounts_plan *plan, struct mounts_fail *fail);

/* Bounds and termination of a plan that came as bytes. 0 or -EINVAL. */
int mounts_check(const void *p, uint32_t bytes);

#endif
