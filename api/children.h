/* SPDX-License-Identifier: Apache-2.0
 *
 * What jobs say of their children: the blocks periodic, parameterized and dispatch_payload. Pure.
 */
#ifndef PADDOCK_API_CHILDREN_H
#define PADDOCK_API_CHILDREN_H

#include "api/api.h"

/* Adds what is wrong, in Nomad's words; the time zone is known only where its files are. */
void children_validate(const void *ctx, const struct job *job, struct str_list *errors,
                       struct str_list *warnings);

/* The longest id that leaves room for those of its children, which are made of it. */
size_t children_id_max(const struct job *job);

/* Refuses what a job that is there (`old` NULL: nothing is) may not become: its type while it runs,
 * and whether it has children, stay. -ERR_INVALID or -ERR_INTERNAL with Nomad's words. */
int children_may_become(const struct job *old, const struct job *job, struct err *e);

/* Returns the place of a task's payload below the allocation's directory: "web/local/input.json".
 * NULL: nowhere there, or it is no path of a file. */
char *children_payload_path(const void *ctx, const char *task, const char *file);

#endif
