/* SPDX-License-Identifier: Apache-2.0
 *
 * Printing as Go's fmt does: its flags, widths and precisions, and its words for a verb that does
 * not fit. First padding, then the kinds of values, then values in each other, then formats.
 */
#include "template/fmt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "template/limits.h"
#include "template/strconv.h"
#include "template/rune.h"

struct fmt {
    struct run *r;
    struct text *out;
    bool sharp, zero, plus, minus, space, sharp_v, plus_v;
    bool has_width, has_precision;
    bool erroring; /* a value is printed inside of a complaint: methods are not called */
    size_t width, precision;
};

static void fmt_arg(struct fmt *f, struct gv v, uint32_t verb);
static void fmt_value(struct fmt *f, struct gv v, uint32_t verb, int depth);

/* --- padding --- */

static void
fmt_fill(struct fmt *f, size_t n)
{
    text_fill(f->r, f->out, f->zero && !f->minus ? '0' : ' ', n);
}

static void
fmt_pad(struct fmt *f, const char *s, size_t n)
{
    size_t chars = f->has_width ? rune_count(s, n) : 0;
    size_t fill = f->has_width && f->width > chars ? f->width - chars : 0;
    if (!f->minus)
        fmt_fill(f, fill);
    text_put(f->r, f->out, s, n);
    if (f->minus)
        fmt_fill(f, fill);
}

static void
fmt_pad_blank(struct fmt *f, const char *s, size_t n)
{
    bool zero = f->zero;
    f->zero = false;
    fmt_pad(f, s, n);
    f->zero = zero;
}

static void
fmt_bad_verb(struct fmt *f, struct gv v, uint32_t verb)
{
    bool was = f->erroring;
    f->erroring = true;
    text_puts(f->r, f->out, "%!");
    text_rune(f->r, f->out, verb);
    text_putc(f->r, f->out, '(');
    if (gv_none(v))
        text_puts(f->r, f->out, "<nil>");
    else {
        text_puts(f->r, f->out, gv_type_name(v));
        text_putc(f->r, f->out, '=');
        fmt_arg(f, v, 'v');
    }
    text_putc(f->r, f->out, ')');
    f->erroring = was;
}

/* --- whole numbers --- */

static void
put_prefix(struct fmt *f, struct text *t, unsigned base, uint32_t verb)
{
    if (f->sharp && base == 2)
        text_puts(f->r, t, "0b");
    else if (f->sharp && base == 16)
        text_puts(f->r, t, verb == 'X' ? "0X" : "0x");
    if (verb == 'O')
        text_puts(f->r, t, "0o");
}

static void
fmt_digits(struct fmt *f, uint64_t u, unsigned base, bool negative, uint32_t verb)
{
    const char *digits = verb == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    char d[64];
    size_t n = 0, least = 0;
    struct text t = {NULL, 0, 0};
    if (f->has_precision) {
        least = f->precision;
        if (least == 0 && u == 0) {
            text_fill(f->r, f->out, ' ', f->has_width ? f->width : 0);
            return;
        }
    } else if (f->zero && !f->minus && f->has_width)
        least = f->width - (f->width > 0 && (negative || f->plus || f->space));
    do {
        d[n++] = digits[u % base];
        u /= base;
    } while (u);
    if (negative)
        text_putc(f->r, &t, '-');
    else if (f->plus || f->space)
        text_putc(f->r, &t, f->plus ? '+' : ' ');
    put_prefix(f, &t, base, verb);
    if (f->sharp && base == 8 && d[n - 1] != '0' && least <= n)
        text_putc(f->r, &t, '0');
    text_fill(f->r, &t, '0', least > n ? least - n : 0);
    while (n > 0)
        text_putc(f->r, &t, d[--n]);
    fmt_pad_blank(f, t.s, t.n);
}

static void
fmt_character(struct fmt *f, uint64_t u, bool quoted)
{
    struct text t = {NULL, 0, 0};
    uint32_t c = u > 0x10ffff ? RUNE_BAD : (uint32_t)u;
    char s[4];
    if (!quoted) {
        text_rune(f->r, &t, c);
        fmt_pad(f, t.s, t.n);
        return;
    }
    text_quote_with(f->r, &t, s, rune_write(c, s), '\'', f->plus);
    fmt_pad(f, t.s, t.n);
}

static void
fmt_unicode(struct fmt *f, uint64_t u)
{
    struct text t = {NULL, 0, 0};
    int least = f->has_precision && f->precision > 4 ? (int)f->precision : 4;
    text_printf(f->r, &t, "U+%0*llX", least, (unsigned long long)u);
    if (f->sharp && u <= 0x10ffff && rune_print((uint32_t)u)) {
        text_puts(f->r, &t, " '");
        text_rune(f->r, &t, (uint32_t)u);
        text_putc(f->r, &t, '\'');
    }
    fmt_pad_blank(f, t.s, t.n);
}

static void
fmt_integer(struct fmt *f, struct gv v, uint32_t verb)
{
    bool is_signed = gv_kind(v) == GV_INT, negative = is_signed && v.i < 0;
    uint64_t u = negative ? 0 - (uint64_t)v.i : v.u;
    if (verb == 'v' && f->sharp_v && !is_signed) {
        bool sharp = f->sharp;
        f->sharp = true;
        fmt_digits(f, u, 16, false, 'v');
        f->sharp = sharp;
        return;
    }
    switch (verb) {
    case 'v':
    case 'd':
        fmt_digits(f, u, 10, negative, verb);
        return;
    case 'b':
        fmt_digits(f, u, 2, negative, verb);
        return;
    case 'o':
    case 'O':
        fmt_digits(f, u, 8, negative, verb);
        return;
    case 'x':
    case 'X':
        fmt_digits(f, u, 16, negative, verb);
        return;
    case 'c':
    case 'q':
        fmt_character(f, v.u, verb == 'q');
        return;
    case 'U':
        fmt_unicode(f, v.u);
        return;
    default:
        fmt_bad_verb(f, v, verb);
    }
}

/* --- fractions --- */

/* The # flag: a point always, and the zeros that %g has dropped. */
static void
keep_zeros(struct fmt *f, struct text *t, uint32_t verb, int precision)
{
    struct text old = *t;
    bool keeps = verb == 'g' || verb == 'G' || verb == 'v' || verb == 'x';
    long digits = keeps ? (precision < 0 ? 6 : precision) : 0;
    size_t i = old.n > 0 && (old.s[0] == '+' || old.s[0] == '-' || old.s[0] == ' '), first = i;
    bool point = false, seen = false;
    bool hex = verb == 'x' || verb == 'X';
    for (; i < old.n && (hex || (old.s[i] != 'e' && old.s[i] != 'E')); i++) {
        if (old.s[i] == 'p' || old.s[i] == 'P')
            break;
        point = point || old.s[i] == '.';
        seen = seen || (old.s[i] != '0' && old.s[i] != '.');
        digits -= seen && old.s[i] != '.';
    }
    *t = (struct text){NULL, 0, 0};
    text_put(f->r, t, old.s, i);
    if (!point) {
        digits -= i == first + 1 && old.s[first] == '0';
        text_putc(f->r, t, '.');
    }
    text_fill(f->r, t, '0', digits > 0 ? (size_t)digits : 0);
    text_put(f->r, t, old.s + i, old.n - i);
}

static void
fmt_real(struct fmt *f, double v, uint32_t verb, int precision)
{
    struct text t = {NULL, 0, 0}, n = {NULL, 0, 0};
    if (f->has_precision)
        precision = (int)f->precision;
    strconv_put(f->r, &n, v, verb == 'v' ? 'g' : (char)verb, precision);
    if (n.s[0] != '-' && n.s[0] != '+')
        text_putc(f->r, &t, '+');
    text_put(f->r, &t, n.s, n.n);
    if (f->space && t.s[0] == '+' && !f->plus)
        t.s[0] = ' ';
    if (isnan(v) || isinf(v)) {
        size_t skip = isnan(v) && !f->space && !f->plus;
        fmt_pad_blank(f, t.s + skip, t.n - skip);
        return;
    }
    if (f->sharp)
        keep_zeros(f, &t, verb, precision);
    bool sign = f->plus || t.s[0] != '+';
    if (sign && f->zero && !f->minus && f->has_width && f->width > t.n) {
        text_putc(f->r, f->out, t.s[0]);
        text_fill(f->r, f->out, '0', f->width - t.n);
        text_put(f->r, f->out, t.s + 1, t.n - 1);
        return;
    }
    fmt_pad(f, t.s + !sign, t.n - !sign);
}

static bool
fmt_float(struct fmt *f, double v, uint32_t verb)
{
    switch (verb) {
    case 'v':
    case 'g':
    case 'G':
    case 'x':
    case 'X':
    case 'b':
        fmt_real(f, v, verb, -1);
        return true;
    case 'f':
    case 'e':
    case 'E':
        fmt_real(f, v, verb, 6);
        return true;
    case 'F':
        fmt_real(f, v, 'f', 6);
        return true;
    default:
        return false;
    }
}

static void
fmt_complex(struct fmt *f, struct gv v, uint32_t verb)
{
    bool plus = f->plus;
    if (verb > 'z' || !strchr("vbgGxXfFeE", (int)verb)) {
        fmt_bad_verb(f, v, verb);
        return;
    }
    text_putc(f->r, f->out, '(');
    fmt_float(f, v.re, verb);
    f->plus = true;
    fmt_float(f, v.im, verb);
    text_puts(f->r, f->out, "i)");
    f->plus = plus;
}

/* --- text --- */

static void
fmt_hex(struct fmt *f, const char *s, size_t n, bool upper)
{
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef",
               *mark = upper ? "0X" : "0x";
    struct text t = {NULL, 0, 0};
    if (f->has_precision && f->precision < n)
        n = f->precision;
    if (n > 0 && f->sharp)
        text_puts(f->r, &t, mark);
    for (size_t i = 0; i < n; i++) {
        if (f->space && i > 0) {
            text_putc(f->r, &t, ' ');
            text_puts(f->r, &t, f->sharp ? mark : "");
        }
        text_putc(f->r, &t, digits[(uint8_t)s[i] >> 4]);
        text_putc(f->r, &t, digits[(uint8_t)s[i] & 15]);
    }
    fmt_pad(f, t.s, t.n);
}

static bool
can_backquote(const char *s, size_t n)
{
    uint32_t c;
    for (size_t i = 0; i < n;) {
        size_t len = rune_take(s + i, n - i, &c);
        i += len;
        if ((c == RUNE_BAD && len == 1) || c == 0xfeff || (c < ' ' && c != '\t') || c == '`' ||
            c == 0x7f)
            return false;
    }
    return true;
}

static void
fmt_quoted(struct fmt *f, const char *s, size_t n)
{
    struct text t = {NULL, 0, 0};
    if (f->sharp && can_backquote(s, n)) {
        text_putc(f->r, &t, '`');
        text_put(f->r, &t, s, n);
        text_putc(f->r, &t, '`');
    } else
        text_quote_with(f->r, &t, s, n, '"', f->plus);
    fmt_pad(f, t.s, t.n);
}

static size_t
cut_text(const struct fmt *f, const char *s, size_t n)
{
    size_t at = 0;
    uint32_t c;
    if (!f->has_precision)
        return n;
    for (size_t i = 0; i < f->precision && at < n; i++)
        at += rune_take(s + at, n - at, &c);
    return at;
}

static void
fmt_string(struct fmt *f, struct gv v, uint32_t verb)
{
    size_t n = cut_text(f, v.s, v.n);
    run_step(f->r, n / 64);
    if (verb == 'q' || (verb == 'v' && f->sharp_v))
        fmt_quoted(f, v.s, n);
    else if (verb == 'v' || verb == 's')
        fmt_pad(f, v.s, n);
    else if (verb == 'x' || verb == 'X')
        fmt_hex(f, v.s, v.n, verb == 'X');
    else
        fmt_bad_verb(f, v, verb);
}

/* --- values in each other --- */

static bool
fmt_by_method(struct fmt *f, struct gv v, uint32_t verb)
{
    bool fits = verb == 'v' || verb == 's' || verb == 'x' || verb == 'X' || verb == 'q';
    if (f->erroring || f->sharp_v || !fits || !v.t || !v.t->class || !v.t->class->stringer ||
        gv_is_nil(v))
        return false;
    fmt_string(f, v.t->class->methods[0].fn(f->r, &v, 1), verb);
    return true;
}

static bool
open_collection(struct fmt *f, struct gv v, const char *plain)
{
    if (!f->sharp_v) {
        text_puts(f->r, f->out, plain);
        return true;
    }
    text_puts(f->r, f->out, gv_type_name(v));
    text_puts(f->r, f->out, gv_is_nil(v) && gv_kind(v) != GV_STRUCT ? "(nil)" : "{");
    return !gv_is_nil(v) || gv_kind(v) == GV_STRUCT;
}

static void
put_between(struct fmt *f, size_t i)
{
    if (i)
        text_puts(f->r, f->out, f->sharp_v ? ", " : " ");
}

static void
fmt_list(struct fmt *f, struct gv v, uint32_t verb, int depth)
{
    if (!open_collection(f, v, "["))
        return;
    for (size_t i = 0; i < gv_len(v); i++) {
        put_between(f, i);
        fmt_value(f, v.list->v[i], verb, depth + 1);
    }
    text_putc(f->r, f->out, f->sharp_v ? '}' : ']');
}

static void
fmt_map(struct fmt *f, struct gv v, uint32_t verb, int depth)
{
    if (!open_collection(f, v, "map["))
        return;
    for (size_t i = 0; i < gv_len(v); i++) {
        put_between(f, i);
        fmt_value(f, v.map->v[i].k, verb, depth + 1);
        text_putc(f->r, f->out, ':');
        fmt_value(f, v.map->v[i].v, verb, depth + 1);
    }
    text_putc(f->r, f->out, f->sharp_v ? '}' : ']');
}

static void
fmt_struct(struct fmt *f, struct gv v, uint32_t verb, int depth)
{
    if (v.obj == NULL) {
        f->sharp_v ? text_printf(f->r, f->out, "(%s)(nil)", v.t->name) : fmt_pad(f, "<nil>", 5);
        return;
    }
    bool pointer = v.t->pointer;
    text_puts(f->r, f->out, pointer ? "&" : "");
    if (f->sharp_v)
        text_puts(f->r, f->out, v.t->name + pointer);
    text_putc(f->r, f->out, '{');
    for (size_t i = 0; v.t->class->fields[i]; i++) {
        put_between(f, i);
        if (f->plus_v || f->sharp_v)
            text_printf(f->r, f->out, "%s:", v.t->class->fields[i]);
        fmt_value(f, v.obj->f[i], verb, depth + 1);
    }
    text_putc(f->r, f->out, '}');
}

static void
fmt_value(struct fmt *f, struct gv v, uint32_t verb, int depth)
{
    if (depth > TEMPLATE_VALUE_DEPTH_MAX)
        run_abort(f->r, -ERR_LIMIT,
                  "template: a value has more than %d lists and maps in each other",
                  TEMPLATE_VALUE_DEPTH_MAX);
    run_step(f->r, 1);
    if (depth > 0 && fmt_by_method(f, v, verb))
        return;
    switch (gv_kind(v)) {
    case GV_NIL:
        text_puts(f->r, f->out, f->sharp_v ? "interface {}(nil)" : "<nil>");
        return;
    case GV_BOOL:
        if (verb == 't' || verb == 'v')
            fmt_pad(f, v.b ? "true" : "false", v.b ? 4 : 5);
        else
            fmt_bad_verb(f, v, verb);
        return;
    case GV_INT:
    case GV_UINT:
        fmt_integer(f, v, verb);
        return;
    case GV_FLOAT:
        if (!fmt_float(f, v.f, verb))
            fmt_bad_verb(f, v, verb);
        return;
    case GV_COMPLEX:
        fmt_complex(f, v, verb);
        return;
    case GV_STRING:
        fmt_string(f, v, verb);
        return;
    case GV_LIST:
        fmt_list(f, v, verb, depth);
        return;
    case GV_MAP:
        if (v.t->pointer && !v.map) {
            f->sharp_v ? text_printf(f->r, f->out, "(%s)(nil)", v.t->name) : fmt_pad(f, "<nil>", 5);
            return;
        }
        if (v.t->pointer && depth == 0 && !f->sharp_v)
            text_putc(f->r, f->out, '&');
        fmt_map(f, v, verb, depth);
        return;
    case GV_STRUCT:
        fmt_struct(f, v, verb, depth);
        return;
    default:
        text_puts(f->r, f->out, "<nil>");
    }
}

static void
fmt_arg(struct fmt *f, struct gv v, uint32_t verb)
{
    if (gv_none(v)) {
        if (verb == 'T' || verb == 'v')
            fmt_pad(f, "<nil>", 5);
        else
            fmt_bad_verb(f, v, verb);
        return;
    }
    if (verb == 'T') {
        const char *name = gv_type_name(v);
        fmt_string(f, GV_TEXT(name, strlen(name)), 's');
        return;
    }
    if (verb == 'p') {
        fmt_bad_verb(f, v, verb);
        return;
    }
    if (!fmt_by_method(f, v, verb))
        fmt_value(f, v, verb, 0);
}

void
fmt_put(struct run *r, struct text *out, struct gv v)
{
    struct fmt f = {.r = r, .out = out};
    fmt_arg(&f, v, 'v');
}

const char *
fmt_words(struct run *r, struct gv v)
{
    struct text t = {NULL, 0, 0};
    fmt_put(r, &t, v);
    return text_str(r, &t);
}

void
fmt_print(struct run *r, struct text *out, const struct gv *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i && gv_kind(a[i]) != GV_STRING && gv_kind(a[i - 1]) != GV_STRING)
            text_putc(r, out, ' ');
        fmt_put(r, out, a[i]);
    }
}

void
fmt_println(struct run *r, struct text *out, const struct gv *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i)
            text_putc(r, out, ' ');
        fmt_put(r, out, a[i]);
    }
    text_putc(r, out, '\n');
}

/* --- formats --- */

struct format {
    struct fmt f;
    const char *s;
    size_t n, i;
    const struct gv *a;
    size_t n_args, next;
    bool good, reordered, after_index;
};

static bool
is_decimal(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits from i up to end. Too many: no number, and the format is over. */
static bool
take_number(struct format *p, size_t end, size_t *ret)
{
    size_t v = 0;
    bool some = false;
    *ret = 0;
    for (; p->i < end && is_decimal(p->s[p->i]); p->i++) {
        if (v > TEMPLATE_WIDTH_MAX) {
            p->i = end;
            return false;
        }
        v = v * 10 + (size_t)(p->s[p->i] - '0');
        some = true;
    }
    *ret = v;
    return some;
}

/* "[3]" */
static void
take_index(struct format *p)
{
    size_t from = p->i, v;
    p->after_index = false;
    if (p->i >= p->n || p->s[p->i] != '[')
        return;
    p->reordered = true;
    const char *end = p->n - from < 3 ? NULL : memchr(p->s + from + 1, ']', p->n - from - 1);
    if (!end) {
        p->good = false;
        p->i = from + 1;
        return;
    }
    size_t close = (size_t)(end - p->s);
    p->i = from + 1;
    bool some = take_number(p, close, &v) && p->i == close;
    p->i = close + 1;
    if (some && v >= 1 && v <= p->n_args) {
        p->next = v - 1;
        p->after_index = true;
        return;
    }
    p->good = false;
    p->after_index = some;
}

/* "*": a number among the arguments. */
static bool
take_star(struct format *p, int64_t *ret)
{
    *ret = 0;
    p->i++;
    if (p->next >= p->n_args)
        return false;
    struct gv v = p->a[p->next++];
    if ((gv_kind(v) != GV_INT && gv_kind(v) != GV_UINT) || v.i > TEMPLATE_WIDTH_MAX ||
        v.i < -TEMPLATE_WIDTH_MAX)
        return false;
    *ret = v.i;
    return true;
}

static void
take_width(struct format *p)
{
    int64_t v;
    if (p->i >= p->n || p->s[p->i] != '*') {
        p->f.has_width = take_number(p, p->n, &p->f.width);
        if (p->after_index && p->f.has_width)
            p->good = false;
        return;
    }
    p->f.has_width = take_star(p, &v);
    if (!p->f.has_width)
        text_puts(p->f.r, p->f.out, "%!(BADWIDTH)");
    if (v < 0) {
        p->f.minus = true;
        p->f.zero = false;
    }
    p->f.width = (size_t)(v < 0 ? -v : v);
    p->after_index = false;
}

static void
take_precision(struct format *p)
{
    int64_t v;
    if (p->i + 1 >= p->n || p->s[p->i] != '.')
        return;
    p->i++;
    if (p->after_index)
        p->good = false;
    take_index(p);
    if (p->i >= p->n || p->s[p->i] != '*') {
        take_number(p, p->n, &p->f.precision);
        p->f.has_precision = true;
        return;
    }
    p->f.has_precision = take_star(p, &v) && v >= 0;
    p->f.precision = v < 0 ? 0 : (size_t)v;
    if (!p->f.has_precision)
        text_puts(p->f.r, p->f.out, "%!(BADPREC)");
    p->after_index = false;
}

static void
take_flags(struct format *p)
{
    for (; p->i < p->n; p->i++)
        switch (p->s[p->i]) {
        case '#':
            p->f.sharp = true;
            break;
        case '0':
            p->f.zero = true;
            break;
        case '+':
            p->f.plus = true;
            break;
        case '-':
            p->f.minus = true;
            break;
        case ' ':
            p->f.space = true;
            break;
        default:
            return;
        }
}

static void
put_complaint(struct format *p, uint32_t verb, const char *words)
{
    text_puts(p->f.r, p->f.out, "%!");
    text_rune(p->f.r, p->f.out, verb);
    text_puts(p->f.r, p->f.out, words);
}

static void
format_verb(struct format *p)
{
    uint32_t verb;
    p->f = (struct fmt){.r = p->f.r, .out = p->f.out};
    p->good = true;
    take_flags(p);
    take_index(p);
    take_width(p);
    take_precision(p);
    if (!p->after_index)
        take_index(p);
    if (p->i >= p->n) {
        text_puts(p->f.r, p->f.out, "%!(NOVERB)");
        return;
    }
    p->i += rune_take(p->s + p->i, p->n - p->i, &verb);
    if (verb == '%')
        text_putc(p->f.r, p->f.out, '%');
    else if (!p->good)
        put_complaint(p, verb, "(BADINDEX)");
    else if (p->next >= p->n_args)
        put_complaint(p, verb, "(MISSING)");
    else {
        if (verb == 'v' || verb == 'w') {
            p->f.sharp_v = p->f.sharp;
            p->f.plus_v = p->f.plus;
            p->f.sharp = p->f.plus = false;
        }
        fmt_arg(&p->f, p->a[p->next++], verb);
    }
}

static void
put_extra(struct format *p)
{
    p->f = (struct fmt){.r = p->f.r, .out = p->f.out};
    text_puts(p->f.r, p->f.out, "%!(EXTRA ");
    for (size_t i = p->next; i < p->n_args; i++) {
        text_puts(p->f.r, p->f.out, i > p->next ? ", " : "");
        if (!gv_none(p->a[i]))
            text_printf(p->f.r, p->f.out, "%s=", gv_type_name(p->a[i]));
        fmt_arg(&p->f, p->a[i], 'v');
    }
    text_putc(p->f.r, p->f.out, ')');
}

void
fmt_printf(struct run *r, struct text *out, struct gv format, const struct gv *a, size_t n)
{
    struct format p = {
        .f = {.r = r, .out = out}, .s = format.s, .n = format.n, .a = a, .n_args = n};
    while (p.i < p.n) {
        const char *percent = memchr(p.s + p.i, '%', p.n - p.i);
        size_t end = percent ? (size_t)(percent - p.s) : p.n;
        text_put(r, out, p.s + p.i, end - p.i);
        p.i = end + 1;
        if (percent)
            format_verb(&p);
    }
    if (!p.reordered && p.next < n)
        put_extra(&p);
}
