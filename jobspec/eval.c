/* SPDX-License-Identifier: Apache-2.0
 *
 * The evaluator: expressions. See eval.h. In this order: the budget, to which steps and values are
 * charged; making values; references (variables, locals, what is only known at run time);
 * operators; collections and `for`; and last ev_expr(), which everything else calls back.
 *
 * A false or NULL result means that the diagnostic is told and the evaluation over.
 */
#include "jobspec/eval.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "jobspec/eval_int.h"
#include "jobspec/func/func.h"
#include "jobspec/lex.h"

void
ev_init(struct hcl_eval *ev, const void *ctx, struct hcl_sink *sink, unsigned flags)
{
    memset(ev, 0, sizeof(*ev));
    ev->ctx = ctx;
    ev->sink = sink;
    ev->flags = flags;
    ev->steps_left = HCL_STEPS_MAX;
    ev->bytes_left = HCL_BYTES_MAX;
}

bool
ev_charge(struct hcl_eval *ev, const struct hcl_range *r, size_t steps, size_t bytes)
{
    if (ev->exhausted)
        return false;
    if (steps <= ev->steps_left && bytes <= ev->bytes_left) {
        ev->steps_left -= steps;
        ev->bytes_left -= bytes;
        return true;
    }
    ev->exhausted = true;
    diag_error(ev->sink, r, "Too much to evaluate",
               "The expressions of this file need more than %d steps or %d MiB of values.",
               HCL_STEPS_MAX, HCL_BYTES_MAX >> 20);
    return false;
}

static void *
eval_fail(struct hcl_eval *ev, const struct hcl_range *r, const char *summary, const char *detail)
{
    diag_error(ev->sink, r, summary, "%s", detail);
    return NULL;
}

/* --- making values --- */

enum { VALUE_COST = 160 }; /* a value with the head of its allocation */

/* value_list_add and value_map_set grow by doubling: capacities are powers of two. */
static size_t
eval_capacity(size_t n)
{
    size_t c = 1;
    while (c < n)
        c *= 2;
    return c;
}

struct value *
ev_list(struct hcl_eval *ev, const struct hcl_range *r, size_t n)
{
    if (!ev_charge(ev, r, n + 1, VALUE_COST + eval_capacity(n) * sizeof(void *)))
        return NULL;
    struct value *v = value_list(ev->ctx);
    v->list.v = mem_array(v, struct value *, eval_capacity(n));
    v->list.n = n;
    return v;
}

struct indexed_pair {
    struct value_pair p;
    size_t at;
};

static int
pair_cmp(const void *a, const void *b)
{
    const struct indexed_pair *x = a, *y = b;
    int c = strcmp(x->p.k, y->p.k);
    return c != 0 ? c : (x->at > y->at) - (x->at < y->at);
}

struct value *
ev_map(struct hcl_eval *ev, const struct hcl_range *r, struct value_pair *pairs, size_t n)
{
    size_t cap = eval_capacity(n);
    if (!ev_charge(ev, r, n + 1, VALUE_COST + cap * (sizeof(*pairs) + sizeof(struct indexed_pair))))
        return NULL;
    struct indexed_pair *tmp = mem_array(NULL, struct indexed_pair, n);
    for (size_t i = 0; i < n; i++)
        tmp[i] = (struct indexed_pair){pairs[i], i};
    qsort(tmp, n, sizeof(*tmp), pair_cmp);
    struct value *v = value_map(ev->ctx);
    v->map.v = mem_array(v, struct value_pair, cap);
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n || strcmp(tmp[i].p.k, tmp[i + 1].p.k) != 0)
            v->map.v[v->map.n++] = tmp[i].p;
    mem_free(tmp);
    return v;
}

struct value *
ev_strn(struct hcl_eval *ev, const struct hcl_range *r, const char *s, size_t n)
{
    if (!ev_charge(ev, r, 1 + n / 64, VALUE_COST + n))
        return NULL;
    return value_strn(ev->ctx, s, n);
}

enum { NODES_PER_STEP = 8 };

/* `nodes` counts down what the budget allows. */
static bool
eval_measure(const struct value *v, unsigned depth, size_t *nodes)
{
    if (depth == 0 || *nodes == 0)
        return false;
    (*nodes)--;
    for (size_t i = 0; v->kind == VALUE_LIST && i < v->list.n; i++)
        if (!eval_measure(v->list.v[i], depth - 1, nodes))
            return false;
    for (size_t i = 0; v->kind == VALUE_MAP && i < v->map.n; i++)
        if (!eval_measure(v->map.v[i].v, depth - 1, nodes))
            return false;
    return true;
}

bool
ev_measure(struct hcl_eval *ev, const struct hcl_range *r, const struct value *v)
{
    if (v->kind != VALUE_LIST && v->kind != VALUE_MAP)
        return true;
    size_t max = ev->steps_left * NODES_PER_STEP, left = max;
    bool ok = eval_measure(v, VALUE_DEPTH_MAX, &left);
    if (!ok && left > 0) {
        diag_error(ev->sink, r, "Nested too deeply", "The value has more than %d levels.",
                   VALUE_DEPTH_MAX);
        return false;
    }
    return ev_charge(ev, r, (max - left) / NODES_PER_STEP + (ok ? 0 : 1), 0);
}

struct value *
ev_get(const struct value *map, const char *key)
{
    size_t lo = 0, hi = map->kind == VALUE_MAP ? map->map.n : 0;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(map->map.v[mid].k, key);
        if (c == 0)
            return map->map.v[mid].v;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* --- references --- */

static const struct hcl_scope *
eval_find(const struct hcl_scope *sc, const char *name)
{
    for (; sc != NULL; sc = sc->up)
        if (strcmp(sc->name, name) == 0)
            return sc;
    return NULL;
}

static bool
is_known(const struct hcl_eval *ev, const struct hcl_scope *sc, const char *name)
{
    if (eval_find(sc, name) != NULL)
        return true;
    return ev->names && (strcmp(name, "var") == 0 || strcmp(name, "local") == 0);
}

bool
ev_is_runtime(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    if (!ev_charge(ev, &e->r, 1, 0))
        return false;
    if (e->kind == EX_VAR)
        return !is_known(ev, sc, e->name);
    if (e->a != NULL && ev_is_runtime(ev, sc, e->a))
        return true;
    struct hcl_scope key = {sc, e->name2, NULL}, val = {sc, e->name, NULL};
    if (e->kind == EX_FOR || e->kind == EX_TFOR) {
        if (e->name2 != NULL)
            val.up = &key;
        sc = &val;
    }
    const struct expr *kids[] = {e->b, e->c, e->d};
    for (size_t i = 0; i < ARRAY_LEN(kids); i++)
        if (kids[i] != NULL && ev_is_runtime(ev, sc, kids[i]))
            return true;
    /* the second argument of convert() is a type, whose words are no names */
    bool typed = e->kind == EX_CALL && strcmp(e->name, "convert") == 0;
    for (size_t i = 0; i < (typed && e->n > 1 ? 1 : e->n); i++)
        if (ev_is_runtime(ev, sc, e->list[i]))
            return true;
    return false;
}

static struct value *
local_value(struct hcl_eval *ev, struct hcl_local *l, const struct hcl_range *r)
{
    if (l->v != NULL)
        return l->v;
    if (l->busy) {
        diag_error(ev->sink, r, "Circular reference", "The local \"%s\" refers to itself.",
                   l->name);
        return NULL;
    }
    struct value *item = TAKE(ev->item);
    l->busy = true;
    l->v = ev_expr(ev, NULL, l->expr);
    l->busy = false;
    ev->item = item;
    return l->v;
}

static struct value *
all_locals(struct hcl_eval *ev, const struct hcl_range *r)
{
    if (!ev_charge(ev, r, ev->n_locals, ev->n_locals * sizeof(struct value_pair)))
        return NULL;
    struct value_pair *pairs = mem_array(ev->ctx, struct value_pair, ev->n_locals);
    for (size_t i = 0; i < ev->n_locals; i++) {
        pairs[i].k = ev->locals[i].name;
        pairs[i].v = local_value(ev, &ev->locals[i], r);
        if (pairs[i].v == NULL)
            return NULL;
    }
    return ev_map(ev, r, pairs, ev->n_locals);
}

static bool
is_runtime_root(const char *name)
{
    static const char *const roots[] = {"attr",   "node",   "meta",  "env",
                                        "device", "unique", "secret"};
    for (size_t i = 0; i < ARRAY_LEN(roots); i++)
        if (strcmp(roots[i], name) == 0)
            return true;
    return str_prefix(name, "NOMAD_");
}

static struct value *
eval_var(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    const struct hcl_scope *b = eval_find(sc, e->name);
    if (b != NULL && b->v != NULL)
        return b->v;
    if (is_known(ev, sc, e->name))
        return strcmp(e->name, "var") == 0 ? ev->vars : all_locals(ev, &e->r);
    if ((ev->flags & HCL_LITERAL) != 0)
        diag_error(ev->sink, &e->r, "Unquoted text",
                   "References are not possible here; write \"%s\" in quotes for a string.",
                   e->name);
    else if (is_runtime_root(e->name))
        diag_error(
            ev->sink, &e->r, "Known at run time only",
            "\"%s\" has no value when the file is read. Write it in quotes, \"${%s...}\", and "
            "the scheduler or the client puts it in.",
            e->name, e->name);
    else
        diag_error(ev->sink, &e->r, "Unknown variable",
                   "There is no variable named \"%s\". Strings need quotes; variables are written "
                   "var.%s, locals local.%s.",
                   e->name, e->name, e->name);
    return NULL;
}

static const char **
map_keys(const void *ctx, const struct value *m, size_t *ret_n)
{
    size_t n = m->map.n < 1000 ? m->map.n : 1000;
    const char **names = mem_array(ctx, const char *, n);
    for (size_t i = 0; i < n; i++)
        names[i] = m->map.v[i].k;
    *ret_n = n;
    return names;
}

static struct value *
get_attr(struct hcl_eval *ev, const struct value *v, const struct expr *e)
{
    if (v->kind == VALUE_NULL)
        return eval_fail(ev, &e->r, "Attempt to get attribute from null value",
                         "This value is null, so it does not have any attributes.");
    if (v->kind != VALUE_MAP) {
        diag_error(ev->sink, &e->name_r, "Unsupported attribute",
                   v->kind == VALUE_LIST ? "A list has no attribute \"%s\"; take an element with "
                                           "[0], or of all with [*]."
                                         : "This value has no attribute \"%s\".",
                   e->name);
        return NULL;
    }
    struct value *found = ev_get(v, e->name);
    if (found != NULL)
        return found;
    size_t n = 0;
    const char **names = diag_wanted(ev->sink) ? map_keys(ev->ctx, v, &n) : NULL;
    bool var = e->a->kind == EX_VAR && strcmp(e->a->name, "var") == 0;
    diag_error(ev->sink, &e->name_r, var ? "Unknown variable" : "Unsupported attribute",
               var ? "No variable named \"%s\" is declared.%s"
                   : "This object does not have an attribute named \"%s\".%s",
               e->name, diag_suggest(ev->sink, e->name, names, n));
    return NULL;
}

/* local.x evaluates x only. */
static struct value *
one_local(struct hcl_eval *ev, const struct expr *e)
{
    if (!ev_charge(ev, &e->r, ev->n_locals / 16, 0))
        return NULL;
    for (size_t i = 0; i < ev->n_locals; i++)
        if (strcmp(ev->locals[i].name, e->name) == 0)
            return local_value(ev, &ev->locals[i], &e->r);
    size_t n = diag_wanted(ev->sink) ? ev->n_locals : 0;
    const char **names = mem_array(ev->sink->ctx, const char *, n);
    for (size_t i = 0; i < n; i++)
        names[i] = ev->locals[i].name;
    diag_error(ev->sink, &e->name_r, "Unknown local", "No local named \"%s\" is declared.%s",
               e->name, diag_suggest(ev->sink, e->name, names, n));
    return NULL;
}

static struct value *
eval_attr(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    if (ev->names && e->a->kind == EX_VAR && strcmp(e->a->name, "local") == 0 &&
        eval_find(sc, "local") == NULL)
        return one_local(ev, e);
    struct value *v = ev_expr(ev, sc, e->a);
    return v != NULL ? get_attr(ev, v, e) : NULL;
}

static struct value *
eval_index(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    struct value *v = ev_expr(ev, sc, e->a);
    struct value *k = v != NULL ? ev_expr(ev, sc, e->b) : NULL;
    if (k == NULL)
        return NULL;
    int64_t i;
    if (v->kind == VALUE_LIST && v->form == FORM_SET)
        return eval_fail(ev, &e->a->r, "Invalid index", "The elements of a set have no index.");
    if (v->kind == VALUE_LIST) {
        if (!number_int(k, &i))
            return eval_fail(ev, &e->b->r, "Invalid index",
                             "The index of a list is a whole number.");
        if (i >= 0 && (uint64_t)i < v->list.n)
            return v->list.v[i];
        diag_error(ev->sink, &e->b->r, "Invalid index",
                   "There is no element %lld: the list has %zu elements.", (long long)i, v->list.n);
        return NULL;
    }
    if (v->kind == VALUE_MAP) {
        const char *key = value_text(ev->ctx, k);
        if (key == NULL)
            return eval_fail(ev, &e->b->r, "Invalid index", "The key of a map is a string.");
        struct value *found = ev_get(v, key);
        if (found == NULL)
            diag_error(ev->sink, &e->b->r, "Invalid index",
                       "The given key \"%s\" does not identify an element of this map.", key);
        return found;
    }
    return eval_fail(ev, &e->a->r, "Invalid index",
                     "Only lists, tuples, maps and objects have elements.");
}

static struct value *
eval_splat(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    struct value *v = ev_expr(ev, sc, e->a);
    if (v == NULL)
        return NULL;
    size_t n = v->kind == VALUE_LIST ? v->list.n : v->kind == VALUE_NULL ? 0 : 1;
    struct value *out = ev_list(ev, &e->r, n);
    if (out == NULL)
        return NULL;
    struct value *outer = ev->item;
    for (size_t i = 0; i < n; i++) {
        ev->item = v->kind == VALUE_LIST ? v->list.v[i] : v;
        out->list.v[i] = ev_expr(ev, sc, e->b);
        if (out->list.v[i] == NULL) {
            out = NULL;
            break;
        }
    }
    ev->item = outer;
    return out;
}

/* --- operators --- */

struct value *
ev_bad_operand(struct hcl_eval *ev, const struct expr *e, const struct value *v, const char *need)
{
    diag_error(ev->sink, &e->r, "Invalid operand", "Unsuitable value: %s is needed, this is a %s.",
               need, value_kind_name(v->kind));
    return NULL;
}

/* NULL of a number that is known to be one: the result has no room. */
static struct value *
in_range(struct hcl_eval *ev, const struct expr *e, struct value *v)
{
    if (v == NULL || !ev_charge(ev, &e->r, 1, v->kind == VALUE_BIG ? VALUE_COST : 0))
        return v == NULL ? eval_fail(ev, &e->r, "Number too large", "The result is out of range.")
                         : NULL;
    return v;
}

static struct value *
eval_unary(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    struct value *v = ev_expr(ev, sc, e->a);
    if (v == NULL)
        return NULL;
    if (e->op == TOK_NOT) {
        bool b;
        return value_truth(v, &b) ? value_bool(ev->ctx, !b) : ev_bad_operand(ev, e->a, v, "a bool");
    }
    if (!number_is(v))
        return ev_bad_operand(ev, e->a, v, "a number");
    return in_range(ev, e, number_negate(ev->ctx, v));
}

static bool
are_numbers(struct hcl_eval *ev, const struct expr *e, const struct value *a, const struct value *b)
{
    const struct value *v = !number_is(a) ? a : !number_is(b) ? b : NULL;
    if (v != NULL)
        ev_bad_operand(ev, v == a ? e->a : e->b, v, "a number");
    return v == NULL;
}

static struct value *
eval_arithmetic(struct hcl_eval *ev, const struct expr *e, const struct value *a,
                const struct value *b)
{
    if (!are_numbers(ev, e, a, b))
        return NULL;
    if ((e->op == TOK_SLASH || e->op == TOK_PERCENT) && number_sign(b) == 0)
        return eval_fail(ev, &e->r, "Division by zero", "The second operand is zero.");
    return in_range(ev, e, number_operate(ev->ctx, e->op, a, b));
}

static struct value *
eval_comparison(struct hcl_eval *ev, const struct expr *e, const struct value *a,
                const struct value *b)
{
    if (!are_numbers(ev, e, a, b))
        return NULL;
    int c = number_compare(a, b);
    if ((e->op == TOK_LE || e->op == TOK_GE) && number_equal(a, b))
        c = 0;
    bool r = e->op == TOK_LT ? c < 0 : e->op == TOK_GT ? c > 0 : e->op == TOK_LE ? c <= 0 : c >= 0;
    return value_bool(ev->ctx, r);
}

static struct value *
eval_binary(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    struct value *a = ev_expr(ev, sc, e->a);
    if (a == NULL)
        return NULL;
    bool x, y;
    struct value *b = ev_expr(ev, sc, e->b);
    if (b == NULL)
        return NULL;
    if (e->op == TOK_AND || e->op == TOK_OR) { /* both sides are evaluated */
        if (!value_truth(a, &x))
            return ev_bad_operand(ev, e->a, a, "a bool");
        if (!value_truth(b, &y))
            return ev_bad_operand(ev, e->b, b, "a bool");
        return value_bool(ev->ctx, e->op == TOK_AND ? x && y : x || y);
    }
    if ((e->op == TOK_EQ || e->op == TOK_NE) &&
        (!ev_measure(ev, &e->a->r, a) || !ev_measure(ev, &e->b->r, b)))
        return NULL;
    if (e->op == TOK_EQ || e->op == TOK_NE)
        return value_bool(ev->ctx, value_same(a, b) == (e->op == TOK_EQ));
    if (e->op == TOK_LT || e->op == TOK_GT || e->op == TOK_LE || e->op == TOK_GE)
        return eval_comparison(ev, e, a, b);
    return eval_arithmetic(ev, e, a, b);
}

static struct value *
eval_cond(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    struct value *c = ev_expr(ev, sc, e->a);
    bool b;
    if (c == NULL)
        return NULL;
    if (!value_truth(c, &b))
        return ev_bad_operand(ev, e->a, c, "a bool");
    struct value *v = ev_expr(ev, sc, b ? e->b : e->c);
    if (v == NULL)
        return NULL;
    /* Both results have one type; a branch that cannot be evaluated, or null, has none. */
    struct value *other = ev_attempt(ev, sc, b ? e->c : e->b);
    if (ev->exhausted || other == NULL || other->kind == VALUE_NULL || v->kind == VALUE_NULL)
        return ev->exhausted ? NULL : v;
    if (v->kind == other->kind && v->kind != VALUE_LIST && v->kind != VALUE_MAP)
        return v;
    const struct vtype *t = vtype_unify(ev, (struct value *const[]){v, other}, 2);
    char why[200];
    if (t == NULL)
        return eval_fail(ev, &e->r, "Inconsistent conditional result types",
                         "The true and false result expressions must have consistent types.");
    if ((v = vtype_convert(ev, &e->r, t, v, why, sizeof(why))) == NULL)
        return eval_fail(ev, &e->r, "Inconsistent conditional result types", why);
    return v;
}

/* --- collections --- */

static struct value *
eval_tuple(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    struct value *v = ev_list(ev, &e->r, e->n);
    for (size_t i = 0; v != NULL && i < e->n; i++)
        if ((v->list.v[i] = ev_expr(ev, sc, e->list[i])) == NULL)
            return NULL;
    return v;
}

static const char *
map_key(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    struct value *k = ev_expr(ev, sc, e);
    if (k == NULL)
        return NULL;
    const char *s = value_text(ev->ctx, k);
    if (s == NULL)
        diag_error(ev->sink, &e->r, "Invalid key", "A key must be a string, this is a %s.",
                   value_kind_name(k->kind));
    return s;
}

static struct value *
eval_object(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    size_t n = e->n / 2;
    if (!ev_charge(ev, &e->r, n, n * sizeof(struct value_pair)))
        return NULL;
    struct value_pair *pairs = mem_array(ev->ctx, struct value_pair, n);
    for (size_t i = 0; i < n; i++) {
        pairs[i].k = map_key(ev, sc, e->list[2 * i]);
        pairs[i].v = pairs[i].k != NULL ? ev_expr(ev, sc, e->list[2 * i + 1]) : NULL;
        if (pairs[i].v == NULL)
            return NULL;
    }
    return ev_map(ev, &e->r, pairs, n);
}

void
ev_turn(struct hcl_eval *ev, struct turn *t, const struct hcl_scope *sc, const struct expr *e,
        const struct value *coll, size_t i)
{
    bool map = coll->kind == VALUE_MAP;
    t->val = (struct hcl_scope){sc, e->name, map ? coll->map.v[i].v : coll->list.v[i]};
    if (e->name2 != NULL) {
        struct value *k = map                      ? value_str(ev->ctx, coll->map.v[i].k)
                          : coll->form == FORM_SET ? coll->list.v[i]
                                                   : number_counted(ev->ctx, (int64_t)i);
        t->key = (struct hcl_scope){sc, e->name2, k};
        t->val.up = &t->key;
    }
    t->sc = &t->val;
}

struct value *
ev_loop_over(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e, size_t *ret_n)
{
    struct value *coll = ev_expr(ev, sc, e->a);
    if (coll == NULL)
        return NULL;
    if (coll->kind != VALUE_LIST && coll->kind != VALUE_MAP) {
        diag_error(ev->sink, &e->a->r, "Iteration over non-iterable value",
                   "A list or a map is needed here, this is a %s.", value_kind_name(coll->kind));
        return NULL;
    }
    *ret_n = coll->kind == VALUE_MAP ? coll->map.n : coll->list.n;
    if (!ev_charge(ev, &e->r, *ret_n, *ret_n * (sizeof(struct value_pair) + VALUE_COST)))
        return NULL;
    return coll;
}

/* 1: take this element, 0: leave it, -1: error. */
static int
for_takes(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    if (e->d == NULL)
        return 1;
    struct value *c = ev_expr(ev, sc, e->d);
    bool b;
    if (c == NULL)
        return -1;
    if (value_truth(c, &b))
        return b;
    ev_bad_operand(ev, e->d, c, "a bool");
    return -1;
}

static struct value *
for_tuple(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    size_t n;
    struct value *coll = ev_loop_over(ev, sc, e, &n);
    struct value *out = coll != NULL ? ev_list(ev, &e->r, n) : NULL;
    if (out == NULL)
        return NULL;
    out->list.n = 0;
    for (size_t i = 0; i < n; i++) {
        struct turn t;
        ev_turn(ev, &t, sc, e, coll, i);
        int take = for_takes(ev, t.sc, e);
        struct value *v = take > 0 ? ev_expr(ev, t.sc, e->c) : NULL;
        if (take < 0 || (take > 0 && v == NULL))
            return NULL;
        if (take > 0)
            out->list.v[out->list.n++] = v;
    }
    return out;
}

/* Grouping: pairs of equal keys become one list, in order. */
static struct value *
group_pairs(struct hcl_eval *ev, const struct expr *e, struct value_pair *pairs, size_t n)
{
    struct value *keys = ev_map(ev, &e->r, pairs, n);
    if (keys == NULL || !ev_charge(ev, &e->r, n, n * VALUE_COST))
        return NULL;
    for (size_t i = 0; i < keys->map.n; i++)
        keys->map.v[i].v = value_list(ev->ctx);
    for (size_t i = 0; i < n; i++)
        value_list_add(ev_get(keys, pairs[i].k), pairs[i].v);
    return keys;
}

static struct value *
for_object(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    size_t n, got = 0;
    struct value *coll = ev_loop_over(ev, sc, e, &n);
    if (coll == NULL)
        return NULL;
    struct value_pair *pairs = mem_array(ev->ctx, struct value_pair, n);
    for (size_t i = 0; i < n; i++) {
        struct turn t;
        ev_turn(ev, &t, sc, e, coll, i);
        int take = for_takes(ev, t.sc, e);
        if (take < 0)
            return NULL;
        if (take == 0)
            continue;
        pairs[got].k = map_key(ev, t.sc, e->b);
        pairs[got].v = pairs[got].k != NULL ? ev_expr(ev, t.sc, e->c) : NULL;
        if (pairs[got++].v == NULL)
            return NULL;
    }
    if (e->flag)
        return group_pairs(ev, e, pairs, got);
    struct value *out = ev_map(ev, &e->r, pairs, got);
    if (out != NULL && out->map.n < got)
        return eval_fail(
            ev, &e->b->r, "Duplicate object key",
            "Two elements give the same key; write \"...\" after the value to group them.");
    return out;
}

/* --- all --- */

static struct value *
eval_kind(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    switch (e->kind) {
    case EX_LITERAL:
        return e->value;
    case EX_TEMPLATE:
    case EX_INTERP:
    case EX_TIF:
    case EX_TFOR:
        return ev_template(ev, sc, e);
    case EX_VAR:
        return eval_var(ev, sc, e);
    case EX_ATTR:
        return eval_attr(ev, sc, e);
    case EX_INDEX:
        return eval_index(ev, sc, e);
    case EX_SPLAT:
        return eval_splat(ev, sc, e);
    case EX_ITEM:
        ASSERT(ev->item != NULL);
        return ev->item;
    case EX_CALL:
        return func_call(ev, sc, e);
    case EX_UNARY:
        return eval_unary(ev, sc, e);
    case EX_BINARY:
        return eval_binary(ev, sc, e);
    case EX_COND:
        return eval_cond(ev, sc, e);
    case EX_TUPLE:
        return eval_tuple(ev, sc, e);
    case EX_OBJECT:
        return eval_object(ev, sc, e);
    case EX_FOR:
        return e->b != NULL ? for_object(ev, sc, e) : for_tuple(ev, sc, e);
    case EX_PAREN:
        return ev_expr(ev, sc, e->a);
    }
    ASSERT(!"a kind of expression");
    return NULL;
}

struct value *
ev_expr(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    if (!ev_charge(ev, &e->r, 1, e->kind == EX_LITERAL ? 0 : VALUE_COST))
        return NULL;
    if (ev->depth >= EVAL_DEPTH_MAX)
        return eval_fail(ev, &e->r, "Nested too deeply",
                         "Locals and expressions refer to each other "
                         "over more than 800 levels.");
    ev->depth++;
    struct value *v = eval_kind(ev, sc, e);
    ev->depth--;
    return v;
}

struct value *
ev_attempt(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    struct hcl_diags quiet = HCL_DIAGS_INIT;
    struct hcl_sink *outer = ev->sink;
    auto_mem void *tmp = mem_ctx("attempt");
    struct hcl_sink sink = {tmp, &quiet, true};
    unsigned depth = ev->depth;
    struct value *item = ev->item;
    ev->sink = &sink;
    struct value *v = ev_expr(ev, sc, e);
    ev->sink = outer;
    ev->depth = depth;
    ev->item = item;
    if (ev->exhausted && quiet.errors > 0)
        diag_error(outer, &e->r, "Too much to evaluate", "The limit of evaluation was hit here.");
    return v;
}
