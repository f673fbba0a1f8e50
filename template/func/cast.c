/* SPDX-License-Identifier: Apache-2.0 */
#include "template/func/cast.h"

#include <math.h>
#include <string.h>

#include "template/fmt.h"
#include "template/strconv.h"

/* Truncates as amd64 does: what an int64 does not hold is the least one. */
static int64_t
cast_truncate(double f)
{
    return isnan(f) || f >= 0x1p63 || f < -0x1p63 ? INT64_MIN : (int64_t)f;
}

/* "12.00" is 12. */
static size_t
without_zeros(struct gv s)
{
    bool zero = false;
    for (size_t i = s.n; i > 0; i--) {
        if (s.s[i - 1] == '.')
            return zero ? i - 1 : s.n;
        if (s.s[i - 1] != '0')
            return s.n;
        zero = true;
    }
    return s.n;
}

int64_t
cast_int(struct gv v)
{
    int64_t i = 0;
    switch (gv_kind(v)) {
    case GV_INT:
    case GV_UINT:
        return v.i;
    case GV_FLOAT:
        return cast_truncate(v.f);
    case GV_BOOL:
        return v.b;
    case GV_STRING:
        return strconv_int(v.s, without_zeros(v), 0, &i) == STRCONV_OK ? i : 0;
    default:
        return 0;
    }
}

double
cast_float(struct gv v)
{
    double f = 0;
    switch (gv_kind(v)) {
    case GV_INT:
        return (double)v.i;
    case GV_UINT:
        return (double)v.u;
    case GV_FLOAT:
        return v.f;
    case GV_BOOL:
        return v.b;
    case GV_STRING:
        return strconv_float(v.s, v.n, &f) == STRCONV_OK ? f : 0;
    default:
        return 0;
    }
}

struct gv
cast_text(struct run *r, struct gv v)
{
    struct text t = {NULL, 0, 0};
    if (gv_kind(v) == GV_STRING)
        return GV_TEXT(v.s, v.n);
    fmt_put(r, &t, v);
    return text_gv(&t);
}

struct gv
cast_texts(struct run *r, struct gv v)
{
    struct gv list = gv_list_new(r, &gv_strings, 0);
    if (gv_kind(v) != GV_LIST) {
        if (!gv_none(v))
            gv_list_add(r, list.list, cast_text(r, v));
        return list;
    }
    for (size_t i = 0; i < gv_len(v); i++)
        if (!gv_none(v.list->v[i]))
            gv_list_add(r, list.list, cast_text(r, v.list->v[i]));
    return list;
}

const char *
cast_kind(struct gv v)
{
    static const char *const names[] = {[GV_INVALID] = "invalid", [GV_NIL] = "invalid",
                                        [GV_BOOL] = "bool",       [GV_COMPLEX] = "complex128",
                                        [GV_STRING] = "string",   [GV_LIST] = "slice",
                                        [GV_MAP] = "map",         [GV_STRUCT] = "struct",
                                        [GV_CHAN] = "chan"};
    if (v.t && v.t->pointer)
        return "ptr";
    if (gv_kind(v) == GV_INT)
        return v.t == &gv_int ? "int" : "int64";
    if (gv_kind(v) == GV_UINT)
        return v.t->bits == 8 ? "uint8" : "uint64";
    return gv_kind(v) == GV_FLOAT ? "float64" : names[gv_kind(v)];
}

bool
cast_empty(struct gv v)
{
    return gv_kind(v) == GV_STRUCT ? gv_is_nil(v) : !gv_truth(v);
}
