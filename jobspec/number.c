/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of the job language. See number.h. In this order: operands and results; text in;
 * comparison; operations; what leaves the language. Their text is made in number_text.c.
 *
 * Whole numbers of 64 bits are done by the processor where the result is exact, which is the same.
 */
#include "jobspec/number_int.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/num.h"
#include "jobspec/lex.h"
#include "jobspec/limits.h"

/* --- operands and results --- */

void
number_done(struct number *x)
{
    if (x->heap)
        mpfr_clear(x->m);
}

static void
number_init(struct number *x, mpfr_prec_t bits)
{
    x->heap = bits > NUMBER_BITS;
    if (x->heap) {
        mpfr_init2(x->m, bits);
    } else {
        mpfr_custom_init(x->limbs, bits);
        mpfr_custom_init_set(x->m, MPFR_ZERO_KIND, 0, bits, x->limbs);
    }
}

static struct value *
make_int(const void *ctx, int64_t i, mpfr_prec_t bits)
{
    struct value *v = value_int(ctx, i);
    ASSERT(bits > 0);
    v->form = bits == NUMBER_BITS ? 0 : (uint32_t)bits;
    return v;
}

static struct value *
number_make(const void *ctx, const mpfr_t m)
{
    if (!mpfr_number_p(m))
        return NULL;
    if (mpfr_regular_p(m) &&
        (mpfr_get_exp(m) > NUMBER_EXP2_MAX || mpfr_get_exp(m) < -NUMBER_EXP2_MAX))
        return NULL;
    mpfr_prec_t bits = mpfr_get_prec(m);
    bool minus_zero = mpfr_zero_p(m) && mpfr_signbit(m);
    if (!minus_zero && mpfr_integer_p(m) && mpfr_fits_slong_p(m, MPFR_RNDN))
        return make_int(ctx, mpfr_get_si(m, MPFR_RNDN), bits);
    struct value *v = value_null(ctx);
    struct bignum *b =
        mem_zalloc_array(v, 1, sizeof(*b) + mpfr_custom_get_size(bits), "struct bignum");
    mpfr_custom_init(b->limbs, bits);
    mpfr_custom_init_set(b->m, MPFR_ZERO_KIND, 0, bits, b->limbs);
    mpfr_set(b->m, m, MPFR_RNDN);
    v->kind = VALUE_BIG;
    v->big = b;
    return v;
}

/* The digits and the exponent are text that MPFR takes as a whole. */
static bool
is_decimal(const char *s)
{
    s += *s == '-' || *s == '+';
    size_t whole = strspn(s, "0123456789"), part = 0;
    s += whole;
    if (*s == '.') {
        part = strspn(s + 1, "0123456789");
        s += 1 + part;
    }
    if (whole + part == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '-' || *s == '+';
        if (strspn(s, "0123456789") == 0)
            return false;
        s += strspn(s, "0123456789");
    }
    return *s == '\0';
}

bool
number_load(struct number *x, const struct value *v)
{
    switch (v->kind) {
    case VALUE_INT:
        number_init(x, v->form != 0 ? (mpfr_prec_t)v->form : NUMBER_BITS);
        mpfr_set_si(x->m, v->i, MPFR_RNDN);
        return true;
    case VALUE_FLOAT:
        number_init(x, NUMBER_DOUBLE_BITS);
        mpfr_set_d(x->m, v->f, MPFR_RNDN);
        return true;
    case VALUE_BIG:
        number_init(x, mpfr_get_prec(v->big->m));
        mpfr_set(x->m, v->big->m, MPFR_RNDN);
        return true;
    case VALUE_STRING:
        number_init(x, NUMBER_BITS);
        return v->str.n == strlen(v->str.s) && is_decimal(v->str.s) &&
               mpfr_set_str(x->m, v->str.s, 10, MPFR_RNDN) == 0 && mpfr_number_p(x->m);
    default:
        number_init(x, NUMBER_BITS);
        return false;
    }
}

/* --- text in --- */

struct value *
number_parse(const void *ctx, const char *text)
{
    int64_t i;
    if (text[0] != '-' && strpbrk(text, ".eE") == NULL && num_parse_i64(text, &i) == 0)
        return value_int(ctx, i);
    auto_number x;
    number_init(&x, NUMBER_BITS);
    if (!is_decimal(text) || mpfr_set_str(x.m, text, 10, MPFR_RNDN) != 0)
        return NULL;
    return number_make(ctx, x.m);
}

struct value *
number_parse_base(const void *ctx, const char *text, int base)
{
    const char *digits = text + (*text == '-' || *text == '+');
    mpz_t n;
    struct value *v = NULL;
    mpz_init(n);
    /* GMP skips blanks and takes lower case for upper case up to base 36, as we do the latter. */
    if (*digits != '\0' && strpbrk(digits, " \t\n\v\f\r-+") == NULL &&
        strlen(digits) <= NUMBER_DIGITS_MAX) {
        char *swapped = mem_strdup(NULL, digits);
        for (char *p = swapped; base > 36 && *p != '\0'; p++)
            *p = (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
        if (mpz_set_str(n, swapped, base) == 0) {
            size_t bits = mpz_sizeinbase(n, 2);
            auto_number x;
            number_init(&x, bits > NUMBER_INT_BITS ? (mpfr_prec_t)bits : NUMBER_INT_BITS);
            mpfr_set_z(x.m, n, MPFR_RNDN);
            if (*text == '-' && !mpfr_zero_p(x.m))
                mpfr_neg(x.m, x.m, MPFR_RNDN);
            v = number_make(ctx, x.m);
        }
        mem_free(swapped);
    }
    mpz_clear(n);
    return v;
}

struct value *
number_counted(const void *ctx, int64_t i)
{
    return make_int(ctx, i, NUMBER_INT_BITS);
}

struct value *
number_of_double(const void *ctx, double f)
{
    auto_number x;
    number_init(&x, NUMBER_DOUBLE_BITS);
    mpfr_set_d(x.m, f, MPFR_RNDN);
    return number_make(ctx, x.m);
}

struct value *
number_copy(const void *ctx, const struct value *v)
{
    auto_number x;
    return number_load(&x, v) ? number_make(ctx, x.m) : NULL;
}

bool
number_is(const struct value *v)
{
    return v->kind == VALUE_INT || v->kind == VALUE_FLOAT || v->kind == VALUE_BIG ||
           (v->kind == VALUE_STRING && v->str.n == strlen(v->str.s) && is_decimal(v->str.s));
}

bool
number_int(const struct value *v, int64_t *ret)
{
    if (v->kind == VALUE_INT) {
        *ret = v->i;
        return true;
    }
    auto_number x;
    if (!number_load(&x, v) || !mpfr_integer_p(x.m) || !mpfr_fits_slong_p(x.m, MPFR_RNDN))
        return false;
    *ret = mpfr_get_si(x.m, MPFR_RNDN);
    return true;
}

bool
number_double(const struct value *v, double *ret)
{
    auto_number x;
    if (!number_load(&x, v))
        return false;
    double f = mpfr_get_d(x.m, MPFR_RNDN);
    if (!isfinite(f))
        return false;
    *ret = f;
    return true;
}

/* --- comparison --- */

int
number_compare(const struct value *a, const struct value *b)
{
    if (a->kind == VALUE_INT && b->kind == VALUE_INT)
        return (a->i > b->i) - (a->i < b->i);
    auto_number x, y;
    bool ok = number_load(&x, a);
    ok = number_load(&y, b) && ok;
    if (!ok)
        return 0;
    int c = mpfr_cmp(x.m, y.m);
    return (c > 0) - (c < 0);
}

int
number_sign(const struct value *v)
{
    auto_number x;
    return number_load(&x, v) ? mpfr_sgn(x.m) : 0;
}

/* --- operations --- */

/* Exact, and not a zero that has a sign. */
static bool
int_operate(unsigned op, int64_t a, int64_t b, int64_t *ret)
{
    switch (op) {
    case TOK_PLUS:
        return !__builtin_add_overflow(a, b, ret);
    case TOK_MINUS:
        return !__builtin_sub_overflow(a, b, ret);
    case TOK_STAR:
        return a != 0 && b != 0 && !__builtin_mul_overflow(a, b, ret);
    case TOK_SLASH:
        if (a == 0 || (a == INT64_MIN && b == -1) || a % b != 0)
            return false;
        *ret = a / b;
        return true;
    default:
        return false;
    }
}

/* The rest that a quotient without its fraction leaves, rounded at each step to the bits of x. */
static void
remainder_of(struct number *out, const struct number *x, const struct number *y, mpfr_prec_t bits)
{
    auto_number q;
    number_init(&q, bits);
    mpfr_div(q.m, x->m, y->m, MPFR_RNDN);
    mpfr_rint_trunc(out->m, q.m, MPFR_RNDN);
    if (mpfr_zero_p(out->m))
        mpfr_setsign(out->m, out->m, 0, MPFR_RNDN);
    mpfr_mul(out->m, y->m, out->m, MPFR_RNDN);
    mpfr_sub(out->m, x->m, out->m, MPFR_RNDN);
}

/* A product is made with NUMBER_BITS and keeps of these what it needs, or its operands have. */
static struct value *
product_of(const void *ctx, const struct number *x, const struct number *y, mpfr_prec_t bits)
{
    auto_number all, out;
    number_init(&all, NUMBER_BITS);
    mpfr_mul(all.m, x->m, y->m, MPFR_RNDN);
    mpfr_prec_t need = mpfr_zero_p(all.m) ? 0 : mpfr_min_prec(all.m);
    number_init(&out, need > bits ? need : bits);
    mpfr_set(out.m, all.m, MPFR_RNDN);
    return number_make(ctx, out.m);
}

struct value *
number_operate(const void *ctx, unsigned op, const struct value *a, const struct value *b)
{
    int64_t i;
    if (a->kind == VALUE_INT && b->kind == VALUE_INT && a->form == 0 && b->form == 0 &&
        int_operate(op, a->i, b->i, &i))
        return value_int(ctx, i);
    auto_number x, y, out;
    bool ok = number_load(&x, a);
    ok = number_load(&y, b) && ok;
    mpfr_prec_t of_x = mpfr_get_prec(x.m), of_y = mpfr_get_prec(y.m);
    mpfr_prec_t bits = of_x > of_y ? of_x : of_y;
    number_init(&out, op == TOK_PERCENT ? of_x : bits);
    if (!ok)
        return NULL;
    switch (op) {
    case TOK_PLUS:
        mpfr_add(out.m, x.m, y.m, MPFR_RNDN);
        break;
    case TOK_MINUS:
        mpfr_sub(out.m, x.m, y.m, MPFR_RNDN);
        break;
    case TOK_STAR:
        return product_of(ctx, &x, &y, bits);
    case TOK_SLASH:
        mpfr_div(out.m, x.m, y.m, MPFR_RNDN);
        break;
    default:
        remainder_of(&out, &x, &y, bits);
    }
    return number_make(ctx, out.m);
}

struct value *
number_negate(const void *ctx, const struct value *v)
{
    if (v->kind == VALUE_INT && v->i != 0 && v->i != INT64_MIN) {
        struct value *out = value_int(ctx, -v->i);
        out->form = v->form;
        return out;
    }
    auto_number x;
    if (!number_load(&x, v))
        return NULL;
    mpfr_neg(x.m, x.m, MPFR_RNDN);
    return number_make(ctx, x.m);
}

struct value *
number_abs(const void *ctx, const struct value *v)
{
    auto_number x;
    if (!number_load(&x, v))
        return NULL;
    mpfr_abs(x.m, x.m, MPFR_RNDN);
    return number_make(ctx, x.m);
}

struct value *
number_ceil(const void *ctx, const struct value *v)
{
    auto_number x;
    if (!number_load(&x, v))
        return NULL;
    mpfr_rint_ceil(x.m, x.m, MPFR_RNDN);
    if (mpfr_zero_p(x.m))
        mpfr_setsign(x.m, x.m, 0, MPFR_RNDN);
    return number_make(ctx, x.m);
}

struct value *
number_floor(const void *ctx, const struct value *v)
{
    auto_number x;
    if (!number_load(&x, v))
        return NULL;
    mpfr_rint_floor(x.m, x.m, MPFR_RNDN);
    if (mpfr_zero_p(x.m))
        mpfr_setsign(x.m, x.m, 0, MPFR_RNDN);
    return number_make(ctx, x.m);
}

/* --- what leaves the language --- */

static struct value *
plain_number(const void *ctx, const struct value *v)
{
    int64_t i;
    double f;
    if (number_int(v, &i))
        return value_int(ctx, i);
    return number_double(v, &f) ? value_float(ctx, f) : value_null(ctx);
}

/* value_map_set() grows at powers of two. */
static size_t
number_capacity(size_t n)
{
    size_t c = 1;
    while (c < n)
        c *= 2;
    return c;
}

struct value *
value_plain(const void *ctx, const struct value *v)
{
    if (v->kind == VALUE_BIG)
        return plain_number(ctx, v);
    if (v->kind == VALUE_LIST) {
        struct value *out = value_list(ctx);
        for (size_t i = 0; i < v->list.n; i++)
            value_list_add(out, value_plain(out, v->list.v[i]));
        return out;
    }
    if (v->kind == VALUE_MAP) {
        struct value *out = value_map(ctx);
        out->map.v = mem_array(out, struct value_pair, number_capacity(v->map.n));
        for (out->map.n = 0; out->map.n < v->map.n; out->map.n++) {
            const struct value_pair *p = &v->map.v[out->map.n];
            out->map.v[out->map.n] =
                (struct value_pair){mem_strdup(out, p->k), value_plain(out, p->v)};
        }
        return out;
    }
    return value_clone(ctx, v);
}
