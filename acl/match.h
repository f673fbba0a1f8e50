/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of labels, plain ones and patterns, each with a set of capabilities, made for finding
 * which counts for a name: the label that equals the name; else of the patterns that match the
 * closest, with most characters that are no star (its difference to the name is the smallest); of
 * equals the first in byte order. "*" stands for any bytes. Immutable. Pure.
 *
 * A pattern is filed under the hash of a part that is no star: its beginning, its end, or one
 * between. So a look-up asks once per length of such a part, and not once per pattern.
 */
#ifndef PADDOCK_ACL_MATCH_H
#define PADDOCK_ACL_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct match_row {
    const char *label; /* may hold zero bytes */
    size_t n;
    uint64_t caps; /* ACL_DENY, when it holds that, stands alone */
};

struct match;

/* Copies the rows, and unites those of equal labels: a deny of one is a deny of all. */
struct match *match_new(const void *ctx, const struct match_row *v, size_t n);
/* NULL: none matches. */
const struct match_row *match_find(const struct match *m, const char *name, size_t n);
/* The capabilities of all labels that are not denied. */
uint64_t match_caps(const struct match *m);
/* Returns those of all labels that match and are not denied. Looks at each. */
uint64_t match_caps_of(const struct match *m, const char *name, size_t n);
/* The rows, one per label, plain ones first. */
size_t match_rows(const struct match *m, const struct match_row **ret);

bool match_is_pattern(const char *label, size_t n);
bool match_pattern(const char *pattern, size_t pn, const char *name, size_t n);
/* Order of patterns: negative when `a` counts before `b`. */
int match_closer(const struct match_row *a, const struct match_row *b);

#endif
