/* SPDX-License-Identifier: Apache-2.0
 *
 * The task record: in a root-only file that no task can reach, one per (allocation, task). The
 * warden writes the first part, when it makes the shim; the shim writes `run` with one pwrite(2)
 * each time. A fixed layout, because the shim has no allocator. Everything else of the project sees
 * it as struct task_record.
 */
#ifndef PADDOCK_ISOLATION_LAUNCH_RECORD_H
#define PADDOCK_ISOLATION_LAUNCH_RECORD_H

#include <stdint.h>

#include "isolation/limits.h"

#define RECORD_MAGIC 0x524b4450u /* "PDKR" */

enum record_state {
    RECORD_LAUNCHING = 0, /* the shim has not written yet */
    RECORD_RUNNING = 1,   /* the payload's execve has succeeded */
    RECORD_FINISHED = 2   /* last thing before the shim exits */
};

enum {
    RECORD_OOM = 1,
    RECORD_LOST = 2, /* the shim was killed: written by the warden in its place */
    RECORD_CORE = 4,
    RECORD_REBOOT = 8,   /* ... with the whole machine */
    RECORD_FOREIGN = 16, /* `run` is of a version that is not known here */
    RECORD_ENDING = 32,  /* the pause process was ending, alone or with the machine */
};

/* How often the task was denied a system call (mode "audit"). */
struct record_call {
    uint64_t times; /* 0: this entry and all behind it are free */
    uint32_t nr;
    uint32_t pad;
};

struct record_run {
    uint32_t state;
    uint32_t flags;
    int64_t started_ns; /* CLOCK_REALTIME */
    int64_t finished_ns;
    uint64_t log_errors;
    int32_t pid; /* of the payload, as the shim sees it */
    int32_t exit_code;
    int32_t signal;
    int32_t pad;
    struct record_call denied[RECORD_CALLS_MAX];
    uint64_t denied_more; /* times, of calls that have no room there */
};

/* No pointers, naturally aligned, native byte order. All before `run` is the same in every version,
 * so that a warden can find, signal and end the task of a newer one. For as long as it lives a shim
 * holds a lock (fcntl(2), F_SETLK) on its record: who holds it is the shim, whatever numbers are
 * written here. */
struct record {
    uint32_t magic;
    uint32_t version; /* of `run`: SHIM_VERSION of plan.h */
    char alloc_id[40];
    char task[136];
    char boot_id[40];
    uint64_t fence; /* until when it may run, as fence_put() of warden/fence.h has it; 0: no such
                     * time. Others: of older wardens */
    uint64_t cgroup_id;  /* of the leaf task/; 0: none */
    int32_t shim_pid;    /* in the warden's pid namespace; 0: not known yet */
    uint32_t uid;        /* of the payload */
    struct record_run run;
};

#ifndef PADDOCK_FREESTANDING
#include <stdbool.h>
#include <sys/types.h>

struct task_record;

/* Reads the record behind `fd` (pread at 0). -ERR_CORRUPT when it is none. *ret is owned by ctx.
 * One of another version is a running task of which no more is known (RECORD_FOREIGN). */
int record_read(const void *ctx, int fd, struct task_record **ret);
int record_read_raw(int fd, struct record *ret);
struct task_record *record_export(const void *ctx, const struct record *r);
/* "mount once, bpf 3 times": what the task was denied; NULL: nothing that was counted. */
const char *record_denied(const void *ctx, const struct task_record *t);
/* Settles a record whose shim has ended. If the record does not say how, it becomes that of a lost
 * task: the shim was killed. False: it was complete. */
bool record_settle(struct record *r, int64_t now_ns);
/* The process that holds the record's lock, in our pid namespace; 0: none. */
pid_t record_shim_pid(int fd);
#endif

#endif
