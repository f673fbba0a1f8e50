/* SPDX-License-Identifier: Apache-2.0
 *
 * Directories and files of allocations. No path that a task controls is followed out of its
 * allocation.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_FILES_H
#define PADDOCK_ISOLATION_WARDEN_FILES_H

#include "isolation/warden/warden.h"

void files_probe(struct warden *w); /* the file system of alloc_dir */
/* Log directory and where to go on, for a launch. */
int files_logs(struct warden *w, const struct launch_spec *s, int *ret_dir, uint32_t index[2],
               uint32_t first[2], struct err *e);
/* Finds the user whose the directories of a task are. */
int files_owner(struct warden *w, const struct warden_task *t, struct user *ret, struct err *e);
/* Removes a directory in that of the allocation, by and by; it has its name no more. Not there:
 * nothing. */
void files_discard(struct warden *w, const char *alloc, const char *name);
/* Removes what earlier wardens, or a helper that was killed, did not get to. */
void files_empty_trash(struct warden *w);

#endif
