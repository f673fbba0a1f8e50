/* SPDX-License-Identifier: Apache-2.0 */
#include "template/collect.h"

#include <string.h>

static bool
lists_equal(struct run *r, struct gv a, struct gv b)
{
    bool same = gv_len(a) == gv_len(b);
    for (size_t i = 0; same && i < gv_len(a); i++)
        same = gv_equal(r, a.list->v[i], b.list->v[i]);
    return same;
}

static bool
maps_equal(struct run *r, struct gv a, struct gv b)
{
    bool same = gv_len(a) == gv_len(b);
    for (size_t i = 0; same && i < gv_len(a); i++)
        same = gv_key_compare(a.map->v[i].k, b.map->v[i].k) == 0 &&
               gv_equal(r, a.map->v[i].v, b.map->v[i].v);
    return same;
}

bool
gv_equal(struct run *r, struct gv a, struct gv b)
{
    bool same;
    if (gv_none(a) || gv_none(b))
        return gv_none(a) && gv_none(b);
    if (a.t != b.t)
        return false;
    switch (gv_kind(a)) {
    case GV_BOOL:
        return a.b == b.b;
    case GV_FLOAT:
        return a.f == b.f;
    case GV_COMPLEX:
        return a.re == b.re && a.im == b.im;
    case GV_STRING:
        run_step(r, a.n / 1024);
        return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
    case GV_LIST:
    case GV_MAP:
        if (gv_is_nil(a) != gv_is_nil(b))
            return false;
        run_enter(r);
        same = gv_kind(a) == GV_LIST ? lists_equal(r, a, b) : maps_equal(r, a, b);
        run_leave(r);
        return same;
    case GV_STRUCT:
        return a.obj == b.obj;
    default:
        return a.i == b.i;
    }
}

/* --- maps --- */

void
gv_map_put(struct run *r, struct gv_map *m, struct gv k, struct gv v)
{
    bool found;
    size_t i = gv_map_slot(m, k, &found);
    if (!found) {
        if (m->n == m->cap) {
            struct gv_pair *p = run_bytes(r, (2 * m->cap + 8) * sizeof(*p));
            if (m->n)
                memcpy(p, m->v, m->n * sizeof(*p));
            m->cap = 2 * m->cap + 8;
            m->v = p;
        }
        run_step(r, (m->n - i) / 16);
        memmove(m->v + i + 1, m->v + i, (m->n - i) * sizeof(*m->v));
        m->n++;
    }
    m->v[i] = (struct gv_pair){k, v};
}

struct gv
gv_map_new(struct run *r, const struct gv_type *t)
{
    return (struct gv){.t = t, .map = run_alloc(r, sizeof(struct gv_map))};
}

struct gv
gv_map_copy(struct run *r, struct gv map)
{
    struct gv ret = gv_map_new(r, map.t);
    for (size_t i = 0; i < gv_len(map); i++)
        gv_map_put(r, ret.map, map.map->v[i].k, map.map->v[i].v);
    return ret;
}

/* --- lists --- */

struct gv
gv_list_new(struct run *r, const struct gv_type *t, size_t cap)
{
    struct gv v = {.t = t, .list = run_alloc(r, sizeof(struct gv_list))};
    v.list->v = cap ? run_alloc(r, cap * sizeof(struct gv)) : NULL;
    v.list->cap = cap;
    return v;
}

void
gv_list_add(struct run *r, struct gv_list *l, struct gv v)
{
    if (l->n == l->cap) {
        struct gv *p = run_bytes(r, (2 * l->cap + 8) * sizeof(*p));
        if (l->n)
            memcpy(p, l->v, l->n * sizeof(*p));
        l->cap = 2 * l->cap + 8;
        l->v = p;
    }
    l->v[l->n++] = v;
}

struct gv
gv_list_copy(struct run *r, struct gv list)
{
    size_t n = gv_len(list);
    struct gv ret = gv_list_new(r, list.t, n);
    if (n)
        memcpy(ret.list->v, list.list->v, n * sizeof(struct gv));
    ret.list->n = n;
    return ret;
}

void
collect_merge(struct run *r, struct gv *dst, struct gv src, bool over)
{
    run_enter(r);
    for (size_t i = 0; i < gv_len(src); i++) {
        if (!dst->map)
            *dst = gv_map_new(r, &gv_map_any);
        struct gv k = src.map->v[i].k, v = src.map->v[i].v, *old = gv_map_find(dst->map, k);
        if (gv_is_nil(v)) {
            if (over)
                gv_map_put(r, dst->map, k, v);
        } else if (old && old->t == &gv_map_any && v.t == &gv_map_any)
            collect_merge(r, old, v, over);
        else if (!old || !gv_truth(*old) || (over && gv_truth(v)))
            gv_map_put(r, dst->map, k, v);
    }
    run_leave(r);
}
