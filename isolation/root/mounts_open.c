/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>

#include "isolation/confine/raw.h"
#include "isolation/root/mounts_apply.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

uint32_t
mounts_trees(const struct mounts_plan *plan)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_ops; i++)
        n += mounts_takes_tree(&plan->ops[i]) != 0;
    return n;
}

static uint64_t
mounts_open_attributes(uint32_t flags)
{
    uint64_t set = MOUNT_ATTR_NOSUID;
    if (!(flags & MOUNTS_F_DEVICES))
        set |= MOUNT_ATTR_NODEV;
    if (flags & MOUNTS_F_READONLY)
        set |= MOUNT_ATTR_RDONLY;
    if (flags & MOUNTS_F_NOEXEC)
        set |= MOUNT_ATTR_NOEXEC;
    return set;
}

/* A private copy of the tree at the operation's source. No link on the way is followed: a task that
 * owns a directory above could exchange it. */
static long
open_one(const struct mounts_plan *plan, const struct mounts_op *op, int userns, const char **what)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    unsigned deep = op->flags & MOUNTS_F_RECURSIVE ? AT_RECURSIVE : 0;
    *what = "open source";
    long fd = RAW(SYS_openat2, AT_FDCWD, mounts_str(plan, op->source), &how, sizeof(how));
    if (fd < 0)
        return fd;
    *what = "open_tree";
    long tree =
        RAW(SYS_open_tree, fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | deep);
    raw_close(fd);
    if (tree < 0)
        return tree;
    *what = "mount_setattr";
    struct mount_attr attr = {.attr_set = mounts_open_attributes(op->flags)};
    if (op->flags & MOUNTS_F_IDMAP) {
        *what = "mount_setattr (id-mapped)";
        attr.attr_set |= MOUNT_ATTR_IDMAP;
        attr.userns_fd = (uint64_t)(unsigned)userns;
    }
    long r = RAW(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | deep, &attr, sizeof(attr));
    if (r == 0)
        return tree;
    raw_close(tree);
    return r;
}

int
mounts_open(const struct mounts_plan *plan, int userns, uint32_t upto, int *trees, uint32_t *n,
            struct mounts_fail *fail)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < plan->n_ops && k < upto; i++) {
        const struct mounts_op *op = &plan->ops[i];
        if (!mounts_takes_tree(op) || k++ < *n)
            continue;
        long r = *n < MOUNTS_TREES_MAX ? open_one(plan, op, userns, &fail->what) : -E2BIG;
        if (r < 0) {
            fail->op = i;
            return (int)r;
        }
        trees[(*n)++] = (int)r;
    }
    return 0;
}
