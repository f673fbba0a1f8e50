/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions of job files, constraints and filters: what RE2 (Go, so Nomad) and PCRE2 have
 * in common. The only place that sees PCRE2. A library of its own, for the warden and the shim do
 * not link it. Pure.
 */
#ifndef PADDOCK_COMMON_REGEX_H
#define PADDOCK_COMMON_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/err.h"

struct regex; /* the limits of a match are in limits.h, but for its steps */

/* Owned by ctx; a match that needs more than `steps` fails. NULL: over REGEX_PATTERN_MAX,
 * malformed, or a construct that RE2 does not have, which may need exponential time: -ERR_INVALID.
 */
struct regex *regex_new(const void *ctx, const char *pattern, size_t n, size_t steps,
                        struct err *e);

/* Somewhere in `s`; false for NULL, too. What needs too much work does not match. */
bool regex_matches(struct regex *rx, const char *s);

/* The first match from `at` on is [*from, *to). 1, 0: none, -ERR_LIMIT: too much work, or no UTF-8.
 */
int regex_find(struct regex *rx, struct slice text, size_t at, size_t *from, size_t *to,
               struct err *e);
/* Appends what replaces the match that was found: `with` with its $1 and ${name}. The text of
 * regex_find is still there. -ERR_INVALID, -ERR_LIMIT: `out` is full. */
int regex_expand(struct regex *rx, const char *with, struct buf *out, struct err *e);

/* Characters as people see them: grapheme clusters (Unicode, annex 29). */
struct regex *regex_new_clusters(const void *ctx);
/* Bytes of the first one of text that is valid UTF-8 and not empty. */
size_t regex_cluster(struct regex *clusters, const char *s, size_t n);

#endif
