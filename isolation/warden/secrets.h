/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that secrets of tasks are in: a tmpfs on <task>/secrets, which is never swapped from
 * Linux 6.4 on. The host's mount namespace has it, for tasks of raw_exec and helpers, and
 * the warden's, for sandboxes. It goes with the allocation's directory, or with the machine.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_SECRETS_H
#define PADDOCK_ISOLATION_WARDEN_SECRETS_H

#include "isolation/warden/warden.h"

/* Says whether a request to make directories names memory, and there can be some: not without root,
 * nor where tasks have user namespaces and a tmpfs takes no id-mapped mount (before Linux 6.3). */
bool secrets_wanted(const struct warden *w, const struct warden_request *q);

/* For loop_fork(): mounts what the request names and is not there yet. 0 or -errno. */
int secrets_mount(struct warden *w, void *request);

/* In a child, whose working directory changes: unmounts the memory below `dir` of alloc_dir, where
 * no task has moved it. */
void secrets_unmount(struct warden *w, const char *dir);

#endif
