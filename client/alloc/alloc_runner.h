/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocation on this node: its record, its tasks, its directory, its status; and the table of
 * all of them. A runner is freed when it is doomed and nobody holds it (a.hold).
 */
#ifndef PADDOCK_CLIENT_ALLOC_ALLOC_RUNNER_H
#define PADDOCK_CLIENT_ALLOC_ALLOC_RUNNER_H

#include "client/alloc/alloc_int.h"

struct alloc_runner *alloc_runner_find(const struct allocs *in, const char *id);
struct task_runner *alloc_runner_task(struct alloc_runner *ar, const char *task);
bool alloc_runner_terminal(const struct alloc_runner *ar);
/* A new allocation from the server; cloned. */
void alloc_runner_add(struct allocs *in, const struct allocation *a);
/* From the local state, before anything else runs: steals. */
void alloc_runner_restore(struct allocs *in, struct client_alloc *rec, struct client_task **tasks,
                          size_t n);
void alloc_runner_resume(struct alloc_runner *ar); /* adopt, start, kill */
void alloc_runner_update(struct alloc_runner *ar, const struct allocation *a);
/* The server purged it: end it, then forget it. */
void alloc_runner_remove(struct alloc_runner *ar);
void alloc_runner_stop(struct alloc_runner *ar);
/* Ends it, for good, because it has run for max_run_duration. */
void alloc_runner_overdue(struct alloc_runner *ar);
/* Tells each task that is being started that the warden is in trouble. */
void alloc_runner_note_wait(struct alloc_runner *ar);
/* Ends whatever runs and begins the lifecycle again, dead tasks too; not while it ends for good. */
void alloc_runner_begin_anew(struct alloc_runner *ar, const char *why);
/* Removes directory and state of a terminal allocation: gc.c alone, which counts; `gone` comes. */
void alloc_runner_destroy(struct alloc_runner *ar);
void alloc_runner_detach(struct alloc_runner *ar); /* agent goes down: stop timers and watches */
/* All of them: the warden is there, or they need not wait any more. */
void allocs_link_up(struct allocs *in);
void allocs_free(struct allocs *in);
/* Makes the report for the server; owned by ctx, borrows from the runner. */
struct allocation *alloc_runner_report(const void *ctx, const struct alloc_runner *ar);
/* The record changed, which is to be kept and may be to be reported. */
void alloc_runner_persist(struct alloc_runner *ar);

#endif
