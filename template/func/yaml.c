/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes YAML in block style: a list in a map is not indented; a text is plain where it can be,
 * literal where it has lines, and folds at 80 columns. Keys are in natural order ("a2" before
 * "a10").
 */
#include "template/func/yaml.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "template/func/strs.h"
#include "template/rune.h"
#include "template/strconv.h"

enum { WIDTH = 80, STEP = 2 };

struct emitter {
    struct run *r;
    struct text *out;
};

/* --- plain scalars --- */

static bool
is_word(struct gv s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(words[i]) == s.n && (s.n == 0 || memcmp(words[i], s.s, s.n) == 0))
            return true;
    return false;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool
is_float(struct gv s)
{
    size_t i = s.n > 0 && (s.s[0] == '-' || s.s[0] == '+'), whole = 0, part = 0;
    for (; i < s.n && rune_digit((uint8_t)s.s[i]); i++)
        whole++;
    bool dot = i < s.n && s.s[i] == '.';
    for (i += dot; i < s.n && rune_digit((uint8_t)s.s[i]); i++)
        part++;
    if (whole == 0 && part == 0)
        return false;
    if (i < s.n && (s.s[i] | 0x20) == 'e') {
        i++;
        i += i < s.n && (s.s[i] == '-' || s.s[i] == '+');
        size_t from = i;
        while (i < s.n && rune_digit((uint8_t)s.s[i]))
            i++;
        return i > from && i == s.n;
    }
    return i == s.n;
}

static bool
resolve_number(struct run *r, struct gv s, struct gv *ret)
{
    struct gv plain = strs_replace(r, s, GV_LIT("_"), GV_LIT(""), -1);
    uint64_t u;
    *ret = GV_INTEGER(0);
    if (strconv_int(plain.s, plain.n, 0, &ret->i) == STRCONV_OK)
        return true;
    if (strconv_uint(plain.s, plain.n, 0, &u) == STRCONV_OK) {
        *ret = (struct gv){.t = &gv_uint64, .u = u};
        return true;
    }
    *ret = GV_REAL(0);
    return is_float(plain) && strconv_float(plain.s, plain.n, &ret->f) == STRCONV_OK;
}

struct gv
yaml_resolve(struct run *r, struct gv s)
{
    static const char *const yes[] = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                      "True", "TRUE", "on",  "On",  "ON"};
    static const char *const no[] = {"n",     "N",     "no",  "No",  "NO", "false",
                                     "False", "FALSE", "off", "Off", "OFF"};
    static const char *const null[] = {"", "~", "null", "Null", "NULL"};
    static const char *const nan[] = {".nan", ".NaN", ".NAN"};
    static const char *const inf[] = {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"};
    static const char *const minus[] = {"-.inf", "-.Inf", "-.INF"};
    struct gv v;
    char c = s.n ? s.s[0] : 0;
    if (is_word(s, null, ARRAY_LEN(null)))
        return GV_NULL;
    if (is_word(s, yes, ARRAY_LEN(yes)))
        return GV_TRUE(true);
    if (is_word(s, no, ARRAY_LEN(no)))
        return GV_TRUE(false);
    if (is_word(s, nan, ARRAY_LEN(nan)))
        return GV_REAL(NAN);
    if (is_word(s, inf, ARRAY_LEN(inf)))
        return GV_REAL(INFINITY);
    if (is_word(s, minus, ARRAY_LEN(minus)))
        return GV_REAL(-INFINITY);
    if (c == '.' && strconv_float(s.s, s.n, &v.f) == STRCONV_OK)
        return GV_REAL(v.f);
    if ((c == '+' || c == '-' || rune_digit((uint8_t)c)) && resolve_number(r, s, &v))
        return v;
    return s;
}

/* "2001-01-01": a time, which is read as text and must be written in quotes. */
static bool
looks_like_time(struct gv s)
{
    size_t i = 0;
    while (i < s.n && rune_digit((uint8_t)s.s[i]))
        i++;
    if (i != 4 || s.n < 8 || s.s[4] != '-')
        return false;
    size_t parts = 0;
    for (; parts < 2 && i < s.n && s.s[i] == '-'; parts++) {
        size_t from = ++i;
        while (i < s.n && i < from + 2 && rune_digit((uint8_t)s.s[i]))
            i++;
        if (i == from)
            return false;
    }
    return parts == 2 && (i == s.n || (s.s[i] | 0x20) == 't' || s.s[i] == ' ');
}

/* Numbers with colons, as 1:30, were of base 60 once. */
static bool
is_base60(struct gv s)
{
    size_t i = s.n > 0 && (s.s[0] == '-' || s.s[0] == '+'), from = i, colons = 0;
    while (i < s.n && (rune_digit((uint8_t)s.s[i]) || (i > from && s.s[i] == '_')))
        i++;
    for (; i > from && i < s.n && s.s[i] == ':'; colons++) {
        size_t at = ++i;
        while (i < s.n && i < at + 2 && rune_digit((uint8_t)s.s[i]))
            i++;
        if (i == at || (i == at + 2 && s.s[at] > '5'))
            return false;
    }
    if (i < s.n && s.s[i] == '.')
        for (i++; i < s.n && (rune_digit((uint8_t)s.s[i]) || s.s[i] == '_');)
            i++;
    return colons > 0 && i == s.n;
}

/* --- what a text allows --- */

enum { PLAIN = 1, SINGLE = 2, BLOCK = 4 };

static bool
is_break(uint32_t c)
{
    return c == '\r' || c == '\n' || c == 0x85 || c == 0x2028 || c == 0x2029;
}

static bool
is_printable(uint32_t c)
{
    return c == '\n' || (c >= ' ' && c < 0x7f) ||
           (c >= 0xa0 && c != 0xfeff && c != 0xfffe && c != 0xffff);
}

static bool
is_blank_at(struct gv s, size_t i)
{
    uint32_t c;
    if (i >= s.n)
        return true;
    rune_take(s.s + i, s.n - i, &c);
    return c == ' ' || c == '\t' || is_break(c);
}

static bool
has_indicator(struct gv s, size_t i, bool before_blank, size_t len)
{
    char c = s.s[i];
    bool after_blank = is_blank_at(s, i + len);
    if (i == 0 && c && strchr("#,[]{}&*!|>'\"%@`", c))
        return true;
    if (i == 0 && (c == '?' || c == ':' || c == '-') && after_blank)
        return true;
    return i > 0 && ((c == ':' && after_blank) || (c == '#' && before_blank));
}

/* Walks over a text, and says which styles are left for it. */
static int
allowed_styles(struct gv s)
{
    int styles = PLAIN | SINGLE | BLOCK;
    bool before_blank = true, after_space = false, after_break = false;
    uint32_t c, last = 0;
    if (s.n == 0)
        return PLAIN | SINGLE;
    if (s.n >= 3 && (memcmp(s.s, "---", 3) == 0 || memcmp(s.s, "...", 3) == 0))
        styles &= ~PLAIN;
    for (size_t i = 0; i < s.n;) {
        size_t len = rune_take(s.s + i, s.n - i, &c);
        if (has_indicator(s, i, before_blank, len) || is_break(c))
            styles &= ~PLAIN;
        if (!is_printable(c) || (is_break(c) && after_space))
            styles = 0;
        if (c == ' ' && after_break)
            styles &= ~(PLAIN | SINGLE);
        if ((i == 0 || i + len == s.n) && (c == ' ' || is_break(c)))
            styles &= ~PLAIN;
        after_space = c == ' ';
        after_break = is_break(c);
        before_blank = c == ' ' || c == '\t' || is_break(c);
        last = c;
        i += len;
    }
    return last == ' ' ? styles & ~BLOCK : styles;
}

/* --- scalars --- */

static size_t
current_column(const struct emitter *e)
{
    size_t i = e->out->n;
    while (i > 0 && e->out->s[i - 1] != '\n')
        i--;
    return rune_count(e->out->s ? e->out->s + i : "", e->out->n - i);
}

static void
write_indent(struct emitter *e, size_t indent)
{
    text_putc(e->r, e->out, '\n');
    text_fill(e->r, e->out, ' ', indent);
}

/* A plain text, or one in single quotes; folds where a single blank is behind column 80. */
static void
write_flat(struct emitter *e, struct gv s, size_t indent, bool quoted, bool fold)
{
    bool spaces = false, breaks = false;
    size_t column = current_column(e);
    text_puts(e->r, e->out, quoted ? "'" : "");
    for (size_t i = 0; i < s.n; i++) {
        char c = s.s[i];
        bool next_space = i + 1 < s.n && s.s[i + 1] == ' ', edge = i == 0 || i + 1 >= s.n;
        if (c == ' ' && fold && !spaces && !next_space && !(quoted && edge) && column > WIDTH) {
            write_indent(e, indent);
            column = indent;
            spaces = true;
            continue;
        }
        if (c == '\n') {
            text_puts(e->r, e->out, breaks ? "\n" : "\n\n");
            breaks = true;
            continue;
        }
        if (breaks) {
            text_fill(e->r, e->out, ' ', indent);
            column = indent;
        }
        text_puts(e->r, e->out, quoted && c == '\'' ? "'" : "");
        text_putc(e->r, e->out, c);
        column += ((uint8_t)c & 0xc0) != 0x80;
        spaces = c == ' ';
        breaks = false;
    }
    text_puts(e->r, e->out, quoted ? "'" : "");
}

static void
write_escape(struct emitter *e, uint32_t c)
{
    static const char from[] = "\a\b\t\n\v\f\r\x1b\"\\", to[] = "abtnvfre\"\\";
    const char *k = c && c < 0x80 ? strchr(from, (int)c) : NULL;
    text_putc(e->r, e->out, '\\');
    if (k || c == 0)
        text_putc(e->r, e->out, k ? to[k - from] : '0');
    else if (c == 0x85 || c == 0xa0 || c == 0x2028 || c == 0x2029)
        text_putc(e->r, e->out, c == 0x85 ? 'N' : c == 0xa0 ? '_' : c == 0x2028 ? 'L' : 'P');
    else if (c < 0x100)
        text_printf(e->r, e->out, "x%02X", c);
    else
        text_printf(e->r, e->out, c < 0x10000 ? "u%04X" : "U%08X", c);
}

static void
write_double(struct emitter *e, struct gv s, size_t indent, bool fold)
{
    bool spaces = false;
    uint32_t c;
    text_putc(e->r, e->out, '"');
    for (size_t i = 0; i < s.n;) {
        size_t len = rune_take(s.s + i, s.n - i, &c);
        if (!is_printable(c) || is_break(c) || c == '"' || c == '\\') {
            write_escape(e, c);
            spaces = false;
        } else if (c == ' ' && fold && !spaces && i > 0 && i + 1 < s.n &&
                   current_column(e) > WIDTH) {
            write_indent(e, indent);
            if (s.s[i + 1] == ' ')
                text_putc(e->r, e->out, '\\');
            spaces = true;
        } else {
            text_put(e->r, e->out, s.s + i, len);
            spaces = c == ' ';
        }
        i += len;
    }
    text_putc(e->r, e->out, '"');
}

static void
write_literal(struct emitter *e, struct gv s, size_t indent)
{
    bool fresh = true;
    text_putc(e->r, e->out, '|');
    if (s.s[0] == ' ' || s.s[0] == '\n')
        text_putc(e->r, e->out, '2');
    if (s.s[s.n - 1] != '\n')
        text_putc(e->r, e->out, '-');
    else if (s.n == 1 || s.s[s.n - 2] == '\n')
        text_putc(e->r, e->out, '+');
    text_putc(e->r, e->out, '\n');
    for (size_t i = 0; i < s.n; i++) {
        if (s.s[i] != '\n' && fresh)
            text_fill(e->r, e->out, ' ', indent);
        text_putc(e->r, e->out, s.s[i]);
        fresh = s.s[i] == '\n';
    }
    if (e->out->s[e->out->n - 1] == '\n') /* the line goes on where the next thing begins one */
        e->out->n--;
}

static void
write_text(struct emitter *e, struct gv s, size_t indent, bool key)
{
    int styles = allowed_styles(s);
    struct gv v = yaml_resolve(e->r, s);
    bool plain = gv_kind(v) == GV_STRING && !is_base60(s) && !looks_like_time(s) &&
                 !(s.n == 2 && memcmp(s.s, "<<", 2) == 0);
    bool lines = memchr(s.s, '\n', s.n) != NULL;
    if (lines && (styles & BLOCK) && !key)
        write_literal(e, s, indent);
    else if (lines || !plain)
        write_double(e, s, indent, !key);
    else if (styles & PLAIN)
        write_flat(e, s, indent, false, !key);
    else if (styles & SINGLE)
        write_flat(e, s, indent, true, !key);
    else
        write_double(e, s, indent, !key);
}

/* False: it is a list or map with something in it. */
static bool
write_scalar(struct emitter *e, struct gv v, size_t indent, bool key)
{
    struct text t = {NULL, 0, 0};
    switch (gv_is_nil(v) && gv_kind(v) != GV_LIST && gv_kind(v) != GV_MAP ? GV_NIL : gv_kind(v)) {
    case GV_NIL:
        text_puts(e->r, e->out, "null");
        return true;
    case GV_BOOL:
        text_puts(e->r, e->out, v.b ? "true" : "false");
        return true;
    case GV_INT:
        text_printf(e->r, e->out, "%lld", (long long)v.i);
        return true;
    case GV_UINT:
        text_printf(e->r, e->out, "%llu", (unsigned long long)v.u);
        return true;
    case GV_FLOAT:
        strconv_put(e->r, &t, v.f, 'g', -1);
        if (isinf(v.f) || isnan(v.f))
            text_puts(e->r, e->out, isnan(v.f) ? ".nan" : v.f > 0 ? ".inf" : "-.inf");
        else
            text_put(e->r, e->out, t.s, t.n);
        return true;
    case GV_STRING:
        write_text(e, v, indent, key);
        return true;
    case GV_LIST:
        text_puts(e->r, e->out, gv_len(v) ? "" : "[]");
        return gv_len(v) == 0;
    case GV_MAP:
        text_puts(e->r, e->out, gv_len(v) ? "" : "{}");
        return gv_len(v) == 0;
    case GV_STRUCT:
        return false;
    default:
        run_fail(e->r, "cannot marshal type: %s", gv_type_name(v));
    }
}

/* --- keys in natural order --- */

static int64_t
take_digits(struct gv s, size_t *i, int64_t v)
{
    uint32_t c;
    for (; *i < s.n; (*i)++) {
        rune_take(s.s + *i, s.n - *i, &c);
        if (c < '0' || c > '9')
            break;
        v = (int64_t)((uint64_t)v * 10 + (c - '0'));
    }
    return v;
}

static int
differ_at(struct gv a, struct gv b, size_t i)
{
    uint32_t x, y;
    rune_take(a.s + i, a.n - i, &x);
    rune_take(b.s + i, b.n - i, &y);
    bool lx = rune_letter(x), ly = rune_letter(y);
    if (lx && ly)
        return x < y ? -1 : 1;
    if (lx || ly)
        return ly ? -1 : 1;
    size_t ai = i, bi = i;
    int64_t lead = 0;
    for (size_t j = i; (x == '0' || y == '0') && j > 0 && rune_digit((uint8_t)a.s[j - 1]); j--)
        lead |= a.s[j - 1] != '0';
    int64_t an = take_digits(a, &ai, lead), bn = take_digits(b, &bi, lead);
    if (an != bn)
        return an < bn ? -1 : 1;
    return ai != bi ? (ai < bi ? -1 : 1) : x < y ? -1 : 1;
}

static int
natural_order(const void *va, const void *vb)
{
    struct gv a = ((const struct gv_pair *)va)->k, b = ((const struct gv_pair *)vb)->k;
    size_t i = 0;
    if (gv_kind(a) != GV_STRING || gv_kind(b) != GV_STRING)
        return gv_key_compare(a, b);
    while (i < a.n && i < b.n && a.s[i] == b.s[i])
        i++;
    while (i > 0 && i < a.n && ((uint8_t)a.s[i] & 0xc0) == 0x80)
        i--;
    if (i >= a.n || i >= b.n)
        return (a.n > b.n) - (a.n < b.n);
    return differ_at(a, b, i);
}

/* --- lists and maps --- */

enum place { AT_ROOT, IN_LIST, IN_MAP };

static void write_node(struct emitter *e, struct gv v, long indent, enum place where);

/* Begins a line of a list or map: the first one may go on the line that is open. */
static void
begin_line(struct emitter *e, size_t i, size_t indent, enum place where)
{
    if (i > 0 || where == IN_MAP)
        write_indent(e, indent);
}

static void
write_list(struct emitter *e, struct gv v, size_t indent, enum place where)
{
    for (size_t i = 0; i < gv_len(v); i++) {
        begin_line(e, i, indent, where);
        text_putc(e->r, e->out, '-');
        write_node(e, v.list->v[i], (long)indent, IN_LIST);
    }
}

static void
write_map(struct emitter *e, struct gv v, size_t indent, enum place where)
{
    size_t n = gv_len(v);
    struct gv_pair *p = run_bytes(e->r, n * sizeof(*p));
    if (n) {
        memcpy(p, v.map->v, n * sizeof(*p));
        qsort(p, n, sizeof(*p), natural_order);
    }
    for (size_t i = 0; i < n; i++) {
        begin_line(e, i, indent, where);
        write_scalar(e, p[i].k, indent, true);
        text_putc(e->r, e->out, ':');
        write_node(e, p[i].v, (long)indent, IN_MAP);
    }
}

static struct gv
struct_map(struct run *r, struct gv v)
{
    struct gv map = gv_map_new(r, &gv_map_any);
    for (size_t i = 0; v.t->class->fields[i]; i++) {
        const char *name = v.t->class->fields[i];
        gv_map_put(r, map.map, strs_case(r, GV_TEXT(name, strlen(name)), RUNE_LOWER), v.obj->f[i]);
    }
    return map;
}

/* `indent` is of the parent, -1 at the root. */
static void
write_node(struct emitter *e, struct gv v, long indent, enum place where)
{
    run_enter(e->r);
    size_t at = e->out->n;
    if (where != AT_ROOT)
        text_putc(e->r, e->out, ' ');
    if (gv_kind(v) == GV_STRUCT && !gv_is_nil(v))
        v = struct_map(e->r, v);
    if (!write_scalar(e, v, indent < 0 ? STEP : (size_t)indent + STEP, false)) {
        size_t own = indent < 0 ? 0 : (size_t)indent + STEP;
        if (where == IN_MAP)
            e->out->n = at;
        if (gv_kind(v) == GV_LIST)
            write_list(e, v, where == IN_MAP ? (size_t)indent : own, where);
        else
            write_map(e, v, own, where);
    }
    run_leave(e->r);
}

void
yaml_text_write(struct run *r, struct text *out, struct gv v)
{
    struct emitter e = {r, out};
    write_node(&e, v, -1, AT_ROOT);
}
