/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of templates: those of Go's text/template that take JSON. What Go would print as
 * "%!d(string=x)" is an error here, since nobody wants that in a script.
 */
#include "template/template_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

enum { TEXT_MAX = 16 << 20, WIDTH_MAX = 1000 };

static int
template_fn_bad(struct err *e, const char *fn, const char *what)
{
    return err_set(e, -ERR_INVALID, "%s: %s", fn, what);
}

/* --- values --- */

bool
template_truth(const struct value *v)
{
    switch (v ? v->kind : VALUE_NULL) {
    case VALUE_BOOL:
        return v->b;
    case VALUE_INT:
        return v->i != 0;
    case VALUE_FLOAT:
        return v->f != 0;
    case VALUE_STRING:
        return v->str.n > 0;
    case VALUE_LIST:
        return v->list.n > 0;
    case VALUE_MAP:
        return v->map.n > 0;
    default:
        return false;
    }
}

static int
pair_cmp(const void *a, const void *b)
{
    const struct value_pair *x = a, *y = b;
    return strcmp(x->k, y->k);
}

struct value_pair *
template_pairs(void *ctx, const struct value *map)
{
    struct value_pair *p = mem_array(ctx, struct value_pair, map->map.n + 1);
    if (map->map.n) {
        memcpy(p, map->map.v, map->map.n * sizeof(*p));
        qsort(p, map->map.n, sizeof(*p), pair_cmp);
    }
    return p;
}

static void
put_map(struct buf *out, const struct value *v)
{
    auto_mem void *ctx = mem_ctx("map");
    const struct value_pair *p = template_pairs(ctx, v);
    buf_puts(out, "map[");
    for (size_t i = 0; i < v->map.n; i++) {
        if (i)
            buf_putc(out, ' ');
        buf_puts(out, p[i].k);
        buf_putc(out, ':');
        template_put(out, p[i].v);
    }
    buf_putc(out, ']');
}

void
template_put(struct buf *out, const struct value *v)
{
    switch (v ? v->kind : VALUE_NULL) {
    case VALUE_NULL:
        buf_puts(out, "<no value>");
        break;
    case VALUE_STRING:
        buf_put(out, v->str.s, v->str.n);
        break;
    case VALUE_LIST:
        buf_putc(out, '[');
        for (size_t i = 0; i < v->list.n; i++) {
            if (i)
                buf_putc(out, ' ');
            template_put(out, v->list.v[i]);
        }
        buf_putc(out, ']');
        break;
    case VALUE_MAP:
        put_map(out, v);
        break;
    default:
        json_encode_value(out, v, 0);
    }
}

static bool
template_fn_is(const struct value *v, enum value_kind k)
{
    return v && v->kind == k;
}

/* --- lists and maps --- */

static int
fn_len(void *ctx, const struct value **a, size_t n, const struct value **ret, struct err *e)
{
    if (n != 1)
        return template_fn_bad(e, "len", "wants one argument");
    size_t len = 0;
    if (template_fn_is(a[0], VALUE_LIST))
        len = a[0]->list.n;
    else if (template_fn_is(a[0], VALUE_MAP))
        len = a[0]->map.n;
    else if (template_fn_is(a[0], VALUE_STRING))
        len = a[0]->str.n;
    else if (a[0] && a[0]->kind != VALUE_NULL)
        return template_fn_bad(e, "len", "the argument is no list, map or string");
    *ret = value_int(ctx, (int64_t)len);
    return 0;
}

static int
fn_index(void *ctx, const struct value **a, size_t n, const struct value **ret, struct err *e)
{
    (void)ctx;
    if (n == 0)
        return template_fn_bad(e, "index", "wants a list or map");
    const struct value *v = a[0];
    for (size_t i = 1; i < n; i++) {
        const struct value *k = a[i];
        if (template_fn_is(k, VALUE_STRING) &&
            (!v || v->kind == VALUE_NULL || v->kind == VALUE_MAP))
            v = value_get(v, k->str.s);
        else if (!template_fn_is(k, VALUE_INT) || !template_fn_is(v, VALUE_LIST))
            return template_fn_bad(e, "index", "wants a map and a key, or a list and a number");
        else if (k->i < 0 || (size_t)k->i >= v->list.n)
            return template_fn_bad(e, "index", "out of range");
        else
            v = v->list.v[k->i];
    }
    *ret = v;
    return 0;
}

/* --- comparing --- */

static bool
number_of(const struct value *v, double *ret)
{
    if (template_fn_is(v, VALUE_INT))
        *ret = (double)v->i;
    else if (template_fn_is(v, VALUE_FLOAT))
        *ret = v->f;
    else
        return false;
    return true;
}

/* -1, 0, 1. */
static int
template_fn_order(const char *fn, const struct value **a, size_t n, int *ret, struct err *e)
{
    double x, y;
    if (n != 2)
        return template_fn_bad(e, fn, "wants two arguments");
    if (template_fn_is(a[0], VALUE_INT) && template_fn_is(a[1], VALUE_INT))
        *ret = (a[0]->i > a[1]->i) - (a[0]->i < a[1]->i);
    else if (number_of(a[0], &x) && number_of(a[1], &y))
        *ret = (x > y) - (x < y);
    else if (template_fn_is(a[0], VALUE_STRING) && template_fn_is(a[1], VALUE_STRING)) {
        int d = strcmp(a[0]->str.s, a[1]->str.s);
        *ret = (d > 0) - (d < 0);
    } else
        return template_fn_bad(e, fn, "wants two numbers or two strings");
    return 0;
}

static int
template_fn_equal(const char *fn, const struct value *a, const struct value *b, bool *ret,
                  struct err *e)
{
    double x;
    bool null = !a || !b || a->kind == VALUE_NULL || b->kind == VALUE_NULL;
    if (!null && a->kind != b->kind && !(number_of(a, &x) && number_of(b, &x)))
        return template_fn_bad(e, fn, "the arguments are of different kinds");
    if (template_fn_is(a, VALUE_LIST) || template_fn_is(a, VALUE_MAP))
        return template_fn_bad(e, fn, "lists and maps are not compared");
    *ret = value_equal(a, b);
    return 0;
}

static int
fn_eq(void *ctx, const struct value **a, size_t n, const struct value **ret, struct err *e)
{
    bool any = false;
    if (n < 2)
        return template_fn_bad(e, "eq", "wants two arguments");
    for (size_t i = 1; i < n; i++) {
        bool eq;
        int rc = template_fn_equal("eq", a[0], a[i], &eq, e);
        if (rc)
            return rc;
        any = any || eq;
    }
    *ret = value_bool(ctx, any);
    return 0;
}

static int
fn_ne(void *ctx, const struct value **a, size_t n, const struct value **ret, struct err *e)
{
    bool eq;
    if (n != 2)
        return template_fn_bad(e, "ne", "wants two arguments");
    int rc = template_fn_equal("ne", a[0], a[1], &eq, e);
    *ret = rc ? NULL : value_bool(ctx, !eq);
    return rc;
}

#define ORDER_FN(name, condition)                                                                  \
    static int fn_##name(void *ctx, const struct value **a, size_t n, const struct value **ret,    \
                         struct err *e)                                                            \
    {                                                                                              \
        int d, rc = template_fn_order(#name, a, n, &d, e);                                         \
        *ret = rc ? NULL : value_bool(ctx, condition);                                             \
        return rc;                                                                                 \
    }
ORDER_FN(lt, d < 0)
ORDER_FN(le, d <= 0)
ORDER_FN(gt, d > 0)
ORDER_FN(ge, d >= 0)

static int
fn_not(void *ctx, const struct value **a, size_t n, const struct value **ret, struct err *e)
{
    if (n != 1)
        return template_fn_bad(e, "not", "wants one argument");
    *ret = value_bool(ctx, !template_truth(a[0]));
    return 0;
}

static int
fn_and(void *ctx, const struct value **a, size_t n, const struct value **ret, struct err *e)
{
    (void)ctx;
    if (n == 0)
        return template_fn_bad(e, "and", "wants an argument");
    *ret = a[n - 1];
    for (size_t i = n; i > 0; i--)
        *ret = template_truth(a[i - 1]) ? *ret : a[i - 1];
    return 0;
}

static int
fn_or(void *ctx, const struct value **a, size_t n, const struct value **ret, struct err *e)
{
    (void)ctx;
    if (n == 0)
        return template_fn_bad(e, "or", "wants an argument");
    *ret = a[n - 1];
    for (size_t i = n; i > 0; i--)
        *ret = template_truth(a[i - 1]) ? a[i - 1] : *ret;
    return 0;
}

/* --- printing --- */

/* One verb of a format: %[-+ 0#][width][.precision]verb. */
struct verb {
    bool left;
    char flags[8];
    int width, precision; /* -1: none */
    char verb;
};

static const char *
parse_verb(const char *p, struct verb *v)
{
    size_t n = 0;
    *v = (struct verb){.width = -1, .precision = -1};
    for (; *p && strchr("-+ 0#", *p) && n + 1 < sizeof(v->flags); p++) {
        v->left = v->left || *p == '-';
        v->flags[n++] = *p;
    }
    for (; isdigit((unsigned char)*p) && v->width < WIDTH_MAX; p++)
        v->width = (v->width < 0 ? 0 : v->width) * 10 + (*p - '0');
    if (*p == '.') {
        v->precision = 0;
        for (p++; isdigit((unsigned char)*p) && v->precision < WIDTH_MAX; p++)
            v->precision = v->precision * 10 + (*p - '0');
    }
    v->verb = *p;
    return p;
}

/* Width and precision count characters, not bytes. */
static void
put_text(struct buf *out, const struct verb *v, const char *s, size_t n)
{
    size_t bytes = 0;
    int chars = 0;
    while (bytes < n && (v->precision < 0 || chars < v->precision)) {
        for (bytes++; bytes < n && ((unsigned char)s[bytes] & 0xc0) == 0x80;)
            bytes++;
        chars++;
    }
    for (int i = chars; !v->left && i < v->width; i++)
        buf_putc(out, ' ');
    buf_put(out, s, bytes);
    for (int i = chars; v->left && i < v->width; i++)
        buf_putc(out, ' ');
}

static int
put_number(struct buf *out, const struct verb *v, const struct value *a, struct err *e)
{
    char fmt[64], width[16] = "", precision[16] = "";
    double f;
    if (v->width >= 0)
        snprintf(width, sizeof(width), "%d", v->width);
    if (v->precision >= 0)
        snprintf(precision, sizeof(precision), ".%d", v->precision);
    bool whole = strchr("dxXo", v->verb) != NULL;
    if (whole ? !template_fn_is(a, VALUE_INT) : !template_fn_is(a, VALUE_FLOAT))
        return template_fn_bad(
            e, "printf", whole ? "%d and %x want a whole number" : "%f, %e and %g want a fraction");
    snprintf(fmt, sizeof(fmt), "%%%s%s%s%s%c", v->flags, width, precision, whole ? "ll" : "",
             v->verb);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (whole)
        buf_printf(out, fmt, (long long)a->i);
    else if (number_of(a, &f))
        buf_printf(out, fmt, f);
#pragma GCC diagnostic pop
    return 0;
}

static int
put_verb(struct buf *out, const struct verb *v, const struct value *a, struct err *e)
{
    auto_buf struct buf one = BUF_INIT(TEXT_MAX), quoted = BUF_INIT(TEXT_MAX);
    if (v->verb && strchr("dxXofeg", v->verb))
        return put_number(out, v, a, e);
    if (v->verb == 't' && !template_fn_is(a, VALUE_BOOL))
        return template_fn_bad(e, "printf", "%t wants true or false");
    if ((v->verb == 's' || v->verb == 'q') && !template_fn_is(a, VALUE_STRING))
        return template_fn_bad(e, "printf", "%s and %q want a string; %v takes anything");
    if (!v->verb || !strchr("svqt", v->verb))
        return template_fn_bad(e, "printf", "knows %s %v %q %d %x %o %f %e %g %t and %%");
    template_put(&one, a);
    if (v->verb == 'q')
        json_put_string(&quoted, buf_str(&one), one.len);
    struct buf *text = v->verb == 'q' ? &quoted : &one;
    put_text(out, v, buf_str(text), text->len);
    return 0;
}

static int
fn_printf(void *ctx, const struct value **a, size_t n, const struct value **ret, struct err *e)
{
    auto_buf struct buf b = BUF_INIT(TEXT_MAX);
    size_t next = 1;
    if (n == 0 || !template_fn_is(a[0], VALUE_STRING))
        return template_fn_bad(e, "printf", "wants a format first");
    for (const char *p = a[0]->str.s; *p; p++) {
        struct verb v;
        if (*p != '%') {
            buf_putc(&b, *p);
            continue;
        }
        p = parse_verb(p + 1, &v);
        if (v.verb == '%') {
            buf_putc(&b, '%');
            continue;
        }
        if (next >= n)
            return template_fn_bad(e, "printf",
                                   "there are fewer arguments than the format has verbs");
        int rc = put_verb(&b, &v, a[next++], e);
        if (rc)
            return rc;
    }
    if (next < n)
        return template_fn_bad(e, "printf", "there are more arguments than the format has verbs");
    *ret = value_strn(ctx, buf_str(&b), b.len);
    return 0;
}

/* Prints as fmt.Sprint does: a blank between two that are not strings. */
static int
fn_print(void *ctx, const struct value **a, size_t n, const struct value **ret, struct err *e)
{
    auto_buf struct buf b = BUF_INIT(TEXT_MAX);
    (void)e;
    for (size_t i = 0; i < n; i++) {
        if (i && !template_fn_is(a[i], VALUE_STRING) && !template_fn_is(a[i - 1], VALUE_STRING))
            buf_putc(&b, ' ');
        template_put(&b, a[i]);
    }
    *ret = value_strn(ctx, buf_str(&b), b.len);
    return 0;
}

static int
fn_println(void *ctx, const struct value **a, size_t n, const struct value **ret, struct err *e)
{
    auto_buf struct buf b = BUF_INIT(TEXT_MAX);
    (void)e;
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_putc(&b, ' ');
        template_put(&b, a[i]);
    }
    buf_putc(&b, '\n');
    *ret = value_strn(ctx, buf_str(&b), b.len);
    return 0;
}

static const struct {
    const char *name;
    template_fn *fn;
} functions[] = {
    {"and", fn_and},       {"eq", fn_eq},           {"ge", fn_ge},   {"gt", fn_gt},
    {"index", fn_index},   {"le", fn_le},           {"len", fn_len}, {"lt", fn_lt},
    {"ne", fn_ne},         {"not", fn_not},         {"or", fn_or},   {"print", fn_print},
    {"printf", fn_printf}, {"println", fn_println},
};

template_fn *
template_function(const char *name, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(functions); i++)
        if (strlen(functions[i].name) == n && memcmp(functions[i].name, name, n) == 0)
            return functions[i].fn;
    return NULL;
}
