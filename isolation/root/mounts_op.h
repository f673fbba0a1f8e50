/* SPDX-License-Identifier: Apache-2.0
 *
 * The flat plan of a task's root file system, as the warden computes it (mounts.h) and the shim
 * executes it (mounts_apply.h). A block of bytes without pointers, so that it can travel in a
 * memfd: header, operations, then NUL-terminated strings; `source` and `target` are offsets of
 * strings from the start of the block, 0 where unused.
 *
 * Free-standing: included by the shim, so only kernel-clean headers here.
 */
#ifndef PADDOCK_ISOLATION_ROOT_MOUNTS_OP_H
#define PADDOCK_ISOLATION_ROOT_MOUNTS_OP_H

#include <stdint.h>

#include "isolation/limits.h"

/* Targets are relative to the new root ("usr", "proc/sys"): no leading slash, no "." or "..", no
 * empty component, never followed through a symbolic link. Sources of ROOT and BIND are absolute
 * paths in the warden's mount namespace: the warden opens them, without following links
 * (mounts_open()), and hands the trees over in the order of the plan. Sources of templates
 * (MOUNTS_F_KEEP) and of masks are paths in the launch pad's (base_enter()). */
enum mounts_kind {
    MOUNTS_ROOT = 1, /* source: the task's directory, becomes the root */
    MOUNTS_BIND,     /* bind source on target */
    MOUNTS_TMPFS,    /* size, mode, uid, gid */
    MOUNTS_PROC,     /* a new procfs of the shim's pid namespace */
    MOUNTS_DEVPTS,   /* a new instance */
    MOUNTS_LINK,     /* symbolic link at target with text source; an existing entry is left alone */
    MOUNTS_MASK,     /* hide target: source is the null device (file) or an empty directory */
    MOUNTS_READONLY, /* make the part of procfs at target read-only */
    MOUNTS_ENTER,    /* make it the root of the process: once, last. What is beneath is empty */
};

enum {
    MOUNTS_F_READONLY = 1,
    MOUNTS_F_RECURSIVE = 2,
    MOUNTS_F_FILE = 4,     /* source is a file: make a file, not a directory, as target */
    MOUNTS_F_OPTIONAL = 8, /* MASK, READONLY: a missing target is no error */
    MOUNTS_F_NOEXEC = 16,
    MOUNTS_F_DEVICES = 32, /* without nodev: the /dev template, and its devices */
    MOUNTS_F_NOSWAP = 64,  /* tmpfs: never on swap (kernel 6.4) */
    MOUNTS_F_IDMAP = 256,  /* through the user namespace of the task: files keep its ids on disk */
    MOUNTS_F_KEEP = 128,   /* BIND: a prepared template, with the attributes that it has */
};

#define MOUNTS_EMPTY ".empty" /* in the pad's root: what masks of directories are made of */

struct mounts_op {
    uint16_t kind;
    uint16_t flags;
    uint32_t mode;
    uint32_t source;
    uint32_t target;
    uint32_t uid;
    uint32_t gid;
    uint64_t size; /* tmpfs: bytes */
};

struct mounts_plan {
    uint32_t bytes; /* of the whole block */
    uint32_t n_ops;
    struct mounts_op ops[];
};

/* Does this operation take a tree from the warden? */
static inline int
mounts_takes_tree(const struct mounts_op *op)
{
    return op->kind == MOUNTS_ROOT || (op->kind == MOUNTS_BIND && !(op->flags & MOUNTS_F_KEEP));
}

static inline const char *
mounts_str(const struct mounts_plan *p, uint32_t at)
{
    return (const char *)p + at;
}

#endif
