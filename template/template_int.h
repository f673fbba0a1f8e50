/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of a template (template.c), apart from its grammar.
 */
#ifndef PADDOCK_TEMPLATE_INT_H
#define PADDOCK_TEMPLATE_INT_H

#include "codec/codec.h"
#include "common/buf.h"
#include "common/err.h"

/* 0, or -ERR_INVALID with words. The result is owned by ctx or an argument. */
typedef int template_fn(void *ctx, const struct value **a, size_t n, const struct value **ret,
                        struct err *e);
/* NULL: there is no such function. */
template_fn *template_function(const char *name, size_t n);

bool template_truth(const struct value *v);
/* Prints a value as Go does. */
void template_put(struct buf *out, const struct value *v);
/* The pairs of a map by key, as Go goes through maps. Owned by ctx. */
struct value_pair *template_pairs(void *ctx, const struct value *map);

#endif
