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

/* The next option from *at on (first 0) that it asks for and that only a box gives, as its schema
 * line says
 * (`box`); NULL: no more. A driver that does not isolate has none of them. */
const char *isolation_box(const struct task_isolation *i, size_t *at);

/* Landlock has ports to hold it to. */
bool isolation_ports(const struct task_isolation *i);

#endif
