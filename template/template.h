/* SPDX-License-Identifier: Apache-2.0
 *
 * Go's text/template in its useful part, over a value of JSON. Pure: no files, no clock.
 */
#ifndef PADDOCK_TEMPLATE_TEMPLATE_H
#define PADDOCK_TEMPLATE_TEMPLATE_H

#include "codec/value.h"
#include "common/buf.h"
#include "common/err.h"

/* Appends the text of a template, applied to `v`. 0, or -ERR_INVALID with words; `out` then holds
 * what came before the mistake. */
int template_render(struct buf *out, const char *text, const struct value *v, struct err *e);

#endif
