/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions on lists and maps, by the names they have in HCL: fn_NAME() each, whose rows are in the
 * table of functions. Arguments have been converted and counted before. A result is charged to the
 * budget before it is made, since `range` and `flatten` make much of little.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "jobspec/func/func.h"
#include "jobspec/lex.h"
#include "jobspec/limits.h"

static struct value *
copy_list(struct call *c, const struct value *l, size_t from, size_t to)
{
    struct value *out = ret_list(c, to - from);
    if (out != NULL && to > from)
        memcpy(out->list.v, l->list.v + from, (to - from) * sizeof(struct value *));
    return out;
}

static struct value *
fn_length(struct call *c)
{
    const struct value *v = c->args[0];
    if (v->kind == VALUE_STRING)
        return arg_error(c, 0, "a list or a map is needed; strlen() counts characters");
    return ret_int(c, (int64_t)(v->kind == VALUE_MAP ? v->map.n : arg_list(c, 0)->list.n));
}

static struct value *
fn_keys(struct call *c)
{
    const struct value *m = arg_map(c, 0);
    struct value *out = ret_list(c, m->map.n);
    for (size_t i = 0; out != NULL && i < m->map.n; i++)
        if ((out->list.v[i] = ret_str(c, m->map.v[i].k)) == NULL)
            return NULL;
    return out;
}

static struct value *
fn_values(struct call *c)
{
    const struct value *m = arg_map(c, 0);
    struct value *out = ret_list(c, m->map.n);
    for (size_t i = 0; out != NULL && i < m->map.n; i++)
        out->list.v[i] = m->map.v[i].v;
    return out;
}

static struct value *
fn_lookup(struct call *c)
{
    struct value *v = ev_get(arg_map(c, 0), arg_str(c, 1));
    if (v != NULL)
        return v;
    if (c->n == 3)
        return c->args[2];
    return arg_error(c, 1, "the map has no key \"%s\" and no default was given", arg_str(c, 1));
}

static struct value *
fn_merge(struct call *c)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->args[i]->kind != VALUE_NULL)
            n += arg_map(c, i)->map.n;
    if (!call_charge(c, n, n * sizeof(struct value_pair)))
        return NULL;
    struct value_pair *pairs = mem_array(c->ev->ctx, struct value_pair, n);
    for (size_t i = 0; i < c->n; i++) {
        if (c->args[i]->kind == VALUE_NULL)
            continue;
        const struct value *m = arg_map(c, i);
        for (size_t k = 0; k < m->map.n; k++)
            pairs[at++] = m->map.v[k];
    }
    return ev_map(c->ev, &c->e->r, pairs, at);
}

static struct value *
fn_zipmap(struct call *c)
{
    const struct value *k = arg_list(c, 0), *v = arg_list(c, 1);
    if (k->list.n != v->list.n)
        return arg_error(c, 1, "%zu keys and %zu values", k->list.n, v->list.n);
    if (!call_charge(c, k->list.n, k->list.n * sizeof(struct value_pair)))
        return NULL;
    struct value_pair *pairs = mem_array(c->ev->ctx, struct value_pair, k->list.n);
    for (size_t i = 0; i < k->list.n; i++) {
        pairs[i].k = value_text(c->ev->ctx, k->list.v[i]);
        pairs[i].v = v->list.v[i];
        if (pairs[i].k == NULL)
            return arg_error(c, 0, "key %zu is not a string", i);
    }
    return ev_map(c->ev, &c->e->r, pairs, k->list.n);
}

static struct value *
fn_concat(struct call *c)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < c->n; i++)
        n += arg_list(c, i)->list.n;
    struct value *out = ret_list(c, n);
    for (size_t i = 0; out != NULL && i < c->n; i++)
        for (size_t k = 0; k < arg_list(c, i)->list.n; k++)
            out->list.v[at++] = c->args[i]->list.v[k];
    return out;
}

static struct value *
fn_contains(struct call *c)
{
    const struct value *l = arg_list(c, 0);
    if (!call_charge(c, l->list.n, 0))
        return NULL;
    for (size_t i = 0; i < l->list.n; i++)
        if (value_same(l->list.v[i], c->args[1]))
            return ret_bool(c, true);
    return ret_bool(c, false);
}

static struct value *
fn_index(struct call *c)
{
    const struct value *l = c->args[0];
    if (l->kind == VALUE_MAP) {
        struct value *v = ev_get(l, arg_str(c, 1));
        return v != NULL ? v : arg_error(c, 1, "the map has no such key");
    }
    l = arg_list(c, 0);
    int64_t at;
    if (c->args[1]->kind == VALUE_INT && number_int(c->args[1], &at) && at >= 0 &&
        (uint64_t)at < l->list.n)
        return l->list.v[at];
    return arg_error(c, 1, "there is no such element: the list has %zu", l->list.n);
}

/* Wraps around. */
static struct value *
fn_element(struct call *c)
{
    const struct value *l = arg_list(c, 0);
    int64_t i = arg_int(c, 1);
    if (l->list.n == 0)
        return arg_error(c, 0, "the list is empty");
    if (i < 0)
        return arg_error(c, 1, "the index is negative");
    return l->list.v[(uint64_t)i % l->list.n];
}

static struct value *
fn_slice(struct call *c)
{
    const struct value *l = arg_list(c, 0);
    int64_t from = arg_int(c, 1), to = arg_int(c, 2);
    if (from < 0 || to < from || (uint64_t)to > l->list.n)
        return arg_error(c, 1, "%lld to %lld is not a part of a list of %zu elements",
                         (long long)from, (long long)to, l->list.n);
    return copy_list(c, l, (size_t)from, (size_t)to);
}

static struct value *
fn_chunklist(struct call *c)
{
    const struct value *l = arg_list(c, 0);
    int64_t size = arg_int(c, 1);
    if (size < 1)
        return arg_error(c, 1, "the size must be at least 1");
    size_t step = (uint64_t)size > l->list.n + 1 ? l->list.n + 1 : (size_t)size;
    struct value *out = ret_list(c, (l->list.n + step - 1) / step);
    for (size_t i = 0; out != NULL && i < out->list.n; i++) {
        size_t to = (i + 1) * step < l->list.n ? (i + 1) * step : l->list.n;
        if ((out->list.v[i] = copy_list(c, l, i * step, to)) == NULL)
            return NULL;
    }
    return out;
}

static struct value *
fn_coalesce(struct call *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct value *v = c->args[i];
        if (v->kind != VALUE_NULL && !(v->kind == VALUE_STRING && v->str.n == 0))
            return c->args[i];
    }
    return arg_error(c, 0, "every argument is null or empty");
}

static struct value *
fn_coalescelist(struct call *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct value *v = c->args[i];
        if ((v->kind == VALUE_LIST && v->list.n > 0) || (v->kind == VALUE_MAP && v->map.n > 0))
            return c->args[i];
    }
    return arg_error(c, 0, "every list is empty");
}

static struct value *
fn_compact(struct call *c)
{
    const struct value *l = arg_list(c, 0);
    struct value *out = ret_list(c, l->list.n);
    size_t n = 0;
    for (size_t i = 0; out != NULL && i < l->list.n; i++) {
        const struct value *v = l->list.v[i];
        if (v->kind != VALUE_NULL && !(v->kind == VALUE_STRING && v->str.n == 0))
            out->list.v[n++] = l->list.v[i];
    }
    if (out != NULL)
        out->list.n = n;
    return out;
}

/* Keeps the order of first appearance: sort (value, position), drop repeats, restore positions. */
struct ranked {
    struct value *v;
    size_t at;
};

static int
ranked_cmp(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    int r = value_order(x->v, y->v);
    return r != 0 ? r : (x->at > y->at) - (x->at < y->at);
}

static int
position_cmp(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static struct value *
fn_distinct(struct call *c)
{
    const struct value *l = arg_list(c, 0);
    size_t n = l->list.n, kept = 0;
    if (!call_charge(c, n * 8, n * sizeof(struct ranked)))
        return NULL;
    struct ranked *r = mem_array(c->ev->ctx, struct ranked, n);
    for (size_t i = 0; i < n; i++)
        r[i] = (struct ranked){l->list.v[i], i};
    qsort(r, n, sizeof(*r), ranked_cmp);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || !value_same(r[kept - 1].v, r[i].v))
            r[kept++] = r[i];
    qsort(r, kept, sizeof(*r), position_cmp);
    struct value *out = ret_list(c, kept);
    for (size_t i = 0; out != NULL && i < kept; i++)
        out->list.v[i] = r[i].v;
    return out;
}

static size_t
flat_count(struct call *c, const struct value *l)
{
    size_t n = 0;
    if (!call_charge(c, l->list.n, 0))
        return 0;
    for (size_t i = 0; i < l->list.n; i++)
        n += l->list.v[i]->kind == VALUE_LIST ? flat_count(c, l->list.v[i]) : 1;
    return n;
}

static void
flat_copy(struct value *out, size_t *at, const struct value *l)
{
    for (size_t i = 0; i < l->list.n; i++) {
        if (l->list.v[i]->kind == VALUE_LIST)
            flat_copy(out, at, l->list.v[i]);
        else
            out->list.v[(*at)++] = l->list.v[i];
    }
}

/* Values nest no deeper than the expressions that made them. */
static struct value *
fn_flatten(struct call *c)
{
    const struct value *l = arg_list(c, 0);
    size_t n = flat_count(c, l), at = 0;
    struct value *out = c->ev->exhausted ? NULL : ret_list(c, n);
    if (out != NULL)
        flat_copy(out, &at, l);
    return out;
}

static int
text_cmp(const void *a, const void *b)
{
    const struct value *x = *(struct value *const *)a, *y = *(struct value *const *)b;
    return strcmp(x->str.s, y->str.s);
}

static struct value *
fn_sort(struct call *c)
{
    const struct value *l = arg_list(c, 0);
    struct value *out = ret_list(c, l->list.n);
    if (out == NULL || !call_charge(c, l->list.n * 8, 0))
        return NULL;
    for (size_t i = 0; i < l->list.n; i++) {
        const char *s = value_text(c->ev->ctx, l->list.v[i]);
        if (s == NULL)
            return arg_error(c, 0, "element %zu is not a string", i);
        out->list.v[i] = l->list.v[i]->kind == VALUE_STRING ? l->list.v[i] : ret_str(c, s);
        if (out->list.v[i] == NULL)
            return NULL;
    }
    qsort(out->list.v, out->list.n, sizeof(struct value *), text_cmp);
    return out;
}

static struct value *
fn_range(struct call *c)
{
    const void *ctx = c->ev->ctx;
    const struct value *from = c->n > 1 ? arg_number(c, 0) : value_int(ctx, 0);
    const struct value *to = arg_number(c, c->n > 1 ? 1 : 0);
    if (c->failed)
        return NULL;
    bool down = number_compare(from, to) > 0;
    const struct value *step = c->n > 2 ? arg_number(c, 2) : value_int(ctx, down ? -1 : 1);
    if (c->failed)
        return NULL;
    if (number_sign(step) == 0)
        return arg_error(c, 2, "step must not be zero");
    if (c->n > 2 && down && number_sign(step) > 0)
        return arg_error(c, 2, "end must be greater than start when step is positive");
    if (c->n > 2 && number_compare(from, to) < 0 && number_sign(step) < 0)
        return arg_error(c, 2, "end must be less than start when step is negative");
    struct value *out = ret_list(c, 0);
    struct value *at = (struct value *)(uintptr_t)from;
    while (out != NULL && number_compare(at, to) == (number_sign(step) > 0 ? -1 : 1)) {
        if (out->list.n == HCL_RANGE_MAX)
            return arg_error(c, 0,
                             "more than %d values were generated; either decrease the "
                             "difference between start and end or use a smaller step",
                             HCL_RANGE_MAX);
        value_list_add(out, at);
        if (!call_charge(c, 1, 256) || (at = number_operate(ctx, TOK_PLUS, at, step)) == NULL)
            return c->ev->exhausted ? NULL : arg_error(c, 0, "the result is out of range");
    }
    if (out != NULL)
        out->form = FORM_LIST;
    return out;
}

const struct func func_collection[] = {{"chunklist", 2, 2, fn_chunklist, false},
                                       {"coalesce", 1, -1, fn_coalesce, false},
                                       {"coalescelist", 1, -1, fn_coalescelist, false},
                                       {"compact", 1, 1, fn_compact, false},
                                       {"concat", 1, -1, fn_concat, false},
                                       {"contains", 2, 2, fn_contains, false},
                                       {"distinct", 1, 1, fn_distinct, false},
                                       {"element", 2, 2, fn_element, false},
                                       {"flatten", 1, 1, fn_flatten, false},
                                       {"index", 2, 2, fn_index, false},
                                       {"keys", 1, 1, fn_keys, false},
                                       {"length", 1, 1, fn_length, false},
                                       {"lookup", 2, 3, fn_lookup, false},
                                       {"merge", 0, -1, fn_merge, false},
                                       {"range", 1, 3, fn_range, false},
                                       {"slice", 3, 3, fn_slice, false},
                                       {"sort", 1, 1, fn_sort, false},
                                       {"values", 1, 1, fn_values, false},
                                       {"zipmap", 2, 2, fn_zipmap, false},
                                       {NULL, 0, 0, NULL, false}};
