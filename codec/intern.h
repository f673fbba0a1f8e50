/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the codec share and nobody else includes: generic access to described memory,
 * and the decoder state that JSON and msgpack readers have in common (ownership, budget, path).
 */
#ifndef PADDOCK_CODEC_INTERN_H
#define PADDOCK_CODEC_INTERN_H

#include <string.h>

#include "codec/codec.h"

/* Every list and map has this layout. */
struct __attribute__((may_alias)) any_list {
    void *v;
    size_t n;
};
typedef void *__attribute__((may_alias)) any_ptr;

/* Most fields one type may have (bitmap of seen fields). */
enum { TYPE_FIELDS_MAX = 256 };

static inline size_t
elem_size(const struct field *f)
{
    switch ((enum field_type)f->type) {
    case FT_BOOL:
        return sizeof(bool);
    case FT_BYTES:
        return sizeof(struct bytes);
    case FT_STRINGS:
        return sizeof(struct str_list);
    default:
        return 8;
    }
}

/* Distance of map elements; the value follows the key. */
static inline size_t
map_stride(const struct field *f)
{
    return sizeof(char *) + ((elem_size(f) + 7) & ~(size_t)7);
}

static inline void *
elem_at(const struct field *f, const struct any_list *l, size_t i)
{
    if (f->shape == FS_MAP)
        return (char *)l->v + i * map_stride(f) + sizeof(char *);
    return (char *)l->v + i * elem_size(f);
}

static inline const char *
key_at(const struct field *f, const struct any_list *l, size_t i)
{
    return *(const char **)(void *)((char *)l->v + i * map_stride(f));
}

static inline void *
field_ptr(const struct field *f, const void *obj)
{
    return (char *)(uintptr_t)obj + f->offset;
}

/* All opt_x start with `set`. */
static inline bool *
opt_set(void *p)
{
    return (bool *)p;
}

static inline void *
opt_value(const struct field *f, const void *p)
{
    size_t at = f->type == FT_BOOL ? offsetof(struct opt_bool, v) : offsetof(struct opt_i64, v);
    return (char *)(uintptr_t)p + at;
}

static inline size_t
pow2_ceil(size_t n)
{
    size_t c = 1;
    while (c < n)
        c *= 2;
    return c;
}

static inline bool
field_empty(const struct field *f, const void *p)
{
    if (f->shape != FS_ONE)
        return ((const struct any_list *)p)->n == 0;
    if (f->flags & F_OPT)
        return !*(const bool *)p;
    switch ((enum field_type)f->type) {
    case FT_BOOL:
        return !*(const bool *)p;
    case FT_INT:
    case FT_UINT:
    case FT_DURATION:
    case FT_TIME:
        return *(const int64_t *)p == 0;
    case FT_FLOAT:
        return *(const double *)p == 0;
    case FT_STRING:
        return !*(const char *const *)p || !**(const char *const *)p;
    case FT_BYTES:
        return ((const struct bytes *)p)->n == 0;
    case FT_VALUE: {
        const struct value *v = *(struct value *const *)p;
        return !v || v->kind == VALUE_NULL || (v->kind == VALUE_LIST && !v->list.n) ||
               (v->kind == VALUE_MAP && !v->map.n) || (v->kind == VALUE_STRING && !v->str.n);
    }
    default:
        return *(const any_ptr *)p == NULL;
    }
}

/* --- allocation of one object tree --- */
/* Structs, arrays and containers of values are talloc chunks owned directly by the root, strings
 * and scalar values lie in blocks owned by the root. */
struct arena {
    const void *root;
    char *p;
    size_t left;
    size_t block;
    struct budget *budget; /* NULL: not limited */
    size_t allowed;        /* what was left of it at first */
};

/* The root of what a decoder makes, with `guess` bytes set aside for its parts. Zeroed. */
void *arena_root(struct arena *a, const void *ctx, const struct type *t, size_t guess);
/* All return NULL when the budget is spent. */
void *arena_zalloc(struct arena *a, size_t size, const char *type);
char *arena_bytes(struct arena *a, size_t n);   /* not aligned, not zeroed */
char *arena_strndup(struct arena *a, const char *s, size_t n);
/* Room for element n of a growing array; new elements are zeroed. Capacities are powers of two, as
 * list_add and codec_map_put expect. */
bool arena_grow(struct arena *a, void **v, size_t *cap, size_t n, size_t elem);
struct value *arena_value(struct arena *a, enum value_kind kind);

/* --- where a decoder is, for errors --- */
enum step_kind { STEP_NONE, STEP_FIELD, STEP_INDEX, STEP_KEY };

struct step {
    enum step_kind kind;
    size_t n; /* index, or length of the name */
    const char *s;
};

struct decoder {
    struct arena a;
    const struct type *type; /* of the root, NULL: a value */
    struct err *e;
    unsigned depth; /* open containers */
    struct step path[CODEC_DEPTH_MAX + 1];
};

void decoder_path(const struct decoder *d, char *out, size_t size);

static inline void
decoder_at(struct decoder *d, enum step_kind kind, const char *s, size_t n)
{
    d->path[d->depth] = (struct step){kind, n, s};
}

/* Sorts the pairs {key, value} of a map; returns a key that is there twice, or NULL. */
const char *map_sort(void *v, size_t n, size_t stride);
/* Nearest wire name, or NULL. */
const char *type_nearest(const struct type *t, const char *name, size_t len);

/* Hint: index of the field that probably comes next; updated. */
const struct field *type_field_hint(const struct type *t, const char *wire, size_t len,
                                    size_t *hint);

/* Decoded element limits. */
static inline size_t
field_max(const struct field *f, size_t dflt)
{
    return f && f->max && f->max < dflt ? (size_t)f->max : dflt;
}

/* msgpack of an object for hashing: fields with `ignore` flags left out, [] as null, maps of
 * values sorted, 1.0 as 1. */
void mp_encode_canonical(struct buf *out, const struct type *t, const void *obj, unsigned ignore);

#endif
