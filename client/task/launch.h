/* SPDX-License-Identifier: Apache-2.0
 *
 * The input of a task's driver, and its result.
 */
#ifndef PADDOCK_CLIENT_TASK_LAUNCH_H
#define PADDOCK_CLIENT_TASK_LAUNCH_H

#include "client/task/task_int.h"

/* MiB of memory that its secrets directory is; 0: the directory is on the disk. */
int64_t launch_secrets_mb(const struct task_runner *tr);
/* The task's user, resolved; "" for the driver's default. */
const char *launch_user(const void *ctx, struct task_runner *tr);
/* Says whose a file is that is put for the task alone, and its mode. A container's user is its
 * image's: where the host has none of the name, the file is for all that is in the container,
 * behind a directory that nobody of the host gets into. */
void launch_owner(const void *ctx, struct task_runner *tr, bool writes, struct warden_put *ret);
/* NULL: *e says why. */
const struct driver_input *launch_input(const void *ctx, struct task_runner *tr, struct err *e);
struct launch_spec *launch_spec_build(const void *ctx, struct task_runner *tr, struct err *e);

/* The environment of a task without what its hooks add, for those, and the directories as the
 * task sees them. NULL: *e says why. */
struct artifact_dirs;
struct env *launch_env(const void *ctx, struct task_runner *tr, struct artifact_dirs *dirs,
                       struct err *e);

/* The hooks of its allocation make what it needs. */
bool launch_needs_alloc(const struct task_runner *tr);

#endif
