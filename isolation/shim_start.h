/* SPDX-License-Identifier: Apache-2.0
 *
 * From a plan to a running program: what a shim and a joiner (shim_join.c) have in common.
 * Free-standing.
 */
#ifndef PADDOCK_ISOLATION_SHIM_START_H
#define PADDOCK_ISOLATION_SHIM_START_H

#include "isolation/plan.h"

enum { SIGSET_BYTES = 8 };

static inline char *
plan_text(const struct plan_header *h, uint32_t at)
{
    return (char *)(uintptr_t)h + at;
}

/* The failure that the warden is to be told: `error` is -errno, `what` the step. */
void shim_fail(struct shim_status *st, int stage, long error, const char *what);
/* All signals are blocked for good; SIGCHLD comes by the descriptor that is returned. */
long shim_signals(void);
/* Maps and checks it; 0 or -errno. */
int shim_map_plan(int fd, struct plan_header **ret);
/* A process that watches tasks is of a user whom no task can be. Its capabilities stay until
 * shim_start_payload(). */
long shim_leave_root(void);

struct shim_payload {
    struct plan_header *plan; /* its pointer tables are made in place */
    int cgroup;               /* leaf task/, with PLAN_CGROUP */
    int userns;               /* with PLAN_USERNS */
    int program;              /* executed in place of the plan's paths; 0: none */
    int streams[3];           /* become 0, 1, 2; where the number is the same it stays */
    uint64_t keep;            /* capabilities that we keep, a bit each */
    int *listener;            /* out, with PLAN_AUDIT: where calls that are denied come */
};

/* Once in a process. The program's pid once it runs, and *pidfd; else -errno or, with its step in
 * st->stage, a failure in the child. While the child prepares itself, this process gives up the
 * privilege that only the start needed. */
long shim_start_payload(const struct shim_payload *p, int *pidfd, struct shim_status *st);
/* Ends the children of this process, which is their subreaper, until there is none; `group` where
 * /proc does not tell. */
void shim_end_children(long group);

#endif
