/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions on lists and maps, by the names they have in HCL: fn_NAME() each, whose rows are in the
 * table of functions. Arguments have been counted before. A result is charged to the budget before
 * it is made, since `range` and `flatten` make much of little.
 *
 * As in a Nomad, what is written as [...] and {...} is a tuple and an object, whose elements differ
 * in type; what a function makes is mostly a list, whose elements do not.
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
    if (out != NULL)
        out->form = l->form == FORM_TUPLE ? FORM_TUPLE : FORM_LIST;
    return out;
}

/* A list or a tuple; a set has no order in which it could be asked. */
static struct value *
arg_sequence(struct call *c, size_t i)
{
    struct value *l = arg_list(c, i);
    if (!c->failed && l->form == FORM_SET)
        arg_error(c, i, "a list is needed, this is a set");
    return l;
}

static struct value *
as_list(struct value *v)
{
    if (v != NULL)
        v->form = FORM_LIST;
    return v;
}

static struct value *
fn_length(struct call *c)
{
    const struct value *v = c->args[0];
    if (v->kind == VALUE_MAP && v->form == FORM_MAP)
        return ret_int(c, (int64_t)v->map.n);
    if (v->kind != VALUE_LIST)
        return arg_error(c, 0, "collection must be a list, a map or a tuple");
    return ret_int(c, (int64_t)v->list.n);
}

static struct value *
fn_keys(struct call *c)
{
    const struct value *m = arg_map(c, 0);
    struct value *out = ret_list(c, m->map.n);
    for (size_t i = 0; out != NULL && i < m->map.n; i++)
        if ((out->list.v[i] = ret_str(c, m->map.v[i].k)) == NULL)
            return NULL;
    return m->form == FORM_MAP ? as_list(out) : out;
}

static struct value *
fn_values(struct call *c)
{
    const struct value *m = arg_map(c, 0);
    struct value *out = ret_list(c, m->map.n);
    for (size_t i = 0; out != NULL && i < m->map.n; i++)
        out->list.v[i] = m->map.v[i].v;
    return m->form == FORM_MAP ? as_list(out) : out;
}

static struct value *
fn_lookup(struct call *c)
{
    const struct value *m = arg_map(c, 0);
    const char *key = arg_str(c, 1);
    struct value *v = c->failed ? NULL : ev_get(m, key);
    if (c->failed || arg_null(c, 2))
        return NULL;
    if (m->form == FORM_MAP && m->map.n > 0) {
        struct value *both[] = {m->map.v[0].v};
        struct value *dflt = ret_converted(c, 2, vtype_unify(c->ev, both, 1), c->args[2]);
        return v != NULL || dflt == NULL ? (dflt != NULL ? v : NULL) : dflt;
    }
    return v != NULL ? v : c->args[2];
}

static struct value *
fn_merge(struct call *c)
{
    size_t n = 0, at = 0;
    bool maps = c->n > 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->args[i]->kind == VALUE_NULL)
            continue;
        n += arg_map(c, i)->map.n;
        maps = maps && c->args[i]->form == FORM_MAP;
    }
    if (c->failed || !call_charge(c, n, n * sizeof(struct value_pair)))
        return NULL;
    struct value_pair *pairs = mem_array(c->ev->ctx, struct value_pair, n);
    for (size_t i = 0; i < c->n; i++) {
        const struct value *m = c->args[i];
        for (size_t k = 0; m->kind == VALUE_MAP && k < m->map.n; k++)
            pairs[at++] = m->map.v[k];
    }
    ASSERT(at <= n);
    struct value *out = ev_map(c->ev, &c->e->r, pairs, at);
    if (out != NULL && maps)
        out->form = FORM_MAP;
    return out;
}

static struct value *
fn_zipmap(struct call *c)
{
    const struct value *k = arg_strings(c, 0), *v = arg_sequence(c, 1);
    if (c->failed)
        return NULL;
    if (k->list.n != v->list.n)
        return arg_error(c, 1, "number of keys (%zu) does not match number of values (%zu)",
                         k->list.n, v->list.n);
    if (!call_charge(c, k->list.n, k->list.n * sizeof(struct value_pair)))
        return NULL;
    struct value_pair *pairs = mem_array(c->ev->ctx, struct value_pair, k->list.n);
    for (size_t i = 0; i < k->list.n; i++) {
        if (k->list.v[i]->kind == VALUE_NULL)
            return arg_error(c, 0, "keys list has null value at index %zu", i);
        pairs[i] = (struct value_pair){k->list.v[i]->str.s, v->list.v[i]};
    }
    struct value *out = ev_map(c->ev, &c->e->r, pairs, k->list.n);
    if (out != NULL)
        out->form = v->form == FORM_LIST ? FORM_MAP : FORM_OBJECT;
    return out;
}

static struct value *
fn_concat(struct call *c)
{
    size_t n = 0, at = 0;
    bool lists = true;
    for (size_t i = 0; i < c->n; i++) {
        n += arg_sequence(c, i)->list.n;
        lists = lists && !c->failed && c->args[i]->form == FORM_LIST;
    }
    struct value *out = c->failed ? NULL : ret_list(c, n);
    for (size_t i = 0; out != NULL && i < c->n; i++)
        for (size_t k = 0; k < c->args[i]->list.n; k++)
            out->list.v[at++] = c->args[i]->list.v[k];
    if (out == NULL || !lists)
        return out;
    const struct vtype *t = vtype_unify(c->ev, out->list.v, n);
    for (size_t i = 0; t != NULL && i < n; i++)
        if ((out->list.v[i] = ret_converted(c, 0, t, out->list.v[i])) == NULL)
            return NULL;
    return t != NULL ? as_list(out) : out;
}

static struct value *
fn_contains(struct call *c)
{
    const struct value *l = arg_list(c, 0);
    if (c->failed || !call_charge(c, l->list.n, 0))
        return NULL;
    if (c->args[1]->kind == VALUE_NULL && l->list.n > 0)
        return arg_error(c, 1, "null cannot be searched for");
    for (size_t i = 0; i < l->list.n; i++)
        if (value_same(l->list.v[i], c->args[1]))
            return ret_bool(c, true);
    return ret_bool(c, false);
}

static struct value *
fn_index(struct call *c)
{
    const struct value *l = c->args[0], *k = c->args[1];
    if (l->kind == VALUE_MAP && l->form == FORM_MAP) {
        if (k->kind != VALUE_STRING)
            return arg_error(c, 1, "key for map must be string");
        struct value *v = ev_get(l, k->str.s);
        return v != NULL ? v : arg_error(c, 1, "invalid index");
    }
    if (l->kind != VALUE_LIST || l->form == FORM_SET)
        return arg_error(c, 0, "collection must be a list, a map or a tuple");
    int64_t at;
    if (k->kind == VALUE_STRING || !number_int(k, &at))
        return arg_error(c, 1, "key for %s must be a whole number",
                         l->form == FORM_TUPLE ? "tuple" : "list");
    if (at >= 0 && (uint64_t)at < l->list.n)
        return l->list.v[at];
    return arg_error(c, 1, "there is no such element: the list has %zu", l->list.n);
}

/* Wraps around, in both directions. */
static struct value *
fn_element(struct call *c)
{
    const struct value *l = arg_sequence(c, 0);
    int64_t i = arg_int(c, 1);
    if (c->failed)
        return NULL;
    if (l->list.n == 0)
        return arg_error(c, 0, "cannot use element function with an empty list");
    i %= (int64_t)l->list.n;
    return l->list.v[i < 0 ? i + (int64_t)l->list.n : i];
}

static struct value *
fn_slice(struct call *c)
{
    const struct value *l = arg_sequence(c, 0);
    int64_t from = arg_int(c, 1), to = arg_int(c, 2);
    if (c->failed)
        return NULL;
    if (from < 0 || to < from || (uint64_t)to > l->list.n)
        return arg_error(c, 1, "%lld to %lld is not a part of a list of %zu elements",
                         (long long)from, (long long)to, l->list.n);
    return copy_list(c, l, (size_t)from, (size_t)to);
}

static struct value *
fn_chunklist(struct call *c)
{
    const struct value *l = arg_uniform(c, 0);
    int64_t size = arg_int(c, 1);
    if (c->failed)
        return NULL;
    if (size < 0)
        return arg_error(c, 1, "the size argument must be positive");
    size_t step = size == 0 || (uint64_t)size > l->list.n ? l->list.n : (size_t)size;
    struct value *out = ret_list(c, l->list.n > 0 ? (l->list.n + step - 1) / step : 0);
    for (size_t i = 0; out != NULL && i < out->list.n; i++) {
        size_t to = (i + 1) * step < l->list.n ? (i + 1) * step : l->list.n;
        if ((out->list.v[i] = copy_list(c, l, i * step, to)) == NULL)
            return NULL;
    }
    return as_list(out);
}

static bool
is_collection(const struct value *v)
{
    return v->kind == VALUE_LIST || v->kind == VALUE_MAP;
}

/* Converted to what all have in common; null has no part in it, but that collections beside null
 * stay as they are. */
static struct value *
fn_coalesce(struct call *c)
{
    struct value *first = NULL;
    bool null = false, collection = false;
    for (size_t i = 0; i < c->n; i++) {
        null |= c->args[i]->kind == VALUE_NULL;
        collection |= is_collection(c->args[i]);
        if (first == NULL && c->args[i]->kind != VALUE_NULL)
            first = c->args[i];
    }
    if (first == NULL)
        return arg_error(c, 0, "no non-null arguments");
    if (null && collection)
        return first;
    const struct vtype *t = vtype_unify(c->ev, c->args, c->n);
    if (t == NULL)
        return arg_error(c, 0, "all arguments must have the same type");
    return ret_converted(c, 0, t, first);
}

static struct value *
fn_coalescelist(struct call *c)
{
    struct value *found = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const struct value *l = arg_sequence(c, i);
        if (!c->failed && found == NULL && l->list.n > 0)
            found = c->args[i];
    }
    return found != NULL ? found : arg_error(c, 0, "no non-null arguments");
}

static struct value *
fn_compact(struct call *c)
{
    const struct value *l = arg_strings(c, 0);
    struct value *out = c->failed ? NULL : ret_list(c, l->list.n);
    size_t n = 0;
    for (size_t i = 0; out != NULL && i < l->list.n; i++) {
        const struct value *v = l->list.v[i];
        if (v->kind != VALUE_NULL && v->str.n > 0)
            out->list.v[n++] = l->list.v[i];
    }
    if (out != NULL)
        out->list.n = n;
    return as_list(out);
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
    const struct value *l = arg_uniform(c, 0);
    size_t n = c->failed ? 0 : l->list.n, kept = 0;
    if (c->failed || !call_charge(c, n * 8, n * sizeof(struct ranked)))
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
    return as_list(out);
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
    const struct value *l = arg_strings(c, 0);
    struct value *out = c->failed ? NULL : copy_list(c, l, 0, l->list.n);
    if (out == NULL || !call_charge(c, l->list.n * 8, 0))
        return NULL;
    for (size_t i = 0; i < l->list.n; i++)
        if (l->list.v[i]->kind == VALUE_NULL)
            return arg_error(c, 0, "element %zu is null; a null string cannot be sorted", i);
    qsort(out->list.v, out->list.n, sizeof(struct value *), text_cmp);
    return as_list(out);
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
                                       {"lookup", 3, 3, fn_lookup, false},
                                       {"merge", 0, -1, fn_merge, false},
                                       {"range", 1, 3, fn_range, false},
                                       {"slice", 3, 3, fn_slice, false},
                                       {"sort", 1, 1, fn_sort, false},
                                       {"values", 1, 1, fn_values, false},
                                       {"zipmap", 2, 2, fn_zipmap, false},
                                       {NULL, 0, 0, NULL, false}};
