/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of numbers: the fewest decimal digits, and the formats of C. See number.h. Digits are
 * made whole, by GMP, and then cut, so that each rounding is exact.
 */
#include "jobspec/number_int.h"

#include <string.h>

#include "common/mem.h"
#include "jobspec/limits.h"

/* --- digits --- */

/* Decimal digits of a number: d[0].d[1]… times 10^(point - 1), without zeros at the end. */
struct digits {
    char *d;
    size_t n;
    long point;
};

static void
cut_zeros(struct digits *x)
{
    while (x->n > 0 && x->d[x->n - 1] == '0')
        x->n--;
    if (x->n == 0)
        x->point = 0;
}

/* The digits of n / 10^places. */
static struct digits
digits_of(const void *ctx, const mpz_t n, long places)
{
    struct digits x = {mem_zalloc_array(ctx, 1, mpz_sizeinbase(n, 10) + 2, "digits"), 0, 0};
    mpz_get_str(x.d, 10, n);
    x.n = mpz_sgn(n) == 0 ? 0 : strlen(x.d);
    x.point = (long)x.n - places;
    cut_zeros(&x);
    return x;
}

static char
digit_at(const struct digits *x, size_t i)
{
    return i < x->n ? x->d[i] : '0';
}

static void
round_digits(struct digits *x, size_t n, bool up)
{
    ASSERT(n <= x->n);
    x->n = n;
    while (up && x->n > 0 && x->d[x->n - 1] == '9')
        x->n--;
    if (up && x->n == 0) { /* 999 becomes 1000 */
        x->d[0] = '1';
        x->n = 1;
        x->point++;
    } else if (up) {
        x->d[x->n - 1]++;
    } else {
        cut_zeros(x);
    }
}

static bool
nearer_up(const struct digits *x, size_t n)
{
    ASSERT(n < x->n);
    if (x->d[n] == '5' && n + 1 == x->n)
        return n > 0 && (x->d[n - 1] - '0') % 2 != 0;
    return x->d[n] >= '5';
}

/* Cuts to the first digits that no neighbour of the number has: `low` and `high` are half of the
 * way to these, which count as the number itself if it is even. */
static void
number_text_shorten(struct digits *x, const struct digits *low, const struct digits *high,
                    bool even)
{
    for (size_t i = 0; i < x->n; i++) {
        char d = x->d[i], l = digit_at(low, i), h = digit_at(high, i);
        bool down = l != d || (even && i + 1 == low->n);
        bool up = d != h && (even || d + 1 < h || i + 1 < high->n);
        if (!down && !up)
            continue;
        if (i + 1 < x->n)
            round_digits(x, i + 1, down && up ? nearer_up(x, i + 1) : up);
        return;
    }
}

static struct digits
number_text_shortest(const void *ctx, const mpfr_t m)
{
    mpz_t n, scale, edge;
    mpz_inits(n, scale, edge, NULL);
    mpfr_exp_t e = mpfr_get_z_2exp(n, m) - 1; /* n of exactly as many bits as m has */
    mpz_abs(n, n);
    bool even = mpz_even_p(n);
    if (e >= 0)
        mpz_ui_pow_ui(scale, 2, (unsigned long)e);
    else
        mpz_ui_pow_ui(scale, 5, (unsigned long)-e);
    long places = e >= 0 ? 0 : (long)-e;
    mpz_mul_2exp(n, n, 1);
    mpz_mul(n, n, scale);
    struct digits x = digits_of(ctx, n, places);
    mpz_sub(edge, n, scale);
    struct digits low = digits_of(ctx, edge, places);
    mpz_add(edge, n, scale);
    struct digits high = digits_of(ctx, edge, places);
    mpz_clears(n, scale, edge, NULL);
    number_text_shorten(&x, &low, &high, even);
    return x;
}

/* Zeros stand for digits that are not there, in front and behind. */
static char
decimal_at(const struct digits *x, long at)
{
    return at < 0 ? '0' : digit_at(x, (size_t)at);
}

static void
put_fixed(struct buf *b, const struct digits *x, size_t part)
{
    if (x->point <= 0)
        buf_putc(b, '0');
    for (long i = 0; i < x->point; i++)
        buf_putc(b, decimal_at(x, i));
    if (part > 0)
        buf_putc(b, '.');
    for (size_t i = 0; i < part; i++)
        buf_putc(b, decimal_at(x, x->point + (long)i));
}

static size_t
part_of(const struct digits *x)
{
    long part = (long)x->n - x->point;
    return part > 0 ? (size_t)part : 0;
}

const char *
number_text(const void *ctx, const struct value *v)
{
    if (v->kind == VALUE_INT)
        return mem_printf(ctx, "%lld", (long long)v->i);
    auto_number n;
    if (!number_load(&n, v))
        return "";
    auto_mem void *tmp = mem_ctx("number");
    auto_buf struct buf b = BUF_INIT(4 * NUMBER_EXP2_MAX);
    struct digits x = {NULL, 0, 0};
    if (!mpfr_zero_p(n.m))
        x = number_text_shortest(tmp, n.m);
    if (mpfr_signbit(n.m))
        buf_putc(&b, '-');
    put_fixed(&b, &x, part_of(&x));
    return mem_strdup(ctx, buf_str(&b));
}

bool
number_equal(const struct value *a, const struct value *b)
{
    if (a->kind == VALUE_INT && b->kind == VALUE_INT)
        return a->i == b->i;
    auto_number x, y;
    bool ok = number_load(&x, a);
    ok = number_load(&y, b) && ok;
    if (!ok)
        return false;
    bool whole = mpfr_integer_p(x.m) != 0;
    if (whole != (mpfr_integer_p(y.m) != 0))
        return false;
    if (whole || mpfr_get_prec(x.m) == mpfr_get_prec(y.m))
        return mpfr_equal_p(x.m, y.m) != 0;
    auto_mem void *tmp = mem_ctx("number");
    return strcmp(number_text(tmp, a), number_text(tmp, b)) == 0;
}

/* --- formats --- */

static struct digits
number_text_exact(const void *ctx, const mpfr_t m)
{
    struct digits x = {NULL, 0, 0};
    if (mpfr_zero_p(m))
        return x;
    mpz_t n, scale;
    mpz_inits(n, scale, NULL);
    mpfr_exp_t e = mpfr_get_z_2exp(n, m);
    mpz_abs(n, n);
    if (e >= 0) {
        mpz_mul_2exp(n, n, (mp_bitcnt_t)e);
    } else {
        mpz_ui_pow_ui(scale, 5, (unsigned long)-e);
        mpz_mul(n, n, scale);
    }
    x = digits_of(ctx, n, e >= 0 ? 0 : (long)-e);
    mpz_clears(n, scale, NULL);
    return x;
}

/* To n digits; n of 0 may become one. */
static void
number_text_limit(struct digits *x, long n)
{
    if (n < 0)
        *x = (struct digits){x->d, 0, 0};
    else if ((size_t)n < x->n)
        round_digits(x, (size_t)n, nearer_up(x, (size_t)n));
}

static void
put_scientific(struct buf *b, const struct digits *x, size_t part, char e)
{
    buf_putc(b, digit_at(x, 0));
    if (part > 0)
        buf_putc(b, '.');
    for (size_t i = 1; i <= part; i++)
        buf_putc(b, digit_at(x, i));
    buf_printf(b, "%c%+03ld", e, x->n > 0 ? x->point - 1 : 0);
}

/* Whichever is shorter; `precision` -1: the fewest digits. */
static void
put_general(struct buf *b, struct digits *x, int precision, char e)
{
    long many = precision < 0 ? (long)x->n : precision == 0 ? 1 : precision, limits = many;
    if (precision >= 0)
        number_text_limit(x, many);
    long n = (long)x->n, at = x->n > 0 ? x->point - 1 : -1;
    if (limits > n && n >= x->point)
        limits = n;
    if (precision < 0)
        limits = 6;
    if (at < -4 || at >= limits)
        put_scientific(b, x, (many > n ? n : many) > 0 ? (size_t)((many > n ? n : many) - 1) : 0,
                       e);
    else
        put_fixed(b, x, many > x->point ? part_of(x) : 0);
}

static void
put_float(struct buf *b, const mpfr_t m, int precision, char verb)
{
    auto_mem void *tmp = mem_ctx("format");
    bool fewest = precision < 0 && (verb == 'g' || verb == 'G');
    struct digits x =
        fewest && !mpfr_zero_p(m) ? number_text_shortest(tmp, m) : number_text_exact(tmp, m);
    if (precision < 0 && !fewest)
        precision = 6;
    if (verb == 'e' || verb == 'E') {
        number_text_limit(&x, 1 + precision);
        put_scientific(b, &x, (size_t)precision, verb);
    } else if (verb == 'f' || verb == 'F') {
        number_text_limit(&x, x.point + precision);
        put_fixed(b, &x, (size_t)precision);
    } else {
        put_general(b, &x, precision, verb == 'g' ? 'e' : 'E');
    }
}

static void
put_whole(struct buf *b, const mpfr_t m, int precision, char verb)
{
    static const char verbs[] = "bodxX";
    static const int bases[] = {2, 8, 10, 16, -16};
    mpz_t n;
    mpz_init(n);
    mpfr_get_z(n, m, MPFR_RNDZ);
    mpz_abs(n, n);
    int base = bases[strchr(verbs, verb) - verbs];
    auto_mem char *text =
        mem_zalloc_array(NULL, 1, mpz_sizeinbase(n, base < 0 ? -base : base) + 2, "digits");
    mpz_get_str(text, base, n);
    for (int i = (int)strlen(text); i < precision; i++)
        buf_putc(b, '0');
    if (precision != 0 || mpz_sgn(n) != 0)
        buf_puts(b, text);
    mpz_clear(n);
}

void
number_format(struct buf *b, const struct value *v, const char *flags, int width, int precision,
              char verb)
{
    auto_number x;
    if (!number_load(&x, v))
        return;
    bool whole = strchr("bodxX", verb) != NULL;
    bool zeros = strchr(flags, '0') != NULL && !(whole && precision >= 0);
    bool left = strchr(flags, '-') != NULL;
    auto_buf struct buf digits = BUF_INIT(4 * NUMBER_EXP2_MAX);
    bool minus = whole ? mpfr_sgn(x.m) < 0 : mpfr_signbit(x.m) != 0;
    const char *sign = minus                        ? "-"
                       : strchr(flags, '+') != NULL ? "+"
                       : strchr(flags, ' ') != NULL ? " "
                                                    : "";
    const char *prefix = strchr(flags, '#') == NULL || !whole ? ""
                         : verb == 'b'                        ? "0b"
                         : verb == 'o'                        ? "0"
                         : verb == 'x'                        ? "0x"
                         : verb == 'X'                        ? "0X"
                                                              : "";
    if (whole)
        put_whole(&digits, x.m, precision, verb);
    else
        put_float(&digits, x.m, precision, verb);
    int pad = width - (int)(strlen(sign) + strlen(prefix) + digits.len);
    for (int i = 0; i < pad && !left && !zeros; i++)
        buf_putc(b, ' ');
    buf_puts(b, sign);
    buf_puts(b, prefix);
    for (int i = 0; i < pad && !left && zeros; i++)
        buf_putc(b, '0');
    buf_put(b, digits.data, digits.len);
    for (int i = 0; i < pad && left; i++)
        buf_putc(b, ' ');
}
