/* SPDX-License-Identifier: Apache-2.0
 *
 * Calling functions. See func.h. In this order: look-up, and evaluation and counting of arguments;
 * what the functions ask of their arguments, and make of results; try(), can() and convert(), which
 * evaluate their own.
 */
#include "jobspec/func/func.h"

#include <stdarg.h>
#include <string.h>

#include "common/mem.h"

static const struct func *const tables[] = {
    func_numeric, func_string, func_regex, func_collection, func_set,  func_encoding, func_json,
    func_date,    func_digest, func_yaml,  func_network,    func_file, func_type};

static const struct func *
func_lookup(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        for (const struct func *f = tables[i]; f->name != NULL; f++)
            if (strcmp(f->name, name) == 0)
                return f;
    return NULL;
}

static struct value *
func_unknown(struct hcl_eval *ev, const struct expr *e)
{
    static const char *const left_out[] = {"bcrypt", "yamldecode", NULL};
    for (size_t i = 0; left_out[i] != NULL; i++) {
        if (strcmp(left_out[i], e->name) != 0)
            continue;
        diag_error(ev->sink, &e->name_r, "Function not supported yet",
                   "The function \"%s\" is known but not part of this release.", e->name);
        return NULL;
    }
    const char *names[200];
    size_t n = 0;
    for (size_t i = 0; diag_wanted(ev->sink) && i < ARRAY_LEN(tables); i++)
        for (const struct func *f = tables[i]; f->name != NULL && n < ARRAY_LEN(names); f++)
            names[n++] = f->name;
    diag_error(ev->sink, &e->name_r, "Call to unknown function",
               "There is no function named \"%s\".%s", e->name,
               diag_suggest(ev->sink, e->name, names, n));
    return NULL;
}

/* Evaluates the arguments, the last one spread when it ends in "...". */
static bool
eval_args(struct call *c)
{
    const struct expr *e = c->e;
    struct value *last = NULL;
    if (!ev_charge(c->ev, &e->r, 1, e->n * sizeof(struct value *)))
        return false;
    c->args = mem_array(c->ev->ctx, struct value *, e->n);
    for (size_t i = 0; i < e->n; i++)
        if ((last = c->args[i] = ev_expr(c->ev, c->sc, e->list[i])) == NULL ||
            !ev_measure(c->ev, &e->list[i]->r, last))
            return false;
    c->n = e->n;
    if (!e->flag || last == NULL)
        return true;
    if (last->kind != VALUE_LIST) {
        arg_error(c, e->n - 1, "only a list can be expanded with \"...\"");
        return false;
    }
    ASSERT(e->n > 0);
    c->n = e->n - 1 + last->list.n;
    if (!ev_charge(c->ev, &e->r, c->n, c->n * sizeof(void *)))
        return false;
    struct value **all = mem_array(c->ev->ctx, struct value *, c->n);
    for (size_t i = 0; i + 1 < e->n; i++)
        all[i] = c->args[i];
    for (size_t i = 0; i < last->list.n; i++)
        all[e->n - 1 + i] = last->list.v[i];
    c->args = all;
    return true;
}

struct value *
func_call(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    struct call c = {.ev = ev, .sc = sc, .e = e};
    if ((ev->flags & HCL_LITERAL) != 0) {
        diag_error(ev->sink, &e->name_r, "Function calls not allowed",
                   "Functions are not available in this file.");
        return NULL;
    }
    const struct func *f = func_lookup(e->name);
    if (f == NULL)
        return func_unknown(ev, e);
    if (!f->lazy && !eval_args(&c))
        return NULL;
    size_t n = f->lazy ? e->n : c.n;
    if (n < (size_t)f->min || (f->max >= 0 && n > (size_t)f->max)) {
        diag_error(ev->sink, &e->r,
                   n < (size_t)f->min ? "Not enough function arguments"
                                      : "Too many function arguments",
                   "The function \"%s\" takes %s%d argument(s), %zu given.", e->name,
                   f->max == f->min     ? ""
                   : n < (size_t)f->min ? "at least "
                                        : "at most ",
                   n < (size_t)f->min ? f->min : f->max, n);
        return NULL;
    }
    struct value *v = f->fn(&c);
    return c.failed ? NULL : v;
}

/* --- arguments --- */

void *
arg_error(struct call *c, size_t i, const char *fmt, ...)
{
    if (c->failed || c->ev->exhausted)
        return NULL;
    va_list ap;
    va_start(ap, fmt);
    char text[512];
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    const struct hcl_range *r = i < c->e->n ? &c->e->list[i]->r : &c->e->r;
    diag_error(c->ev->sink, r, "Invalid function argument", "%s: %s.", c->e->name, text);
    c->failed = true;
    return NULL;
}

const char *
arg_str(struct call *c, size_t i)
{
    const char *s = value_text(c->ev->ctx, c->args[i]);
    if (s == NULL)
        arg_error(c, i, "a string is needed, this is a %s", value_kind_name(c->args[i]->kind));
    return s != NULL ? s : "";
}

size_t
arg_len(struct call *c, size_t i)
{
    const struct value *v = c->args[i];
    return v->kind == VALUE_STRING ? v->str.n : strlen(arg_str(c, i));
}

int64_t
arg_int(struct call *c, size_t i)
{
    int64_t v = 0;
    if (!number_int(c->args[i], &v))
        arg_error(c, i, "a whole number is needed");
    return v;
}

double
arg_num(struct call *c, size_t i)
{
    double v = 0;
    if (!number_double(c->args[i], &v))
        arg_error(c, i, "a number is needed, this is a %s", value_kind_name(c->args[i]->kind));
    return v;
}

const struct value *
arg_number(struct call *c, size_t i)
{
    const struct value *v = c->args[i];
    struct value *n = v->kind == VALUE_STRING ? number_parse(c->ev->ctx, v->str.s) : NULL;
    if (n != NULL || (v->kind != VALUE_STRING && number_is(v)))
        return n != NULL ? n : v;
    arg_error(c, i, "a number is needed, this is a %s", value_kind_name(v->kind));
    return number_counted(c->ev->ctx, 0);
}

static struct value *
arg_of_kind(struct call *c, size_t i, enum value_kind kind)
{
    if (c->args[i]->kind == kind)
        return c->args[i];
    arg_error(c, i, "a %s is needed, this is a %s", value_kind_name(kind),
              value_kind_name(c->args[i]->kind));
    return kind == VALUE_LIST ? value_list(c->ev->ctx) : value_map(c->ev->ctx);
}

struct value *
arg_list(struct call *c, size_t i)
{
    return arg_of_kind(c, i, VALUE_LIST);
}

struct value *
arg_map(struct call *c, size_t i)
{
    return arg_of_kind(c, i, VALUE_MAP);
}

struct value *
ret_converted(struct call *c, size_t i, const struct vtype *t, struct value *v)
{
    char why[200];
    struct value *out = t != NULL ? vtype_convert(c->ev, &c->e->r, t, v, why, sizeof(why)) : NULL;
    return out != NULL || t == NULL ? out : arg_error(c, i, "%s", why);
}

static struct value *
arg_list_of(struct call *c, size_t i, const struct vtype *t)
{
    struct value *l = arg_list(c, i);
    struct value *out = c->failed ? NULL : ret_converted(c, i, t, l);
    return out != NULL ? out : value_list(c->ev->ctx);
}

struct value *
arg_strings(struct call *c, size_t i)
{
    static const struct vtype string = {.kind = VT_STRING}, t = {.kind = VT_LIST, .elem = &string};
    return arg_list_of(c, i, &t);
}

struct value *
arg_uniform(struct call *c, size_t i)
{
    static const struct vtype any = {.kind = VT_ANY}, t = {.kind = VT_LIST, .elem = &any};
    return arg_list_of(c, i, &t);
}

bool
arg_null(struct call *c, size_t i)
{
    if (c->args[i]->kind == VALUE_NULL)
        arg_error(c, i, "argument must not be null");
    return c->args[i]->kind == VALUE_NULL;
}

struct value *
ret_strn(struct call *c, const char *s, size_t n)
{
    return ev_strn(c->ev, &c->e->r, s, n);
}

struct value *
ret_str(struct call *c, const char *s)
{
    return ret_strn(c, s, strlen(s));
}

struct value *
ret_int(struct call *c, int64_t i)
{
    return number_counted(c->ev->ctx, i);
}

struct value *
ret_bool(struct call *c, bool b)
{
    return value_bool(c->ev->ctx, b);
}

struct value *
ret_list(struct call *c, size_t n)
{
    return ev_list(c->ev, &c->e->r, n);
}

bool
call_charge(struct call *c, size_t steps, size_t bytes)
{
    return ev_charge(c->ev, &c->e->r, steps, bytes);
}

/* --- try, can, convert --- */

static struct value *
fn_try(struct call *c)
{
    for (size_t i = 0; i < c->e->n; i++) {
        if (i + 1 == c->e->n)
            return ev_expr(c->ev, c->sc, c->e->list[i]);
        struct value *v = ev_attempt(c->ev, c->sc, c->e->list[i]);
        if (v != NULL || c->ev->exhausted)
            return v;
    }
    return NULL;
}

static struct value *
fn_can(struct call *c)
{
    bool ok = ev_attempt(c->ev, c->sc, c->e->list[0]) != NULL;
    return c->ev->exhausted ? NULL : ret_bool(c, ok);
}

static struct value *
fn_convert(struct call *c)
{
    struct value *v = ev_expr(c->ev, c->sc, c->e->list[0]);
    const struct vtype *t = v != NULL ? vtype_parse(c->ev, c->e->list[1], false) : NULL;
    if (t == NULL)
        return NULL;
    char why[200];
    struct value *out = vtype_convert(c->ev, &c->e->r, t, v, why, sizeof(why));
    return out != NULL ? out : arg_error(c, 0, "%s", why);
}

const struct func func_type[] = {{"try", 1, -1, fn_try, true},
                                 {"can", 1, 1, fn_can, true},
                                 {"convert", 2, 2, fn_convert, true},
                                 {NULL, 0, 0, NULL, false}};
