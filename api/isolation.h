/* SPDX-License-Identifier: Apache-2.0
 *
 * The isolation block of a task, from the job to the warden. Pure.
 */
#ifndef PADDOCK_API_ISOLATION_H
#define PADDOCK_API_ISOLATION_H

#include <stddef.h>

#include "api/api.h"

/* `i`, or for NULL one that asks for nothing. */
const struct task_isolation *isolation_of(const struct task_isolation *i);

enum { ISOLATION_BOX_MAX = 8 };
/* Names of what it asks for that only a box gives: a driver that does not isolate has none of it. */
size_t isolation_box(const struct task_isolation *i, const char *names[ISOLATION_BOX_MAX]);

/* Landlock has ports to hold it to. */
bool isolation_ports(const struct task_isolation *i);

#endif
