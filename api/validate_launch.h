/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a task a node could not start, since its launch (schema/launch.schema) would be beyond a
 * limit: told when the job is registered, as far as it is known there. What is interpolated, the
 * node tells.
 */
#ifndef PADDOCK_API_VALIDATE_LAUNCH_H
#define PADDOCK_API_VALIDATE_LAUNCH_H

#include "api/api.h"

/* Appends one text per problem, owned by ctx. */
void validate_launch(const void *ctx, const struct task *t, struct str_list *errors);

#endif
