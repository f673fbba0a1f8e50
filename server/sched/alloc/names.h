/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation names: "job.group[index]". The index is the place an allocation fills in its group.
 */
#ifndef PADDOCK_SERVER_SCHED_NAMES_H
#define PADDOCK_SERVER_SCHED_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_INDEX_MAX (INT64_C(1) << 24)

/* -1 when the name has no index. */
int64_t name_index(const char *alloc_name);
const char *name_make(const void *ctx, const char *job, const char *group, int64_t index);

/* Which indexes are in use. */
struct names {
    uint64_t *bits;
    size_t n; /* bits */
};

/* Room for at least `count` indexes; owned by ctx. */
struct names *names_new(const void *ctx, int64_t count);
void names_set(struct names *x, int64_t index);
bool names_has(const struct names *x, int64_t index);
void names_unset(struct names *x, int64_t index);
/* The lowest unset index, which is then set. */
int64_t names_next(struct names *x);

#endif
