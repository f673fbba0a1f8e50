/* SPDX-License-Identifier: Apache-2.0
 *
 * What the schema says beyond types: defaults, limits, and fields that are known but have no effect
 * yet.
 */
#include <stdio.h>

#include "codec/intern.h"

#include "common/duration.h"
#include "common/num.h"

/* --- defaults --- */

/* The default as a value of the field's type; schema mistakes abort (a test visits every field). */
static void
set_default(const struct field *f, void *obj)
{
    void *p = field_ptr(f, obj);
    void *v = f->flags & F_OPT ? opt_value(f, p) : p;
    int rc = 0;
    switch ((enum field_type)f->type) {
    case FT_BOOL:
        rc = num_parse_bool(f->dflt, v);
        break;
    case FT_INT:
        rc = num_parse_i64(f->dflt, v);
        break;
    case FT_UINT:
        rc = num_parse_u64(f->dflt, v);
        break;
    case FT_FLOAT:
        rc = num_parse_f64(f->dflt, v);
        break;
    case FT_DURATION:
        rc = duration_parse(f->dflt, v);
        break;
    case FT_STRING:
        *(const char **)v = f->dflt;
        break;
    default:
        rc = -1;
    }
    ASSERT(rc == 0);
    if (f->flags & F_OPT)
        *opt_set(p) = true;
}

void
codec_defaults(const void *ctx, const struct type *t, void *obj)
{
    if (!obj)
        return;
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        void *p = field_ptr(f, obj);
        if (f->type == FT_STRUCT && f->shape == FS_ONE) {
            codec_defaults(ctx, f->sub, *(any_ptr *)p);
        } else if (f->type == FT_STRUCT) {
            struct any_list *l = p;
            for (size_t j = 0; j < l->n; j++)
                codec_defaults(ctx, f->sub, *(any_ptr *)elem_at(f, l, j));
        } else if (f->dflt && f->shape == FS_ONE && codec_field_empty(f, obj)) {
            set_default(f, obj);
        }
    }
}

/* --- limits --- */

static int
check_text(const struct field *f, const char *s, size_t max, struct err *e)
{
    if (s && strlen(s) > max)
        return err_set(e, -ERR_LIMIT, "%s: %zu bytes are more than the %zu allowed", f->wire,
                       strlen(s), max);
    return 0;
}

static int
check_list(const struct field *f, const struct any_list *l, struct err *e)
{
    size_t max = field_max(f, CODEC_COUNT_MAX);
    if (l->n > max)
        return err_set(e, -ERR_LIMIT, "%s: %zu elements are more than the %zu allowed", f->wire,
                       l->n, max);
    for (size_t i = 0; i < l->n; i++) {
        const void *p = elem_at(f, l, i);
        int rc = 0;
        if (f->type == FT_STRING)
            rc = check_text(f, *(const char *const *)p, CODEC_STRING_MAX, e);
        else if (f->type == FT_STRUCT)
            rc = codec_check(f->sub, *(const any_ptr *)p, e);
        if (rc && f->type == FT_STRUCT)
            return f->shape == FS_MAP ? err_prefix(e, "%s[\"%.64s\"]", f->wire, key_at(f, l, i))
                                      : err_prefix(e, "%s[%zu]", f->wire, i);
        if (rc)
            return rc;
    }
    return 0;
}

int
codec_check(const struct type *t, const void *obj, struct err *e)
{
    for (size_t i = 0; obj && i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        const void *p = field_ptr(f, obj);
        int rc = 0;
        if (f->shape != FS_ONE) {
            rc = check_list(f, p, e);
        } else if (f->type == FT_STRING) {
            rc = check_text(f, *(const char *const *)p, field_max(f, CODEC_STRING_MAX), e);
        } else if (f->type == FT_STRUCT) {
            rc = codec_check(f->sub, *(const any_ptr *)p, e);
            if (rc)
                return err_prefix(e, "%s", f->wire);
        }
        if (rc)
            return rc;
    }
    return 0;
}

/* --- fields without effect yet --- */

static bool
at_default(const struct field *f, const void *obj)
{
    if (codec_field_empty(f, obj))
        return true;
    if (!f->dflt || f->shape != FS_ONE)
        /* `x = false` and `x = 0` of an optional scalar ask for nothing either */
        return false;
    union {
        struct opt_bool b;
        struct opt_i64 i;
        struct opt_f64 f;
        const char *s;
        char room[32];
    } want = {.room = {0}};
    struct field at_zero = *f;
    at_zero.offset = 0;
    set_default(&at_zero, &want);
    const struct type t = {.name = "", .size = sizeof(want), .fields = &at_zero, .n_fields = 1};
    return codec_equal(&t, (const char *)obj + f->offset, &want, 0);
}

static const char *
label_of(const struct type *t, const void *obj)
{
    for (size_t i = 0; i < t->n_fields; i++)
        if (t->fields[i].flags & F_LABEL && t->fields[i].type == FT_STRING)
            return *(const char *const *)field_ptr(&t->fields[i], obj);
    return NULL;
}

struct later {
    const void *ctx;
    struct str_list *found;
    const char *path; /* "group \"web\": ", or "" */
};

static void find_later(const struct later *l, const struct type *t, const void *obj);

static void
later_sub(const struct later *l, const struct field *f, const void *sub, const char *key)
{
    if (!sub)
        return;
    const char *name = f->hcl ? f->hcl : f->wire, *label = key ? key : label_of(f->sub, sub);
    struct later in = *l;
    in.path = label ? mem_printf(l->ctx, "%s%s \"%.64s\": ", l->path, name, label)
                    : mem_printf(l->ctx, "%s%s: ", l->path, name);
    find_later(&in, f->sub, sub);
}

static void
find_later(const struct later *l, const struct type *t, const void *obj)
{
    const char *names = NULL;
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        const char *name = f->hcl ? f->hcl : f->wire;
        if (f->flags & F_LATER && !at_default(f, obj))
            names = names ? mem_printf(l->ctx, "%s, %s", names, name) : name;
    }
    if (names)
        list_add(l->ctx, *l->found, mem_printf(l->ctx, "%s%s", l->path, names));
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        const void *p = field_ptr(f, obj);
        if (f->type != FT_STRUCT || f->flags & F_LATER)
            continue;
        const struct any_list *list = p;
        if (f->shape == FS_ONE)
            later_sub(l, f, *(const any_ptr *)p, NULL);
        else
            for (size_t j = 0; j < list->n; j++)
                later_sub(l, f, *(const any_ptr *)elem_at(f, list, j),
                          f->shape == FS_MAP ? key_at(f, list, j) : NULL);
    }
}

void
codec_list_later(const void *ctx, const struct type *t, const void *obj, struct str_list *ret)
{
    find_later(&(struct later){ctx, ret, ""}, t, obj);
}
