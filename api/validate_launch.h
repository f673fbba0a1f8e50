/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a task a node could not start, since its launch (schema/launch.schema) would be beyond a
 * limit: told when the job is registered, as far as it is known there. What is interpolated, the
 * node tells.
 */
#ifndef PADDOCK_API_VALIDATE_LAUNCH_H
#define PADDOCK_API_VALIDATE_LAUNCH_H

#include "api/api.h"

enum {
    LAUNCH_META_VARS = 2,  /* variables of a key of meta: as it is written, and in capitals */
    LAUNCH_PORT_VARS = 7,  /* of a port: client/task/env.c */
    LAUNCH_ALLOC_VARS = 3, /* more of one that the allocation has in a network of its own */
};

/* The load that tasks get in common from their job and group: each block counts, also where another
 * one of the task says the same key again. */
struct launch_load {
    size_t vars, bytes;
    const char *longest; /* key of meta whose variable is beyond JOB_WORD_MAX; borrowed */
};

/* Add the job's meta, and what a dispatch may still say: a key counts without a value until
 * then. */
void launch_load_job(struct launch_load *l, const struct job *j);
/* Adds the group's meta and networks. */
void launch_load_group(struct launch_load *l, const struct task_group *g);

/* Appends one text per problem, owned by ctx. */
void validate_launch(const void *ctx, const struct task *t, const struct launch_load *shared,
                     struct str_list *errors);

/* The same of all tasks of a job that changed since it was validated: a child, with what its
 * dispatch said. -ERR_INVALID, with the first problem. */
int validate_launches(const void *ctx, const struct job *j, struct err *e);

#endif
