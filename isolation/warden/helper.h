/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs of ours that work for tasks (isolation/launch/helper.h): their start, their end, and
 * that nothing of them is left. There is no record: a new warden ends the helpers of the last one.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_HELPER_H
#define PADDOCK_ISOLATION_WARDEN_HELPER_H

#include "isolation/warden/warden.h"

/* Takes the numbers of descriptors that helpers begin with; as long as few are open. */
int helper_reserve(struct warden *w, struct err *e);
int64_t helper_deadline(const struct warden *w); /* the next one; 0: none */
void helper_deadlines(struct warden *w, int64_t now);
/* The warden ends. */
void helper_kill_all(struct warden *w);
/* Ends what an earlier warden left in a cgroup, by its name there. */
void helper_stray(struct warden *w, const char *alloc, const char *name);

#endif
