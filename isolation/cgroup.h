/* SPDX-License-Identifier: Apache-2.0
 *
 * Control groups, version 2 only. Each task has two sibling leaves below ROOT/ALLOC/TASK, `shim`
 * and `task`: limits, group kill by the OOM killer and cgroup.kill apply to `task` and spare the
 * shim, which writes the exit record. Processes are born in their leaf (CLONE_INTO_CGROUP), never
 * moved. Everything is opened beneath the root's fd. Warden side needs root; the readers at the end
 * are for the agent, which gets a directory fd and no privilege.
 */
#ifndef PADDOCK_ISOLATION_CGROUP_H
#define PADDOCK_ISOLATION_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "isolation/limits.h"

#define CGROUP_TASKS_DIR "paddock-tasks"

enum {
    CGROUP_CPU = 1,
    CGROUP_MEMORY = 2,
    CGROUP_PIDS = 4,
    CGROUP_IO = 8,
    CGROUP_CPUSET = 16,
    CGROUP_HUGETLB = 32,
};

/* Where cgroup2 is mounted (first one in /proc/self/mounts that is a cgroup2), and what it offers.
 * -ERR_NOT_FOUND without a cgroup2 mount. `mount` owned by ctx. */
struct cgroup_info {
    const char *mount;
    uint32_t controllers; /* of the root's cgroup.controllers */
};
int cgroup_find(const void *ctx, struct cgroup_info *ret, struct err *e);
/* Mask of names in text as cgroup.controllers has it. */
uint32_t cgroup_parse_controllers(const char *text);
/* "cpu memory pids" in a fixed order; owned by ctx. */
const char *cgroup_controllers_text(const void *ctx, uint32_t mask);

/* The parent of all tasks: opened, made if `make`, controllers enabled down to it where possible.
 * `path` is absolute (ROOT). Use one per warden. */
struct cgroup_root {
    int fd;               /* directory */
    uint32_t controllers; /* that tasks below can use */
    const char *owner;    /* borrowed; marks what is made (trusted.paddock.owner). NULL: no marks */
};
int cgroup_root_open(struct cgroup_root *ret, const char *path, bool make, struct err *e);
void cgroup_root_close(struct cgroup_root *r);
/* It was removed meanwhile, as an empty one may be by anybody who may. */
bool cgroup_root_gone(const struct cgroup_root *r);

/* --- limits: the plan is pure ---------------------------------------------------------------- */
struct cgroup_limits {  /* 0: not set, except where noted */
    int64_t cpu_shares; /* MHz asked for; becomes cpu.weight 1..10000 (1024 shares = 100) */
    int64_t cpu_max_us; /* per 100 ms */
    int64_t memory_max; /* bytes */
    int64_t memory_high;
    int64_t swap_max; /* bytes; 0: no swap */
    int64_t pids_max; /* 0: 4096 */
};
enum { CGROUP_WEIGHT_MAX = 10000 };
struct cgroup_file {
    const char *name; /* literal */
    char value[48];
    bool required; /* a limit: the launch fails when it cannot be written */
    bool above;    /* for the parent of both leaves, which competes with other tasks */
};
struct cgroup_plan {
    size_t n;
    struct cgroup_file files[CGROUP_FILES_MAX];
};
void cgroup_plan(const struct cgroup_limits *l, uint32_t controllers, struct cgroup_plan *ret);
int64_t cgroup_weight_from_shares(int64_t shares);

/* --- the two leaves
 * ------------------------------------------------------------------------------- */
struct cgroup_task {
    int shim_fd; /* directory fds, O_RDONLY: for CLONE_INTO_CGROUP and *at calls */
    int task_fd;
    uint64_t id; /* of the task leaf: its inode number */
};
/* Makes ALLOC/TASK/{shim,task} and writes the plan into task/ (a processor weight into TASK, and
 * the sum of its tasks' into ALLOC: siblings compete, so each level needs one). Existing empty
 * leaves of an earlier run are used again; occupied ones are -EBUSY.
 * Names are one path component each. */
int cgroup_task_make(const struct cgroup_root *r, const char *alloc, const char *task,
                     const struct cgroup_plan *plan, struct cgroup_task *ret, struct err *e);
/* Opens existing leaves, for adoption. */
int cgroup_task_open(const struct cgroup_root *r, const char *alloc, const char *task,
                     struct cgroup_task *ret, struct err *e);
void cgroup_task_close(struct cgroup_task *t);
/* rmdir of both leaves, the task and, when it was the last, the allocation. 0 when already gone,
 * -EBUSY while populated. */
int cgroup_task_remove(const struct cgroup_root *r, const char *alloc, const char *task,
                       struct err *e);

/* ALLOC and TASK of every task's cgroup that bears the root's mark. */
void cgroup_each_task(const struct cgroup_root *r,
                      void (*fn)(void *arg, const char *alloc, const char *task), void *arg);

/* Kills everything in the leaf: cgroup.kill, or signals in a loop where it is missing. */
int cgroup_kill(int dirfd);
int cgroup_freeze(int dirfd, bool freeze);
/* 1 populated, 0 empty, or -errno (-ENODEV, -ENOENT: removed). */
int cgroup_populated(int dirfd);
/* An fd of cgroup.events: poll it for POLLPRI, then read cgroup_populated() again. */
int cgroup_events_open(int dirfd);
/* Waits until the leaf is empty: 0, or -ETIMEDOUT. Blocking: not in the warden's loop. */
int cgroup_wait_empty(int dirfd, int timeout_ms);
/* memory.events: oom_kill count of the leaf, or -errno where memory is not controlled. */
int64_t cgroup_oom_kills(int dirfd);

/* --- reading, unprivileged
 * -------------------------------------------------------------------------- */
struct cgroup_psi { /* avg10 in percent, total in microseconds */
    bool present;
    double some_avg10;
    double full_avg10;
    uint64_t some_total_us;
    uint64_t full_total_us;
};
struct cgroup_stats { /* -1: not available here */
    int64_t usage_us;
    int64_t user_us;
    int64_t system_us;
    int64_t nr_periods;
    int64_t nr_throttled;
    int64_t throttled_us;
    int64_t memory_current;
    int64_t memory_peak;
    int64_t memory_swap;
    int64_t memory_rss;   /* anon of memory.stat */
    int64_t memory_cache; /* file */
    int64_t memory_mapped;
    int64_t pids_current;
    int64_t oom_kills;
    struct cgroup_psi cpu;
    struct cgroup_psi memory;
    struct cgroup_psi io;
};
int cgroup_stats_read(int dirfd, struct cgroup_stats *ret);
/* Parsers, pure. */
bool cgroup_parse_flat(const char *text, const char *key, int64_t *ret);
void cgroup_parse_psi(const char *text, struct cgroup_psi *ret);

#endif
