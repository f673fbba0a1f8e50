/* SPDX-License-Identifier: Apache-2.0
 *
 * From a plan to a running program: what a shim and a joiner (shim/join.c) have in common.
 * Free-standing.
 */
#ifndef PADDOCK_ISOLATION_SHIM_START_H
#define PADDOCK_ISOLATION_SHIM_START_H

#include "isolation/launch/plan.h"

enum { SIGSET_BYTES = 8 };

static inline char *
plan_text(const struct plan_header *h, uint32_t at)
{
    return (char *)(uintptr_t)h + at;
}

/* The failure that the warden is to be told: `error` is -errno, `what` the step. */
void shim_fail(struct shim_status *st, int stage, long error, const char *what);
/* Blocks all signals for good; SIGCHLD and SIGPWR come by the descriptor that is returned. */
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
    int root;                 /* its root, which need not be complete; -1: ours */
};

/* Once in a process: the child, its pid and *pidfd, or -errno with the step in `st`. It prepares
 * itself and waits for shim_finish_payload() before it uses anything of its root. `p` stays. */
long shim_clone_payload(const struct shim_payload *p, int *pidfd, struct shim_status *st);
/* The root is complete: while the child comes to execute the program, this process gives up the
 * privilege that only the start needed. When it returns the program runs, or `st` says why not. */
void shim_finish_payload(struct shim_status *st);
/* Then, when it has been told: gives back the memory of the start, the plan too. */
void shim_forget_start(void);
/* Ends the children of this process, which is their subreaper, until there is none; `group` where
 * /proc does not tell. */
void shim_end_children(long group);

#endif
