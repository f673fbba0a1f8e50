/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the hooks of an allocation (hooks.h), and is told by them.
 */
#ifndef PADDOCK_CLIENT_ALLOC_HOOKS_RUN_H
#define PADDOCK_CLIENT_ALLOC_HOOKS_RUN_H

#include "client/alloc/alloc_int.h"

/* Tasks wait for them: makes what is wanted; task_runner_ready() follows. */
void hooks_prestart(struct alloc_runner *ar);
/* Ends the work that `h` was asked for: it is done (`e` NULL) or not. */
void hooks_done(struct alloc_runner *ar, const struct alloc_hook *h, const struct err *e);
/* A launch waits, and they were not asked for. */
void hooks_resume(struct alloc_runner *ar);
/* A task is otherwise, or the servers want something else of the allocation. */
void hooks_changed(struct alloc_runner *ar);
/* Are task_events.env, and what follows the allocation's end and the agent's. */
void hooks_env(struct alloc_core *a, const void *ctx, struct str_map *ret);
void hooks_exited(struct alloc_runner *ar);
/* All tasks of this one have ended: tells the others. */
void hooks_other_ended(struct alloc_runner *ar);
void hooks_stop(struct alloc_runner *ar);
/* Says once by an event of a task what is wrong with something beside it: "WHAT: why". Its run goes
 * on. */
void hooks_blame(struct task_runner *tr, const char *what, const struct err *e);

#endif
