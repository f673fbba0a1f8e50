/* SPDX-License-Identifier: Apache-2.0
 *
 * Structural differences. Recursion follows the schema and values that bounded decoders made.
 *
 * In this order: differences as they are collected (fields, objects, sorting at the end); scalars
 * as text; then one section for each shape of a field: maps of scalars, sets of strings, values,
 * lists and maps of structs; and the dispatch by field, which calls them and is called by them.
 */
#include "codec/diff.h"

#include <stdio.h>
#include <stdlib.h>

#include "codec/base64.h"
#include "codec/intern.h"
#include "common/duration.h"
#include "common/str.h"

struct differ {
    const void *ctx;
    const struct diff_rules *rules;
    struct diff_object *out;
};

const char *
diff_type_name(enum diff_type t)
{
    static const char *const names[] = {"None", "Added", "Deleted", "Edited"};
    return names[t];
}

/* --- collecting --- */

static struct diff_object *
object_new(const void *ctx, const char *name, const void *old, const void *new)
{
    struct diff_object *o = mem_new(ctx, struct diff_object);
    o->name = mem_strdup(o, name);
    o->type = !old ? DIFF_ADDED : !new ? DIFF_DELETED : DIFF_EDITED;
    return o;
}

/* `secret`: the fact of a change is shown, the texts are not. */
static void
add_text(struct differ *d, const char *name, const char *old, const char *new, bool secret)
{
    old = old ? old : "";
    new = new ? new : "";
    bool same = strcmp(old, new) == 0;
    if (same && !d->rules->contextual)
        return;
    struct diff_field *f = mem_new(d->out, struct diff_field);
    f->type = same ? DIFF_NONE : !*old ? DIFF_ADDED : !*new ? DIFF_DELETED : DIFF_EDITED;
    f->name = mem_strdup(f, name);
    f->old = mem_strdup(f, secret && *old ? "<sensitive>" : old);
    f->new = mem_strdup(f, secret && *new ? "<sensitive>" : new);
    list_add(d->out, d->out->fields, f);
}

static void
add_field(struct differ *d, const char *name, const char *old, const char *new)
{
    add_text(d, name, old, new, false);
}

static void
add_object(struct differ *d, struct diff_object *o)
{
    if (!o)
        return;
    talloc_steal(d->out, o);
    list_add(d->out, d->out->objects, o);
}

static int
field_cmp(const void *a, const void *b)
{
    const struct diff_field *const *x = a, *const *y = b;
    int c = strcmp((*x)->name, (*y)->name);
    c = c ? c : strcmp((*x)->old, (*y)->old);
    return c ? c : strcmp((*x)->new, (*y)->new);
}

static int
object_cmp(const void *a, const void *b)
{
    const struct diff_object *const *x = a, *const *y = b;
    int c = strcmp((*x)->name, (*y)->name);
    if (c)
        return c;
    /* deletions first, then by content, so that the order never depends on the input's */
    if ((*x)->type != (*y)->type)
        return (*x)->type == DIFF_DELETED ? -1 : (*y)->type == DIFF_DELETED ? 1 : 0;
    for (size_t i = 0; i < (*x)->fields.n && i < (*y)->fields.n; i++) {
        c = field_cmp(&(*x)->fields.v[i], &(*y)->fields.v[i]);
        if (c)
            return c;
    }
    return (*x)->fields.n < (*y)->fields.n ? -1 : (*x)->fields.n > (*y)->fields.n;
}

/* Sorts; an edited object without any change is none. */
static struct diff_object *
diff_finish(struct diff_object *o)
{
    bool changed = o->type != DIFF_EDITED || o->objects.n > 0;
    for (size_t i = 0; i < o->fields.n && !changed; i++)
        changed = o->fields.v[i]->type != DIFF_NONE;
    if (!changed) {
        talloc_free(o);
        return NULL;
    }
    if (o->fields.n)
        qsort(o->fields.v, o->fields.n, sizeof(*o->fields.v), field_cmp);
    if (o->objects.n)
        qsort(o->objects.v, o->objects.n, sizeof(*o->objects.v), object_cmp);
    return o;
}

/* --- texts --- */

static const char *
bytes_text(const void *ctx, const struct bytes *b)
{
    auto_buf struct buf out = BUF_INIT(SIZE_MAX / 2);
    base64_encode(&out, b->v, b->n);
    return mem_strdup(ctx, buf_str(&out));
}

static const char *
float_text(const void *ctx, double f)
{
    auto_buf struct buf out = BUF_INIT(64);
    const struct value v = {.kind = VALUE_FLOAT, .f = f};
    json_encode_value(&out, &v, 0);
    return mem_strdup(ctx, buf_str(&out));
}

/* Text of a scalar; p NULL: "". */
static const char *
scalar_text(const void *ctx, const struct field *f, const void *p)
{
    if (!p)
        return "";
    switch ((enum field_type)f->type) {
    case FT_BOOL:
        return *(const bool *)p ? "true" : "false";
    case FT_INT:
    case FT_DURATION:
        return mem_printf(ctx, "%lld", (long long)*(const int64_t *)p);
    case FT_UINT:
        return mem_printf(ctx, "%llu", (unsigned long long)*(const uint64_t *)p);
    case FT_FLOAT:
        return float_text(ctx, *(const double *)p);
    case FT_TIME: {
        char t[TIME_TEXT];
        return *(const int64_t *)p ? mem_strdup(ctx, time_format(*(const int64_t *)p, t)) : "";
    }
    case FT_STRING:
        return str_or(*(const char *const *)p, "");
    case FT_BYTES:
        return bytes_text(ctx, p);
    default:
        return "";
    }
}

static const void *
scalar_of(const struct field *f, const void *obj)
{
    if (!obj)
        return NULL;
    const void *p = field_ptr(f, obj);
    if (!(f->flags & F_OPT))
        return p;
    return *(const bool *)p ? opt_value(f, p) : NULL;
}

/* The list in `obj`, or an empty one. */
static struct any_list
list_of(const struct field *f, const void *obj)
{
    return obj ? *(const struct any_list *)field_ptr(f, obj) : (struct any_list){NULL, 0};
}

/* --- maps of scalars --- */

static const void *
map_value(const struct field *f, const struct any_list *m, const char *key)
{
    const char *pair = codec_map_find(m, map_stride(f), key);
    return pair ? pair + sizeof(char *) : NULL;
}

static void
diff_map(struct differ *d, const struct field *f, const struct any_list *a,
         const struct any_list *b)
{
    void *tmp = talloc_new(d->out);
    for (int side = 0; side < 2; side++) {
        const struct any_list *m = side ? b : a;
        for (size_t i = 0; i < m->n; i++) {
            const char *k = key_at(f, m, i);
            const void *old = map_value(f, a, k), *new = map_value(f, b, k);
            if (side && old)
                continue;
            add_text(d, mem_printf(tmp, "%s[%s]", f->wire, k), scalar_text(tmp, f, old),
                     scalar_text(tmp, f, new), f->flags & F_SECRET);
        }
    }
    talloc_free(tmp);
}

/* --- sets of strings --- */

static void
diff_strings(struct differ *d, const char *name, const struct str_list *a, const struct str_list *b)
{
    struct diff_object *o = object_new(d->ctx, name, a->n ? a : NULL, b->n ? b : NULL);
    struct differ in = {d->ctx, d->rules, o};
    if (!a->n && !b->n) {
        talloc_free(o);
        return;
    }
    for (size_t i = 0; i < a->n; i++)
        add_field(&in, name, a->v[i], str_list_has(b, a->v[i]) ? a->v[i] : "");
    for (size_t i = 0; i < b->n; i++)
        if (!str_list_has(a, b->v[i]))
            add_field(&in, name, "", b->v[i]);
    add_object(d, diff_finish(o));
}

/* --- values --- */

static void diff_flatten(struct differ *d, const char *name, const struct value *old,
                         const struct value *new);

static const char *
value_text(const void *ctx, const struct value *v)
{
    if (!v || v->kind == VALUE_NULL)
        return "";
    if (v->kind == VALUE_STRING)
        return v->str.s;
    auto_buf struct buf out = BUF_INIT(SIZE_MAX / 2);
    json_encode_value(&out, v, 0);
    return mem_strdup(ctx, buf_str(&out));
}

static bool
is_kind(const struct value *v, enum value_kind k)
{
    return v && v->kind == k;
}

static void
flatten_map(struct differ *d, const char *name, const struct value *old, const struct value *new)
{
    for (int side = 0; side < 2; side++) {
        const struct value *m = side ? new : old;
        if (!is_kind(m, VALUE_MAP))
            continue;
        for (size_t i = 0; i < m->map.n; i++) {
            const char *k = m->map.v[i].k;
            if (side && is_kind(old, VALUE_MAP) && value_get(old, k))
                continue;
            char *sub = *name ? mem_printf(NULL, "%s[%s]", name, k) : mem_strdup(NULL, k);
            diff_flatten(d, sub, is_kind(old, VALUE_MAP) ? value_get(old, k) : NULL,
                         is_kind(new, VALUE_MAP) ? value_get(new, k) : NULL);
            talloc_free(sub);
        }
    }
}

static void
flatten_list(struct differ *d, const char *name, const struct value *old, const struct value *new)
{
    size_t a = is_kind(old, VALUE_LIST) ? old->list.n : 0;
    size_t b = is_kind(new, VALUE_LIST) ? new->list.n : 0;
    for (size_t i = 0; i < a || i < b; i++) {
        char *sub = mem_printf(NULL, "%s[%zu]", name, i);
        diff_flatten(d, sub, i < a ? old->list.v[i] : NULL, i < b ? new->list.v[i] : NULL);
        talloc_free(sub);
    }
}

static bool
is_scalar(const struct value *v)
{
    return v && v->kind != VALUE_LIST && v->kind != VALUE_MAP;
}

static void
diff_flatten(struct differ *d, const char *name, const struct value *old, const struct value *new)
{
    if (is_kind(old, VALUE_MAP) || is_kind(new, VALUE_MAP))
        flatten_map(d, name, old, new);
    if (is_kind(old, VALUE_LIST) || is_kind(new, VALUE_LIST))
        flatten_list(d, name, old, new);
    if (is_scalar(old) || is_scalar(new)) {
        void *tmp = talloc_new(d->out);
        add_field(d, name, is_scalar(old) ? value_text(tmp, old) : "",
                  is_scalar(new) ? value_text(tmp, new) : "");
        talloc_free(tmp);
    }
}

static struct diff_object *
diff_values(const void *ctx, const struct diff_rules *r, const char *name, const struct value *old,
            const struct value *new)
{
    old = is_kind(old, VALUE_NULL) ? NULL : old;
    new = is_kind(new, VALUE_NULL) ? NULL : new;
    if (value_equal(old, new))
        return NULL;
    struct diff_object *o = object_new(ctx, name, old, new);
    struct differ d = {ctx, r, o};
    diff_flatten(&d, "", old, new);
    return diff_finish(o);
}

/* --- lists and maps of structs --- */

static const struct field *
key_field(const struct type *t)
{
    for (size_t i = 0; i < t->n_fields; i++)
        if (t->fields[i].flags & F_KEY && t->fields[i].type == FT_STRING)
            return &t->fields[i];
    return NULL;
}

/* Does element `obj` (with map key `key`) pair with element i of l? */
static bool
diff_pairs(const struct field *f, const struct any_list *l, size_t i, const char *key,
           const void *obj)
{
    const void *other = *(any_ptr *)elem_at(f, l, i);
    if (f->shape == FS_MAP)
        return strcmp(key_at(f, l, i), key) == 0;
    const struct field *k = key_field(f->sub);
    if (k)
        return str_eq(*(const char **)field_ptr(k, obj), *(const char **)field_ptr(k, other));
    return codec_equal(f->sub, obj, other, F_SERVER);
}

static void
diff_struct_list(struct differ *d, const char *name, const struct field *f,
                 const struct any_list *a, const struct any_list *b)
{
    bool *taken = mem_array(NULL, bool, b->n);
    for (size_t i = 0; i < a->n; i++) {
        const void *old = *(any_ptr *)elem_at(f, a, i), *new = NULL;
        const char *key = f->shape == FS_MAP ? key_at(f, a, i) : NULL;
        for (size_t j = 0; j < b->n && !new; j++) {
            if (taken[j] || !diff_pairs(f, b, j, key, old))
                continue;
            taken[j] = true;
            new = *(any_ptr *)elem_at(f, b, j);
        }
        add_object(d, diff_structs(d->ctx, d->rules, name, f->sub, old, new));
    }
    for (size_t j = 0; j < b->n; j++)
        if (!taken[j])
            add_object(d, diff_structs(d->ctx, d->rules, name, f->sub, NULL,
                                       *(any_ptr *)elem_at(f, b, j)));
    talloc_free(taken);
}

/* --- fields --- */

static const void *
sub_of(const struct field *f, const void *obj)
{
    return obj ? *(const any_ptr *)field_ptr(f, obj) : NULL;
}

static void
diff_list(struct differ *d, const char *name, const struct field *f, const void *old,
          const void *new)
{
    struct any_list a = list_of(f, old), b = list_of(f, new);
    if (f->type == FT_STRUCT)
        diff_struct_list(d, name, f, &a, &b);
    else if (f->shape == FS_MAP)
        diff_map(d, f, &a, &b);
    else if (f->type == FT_STRING)
        diff_strings(d, name, (const struct str_list *)(const void *)&a,
                     (const struct str_list *)(const void *)&b);
}

static void
diff_field(struct differ *d, const struct type *t, const struct field *f, const void *old,
           const void *new)
{
    const char *name = d->rules->name ? d->rules->name(t, f) : NULL;
    name = name ? name : f->wire;
    if (f->shape != FS_ONE) {
        diff_list(d, name, f, old, new);
    } else if (f->type == FT_VALUE) {
        add_object(d, diff_values(d->ctx, d->rules, name, sub_of(f, old), sub_of(f, new)));
    } else if (f->type == FT_STRUCT) {
        const void *a = sub_of(f, old), *b = sub_of(f, new);
        if (a || b)
            add_object(d, diff_structs(d->ctx, d->rules, name, f->sub, a, b));
    } else {
        void *tmp = talloc_new(d->out);
        add_text(d, name, scalar_text(tmp, f, scalar_of(f, old)),
                 scalar_text(tmp, f, scalar_of(f, new)), f->flags & F_SECRET);
        talloc_free(tmp);
    }
}

struct diff_object *
diff_structs(const void *ctx, const struct diff_rules *r, const char *name, const struct type *t,
             const void *old, const void *new)
{
    ASSERT(old || new);
    struct diff_object *o = object_new(ctx, name, old, new);
    struct differ d = {ctx, r, o};
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        if (!(f->flags & F_SERVER) && !(r->skip && r->skip(t, f)))
            diff_field(&d, t, f, old, new);
    }
    return diff_finish(o);
}
