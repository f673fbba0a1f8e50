/* SPDX-License-Identifier: Apache-2.0
 *
 * Filter expressions of list requests (?filter=): a subset of go-bexpr over the wire names of a type.
 *
 *   expr     = expr "or" expr | expr "and" expr | "not" expr | "(" expr ")" | match
 *   match    = selector ("==" | "!=") value | selector ["not"] "contains" value
 *            | value ["not"] "in" selector  | selector "is" ["not"] "empty"
 *            | selector ["not"] "matches" value
 *   selector = name { "." name | "[" string "]" }
 *   value    = "text" | `text` | word | number
 *
 * "not" binds tighter than "and", "and" than "or". Selectors are checked against the type when the
 * expression is compiled; map keys are free. Regular expressions are PCRE2 with a match limit.
 */
#ifndef PADDOCK_AGENT_FILTER_H
#define PADDOCK_AGENT_FILTER_H

#include <stdbool.h>

#include "agent/limits.h"
#include "codec/codec.h"
#include "common/err.h"

struct filter;

/* Owned by ctx. NULL with an error set when `text` is malformed. */
struct filter *filter_compile(const void *ctx, const struct type *t, const char *text, struct err *e);
bool filter_match(const struct filter *f, const void *obj);

#endif
