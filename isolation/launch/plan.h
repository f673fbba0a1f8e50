/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch plan: everything a shim does, as one flat block that the warden computes (pure) from a
 * launch spec and the policy. It crosses in a memfd; the shim maps it privately, so that pointer
 * tables can be made in place. Offsets are from the start of the block, 0 is "none".
 *
 * Order of the shim's work: session keyring, pipes -> the plan comes -> hostname -> clone
 * (CLONE_VM); the child: confine_task; the shim meanwhile: the rest of the work comes -> record
 * locked, logs opened -> mounts (mounts_apply.h) -> the child may execve; confine_end -> start
 * record, status to the warden, pump, reap, exit record. Where the child needs something of its
 * root before (files that are sealed, verity.h; an AppArmor profile) it is cloned when that is
 * complete.
 *
 * A joiner (PLAN_JOIN) has no logs, mounts or record: it enters what they made.
 *
 * Included by the free-standing shim: the first part needs <stdint.h> only.
 */
#ifndef PADDOCK_ISOLATION_LAUNCH_PLAN_H
#define PADDOCK_ISOLATION_LAUNCH_PLAN_H

#include <stdint.h>

#include "isolation/limits.h"
#include "isolation/root/verity.h"

#define PLAN_MAGIC 0x4e4c5044u /* "DPLN" */

/* The version of everything that warden and shim share: this block, the descriptors, the status,
 * the part of the record that the shim writes. To be raised with every change of one of them: a
 * shim of another version refuses the plan, and a record of another version is not read as if it
 * were ours. */
enum { SHIM_VERSION = 9 };

enum {
    PLAN_ISOLATED = 1 << 0,  /* the shim is pid 1 of its own pid namespace and builds a root */
    PLAN_ROOT = 1 << 1,      /* the shim is root and gives everything up after the launch */
    PLAN_SUBREAPER = 1 << 2, /* no pid namespace: adopt what the payload leaves behind */
    PLAN_CGROUP = 1 << 3,    /* SHIM_FD_CGROUP is there: the payload is born in it */
    PLAN_LOGS = 1 << 4,      /* SHIM_FD_LOGS is there */
    PLAN_OOM = 1 << 5,       /* SHIM_FD_OOM is there */
    PLAN_USERNS = 1 << 6,    /* SHIM_FD_USERNS is there: the payload enters it */
    PLAN_JOIN = 1 << 7,      /* of a joiner: into the box of a task that runs */
    PLAN_TERMINAL = 1 << 8,  /* ... with a terminal of `rows` and `columns` */
    PLAN_AUDIT = 1 << 9,     /* task_filter notifies: the shim listens, answers and counts */
};

/* A table of `n` uint64_t at `at`, each the offset of a NUL-terminated string, then one 0. The shim
 * adds the address of its mapping to each and has an argv. */
struct plan_strs {
    uint32_t at;
    uint32_t n;
};

struct plan_log {
    uint32_t name;  /* "web.stdout." */
    uint32_t index; /* file to go on with */
    uint32_t first; /* oldest that exists */
};

struct plan_filter {
    uint32_t at; /* struct sock_filter[n] */
    uint32_t n;  /* 0: none */
};

/* A file of the task's root that is sealed (verity.h) before it starts. */
struct plan_verity {
    uint32_t path;       /* relative to the root */
    uint32_t has_digest; /* whether `digest` is required */
    uint8_t digest[VERITY_DIGEST_BYTES];
};

struct plan_verities {
    uint32_t at; /* struct plan_verity[n] */
    uint32_t n;
};

struct plan_header {
    uint32_t magic;
    uint32_t version; /* SHIM_VERSION */
    uint32_t bytes;   /* of the block; the last one is NUL */
    uint32_t flags;
    uint32_t mounts; /* struct mounts_plan; 0: the mount namespace stays as it is */
    uint32_t mounts_bytes;
    uint32_t confine; /* struct confine */
    struct plan_filter task_filter;
    struct plan_filter shim_filter;
    uint32_t work_dir;      /* absolute in the task's root */
    struct plan_strs paths; /* candidates of the executable, in order */
    struct plan_strs args;
    struct plan_strs env;
    struct plan_log logs[2]; /* stdout, stderr */
    uint32_t log_files;      /* how many are kept; at least 1 */
    uint32_t log_gid;        /* group of log files: the agent's */
    uint32_t id_base;        /* id 0 of the payload on the host */
    uint32_t apparmor;       /* profile of the payload; 0: none */
    uint64_t log_bytes;      /* of one file */
    uint16_t rows;           /* 0: not known */
    uint16_t columns;
    uint32_t program; /* what is executed is this one of `verity`, from 1; 0: found by `paths` */
    struct plan_verities verity;
};

/* The descriptors that a shim works with; absent ones are -1. */
enum shim_fd {
    SHIM_FD_PLAN,   /* memfd */
    SHIM_FD_RECORD, /* struct record, of which the shim writes the part from `run` on */
    SHIM_FD_LOGS,   /* directory */
    SHIM_FD_CGROUP, /* cgroup leaf task/ */
    SHIM_FD_OOM,    /* memory.events of that leaf */
    SHIM_FD_PAUSE, /* pidfd of the pause process */
    SHIM_FD_HOST,   /* the host's mount namespace: raw_exec goes there */
    SHIM_FD_USERNS, /* the payload's user namespace */
    SHIM_FD_NETNS,  /* the network namespace of the allocation */
    SHIM_FD_TARGET, /* pidfd of the shim of the task that a joiner joins */
    SHIM_FD_PROCS,  /* cgroup.procs of that task */
    SHIM_FD_END
};

/* Descriptors that the pad is started with: its socket, and the namespaces that it is at home in.
 */
enum { PAD_FD = 3, PAD_FD_MNT, PAD_FD_IPC, PAD_FD_PID, PAD_FD_END };
enum { PAD_TITLE_MAX = 64, SHIM_FDS_MAX = SHIM_FD_END + MOUNTS_TREES_MAX };
_Static_assert((int)SHIM_FDS_MAX <= 253, "what one message carries (SCM_MAX_FD)");

/* One packet to the pad, with the descriptors of enum pad_fd. The answer is one struct pad_answer
 * with the shim's pidfd. Meanwhile the warden makes the plan. PAD_SOON has neither descriptors nor
 * an answer. */
enum pad_fd {
    PAD_STATUS, /* the shim's end of a SOCK_SEQPACKET pair. It hears of its work there (shim_work),
                 * and tells one struct shim_status, with the payload's pidfd; then its closing says
                 * that the record is complete */
    PAD_LEAF,   /* cgroup leaf shim/: born in it. Absent without cgroups */
    PAD_FDS_MAX
};
enum pad_want {
    PAD_SOON, /* an isolated shim will be asked for: make what it does not depend on */
    PAD_SHIM,
    PAD_JOINER,
};
struct pad_request {
    uint64_t clone_flags;      /* namespaces */
    uint32_t want;             /* enum pad_want */
    char title[PAD_TITLE_MAX]; /* what ps shows */
    uint32_t pad;
};
struct pad_answer {
    int32_t pid; /* of the shim, or -errno */
};

/* Then two packets to the shim, each with descriptors of enum shim_fd and trees of the mount plan,
 * in this order: the first with all for the clone of the payload (its root is the first tree), the
 * second with what it may execute with. A joiner gets one. */
struct shim_work {
    uint32_t have; /* bit per enum shim_fd */
    uint32_t n_trees;
};

enum shim_stage {
    SHIM_RUNS = 0, /* the payload's execve succeeded */
    SHIM_PLAN,
    SHIM_LOGS,
    SHIM_MOUNTS, /* `op` is the operation of the mount plan */
    SHIM_BEGIN,
    SHIM_CLONE,
    SHIM_TASK,
    SHIM_EXEC,
    SHIM_JOIN,     /* the namespaces of a task that runs */
    SHIM_TERMINAL, /* pipes or a terminal for the command */
    SHIM_VERITY,   /* `op` is the file */
    SHIM_STAGE_END
};

struct shim_status {
    int32_t stage;
    int32_t op;
    int32_t error; /* positive errno */
    char what[52]; /* the step in words: "capset" */
    uint8_t digest[VERITY_DIGEST_BYTES]; /* of the file, where another one is required */
};

/* The report of a joiner, sent once when the process has ended, to the other end of its status
 * socket: the agent. When that end is closed, the process is killed with all of its session. */
struct exec_exit {
    int32_t code;
    int32_t signal; /* 0: it exited */
};

#ifndef PADDOCK_FREESTANDING
#include <stdbool.h>
#include <stddef.h>

#include "api/api.h"
#include "common/err.h"
#include "isolation/confine/confine.h"
#include "isolation/confine/seccomp.h"
#include "isolation/confine/users.h"
#include "isolation/root/mounts_op.h"

struct plan_input {
    const struct launch_spec *spec;   /* checked: proto_check_spec(), policy_check_launch() */
    const struct user *user;          /* NULL: rootless, the ids stay */
    const struct mounts_plan *mounts; /* of an isolated launch; else NULL */
    const struct seccomp_program *task_filter; /* NULL: none */
    const struct seccomp_program *shim_filter;
    const char *apparmor; /* profile of the payload; "": none */
    const char *task_dir; /* host path: where raw_exec starts and looks for relative commands */
    uint64_t caps;        /* kept by an isolated payload */
    bool cgroup;
    bool oom;
    bool logs;
    bool userns;
    bool own_filter; /* `task_filter` is not the default one */
    bool audit; /* `task_filter` notifies, and `shim_filter` lets the shim answer */
    const struct exec_request *join; /* a command that joins it: `spec` has it; NULL: a launch */
    uint32_t id_base;
    int landlock_abi; /* 0: none */
    uint32_t log_index[2];
    uint32_t log_first[2];
    uint32_t log_gid;
};

/* *ret is owned by ctx. -ERR_LIMIT (too large), -ERR_INVALID. */
int plan_make(const void *ctx, const struct plan_input *in, void **ret, size_t *ret_n,
              struct err *e);
/* "mount proc on \"proc\": Operation not permitted": a shim's failure in words. */
void plan_explain(const void *plan, const struct shim_status *st, struct err *e);
/* Whether offsets, counts and terminators of a block are right; the shim's check, and the tests':
 * 0, -EPROTO for another version, or -EINVAL. */
#endif
int plan_check(const void *plan, uint64_t bytes);

#endif
