/* SPDX-License-Identifier: Apache-2.0
 *
 * What the allocation commands share: finding an allocation and one of its tasks.
 */
#ifndef PADDOCK_CLI_ALLOC_ALLOC_H
#define PADDOCK_CLI_ALLOC_ALLOC_H

#include "cli/command.h"

/* By id or prefix; NULL when it was said what is wrong. */
struct allocation *alloc_find(struct cmd *c, const char *prefix);
/* With -job: some running allocation of a job (and group); NULL when it was said what is wrong. */
struct allocation *alloc_of_job(struct cmd *c, const char *job, const char *group);
/* `name`, or the only task when it is empty; NULL when it was said what is wrong. */
const char *alloc_task(struct cmd *c, const struct allocation *a, const char *name);

/* When a failed allocation is placed again ("25s from now"), while that lies ahead; NULL otherwise.
 */
const char *alloc_next_place(struct cmd *c, const struct allocation *a);

/* alloc/tasks.c: each task with its resources and events; one line for each. `u` may be NULL. */
void alloc_print_tasks(struct cmd *c, const struct allocation *a,
                       const struct alloc_resource_usage *u, bool stats);
void alloc_print_tasks_short(struct cmd *c, const struct allocation *a);

#endif
