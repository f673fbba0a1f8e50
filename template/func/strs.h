/* SPDX-License-Identifier: Apache-2.0
 *
 * Go's strings, as the functions need them.
 */
#ifndef PADDOCK_TEMPLATE_FUNC_STRS_H
#define PADDOCK_TEMPLATE_FUNC_STRS_H

#include "template/collect.h"
#include "template/rune.h"

/* SIZE_MAX: not there. An empty text is at 0. */
size_t strs_index(struct gv s, struct gv sub);
size_t strs_last_index(struct gv s, struct gv sub);
struct gv strs_trim_space(struct gv s);
enum { STRS_LEFT = 1, STRS_RIGHT = 2 };
/* Characters of `set` at the ends. */
struct gv strs_trim(struct run *r, struct gv s, struct gv set, int sides);
bool strs_has_prefix(struct gv s, struct gv prefix);
bool strs_has_suffix(struct gv s, struct gv suffix);
/* strings.SplitN: [] of string; limit < 0: all. */
struct gv strs_split(struct run *r, struct gv s, struct gv sep, int64_t limit);
struct gv strs_join(struct run *r, struct gv list, struct gv sep);
struct gv strs_replace(struct run *r, struct gv s, struct gv from, struct gv to, int64_t limit);
struct gv strs_case(struct run *r, struct gv s, enum rune_form form);
struct gv strs_repeat(struct run *r, struct gv s, int64_t count);

#endif
