/* SPDX-License-Identifier: Apache-2.0
 *
 * Namespaces: what the jobs of one may be; and quotas: how much the allocations of the namespaces
 * that name one may hold together, in a region. As on its node an allocation counts until its
 * client has ended it. Pure.
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

/* --- quotas --- */
/* Allocations, MHz, MB. */
struct quota_use {
    int64_t count, cpu, mem;
};
/* A quota as a scheduler sees it. */
struct quota_room {
    const char *name;
    struct quota_use limit; /* INT64_MAX: none */
    struct quota_use used;
};

enum { QUOTA_MB = 1 << 20 }; /* bytes */

/* Returns the bytes of variables that may be in the region's namespaces; INT64_MAX: no limit. */
int64_t quota_limit_bytes(const struct quota *q, const char *region);
/* Returns the limits that hold in the region. */
struct quota_use quota_limit(const struct quota *q, const char *region);
/* Adds `more`, `sign` times. */
void quota_add(struct quota_use *to, const struct quota_use *more, int64_t sign);
/* Says what of the limits `more` would exceed, in words owned by ctx; an empty list: nothing. */
struct str_list quota_exceeded(const void *ctx, const struct quota_room *q,
                               const struct quota_use *more);

#endif
