/* SPDX-License-Identifier: Apache-2.0
 *
 * What a warden finds that starts: tasks of earlier ones, and what those did not bring to an end.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_ADOPT_H
#define PADDOCK_ISOLATION_WARDEN_ADOPT_H

#include "isolation/warden/warden.h"

/* Reads all records, takes over living tasks, settles dead ones, removes what is nobody's. */
int adopt_all(struct warden *w, struct err *e);
void adopt_payload(struct wtask *t); /* finds it, where the record names one that lives */
bool adopt_launched(const struct wtask *t); /* the record says that the payload ran */
/* A launch of an earlier warden: looks whether it is over; false when it is none, or overdue. */
bool adopt_await(struct warden *w, struct wtask *t, int64_t now);
void adopt_decided(struct warden *w, struct wtask *t, bool launched);

#endif
