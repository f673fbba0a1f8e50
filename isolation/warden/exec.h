/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that join running tasks (alloc exec), until they have started; then they are the
 * agent's.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_EXEC_H
#define PADDOCK_ISOLATION_WARDEN_EXEC_H

#include "isolation/warden/warden.h"

int64_t exec_deadline(const struct warden *w); /* the next one; 0: none */
void exec_deadlines(struct warden *w, int64_t now);

#endif
