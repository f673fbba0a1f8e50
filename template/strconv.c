/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers and quoted strings as Go's strconv reads and writes them: first numbers to values, then
 * values to digits, then strings, then the numbers of a template, which have several forms.
 */
#include "template/strconv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "template/run.h"
#include "template/rune.h"

const char *
strconv_words(enum strconv s)
{
    return s == STRCONV_RANGE ? "value out of range" : "invalid syntax";
}

/* --- text to number --- */

static int
digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99;
}

/* Underscores stand between digits only, or behind the prefix. */
static bool
underscores_fit(const char *s, size_t n)
{
    char last = '^';
    size_t i = n > 0 && (s[0] == '-' || s[0] == '+');
    bool hex = false;
    if (n - i >= 2 && s[i] == '0' && strchr("bBoOxX", s[i + 1])) {
        hex = (s[i + 1] | 0x20) == 'x';
        i += 2;
        last = '0';
    }
    for (; i < n; i++) {
        bool digit = digit_of(s[i]) < (hex ? 16 : 10);
        if (!digit && s[i] != '_' && last == '_')
            return false;
        if (s[i] == '_' && last != '0')
            return false;
        last = digit ? '0' : s[i] == '_' ? '_' : '!';
    }
    return last != '_';
}

static int
take_base(const char **s, size_t *n)
{
    int base = 8, skip = 1;
    if (*n == 0 || **s != '0')
        return 10;
    if (*n >= 3 && strchr("bBoOxX", (*s)[1])) {
        char c = (char)((*s)[1] | 0x20);
        base = c == 'b' ? 2 : c == 'o' ? 8 : 16;
        skip = 2;
    }
    *s += skip;
    *n -= (size_t)skip;
    return base;
}

enum strconv
strconv_uint(const char *s, size_t n, int base, uint64_t *ret)
{
    const char *whole = s;
    size_t n_whole = n;
    bool prefix = base == 0, under = false;
    uint64_t v = 0;
    if (n == 0)
        return STRCONV_SYNTAX;
    if (prefix)
        base = take_base(&s, &n);
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '_' && prefix) {
            under = true;
            continue;
        }
        int d = digit_of(s[i]);
        if (d >= base)
            return STRCONV_SYNTAX;
        if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)d, &v)) {
            *ret = UINT64_MAX;
            return STRCONV_RANGE;
        }
    }
    if (under && !underscores_fit(whole, n_whole))
        return STRCONV_SYNTAX;
    *ret = v;
    return STRCONV_OK;
}

enum strconv
strconv_int(const char *s, size_t n, int base, int64_t *ret)
{
    bool minus = n > 0 && s[0] == '-';
    uint64_t v = 0, max = (uint64_t)INT64_MAX + minus;
    size_t sign = n > 0 && (s[0] == '-' || s[0] == '+');
    enum strconv rc = strconv_uint(s + sign, n - sign, base, &v);
    if (rc == STRCONV_SYNTAX)
        return rc;
    if (v > max) {
        *ret = minus ? INT64_MIN : INT64_MAX;
        return STRCONV_RANGE;
    }
    *ret = (int64_t)(minus ? 0 - v : v);
    return STRCONV_OK;
}

static bool
special_float(const char *s, size_t n, double *ret)
{
    size_t sign = n > 0 && (s[0] == '-' || s[0] == '+');
    const char *p = s + sign;
    size_t k = n - sign;
    if ((k == 3 && strncasecmp(p, "inf", 3) == 0) || (k == 8 && strncasecmp(p, "infinity", 8) == 0))
        *ret = s[0] == '-' ? -INFINITY : INFINITY;
    else if (n == 3 && strncasecmp(s, "nan", 3) == 0)
        *ret = NAN;
    else
        return false;
    return true;
}

/* Looks whether it is a number of Go's, and copies it without underscores. */
static bool
clean_float(const char *s, size_t n, char *to)
{
    size_t i = n > 0 && (s[0] == '-' || s[0] == '+'), k = 0, digits = 0;
    bool hex = n - i > 2 && s[i] == '0' && (s[i + 1] | 0x20) == 'x', under = false,
         exponent = false;
    for (size_t j = 0; j < i + (hex ? 2 : 0); j++)
        to[k++] = s[j];
    i += hex ? 2 : 0;
    for (bool dot = false; i < n; i++) {
        if (s[i] == '_') {
            under = true;
            continue;
        }
        if (s[i] == '.' && dot)
            return false;
        dot = dot || s[i] == '.';
        if (s[i] != '.' && digit_of(s[i]) >= (hex ? 16 : 10))
            break;
        digits += s[i] != '.';
        to[k++] = s[i];
    }
    if (digits == 0)
        return false;
    if (i < n && (s[i] | 0x20) == (hex ? 'p' : 'e')) {
        to[k++] = s[i++];
        if (i < n && (s[i] == '-' || s[i] == '+'))
            to[k++] = s[i++];
        size_t from = i;
        for (; i < n && (digit_of(s[i]) < 10 || s[i] == '_'); i++)
            if (s[i] == '_')
                under = true;
            else
                to[k++] = s[i];
        if (i == from || s[from] == '_')
            return false;
        exponent = true;
    }
    to[k] = 0;
    return i == n && (!hex || exponent) && (!under || underscores_fit(s, n));
}

enum { FLOAT_TEXT = 1200 };

enum strconv
strconv_float(const char *s, size_t n, double *ret)
{
    char text[FLOAT_TEXT];
    if (special_float(s, n, ret))
        return STRCONV_OK;
    if (n == 0 || n + 1 > sizeof(text) || !clean_float(s, n, text))
        return STRCONV_SYNTAX;
    *ret = strtod(text, NULL);
    return isinf(*ret) ? STRCONV_RANGE : STRCONV_OK;
}

/* --- number to text --- */

/* Decimal digits d.ddd and the exponent, as few as tell f from its neighbours. */
static int
shortest_digits(double f, char *digits, int *exponent)
{
    char t[40];
    int n = 0;
    for (int p = 0; p <= 17; p++) {
        snprintf(t, sizeof(t), "%.*e", p, f);
        if (strtod(t, NULL) == f)
            break;
    }
    const char *e = strchr(t, 'e');
    int64_t x = 0;
    strconv_int(e + 1, strlen(e + 1), 10, &x);
    *exponent = (int)x;
    for (const char *p = t; p < e; p++)
        if (*p != '.')
            digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = 0;
    return n;
}

static void
put_exponent(struct run *r, struct text *out, char e, int x)
{
    text_printf(r, out, "%c%c%02d", e, x < 0 ? '-' : '+', abs(x));
}

static void
put_shortest_e(struct run *r, struct text *out, const char *digits, int n, int x)
{
    text_putc(r, out, digits[0]);
    if (n > 1)
        text_putc(r, out, '.');
    text_put(r, out, digits + 1, (size_t)n - 1);
    put_exponent(r, out, 'e', x);
}

static void
put_shortest_f(struct run *r, struct text *out, const char *digits, int n, int x)
{
    if (x < 0) {
        text_puts(r, out, "0.");
        text_fill(r, out, '0', (size_t)(-x - 1));
        text_put(r, out, digits, (size_t)n);
        return;
    }
    int whole = n < x + 1 ? n : x + 1;
    text_put(r, out, digits, (size_t)whole);
    text_fill(r, out, '0', (size_t)(x + 1 - whole));
    if (n > x + 1) {
        text_putc(r, out, '.');
        text_put(r, out, digits + x + 1, (size_t)(n - x - 1));
    }
}

static void
put_shortest(struct run *r, struct text *out, double f, char form)
{
    char digits[40];
    int x;
    bool upper = form < 'a';
    size_t from = out->n;
    int n = shortest_digits(f, digits, &x);
    form = (char)(form | 0x20);
    if (form == 'e' || (form == 'g' && (x < -4 || x >= 6)))
        put_shortest_e(r, out, digits, n, x);
    else
        put_shortest_f(r, out, digits, n, x);
    for (size_t i = from; upper && i < out->n; i++)
        if (out->s[i] == 'e')
            out->s[i] = 'E';
}

/* Writes as many hexadecimal digits as it has, and an exponent of two digits at least. */
static void
put_hex(struct run *r, struct text *out, double f, char form, int precision)
{
    char t[64];
    int64_t x = 0;
    if (precision < 0)
        snprintf(t, sizeof(t), "%a", f);
    else
        snprintf(t, sizeof(t), "%.*a", precision > 40 ? 40 : precision, f);
    char *p = strchr(t, 'p');
    strconv_int(p + 1, strlen(p + 1), 10, &x);
    *p = 0;
    if (t[2] == '2') { /* rounded up to the next power of two */
        t[2] = '1';
        x++;
    }
    size_t from = out->n;
    text_puts(r, out, t);
    put_exponent(r, out, 'p', (int)x);
    for (size_t i = from; form == 'X' && i < out->n; i++)
        if (out->s[i] >= 'a')
            out->s[i] = (char)(out->s[i] - 32);
}

void
strconv_put(struct run *r, struct text *out, double f, char form, int precision)
{
    if (isnan(f)) {
        text_puts(r, out, "NaN");
        return;
    }
    if (signbit(f))
        text_putc(r, out, '-');
    else if (isinf(f))
        text_putc(r, out, '+');
    if (isinf(f)) {
        text_puts(r, out, "Inf");
        return;
    }
    f = fabs(f);
    if (form == 'x' || form == 'X') {
        put_hex(r, out, f, form, precision);
        return;
    }
    if (form == 'b') {
        int x;
        f = frexp(f, &x);
        text_printf(r, out, "%.0fp%+d", ldexp(f, 53), f == 0 ? -1074 : x - 53);
        return;
    }
    if (precision < 0) {
        put_shortest(r, out, f, form);
        return;
    }
    char fmt[] = {'%', '.', '*', form, 0};
    size_t max = (size_t)precision + 400;
    char *to = run_bytes(r, max);
    run_step(r, max / 16);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int n = snprintf(to, max, fmt, precision, f);
#pragma GCC diagnostic pop
    text_put(r, out, to, (size_t)n);
}

/* --- quoted strings --- */

static bool
take_digits(const char *s, size_t n, size_t count, int base, uint32_t *ret)
{
    *ret = 0;
    if (n < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        int d = digit_of(s[i]);
        if (d >= base)
            return false;
        *ret = *ret * (uint32_t)base + (uint32_t)d;
    }
    return true;
}

/* One escape behind its backslash; its length, 0: malformed. */
static size_t
take_escape(const char *s, size_t n, char quote, uint32_t *c, bool *byte)
{
    static const char from[] = "abfnrtv\\", to[] = "\a\b\f\n\r\t\v\\";
    const char *k = n && *s ? strchr(from, *s) : NULL;
    *byte = false;
    if (k) {
        *c = (uint8_t)to[k - from];
        return 1;
    }
    if (n == 0)
        return 0;
    size_t digits = *s == 'x' ? 2 : *s == 'u' ? 4 : *s == 'U' ? 8 : 0;
    if (digits) {
        *byte = *s == 'x';
        bool ok = take_digits(s + 1, n - 1, digits, 16, c) &&
                  (*byte || (*c <= 0x10ffff && (*c < 0xd800 || *c >= 0xe000)));
        return ok ? digits + 1 : 0;
    }
    if (*s >= '0' && *s <= '7') {
        *byte = true;
        return take_digits(s, n, 3, 8, c) && *c < 256 ? 3 : 0;
    }
    *c = (uint8_t)*s;
    return *s == quote && (quote == '\'' || quote == '"') ? 1 : 0;
}

static const char *
unquote_raw(struct run *r, const char *s, size_t n, size_t *len)
{
    struct text t = {NULL, 0, 0};
    for (size_t i = 0; i < n; i++)
        if (s[i] != '\r')
            text_putc(r, &t, s[i]);
    *len = t.n;
    return text_str(r, &t);
}

const char *
strconv_unquote(struct run *r, const char *s, size_t n, size_t *len)
{
    struct text t = {NULL, 0, 0};
    char quote = n ? s[0] : 0;
    if (n < 2 || s[n - 1] != quote)
        return NULL;
    s++;
    n -= 2;
    if (quote == '`')
        return unquote_raw(r, s, n, len);
    for (size_t i = 0; i < n;) {
        uint32_t c;
        bool byte;
        if (s[i] != '\\') {
            text_putc(r, &t, s[i++]);
            continue;
        }
        size_t k = take_escape(s + i + 1, n - i - 1, quote, &c, &byte);
        if (k == 0)
            return NULL;
        byte ? text_putc(r, &t, (char)c) : text_rune(r, &t, c);
        i += k + 1;
    }
    *len = t.n;
    return text_str(r, &t);
}

/* --- numbers of a template --- */

static const char *
number_quoted(struct run *r, const char *words, const struct token *k)
{
    struct text t = {NULL, 0, 0};
    text_puts(r, &t, words);
    text_quote(r, &t, k->s.p, k->s.n);
    return text_str(r, &t);
}

static const char *
parse_rune(struct run *r, struct node *n, const struct token *k)
{
    const char *s = (const char *)k->s.p + 1;
    size_t left = k->s.n - 1, used;
    uint32_t c;
    bool byte;
    if (left == 0 || *s == '\'')
        return "invalid syntax";
    used = *s == '\\' ? take_escape(s + 1, left - 1, '\'', &c, &byte) : rune_take(s, left, &c);
    if (used == 0)
        return "invalid syntax";
    used += *s == '\\';
    if (left - used != 1) {
        struct text t = {NULL, 0, 0};
        text_puts(r, &t, "malformed character constant: ");
        text_put(r, &t, k->s.p, k->s.n);
        return text_str(r, &t);
    }
    n->forms = NUMBER_INT | NUMBER_UINT | NUMBER_FLOAT;
    n->i = c;
    n->u = c;
    n->f = c;
    return NULL;
}

/* The whole numbers that a fraction is, too. */
static void
forms_of_float(struct node *n)
{
    if (n->f >= -0x1p63 && n->f < 0x1p63 && (double)(int64_t)n->f == n->f) {
        n->forms |= NUMBER_INT;
        n->i = (int64_t)n->f;
    }
    if (n->f >= 0 && n->f < 0x1p64 && (double)(uint64_t)n->f == n->f) {
        n->forms |= NUMBER_UINT;
        n->u = (uint64_t)n->f;
    }
}

static const char *
parse_imaginary(struct node *n, double re, const char *s, size_t len)
{
    double im;
    if (strconv_float(s, len, &im) != STRCONV_OK)
        return "syntax error scanning complex number";
    n->forms = NUMBER_COMPLEX;
    n->v = (struct gv){.t = &gv_complex, .re = re, .im = im};
    if (im == 0) {
        n->forms |= NUMBER_FLOAT;
        n->f = re;
        forms_of_float(n);
    }
    return NULL;
}

static const char *
parse_complex(struct node *n, const struct token *k)
{
    const char *s = k->s.p;
    size_t split = k->s.n - 2;
    double re;
    while (split > 0 && !((s[split] == '+' || s[split] == '-') && !strchr("eEpP", s[split - 1])))
        split--;
    if (split == 0 || strconv_float(s, split, &re) != STRCONV_OK)
        return "syntax error scanning complex number";
    return parse_imaginary(n, re, s + split, k->s.n - split - 1);
}

static const char *
parse_float(struct run *r, struct node *n, const struct token *k)
{
    const char *s = k->s.p;
    if (strconv_float(s, k->s.n, &n->f) != STRCONV_OK)
        return number_quoted(r, "illegal number syntax: ", k);
    if (!memchr(s, '.', k->s.n) && !memchr(s, 'e', k->s.n) && !memchr(s, 'E', k->s.n) &&
        !memchr(s, 'p', k->s.n) && !memchr(s, 'P', k->s.n))
        return number_quoted(r, "integer overflow: ", k);
    n->forms = NUMBER_FLOAT;
    forms_of_float(n);
    return NULL;
}

/* The type that a number has where nothing else is asked for. */
static void
settle_number(struct node *n, const struct token *k)
{
    const char *s = k->s.p;
    bool hex = k->s.n > 2 && s[0] == '0' && (s[1] | 0x20) == 'x' && !memchr(s, 'p', k->s.n) &&
               !memchr(s, 'P', k->s.n);
    bool mark = false;
    for (size_t i = 0; i < k->s.n; i++)
        mark = mark || strchr(".eEpP", s[i]);
    if (n->forms & NUMBER_COMPLEX)
        return;
    if ((n->forms & NUMBER_FLOAT) && !hex && k->kind != TOKEN_RUNE && mark)
        n->v = GV_REAL(n->f);
    else if (n->forms & NUMBER_INT)
        n->v = GV_INTEGER(n->i);
}

const char *
strconv_parse(struct run *r, struct node *n, const struct token *k)
{
    const char *s = k->s.p, *words = NULL;
    double im;
    if (k->kind == TOKEN_RUNE)
        words = parse_rune(r, n, k);
    else if (k->kind == TOKEN_COMPLEX)
        words = parse_complex(n, k);
    else if (k->s.n > 0 && s[k->s.n - 1] == 'i' && strconv_float(s, k->s.n - 1, &im) == STRCONV_OK)
        words = parse_imaginary(n, 0, s, k->s.n - 1);
    else {
        if (strconv_uint(s, k->s.n, 0, &n->u) == STRCONV_OK)
            n->forms |= NUMBER_UINT;
        if (strconv_int(s, k->s.n, 0, &n->i) == STRCONV_OK)
            n->forms |= NUMBER_INT | (n->i == 0 ? NUMBER_UINT : 0);
        if (n->forms) {
            n->f = n->forms & NUMBER_INT ? (double)n->i : (double)n->u;
            n->forms |= NUMBER_FLOAT;
        } else
            words = parse_float(r, n, k);
    }
    if (!words)
        settle_number(n, k);
    return words;
}
