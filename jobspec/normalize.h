/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings of a job file that blocks inherit, and the defaults of Nomad's parser, for the same
 * output of `job run -output`: before job_canonicalize().
 */
#ifndef PADDOCK_JOBSPEC_NORMALIZE_H
#define PADDOCK_JOBSPEC_NORMALIZE_H

#include "api/api.h"

/* The settings that a job or a group has for its tasks, and a job for itself; zeroed before use. */
struct job_shared {
    struct vault *vault;
    struct secret_list secrets;
};

/* To the tasks of a group: the block of vault where they have none, the secrets besides their own.
 */
void normalize_share(const void *ctx, const struct task_group *g, const struct job_shared *s);
void normalize_job(const void *ctx, struct job *job);

#endif
