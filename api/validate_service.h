/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of services in jobs: Nomad's, with what its own provider cannot do. Pure.
 */
#ifndef PADDOCK_API_VALIDATE_SERVICE_H
#define PADDOCK_API_VALIDATE_SERVICE_H

#include "api/api.h"

/* Appends one text per problem to *errors, owned by ctx: of the group's own services (`t` NULL), or
 * of a task's. The job is canonical. */
void service_validate(const void *ctx, const struct task_group *g, const struct task *t,
                      struct str_list *errors);
/* The same of what no release has yet: services of another provider, by name, with the line that
 * helps. The job need not be canonical. */
void service_unsupported(const void *ctx, const struct job *job, struct str_list *errors);

#endif
