/* SPDX-License-Identifier: Apache-2.0
 *
 * Which type several values have in common: what `any` in a type, a conditional and functions on
 * lists convert to. See eval.h. Types come from values, so that an empty list has none of its
 * elements.
 */
#include <string.h>

#include "common/mem.h"
#include "jobspec/eval.h"

static const struct vtype vt_any = {.kind = VT_ANY}, vt_string = {.kind = VT_STRING},
                          vt_number = {.kind = VT_NUMBER}, vt_bool = {.kind = VT_BOOL};

static struct vtype *
unify_make(struct hcl_eval *ev, enum vtype_kind kind, size_t n)
{
    if (!ev_charge(ev, NULL, 1 + n / 8, sizeof(struct vtype) + n * 32))
        return NULL;
    struct vtype *t = mem_new(ev->ctx, struct vtype);
    t->kind = kind;
    t->n = n;
    t->elem = &vt_any;
    t->types = mem_array(ev->ctx, const struct vtype *, n);
    t->names = mem_array(ev->ctx, const char *, n);
    t->optional = mem_array(ev->ctx, bool, n);
    t->dflts = mem_array(ev->ctx, struct value *, n);
    return t;
}

static const struct vtype *type_of(struct hcl_eval *ev, const struct value *v);

static const struct vtype *
collection_type(struct hcl_eval *ev, enum vtype_kind kind, const struct value *first)
{
    struct vtype *t = unify_make(ev, kind, 0);
    if (t == NULL)
        return NULL;
    if (first != NULL && (t->elem = type_of(ev, first)) == NULL)
        return NULL;
    return t;
}

static const struct vtype *
type_of(struct hcl_eval *ev, const struct value *v)
{
    switch (v->kind) {
    case VALUE_NULL:
        return &vt_any;
    case VALUE_BOOL:
        return &vt_bool;
    case VALUE_STRING:
        return &vt_string;
    case VALUE_LIST:
        if (v->form != FORM_TUPLE)
            return collection_type(ev, v->form == FORM_LIST ? VT_LIST : VT_SET,
                                   v->list.n > 0 ? v->list.v[0] : NULL);
        struct vtype *tuple = unify_make(ev, VT_TUPLE, v->list.n);
        for (size_t i = 0; tuple != NULL && i < v->list.n; i++)
            if ((tuple->types[i] = type_of(ev, v->list.v[i])) == NULL)
                return NULL;
        return tuple;
    case VALUE_MAP:
        if (v->form == FORM_MAP)
            return collection_type(ev, VT_MAP, v->map.n > 0 ? v->map.v[0].v : NULL);
        struct vtype *object = unify_make(ev, VT_OBJECT, v->map.n);
        for (size_t i = 0; object != NULL && i < v->map.n; i++) {
            object->names[i] = v->map.v[i].k;
            if ((object->types[i] = type_of(ev, v->map.v[i].v)) == NULL)
                return NULL;
        }
        return object;
    default:
        return &vt_number;
    }
}

static const struct vtype *unify_two(struct hcl_eval *ev, const struct vtype *a,
                                     const struct vtype *b);

static const struct vtype *
unify_all(struct hcl_eval *ev, const struct vtype *seed, const struct vtype *const *types, size_t n)
{
    for (size_t i = 0; seed != NULL && i < n; i++)
        seed = unify_two(ev, seed, types[i]);
    return seed;
}

/* The type of all elements, whichever kind holds them. */
static const struct vtype *
element_of(struct hcl_eval *ev, const struct vtype *t)
{
    if (t->kind == VT_TUPLE || t->kind == VT_OBJECT)
        return unify_all(ev, &vt_any, t->types, t->n);
    return t->elem;
}

static const struct vtype *
as_collection(struct hcl_eval *ev, enum vtype_kind kind, const struct vtype *a,
              const struct vtype *b)
{
    const struct vtype *x = element_of(ev, a), *y = x != NULL ? element_of(ev, b) : NULL;
    struct vtype *t = y != NULL ? unify_make(ev, kind, 0) : NULL;
    if (t != NULL)
        t->elem = unify_two(ev, x, y);
    return t != NULL && t->elem != NULL ? t : NULL;
}

/* Element by element, or NULL: the two are not of one shape. */
static const struct vtype *
by_element(struct hcl_eval *ev, const struct vtype *a, const struct vtype *b)
{
    if (a->n != b->n)
        return NULL;
    for (size_t i = 0; a->kind == VT_OBJECT && i < a->n; i++)
        if (strcmp(a->names[i], b->names[i]) != 0)
            return NULL;
    struct vtype *t = unify_make(ev, a->kind, a->n);
    for (size_t i = 0; t != NULL && i < a->n; i++) {
        t->names[i] = a->kind == VT_OBJECT ? a->names[i] : NULL;
        if ((t->types[i] = unify_two(ev, a->types[i], b->types[i])) == NULL)
            return NULL;
    }
    return t;
}

static bool
is_scalar(const struct vtype *t)
{
    return t->kind == VT_STRING || t->kind == VT_NUMBER || t->kind == VT_BOOL;
}

static const struct vtype *
unify_two(struct hcl_eval *ev, const struct vtype *a, const struct vtype *b)
{
    if (a->kind == VT_ANY)
        return b;
    if (b->kind == VT_ANY)
        return a;
    if (is_scalar(a) && is_scalar(b)) {
        if (a->kind == b->kind)
            return a;
        return a->kind == VT_STRING || b->kind == VT_STRING ? &vt_string : NULL;
    }
    if (is_scalar(a) || is_scalar(b))
        return NULL;
    bool maps = a->kind == VT_MAP || a->kind == VT_OBJECT;
    if (maps != (b->kind == VT_MAP || b->kind == VT_OBJECT))
        return NULL;
    if (a->kind == b->kind && (a->kind == VT_OBJECT || a->kind == VT_TUPLE)) {
        const struct vtype *t = by_element(ev, a, b);
        if (t != NULL || ev->exhausted)
            return t;
    }
    if (maps)
        return as_collection(ev, VT_MAP, a, b);
    bool set = a->kind == VT_SET || b->kind == VT_SET;
    if (set && a->kind != b->kind && a->kind != VT_TUPLE && b->kind != VT_TUPLE)
        return as_collection(ev, VT_LIST, a, b);
    return as_collection(ev, set ? VT_SET : VT_LIST, a, b);
}

const struct vtype *
vtype_unify(struct hcl_eval *ev, struct value *const *v, size_t n)
{
    const struct vtype *t = &vt_any;
    for (size_t i = 0; t != NULL && i < n; i++) {
        const struct vtype *of = type_of(ev, v[i]);
        t = of != NULL ? unify_two(ev, t, of) : NULL;
    }
    return t;
}
