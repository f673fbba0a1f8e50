/* SPDX-License-Identifier: Apache-2.0
 *
 * The difference of two jobs in the shape of the API: what `job plan` and `job history` show. Pure.
 */
#ifndef PADDOCK_API_JOBDIFF_H
#define PADDOCK_API_JOBDIFF_H

#include <stdbool.h>

#include "api/api.h"

/* Either may be NULL, not both. Never NULL: jobs that do not differ give Type "None", and groups
 * and tasks that do not differ are listed as "None". `contextual`: unchanged fields of changed
 * objects too. Compare canonical jobs. Owned by ctx. */
struct job_diff *job_diff(const void *ctx, const struct job *old, const struct job *new,
                          bool contextual);
/* Adds what the plan found: per group how many allocations are created, updated, ..., and at counts
 * and tasks what their change forces. `old`, `new` as given to job_diff; `ann` may be NULL. */
void job_diff_annotate(struct job_diff *d, const struct job *old, const struct job *new,
                       const struct plan_annotations *ann);

#endif
