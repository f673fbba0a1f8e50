/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of what else a group or a task may have in blocks, such as disconnect, scaling,
 * volumes, services, artifacts and devices: Nomad's, whether the block has an effect here yet or
 * not.
 */
#ifndef PADDOCK_API_VALIDATE_BLOCKS_H
#define PADDOCK_API_VALIDATE_BLOCKS_H

#include "api/api.h"

/* Each appends one text per problem to *errors, owned by ctx. The job is canonical. */
void validate_group_blocks(const void *ctx, const struct job *j, const struct task_group *g,
                           struct str_list *errors);
void validate_task_blocks(const void *ctx, const struct task_group *g, const struct task *t,
                          struct str_list *errors);

/* Warns of what is accepted and ignored. */
void validate_group_warnings(const void *ctx, const struct task_group *g,
                             struct str_list *warnings);

/* Appends what of host volumes is known, but not in this release. */
void volume_unsupported(const void *ctx, const struct job *job, struct str_list *errors);

#endif
