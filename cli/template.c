/* SPDX-License-Identifier: Apache-2.0
 *
 * A small subset of Go's text/template for -t: {{ .A.B }}, {{ . }}, {{ $ }}, {{ range .L }} {{ else }}
 * {{ end }}, {{ if .X }} {{ else }} {{ end }}, {{ with .X }}, {{ len .X }}, {{ index .X "key" 0 }},
 * {{ eq .A "x" }}, {{ ne .A "x" }}, {{ not .A }}, {{ printf "..." .A }}, {{ println .A }}, quoted and
 * `raw` strings, numbers, comments, and the {{- -}} trim marks. No pipelines and no variables but $.
 */
#include <ctype.h>
#include <string.h>

#include "cli/format.h"
#include "cli/limits.h"
#include "common/num.h"

struct tmpl {
    void *ctx;
    struct buf *out;
    const struct value *root;
    const char *p; /* reading position */
    int depth;
    struct err *e;
};

enum stop { STOP_END, STOP_ELSE, STOP_EOF, STOP_ERROR };

static enum stop run(struct tmpl *t, const struct value *dot, bool live);

static int
bad(struct tmpl *t, const char *what, const char *at, size_t n)
{
    return err_set(t->e, -ERR_INVALID, "Error formatting the data: template: %s near \"%.*s\"", what,
                   (int)(n > 40 ? 40 : n), at);
}

/* --- values --- */

static bool
truth(const struct value *v)
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

static void
put_value(struct buf *out, const struct value *v)
{
    if (!v || v->kind == VALUE_NULL)
        buf_puts(out, "<no value>");
    else if (v->kind == VALUE_STRING)
        buf_put(out, v->str.s, v->str.n);
    else if (v->kind == VALUE_LIST) {
        buf_putc(out, '[');
        for (size_t i = 0; i < v->list.n; i++) {
            if (i)
                buf_putc(out, ' ');
            put_value(out, v->list.v[i]);
        }
        buf_putc(out, ']');
    } else if (v->kind == VALUE_MAP) {
        buf_puts(out, "map[");
        for (size_t i = 0; i < v->map.n; i++) {
            if (i)
                buf_putc(out, ' ');
            buf_puts(out, v->map.v[i].k);
            buf_putc(out, ':');
            put_value(out, v->map.v[i].v);
        }
        buf_putc(out, ']');
    } else {
        json_encode_value(out, v, 0);
    }
}

/* --- expressions: the text between the braces --- */

struct expr {
    const char *p, *end;
};

static void
space(struct expr *x)
{
    while (x->p < x->end && isspace((unsigned char)*x->p))
        x->p++;
}

static size_t
word(const struct expr *x)
{
    size_t n = 0;
    while (x->p + n < x->end && (isalnum((unsigned char)x->p[n]) || x->p[n] == '_'))
        n++;
    return n;
}

/* .A.B behind the value v; v is NULL where something is missing. */
static const struct value *
path(struct tmpl *t, struct expr *x, const struct value *v)
{
    while (x->p < x->end && *x->p == '.') {
        x->p++;
        size_t n = word(x);
        if (n == 0)
            break;
        char *name = mem_strndup(t->ctx, x->p, n);
        v = value_get(v, name);
        x->p += n;
    }
    return v;
}

static int
quoted(struct tmpl *t, struct expr *x, const struct value **ret)
{
    char q = *x->p++;
    auto_buf struct buf b = BUF_INIT(1 << 20);
    while (x->p < x->end && *x->p != q) {
        char ch = *x->p++;
        if (ch == '\\' && q == '"' && x->p < x->end) {
            ch = *x->p++;
            ch = ch == 'n' ? '\n' : ch == 't' ? '\t' : ch;
        }
        buf_putc(&b, ch);
    }
    if (x->p >= x->end)
        return bad(t, "string is not closed", x->p - 1, 1);
    x->p++;
    *ret = value_strn(t->ctx, buf_str(&b), b.len);
    return 0;
}

static int call(struct tmpl *t, struct expr *x, const struct value *dot, const struct value **ret);

static int
number(struct tmpl *t, struct expr *x, const struct value **ret)
{
    size_t n = 1;
    while (x->p + n < x->end && isdigit((unsigned char)x->p[n]))
        n++;
    int64_t i;
    if (num_parse_i64(mem_strndup(t->ctx, x->p, n), &i))
        return bad(t, "not a number", x->p, n);
    *ret = value_int(t->ctx, i);
    x->p += n;
    return 0;
}

/* One operand. */
static int
operand(struct tmpl *t, struct expr *x, const struct value *dot, const struct value **ret)
{
    space(x);
    if (x->p >= x->end)
        return bad(t, "something is missing", x->p, 0);
    char ch = *x->p;
    if (ch == '"' || ch == '`')
        return quoted(t, x, ret);
    if (ch == '-' || isdigit((unsigned char)ch))
        return number(t, x, ret);
    if (ch == '.') {
        *ret = path(t, x, dot);
        return 0;
    }
    if (ch == '$') {
        x->p++;
        *ret = path(t, x, t->root);
        return 0;
    }
    if (ch == '(') {
        if (++t->depth > TEMPLATE_DEPTH_MAX)
            return bad(t, "nested too deep", x->p, 1);
        x->p++;
        int rc = call(t, x, dot, ret);
        t->depth--;
        space(x);
        if (!rc && (x->p >= x->end || *x->p != ')'))
            return bad(t, "expected ')'", x->p, (size_t)(x->end - x->p));
        x->p++;
        return rc;
    }
    size_t n = word(x);
    if ((n == 4 && memcmp(x->p, "true", 4) == 0) || (n == 5 && memcmp(x->p, "false", 5) == 0)) {
        *ret = value_bool(t->ctx, n == 4);
        x->p += n;
        return 0;
    }
    return bad(t, "not understood", x->p, (size_t)(x->end - x->p));
}

/* --- functions --- */

typedef int function(struct tmpl *t, const struct value **a, size_t n, const struct value **ret);

static int
fn_len(struct tmpl *t, const struct value **a, size_t n, const struct value **ret)
{
    size_t len = 0;
    const struct value *v = n ? a[0] : NULL;
    if (v && v->kind == VALUE_LIST)
        len = v->list.n;
    else if (v && v->kind == VALUE_MAP)
        len = v->map.n;
    else if (v && v->kind == VALUE_STRING)
        len = v->str.n;
    *ret = value_int(t->ctx, (int64_t)len);
    return 0;
}

static int
fn_index(struct tmpl *t, const struct value **a, size_t n, const struct value **ret)
{
    const struct value *v = n ? a[0] : NULL;
    for (size_t i = 1; i < n; i++) {
        const struct value *k = a[i];
        if (k && k->kind == VALUE_STRING)
            v = value_get(v, k->str.s);
        else if (k && k->kind == VALUE_INT && v && v->kind == VALUE_LIST && k->i >= 0 &&
                 (size_t)k->i < v->list.n)
            v = v->list.v[k->i];
        else
            return bad(t, "index is out of range", "index", 5);
    }
    *ret = v;
    return 0;
}

static int
fn_eq(struct tmpl *t, const struct value **a, size_t n, const struct value **ret)
{
    bool eq = false;
    for (size_t i = 1; i < n; i++)
        eq = eq || value_equal(a[0], a[i]);
    *ret = value_bool(t->ctx, eq);
    return 0;
}

static int
fn_ne(struct tmpl *t, const struct value **a, size_t n, const struct value **ret)
{
    *ret = value_bool(t->ctx, n >= 2 && !value_equal(a[0], a[1]));
    return 0;
}

static int
fn_not(struct tmpl *t, const struct value **a, size_t n, const struct value **ret)
{
    *ret = value_bool(t->ctx, !truth(n ? a[0] : NULL));
    return 0;
}

/* %s %v %d take the next argument as it prints, %q quotes it, %% is a percent sign. */
static int
fn_printf(struct tmpl *t, const struct value **a, size_t n, const struct value **ret)
{
    auto_buf struct buf b = BUF_INIT(16 << 20), one = BUF_INIT(16 << 20);
    if (n == 0 || !a[0] || a[0]->kind != VALUE_STRING)
        return bad(t, "printf needs a format", "printf", 6);
    size_t next = 1;
    for (const char *p = a[0]->str.s; *p; p++) {
        if (*p != '%') {
            buf_putc(&b, *p);
            continue;
        }
        p++;
        if (*p == '%') {
            buf_putc(&b, '%');
        } else if ((*p == 's' || *p == 'v' || *p == 'd' || *p == 'q') && next < n) {
            buf_reset(&one);
            put_value(&one, a[next++]);
            if (*p == 'q')
                json_put_string(&b, buf_str(&one), one.len);
            else
                buf_put(&b, one.data, one.len);
        } else {
            return bad(t, "printf knows %s %v %d %q with an argument each", a[0]->str.s,
                       a[0]->str.n);
        }
    }
    *ret = value_strn(t->ctx, buf_str(&b), b.len);
    return 0;
}

static int
fn_println(struct tmpl *t, const struct value **a, size_t n, const struct value **ret)
{
    auto_buf struct buf b = BUF_INIT(16 << 20);
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_putc(&b, ' ');
        put_value(&b, a[i]);
    }
    buf_putc(&b, '\n');
    *ret = value_strn(t->ctx, buf_str(&b), b.len);
    return 0;
}

static const struct {
    const char *name;
    function *fn;
} functions[] = {{"len", fn_len}, {"index", fn_index},   {"eq", fn_eq},          {"ne", fn_ne},
                 {"not", fn_not}, {"printf", fn_printf}, {"println", fn_println}};

/* A function with its operands, or a lone operand; up to ')' or the end. */
static int
call(struct tmpl *t, struct expr *x, const struct value *dot, const struct value **ret)
{
    space(x);
    size_t n = word(x);
    function *fn = NULL;
    for (size_t i = 0; i < ARRAY_LEN(functions) && n; i++)
        if (strlen(functions[i].name) == n && memcmp(functions[i].name, x->p, n) == 0)
            fn = functions[i].fn;
    if (!fn) {
        int rc = operand(t, x, dot, ret);
        space(x);
        return rc;
    }
    x->p += n;
    const struct value *args[TEMPLATE_ARGS_MAX] = {NULL};
    size_t n_args = 0;
    for (space(x); x->p < x->end && *x->p != ')'; space(x)) {
        if (n_args == TEMPLATE_ARGS_MAX)
            return bad(t, "too many arguments", x->p, (size_t)(x->end - x->p));
        int rc = operand(t, x, dot, &args[n_args++]);
        if (rc)
            return rc;
    }
    return fn(t, args, n_args, ret);
}

static int
evaluate(struct tmpl *t, const char *s, const char *end, const struct value *dot,
         const struct value **ret)
{
    struct expr x = {s, end};
    int rc = call(t, &x, dot, ret);
    space(&x);
    if (!rc && x.p < x.end)
        return bad(t, "not understood", x.p, (size_t)(x.end - x.p));
    return rc;
}

/* --- text and actions --- */

static bool
starts(const char *s, const char *end, const char *kw)
{
    size_t n = strlen(kw);
    return (size_t)(end - s) >= n && memcmp(s, kw, n) == 0 &&
           ((size_t)(end - s) == n || (!isalnum((unsigned char)s[n]) && s[n] != '_'));
}

/* One side of a range or if: run from here, to the matching else or end. */
static enum stop
body(struct tmpl *t, const struct value *dot, bool live)
{
    if (++t->depth > TEMPLATE_DEPTH_MAX) {
        bad(t, "nested too deep", t->p, strlen(t->p));
        return STOP_ERROR;
    }
    enum stop s = run(t, dot, live);
    t->depth--;
    if (s == STOP_EOF) {
        bad(t, "{{ end }} is missing", "", 0);
        return STOP_ERROR;
    }
    return s;
}

static enum stop
run_if(struct tmpl *t, const struct value *dot, const struct value *cond, bool with, bool live)
{
    bool yes = live && truth(cond);
    enum stop s = body(t, with && yes ? cond : dot, yes);
    if (s == STOP_ELSE)
        s = body(t, dot, live && !yes);
    return s == STOP_ELSE ? STOP_ERROR : s;
}

static enum stop
run_range(struct tmpl *t, const struct value *dot, const struct value *over, bool live)
{
    const char *start = t->p;
    size_t n = 0;
    enum stop s = STOP_END;
    if (live && over && over->kind == VALUE_LIST)
        n = over->list.n;
    else if (live && over && over->kind == VALUE_MAP)
        n = over->map.n;
    for (size_t i = 0; i < n; i++) {
        t->p = start;
        s = body(t, over->kind == VALUE_LIST ? over->list.v[i] : over->map.v[i].v, true);
        if (s == STOP_ERROR)
            return s;
    }
    if (n == 0)
        s = body(t, dot, false);
    if (s == STOP_ELSE)
        s = body(t, dot, live && n == 0);
    return s == STOP_ELSE ? STOP_ERROR : s;
}

static enum stop
action(struct tmpl *t, const char *s, const char *end, const struct value *dot, bool live)
{
    const struct value *v = NULL;
    if (starts(s, end, "end"))
        return STOP_END;
    if (starts(s, end, "else"))
        return STOP_ELSE;
    const char *kw = starts(s, end, "range") ? "range" : starts(s, end, "if") ? "if"
                     : starts(s, end, "with") ? "with" : "";
    s += strlen(kw);
    if (live && evaluate(t, s, end, dot, &v))
        return STOP_ERROR;
    if (*kw == 0) {
        if (live)
            put_value(t->out, v);
        return STOP_EOF;
    }
    enum stop r = *kw == 'r' ? run_range(t, dot, v, live) : run_if(t, dot, v, *kw == 'w', live);
    if (r == STOP_ERROR)
        bad(t, "{{ else }} where none belongs", s, (size_t)(end - s));
    return r == STOP_END ? STOP_EOF : STOP_ERROR;
}

/* Until {{ end }}, {{ else }} or the end of the text. STOP_EOF from action(): go on. */
static enum stop
run(struct tmpl *t, const struct value *dot, bool live)
{
    for (;;) {
        const char *open = strstr(t->p, "{{");
        const char *text_end = open ? open : t->p + strlen(t->p);
        if (open && open[2] == '-' && isspace((unsigned char)open[3]))
            while (text_end > t->p && isspace((unsigned char)text_end[-1]))
                text_end--;
        if (live)
            buf_put(t->out, t->p, (size_t)(text_end - t->p));
        if (!open) {
            t->p += strlen(t->p);
            return STOP_EOF;
        }
        const char *s = open + 2, *close = strstr(s, "}}");
        if (!close) {
            bad(t, "{{ is not closed", open, strlen(open));
            return STOP_ERROR;
        }
        t->p = close + 2;
        if (*s == '-' && isspace((unsigned char)s[1]))
            s++;
        if (close - s >= 2 && close[-1] == '-' && isspace((unsigned char)close[-2])) {
            close--;
            t->p += strspn(t->p, " \t\r\n");
        }
        while (s < close && isspace((unsigned char)*s))
            s++;
        while (close > s && isspace((unsigned char)close[-1]))
            close--;
        if (close - s >= 2 && s[0] == '/' && s[1] == '*')
            continue;
        enum stop r = action(t, s, close, dot, live);
        if (r != STOP_EOF)
            return r;
    }
}

int
template_render(struct buf *out, const char *text, const struct value *v, struct err *e)
{
    auto_mem void *ctx = mem_ctx("template");
    struct tmpl t = {.ctx = ctx, .out = out, .root = v, .p = text, .e = e};
    enum stop s = run(&t, v, true);
    if (s == STOP_EOF)
        return 0;
    if (s != STOP_ERROR)
        return bad(&t, "{{ end }} or {{ else }} where none belongs", text, strlen(text));
    return -ERR_INVALID;
}
