/* SPDX-License-Identifier: Apache-2.0
 *
 * A look at a service by a command in a task, as `alloc exec` runs it: with the task's user,
 * confinement and environment, and without input. Exit code 0 passes. At the end of its time
 * it is killed; PROBE_OUTPUT_MAX bytes of its output are kept.
 */
#ifndef PADDOCK_CLIENT_ALLOC_CHECK_SCRIPT_H
#define PADDOCK_CLIENT_ALLOC_CHECK_SCRIPT_H

#include "client/probe/probe.h"
#include "client/task/task_int.h"

struct check_script;

/* Starts it; strings are copied. `done` comes once, never from inside the call. NULL: it cannot be
 * run, as *e says. */
struct check_script *check_script_start(struct task_runner *tr, const struct service_check *c,
                                        int64_t timeout_ms, probe_done *done, void *arg,
                                        struct err *e);
/* `done` does not come any more, and the command is killed. Not after it came; NULL is fine. */
void check_script_cancel(struct check_script *x);

#endif
