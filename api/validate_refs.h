/* SPDX-License-Identifier: Apache-2.0
 *
 * References of a task's config to what the job alone decides: ports and meta. Pure.
 */
#ifndef PADDOCK_API_VALIDATE_REFS_H
#define PADDOCK_API_VALIDATE_REFS_H

#include "api/api.h"

/* Adds one text to `errors` for each name of NOMAD_PORT_*, NOMAD_IP_*, NOMAD_ADDR_*,
 * NOMAD_HOST_PORT_* and NOMAD_META_* in the config without a label, key or variable of the job
 * behind it: such a task fails before it starts, wherever the job places it. */
void validate_refs(const void *ctx, const struct job *j, const struct task_group *g,
                   const struct task *t, struct str_list *errors);

#endif
