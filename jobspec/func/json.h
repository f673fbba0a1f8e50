/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON as the functions of the language write it: what HTML and scripts would take for theirs is
 * escaped, numbers have all of their digits, names are sorted.
 */
#ifndef PADDOCK_JOBSPEC_FUNC_JSON_H
#define PADDOCK_JOBSPEC_FUNC_JSON_H

#include "common/buf.h"
#include "jobspec/func/func.h"

void json_put_safe(struct buf *b, const char *s, size_t n);
/* `ctx`: of temporary texts. */
void json_put_value(const void *ctx, struct buf *b, const struct value *v);

#endif
