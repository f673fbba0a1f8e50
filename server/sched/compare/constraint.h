/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators of constraints and affinities. `distinct_hosts` and `distinct_property` depend on
 * other allocations and are not handled here (constraint_holds says true).
 */
#ifndef PADDOCK_SERVER_SCHED_CONSTRAINT_H
#define PADDOCK_SERVER_SCHED_CONSTRAINT_H

#include <stdbool.h>

#include "api/api.h"
#include "common/err.h"
#include "server/sched/limits.h"

/* Compiled patterns of one evaluation; talloc'ed under ctx, freed with it. */
struct regexes;
struct regexes *regexes_new(const void *ctx);

bool constraint_is_distinct(const struct constraint *c);
bool constraint_escapes(const struct constraint *c);
bool constraint_holds(struct regexes *rx, const struct node *n, const struct constraint *c);
/* The operator on resolved values; NULL is "not found". */
bool constraint_compare(struct regexes *rx, const char *op, const char *left, const char *right);
/* "LTARGET OPERAND RTARGET", as metrics name it. */
const char *constraint_text(const void *ctx, const struct constraint *c);

/* Operator known, pattern within RE2's language (no back-references, no lookaround), version list
 * well-formed: what registration refuses. */
int constraint_check(const struct constraint *c, struct err *e);

#endif
