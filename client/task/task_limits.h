/* SPDX-License-Identifier: Apache-2.0
 *
 * The limits of a task that runs, after an update in place.
 */
#ifndef PADDOCK_CLIENT_TASK_TASK_LIMITS_H
#define PADDOCK_CLIENT_TASK_TASK_LIMITS_H

#include "client/task/task_int.h"

/* Limits that the warden could not set, as an event; empty: none. */
void task_limits_warn(struct task_runner *tr, const char *warning);
/* The limits of its job for the task that runs. */
void task_limits_resize(struct task_runner *tr);
/* The allocation was updated: is this to be resized? */
bool task_limits_differ(const struct task *a, const struct task *b);

#endif
