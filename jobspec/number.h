/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of the job language: binary floats, as those of a Nomad, which has them from math/big of
 * Go. What stands in a file has NUMBER_BITS; each operation rounds to nearest, ties to even, to the
 * bits of the more precise operand. Done by MPFR, which no other file of the room sees.
 *
 * A whole number that 64 bits hold is a VALUE_INT (with other bits than NUMBER_BITS in `form`), any
 * other a VALUE_BIG; the latter is known in this room alone: value_plain() makes an int64 or a
 * double of it. Text that is a number stands for the number everywhere below.
 *
 * Results are owned by ctx. NULL: the operand is no number, or the result is beyond
 * NUMBER_EXP2_MAX (number_range() says what).
 */
#ifndef PADDOCK_JOBSPEC_NUMBER_H
#define PADDOCK_JOBSPEC_NUMBER_H

#include "codec/value.h"
#include "common/buf.h"

enum {
    NUMBER_BITS = 512,
    NUMBER_INT_BITS = 64,    /* of lengths, indices and the like that functions count */
    NUMBER_DOUBLE_BITS = 53, /* of what is computed by doubles: pow, log */
};

/* Decimal digits, a point, an exponent; a sign. */
struct value *number_parse(const void *ctx, const char *text);
/* Digits of a base from 2 to 62, upper case from 36 on. NULL: they are none. */
struct value *number_parse_base(const void *ctx, const char *text, int base);
/* A whole number that a function counted. */
struct value *number_counted(const void *ctx, int64_t i);
struct value *number_of_double(const void *ctx, double f);
struct value *number_copy(const void *ctx, const struct value *v);

bool number_is(const struct value *v); /* a number, or the text of one */
/* Whole, and within 64 bits. */
bool number_int(const struct value *v, int64_t *ret);
/* The nearest double; false: there is none, or none that is finite. */
bool number_double(const struct value *v, double *ret);
/* The fewest decimal digits that mean this number among those of its bits; no exponent. */
const char *number_text(const void *ctx, const struct value *v);

/* -1, 0, 1. Both are numbers. */
int number_compare(const struct value *a, const struct value *b);
/* Whole numbers are equal by value, others by their text, so that 0.1 of any bits is the same. */
bool number_equal(const struct value *a, const struct value *b);

/* `op`: TOK_PLUS, TOK_MINUS, TOK_STAR, TOK_SLASH, TOK_PERCENT; the divisor is not 0. */
struct value *number_operate(const void *ctx, unsigned op, const struct value *a,
                             const struct value *b);
struct value *number_negate(const void *ctx, const struct value *v);
struct value *number_abs(const void *ctx, const struct value *v);
struct value *number_ceil(const void *ctx, const struct value *v);
struct value *number_floor(const void *ctx, const struct value *v);
int number_sign(const struct value *v);

/* By verb e, E, f, F, g, G of C with these flags, width and precision (-1: none; of g the fewest
 * digits then); by verb d, x, X, o, b what is in front of the point. */
void number_format(struct buf *b, const struct value *v, const char *flags, int width,
                   int precision, char verb);

/* A copy without VALUE_BIG and `form`, for the world outside of the language. */
struct value *value_plain(const void *ctx, const struct value *v);

#endif
