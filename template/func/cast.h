/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions between kinds of values, as sprig's functions take whatever they are given.
 */
#ifndef PADDOCK_TEMPLATE_FUNC_CAST_H
#define PADDOCK_TEMPLATE_FUNC_CAST_H

#include "template/collect.h"

/* 0 for what is no number. */
int64_t cast_int(struct gv v);
double cast_float(struct gv v);
/* A text as it is, anything else by %v. */
struct gv cast_text(struct run *r, struct gv v);
/* A list of texts, without nil; of one thing a list of it. */
struct gv cast_texts(struct run *r, struct gv v);
/* Go's name of the kind: "slice", "ptr"; "invalid" of nothing. */
const char *cast_kind(struct gv v);
/* Empty as text/template has it, but a struct never is. */
bool cast_empty(struct gv v);

#endif
