/* SPDX-License-Identifier: Apache-2.0
 *
 * Validation of a canonical job: every error is collected, none stops the others. Pure.
 */
#ifndef PADDOCK_API_VALIDATE_H
#define PADDOCK_API_VALIDATE_H

#include "api/api.h"
#include "api/limits.h"

/* Limits that the operator may set (server block); zero means the default. */
struct job_limits {
    int64_t max_priority; /* 100 */
    int64_t max_count;    /* 50000: sum of the counts of all groups; negative: no limit */
    bool memory_oversubscription;
};

/* Appends one text per problem to errors and warnings (both owned by ctx; at most JOB_ERRORS_MAX).
 * `limits` may be NULL. Returns 0, or -ERR_INVALID when there is an error. */
int job_validate(const void *ctx, const struct job *job, const struct job_limits *limits,
                 struct str_list *errors, struct str_list *warnings);

/* Appends a text for each place of a canonical job that has fields without effect in this release.
 * Such a job may be validated, but neither planned nor registered. */
void job_unsupported(const void *ctx, const struct job *job, struct str_list *ret);

/* Nomad's text of several errors: "2 errors occurred:\n\t* first\n\t* second\n\n". */
char *job_errors_text(const void *ctx, const struct str_list *errors);
/* The same with "warning(s)", "" for none. */
char *job_warnings_text(const void *ctx, const struct str_list *warnings);

#endif
