/* SPDX-License-Identifier: Apache-2.0
 *
 * Printing as Go's fmt does.
 */
#ifndef PADDOCK_TEMPLATE_FMT_H
#define PADDOCK_TEMPLATE_FMT_H

#include "template/goval.h"
#include "template/run.h"

/* %v of a value, as an action of a template prints it. */
void fmt_put(struct run *r, struct text *out, struct gv v);
/* fmt.Sprint, Sprintln, Sprintf */
void fmt_print(struct run *r, struct text *out, const struct gv *a, size_t n);
void fmt_println(struct run *r, struct text *out, const struct gv *a, size_t n);
void fmt_printf(struct run *r, struct text *out, struct gv format, const struct gv *a, size_t n);
/* Text of a value by %v, terminated: for words of mistakes. */
const char *fmt_words(struct run *r, struct gv v);

#endif
