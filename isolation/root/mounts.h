/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a task's root file system: pure. The task's own directory is the root and the only
 * writable part beside the allocation's shared directory; everything of the host is bound
 * read-only; nothing is copied. Executed by mounts_apply.h.
 */
#ifndef PADDOCK_ISOLATION_ROOT_MOUNTS_H
#define PADDOCK_ISOLATION_ROOT_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "isolation/root/mounts_op.h"

/* The kind of file that stands on the host at one of the policy's bind roots; read once by
 * base_make(). */
struct mounts_root {
    const char *path; /* absolute: /usr */
    char kind;        /* 'd' directory, 'f' file, 'l' symbolic link, '-' absent */
    const char *link; /* kind 'l': its text */
};

/* One extra mount that a job asked for. The caller (warden) has checked `source` against policy. */
struct mounts_bind {
    const char *source; /* absolute */
    const char *target; /* in the task: absolute or relative to its root */
    bool read_only;
    bool file;
};

struct mounts_spec {
    const char *task_dir;  /* absolute: becomes "/" */
    const char *alloc_dir; /* absolute: the shared directory, at /alloc */
    const struct mounts_root *roots;
    size_t n_roots;
    const struct mounts_bind *binds;
    size_t n_binds;
    const char *secrets;    /* absolute: directory at /secrets; NULL: a tmpfs, */
    uint64_t secrets_bytes; /* of this size; 0: 1 MiB */
    uint64_t shm_bytes;     /* /dev/shm; 0: 64 MiB */
    uint32_t uid;           /* owner of /secrets */
    uint32_t gid;
    uint32_t id_base;     /* id 0 of the task on the host; 0: no user namespace */
    uint32_t proc_absent; /* bit i: this kernel has no mounts_proc_path(i) to hide */
    bool proc_pids;       /* /proc has processes and nothing else */
    bool noswap;          /* the kernel's tmpfs has the option: /secrets never goes to swap */
    const char *kvm;      /* absolute: a node that is to be /dev/kvm; NULL: none */
    const struct mounts_bind *devices; /* nodes, and where they are to be below /dev */
    size_t n_devices;
    bool host_ipc;        /* then /dev/shm is the host's */
    const char *resolv;   /* absolute: a file in place of /etc/resolv.conf; NULL: none */
};

/* *ret is owned by ctx. -ERR_INVALID for a forbidden target (the root itself, /proc, /sys, /dev,
 * /etc, /secrets, a bind root or anything that contains one of them, "..", duplicates), -ERR_LIMIT
 * for too many. */
int mounts_plan(const void *ctx, const struct mounts_spec *spec, struct mounts_plan **ret,
                struct err *e);

/* The i-th path of procfs that a plan hides or makes read-only; NULL: no more. To look for a path
 * in a procfs that was just mounted costs more than to mount over it. */
const char *mounts_proc_path(unsigned i);

/* "bind usr <- /usr ro,rec": one operation as text, for logs and tests. Owned by ctx. */
const char *mounts_describe(const void *ctx, const struct mounts_plan *p, uint32_t op);

#endif
