/* SPDX-License-Identifier: Apache-2.0
 *
 * The part that number.c and number_text.c share: operands, as MPFR has them.
 */
#ifndef PADDOCK_JOBSPEC_NUMBER_INT_H
#define PADDOCK_JOBSPEC_NUMBER_INT_H

#include <gmp.h>
#include <mpfr.h>

#include "jobspec/number.h"

struct bignum {
    mpfr_t m;
    mp_limb_t limbs[]; /* of m */
};

/* A temporary of at most NUMBER_BITS needs no heap. */
struct number {
    mpfr_t m;
    mp_limb_t limbs[NUMBER_BITS / (8 * sizeof(mp_limb_t))];
    bool heap;
};

/* The operand of a value, with as many bits. False, and then zero: it is no number. */
bool number_load(struct number *x, const struct value *v);
void number_done(struct number *x);

#define auto_number __attribute__((cleanup(number_done))) struct number

#endif
