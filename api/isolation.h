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

/* The next option of `i` from *at on (first 0) that only a box gives, by the word `box` of the
 * schema; NULL: no more. A driver that does not isolate has none of them. */
const char *isolation_box(const struct task_isolation *i, size_t *at);

/* Landlock has ports to hold it to. */
bool isolation_ports(const struct task_isolation *i);

#endif
