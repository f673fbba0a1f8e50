/* SPDX-License-Identifier: Apache-2.0
 *
 * The task record: in a root-only file that no task can reach, one per (allocation, task). The
 * warden writes the first part, when it makes the shim; the shim writes `run` with one pwrite(2)
 * each time. A fixed layout, because the shim has no allocator. Everything else of the project sees
 * it as struct task_record.
 */
#ifndef PADDOCK_ISOLATION_RECORD_H
#define PADDOCK_ISOLATION_RECORD_H

#include <stdint.h>

#define RECORD_MAGIC 0x314b4450u /* "PDK1" */

enum record_state {
    RECORD_LAUNCHING = 0, /* the shim has not written yet */
    RECORD_RUNNING = 1,   /* the payload's execve has succeeded */
    RECORD_FINISHED = 2   /* last thing before the shim exits */
};

enum { RECORD_OOM = 1, RECORD_LOST = 2, RECORD_CORE = 4 };

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
};

/* No pointers, naturally aligned, native byte order. */
struct record {
    uint32_t magic;
    uint32_t bytes; /* sizeof(struct record) */
    char alloc_id[40];
    char task[136];
    char boot_id[40];
    uint64_t shim_start; /* clock ticks since boot, /proc/PID/stat field 22 */
    uint64_t cgroup_id;  /* of the leaf task/; 0: none */
    int32_t shim_pid;    /* in the warden's pid namespace; 0: not yet */
    uint32_t uid;        /* of the payload */
    struct record_run run;
};

#ifndef PADDOCK_FREESTANDING
struct task_record;

/* Reads the record behind `fd` (pread at 0). -ERR_CORRUPT when it is none. *ret is owned by ctx.
 * A record with FinishedAt 0 whose pidfd says that the shim has ended is that of a lost task: the
 * shim was killed. */
int record_read(const void *ctx, int fd, struct task_record **ret);
int record_read_raw(int fd, struct record *ret);
struct task_record *record_export(const void *ctx, const struct record *r);
#endif

#endif
