/* SPDX-License-Identifier: Apache-2.0
 *
 * A task's turn to restart because a template of it has changed: of a group as many allocations
 * restart at a time as its update block lets (max_parallel), whichever nodes they are on. The
 * leader gives turns (server/leader/vars/turns.c); while none is reached, the task runs
 * on as it is.
 */
#ifndef PADDOCK_CLIENT_TURN_H
#define PADDOCK_CLIENT_TURN_H

#include "client/ground.h"

struct turn;
typedef void turn_granted(void *arg);

/* Asks until it is granted: then `granted`, once, never from inside. */
struct turn *turn_ask(const struct alloc_core *a, const char *task, turn_granted *granted,
                      void *arg);
bool turn_is_granted(const struct turn *t);
/* Gives it back, or waits no longer. NULL: nothing. */
void turn_end(struct turn *t);

#endif
