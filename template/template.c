/* SPDX-License-Identifier: Apache-2.0
 *
 * The useful core of Go's text/template for -t, over the JSON of an answer:
 *   {{ .A.B }} {{ . }} {{ $ }} {{ $x := .A }} {{ $x = 1 }} {{ $x.B }} {{ (index .L 0).B }}
 *   {{ .A | printf "%.8s" }} {{ len .L }} and the other functions of function.c
 *   {{ if P }} {{ else if P }} {{ else }} {{ end }}
 *   {{ with P }} {{ else }} {{ end }}   {{ range $k, $v := P }} {{ else }} {{ end }}
 *   "quoted" and `raw` strings, whole numbers, true, false, comments, trim marks {{- -}}
 * Whatever else Go knows is refused: what is printed is what Go would print of this JSON.
 */
#include "template/template.h"

#include <ctype.h>
#include <string.h>

#include "common/num.h"
#include "template/limits.h"
#include "template/template_int.h"

struct var {
    const char *name;
    const struct value *v;
};

struct tmpl {
    void *ctx;
    struct buf *out;
    const struct value *root;
    const char *p; /* reading position */
    int depth;
    struct var vars[TEMPLATE_VARS_MAX];
    size_t n_vars;
    const char *branch, *branch_end; /* what stood behind the last {{ else */
    struct err *e;
};

enum stop { STOP_END, STOP_ELSE, STOP_EOF, STOP_ERROR };

static enum stop template_run(struct tmpl *t, const struct value *dot, bool live);

static int
template_bad(struct tmpl *t, const char *what, const char *at, size_t n)
{
    return err_set(t->e, -ERR_INVALID, "Error formatting the data: template: %s near \"%.*s\"",
                   what, (int)(n > 40 ? 40 : n), at);
}

/* --- expressions: the text between the braces --- */

struct expr {
    const char *p, *end;
};

static int template_pipeline(struct tmpl *t, struct expr *x, const struct value *dot,
                             const struct value **ret);

static int
bad_at(struct tmpl *t, const struct expr *x, const char *what)
{
    return template_bad(t, what, x->p, (size_t)(x->end - x->p));
}

static void
template_space(struct expr *x)
{
    while (x->p < x->end && isspace((unsigned char)*x->p))
        x->p++;
}

static size_t
template_word(const struct expr *x)
{
    size_t n = 0;
    while (x->p + n < x->end && (isalnum((unsigned char)x->p[n]) || x->p[n] == '_'))
        n++;
    return n;
}

/* .A.B behind the value v. What a map does not have is no value; what is no map has no fields. */
static int
template_fields(struct tmpl *t, struct expr *x, const struct value *v, const struct value **ret)
{
    while (x->p < x->end && *x->p == '.') {
        x->p++;
        size_t n = template_word(x);
        if (n == 0)
            return bad_at(t, x, "the name of a field is missing");
        if (v && v->kind != VALUE_MAP && v->kind != VALUE_NULL)
            return template_bad(t, "what is no object has no field", x->p, n);
        v = value_get(v, mem_strndup(t->ctx, x->p, n));
        x->p += n;
    }
    *ret = v;
    return 0;
}

static int
template_quoted(struct tmpl *t, struct expr *x, const struct value **ret)
{
    char q = *x->p++;
    auto_buf struct buf b = BUF_INIT(1 << 20);
    while (x->p < x->end && *x->p != q) {
        char ch = *x->p++;
        if (ch == '\\' && q == '"' && x->p < x->end) {
            static const char from[] = "nt\\\"r", to[] = "\n\t\\\"\r";
            const char *k = strchr(from, *x->p);
            if (!k || !*k)
                return bad_at(t, x, "unknown escape in a string");
            ch = to[k - from];
            x->p++;
        }
        buf_putc(&b, ch);
    }
    if (x->p >= x->end)
        return template_bad(t, "string is not closed", x->p - 1, 1);
    x->p++;
    *ret = value_strn(t->ctx, buf_str(&b), b.len);
    return 0;
}

static int
template_number(struct tmpl *t, struct expr *x, const struct value **ret)
{
    size_t n = 1;
    while (x->p + n < x->end &&
           (isalnum((unsigned char)x->p[n]) || x->p[n] == '.' || x->p[n] == '_'))
        n++;
    int64_t i;
    if (num_parse_i64(mem_strndup(t->ctx, x->p, n), &i))
        return template_bad(t, "not a whole number", x->p, n);
    *ret = value_int(t->ctx, i);
    x->p += n;
    return 0;
}

static struct var *
template_variable(struct tmpl *t, const char *name, size_t n)
{
    for (size_t i = t->n_vars; i > 0; i--)
        if (strlen(t->vars[i - 1].name) == n && memcmp(t->vars[i - 1].name, name, n) == 0)
            return &t->vars[i - 1];
    return NULL;
}

static int
template_parenthesis(struct tmpl *t, struct expr *x, const struct value *dot,
                     const struct value **ret)
{
    if (++t->depth > TEMPLATE_DEPTH_MAX)
        return template_bad(t, "nested too deep", x->p, 1);
    x->p++;
    int rc = template_pipeline(t, x, dot, ret);
    t->depth--;
    if (rc)
        return rc;
    if (x->p >= x->end || *x->p != ')')
        return bad_at(t, x, "expected ')'");
    x->p++;
    return template_fields(t, x, *ret, ret);
}

static int
word_operand(struct tmpl *t, struct expr *x, const struct value **ret)
{
    size_t n = template_word(x);
    bool yes = n == 4 && memcmp(x->p, "true", 4) == 0;
    if (!yes && !(n == 5 && memcmp(x->p, "false", 5) == 0)) {
        template_fn *fn = template_function(x->p, n);
        return fn ? bad_at(t, x, "a function as an argument goes into parentheses")
                  : bad_at(t, x, n ? "unknown function" : "not understood");
    }
    *ret = value_bool(t->ctx, yes);
    x->p += n;
    return 0;
}

/* One operand; a blank, '|', ')' or the end follows it. */
static int
template_operand(struct tmpl *t, struct expr *x, const struct value *dot, const struct value **ret)
{
    int rc;
    template_space(x);
    if (x->p >= x->end)
        return template_bad(t, "something is missing", x->p, 0);
    char ch = *x->p;
    if (ch == '"' || ch == '`')
        rc = template_quoted(t, x, ret);
    else if (ch == '-' || isdigit((unsigned char)ch))
        rc = template_number(t, x, ret);
    else if (ch == '.' && (x->p + 1 == x->end || strchr(" \t\r\n|)", x->p[1]))) {
        x->p++;
        *ret = dot;
        rc = 0;
    } else if (ch == '.')
        rc = template_fields(t, x, dot, ret);
    else if (ch == '$') {
        x->p++;
        size_t n = template_word(x);
        const struct var *v = template_variable(t, x->p, n);
        if (n && !v)
            return template_bad(t, "unknown variable", x->p - 1, n + 1);
        x->p += n;
        rc = template_fields(t, x, v ? v->v : t->root, ret);
    } else if (ch == '(')
        rc = template_parenthesis(t, x, dot, ret);
    else
        rc = word_operand(t, x, ret);
    if (!rc && x->p < x->end && !strchr(" \t\r\n|)", *x->p))
        return bad_at(t, x, "not understood");
    return rc;
}

/* A function with its operands, or a lone operand; `last` (from the left of a '|') comes last. */
static int
template_command(struct tmpl *t, struct expr *x, const struct value *dot, bool piped,
                 const struct value **ret)
{
    const struct value *args[TEMPLATE_ARGS_MAX] = {NULL}, *last = *ret;
    size_t n = 0;
    template_space(x);
    size_t len = template_word(x);
    template_fn *fn = template_function(x->p, len);
    if (!fn && piped)
        return bad_at(t, x, "expected a function behind '|'");
    if (!fn) {
        int rc = template_operand(t, x, dot, ret);
        template_space(x);
        return rc;
    }
    const char *name = x->p;
    x->p += len;
    for (template_space(x); x->p < x->end && *x->p != ')' && *x->p != '|'; template_space(x)) {
        if (n + 1 >= TEMPLATE_ARGS_MAX)
            return bad_at(t, x, "too many arguments");
        int rc = template_operand(t, x, dot, &args[n++]);
        if (rc)
            return rc;
    }
    if (piped)
        args[n++] = last;
    struct err e = ERR_INIT;
    return fn(t->ctx, args, n, ret, &e) ? template_bad(t, e.text, name, (size_t)(x->p - name)) : 0;
}

static int
template_pipeline(struct tmpl *t, struct expr *x, const struct value *dot, const struct value **ret)
{
    int rc = template_command(t, x, dot, false, ret);
    while (!rc && x->p < x->end && *x->p == '|') {
        x->p++;
        rc = template_command(t, x, dot, true, ret);
    }
    return rc;
}

/* --- declarations --- */

/* "$a, $b :=" or "$a =" in front of a pipeline. */
struct decl {
    size_t n; /* names */
    const char *name[2];
    bool assign; /* with "=" */
};

static bool
template_name(struct tmpl *t, struct expr *x, const char **ret)
{
    template_space(x);
    if (x->p >= x->end || *x->p != '$')
        return false;
    x->p++;
    size_t n = template_word(x);
    *ret = mem_strndup(t->ctx, x->p, n);
    x->p += n;
    template_space(x);
    return n > 0;
}

/* Reads a declaration, if there is one; else the text stays as it is. */
static void
template_declaration(struct tmpl *t, struct expr *x, struct decl *d)
{
    struct expr y = *x;
    *d = (struct decl){0};
    if (!template_name(t, &y, &d->name[0]))
        return;
    size_t n = 1;
    if (y.p < y.end && *y.p == ',') {
        y.p++;
        if (!template_name(t, &y, &d->name[1]))
            return;
        n = 2;
    }
    if (y.end - y.p >= 2 && y.p[0] == ':' && y.p[1] == '=')
        y.p += 2;
    else if (y.p < y.end && y.p[0] == '=')
        d->assign = y.p++ != NULL;
    else
        return;
    d->n = n;
    *x = y;
}

static int
template_set(struct tmpl *t, const char *var_name, bool assign, const struct value *v)
{
    struct var *old = template_variable(t, var_name, strlen(var_name));
    if (assign && !old)
        return template_bad(t, "unknown variable", var_name, strlen(var_name));
    if (!assign && t->n_vars == TEMPLATE_VARS_MAX)
        return template_bad(t, "too many variables", var_name, strlen(var_name));
    if (!assign) {
        old = &t->vars[t->n_vars++];
        old->name = var_name;
    }
    old->v = v;
    return 0;
}

/* The pipeline and what it declares; range declares by itself. */
static int
template_evaluate(struct tmpl *t, const char *s, const char *end, const struct value *dot,
                  struct decl *d, const struct value **ret)
{
    struct expr x = {s, end};
    template_declaration(t, &x, d);
    int rc = template_pipeline(t, &x, dot, ret);
    template_space(&x);
    if (!rc && x.p < x.end)
        return bad_at(t, &x, "not understood");
    return rc;
}

/* --- text and actions --- */

static bool
template_starts(const char *s, const char *end, const char *kw)
{
    size_t n = strlen(kw);
    return (size_t)(end - s) >= n && memcmp(s, kw, n) == 0 &&
           ((size_t)(end - s) == n || (!isalnum((unsigned char)s[n]) && s[n] != '_'));
}

/* One side of a range or if: run from here, to the matching else or end. */
static enum stop
template_body(struct tmpl *t, const struct value *dot, bool live)
{
    size_t vars = t->n_vars;
    if (++t->depth > TEMPLATE_DEPTH_MAX) {
        template_bad(t, "nested too deep", t->p, strlen(t->p));
        return STOP_ERROR;
    }
    enum stop s = template_run(t, dot, live);
    t->depth--;
    t->n_vars = vars;
    if (s == STOP_EOF) {
        template_bad(t, "{{ end }} is missing", "", 0);
        return STOP_ERROR;
    }
    return s;
}

/* `s`: behind the word if or with. */
static enum stop
run_if(struct tmpl *t, const char *s, const char *end, const struct value *dot, bool with,
       bool live)
{
    const struct value *v = NULL;
    struct decl d = {0};
    size_t vars = t->n_vars;
    if (live && template_evaluate(t, s, end, dot, &d, &v))
        return STOP_ERROR;
    if (d.n == 2) {
        template_bad(t, "two variables are for range", s, (size_t)(end - s));
        return STOP_ERROR;
    }
    if (d.n && template_set(t, d.name[0], d.assign, v))
        return STOP_ERROR;
    bool yes = live && template_truth(v);
    enum stop r = template_body(t, with && yes ? v : dot, yes);
    if (r == STOP_ELSE && t->branch < t->branch_end) {
        s = t->branch;
        with = template_starts(s, t->branch_end, "with");
        if (!with && !template_starts(s, t->branch_end, "if")) {
            template_bad(t, "expected if or with behind else", s, (size_t)(t->branch_end - s));
            return STOP_ERROR;
        }
        if (++t->depth > TEMPLATE_DEPTH_MAX) {
            template_bad(t, "nested too deep", s, (size_t)(t->branch_end - s));
            return STOP_ERROR;
        }
        r = run_if(t, s + (with ? 4 : 2), t->branch_end, dot, with, live && !yes);
        t->depth--;
    } else if (r == STOP_ELSE) {
        r = template_body(t, dot, live && !yes);
        if (r == STOP_ELSE)
            template_bad(t, "{{ else }} where none belongs", s, (size_t)(end - s));
    }
    t->n_vars = vars;
    return r == STOP_END ? STOP_END : STOP_ERROR;
}

/* The i-th of what is gone through, by the names that the range declares. */
static enum stop
round_of(struct tmpl *t, const struct decl *d, const struct value *key, const struct value *v)
{
    size_t vars = t->n_vars;
    if ((d->n == 2 && template_set(t, d->name[0], d->assign, key)) ||
        (d->n && template_set(t, d->name[d->n - 1], d->assign, v)))
        return STOP_ERROR;
    enum stop r = template_body(t, v, true);
    t->n_vars = vars;
    return r;
}

static enum stop
run_range(struct tmpl *t, const char *s, const char *end, const struct value *dot, bool live)
{
    const char *start = t->p;
    const struct value *over = NULL;
    struct decl d = {0};
    enum stop r = STOP_END;
    if (live && template_evaluate(t, s, end, dot, &d, &over))
        return STOP_ERROR;
    bool list = over && over->kind == VALUE_LIST, map = over && over->kind == VALUE_MAP;
    size_t n = list ? over->list.n : map ? over->map.n : 0;
    if (over && !list && !map && over->kind != VALUE_NULL) {
        template_bad(t, "range goes over lists and maps", s, (size_t)(end - s));
        return STOP_ERROR;
    }
    const struct value_pair *pairs = map ? template_pairs(t->ctx, over) : NULL;
    for (size_t i = 0; i < n && r != STOP_ERROR; i++) {
        t->p = start;
        r = list ? round_of(t, &d, value_int(t->ctx, (int64_t)i), over->list.v[i])
                 : round_of(t, &d, value_str(t->ctx, pairs[i].k), pairs[i].v);
    }
    if (n == 0)
        r = template_body(t, dot, false);
    if (r == STOP_ELSE && t->branch == t->branch_end)
        r = template_body(t, dot, live && n == 0);
    if (r == STOP_ELSE)
        template_bad(t, "{{ else }} where none belongs", s, (size_t)(end - s));
    return r == STOP_END ? STOP_END : STOP_ERROR;
}

/* A pipeline that is printed, or a declaration. */
static enum stop
template_simple(struct tmpl *t, const char *s, const char *end, const struct value *dot, bool live)
{
    const struct value *v = NULL;
    struct decl d = {0};
    if (!live)
        return STOP_EOF;
    if (template_evaluate(t, s, end, dot, &d, &v))
        return STOP_ERROR;
    if (d.n == 2) {
        template_bad(t, "two variables are for range", s, (size_t)(end - s));
        return STOP_ERROR;
    }
    if (d.n)
        return template_set(t, d.name[0], d.assign, v) ? STOP_ERROR : STOP_EOF;
    template_put(t->out, v);
    return STOP_EOF;
}

static enum stop
template_action(struct tmpl *t, const char *s, const char *end, const struct value *dot, bool live)
{
    static const char *const not_here[] = {"block", "break", "continue", "define", "template"};
    for (size_t i = 0; i < ARRAY_LEN(not_here); i++)
        if (template_starts(s, end, not_here[i])) {
            template_bad(t, "not supported", s, (size_t)(end - s));
            return STOP_ERROR;
        }
    if (template_starts(s, end, "end") && s + 3 == end)
        return STOP_END;
    if (template_starts(s, end, "else")) {
        struct expr x = {s + 4, end};
        template_space(&x);
        t->branch = x.p;
        t->branch_end = end;
        return STOP_ELSE;
    }
    enum stop r;
    if (template_starts(s, end, "range"))
        r = run_range(t, s + 5, end, dot, live);
    else if (template_starts(s, end, "if"))
        r = run_if(t, s + 2, end, dot, false, live);
    else if (template_starts(s, end, "with"))
        r = run_if(t, s + 4, end, dot, true, live);
    else
        return template_simple(t, s, end, dot, live);
    return r == STOP_END ? STOP_EOF : STOP_ERROR;
}

/* Until {{ end }}, {{ else }} or the end of the text. STOP_EOF from template_action(): go on. */
static enum stop
template_run(struct tmpl *t, const struct value *dot, bool live)
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
            template_bad(t, "{{ is not closed", open, strlen(open));
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
        enum stop r = template_action(t, s, close, dot, live);
        if (r != STOP_EOF)
            return r;
    }
}

int
template_render(struct buf *out, const char *text, const struct value *v, struct err *e)
{
    auto_mem void *ctx = mem_ctx("template");
    struct tmpl t = {.ctx = ctx, .out = out, .root = v, .p = text, .e = e};
    enum stop s = template_run(&t, v, true);
    if (s == STOP_EOF)
        return 0;
    if (s != STOP_ERROR)
        return template_bad(&t, "{{ end }} or {{ else }} where none belongs", text, strlen(text));
    return -ERR_INVALID;
}
