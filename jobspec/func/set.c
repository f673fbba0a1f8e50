/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions on sets: sorted lists without duplicates.
 */
#include <stdlib.h>
#include <string.h>

#include "jobspec/func/func.h"

/* All elements of all arguments, sorted. */
static struct value *
gather(struct call *c)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < c->n; i++)
        n += arg_list(c, i)->list.n;
    struct value *all = call_charge(c, n * 8, 0) ? ret_list(c, n) : NULL;
    for (size_t i = 0; all != NULL && i < c->n; i++)
        for (size_t k = 0; k < arg_list(c, i)->list.n; k++)
            all->list.v[at++] = c->args[i]->list.v[k];
    if (all != NULL)
        qsort(all->list.v, n, sizeof(struct value *), value_order_at);
    return c->failed ? NULL : all;
}

static void
drop_repeats(struct value *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->list.n; i++)
        if (n == 0 || !value_same(l->list.v[n - 1], l->list.v[i]))
            l->list.v[n++] = l->list.v[i];
    l->list.n = n;
}

static struct value *
fn_setunion(struct call *c)
{
    struct value *all = gather(c);
    if (all != NULL)
        drop_repeats(all);
    return all;
}

static bool
in_list(const struct value *l, const struct value *v)
{
    for (size_t i = 0; i < l->list.n; i++)
        if (value_same(l->list.v[i], v))
            return true;
    return false;
}

static struct value *
fn_setintersection(struct call *c)
{
    struct value *all = gather(c);
    if (all == NULL)
        return NULL;
    drop_repeats(all);
    size_t n = 0;
    for (size_t i = 0; i < all->list.n; i++) {
        bool in = true;
        for (size_t k = 0; in && k < c->n; k++) {
            if (!call_charge(c, c->args[k]->list.n, 0))
                return NULL;
            in = in_list(c->args[k], all->list.v[i]);
        }
        if (in)
            all->list.v[n++] = all->list.v[i];
    }
    all->list.n = n;
    return all;
}

static struct value *
fn_setproduct(struct call *c)
{
    size_t n = 1;
    for (size_t i = 0; i < c->n; i++)
        if (__builtin_mul_overflow(n, arg_list(c, i)->list.n, &n))
            return arg_error(c, i, "the product is too large");
    if (c->failed)
        return NULL;
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
    return out;
}

const struct func func_set[] = {{"setintersection", 1, -1, fn_setintersection, false},
                                {"setproduct", 2, -1, fn_setproduct, false},
                                {"setunion", 1, -1, fn_setunion, false},
                                {NULL, 0, 0, NULL, false}};
