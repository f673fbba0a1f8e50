/* SPDX-License-Identifier: Apache-2.0
 *
 * The tasks of the warden, an entry and a record file each. An entry is in warden.tasks and in its
 * bucket from task_add() to task_free(); `forgotten` ones are found by no request. It has a
 * deadline exactly when it is in warden.due.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_TASK_H
#define PADDOCK_ISOLATION_WARDEN_TASK_H

#include "isolation/warden/warden.h"

/* NULL: unknown, or forgotten. */
struct wtask *task_find(struct warden *w, const char *alloc, const char *name);
/* Finds a task as it is now, its end included: for requests. */
struct wtask *task_find_now(struct warden *w, const char *alloc, const char *name);
/* Whether its record is complete: its shim is gone, or about to be. */
bool task_ended(const struct wtask *t);
/* A launch of an earlier warden: looks whether it is over; false when it is none, or overdue. */
bool task_await(struct warden *w, struct wtask *t, int64_t now);
/* Whether the payload runs is known: answers whose launch it is, or who adopted it meanwhile. */
void task_decided(struct warden *w, struct wtask *t, bool launched);
struct wtask *task_add(struct warden *w, const char *alloc, const char *name);
void task_forget(struct warden *w, struct wtask *t); /* record and cgroup too */
void task_free(struct warden *w, struct wtask *t);
bool task_alloc_busy(struct warden *w, const char *alloc);
/* Something of a forgotten one is still to be removed. */
bool task_remains(struct warden *w, const char *alloc, const char *name);
#define RECORD_DOOMED '-' /* first character of the file name of a record whose task is removed */
void task_record_name(char out[256], const char *alloc, const char *name);
void task_record_unlink_doomed(struct warden *w, const struct wtask *t);
void task_unknown(struct warden *w, struct waiter to, const char *alloc, const char *name);
void task_deadline(struct warden *w, struct wtask *t, int64_t at_ns); /* 0: none */
void task_deadlines(struct warden *w, int64_t now);
int task_timeout(struct warden *w, int64_t now); /* ms; -1: no deadline */
/* The shim is gone: the end of the task; `why` are flags of the record beside RECORD_LOST. */
void task_settle(struct warden *w, struct wtask *t, uint32_t why);
void task_kill_now(struct warden *w, struct wtask *t);
/* The task, and its shim only where that has not begun it. */
void task_end_now(struct warden *w, struct wtask *t);
void task_kill_all(struct warden *w);
void task_sweep(struct warden *w); /* frees those that are gone */

#endif
