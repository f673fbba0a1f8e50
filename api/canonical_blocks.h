/* SPDX-License-Identifier: Apache-2.0
 *
 * Defaults of the blocks of blocks.schema, as Nomad fills them in; a part of job_canonicalize().
 */
#ifndef PADDOCK_API_CANONICAL_BLOCKS_H
#define PADDOCK_API_CANONICAL_BLOCKS_H

#include "api/api.h"

/* The count of a group with a scaling policy and none of its own. */
void canonical_count(struct task_group *g);
/* Fills in the blocks of a group that has its count, and of its tasks. */
void canonical_blocks(const void *ctx, const struct job *j, struct task_group *g);

#endif
