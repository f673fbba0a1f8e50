/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions on sets: sorted lists without duplicates, whose elements have one type.
 */
#include <stdlib.h>
#include <string.h>

#include "jobspec/func/func.h"

/* All arguments as sets of one type. */
static bool
unify_sets(struct call *c)
{
    static const struct vtype any = {.kind = VT_ANY}, set = {.kind = VT_SET, .elem = &any};
    for (size_t i = 0; i < c->n; i++) {
        arg_list(c, i);
        c->args[i] = c->failed ? NULL : ret_converted(c, i, &set, c->args[i]);
        if (c->args[i] == NULL)
            return false;
    }
    const struct vtype *t = vtype_unify(c->ev, c->args, c->n);
    if (t == NULL)
        return arg_error(c, 0, "given sets must all have compatible element types") != NULL;
    for (size_t i = 0; i < c->n; i++)
        if ((c->args[i] = ret_converted(c, i, t, c->args[i])) == NULL)
            return false;
    return true;
}

static void
drop_repeats(struct value *l)
{
    size_t n = 0;
    qsort(l->list.v, l->list.n, sizeof(struct value *), value_order_at);
    for (size_t i = 0; i < l->list.n; i++)
        if (n == 0 || !value_same(l->list.v[n - 1], l->list.v[i]))
            l->list.v[n++] = l->list.v[i];
    l->list.n = n;
    l->form = FORM_SET;
}

static struct value *
fn_setunion(struct call *c)
{
    size_t n = 0, at = 0;
    if (!unify_sets(c))
        return NULL;
    for (size_t i = 0; i < c->n; i++)
        n += c->args[i]->list.n;
    struct value *all = call_charge(c, n * 8, 0) ? ret_list(c, n) : NULL;
    for (size_t i = 0; all != NULL && i < c->n; i++)
        for (size_t k = 0; k < c->args[i]->list.n; k++)
            all->list.v[at++] = c->args[i]->list.v[k];
    if (all != NULL)
        drop_repeats(all);
    return all;
}

static bool
in_set(const struct value *l, const struct value *v)
{
    for (size_t i = 0; i < l->list.n; i++)
        if (value_same(l->list.v[i], v))
            return true;
    return false;
}

static struct value *
fn_setintersection(struct call *c)
{
    if (!unify_sets(c))
        return NULL;
    const struct value *first = c->args[0];
    struct value *out = ret_list(c, first->list.n);
    size_t n = 0;
    for (size_t i = 0; out != NULL && i < first->list.n; i++) {
        bool in = true;
        for (size_t k = 1; in && k < c->n; k++) {
            if (!call_charge(c, c->args[k]->list.n, 0))
                return NULL;
            in = in_set(c->args[k], first->list.v[i]);
        }
        if (in)
            out->list.v[n++] = first->list.v[i];
    }
    if (out != NULL) {
        out->list.n = n;
        out->form = FORM_SET;
    }
    return out;
}

static struct value *
fn_setproduct(struct call *c)
{
    static const struct vtype any = {.kind = VT_ANY}, list = {.kind = VT_LIST, .elem = &any};
    size_t n = 1;
    bool set = false;
    for (size_t i = 0; i < c->n; i++) {
        set = (arg_list(c, i)->form == FORM_SET) || set;
        c->args[i] = c->failed ? NULL : ret_converted(c, i, &list, c->args[i]);
        if (c->args[i] == NULL)
            return NULL;
        if (__builtin_mul_overflow(n, c->args[i]->list.n, &n))
            return arg_error(c, i, "the product is too large");
    }
    struct value *out = call_charge(c, n, n) ? ret_list(c, n) : NULL;
    for (size_t i = 0; out != NULL && i < n; i++) {
        struct value *row = out->list.v[i] = ret_list(c, c->n);
        if (row == NULL)
            return NULL;
        size_t rest = i;
        for (size_t k = c->n; k > 0; k--) {
            const struct value *l = c->args[k - 1];
            row->list.v[k - 1] = l->list.v[rest % l->list.n];
            rest /= l->list.n;
        }
    }
    if (out != NULL)
        out->form = FORM_LIST;
    if (out != NULL && set)
        drop_repeats(out);
    return out;
}

const struct func func_set[] = {{"setintersection", 1, -1, fn_setintersection, false},
                                {"setproduct", 2, -1, fn_setproduct, false},
                                {"setunion", 1, -1, fn_setunion, false},
                                {NULL, 0, 0, NULL, false}};
