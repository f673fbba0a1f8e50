/* SPDX-License-Identifier: Apache-2.0
 *
 * What a warden finds that starts: tasks of earlier ones, and what those did not bring to an end.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_ADOPT_H
#define PADDOCK_ISOLATION_WARDEN_ADOPT_H

#include "isolation/warden/warden.h"

/* Reads all records, takes over living tasks, settles dead ones, removes what is nobody's. */
int adopt_all(struct warden *w, struct err *e);

#endif
