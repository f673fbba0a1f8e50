/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch plan: a flat, bounded list of operations that the warden computes (pure) from a launch
 * spec and the policy, and that the shim executes in order. It crosses as one blob in a sealed memfd:
 * header, operations, then strings and binary data that operations name by offset. Offset 0 is "none".
 *
 * Two phases. PLAN_SHIM operations run in the shim, pid 1 of the task's namespaces, with root's
 * privilege: they build the box. PLAN_PAYLOAD operations run in the child that becomes the payload:
 * they give privilege up, in the order of doc/isolation (forced by the kernel), the last is PLAN_EXEC.
 *
 * Targets of mounts are relative to the task's root directory (PLAN_ROOT) and are opened by openat2
 * with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS: what an earlier run of the task
 * left there cannot lead a mount elsewhere. Sources are absolute paths in the warden's pruned mount
 * namespace, of which the task's is a copy.
 *
 * Used by the free-standing shim too: this part includes nothing but <stdint.h>.
 */
#ifndef PADDOCK_ISOLATION_PLAN_H
#define PADDOCK_ISOLATION_PLAN_H

#include <stdint.h>

#define PLAN_MAGIC 0x4e4c5044u /* "DPLN" */

enum {
    PLAN_OPS_MAX = 1024,
    PLAN_BYTES_MAX = 4 << 20,
    PLAN_ARGS_MAX = 8192 /* arguments or environment entries */
};

/* code, what it does: s1, s2, s3 are offsets of strings; n1, n2 numbers. */
#define PLAN_CODES(X)                                                                             \
    /* --- the box (PLAN_SHIM) --- */                                                             \
    X(PLAN_PRIVATE, "make mounts private")       /* all mounts MS_REC | MS_PRIVATE */             \
    X(PLAN_ROOT, "open the root directory")      /* s1 dir: bound on itself, n1 MOUNT_ATTR_ */    \
    X(PLAN_DIR, "make a directory")              /* s1 target, n1 mode */                         \
    X(PLAN_FILE, "make a mount point")           /* s1 target: empty regular file, n1 mode */     \
    X(PLAN_SYMLINK, "make a symlink")            /* s1 text, s2 target */                         \
    X(PLAN_BIND, "bind")                         /* s1 source, s2 target, n1 MOUNT_ATTR_ */       \
    X(PLAN_BIND_SELF, "make read-only")          /* s1 target bound on itself, n1 MOUNT_ATTR_ */  \
    X(PLAN_FS, "mount")                          /* s1 type, s2 target, s3 data, n1 MS_ flags */  \
    X(PLAN_MASK, "mask")                         /* s1 target, s2 source for dir, s3 for file; */ \
                                                 /* n1: f_type the target must have, 0: any */    \
    X(PLAN_PIVOT, "pivot into the root")         /* pivot_root(root), detach the old one */       \
    X(PLAN_HOSTNAME, "set the host name")        /* s1 */                                         \
    X(PLAN_KEYRING, "join a session keyring")                                                     \
    X(PLAN_BOUND, "drop the bounding set")       /* n1: mask of capabilities to keep */           \
    X(PLAN_UMASK, "set the umask")               /* n1 */                                         \
    /* --- the payload (PLAN_PAYLOAD) --- */                                                      \
    X(PLAN_RLIMIT, "set a resource limit")       /* n1 resource, n2 soft, n3 hard */              \
    X(PLAN_SETSID, "start a session")                                                             \
    X(PLAN_CHDIR, "change to the working directory") /* s1: resolved in the task's root */        \
    X(PLAN_SECUREBITS, "set secure bits")        /* n1 */                                         \
    X(PLAN_GROUPS, "set groups")                 /* s1: uint32_t[n1] */                           \
    X(PLAN_GID, "set the group id")              /* n1 */                                         \
    X(PLAN_UID, "set the user id")               /* n1 */                                         \
    X(PLAN_CAPS, "set capabilities")             /* n1: effective=permitted=inheritable, n2: ambient */ \
    X(PLAN_NNP, "set no_new_privs")                                                               \
    X(PLAN_CLOSE, "close file descriptors")      /* from n1 on */                                 \
    X(PLAN_SECCOMP, "load the system call filter") /* s1: struct sock_filter[n1], n2 flags */     \
    X(PLAN_EXEC, "execute")                      /* s1: n1 candidate paths, s2: n2 arguments, */  \
                                                 /* s3: n3 environment entries; each ends with NUL */

enum plan_code {
    PLAN_NONE = 0,
#define PLAN_ENUM(name, text) name,
    PLAN_CODES(PLAN_ENUM)
#undef PLAN_ENUM
    PLAN_CODE_END
};

enum {
    PLAN_SHIM = 0,
    PLAN_PAYLOAD = 1 << 0,   /* runs in the payload */
    PLAN_OPTIONAL = 1 << 1,  /* failure is not an error (best effort) */
    PLAN_RECURSIVE = 1 << 2, /* binds: the whole tree of mounts */
    PLAN_IF_EXISTS = 1 << 3, /* a missing source or target (ENOENT) is not an error */
    PLAN_MAKE = 1 << 4       /* mounts: make the target first, directory or file as the source is */
};

struct plan_op {
    uint16_t code;
    uint16_t flags;
    uint32_t s1, s2, s3; /* offsets in the blob */
    uint64_t n1, n2, n3;
};

struct plan_header {
    uint32_t magic;
    uint32_t size;  /* of the whole blob; its last byte is NUL */
    uint32_t n_ops; /* struct plan_op[] follows the header */
    uint32_t n_shim; /* the first n_shim operations are PLAN_SHIM */
    uint32_t uid, gid; /* owner of the log pipes */
    uint32_t log_index[2]; /* where to go on, stdout and stderr */
    uint32_t log_first[2]; /* the oldest that exists */
    uint32_t log_files;    /* 0: no logs (to /dev/null) */
    uint32_t flags;        /* PLAN_H_ */
    uint64_t log_bytes;    /* a file's maximum */
    uint32_t log_name[2];  /* offsets: "web.stdout." and "web.stderr." */
    uint32_t log_mode_gid; /* group of log files: the agent's */
    uint32_t pad;
};

enum { PLAN_H_SUBREAPER = 1, PLAN_H_FILTER = 2 /* the shim filters itself */, PLAN_H_ROOT = 4 };

/* File descriptors that the shim is born with. */
enum {
    SHIM_FD_NULL = 0,   /* /dev/null: 0, 1, 2 */
    SHIM_FD_PLAN = 3,
    SHIM_FD_STATUS = 4, /* pipe to the warden: struct shim_status, then closed */
    SHIM_FD_RECORD = 5,
    SHIM_FD_LOGS = 6,   /* directory; absent without logs */
    SHIM_FD_CGROUP = 7, /* leaf task/: the payload is born there; absent when rootless */
    SHIM_FD_OOM = 8,    /* memory.events of that leaf; absent without the controller */
    SHIM_FD_END = 9
};

struct shim_status {
    int32_t step;  /* index of the operation that failed; -1: the payload runs */
    int32_t error; /* positive errno */
};

#ifndef PADDOCK_FREESTANDING
#include <stddef.h>

#include "common/err.h"

/* A plan being made. Errors stick (too many operations or bytes): plan_finish tells. */
struct plan;

struct plan *plan_new(const void *ctx);
/* A NUL-terminated string, or bytes, into the blob; returns the offset. NULL or n == 0: 0. */
uint32_t plan_str(struct plan *p, const char *s);
uint32_t plan_bytes(struct plan *p, const void *d, size_t n);
/* Strings one after the other, each with its NUL (PLAN_EXEC). */
uint32_t plan_strs(struct plan *p, const char *const *v, size_t n);
void plan_add(struct plan *p, struct plan_op op);
/* The usual forms. */
void plan_bind(struct plan *p, const char *source, const char *target, uint64_t attr, unsigned flags);
void plan_fs(struct plan *p, const char *type, const char *target, const char *data, uint64_t ms,
             unsigned flags);
struct plan_header *plan_head(struct plan *p);
size_t plan_count(const struct plan *p);
const struct plan_op *plan_at(const struct plan *p, size_t i);
const char *plan_text(const struct plan *p, uint32_t offset);
/* The blob, owned by the plan. */
int plan_finish(struct plan *p, const void **ret, size_t *ret_n, struct err *e);
/* "bind \"/usr\" on \"usr\"": what operation `i` does, for errors and tests. Owned by ctx. */
char *plan_describe(const void *ctx, const struct plan *p, size_t i);
#endif

#endif
