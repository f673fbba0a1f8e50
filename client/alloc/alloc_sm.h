/* SPDX-License-Identifier: Apache-2.0
 *
 * The lifecycle of an allocation: which of its tasks may start and which must end now, and what the
 * allocation as a whole is. No state of its own: everything is derived from the tasks' records, so
 * a restarted agent decides the same. Pure.
 *
 *   prestart -> main -> poststart; poststop when all others are dead.
 *
 * An ephemeral prestart task must succeed and a prestart sidecar must run before main tasks start.
 * Poststart tasks start when every main task has started. A failed task (poststop aside), a dead
 * leader, or a set of tasks in which only sidecars are left ends the others: the leader first, then
 * the other tasks, then sidecars. An allocation that begins anew (task_sm_rewind() of each task)
 * ends whatever runs, all at once, before its first task starts. One that has run for
 * max_run_duration ends with its poststop tasks.
 */
#ifndef PADDOCK_CLIENT_ALLOC_ALLOC_SM_H
#define PADDOCK_CLIENT_ALLOC_ALLOC_SM_H

#include <stdbool.h>
#include <stddef.h>

#include "client/task/task_sm.h"

struct alloc_verdict { /* for one task */
    bool start;
    bool kill;
    enum task_kill_reason why;
    const char *sibling; /* name of the task that failed; points into its record */
};

enum alloc_end {
    ALLOC_END_NONE,
    ALLOC_END_STOP,   /* a server or an operator wants it; poststop tasks run */
    ALLOC_END_OVERDUE /* it has run for max_run_duration; poststop tasks end, or never run */
};

/* `end`: whether the allocation must end, and why. Fills verdicts[0..n). */
void alloc_sm_step(const struct task_sm *const *tasks, size_t n, enum alloc_end end,
                   struct alloc_verdict *verdicts);

/* "pending", "running", "complete", "failed" and the words beside it. */
const char *alloc_sm_status(const struct task_sm *const *tasks, size_t n,
                            const char **ret_description);

#endif
