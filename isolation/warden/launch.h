/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches: from a request to the shim at work. Everything that a launch needs to know of the
 * policy is decided here, before anything is made.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_LAUNCH_H
#define PADDOCK_ISOLATION_WARDEN_LAUNCH_H

#include "isolation/warden/warden.h"

/* At the start of each turn: takes the pad's answer to the last launch. False: that failed. */
bool launch_settle(struct warden *w);
/* May it run, as whom and with what? Of all that does not depend on its files and network.
 * `inside`: what it joins is in a user namespace; NULL: decided here, as make_userns() does. */
int launch_authorise(struct warden *w, const struct launch_spec *s, const bool *inside,
                     struct user *user, uint64_t *caps, struct err *e);
/* Makes the system call filter of a task; NULL: none. Good until the next call. */
int launch_filter(struct warden *w, const struct launch_spec *s, bool no_setuid,
                  const struct seccomp_program **ret, struct err *e);

#endif
