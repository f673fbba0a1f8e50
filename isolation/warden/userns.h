/* SPDX-License-Identifier: Apache-2.0
 *
 * User namespaces of allocations: a range of host ids each. An allocation keeps its range as long
 * as it has a task or userns_drop() was not called; a namespace without a task may be taken back.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_USERNS_H
#define PADDOCK_ISOLATION_WARDEN_USERNS_H

#include "isolation/warden/warden.h"

void userns_probe(struct warden *w);
/* Allowed by the policy, and possible. */
bool userns_wanted(const struct warden *w);
/* Makes it where it is not there yet. Good until the next call for another allocation. */
int userns_get(struct warden *w, const char *alloc, const struct userns **ret, struct err *e);
void userns_drop(struct warden *w, const char *alloc);
/* The range that a user of the host is in; 0: none of ours. */
uint32_t userns_range_of(const struct warden *w, uint32_t uid);

#endif
