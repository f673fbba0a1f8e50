/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries out what the machine of a task asks for. Driven by its allocation, to which it reports.
 */
#ifndef PADDOCK_CLIENT_TASK_TASK_RUNNER_H
#define PADDOCK_CLIENT_TASK_TASK_RUNNER_H

#include "client/task/handle.h"

void task_runner_init(struct task_runner *tr, struct alloc_core *a,
                      const struct task_events *events, const struct task *task,
                      struct client_task *record);
void task_runner_configure(struct task_runner *tr, const struct task *task);
void task_runner_done(struct task_runner *tr);
void task_runner_act(struct task_runner *tr, unsigned acts);
/* At start: adopts, or goes on waiting. */
void task_runner_resume(struct task_runner *tr);
/* While the warden is in trouble: an event says so of a launch that waits for it, once. */
void task_runner_note_wait(struct task_runner *tr);
void task_runner_link_up(struct task_runner *tr); /* what the warden could not be asked */
void task_runner_ready(struct task_runner *tr);   /* the allocation's hooks are done or failed */
/* Signal and pause the task, if its handle can. `done` NULL: nobody waits. */
void task_runner_signal(struct task_runner *tr, int sig, const char *why, client_done *done,
                        void *arg);
void task_runner_pause(struct task_runner *tr, int on, client_done *done, void *arg);

#endif
