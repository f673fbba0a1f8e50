/* SPDX-License-Identifier: Apache-2.0
 *
 * Namespaces: what the jobs of one may be. Pure.
 */
#ifndef PADDOCK_API_NAMESPACE_H
#define PADDOCK_API_NAMESPACE_H

#include "api/api.h"

/* Gives a job that names no node pool the default of its namespace; before job_canonicalize(). */
void namespace_defaults(const struct namespace *n, struct job *j);
/* Adds to *errors, owned by ctx, what of the job its namespace does not allow: task drivers, modes
 * of the groups' networks, the node pool. */
void namespace_admits(const void *ctx, const struct namespace *n, const struct job *j,
                      struct str_list *errors);

#endif
