/* SPDX-License-Identifier: Apache-2.0
 *
 * A gate in front of something that worker threads use and that will go: while it is closed nobody
 * comes in, and closing waits for those who are inside. Whoever may come keeps a reference, so the
 * gate outlives what it guards. Any thread.
 */
#ifndef PADDOCK_SERVER_GATE_H
#define PADDOCK_SERVER_GATE_H

#include <stdbool.h>

struct gate;

struct gate *gate_new(void); /* one reference */
struct gate *gate_ref(struct gate *g);
void gate_unref(struct gate *g);
bool gate_enter(struct gate *g); /* false: closed */
void gate_leave(struct gate *g);
bool gate_is_closed(struct gate *g);
/* Waits until nobody is inside. */
void gate_close(struct gate *g);

#endif
