/* SPDX-License-Identifier: Apache-2.0
 *
 * The lexical half of the JSON reader: white space, strings, numbers, skipping, errors with path
 * and position. Internal to codec/.
 */
#ifndef PADDOCK_CODEC_JSON_SCAN_H
#define PADDOCK_CODEC_JSON_SCAN_H

#include "codec/intern.h"

struct json_reader {
    struct decoder d;
    const char *s, *p, *end;
    bool strict; /* an unknown field is an error */
};

struct json_number {
    const char *s; /* not terminated */
    size_t n;
    bool integral; /* neither fraction nor exponent */
    bool neg;
    bool big; /* magnitude does not fit uint64 */
    uint64_t mag;
};

/* Sets the error at `at`; returns the code. */
int json_fail(struct json_reader *r, const char *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int json_expected(struct json_reader *r, const char *what); /* "expected X, found Y" at p */
int json_no_memory(struct json_reader *r);
void json_space(struct json_reader *r);
/* The string at p (which is '"'): a slice of the input, or of the arena where it has escapes.
 * No inner NUL. */
int json_string(struct json_reader *r, const char **ret, size_t *ret_len);
int json_scan_number(struct json_reader *r, struct json_number *ret);
int json_number_float(struct json_reader *r, const struct json_number *n, double *ret);
bool json_take_null(struct json_reader *r);
bool json_take_word(struct json_reader *r, const char *word, size_t n);
/* Opens a container ('{' or '[' at p): depth. */
int json_open(struct json_reader *r);
/* Right after json_open: eats `close` where the container is empty. */
bool json_empty(struct json_reader *r, char close);
/* After an element: eats ',' and returns 1 when another follows, 0 at `close` (eaten), or fails. */
int json_next(struct json_reader *r, char close);
/* The key and the colon of an object entry. */
int json_key(struct json_reader *r, const char **ret, size_t *ret_len);
int json_skip(struct json_reader *r);
int json_value(struct json_reader *r, struct value **ret); /* json_value.c */

#endif
