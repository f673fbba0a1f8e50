/* SPDX-License-Identifier: Apache-2.0
 *
 * paddock-shim: free-standing (no libc: a page or two of memory). The warden starts it once, as the
 * launch pad; a fork of that is the shim of a task. It is born in its cgroup leaf and in the task's
 * namespaces, executes the launch plan (plan.h), starts the payload, and then reaps, pumps the logs
 * and keeps the exit status, with no capability and its own system call filter. It survives agent
 * and warden. It never signals, but without root: then it ends what its payload left behind.
 *
 *   shim/pad.c    the launch pad, which forks shims
 *   shim.c        life: plan, launch, wait, records
 *   shim/start.c  from a plan to a running program
 *   shim/log.c    the pump: pipes to rotated files
 *   shim/audit.c  what the task's filter denies, counted
 *   shim/join.c   the other life: a command in a task that runs already
 *   shim/rt.c     entry point, memory functions
 */
#ifndef PADDOCK_ISOLATION_SHIM_PARTS_H
#define PADDOCK_ISOLATION_SHIM_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isolation/launch/plan.h"
#include "isolation/launch/record.h"

/* Entry of the program: the launch pad's life. `title` is the program's second argument. Returns
 * in the pad, and in each shim, with the exit code. */
int shim_pad(char *title, size_t title_size);
/* The life of one shim; `status`: PAD_STATUS. `isolated`: of a task with a pid namespace. */
int shim_main(int status, bool isolated);
/* The life of a joiner: a command that runs in a task (shim/join.c). */
int shim_join(int status);

/* One packet of exactly `n` bytes, with at most `max` descriptors, of which *n_fds came: 1; 0: the
 * other end is closed; -errno. */
long shim_recv(int sock, void *p, size_t n, int *fds, size_t max, size_t *n_fds);
/* Waits for a packet of work, and adds it to what is here (at first all -1, and no tree): 1; 0: the
 * warden is gone; -errno. */
long shim_await_work(int status, int fds[SHIM_FD_END], int trees[MOUNTS_TREES_MAX],
                     uint32_t *n_trees);
/* One message of `n` bytes to the warden, with descriptors. The warden may be gone: then nobody
 * hears it, and the task runs on and will be adopted. */
enum { SHIM_SEND_FDS_MAX = 3 };
void shim_send(int sock, const void *p, size_t n, const int *fds, size_t n_fds);

/* One stream of the payload: a pipe that ends in <name><index>, rotated at `bytes_max`; the oldest
 * is removed when there are more than `files_max`. A file that cannot be written drops bytes,
 * counted, and never blocks the payload. */
struct shim_log {
    int pipe; /* read end, non-blocking; -1: closed */
    int file; /* -1: none could be opened; tried again with the next bytes */
    int dir;
    const char *name; /* prefix, copied: the plan is unmapped */
    uint32_t index;
    uint32_t first;
    uint32_t files_max;
    uint32_t gid;
    uint64_t bytes_max;
    uint64_t bytes; /* in the current file */
    uint64_t *errors;
};

enum { SHIM_NAME_MAX = 160, SHIM_AUDIT_PAUSE_MS = 1000 };

/* The calls that the filter of a task denied (PLAN_AUDIT), until they are in the record. */
struct shim_audit {
    int listener;     /* -1: none */
    bool unwritten;   /* counted, and not in the record yet: look again in SHIM_AUDIT_PAUSE_MS */
    int64_t write_ns; /* not before, CLOCK_MONOTONIC */
};

/* From the payload to its shim, before the program starts: the descriptor, or -errno. */
void shim_audit_send(int sock, int listener);
int shim_audit_receive(int sock);
/* After poll(2), with what it said of the listener: at most one call is answered and counted in
 * `run`. True: the record is to be written. */
bool shim_audit_turn(struct shim_audit *a, int revents, struct record_run *run);

/* Opens the current file; 0 or -errno. */
int shim_log_open(struct shim_log *l);
/* Moves what the pipe holds, at most `rounds` times; true when more may come (pipe open). */
bool shim_log_pump(struct shim_log *l, unsigned rounds);

#endif
