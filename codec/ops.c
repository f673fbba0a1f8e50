/* SPDX-License-Identifier: Apache-2.0
 *
 * Clone, equality and hash of described objects: for each the element, the list or map, the field
 * and then the object, by the field table.
 *
 * A clone is flat: each piece is owned by the root of the copy, not by the piece that holds it.
 * Equality goes by meaning (NULL is "", null is empty). The hash is that of a canonical msgpack of
 * the object (mp_write.c).
 */
#include <math.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/intern.h"
#include "common/str.h"

/* --- clone --- */

static void clone_object(struct arena *a, const struct type *t, void *to, const void *from);

/* Clones below `root`: flat ownership. Depth: values are built by bounded decoders. */
static struct value *
clone_node(struct arena *a, const struct value *v)
{
    struct value *c = arena_value(a, v->kind);
    void *arr = NULL;
    size_t cap = 0;
    switch (v->kind) {
    case VALUE_STRING:
        c->str.s = arena_strndup(a, v->str.s, v->str.n);
        c->str.n = v->str.n;
        break;
    case VALUE_LIST:
        for (size_t i = 0; i < v->list.n; i++) {
            arena_grow(a, &arr, &cap, i, sizeof(struct value *));
            ((struct value **)arr)[i] = clone_node(a, v->list.v[i]);
        }
        c->list.v = arr;
        c->list.n = v->list.n;
        break;
    case VALUE_MAP:
        for (size_t i = 0; i < v->map.n; i++) {
            arena_grow(a, &arr, &cap, i, sizeof(struct value_pair));
            const struct value_pair *from = &v->map.v[i];
            ((struct value_pair *)arr)[i] = (struct value_pair){
                arena_strndup(a, from->k, strlen(from->k)), clone_node(a, from->v)};
        }
        c->map.v = arr;
        c->map.n = v->map.n;
        break;
    default:
        *c = *v;
    }
    return c;
}

struct value *
value_clone(const void *ctx, const struct value *v)
{
    if (!v)
        return NULL;
    /* the top node is the owner, so it is a chunk of its own whatever its kind */
    struct value *root = mem_new(ctx, struct value);
    struct arena a = {.root = root};
    struct value *c = clone_node(&a, v);
    *root = *c;
    return root;
}

static void
clone_strings(struct arena *a, struct str_list *to, const struct str_list *from)
{
    void *v = NULL;
    size_t cap = 0;
    if (!from->v)
        return;
    arena_grow(a, &v, &cap, 0, sizeof(char *));
    to->v = v;
    for (size_t i = 0; i < from->n; i++) {
        arena_grow(a, &v, &cap, i, sizeof(char *));
        to->v = v;
        if (from->v[i])
            to->v[i] = arena_strndup(a, from->v[i], strlen(from->v[i]));
    }
    to->n = from->n;
}

static void
clone_elem(struct arena *a, const struct field *f, void *to, const void *from)
{
    switch ((enum field_type)f->type) {
    case FT_STRING: {
        const char *s = *(const char *const *)from;
        if (s)
            *(const char **)to = arena_strndup(a, s, strlen(s));
        break;
    }
    case FT_BYTES: {
        const struct bytes *b = from;
        if (b->v)
            *(struct bytes *)to =
                (struct bytes){(uint8_t *)arena_strndup(a, (const char *)b->v, b->n), b->n};
        break;
    }
    case FT_VALUE:
        if (*(struct value *const *)from != NULL)
            *(struct value **)to = clone_node(a, *(struct value *const *)from);
        break;
    case FT_STRUCT: {
        const void *sub = *(const any_ptr *)from;
        if (sub) {
            *(any_ptr *)to = arena_zalloc(a, f->sub->size, f->sub->name);
            clone_object(a, f->sub, *(any_ptr *)to, sub);
        }
        break;
    }
    case FT_STRINGS:
        clone_strings(a, to, from);
        break;
    default:
        memcpy(to, from, elem_size(f));
    }
}

static void
clone_list(struct arena *a, const struct field *f, struct any_list *to,
           const struct any_list *from)
{
    bool map = f->shape == FS_MAP;
    size_t size = map ? map_stride(f) : elem_size(f);
    if (!from->v)
        return;
    to->v = arena_zalloc(a, pow2_ceil(from->n) * size, "list");
    to->n = from->n;
    for (size_t i = 0; i < from->n; i++) {
        if (map) {
            const char *k = key_at(f, from, i);
            *(const char **)(void *)((char *)to->v + i * size) = arena_strndup(a, k, strlen(k));
        }
        clone_elem(a, f, elem_at(f, to, i), elem_at(f, from, i));
    }
}

static void
clone_object(struct arena *a, const struct type *t, void *to, const void *from)
{
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        void *p = field_ptr(f, to);
        const void *q = field_ptr(f, from);
        if (f->shape != FS_ONE) {
            clone_list(a, f, p, q);
        } else if (f->flags & F_OPT) {
            *opt_set(p) = *(const bool *)q;
            memcpy(opt_value(f, p), opt_value(f, q), elem_size(f));
        } else {
            clone_elem(a, f, p, q);
        }
    }
}

void *
codec_clone(const void *ctx, const struct type *t, const void *obj)
{
    if (!obj)
        return NULL;
    struct arena a = {.root = type_new(ctx, t)};
    clone_object(&a, t, (void *)(uintptr_t)a.root, obj);
    return (void *)(uintptr_t)a.root;
}

/* --- equality --- */

static bool
equal_strings(const struct str_list *a, const struct str_list *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!str_eq(a->v[i], b->v[i]))
            return false;
    return true;
}

static bool
equal_elem(const struct field *f, const void *a, const void *b, unsigned ignore)
{
    switch ((enum field_type)f->type) {
    case FT_BOOL:
        return *(const bool *)a == *(const bool *)b;
    case FT_INT:
    case FT_UINT:
    case FT_DURATION:
    case FT_TIME:
        return *(const int64_t *)a == *(const int64_t *)b;
    case FT_FLOAT: {
        double x = *(const double *)a, y = *(const double *)b;
        return x == y || (isnan(x) && isnan(y));
    }
    case FT_STRING:
        return str_eq(*(const char *const *)a, *(const char *const *)b);
    case FT_BYTES: {
        const struct bytes *x = a, *y = b;
        return x->n == y->n && (!x->n || memcmp(x->v, y->v, x->n) == 0);
    }
    case FT_VALUE:
        return value_equal(*(struct value *const *)a, *(struct value *const *)b);
    case FT_STRUCT:
        return codec_equal(f->sub, *(const any_ptr *)a, *(const any_ptr *)b, ignore);
    case FT_STRINGS:
        return equal_strings(a, b);
    }
    return false;
}

static bool
equal_list(const struct field *f, const struct any_list *a, const struct any_list *b,
           unsigned ignore)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        if (f->shape == FS_MAP && strcmp(key_at(f, a, i), key_at(f, b, i)) != 0)
            return false;
        if (!equal_elem(f, elem_at(f, a, i), elem_at(f, b, i), ignore))
            return false;
    }
    return true;
}

static bool
equal_field(const struct field *f, const void *a, const void *b, unsigned ignore)
{
    if (f->shape != FS_ONE)
        return equal_list(f, a, b, ignore);
    if (!(f->flags & F_OPT))
        return equal_elem(f, a, b, ignore);
    if (*(const bool *)a != *(const bool *)b)
        return false;
    return !*(const bool *)a || equal_elem(f, opt_value(f, a), opt_value(f, b), ignore);
}

bool
codec_equal(const struct type *t, const void *a, const void *b, unsigned ignore)
{
    if (a == b)
        return true;
    if (!a || !b)
        return false;
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        if (!(f->flags & ignore) && !equal_field(f, field_ptr(f, a), field_ptr(f, b), ignore))
            return false;
    }
    return true;
}

static bool
inplace_list(const struct field *f, const struct any_list *a, const struct any_list *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        if (f->shape == FS_MAP && strcmp(key_at(f, a, i), key_at(f, b, i)) != 0)
            return false;
        if (!codec_equal_but_inplace(f->sub, *(any_ptr *)elem_at(f, a, i),
                                     *(any_ptr *)elem_at(f, b, i)))
            return false;
    }
    return true;
}

bool
codec_equal_but_inplace(const struct type *t, const void *a, const void *b)
{
    if (a == b)
        return true;
    if (!a || !b)
        return false;
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        const void *p = field_ptr(f, a), *q = field_ptr(f, b);
        bool same;
        if (f->flags & (F_INPLACE | F_SERVER))
            continue;
        if (f->type != FT_STRUCT)
            same = equal_field(f, p, q, F_SERVER);
        else if (f->shape == FS_ONE)
            same = codec_equal_but_inplace(f->sub, *(const any_ptr *)p, *(const any_ptr *)q);
        else
            same = inplace_list(f, p, q);
        if (!same)
            return false;
    }
    return true;
}

/* --- hash --- */

uint64_t
codec_hash(const struct type *t, const void *obj, unsigned ignore)
{
    auto_buf struct buf b = BUF_INIT(SIZE_MAX / 2);
    mp_encode_canonical(&b, t, obj, ignore);
    ASSERT(buf_error(&b) == 0);
    return XXH3_64bits(b.data, b.len);
}
