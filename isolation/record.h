/* SPDX-License-Identifier: Apache-2.0
 *
 * The task record: what the shim writes about its task, in a root-only file that no task can reach.
 * A fixed layout, because the shim has no allocator: little work to write with one pwrite(2), and a
 * reader sees all of it or none. Everything else of the project sees it as struct task_record.
 */
#ifndef PADDOCK_ISOLATION_RECORD_H
#define PADDOCK_ISOLATION_RECORD_H

#include <stdint.h>

#define RECORD_MAGIC 0x314b4450u /* "PDK1" */

enum record_state {
    RECORD_LAUNCHING = 1, /* written by the warden before the shim is made */
    RECORD_RUNNING = 2,   /* written by the shim when the payload's execve has succeeded */
    RECORD_FINISHED = 3   /* written by the shim, last thing before it exits */
};

/* Shared with the free-standing shim: no pointers, naturally aligned, native byte order. */
struct record {
    uint32_t magic;
    uint32_t state;
    char alloc_id[40];
    char task[136];
    char boot_id[40];
    int64_t started_ns;  /* CLOCK_REALTIME */
    int64_t finished_ns;
    uint64_t pid_start;  /* clock ticks since boot, /proc/PID/stat field 22 */
    uint64_t shim_start;
    uint64_t cgroup_id;  /* of the leaf task/ */
    uint64_t log_errors;
    int32_t pid;         /* of the payload in the warden's pid namespace; 0: not known */
    int32_t shim_pid;
    int32_t exit_code;
    int32_t signal;
    int32_t step;        /* of the plan that failed, -1 */
    int32_t error;       /* its errno */
    uint32_t uid;
    uint32_t flags;      /* RECORD_OOM, RECORD_LOST */
};

enum { RECORD_OOM = 1, RECORD_LOST = 2, RECORD_CORE = 4 };

#ifndef PADDOCK_FREESTANDING
struct task_record;

/* Reads the record behind `fd` (pread at 0). -ERR_CORRUPT when it is none. *ret is owned by ctx. */
int record_read(const void *ctx, int fd, struct task_record **ret);
int record_read_raw(int fd, struct record *ret);
struct task_record *record_export(const void *ctx, const struct record *r);
#endif

#endif
