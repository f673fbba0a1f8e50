/* SPDX-License-Identifier: Apache-2.0 */
#include "template/func/toml.h"

#include <math.h>
#include <string.h>

#include "template/rune.h"
#include "template/strconv.h"

struct toml {
    struct run *r;
    struct text *out;
    const char *bad;
};

struct toml_key {
    const struct toml_key *up;
    struct gv name;
    size_t depth; /* 1 for the first */
};

static void toml_encode(struct toml *t, const struct toml_key *key, struct gv v);
static void toml_element(struct toml *t, struct gv v);

enum toml_kind { TOML_NONE, TOML_VALUE, TOML_TABLE, TOML_TABLES };

static enum toml_kind
toml_kind(struct toml *t, struct gv v)
{
    if (gv_is_nil(v))
        return TOML_NONE;
    if (gv_kind(v) == GV_MAP || gv_kind(v) == GV_STRUCT)
        return TOML_TABLE;
    bool tables = gv_kind(v) == GV_LIST && gv_len(v) > 0;
    for (size_t i = 0; gv_kind(v) == GV_LIST && i < gv_len(v); i++) {
        if (gv_is_nil(v.list->v[i]))
            t->bad = "toml: cannot encode array with nil element";
        tables = tables && (gv_kind(v.list->v[i]) == GV_MAP || gv_kind(v.list->v[i]) == GV_STRUCT);
    }
    return tables ? TOML_TABLES : TOML_VALUE;
}

/* --- values --- */

static void
toml_quoted(struct toml *t, struct gv s)
{
    static const char from[] = "\"\\\b\t\n\f\r", to[] = "\"\\btnfr";
    text_putc(t->r, t->out, '"');
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = (uint8_t)s.s[i];
        const char *k = c ? strchr(from, c) : NULL;
        if (k) {
            text_putc(t->r, t->out, '\\');
            text_putc(t->r, t->out, to[k - from]);
        } else if (c < ' ' || c == 0x7f)
            text_printf(t->r, t->out, "\\u%04x", c);
        else
            text_putc(t->r, t->out, (char)c);
    }
    text_putc(t->r, t->out, '"');
}

static void
toml_name(struct toml *t, struct gv s)
{
    bool bare = s.n > 0;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = (uint8_t)s.s[i];
        bare = bare && c < 0x80 && (rune_letter(c) || rune_digit(c) || c == '_' || c == '-');
    }
    bare ? text_put(t->r, t->out, s.s, s.n) : toml_quoted(t, s);
}

static void
toml_path(struct toml *t, const struct toml_key *key)
{
    if (key->up) {
        toml_path(t, key->up);
        text_putc(t->r, t->out, '.');
    }
    toml_name(t, key->name);
}

static void
toml_float(struct toml *t, double f)
{
    struct text s = {NULL, 0, 0};
    if (isnan(f) || isinf(f)) {
        text_puts(t->r, t->out, signbit(f) ? "-" : "");
        text_puts(t->r, t->out, isnan(f) ? "nan" : "inf");
        return;
    }
    strconv_put(t->r, &s, f, 'f', -1);
    text_put(t->r, t->out, s.s, s.n);
    if (!memchr(s.s, '.', s.n))
        text_puts(t->r, t->out, ".0");
}

static void
toml_indent(struct toml *t, const struct toml_key *key)
{
    text_fill(t->r, t->out, ' ', key && key->depth > 1 ? 2 * (key->depth - 1) : 0);
}

/* Members that are no tables first, then tables; nil is left out. `key` is NULL inside of braces.
 */
static void
toml_members(struct toml *t, const struct toml_key *key, struct gv v, bool inside)
{
    size_t direct = 0, tables = 0, i = 0;
    for (size_t k = 0; k < gv_len(v); k++) {
        enum toml_kind kind = toml_kind(t, v.map->v[k].v);
        tables += kind == TOML_TABLE || kind == TOML_TABLES;
    }
    direct = gv_len(v) - tables;
    for (int pass = 0; pass < 2; pass++)
        for (size_t k = 0, nth = 0; k < gv_len(v); k++) {
            struct gv m = v.map->v[k].v;
            enum toml_kind kind = toml_kind(t, m);
            if ((kind == TOML_TABLE || kind == TOML_TABLES) != (pass == 1))
                continue;
            nth++;
            if (kind == TOML_NONE)
                continue;
            struct toml_key sub = {key, v.map->v[k].k, key ? key->depth + 1 : 1};
            if (inside) {
                toml_name(t, sub.name);
                text_puts(t->r, t->out, " = ");
                toml_element(t, m);
                if (pass == 0 ? tables > 0 || nth < direct : nth < tables)
                    text_puts(t->r, t->out, ", ");
            } else
                toml_encode(t, &sub, m);
            i++;
        }
}

static bool
is_keyed(struct toml *t, struct gv v)
{
    if (gv_kind(v) == GV_MAP && v.t->key != &gv_string)
        t->bad = "toml: cannot encode a map with non-string key type";
    return gv_kind(v) == GV_MAP && v.t->key == &gv_string;
}

static void
toml_element(struct toml *t, struct gv v)
{
    run_enter(t->r);
    switch (gv_kind(v)) {
    case GV_STRING:
        toml_quoted(t, v);
        break;
    case GV_BOOL:
        text_puts(t->r, t->out, v.b ? "true" : "false");
        break;
    case GV_INT:
        text_printf(t->r, t->out, "%lld", (long long)v.i);
        break;
    case GV_UINT:
        text_printf(t->r, t->out, "%llu", (unsigned long long)v.u);
        break;
    case GV_FLOAT:
        toml_float(t, v.f);
        break;
    case GV_LIST:
        text_putc(t->r, t->out, '[');
        for (size_t i = 0; i < gv_len(v); i++) {
            text_puts(t->r, t->out, i ? ", " : "");
            toml_element(t, v.list->v[i]);
        }
        text_putc(t->r, t->out, ']');
        break;
    case GV_MAP:
        text_putc(t->r, t->out, '{');
        if (is_keyed(t, v))
            toml_members(t, NULL, v, true);
        text_putc(t->r, t->out, '}');
        break;
    default:
        t->bad = "toml: cannot encode array with nil element";
    }
    run_leave(t->r);
}

/* --- tables --- */

static void
toml_newline(struct toml *t)
{
    if (t->out->n > 0)
        text_putc(t->r, t->out, '\n');
}

static void
toml_header(struct toml *t, const struct toml_key *key, const char *open, const char *close)
{
    toml_indent(t, key);
    text_puts(t->r, t->out, open);
    toml_path(t, key);
    text_puts(t->r, t->out, close);
    text_putc(t->r, t->out, '\n');
}

static void
toml_encode(struct toml *t, const struct toml_key *key, struct gv v)
{
    enum toml_kind kind = toml_kind(t, v);
    run_enter(t->r);
    if (kind == TOML_TABLES && !key)
        t->bad = "toml: top-level values must be Go maps or structs";
    else if (kind == TOML_TABLES)
        for (size_t i = 0; i < gv_len(v); i++) {
            toml_newline(t);
            toml_header(t, key, "[[", "]]");
            if (is_keyed(t, v.list->v[i]))
                toml_members(t, key, v.list->v[i], false);
        }
    else if (kind == TOML_TABLE) {
        if (key && key->depth == 1)
            toml_newline(t);
        if (key)
            toml_header(t, key, "[", "]");
        if (is_keyed(t, v))
            toml_members(t, key, v, false);
    } else if (kind == TOML_VALUE) {
        if (key) {
            toml_indent(t, key);
            toml_name(t, key->name);
            text_puts(t->r, t->out, " = ");
        }
        toml_element(t, v);
        if (key)
            text_putc(t->r, t->out, '\n');
    }
    run_leave(t->r);
}

const char *
toml_text_write(struct run *r, struct text *out, struct gv v)
{
    struct toml t = {r, out, NULL};
    toml_encode(&t, NULL, v);
    return t.bad;
}
