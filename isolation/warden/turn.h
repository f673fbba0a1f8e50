/* SPDX-License-Identifier: Apache-2.0
 *
 * The turns of the warden: an event, then what is due, then what is to be freed. One event is taken
 * at a time, so nothing that an event freed can be met again.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_TURN_H
#define PADDOCK_ISOLATION_WARDEN_TURN_H

#include "isolation/warden/warden.h"

int turn_signals(struct warden *w, struct err *e); /* before anybody can know that we are there */
/* Until a signal ends it; 0, or why it cannot go on. */
int turn_run(struct warden *w, struct err *e);
void turn_done(struct warden *w); /* frees the warden */

#endif
