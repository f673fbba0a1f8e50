/* SPDX-License-Identifier: Apache-2.0
 *
 * Dynamic values: making, changing, comparing.
 */
#include "codec/value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

static struct value *
value_make(const void *ctx, enum value_kind kind)
{
    struct value *v = mem_new(ctx, struct value);
    v->kind = kind;
    return v;
}

struct value *
value_null(const void *ctx)
{
    return value_make(ctx, VALUE_NULL);
}

struct value *
value_bool(const void *ctx, bool b)
{
    struct value *v = value_make(ctx, VALUE_BOOL);
    v->b = b;
    return v;
}

struct value *
value_int(const void *ctx, int64_t i)
{
    struct value *v = value_make(ctx, VALUE_INT);
    v->i = i;
    return v;
}

struct value *
value_float(const void *ctx, double f)
{
    struct value *v = value_make(ctx, VALUE_FLOAT);
    v->f = f;
    return v;
}

struct value *
value_strn(const void *ctx, const char *s, size_t n)
{
    struct value *v = value_make(ctx, VALUE_STRING);
    v->str.s = mem_strndup(v, s, n);
    v->str.n = n;
    return v;
}

struct value *
value_str(const void *ctx, const char *s)
{
    return value_strn(ctx, s ? s : "", s ? strlen(s) : 0);
}

struct value *
value_list(const void *ctx)
{
    return value_make(ctx, VALUE_LIST);
}

struct value *
value_map(const void *ctx)
{
    return value_make(ctx, VALUE_MAP);
}

void
value_list_add(struct value *list, struct value *child)
{
    ASSERT(list->kind == VALUE_LIST);
    size_t n = list->list.n;
    if ((n & (n - 1)) == 0)
        list->list.v =
            mem_realloc(list, list->list.v, sizeof(struct value *), n ? n * 2 : 1, "list");
    list->list.v[n] = child;
    list->list.n++;
}

static struct value_pair *
pair_find(const struct value *map, const char *key)
{
    for (size_t i = 0; i < map->map.n; i++)
        if (strcmp(map->map.v[i].k, key) == 0)
            return &map->map.v[i];
    return NULL;
}

void
value_map_set(struct value *map, const char *key, struct value *child)
{
    ASSERT(map->kind == VALUE_MAP);
    struct value_pair *p = pair_find(map, key);
    if (!p) {
        size_t n = map->map.n;
        if ((n & (n - 1)) == 0)
            map->map.v =
                mem_realloc(map, map->map.v, sizeof(struct value_pair), n ? n * 2 : 1, "map");
        p = &map->map.v[map->map.n++];
        p->k = mem_strdup(map, key);
    }
    p->v = child;
}

struct value *
value_get(const struct value *map, const char *key)
{
    if (!map || map->kind != VALUE_MAP)
        return NULL;
    struct value_pair *p = pair_find(map, key);
    return p ? p->v : NULL;
}

const char *
value_get_str(const struct value *map, const char *key)
{
    const struct value *v = value_get(map, key);
    return v != NULL && v->kind == VALUE_STRING ? v->str.s : "";
}

static int
number_compare(const struct value *a, const struct value *b)
{
    if (a->kind == VALUE_INT && b->kind == VALUE_INT)
        return a->i < b->i ? -1 : a->i > b->i;
    double x = a->kind == VALUE_INT ? (double)a->i : a->f;
    double y = b->kind == VALUE_INT ? (double)b->i : b->f;
    if (isnan(x) || isnan(y))
        return isnan(x) ? (isnan(y) ? 0 : -1) : 1;
    if (x != y)
        return x < y ? -1 : 1;
    if (a->kind == b->kind)
        return 0;
    /* an int beyond 2^53 may round to the float: compare as integers where that is possible */
    int64_t i = a->kind == VALUE_INT ? a->i : b->i;
    double f = a->kind == VALUE_INT ? b->f : a->f;
    int c = !float_is_int(f) ? -1 : i < (int64_t)f ? -1 : i > (int64_t)f;
    return a->kind == VALUE_INT ? c : -c;
}

static int
str_compare(const struct value *a, const struct value *b)
{
    size_t n = a->str.n < b->str.n ? a->str.n : b->str.n;
    int c = n ? memcmp(a->str.s, b->str.s, n) : 0;
    if (c)
        return c < 0 ? -1 : 1;
    return a->str.n < b->str.n ? -1 : a->str.n > b->str.n;
}

static int
pair_cmp(const void *a, const void *b)
{
    const struct value_pair *const *x = a, *const *y = b;
    return strcmp((*x)->k, (*y)->k);
}

/* Pointers to the pairs in key order; malloc'ed through talloc, freed by the caller. */
const struct value_pair **
value_map_sorted(const struct value *map)
{
    const struct value_pair **p = mem_array(NULL, const struct value_pair *, map->map.n);
    for (size_t i = 0; i < map->map.n; i++)
        p[i] = &map->map.v[i];
    qsort(p, map->map.n, sizeof(const struct value_pair *), pair_cmp);
    return p;
}

const char *
value_map_duplicate(const struct value *map)
{
    size_t n = map->map.n;
    const char *dup = NULL;
    if (n <= 8) {
        for (size_t i = 1; i < n; i++)
            for (size_t j = 0; j < i; j++)
                if (strcmp(map->map.v[i].k, map->map.v[j].k) == 0)
                    return map->map.v[i].k;
        return NULL;
    }
    const struct value_pair **p = value_map_sorted(map);
    for (size_t i = 1; i < n && !dup; i++)
        if (strcmp(p[i - 1]->k, p[i]->k) == 0)
            dup = p[i]->k;
    mem_free(p);
    return dup;
}

static int
map_compare(const struct value *a, const struct value *b)
{
    const struct value_pair **x = value_map_sorted(a), **y = value_map_sorted(b);
    int c = 0;
    for (size_t i = 0; i < a->map.n && i < b->map.n && !c; i++) {
        c = strcmp(x[i]->k, y[i]->k);
        c = c ? (c < 0 ? -1 : 1) : value_compare(x[i]->v, y[i]->v);
    }
    mem_free(x);
    mem_free(y);
    if (c)
        return c;
    return a->map.n < b->map.n ? -1 : a->map.n > b->map.n;
}

static int
value_rank(const struct value *v)
{
    return v->kind == VALUE_FLOAT ? (int)VALUE_INT : (int)v->kind;
}

int
value_compare(const struct value *a, const struct value *b)
{
    static const struct value null = {.kind = VALUE_NULL};
    a = a ? a : &null;
    b = b ? b : &null;
    if (value_rank(a) != value_rank(b))
        return value_rank(a) < value_rank(b) ? -1 : 1;
    switch (a->kind) {
    case VALUE_NULL:
        return 0;
    case VALUE_BOOL:
        return a->b == b->b ? 0 : a->b ? 1 : -1;
    case VALUE_INT:
    case VALUE_FLOAT:
        return number_compare(a, b);
    case VALUE_BIG:
        ASSERT(false); /* a number within its room */
    case VALUE_STRING:
        return str_compare(a, b);
    case VALUE_LIST:
        for (size_t i = 0; i < a->list.n && i < b->list.n; i++) {
            int c = value_compare(a->list.v[i], b->list.v[i]);
            if (c)
                return c;
        }
        return a->list.n < b->list.n ? -1 : a->list.n > b->list.n;
    case VALUE_MAP:
        return map_compare(a, b);
    }
    return 0;
}

bool
value_equal(const struct value *a, const struct value *b)
{
    return a == b || value_compare(a, b) == 0;
}

const char *
value_kind_name(enum value_kind k)
{
    switch (k) {
    case VALUE_NULL:
        return "null";
    case VALUE_BOOL:
        return "bool";
    case VALUE_INT:
    case VALUE_FLOAT:
    case VALUE_BIG:
        return "number";
    case VALUE_STRING:
        return "string";
    case VALUE_LIST:
        return "list";
    case VALUE_MAP:
        return "map";
    }
    return "unknown";
}
