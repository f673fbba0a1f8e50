/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables and locals of a job file. See vars.h. In this order: declarations with their types and
 * validations; the values that were given, later ones over earlier ones (environment, files,
 * arguments); the checks of what each then has; and vars_load(), which does all that before the job
 * is evaluated.
 */
#include "jobspec/vars.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "jobspec/limits.h"
#include "jobspec/parse.h"

struct check {
    const struct expr *condition, *message;
    struct hcl_range r;
};

struct var {
    const char *name;
    struct hcl_range r;
    const struct vtype *type; /* NULL: not given */
    const struct expr *dflt;
    struct value *v;
    struct hcl_range v_r; /* where v comes from */
    struct check *checks;
    size_t n_checks;
    bool failed; /* a value was given and refused */
};

struct vars {
    struct hcl_eval *ev;
    const struct jobspec_input *in;
    struct var *v;
    size_t n;
    bool ok;
};

/* A diagnostic, and the file is bad. */
#define bad(vs, r, ...) ((void)diag_error((vs)->ev->sink, (r), __VA_ARGS__), (vs)->ok = false)

static struct var *
vars_find(struct vars *vs, const char *name)
{
    for (size_t i = 0; i < vs->n; i++)
        if (strcmp(vs->v[i].name, name) == 0)
            return &vs->v[i];
    return NULL;
}

static struct var *
vars_declare(struct vars *vs, const char *name, const struct hcl_range *r)
{
    struct var *v = vars_find(vs, name);
    if (v != NULL || vs->n >= HCL_VARIABLES_MAX) {
        diag_error(vs->ev->sink, r, v != NULL ? "Duplicate variable" : "Too many variables",
                   v != NULL ? "\"%s\" was already declared at line %u."
                             : "\"%s\" is one too many.",
                   name, v != NULL ? v->r.start.line : 0);
        vs->ok = false;
        return NULL;
    }
    if ((vs->n & (vs->n - 1)) == 0)
        mem_resize(vs->ev->ctx, vs->v, struct var, vs->n > 0 ? vs->n * 2 : 1);
    ASSERT(vs->n < HCL_VARIABLES_MAX);
    v = &vs->v[vs->n++];
    memset(v, 0, sizeof(*v));
    v->name = name;
    v->r = *r;
    return v;
}

/* --- declarations --- */

static void
read_validation(struct vars *vs, struct var *v, const struct block *b)
{
    struct check c = {NULL, NULL, b->r};
    for (size_t i = 0; i < b->body->n_attrs; i++) {
        const struct attr *a = b->body->attrs[i];
        if (strcmp(a->name, "condition") == 0)
            c.condition = a->expr;
        else if (strcmp(a->name, "error_message") == 0)
            c.message = a->expr;
        else
            bad(vs, &a->name_r, "Unsupported argument",
                "\"%s\" is not expected in a validation block.", a->name);
    }
    if (c.condition == NULL || c.message == NULL) {
        bad(vs, &b->r, "Invalid validation",
            "\"%s\": a validation block needs condition and error_message.", v->name);
        return;
    }
    if ((v->n_checks & (v->n_checks - 1)) == 0)
        mem_resize(vs->ev->ctx, v->checks, struct check, v->n_checks > 0 ? v->n_checks * 2 : 1);
    v->checks[v->n_checks++] = c;
}

static void
read_variable(struct vars *vs, const struct block *b)
{
    if (b->n_labels != 1 || !lex_is_ident(b->labels[0].s, strlen(b->labels[0].s))) {
        bad(vs, &b->r, "Invalid variable", "A variable has one name: %s \"name\" { ... }.",
            b->type);
        return;
    }
    struct var *v = vars_declare(vs, b->labels[0].s, &b->labels[0].r);
    if (v == NULL)
        return;
    for (size_t i = 0; i < b->body->n_attrs; i++) {
        const struct attr *a = b->body->attrs[i];
        if (strcmp(a->name, "type") == 0) {
            v->type = vtype_parse(vs->ev, a->expr, true);
            vs->ok = v->type != NULL && vs->ok;
        } else if (strcmp(a->name, "default") == 0) {
            v->dflt = a->expr;
        } else if (strcmp(a->name, "description") != 0) {
            bad(vs, &a->name_r, "Unsupported argument",
                "\"%s\" is not expected here; a variable has type, default, description and "
                "validation.",
                a->name);
        }
    }
    for (size_t i = 0; i < b->body->n_blocks; i++) {
        const struct block *in = b->body->blocks[i];
        if (strcmp(in->type, "validation") == 0)
            read_validation(vs, v, in);
        else
            bad(vs, &in->type_r, "Unsupported block type", "\"%s\" is not expected here.",
                in->type);
    }
}

static void
read_variables(struct vars *vs, const struct block *b)
{
    for (size_t i = 0; i < b->body->n_attrs; i++) {
        struct var *v = vars_declare(vs, b->body->attrs[i]->name, &b->body->attrs[i]->name_r);
        if (v != NULL)
            v->dflt = b->body->attrs[i]->expr;
    }
}

static void
read_locals(struct vars *vs, const struct block *b)
{
    struct hcl_eval *ev = vs->ev;
    for (size_t i = 0; i < b->body->n_attrs; i++) {
        const struct attr *a = b->body->attrs[i];
        if (ev->n_locals >= HCL_VARIABLES_MAX) {
            bad(vs, &a->name_r, "Too many locals", "A file has at most %d locals.",
                HCL_VARIABLES_MAX);
            return;
        }
        for (size_t k = 0; k < ev->n_locals; k++)
            if (strcmp(ev->locals[k].name, a->name) == 0)
                bad(vs, &a->name_r, "Duplicate local", "\"%s\" is already declared.", a->name);
        if ((ev->n_locals & (ev->n_locals - 1)) == 0)
            mem_resize(ev->ctx, ev->locals, struct hcl_local,
                       ev->n_locals > 0 ? ev->n_locals * 2 : 1);
        ev->locals[ev->n_locals++] = (struct hcl_local){a->name, a->expr, a->name_r, NULL, false};
    }
    for (size_t i = 0; i < b->body->n_blocks; i++)
        bad(vs, &b->body->blocks[i]->r, "Unexpected block", "\"%s\": locals are arguments.",
            b->body->blocks[i]->type);
}

/* --- values --- */

/* Converts to the declared type and keeps it. */
static void
vars_assign(struct vars *vs, struct var *v, struct value *val, const struct hcl_range *r)
{
    char why[200];
    if (val != NULL && v->type != NULL) {
        val = vtype_convert(vs->ev, r, v->type, val, why, sizeof(why));
        if (val == NULL) {
            diag_error(vs->ev->sink, r, "Invalid value for variable",
                       "The value of \"%s\" is not suitable: %s.", v->name, why);
            v->failed = true;
            vs->ok = false;
            return;
        }
    }
    if (val == NULL) {
        v->failed = true;
        vs->ok = false;
        return;
    }
    v->v = val;
    v->v_r = *r;
    if (v->type == NULL) /* a default without a type is of its own */
        v->type = vtype_unify(vs->ev, &val, 1);
}

/* Text from the command line or the environment: as it stands for strings and numbers, an
 * expression for the rest. */
static bool
is_plain(const struct var *v)
{
    return v->type == NULL || v->type->kind == VT_STRING || v->type->kind == VT_NUMBER;
}

/* A value from outside refers to nothing and calls nothing. */
static struct value *
vars_constant(struct vars *vs, const struct expr *e)
{
    unsigned flags = vs->ev->flags;
    vs->ev->flags |= HCL_LITERAL;
    struct value *v = ev_expr(vs->ev, NULL, e);
    vs->ev->flags = flags;
    return v;
}

static struct hcl_source *
text_source(struct vars *vs, const char *what, const char *name, const char *text)
{
    struct hcl_source *src = mem_new(vs->ev->ctx, struct hcl_source);
    src->name = mem_printf(vs->ev->ctx, "<%s %s>", what, name);
    src->s = text;
    src->n = strlen(text);
    return src;
}

static void
assign_text(struct vars *vs, struct var *v, const char *what, const char *text)
{
    const struct hcl_source *src = text_source(vs, what, v->name, text);
    struct hcl_range r = {src, {0, 1, 1}, {0, 1, 1}};
    r.end.byte = (uint32_t)(src->n < UINT32_MAX ? src->n : 0);
    if (!utf8_valid(text, src->n)) {
        diag_error(vs->ev->sink, NULL, "Invalid value for variable",
                   "The value of \"%s\" is not valid UTF-8.", v->name);
        vs->ok = false;
        return;
    }
    if (is_plain(v)) {
        vars_assign(vs, v, value_str(vs->ev->ctx, text), &r);
        return;
    }
    struct expr *e = parse_expression(vs->ev->ctx, src, vs->ev->sink);
    vars_assign(vs, v, e != NULL ? vars_constant(vs, e) : NULL, &r);
}

static void
vars_undeclared(struct vars *vs, const struct hcl_range *r, const char *where, const char *name)
{
    const char *names[HCL_VARIABLES_MAX];
    for (size_t i = 0; diag_wanted(vs->ev->sink) && i < vs->n; i++)
        names[i] = vs->v[i].name;
    const char *hint = diag_suggest(vs->ev->sink, name, names, vs->n);
    if (vs->in->lenient) {
        diag_warn(vs->ev->sink, r, "Undeclared variable",
                  "%s sets \"%s\", which the job file does not declare.%s", where, name, hint);
        return;
    }
    diag_error(vs->ev->sink, r, "Undeclared variable",
               "%s sets \"%s\", but the job file has no variable \"%s\".%s", where, name, name,
               hint);
    vs->ok = false;
}

static void
load_file(struct vars *vs, const struct jobspec_file *f)
{
    unsigned flags = str_suffix(f->name, ".json") ? HCL_JSON : 0;
    struct hcl_source *src = mem_new(vs->ev->ctx, struct hcl_source);
    src->name = mem_strdup(vs->ev->ctx, f->name);
    src->s = f->s;
    src->n = f->n;
    struct hcl_body *body = parse_file(vs->ev->ctx, src, flags, vs->ev->sink);
    if (body == NULL) {
        vs->ok = false;
        return;
    }
    for (size_t i = 0; i < body->n_blocks; i++)
        bad(vs, &body->blocks[i]->r, "Unexpected block",
            "\"%s\": a variable file holds only name = value.", body->blocks[i]->type);
    for (size_t i = 0; i < body->n_attrs; i++) {
        const struct attr *a = body->attrs[i];
        struct var *v = vars_find(vs, a->name);
        if (v == NULL) {
            vars_undeclared(vs, &a->name_r, "The variable file", a->name);
            continue;
        }
        vars_assign(vs, v, vars_constant(vs, a->expr), &a->expr->r);
    }
}

static void
load_args(struct vars *vs)
{
    for (size_t i = 0; i < vs->in->vars->n; i++) {
        const char *arg = vs->in->vars->v[i], *eq = strchr(arg, '=');
        if (eq == NULL || eq == arg) {
            bad(vs, NULL, "Invalid -var", "\"%s\" is not of the form name=value.", arg);
            continue;
        }
        const char *name = mem_strndup(vs->ev->ctx, arg, (size_t)(eq - arg));
        struct var *v = vars_find(vs, name);
        if (v != NULL)
            assign_text(vs, v, "-var", eq + 1);
        else
            vars_undeclared(vs, NULL, "-var", name);
    }
}

static void
check_var(struct vars *vs, struct var *v)
{
    if (v->v == NULL) {
        if (!v->failed)
            bad(vs, &v->r, "Unset variable",
                "The variable \"%s\" has no default and no value: give one with -var, -var-file or "
                "NOMAD_VAR_.",
                v->name);
        return;
    }
    for (size_t i = 0; i < v->n_checks; i++) {
        struct value *c = ev_expr(vs->ev, NULL, v->checks[i].condition);
        bool good = false;
        if (c == NULL || !value_truth(c, &good)) {
            vs->ok = false;
            if (c != NULL)
                bad(vs, &v->checks[i].condition->r, "Invalid validation",
                    "The condition of \"%s\" is neither true nor false.", v->name);
            continue;
        }
        if (good)
            continue;
        struct value *m = ev_expr(vs->ev, NULL, v->checks[i].message);
        const char *text = m != NULL ? value_text(vs->ev->ctx, m) : NULL;
        bad(vs, &v->r, "Invalid value for variable", "%s", text != NULL ? text : "It is refused.");
    }
}

static void
vars_publish(struct vars *vs)
{
    struct hcl_range none = {NULL, {0, 1, 1}, {0, 1, 1}};
    struct value_pair *pairs = mem_array(vs->ev->ctx, struct value_pair, vs->n);
    for (size_t i = 0; i < vs->n; i++) {
        pairs[i].k = vs->v[i].name;
        pairs[i].v = vs->v[i].v != NULL ? vs->v[i].v : value_null(vs->ev->ctx);
    }
    vs->ev->vars = ev_map(vs->ev, &none, pairs, vs->n);
    if (vs->ev->vars == NULL)
        vs->ev->vars = value_map(vs->ev->ctx);
}

static void
assign_values(struct vars *vs)
{
    for (size_t i = 0; i < vs->n; i++) {
        struct var *v = &vs->v[i];
        vs->ev->names = false; /* defaults are constants */
        if (v->dflt != NULL)
            vars_assign(vs, v, ev_expr(vs->ev, NULL, v->dflt), &v->dflt->r);
        const char *text = vs->in->env_vars != NULL ? str_map_get(vs->in->env_vars, v->name) : NULL;
        if (text != NULL)
            assign_text(vs, v, "NOMAD_VAR", text);
    }
    for (size_t i = 0; i < vs->in->n_var_files; i++)
        load_file(vs, &vs->in->var_files[i]);
    if (vs->in->vars != NULL)
        load_args(vs);
}

bool
vars_load(struct hcl_eval *ev, const struct hcl_body *body, const struct jobspec_input *in)
{
    struct vars vs = {.ev = ev, .in = in, .ok = true};
    for (size_t i = 0; i < body->n_blocks; i++) {
        const struct block *b = body->blocks[i];
        if (strcmp(b->type, "variable") == 0)
            read_variable(&vs, b);
        else if (strcmp(b->type, "variables") == 0)
            read_variables(&vs, b);
        else if (strcmp(b->type, "locals") == 0)
            read_locals(&vs, b);
    }
    assign_values(&vs);
    vars_publish(&vs);
    ev->names = true;
    for (size_t i = 0; i < vs.n; i++)
        check_var(&vs, &vs.v[i]);
    return vs.ok;
}
