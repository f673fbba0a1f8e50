/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers and quoted strings as Go's strconv reads and writes them.
 */
#ifndef PADDOCK_TEMPLATE_STRCONV_H
#define PADDOCK_TEMPLATE_STRCONV_H

#include "template/node.h"
#include "template/run.h"

enum strconv { STRCONV_OK, STRCONV_SYNTAX, STRCONV_RANGE };

/* strconv.ParseInt, ParseUint, ParseFloat of 64 bits; base 0: by the prefix. With STRCONV_RANGE
 * *ret is the nearest. */
enum strconv strconv_int(const char *s, size_t n, int base, int64_t *ret);
enum strconv strconv_uint(const char *s, size_t n, int base, uint64_t *ret);
enum strconv strconv_float(const char *s, size_t n, double *ret);
/* "invalid syntax" or "value out of range" */
const char *strconv_words(enum strconv s);

/* strconv.FormatFloat in the forms e, f, g, E, G; precision -1: as short as it can be. */
void strconv_put(struct run *r, struct text *out, double f, char form, int precision);

/* strconv.Unquote of "text" and `text`; NULL: malformed. */
const char *strconv_unquote(struct run *r, const char *s, size_t n, size_t *len);
/* Sets all forms of a number of a template; NULL, or words. */
const char *strconv_parse(struct run *r, struct node *n, const struct token *k);

#endif
