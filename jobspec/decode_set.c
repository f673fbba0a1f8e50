/* SPDX-License-Identifier: Apache-2.0
 *
 * One value into one field of a struct. See decode.h.
 */
#include <string.h>

#include "common/duration.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "jobspec/decode.h"

static bool
decode_set_mismatch(struct decoder *dc, const struct field *f, const struct hcl_range *r,
                    const char *need)
{
    diag_error(dc->sink, r, "Incorrect value type",
               "Inappropriate value for \"%s\": %s is required.", f->hcl, need);
    return false;
}

static bool
to_string(struct decoder *dc, const struct field *f, const struct value *v,
          const struct hcl_range *r, const char **ret)
{
    const char *s = value_text(dc->ctx, v);
    if (s == NULL)
        return decode_set_mismatch(dc, f, r, "a string");
    size_t n = strlen(s);
    if (v->kind == VALUE_STRING && v->str.n != n)
        return decode_set_mismatch(dc, f, r, "a string without NUL");
    if (f->max > 0 && f->shape == FS_ONE && n > f->max) {
        diag_error(dc->sink, r, "Value too long", "\"%s\" has %zu bytes; the limit is %llu.",
                   f->hcl, n, (unsigned long long)f->max);
        return false;
    }
    *ret = s;
    return true;
}

static bool
to_bool(struct decoder *dc, const struct field *f, const struct value *v, const struct hcl_range *r,
        bool *ret)
{
    if (value_truth(v, ret))
        return true;
    if ((dc->flags & (HCL_LOOSE | HCL_JSON)) != 0) {
        if (v->kind == VALUE_STRING && num_parse_bool(v->str.s, ret) == 0)
            return true;
        if (v->kind == VALUE_INT && (v->i == 0 || v->i == 1)) {
            *ret = v->i == 1;
            return true;
        }
    }
    return decode_set_mismatch(dc, f, r, "true or false");
}

static bool
to_int(struct decoder *dc, const struct field *f, const struct value *v, const struct hcl_range *r,
       int64_t *ret)
{
    if (!number_int(v, ret))
        return decode_set_mismatch(dc, f, r, "a whole number");
    if (f->type == FT_UINT && *ret < 0)
        return decode_set_mismatch(dc, f, r, "a number that is not negative");
    return true;
}

static bool
to_duration(struct decoder *dc, const struct field *f, const struct value *v,
            const struct hcl_range *r, int64_t *ret)
{
    if (v->kind == VALUE_STRING) {
        if (duration_parse(v->str.s, ret) == 0)
            return true;
        diag_error(dc->sink, r, "Invalid duration",
                   "\"%s\" needs a duration such as \"30s\", \"5m\" or \"1h30m\", not \"%s\".",
                   f->hcl, v->str.s);
        return false;
    }
    if (number_int(v, ret))
        return true;
    return decode_set_mismatch(dc, f, r, "a duration such as \"30s\"");
}

static bool
set_one(struct decoder *dc, const struct field *f, void *dst, const struct value *v,
        const struct hcl_range *r)
{
    int64_t i = 0;
    double d = 0;
    bool b = false, opt = (f->flags & F_OPT) != 0;
    switch ((enum field_type)f->type) {
    case FT_STRING:
        return to_string(dc, f, v, r, dst);
    case FT_BOOL:
        if (!to_bool(dc, f, v, r, &b))
            return false;
        if (opt)
            *(struct opt_bool *)dst = (struct opt_bool){true, b};
        else
            *(bool *)dst = b;
        return true;
    case FT_INT:
    case FT_UINT:
    case FT_DURATION:
        if (f->type == FT_DURATION ? !to_duration(dc, f, v, r, &i) : !to_int(dc, f, v, r, &i))
            return false;
        if (opt)
            *(struct opt_i64 *)dst = (struct opt_i64){true, i};
        else if (f->type == FT_UINT)
            *(uint64_t *)dst = (uint64_t)i;
        else
            *(int64_t *)dst = i;
        return true;
    case FT_FLOAT:
        if (!number_double(v, &d))
            return decode_set_mismatch(dc, f, r, "a number");
        if (opt)
            *(struct opt_f64 *)dst = (struct opt_f64){true, d};
        else
            *(double *)dst = d;
        return true;
    case FT_VALUE:
        *(struct value **)dst = value_plain(dc->ctx, v);
        return true;
    default:
        return decode_set_mismatch(dc, f, r, "a block");
    }
}

static bool
set_list(struct decoder *dc, const struct field *f, void *dst, const struct value *v,
         const struct hcl_range *r)
{
    const struct value *one = v;
    struct value *const *items = v->kind == VALUE_LIST ? v->list.v : (struct value *const *)&one;
    size_t n = v->kind == VALUE_LIST ? v->list.n : 1;
    if (v->kind != VALUE_LIST &&
        ((dc->flags & (HCL_LOOSE | HCL_JSON)) == 0 || v->kind == VALUE_MAP))
        return decode_set_mismatch(dc, f, r, "a list");
    if (f->max > 0 && n > f->max) {
        diag_error(dc->sink, r, "List too long", "\"%s\" has %zu elements; the limit is %llu.",
                   f->hcl, n, (unsigned long long)f->max);
        return false;
    }
    size_t size = f->type == FT_STRING ? sizeof(char *) : sizeof(int64_t);
    if (f->type != FT_STRING && f->type != FT_INT && f->type != FT_DURATION && f->type != FT_FLOAT)
        return decode_set_mismatch(dc, f, r, "a block");
    /* list_add() grows at powers of two: so is the capacity here. */
    size_t cap = 1;
    while (cap < n)
        cap *= 2;
    char *out = mem_zalloc_array(dc->ctx, size, cap, "list");
    struct field elem = *f;
    elem.flags &= (uint16_t)~F_OPT;
    for (size_t i = 0; i < n; i++) {
        if (items[i]->kind == VALUE_NULL) {
            diag_error(dc->sink, r, "Unsuitable value type",
                       "Unsuitable value: element %zu of \"%s\": null value is not allowed.", i,
                       f->hcl);
            return false;
        }
        if (!set_one(dc, &elem, out + i * size, items[i], r))
            return false;
    }
    struct {
        void *v;
        size_t n;
    } list = {out, n};
    memcpy(dst, &list, sizeof(list));
    return true;
}

bool
decode_map_entry(struct decoder *dc, const struct field *f, void *obj, const char *key,
                 const struct value *v, const struct hcl_range *r)
{
    void *map = (char *)obj + f->offset;
    const char *s;
    int64_t i;
    if (v->kind == VALUE_NULL && f->type != FT_VALUE) {
        diag_error(dc->sink, r, "Unsuitable value type",
                   "Unsuitable value: \"%s\" of \"%s\": null value is not allowed.", key, f->hcl);
        return false;
    }
    switch ((enum field_type)f->type) {
    case FT_STRING:
        if (!to_string(dc, f, v, r, &s))
            return false;
        str_map_set(dc->ctx, map, key, s);
        return true;
    case FT_INT:
        if (!to_int(dc, f, v, r, &i))
            return false;
        map_put(dc->ctx, *(struct i64_map *)map, key)->v = i;
        return true;
    case FT_STRINGS: {
        struct field elem = {.hcl = f->hcl, .type = FT_STRING, .shape = FS_LIST};
        return set_list(dc, &elem, &map_put(dc->ctx, *(struct strs_map *)map, key)->v, v, r);
    }
    case FT_VALUE:
        map_put(dc->ctx, *(struct value_map *)map, key)->v = value_plain(dc->ctx, v);
        return true;
    default:
        return decode_set_mismatch(dc, f, r, "something else");
    }
}

bool
decode_set(struct decoder *dc, const struct field *f, void *obj, const struct value *v,
           const struct hcl_range *r)
{
    if (v->kind == VALUE_NULL)
        return true;
    void *dst = (char *)obj + f->offset;
    if (f->shape == FS_LIST)
        return set_list(dc, f, dst, v, r);
    if (f->shape == FS_ONE)
        return set_one(dc, f, dst, v, r);
    if (v->kind != VALUE_MAP)
        return decode_set_mismatch(dc, f, r, "a map");
    for (size_t i = 0; i < v->map.n; i++)
        if (!decode_map_entry(dc, f, obj, v->map.v[i].k, v->map.v[i].v, r))
            return false;
    return true;
}

/* --- defaults --- */

static bool
int_at_default(const struct field *f, int64_t v)
{
    int64_t d = 0;
    if (f->dflt != NULL && f->type == FT_DURATION)
        duration_parse(f->dflt, &d);
    else if (f->dflt != NULL)
        num_parse_i64(f->dflt, &d);
    return v == d;
}

bool
decode_at_default(const struct field *f, const void *obj)
{
    if (codec_field_empty(f, obj))
        return true;
    if (f->shape != FS_ONE)
        return false;
    const void *p = (const char *)obj + f->offset;
    bool opt = (f->flags & F_OPT) != 0, b = false;
    double d = 0;
    switch ((enum field_type)f->type) {
    case FT_STRING:
        return str_eq(*(const char *const *)p, f->dflt);
    case FT_BOOL:
        if (f->dflt != NULL)
            num_parse_bool(f->dflt, &b);
        return (opt ? ((const struct opt_bool *)p)->v : *(const bool *)p) == b;
    case FT_INT:
    case FT_UINT:
    case FT_DURATION:
        return int_at_default(f, opt ? ((const struct opt_i64 *)p)->v : *(const int64_t *)p);
    case FT_FLOAT:
        if (f->dflt != NULL)
            num_parse_f64(f->dflt, &d);
        return (opt ? ((const struct opt_f64 *)p)->v : *(const double *)p) == d;
    default:
        return false;
    }
}
