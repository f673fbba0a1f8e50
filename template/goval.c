/* SPDX-License-Identifier: Apache-2.0
 *
 * Values as Go has them. The types are first, then what all values have in common, then maps.
 */
#include "template/goval.h"

#include <string.h>


const struct gv_type gv_any = {GV_NIL, 0, "interface {}", NULL, NULL, NULL, false};
const struct gv_type gv_value = {GV_VALUE, 0, "reflect.Value", NULL, NULL, NULL, false};
const struct gv_type gv_bool = {GV_BOOL, 0, "bool", NULL, NULL, NULL, false};
const struct gv_type gv_int = {GV_INT, 64, "int", NULL, NULL, NULL, false};
const struct gv_type gv_int64 = {GV_INT, 64, "int64", NULL, NULL, NULL, false};
static const struct gv_type gv_uint8 = {GV_UINT, 8, "uint8", NULL, NULL, NULL, false};
const struct gv_type gv_uint64 = {GV_UINT, 64, "uint64", NULL, NULL, NULL, false};
const struct gv_type gv_float64 = {GV_FLOAT, 64, "float64", NULL, NULL, NULL, false};
const struct gv_type gv_complex = {GV_COMPLEX, 128, "complex128", NULL, NULL, NULL, false};
const struct gv_type gv_string = {GV_STRING, 0, "string", &gv_uint8, NULL, NULL, false};
const struct gv_type gv_anys = {GV_LIST, 0, "[]interface {}", &gv_any, NULL, NULL, false};
const struct gv_type gv_strings = {GV_LIST, 0, "[]string", &gv_string, NULL, NULL, false};
const struct gv_type gv_ints = {GV_LIST, 0, "[]int", &gv_int, NULL, NULL, false};
const struct gv_type gv_lists = {GV_LIST, 0, "[][]interface {}", &gv_anys, NULL, NULL, false};
const struct gv_type gv_map_any = {GV_MAP, 0,    "map[string]interface {}", &gv_any, &gv_string,
                                   NULL,   false};
const struct gv_type gv_map_mixed = {
    GV_MAP, 0, "map[interface {}]interface {}", &gv_any, &gv_any, NULL, false};
const struct gv_type gv_map_string = {GV_MAP, 0,    "map[string]string", &gv_string, &gv_string,
                                      NULL,   false};
const struct gv_type gv_map_anys = {GV_MAP, 0,    "map[string][]interface {}", &gv_anys, &gv_string,
                                    NULL,   false};
const struct gv_type gv_ports = {GV_MAP, 0,    "map[int][]interface {}", &gv_anys, &gv_int,
                                 NULL,   false};
const struct gv_type gv_chan = {GV_CHAN, 0, "<-chan int64", &gv_int64, NULL, NULL, false};

/* --- all values --- */

bool
gv_is_nil(struct gv v)
{
    switch (gv_kind(v)) {
    case GV_INVALID:
    case GV_NIL:
        return true;
    case GV_LIST:
        return v.list == NULL;
    case GV_MAP:
        return v.map == NULL;
    case GV_STRUCT:
        return v.t->pointer && v.obj == NULL;
    default:
        return false;
    }
}

size_t
gv_len(struct gv v)
{
    switch (gv_kind(v)) {
    case GV_STRING:
        return v.n;
    case GV_LIST:
        return v.list ? v.list->n : 0;
    case GV_MAP:
        return v.map ? v.map->n : 0;
    default:
        return 0;
    }
}

bool
gv_truth(struct gv v)
{
    switch (gv_kind(v)) {
    case GV_BOOL:
        return v.b;
    case GV_INT:
    case GV_UINT:
        return v.u != 0;
    case GV_FLOAT:
        return v.f != 0;
    case GV_COMPLEX:
        return v.re != 0 || v.im != 0;
    case GV_STRING:
    case GV_LIST:
        return gv_len(v) > 0;
    case GV_MAP:
        return v.t->pointer ? v.map != NULL : gv_len(v) > 0;
    case GV_STRUCT:
        return !gv_is_nil(v);
    case GV_CHAN:
        return true;
    default:
        return false;
    }
}

struct gv
gv_zero(const struct gv_type *t)
{
    struct gv v = {.t = t == &gv_value ? NULL : t};
    if (t && t->kind == GV_STRING)
        v.s = "";
    return v;
}

const char *
gv_type_name(struct gv v)
{
    return v.t ? v.t->name : "<nil>";
}

int
gv_key_compare(struct gv a, struct gv b)
{
    if (gv_kind(a) != gv_kind(b))
        return gv_kind(a) < gv_kind(b) ? -1 : 1;
    if (gv_kind(a) == GV_STRING) {
        int d = memcmp(a.s, b.s, a.n < b.n ? a.n : b.n);
        return d ? d : (a.n > b.n) - (a.n < b.n);
    }
    if (gv_kind(a) == GV_FLOAT)
        return (a.f > b.f) - (a.f < b.f);
    if (gv_kind(a) == GV_BOOL)
        return (int)a.b - (int)b.b;
    return (a.i > b.i) - (a.i < b.i);
}

struct gv
gv_at(struct gv v, size_t i)
{
    if (gv_kind(v) == GV_STRING)
        return (struct gv){.t = &gv_uint8, .u = (uint8_t)v.s[i]};
    return v.list->v[i];
}

/* --- maps --- */

size_t
gv_map_slot(const struct gv_map *m, struct gv k, bool *found)
{
    size_t lo = 0, hi = m->n;
    *found = false;
    if (hi > 0 && gv_key_compare(m->v[hi - 1].k, k) < 0)
        return hi;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int d = gv_key_compare(m->v[mid].k, k);
        if (d == 0) {
            *found = true;
            return mid;
        }
        if (d < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct gv *
gv_map_find(const struct gv_map *m, struct gv k)
{
    bool found;
    size_t i = m ? gv_map_slot(m, k, &found) : 0;
    return m && found ? &m->v[i].v : NULL;
}

struct gv *
gv_map_text(struct gv map, const char *key)
{
    return gv_kind(map) == GV_MAP ? gv_map_find(map.map, GV_TEXT(key, strlen(key))) : NULL;
}

void
gv_map_drop(struct gv_map *m, struct gv k)
{
    bool found;
    size_t i = gv_map_slot(m, k, &found);
    if (!found)
        return;
    m->n--;
    memmove(m->v + i, m->v + i + 1, (m->n - i) * sizeof(*m->v));
}
