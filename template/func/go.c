/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that Go's text/template brings itself: comparison, indices, printing, escapes. The
 * table at the end names them; and, or, call are carried out by exec.c. Arguments come in the types
 * of their row; a function that cannot do its work leaves by run_fail().
 */
#include <string.h>

#include "common/mem.h"
#include "template/fmt.h"
#include "template/funcs.h"
#include "template/rune.h"

/* An interface that holds nothing is no value. */
static struct gv
plain_value(struct gv v)
{
    v.boxed = false;
    return gv_none(v) ? GV_NONE : v;
}

/* --- comparison --- */

enum basic {
    BASIC_NONE,
    BASIC_BOOL,
    BASIC_COMPLEX,
    BASIC_INT,
    BASIC_FLOAT,
    BASIC_STRING,
    BASIC_UINT
};

static enum basic
basic_kind(struct gv v)
{
    switch (gv_kind(v)) {
    case GV_BOOL:
        return BASIC_BOOL;
    case GV_COMPLEX:
        return BASIC_COMPLEX;
    case GV_INT:
        return BASIC_INT;
    case GV_FLOAT:
        return BASIC_FLOAT;
    case GV_STRING:
        return BASIC_STRING;
    case GV_UINT:
        return BASIC_UINT;
    default:
        return BASIC_NONE;
    }
}

/* By %s, which complains of all that is no text. */
static const char *
text_of(struct run *r, struct gv v)
{
    struct text t = {NULL, 0, 0};
    fmt_printf(r, &t, GV_LIT("%s"), &v, 1);
    return text_str(r, &t);
}

static bool
others_equal(struct run *r, struct gv a, struct gv b)
{
    if (a.t && b.t && (gv_kind(a) != gv_kind(b) || a.t->pointer != b.t->pointer))
        run_fail(r, "non-comparable types %s: %s, %s: %s", text_of(r, a), gv_type_name(a),
                 gv_type_name(b), fmt_words(r, b));
    if (gv_is_nil(a) || gv_is_nil(b))
        return gv_is_nil(a) == gv_is_nil(b);
    if (gv_kind(b) == GV_LIST || (gv_kind(b) == GV_MAP && !b.t->pointer))
        run_fail(r, "non-comparable type %s: %s", text_of(r, b), gv_type_name(b));
    return a.t == b.t && a.i == b.i;
}

static bool
go_equal(struct run *r, struct gv a, struct gv b)
{
    enum basic ka = basic_kind(a), kb = basic_kind(b);
    if ((ka == BASIC_INT && kb == BASIC_UINT) || (ka == BASIC_UINT && kb == BASIC_INT))
        return a.i >= 0 && b.i >= 0 && a.u == b.u;
    if (ka != kb) {
        if (a.t && b.t)
            run_fail(r, "incompatible types for comparison: %s and %s", gv_type_name(a),
                     gv_type_name(b));
        return false;
    }
    switch (ka) {
    case BASIC_NONE:
        return others_equal(r, a, b);
    case BASIC_BOOL:
        return a.b == b.b;
    case BASIC_FLOAT:
        return a.f == b.f;
    case BASIC_COMPLEX:
        return a.re == b.re && a.im == b.im;
    case BASIC_STRING:
        return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
    default:
        return a.u == b.u;
    }
}

static struct gv
fn_eq(struct run *r, struct gv *a, size_t n)
{
    bool same = false;
    if (n < 2)
        run_fail(r, "missing argument for comparison");
    for (size_t i = 1; i < n && !same; i++)
        same = go_equal(r, plain_value(a[0]), plain_value(a[i]));
    return GV_TRUE(same);
}

static struct gv
fn_ne(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return GV_TRUE(!go_equal(r, plain_value(a[0]), plain_value(a[1])));
}

static bool
go_less(struct run *r, struct gv a, struct gv b)
{
    enum basic ka = basic_kind(a), kb = basic_kind(b);
    if (ka == BASIC_NONE || kb == BASIC_NONE)
        run_fail(r, "invalid type for comparison");
    if (ka == BASIC_INT && kb == BASIC_UINT)
        return a.i < 0 || a.u < b.u;
    if (ka == BASIC_UINT && kb == BASIC_INT)
        return b.i >= 0 && a.u < b.u;
    if (ka != kb)
        run_fail(r, "incompatible types for comparison: %s and %s", gv_type_name(a),
                 gv_type_name(b));
    switch (ka) {
    case BASIC_INT:
        return a.i < b.i;
    case BASIC_UINT:
        return a.u < b.u;
    case BASIC_FLOAT:
        return a.f < b.f;
    case BASIC_STRING:
        return gv_key_compare(a, b) < 0;
    default:
        run_fail(r, "invalid type for comparison");
    }
}

static struct gv
fn_lt(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return GV_TRUE(go_less(r, plain_value(a[0]), plain_value(a[1])));
}

static struct gv
fn_le(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    struct gv x = plain_value(a[0]), y = plain_value(a[1]);
    return GV_TRUE(go_less(r, x, y) || go_equal(r, x, y));
}

static struct gv
fn_gt(struct run *r, struct gv *a, size_t n)
{
    return GV_TRUE(!fn_le(r, a, n).b);
}

static struct gv
fn_ge(struct run *r, struct gv *a, size_t n)
{
    return GV_TRUE(!fn_lt(r, a, n).b);
}

static struct gv
fn_not(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_TRUE(!gv_truth(a[0]));
}

/* --- indices --- */

static size_t
take_index(struct run *r, struct gv v, size_t cap)
{
    if (v.boxed)
        run_fail(r, "cannot index slice/array with type interface {}");
    if (!v.t)
        run_fail(r, "cannot index slice/array with nil");
    if (gv_kind(v) != GV_INT && gv_kind(v) != GV_UINT)
        run_fail(r, "cannot index slice/array with type %s", gv_type_name(v));
    if (v.i < 0 || v.u > cap)
        run_fail(r, "index out of range: %lld", (long long)v.i);
    return v.u;
}

static struct gv
index_map(struct run *r, struct gv map, struct gv k)
{
    const struct gv_type *type = map.t->key;
    k = plain_value(k);
    if (!k.t && type->kind != GV_NIL)
        run_fail(r, "value is nil; should be of type %s", type->name);
    bool numbers = type->kind == GV_INT && (gv_kind(k) == GV_INT || gv_kind(k) == GV_UINT);
    if (k.t && k.t != type && type->kind != GV_NIL && !numbers)
        run_fail(r, "value has type %s; should be %s", gv_type_name(k), type->name);
    if (numbers)
        k.t = type;
    struct gv *v = gv_map_find(map.map, k);
    return gv_box(v ? *v : gv_zero(map.t->elem), map.t->elem);
}

static struct gv
fn_index(struct run *r, struct gv *a, size_t n)
{
    struct gv v = plain_value(a[0]);
    if (!v.t)
        run_fail(r, "index of untyped nil");
    for (size_t i = 1; i < n; i++) {
        if (gv_kind(v) == GV_NIL || (v.t->pointer && gv_is_nil(v)))
            run_fail(r, "index of nil pointer");
        if (gv_kind(v) == GV_MAP)
            v = index_map(r, v, a[i]);
        else if (gv_kind(v) == GV_LIST || gv_kind(v) == GV_STRING) {
            size_t at = take_index(r, plain_value(a[i]), gv_len(v));
            if (at == gv_len(v))
                run_fail(r, gv_kind(v) == GV_LIST ? "reflect: slice index out of range"
                                                  : "reflect: string index out of range");
            v = gv_box(gv_at(v, at), v.t->elem);
        } else
            run_fail(r, "can't index item of type %s", gv_type_name(v));
    }
    return v;
}

static struct gv
fn_slice(struct run *r, struct gv *a, size_t n)
{
    struct gv v = plain_value(a[0]);
    if (!v.t)
        run_fail(r, "slice of untyped nil");
    if (v.t->pointer && gv_is_nil(v))
        run_fail(r, "slice of nil pointer");
    if (n > 4)
        run_fail(r, "too many slice indexes: %zu", n - 1);
    if (gv_kind(v) == GV_STRING && n == 4)
        run_fail(r, "cannot 3-index slice a string");
    if (gv_kind(v) != GV_STRING && gv_kind(v) != GV_LIST)
        run_fail(r, "can't slice item of type %s", gv_type_name(v));
    size_t at[3] = {0, gv_len(v), gv_len(v)};
    for (size_t i = 1; i < n; i++)
        at[i - 1] = take_index(r, a[i], gv_len(v));
    if (at[0] > at[1])
        run_fail(r, "invalid slice index: %zu > %zu", at[0], at[1]);
    if (n == 4 && at[1] > at[2])
        run_fail(r, "invalid slice index: %zu > %zu", at[1], at[2]);
    if (gv_kind(v) == GV_STRING)
        return GV_TEXT(v.s + at[0], at[1] - at[0]);
    struct gv ret = gv_list_new(r, v.t, at[1] - at[0]);
    for (size_t i = at[0]; i < at[1]; i++)
        gv_list_add(r, ret.list, v.list->v[i]);
    return ret;
}

static struct gv
fn_len(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    struct gv v = a[0];
    if (gv_kind(v) == GV_NIL || (v.t && v.t->pointer && gv_is_nil(v)))
        run_fail(r, "len of nil pointer");
    if (!v.t)
        run_fail(r, "reflect: call of reflect.Value.Type on zero Value");
    if (gv_kind(v) == GV_CHAN)
        return GV_INTEGER(0);
    if (gv_kind(v) != GV_STRING && gv_kind(v) != GV_LIST && gv_kind(v) != GV_MAP)
        run_fail(r, "len of type %s", gv_type_name(v));
    return GV_INTEGER(gv_len(v));
}

/* --- printing --- */

static struct gv
fn_print(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    fmt_print(r, &t, a, n);
    return text_gv(&t);
}

static struct gv
fn_println(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    fmt_println(r, &t, a, n);
    return text_gv(&t);
}

static struct gv
fn_printf(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    fmt_printf(r, &t, a[0], a + 1, n - 1);
    return text_gv(&t);
}

/* Arguments as one text, with the words for no value that actions have. */
static struct gv
join_args(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    if (n == 1 && gv_kind(a[0]) == GV_STRING)
        return a[0];
    for (size_t i = 0; i < n; i++)
        if (gv_none(a[i]))
            a[i] = GV_LIT("<no value>");
    fmt_print(r, &t, a, n);
    return text_gv(&t);
}

static struct gv
fn_html(struct run *r, struct gv *a, size_t n)
{
    static const char from[] = "\"'&<>";
    static const char *const to[] = {"&#34;", "&#39;", "&amp;", "&lt;", "&gt;"};
    struct gv s = join_args(r, a, n);
    struct text t = {NULL, 0, 0};
    for (size_t i = 0; i < s.n; i++) {
        const char *k = s.s[i] ? strchr(from, s.s[i]) : NULL;
        if (k)
            text_puts(r, &t, to[k - from]);
        else if (s.s[i] == 0)
            text_rune(r, &t, RUNE_BAD);
        else
            text_putc(r, &t, s.s[i]);
    }
    return text_gv(&t);
}

static struct gv
fn_js(struct run *r, struct gv *a, size_t n)
{
    static const char from[] = "\\'\"<>&=";
    static const char *const to[] = {"\\\\",    "\\'",     "\\\"",   "\\u003C",
                                     "\\u003E", "\\u0026", "\\u003D"};
    struct gv s = join_args(r, a, n);
    struct text t = {NULL, 0, 0};
    for (size_t i = 0; i < s.n;) {
        uint32_t c;
        const char *k = s.s[i] ? strchr(from, s.s[i]) : NULL;
        size_t len = rune_take(s.s + i, s.n - i, &c);
        if (k)
            text_puts(r, &t, to[k - from]);
        else if ((uint8_t)s.s[i] < ' ')
            text_printf(r, &t, "\\u00%02X", (uint8_t)s.s[i]);
        else if (c < 0x80 || rune_print(c))
            text_put(r, &t, s.s + i, len);
        else
            text_printf(r, &t, "\\u%04X", c);
        i += len;
    }
    return text_gv(&t);
}

static struct gv
fn_urlquery(struct run *r, struct gv *a, size_t n)
{
    struct gv s = join_args(r, a, n);
    struct text t = {NULL, 0, 0};
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = (uint8_t)s.s[i];
        if (rune_letter(c < 0x80 ? c : 0) || rune_digit(c < 0x80 ? c : 0) ||
            (c && strchr("-_.~", c)))
            text_putc(r, &t, (char)c);
        else if (c == ' ')
            text_putc(r, &t, '+');
        else
            text_printf(r, &t, "%%%02X", c);
    }
    return text_gv(&t);
}

const struct function functions_go[] = {
    {"and", NULL, "vv.", FUNCTION_AND},
    {"or", NULL, "vv.", FUNCTION_OR},
    {"call", NULL, "vv.", FUNCTION_CALL},
    {"eq", fn_eq, "vv.", FUNCTION_PLAIN},
    {"ne", fn_ne, "vv", FUNCTION_PLAIN},
    {"lt", fn_lt, "vv", FUNCTION_PLAIN},
    {"le", fn_le, "vv", FUNCTION_PLAIN},
    {"gt", fn_gt, "vv", FUNCTION_PLAIN},
    {"ge", fn_ge, "vv", FUNCTION_PLAIN},
    {"not", fn_not, "v", FUNCTION_PLAIN},
    {"index", fn_index, "vv.", FUNCTION_PLAIN},
    {"slice", fn_slice, "vv.", FUNCTION_PLAIN},
    {"len", fn_len, "v", FUNCTION_PLAIN},
    {"print", fn_print, "a.", FUNCTION_PLAIN},
    {"println", fn_println, "a.", FUNCTION_PLAIN},
    {"printf", fn_printf, "sa.", FUNCTION_PLAIN},
    {"html", fn_html, "a.", FUNCTION_PLAIN},
    {"js", fn_js, "a.", FUNCTION_PLAIN},
    {"urlquery", fn_urlquery, "a.", FUNCTION_PLAIN},
    {NULL, NULL, NULL, FUNCTION_PLAIN},
};
