/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions between kinds of values, and type constraints. See eval.h.
 *
 * In this order: what a scalar is as text and truth; the order of values; the types that `type =`
 * of a variable names, from the expression and back to text; conversion of a value to such a type,
 * which says the path to the element that does not fit.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "jobspec/eval.h"

/* --- scalars --- */

const char *
value_text(const void *ctx, const struct value *v)
{
    switch (v->kind) {
    case VALUE_STRING:
        return v->str.s;
    case VALUE_INT:
    case VALUE_FLOAT:
    case VALUE_BIG:
        return number_text(ctx, v);
    case VALUE_BOOL:
        return v->b ? "true" : "false";
    default:
        return NULL;
    }
}

bool
value_truth(const struct value *v, bool *ret)
{
    if (v->kind == VALUE_BOOL) {
        *ret = v->b;
        return true;
    }
    if (v->kind != VALUE_STRING)
        return false;
    *ret = str_eq(v->str.s, "true") || str_eq(v->str.s, "1");
    return *ret || str_eq(v->str.s, "false") || str_eq(v->str.s, "0");
}

/* --- order --- */

static int
convert_rank(const struct value *v)
{
    return v->kind == VALUE_FLOAT || v->kind == VALUE_BIG ? (int)VALUE_INT : (int)v->kind;
}

static int
order_numbers(const struct value *a, const struct value *b)
{
    return number_equal(a, b) ? 0 : number_compare(a, b) < 0 ? -1 : 1;
}

static int
order_maps(const struct value *a, const struct value *b)
{
    for (size_t i = 0; i < a->map.n && i < b->map.n; i++) {
        int c = strcmp(a->map.v[i].k, b->map.v[i].k);
        c = c != 0 ? (c > 0) - (c < 0) : value_order(a->map.v[i].v, b->map.v[i].v);
        if (c != 0)
            return c;
    }
    return (a->map.n > b->map.n) - (a->map.n < b->map.n);
}

int
value_order(const struct value *a, const struct value *b)
{
    if (convert_rank(a) != convert_rank(b))
        return convert_rank(a) < convert_rank(b) ? -1 : 1;
    switch (a->kind) {
    case VALUE_NULL:
    case VALUE_BOOL:
    case VALUE_STRING:
        return value_compare(a, b);
    case VALUE_LIST:
        for (size_t i = 0; i < a->list.n && i < b->list.n; i++) {
            int c = value_order(a->list.v[i], b->list.v[i]);
            if (c != 0)
                return c;
        }
        return (a->list.n > b->list.n) - (a->list.n < b->list.n);
    case VALUE_MAP:
        return order_maps(a, b);
    default:
        return order_numbers(a, b);
    }
}

int
value_order_at(const void *a, const void *b)
{
    return value_order(*(struct value *const *)a, *(struct value *const *)b);
}

static bool
same_type(const struct value *a, const struct value *b)
{
    if (convert_rank(a) != convert_rank(b))
        return false;
    if (a->kind == VALUE_LIST) {
        if (a->form != b->form || a->list.n != b->list.n)
            return false;
        for (size_t i = 0; i < a->list.n; i++)
            if (!same_type(a->list.v[i], b->list.v[i]))
                return false;
    } else if (a->kind == VALUE_MAP) {
        if (a->form != b->form || a->map.n != b->map.n)
            return false;
        for (size_t i = 0; i < a->map.n; i++)
            if (!same_type(a->map.v[i].v, b->map.v[i].v))
                return false;
    }
    return true;
}

bool
value_same(const struct value *a, const struct value *b)
{
    return a == b || (same_type(a, b) && value_order(a, b) == 0);
}

/* --- type constraints --- */

static const struct vtype vt_any = {.kind = VT_ANY};

static const struct vtype *
bad_type(struct hcl_eval *ev, const struct hcl_range *r, const char *detail)
{
    diag_error(ev->sink, r, "Invalid type", "%s", detail);
    return NULL;
}

/* `exact`: of a variable, which says what it takes. */
static const struct vtype *
parse_simple(struct hcl_eval *ev, const struct hcl_range *r, const char *name, bool exact)
{
    static const struct {
        const char *name;
        struct vtype t;
    } simple[] = {{"string", {.kind = VT_STRING}},
                  {"number", {.kind = VT_NUMBER}},
                  {"bool", {.kind = VT_BOOL}}};
    for (size_t i = 0; i < ARRAY_LEN(simple); i++)
        if (strcmp(simple[i].name, name) == 0)
            return &simple[i].t;
    if (strcmp(name, "any") == 0 && !exact)
        return &vt_any;
    if (strcmp(name, "any") == 0)
        return bad_type(ev, r,
                        "The keyword \"any\" cannot be used in this type specification: an exact "
                        "type is required.");
    if (strcmp(name, "list") == 0 || strcmp(name, "set") == 0 || strcmp(name, "map") == 0)
        return bad_type(ev, r,
                        "The list, set and map type constructors require one argument specifying "
                        "the element type.");
    return bad_type(ev, r,
                    "A type specification is either a primitive type keyword (bool, number, "
                    "string) or a complex type constructor call, like list(string).");
}

/* optional(TYPE) and optional(TYPE, DEFAULT) of field i. The default is a constant of the type. */
static bool
parse_optional(struct hcl_eval *ev, const struct expr *e, struct vtype *t, size_t i, bool exact)
{
    char why[200];
    if (e->n < 1 || e->n > 2) {
        bad_type(ev, &e->r, "optional takes a type and at most a default: optional(number, 3).");
        return false;
    }
    t->optional[i] = true;
    if ((t->types[i] = vtype_parse(ev, e->list[0], exact)) == NULL || e->n == 1)
        return t->types[i] != NULL;
    bool names = ev->names;
    ev->names = false;
    struct value *v = ev_expr(ev, NULL, e->list[1]);
    ev->names = names;
    if (v == NULL)
        return false;
    t->dflts[i] = vtype_convert(ev, &e->list[1]->r, t->types[i], v, why, sizeof(why));
    if (t->dflts[i] == NULL)
        diag_error(ev->sink, &e->list[1]->r, "Invalid default value for optional attribute",
                   "The default of \"%s\" is not suitable: %s.", t->names[i], why);
    return t->dflts[i] != NULL;
}

static bool
parse_fields(struct hcl_eval *ev, const struct expr *obj, struct vtype *t, bool exact)
{
    t->n = obj->n / 2;
    t->names = mem_array(ev->ctx, const char *, t->n);
    t->types = mem_array(ev->ctx, const struct vtype *, t->n);
    t->optional = mem_array(ev->ctx, bool, t->n);
    t->dflts = mem_array(ev->ctx, struct value *, t->n);
    for (size_t i = 0; i < t->n; i++) {
        const struct expr *k = obj->list[2 * i], *v = obj->list[2 * i + 1];
        if (k->kind != EX_LITERAL || k->value->kind != VALUE_STRING) {
            bad_type(ev, &k->r, "The keys of an object type are names.");
            return false;
        }
        t->names[i] = k->value->str.s;
        if (v->kind == EX_CALL && strcmp(v->name, "optional") == 0) {
            if (!parse_optional(ev, v, t, i, exact))
                return false;
        } else if ((t->types[i] = vtype_parse(ev, v, exact)) == NULL) {
            return false;
        }
    }
    return true;
}

static const struct vtype *
parse_compound(struct hcl_eval *ev, const struct expr *e, bool exact)
{
    static const char *const names[] = {"list", "set", "map", "object", "tuple"};
    static const enum vtype_kind kinds[] = {VT_LIST, VT_SET, VT_MAP, VT_OBJECT, VT_TUPLE};
    size_t k = 0;
    while (k < ARRAY_LEN(names) && strcmp(names[k], e->name) != 0)
        k++;
    if (k == ARRAY_LEN(names) || e->n != 1)
        return bad_type(ev, &e->r,
                        "list, set, map, object and tuple take one argument; other types "
                        "take none.");
    struct vtype *t = mem_new(ev->ctx, struct vtype);
    const struct expr *arg = e->list[0];
    t->kind = kinds[k];
    if (t->kind == VT_OBJECT) {
        if (arg->kind != EX_OBJECT)
            return bad_type(ev, &arg->r, "object needs its fields: object({name = string}).");
        return parse_fields(ev, arg, t, exact) ? t : NULL;
    }
    if (t->kind == VT_TUPLE) {
        if (arg->kind != EX_TUPLE)
            return bad_type(ev, &arg->r, "tuple needs its types: tuple([string, number]).");
        t->n = arg->n;
        t->types = mem_array(ev->ctx, const struct vtype *, t->n);
        for (size_t i = 0; i < t->n; i++)
            if ((t->types[i] = vtype_parse(ev, arg->list[i], exact)) == NULL)
                return NULL;
        return t;
    }
    t->elem = vtype_parse(ev, arg, exact);
    return t->elem != NULL ? t : NULL;
}

const struct vtype *
vtype_parse(struct hcl_eval *ev, const struct expr *e, bool exact)
{
    if (!ev_charge(ev, &e->r, 4 + e->n, 256 + e->n * 64))
        return NULL;
    if (e->kind == EX_CALL)
        return parse_compound(ev, e, exact);
    return parse_simple(ev, &e->r, e->kind == EX_VAR ? e->name : "", exact);
}

static const char *
vtype_name(const struct vtype *t)
{
    static const char *const names[] = {"a value", "a string", "a number",  "a bool", "a list",
                                        "a set",   "a map",    "an object", "a tuple"};
    return names[t->kind];
}

/* --- conversion to a type --- */

struct conv {
    struct hcl_eval *ev;
    const struct hcl_range *r;
    char *why;
    size_t why_size;
};

static struct value *convert_value(struct conv *c, const struct vtype *t, struct value *v);

static struct value *
convert_mismatch(struct conv *c, const struct vtype *t, const struct value *v)
{
    snprintf(c->why, c->why_size, "%s is needed, this is a %s", vtype_name(t),
             value_kind_name(v->kind));
    return NULL;
}

static void
prefix_why(struct conv *c, const char *what)
{
    char tmp[200];
    snprintf(tmp, sizeof(tmp), "%.60s: %.130s", what, c->why);
    str_copy(c->why, c->why_size, tmp);
}

static struct value *
convert_scalar(struct conv *c, const struct vtype *t, struct value *v)
{
    const char *s;
    bool b;
    if (t->kind == VT_STRING && (s = value_text(c->ev->ctx, v)) != NULL)
        return v->kind == VALUE_STRING ? v : value_str(c->ev->ctx, s);
    if (t->kind == VT_NUMBER && number_is(v)) {
        struct value *n = v->kind == VALUE_STRING ? number_parse(c->ev->ctx, v->str.s) : v;
        if (n != NULL)
            return n;
    }
    if (t->kind == VT_BOOL && value_truth(v, &b))
        return v->kind == VALUE_BOOL ? v : value_bool(c->ev->ctx, b);
    return convert_mismatch(c, t, v);
}

/* Unifies the types of elements that are to have the same, whichever. */
static const struct vtype *
common_type(struct conv *c, struct value *const *v, size_t n)
{
    const struct vtype *t = vtype_unify(c->ev, v, n);
    if (t == NULL)
        str_copy(c->why, c->why_size, "all elements must have the same type");
    return t;
}

static struct value *
convert_list(struct conv *c, const struct vtype *t, struct value *v)
{
    if (v->kind != VALUE_LIST)
        return convert_mismatch(c, t, v);
    if (t->kind == VT_TUPLE && t->n != v->list.n) {
        snprintf(c->why, c->why_size, "a tuple of %zu elements is needed, this one has %zu", t->n,
                 v->list.n);
        return NULL;
    }
    const struct vtype *elem = t->elem;
    if (t->kind != VT_TUPLE && elem->kind == VT_ANY &&
        (elem = common_type(c, v->list.v, v->list.n)) == NULL)
        return NULL;
    struct value *out = ev_list(c->ev, c->r, v->list.n);
    if (out == NULL)
        return NULL;
    out->form = t->kind == VT_LIST ? FORM_LIST : t->kind == VT_SET ? FORM_SET : FORM_TUPLE;
    for (size_t i = 0; i < v->list.n; i++) {
        out->list.v[i] = convert_value(c, t->kind == VT_TUPLE ? t->types[i] : elem, v->list.v[i]);
        if (out->list.v[i] == NULL) {
            char what[40];
            snprintf(what, sizeof(what), "element %zu", i);
            prefix_why(c, what);
            return NULL;
        }
    }
    if (t->kind == VT_SET && out->list.n > 0) {
        qsort(out->list.v, out->list.n, sizeof(struct value *), value_order_at);
        size_t n = 1;
        for (size_t i = 1; i < out->list.n; i++)
            if (!value_same(out->list.v[n - 1], out->list.v[i]))
                out->list.v[n++] = out->list.v[i];
        ASSERT(n <= out->list.n);
        out->list.n = n;
    }
    return out;
}

static struct value *
convert_map(struct conv *c, const struct vtype *t, struct value *v)
{
    if (v->kind != VALUE_MAP)
        return convert_mismatch(c, t, v);
    if (!ev_charge(c->ev, c->r, v->map.n, v->map.n * sizeof(struct value_pair)))
        return NULL;
    struct value_pair *pairs = mem_array(c->ev->ctx, struct value_pair, v->map.n);
    const struct vtype *elem = t->elem;
    if (elem->kind == VT_ANY) {
        struct value **all = mem_array(c->ev->ctx, struct value *, v->map.n);
        for (size_t i = 0; i < v->map.n; i++)
            all[i] = v->map.v[i].v;
        if ((elem = common_type(c, all, v->map.n)) == NULL)
            return NULL;
    }
    for (size_t i = 0; i < v->map.n; i++) {
        pairs[i].k = v->map.v[i].k;
        pairs[i].v = convert_value(c, elem, v->map.v[i].v);
        if (pairs[i].v == NULL) {
            prefix_why(c, pairs[i].k);
            return NULL;
        }
    }
    struct value *out = ev_map(c->ev, c->r, pairs, v->map.n);
    if (out != NULL)
        out->form = FORM_MAP;
    return out;
}

static struct value *
convert_object(struct conv *c, const struct vtype *t, struct value *v)
{
    if (v->kind != VALUE_MAP)
        return convert_mismatch(c, t, v);
    struct value_pair *pairs = mem_array(c->ev->ctx, struct value_pair, t->n);
    for (size_t i = 0; i < t->n; i++) {
        struct value *got = ev_get(v, t->names[i]);
        pairs[i].k = t->names[i];
        if ((got == NULL || got->kind == VALUE_NULL) && t->dflts[i] != NULL) {
            pairs[i].v = t->dflts[i];
            continue;
        }
        if (got == NULL && t->optional[i]) {
            pairs[i].v = value_null(c->ev->ctx);
            continue;
        }
        if (got == NULL) {
            snprintf(c->why, c->why_size, "attribute \"%.80s\" is required", t->names[i]);
            return NULL;
        }
        pairs[i].v = convert_value(c, t->types[i], got);
        if (pairs[i].v == NULL) {
            prefix_why(c, t->names[i]);
            return NULL;
        }
    }
    return ev_map(c->ev, c->r, pairs, t->n);
}

static struct value *
convert_value(struct conv *c, const struct vtype *t, struct value *v)
{
    if (!ev_charge(c->ev, c->r, 1, 64))
        return NULL;
    if (t->kind == VT_ANY || v->kind == VALUE_NULL)
        return v;
    switch (t->kind) {
    case VT_LIST:
    case VT_SET:
    case VT_TUPLE:
        return convert_list(c, t, v);
    case VT_MAP:
        return convert_map(c, t, v);
    case VT_OBJECT:
        return convert_object(c, t, v);
    default:
        return convert_scalar(c, t, v);
    }
}

struct value *
vtype_convert(struct hcl_eval *ev, const struct hcl_range *r, const struct vtype *t,
              struct value *v, char *why, size_t why_size)
{
    struct conv c = {ev, r, why, why_size};
    str_copy(why, why_size, "it is too large");
    return convert_value(&c, t, v);
}
