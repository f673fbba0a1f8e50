/* SPDX-License-Identifier: Apache-2.0
 *
 * Control groups, version 2 only. Each task has two sibling leaves below ROOT/ALLOC/TASK, `shim`
 * and `task`: limits, group kill by the OOM killer and cgroup.kill apply to `task` and spare the
 * shim, which writes the exit record. Processes are born in their leaf (CLONE_INTO_CGROUP), never
 * moved. Everything is opened beneath the root's fd. Warden side needs root; the readers at the end
 * are for the agent, which gets a directory fd and no privilege.
 */
#ifndef PADDOCK_ISOLATION_CGROUP_CGROUP_H
#define PADDOCK_ISOLATION_CGROUP_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "isolation/cgroup/root.h"
#include "isolation/limits.h"

#define CGROUP_TASKS_DIR "paddock-tasks"

enum { CGROUP_CONTROLLERS_N = 6 };
extern const struct cgroup_controller {
    uint32_t bit;
    const char *name;
} cgroup_controllers[CGROUP_CONTROLLERS_N];

/* The mount of cgroup2 (the first such line of /proc/self/mounts), and which controllers are there.
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
 * `path` is absolute (ROOT). Use one per warden. With `make`, a lock keeps others from removing it:
 * without systemd the agents of a machine share one. */
int cgroup_root_open(struct cgroup_root *ret, const char *path, bool make, struct err *e);
void cgroup_root_close(struct cgroup_root *r);
/* Removes the root if it is empty and no other warden has it open; closes it in any case. */
void cgroup_root_remove(struct cgroup_root *r, const char *path);
/* Says whether the cgroup was removed meanwhile, as an empty one may be by anybody who may. */
bool cgroup_root_gone(const struct cgroup_root *r);

/* --- limits: the plan is pure --- */
struct cgroup_io { /* of one disk; 0: no limit */
    unsigned major, minor;
    int64_t rbps, wbps, riops, wiops;
};
struct cgroup_limits {    /* 0: not set, except where noted; bytes and microseconds */
    int64_t cpu_shares;   /* MHz asked for; becomes cpu.weight 1..10000 (1024 shares = 100) */
    int64_t cpu_max_us;   /* per 100 ms */
    int64_t cpu_burst_us; /* only with cpu_max_us */
    bool cpu_idle;
    struct cgroup_cpus cores; /* for this task alone */
    int64_t memory_max;
    int64_t memory_high;
    int64_t memory_low;
    int64_t memory_min;
    int64_t swap_max;  /* 0: no swap */
    int64_t zswap_max; /* -1: not set */
    int64_t hugetlb_max;
    int64_t pids_max; /* 0: 4096 */
    int64_t io_weight;
    struct cgroup_io io[CGROUP_IO_MAX];
    size_t n_io;
};
enum { CGROUP_PIDS_DEFAULT = 4096 };
/* How much a file matters. BASE: what every task has; written where the controller is, and then a
 * failure is one. ASKED: the job asked for it by name. HINT: as good as it goes. */
enum cgroup_need { CGROUP_BASE, CGROUP_ASKED, CGROUP_HINT };
struct cgroup_file {
    char name[32];
    char value[112];
    enum cgroup_need need;
    bool above;  /* for the parent of both leaves, which competes with other tasks */
    bool absent; /* no such controller here, or (after the apply) no such file */
};
struct cgroup_plan {
    size_t n;
    struct cgroup_file files[CGROUP_FILES_MAX];
    struct cgroup_cpus cores;
    bool has_cores;
    bool keeps_memory; /* memory.low or memory.min: those above need the sums */
    bool strict;       /* what is absent and no hint is an error; set by the caller */
};
void cgroup_plan(const struct cgroup_limits *l, const struct cgroup_root *r,
                 struct cgroup_plan *ret);
/* Returns in words what was asked for and is absent: "io.max, cpuset.cpus"; "" for nothing. */
const char *cgroup_plan_missing(const void *ctx, const struct cgroup_plan *p);
/* The controllers that every task would need, and that are not there: "cpu memory". */
const char *cgroup_plan_unheld(const void *ctx, const struct cgroup_plan *p);
int64_t cgroup_weight_from_shares(int64_t shares);
/* The disk that io limits of a file or a block device are about: a partition's disk. -errno. */
int cgroup_disk(const char *path, unsigned *major, unsigned *minor);

/* --- the two leaves --- */
struct cgroup_task {
    int shim_fd; /* directory fds, O_RDONLY: for CLONE_INTO_CGROUP and *at calls */
    int task_fd;
    uint64_t id; /* of the task leaf: its inode number */
};
/* Makes ALLOC/TASK/shim, in which a shim can be born; ret->task_fd is -1. An empty leaf of an
 * earlier run is made again; an occupied one is -EBUSY. Names are one path component each. */
int cgroup_shim_make(struct cgroup_root *r, const char *alloc, const char *task,
                     struct cgroup_task *ret, struct err *e);
/* Then ALLOC/TASK/task, likewise. On failure t->task_fd stays -1. */
int cgroup_task_make(struct cgroup_root *r, const char *alloc, const char *task,
                     struct cgroup_task *t, struct err *e);
/* Writes the plan into it (weights and what protects memory into TASK too, and the sum of its
 * tasks' into ALLOC: siblings compete, so each level needs one). Cores of its own are taken from
 * all other tasks. On failure some limits are set, and what was made is for cgroup_task_remove().
 */
int cgroup_task_limit(struct cgroup_root *r, const char *alloc, const char *task,
                      struct cgroup_plan *plan, const struct cgroup_task *t, struct err *e);
/* Writes the plan of a task that runs. What a strict plan lacks is an error before anything is
 * changed; after another one all limits are new except those that could not be written. */
int cgroup_task_resize(struct cgroup_root *r, const char *alloc, const char *task,
                       struct cgroup_plan *plan, struct err *e);
/* Opens existing leaves, for adoption; task_fd is -1 where a launch had not come to it. */
int cgroup_task_open(const struct cgroup_root *r, const char *alloc, const char *task,
                     struct cgroup_task *ret, struct err *e);
void cgroup_task_close(struct cgroup_task *t);
/* rmdir of both leaves, the task and, when it was the last, the allocation. 0 when already gone,
 * -EBUSY while populated. */
int cgroup_task_remove(struct cgroup_root *r, const char *alloc, const char *task, struct err *e);

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
/* Removes the leavings of an ended pause process from the tasks' cgroup of RUN_DIR, so that another
 * pause process can start there: kills the processes and waits, `timeout_ms` at most. Without such
 * a cgroup: 0. A pause process that lives is -ERR_CONFLICT, and nothing is touched. Blocking. */
int cgroup_clear(const char *run_dir, int timeout_ms, struct err *e);
/* Tells each shim in the tasks' cgroup of RUN_DIR, by SIGPWR, that the pause process is about to
 * end: no task is done by answering the signal that comes then with exit status 0. No such cgroup:
 * 0. */
int cgroup_tell_ending(const char *run_dir, struct err *e);

/* A descriptor that is ready (POLLPRI), at most once in two seconds, when some process of the
 * cgroup waited for more than `us` of each second, over two; it ends with POLLERR when the cgroup
 * does. Needs root. -errno. */
enum cgroup_pressure { CGROUP_PRESSURE_CPU, CGROUP_PRESSURE_MEMORY, CGROUP_PRESSURE_IO };
int cgroup_pressure_open(int dirfd, enum cgroup_pressure what, int64_t us);

/* --- reading, unprivileged --- */
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
    int64_t io_rbytes; /* of all disks */
    int64_t io_wbytes;
    int64_t io_rios;
    int64_t io_wios;
    struct cgroup_psi cpu;
    struct cgroup_psi memory;
    struct cgroup_psi io;
};
int cgroup_stats_read(int dirfd, struct cgroup_stats *ret);
/* Reads the statistics of the cgroup that an engine has put a process in: that of version 2, and
 * where that has no controllers those of version 1. -ENOENT: it has none whose path contains
 * `mark`, or has gone. *ret_dir, when it is not NULL, is a descriptor of it for its cgroup.procs,
 * or -1. */
int cgroup_process_stats(int64_t pid, const char *mark, struct cgroup_stats *ret, int *ret_dir);
/* Parsers, pure. */
bool cgroup_parse_flat(const char *text, const char *key, int64_t *ret);
/* io.stat, summed over the lines. */
void cgroup_parse_io(const char *text, struct cgroup_stats *ret);
void cgroup_parse_psi(const char *text, struct cgroup_psi *ret);

#endif
