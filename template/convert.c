/* SPDX-License-Identifier: Apache-2.0 */
#include "template/convert.h"

#include <string.h>

static struct gv
convert_list(struct run *r, const struct value *v, enum convert how)
{
    struct gv list = gv_list_new(r, &gv_anys, v->list.n);
    for (size_t i = 0; i < v->list.n; i++)
        gv_list_add(r, list.list, convert_value(r, v->list.v[i], how));
    return list;
}

static struct gv
convert_map(struct run *r, const struct value *v, enum convert how)
{
    struct gv map = gv_map_new(r, &gv_map_any);
    for (size_t i = 0; i < v->map.n; i++)
        gv_map_put(r, map.map, GV_TEXT(v->map.v[i].k, strlen(v->map.v[i].k)),
                   convert_value(r, v->map.v[i].v, how));
    return map;
}

struct gv
convert_value(struct run *r, const struct value *v, enum convert how)
{
    struct gv ret = GV_NULL;
    if (!v)
        return GV_NONE;
    run_enter(r);
    switch (v->kind) {
    case VALUE_BOOL:
        ret = GV_TRUE(v->b);
        break;
    case VALUE_INT:
        ret = GV_INTEGER(v->i);
        break;
    case VALUE_FLOAT:
        ret = GV_REAL(v->f);
        break;
    case VALUE_STRING:
        ret = GV_TEXT(v->str.s, v->str.n);
        break;
    case VALUE_LIST:
        ret = convert_list(r, v, how);
        break;
    case VALUE_MAP:
        ret = convert_map(r, v, how);
        break;
    default:
        ret = how == CONVERT_CLI ? (struct gv){.t = &gv_map_any} : GV_NULL;
    }
    run_leave(r);
    return ret;
}
