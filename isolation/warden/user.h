/* SPDX-License-Identifier: Apache-2.0
 *
 * Who runs a task: policy_user() with a cache, which is good as long as the account files are.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_USER_H
#define PADDOCK_ISOLATION_WARDEN_USER_H

#include "isolation/warden/warden.h"

/* `inside`: in a user namespace. */
int user_get(struct warden *w, const struct launch_spec *s, bool inside, struct user *ret,
             struct err *e);

#endif
