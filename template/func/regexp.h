/* SPDX-License-Identifier: Apache-2.0
 *
 * Go's regexp, over the expressions of common/regex.h.
 */
#ifndef PADDOCK_TEMPLATE_FUNC_REGEXP_H
#define PADDOCK_TEMPLATE_FUNC_REGEXP_H

#include "common/regex.h"
#include "template/run.h"

struct regexp {
    struct run *r;
    struct regex *rx;
};

/* A malformed one fails the run. */
void regexp_open(struct run *r, struct regexp *x, struct gv pattern);
void regexp_close(struct regexp *x);
bool regexp_find(struct regexp *x, struct gv s, size_t at, size_t *from, size_t *to);
/* All that do not overlap, as FindAllString: at most `limit`, < 0: all. In [][2] of *ret. */
size_t regexp_find_all(struct regexp *x, struct gv s, int64_t limit, size_t (**ret)[2]);
/* ReplaceAllString; `literal`: `with` has no $1. */
struct gv regexp_replace(struct regexp *x, struct gv s, struct gv with, bool literal);

#endif
