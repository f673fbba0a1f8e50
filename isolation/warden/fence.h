/* SPDX-License-Identifier: Apache-2.0
 *
 * The watchdog of fenced tasks (doc/fencing.md): each is to run until a time, which the agent moves
 * on when a server has answered it, and is killed then, whether the agent lives or not. The time is
 * on a clock that goes on while the machine is suspended, and in the task's record, so that a
 * restarted warden obeys.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_FENCE_H
#define PADDOCK_ISOLATION_WARDEN_FENCE_H

#include "isolation/launch/record.h"
#include "isolation/warden/warden.h"

int fence_open(struct warden *w, struct err *e);
/* Says whether the task's time is over: it is not to be launched. */
bool fence_is_over(int64_t until_ms);
/* Turn a deadline into the form that a record has, and back. 0: none. */
uint64_t fence_put(int64_t until_ms);
int64_t fence_get(uint64_t field);
/* From here on; kills at once what is late. `until_ms` 0: it has none. */
void fence_task(struct warden *w, struct wtask *t, int64_t until_ms);

#endif
