/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON as Go's encoding/json reads and writes it. A reader stops at the first byte that does not
 * fit, with words in bad; every function of it returns false then. The writer is behind it.
 */
#include "template/func/json.h"

#include <math.h>
#include <string.h>

#include "template/fmt.h"
#include "template/limits.h"
#include "template/rune.h"
#include "template/strconv.h"

struct reader {
    struct run *r;
    const char *s;
    size_t n, i;
    const char *bad;
};

static bool read_value(struct reader *p, struct gv *ret);

/* --- mistakes --- */

static bool
bad_char(struct reader *p, const char *context)
{
    struct text t = {NULL, 0, 0};
    /* The end counts as a blank where no blank may stand. */
    bool end = p->i >= p->n,
         inside = strncmp(context, "after dec", 9) == 0 ||
                  (strncmp(context, "in ", 3) == 0 && strcmp(context, "in string literal") != 0);
    if (end && !inside) {
        p->bad = "unexpected end of JSON input";
        return false;
    }
    char c = end ? ' ' : p->s[p->i], utf8[4];
    text_puts(p->r, &t, "invalid character ");
    if (c == '"')
        text_puts(p->r, &t, "'\"'");
    else
        text_quote_with(p->r, &t, utf8, rune_write((uint8_t)c, utf8), '\'', false);
    text_printf(p->r, &t, " %s", context);
    p->bad = text_str(p->r, &t);
    return false;
}

static void
skip_space(struct reader *p)
{
    while (p->i < p->n && p->s[p->i] && strchr(" \t\r\n", p->s[p->i]))
        p->i++;
}

static bool
at_char(const struct reader *p, char c)
{
    return p->i < p->n && p->s[p->i] == c;
}

static bool
at_digit(const struct reader *p)
{
    return p->i < p->n && p->s[p->i] >= '0' && p->s[p->i] <= '9';
}

/* --- scalars --- */

static bool
read_literal(struct reader *p, const char *word)
{
    for (size_t k = 0; word[k]; k++, p->i++)
        if (!at_char(p, word[k])) {
            struct text t = {NULL, 0, 0};
            text_printf(p->r, &t, "in literal %s (expecting '%c')", word, word[k]);
            return bad_char(p, text_str(p->r, &t));
        }
    return true;
}

static bool
read_digits(struct reader *p, const char *context)
{
    if (!at_digit(p))
        return bad_char(p, context);
    while (at_digit(p))
        p->i++;
    return true;
}

static bool
read_number(struct reader *p, struct gv *ret)
{
    size_t from = p->i;
    double v = 0;
    p->i += at_char(p, '-');
    if (at_char(p, '0'))
        p->i++;
    else if (!read_digits(p, "in numeric literal"))
        return false;
    if (at_char(p, '.')) {
        p->i++;
        if (!read_digits(p, "after decimal point in numeric literal"))
            return false;
    }
    if (at_char(p, 'e') || at_char(p, 'E')) {
        p->i++;
        p->i += at_char(p, '+') || at_char(p, '-');
        if (!read_digits(p, "in exponent of numeric literal"))
            return false;
    }
    if (strconv_float(p->s + from, p->i - from, &v) != STRCONV_OK) {
        struct text t = {NULL, 0, 0};
        text_puts(p->r, &t, "json: cannot unmarshal number ");
        text_put(p->r, &t, p->s + from, p->i - from);
        text_puts(p->r, &t, " into Go value of type float64");
        p->bad = p->bad ? p->bad : text_str(p->r, &t); /* told if all else is right */
    }
    *ret = GV_REAL(v);
    return true;
}

static bool
read_hex(struct reader *p, uint32_t *c)
{
    *c = 0;
    for (int k = 0; k < 4; k++, p->i++) {
        uint64_t d;
        if (p->i >= p->n || strconv_uint(p->s + p->i, 1, 16, &d) != STRCONV_OK)
            return bad_char(p, "in \\u hexadecimal character escape");
        *c = *c << 4 | (uint32_t)d;
    }
    return true;
}

static bool
read_escape(struct reader *p, struct text *t)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    uint32_t c, low;
    p->i++;
    const char *k = p->i < p->n && p->s[p->i] ? strchr(from, p->s[p->i]) : NULL;
    if (k) {
        text_putc(p->r, t, to[k - from]);
        p->i++;
        return true;
    }
    if (!at_char(p, 'u'))
        return bad_char(p, "in string escape code");
    p->i++;
    if (!read_hex(p, &c))
        return false;
    if (c >= 0xd800 && c < 0xdc00 && p->i + 1 < p->n && p->s[p->i] == '\\' &&
        p->s[p->i + 1] == 'u') {
        size_t back = p->i;
        p->i += 2;
        if (!read_hex(p, &low))
            return false;
        if (low >= 0xdc00 && low < 0xe000)
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        else
            p->i = back;
    }
    text_rune(p->r, t, c);
    return true;
}

static bool
read_string(struct reader *p, struct gv *ret)
{
    struct text t = {NULL, 0, 0};
    for (p->i++; !at_char(p, '"');) {
        uint32_t c;
        if (p->i >= p->n || (uint8_t)p->s[p->i] < ' ')
            return bad_char(p, "in string literal");
        if (p->s[p->i] == '\\') {
            if (!read_escape(p, &t))
                return false;
            continue;
        }
        p->i += rune_take(p->s + p->i, p->n - p->i, &c);
        text_rune(p->r, &t, c);
    }
    p->i++;
    *ret = text_gv(&t);
    return true;
}

/* --- lists and maps --- */

static bool
read_list(struct reader *p, struct gv *ret)
{
    *ret = gv_list_new(p->r, &gv_anys, 0);
    p->i++;
    skip_space(p);
    if (at_char(p, ']')) {
        p->i++;
        return true;
    }
    for (;;) {
        struct gv v;
        if (!read_value(p, &v))
            return false;
        gv_list_add(p->r, ret->list, v);
        skip_space(p);
        if (at_char(p, ']')) {
            p->i++;
            return true;
        }
        if (!at_char(p, ','))
            return bad_char(p, "after array element");
        p->i++;
    }
}

static bool
read_map(struct reader *p, struct gv *ret)
{
    *ret = gv_map_new(p->r, &gv_map_any);
    p->i++;
    skip_space(p);
    if (at_char(p, '}')) {
        p->i++;
        return true;
    }
    for (;;) {
        struct gv k, v;
        skip_space(p);
        if (!at_char(p, '"'))
            return bad_char(p, "looking for beginning of object key string");
        if (!read_string(p, &k))
            return false;
        skip_space(p);
        if (!at_char(p, ':'))
            return bad_char(p, "after object key");
        p->i++;
        if (!read_value(p, &v))
            return false;
        gv_map_put(p->r, ret->map, k, v);
        skip_space(p);
        if (at_char(p, '}')) {
            p->i++;
            return true;
        }
        if (!at_char(p, ','))
            return bad_char(p, "after object key:value pair");
        p->i++;
    }
}

static bool
read_any(struct reader *p, struct gv *ret)
{
    switch (p->i < p->n ? p->s[p->i] : 0) {
    case '{':
        return read_map(p, ret);
    case '[':
        return read_list(p, ret);
    case '"':
        return read_string(p, ret);
    case 't':
        *ret = GV_TRUE(true);
        return read_literal(p, "true");
    case 'f':
        *ret = GV_TRUE(false);
        return read_literal(p, "false");
    case 'n':
        *ret = GV_NULL;
        return read_literal(p, "null");
    default:
        if (at_char(p, '-') || at_digit(p))
            return read_number(p, ret);
        return bad_char(p, "looking for beginning of value");
    }
}

static bool
read_value(struct reader *p, struct gv *ret)
{
    run_enter(p->r);
    skip_space(p);
    bool ok = read_any(p, ret);
    run_leave(p->r);
    return ok;
}

const char *
json_text_read(struct run *r, struct gv s, struct gv *ret)
{
    struct reader p = {r, s.s, s.n, 0, NULL};
    run_step(r, s.n / 64);
    if (!read_value(&p, ret))
        return p.bad;
    skip_space(&p);
    if (p.i < p.n)
        bad_char(&p, "after top-level value");
    return p.bad;
}

/* --- writing --- */

struct writer {
    struct run *r;
    struct text *out;
    const struct json_style *style;
    size_t depth;
    const char *bad;
};

static void write_value(struct writer *w, struct gv v);

static void
write_text(struct writer *w, const char *s, size_t n)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    text_putc(w->r, w->out, '"');
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = rune_take(s + i, n - i, &c);
        const char *k = c < 0x80 && c ? strchr(from, (int)c) : NULL;
        if (k) {
            text_putc(w->r, w->out, '\\');
            text_putc(w->r, w->out, to[k - from]);
        } else if (c < ' ' || c == 0x2028 || c == 0x2029 || (c == RUNE_BAD && len == 1) ||
                   (w->style->escape && (c == '<' || c == '>' || c == '&')))
            text_printf(w->r, w->out, "\\u%04x", c);
        else
            text_put(w->r, w->out, s + i, len);
        i += len;
    }
    text_putc(w->r, w->out, '"');
}

static void
write_line(struct writer *w)
{
    if (!w->style->indent)
        return;
    text_putc(w->r, w->out, '\n');
    for (size_t i = 0; i < w->depth; i++)
        text_puts(w->r, w->out, w->style->indent);
}

static void
write_bad(struct writer *w, const char *what, const char *thing)
{
    struct text t = {NULL, 0, 0};
    text_printf(w->r, &t, "json: unsupported %s: %s", what, thing);
    w->bad = w->bad ? w->bad : text_str(w->r, &t);
}

static void
write_float(struct writer *w, double f)
{
    struct text t = {NULL, 0, 0};
    double abs = fabs(f);
    bool e = abs != 0 && (abs < 1e-6 || abs >= 1e21);
    if (isnan(f) || isinf(f)) {
        strconv_put(w->r, &t, f, 'g', -1);
        write_bad(w, "value", text_str(w->r, &t));
        return;
    }
    strconv_put(w->r, &t, f, e ? 'e' : 'f', -1);
    if (e && t.n >= 4 && t.s[t.n - 4] == 'e' && t.s[t.n - 3] == '-' && t.s[t.n - 2] == '0') {
        t.s[t.n - 2] = t.s[t.n - 1]; /* e-09 is e-9 */
        t.n--;
    }
    text_put(w->r, w->out, t.s, t.n);
}

static void
write_list(struct writer *w, struct gv v)
{
    text_putc(w->r, w->out, '[');
    w->depth++;
    for (size_t i = 0; i < gv_len(v); i++) {
        if (i)
            text_putc(w->r, w->out, ',');
        write_line(w);
        write_value(w, v.list->v[i]);
    }
    w->depth--;
    if (gv_len(v))
        write_line(w);
    text_putc(w->r, w->out, ']');
}

static void
write_member(struct writer *w, size_t i, struct gv k, struct gv v)
{
    if (i)
        text_putc(w->r, w->out, ',');
    write_line(w);
    if (gv_kind(k) != GV_STRING) {
        const char *s = fmt_words(w->r, k);
        k = GV_TEXT(s, strlen(s));
    }
    write_text(w, k.s, k.n);
    text_puts(w->r, w->out, w->style->indent ? ": " : ":");
    write_value(w, v);
}

static void
write_map(struct writer *w, struct gv v)
{
    if (v.t->key->kind == GV_NIL) {
        write_bad(w, "type", v.t->name);
        return;
    }
    text_putc(w->r, w->out, '{');
    w->depth++;
    for (size_t i = 0; i < gv_len(v); i++)
        write_member(w, i, v.map->v[i].k, v.map->v[i].v);
    w->depth--;
    if (gv_len(v))
        write_line(w);
    text_putc(w->r, w->out, '}');
}

static void
write_struct(struct writer *w, struct gv v)
{
    const char *const *fields = v.t->class->fields;
    if (v.t->class->stringer && !v.t->pointer) { /* an item of a variable is its text */
        struct gv s = v.t->class->methods[0].fn(w->r, &v, 1);
        write_text(w, s.s, s.n);
        return;
    }
    text_putc(w->r, w->out, '{');
    w->depth++;
    for (size_t i = 0; fields[i]; i++)
        write_member(w, i, GV_TEXT(fields[i], strlen(fields[i])), v.obj->f[i]);
    w->depth--;
    write_line(w);
    text_putc(w->r, w->out, '}');
}

static void
write_value(struct writer *w, struct gv v)
{
    run_enter(w->r);
    switch (gv_is_nil(v) ? GV_NIL : gv_kind(v)) {
    case GV_NIL:
        text_puts(w->r, w->out, "null");
        break;
    case GV_BOOL:
        text_puts(w->r, w->out, v.b ? "true" : "false");
        break;
    case GV_INT:
        text_printf(w->r, w->out, "%lld", (long long)v.i);
        break;
    case GV_UINT:
        text_printf(w->r, w->out, "%llu", (unsigned long long)v.u);
        break;
    case GV_FLOAT:
        write_float(w, v.f);
        break;
    case GV_STRING:
        write_text(w, v.s, v.n);
        break;
    case GV_LIST:
        write_list(w, v);
        break;
    case GV_MAP:
        write_map(w, v);
        break;
    case GV_STRUCT:
        write_struct(w, v);
        break;
    default:
        write_bad(w, "type", gv_type_name(v));
    }
    run_leave(w->r);
}

const char *
json_text_write(struct run *r, struct text *out, struct gv v, const struct json_style *style)
{
    struct writer w = {.r = r, .out = out, .style = style};
    write_value(&w, v);
    return w.bad;
}
