/* SPDX-License-Identifier: Apache-2.0
 *
 * Filter expressions of list requests (?filter=): go-bexpr over the wire names of a type.
 *
 *   expr     = expr "or" expr | expr "and" expr | "not" expr | "(" expr ")" | match
 *            | ("any" | "all") selector "as" names "{" expr "}"
 *   match    = selector ("==" | "!=") value | selector ["not"] "contains" value
 *            | value ["not"] "in" selector  | selector "is" ["not"] ("empty" | "nil")
 *            | selector ["not"] "matches" value
 *   selector = name { "." name | "[" string "]" }
 *   names    = name | name "," name
 *   value    = "text" | `text` | word | number
 *
 * "not" binds tighter than "and", "and" than "or". A part of a selector is a field, a key of a map
 * or the number of an element of a list; fields are checked against the type when the expression is
 * compiled. One name of any and all is an element of a list, or a key of a map; two are number and
 * element, or key and value; "_" is none. What is not there equals nothing, and is empty and nil.
 * Regular expressions are PCRE2 with a match limit. Pure; a compiled filter may be used by one
 * thread at a time.
 */
#ifndef PADDOCK_API_FILTER_FILTER_H
#define PADDOCK_API_FILTER_FILTER_H

#include <stdbool.h>

#include "api/limits.h"
#include "codec/codec.h"
#include "common/err.h"

struct filter;

/* Owned by ctx. NULL with an error set when `text` is malformed. */
struct filter *filter_compile(const void *ctx, const struct type *t, const char *text,
                              struct err *e);
bool filter_match(const struct filter *f, const void *obj);

#endif
