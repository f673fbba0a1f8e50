/* SPDX-License-Identifier: Apache-2.0
 *
 * The msgpack writer: an object is a map from field id to value, fields in schema order, smallest
 * integer forms, empty fields left out. The bytes of equal objects are equal (hashing relies on it
 * in canonical mode). What the reader would refuse (over a limit of the schema or of the codec, a
 * zero byte in a string) is not written, but in canonical mode, whose bytes nobody reads.
 */
#include "codec/intern.h"
#include "codec/out.h"

struct writer {
    struct out o;
    unsigned ignore; /* field flags left out */
    bool canonical;
    unsigned depth;
};

static void write_object(struct writer *w, const struct type *t, const void *obj);
static void write_value(struct writer *w, const struct value *v);

/* A tag and `n` bytes of v, big-endian. */
static void
put_tagged(struct out *o, uint8_t tag, uint64_t v, unsigned n)
{
    if (!out_need(o, 9))
        return;
    o->p[0] = tag;
    v = __builtin_bswap64(v << (64 - 8 * n));
    memcpy(o->p + 1, &v, 8);
    o->p += n + 1;
}

static void
put_byte(struct out *o, uint8_t v)
{
    if (out_need(o, 1))
        *o->p++ = v;
}

static void
put_uint(struct out *o, uint64_t v)
{
    if (v < 0x80)
        put_byte(o, (uint8_t)v);
    else if (v <= UINT8_MAX)
        put_tagged(o, 0xcc, v, 1);
    else if (v <= UINT16_MAX)
        put_tagged(o, 0xcd, v, 2);
    else if (v <= UINT32_MAX)
        put_tagged(o, 0xce, v, 4);
    else
        put_tagged(o, 0xcf, v, 8);
}

static void
put_int(struct out *o, int64_t v)
{
    if (v >= 0)
        put_uint(o, (uint64_t)v);
    else if (v >= -32)
        put_byte(o, (uint8_t)v);
    else if (v >= INT8_MIN)
        put_tagged(o, 0xd0, (uint64_t)v, 1);
    else if (v >= INT16_MIN)
        put_tagged(o, 0xd1, (uint64_t)v, 2);
    else if (v >= INT32_MIN)
        put_tagged(o, 0xd2, (uint64_t)v, 4);
    else
        put_tagged(o, 0xd3, (uint64_t)v, 8);
}

static void
put_f64(struct out *o, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    put_tagged(o, 0xcb, bits, 8);
}

/* Sizes beyond 32 bits cannot be: buffers are bounded far below. */
static void
put_size(struct out *o, uint8_t fix, size_t fix_max, uint8_t tag16, size_t n)
{
    ASSERT(n <= UINT32_MAX);
    if (n <= fix_max)
        put_byte(o, (uint8_t)(fix | n));
    else if (n <= UINT16_MAX)
        put_tagged(o, tag16, n, 2);
    else
        put_tagged(o, (uint8_t)(tag16 + 1), n, 4);
}

static void
put_strn(struct out *o, const char *s, size_t n)
{
    if (n > 31 && n <= UINT8_MAX)
        put_tagged(o, 0xd9, n, 1);
    else
        put_size(o, 0xa0, 31, 0xda, n);
    out_put(o, s, n);
}

static void
put_bytes(struct out *o, const struct bytes *b)
{
    if (b->n <= UINT8_MAX)
        put_tagged(o, 0xc4, b->n, 1);
    else
        put_size(o, 0, 0, 0xc5, b->n);
    out_put(o, b->v, b->n);
}

/* Nothing more is written: the buffer holds the error. */
static bool
mp_write_refuse(struct writer *w)
{
    out_end(&w->o);
    w->o.b->error = -ERR_INVALID;
    w->o.p = w->o.end = NULL;
    return false;
}

static bool
mp_write_enter(struct writer *w)
{
    if (w->depth >= CODEC_DEPTH_MAX)
        return mp_write_refuse(w);
    w->depth++;
    return true;
}

static bool
mp_write_fits(struct writer *w, size_t n, size_t max)
{
    return n <= max || w->canonical || mp_write_refuse(w);
}

static void
write_str(struct writer *w, const char *s, size_t max)
{
    size_t n = s ? strlen(s) : 0;
    if (mp_write_fits(w, n, max))
        put_strn(&w->o, s ? s : "", n);
}

static void
write_strings(struct writer *w, const struct str_list *l)
{
    if (!mp_write_fits(w, l->n, CODEC_COUNT_MAX) || !mp_write_enter(w))
        return;
    put_size(&w->o, 0x90, 15, 0xdc, l->n);
    for (size_t i = 0; i < l->n; i++)
        write_str(w, l->v[i], CODEC_STRING_MAX);
    w->depth--;
}

static void
write_elem(struct writer *w, const struct field *f, const void *p)
{
    switch ((enum field_type)f->type) {
    case FT_BOOL:
        put_byte(&w->o, *(const bool *)p ? 0xc3 : 0xc2);
        break;
    case FT_INT:
    case FT_DURATION:
    case FT_TIME:
        put_int(&w->o, *(const int64_t *)p);
        break;
    case FT_UINT:
        put_uint(&w->o, *(const uint64_t *)p);
        break;
    case FT_FLOAT:
        put_f64(&w->o, *(const double *)p);
        break;
    case FT_STRING:
        write_str(w, *(const char *const *)p,
                  f->shape == FS_ONE ? field_max(f, CODEC_STRING_MAX) : CODEC_STRING_MAX);
        break;
    case FT_BYTES:
        if (mp_write_fits(w, ((const struct bytes *)p)->n, CODEC_STRING_MAX))
            put_bytes(&w->o, p);
        break;
    case FT_VALUE:
        write_value(w, *(struct value *const *)p);
        break;
    case FT_STRUCT:
        write_object(w, f->sub, *(const any_ptr *)p);
        break;
    case FT_STRINGS:
        write_strings(w, p);
        break;
    }
}

static void
write_list(struct writer *w, const struct field *f, const struct any_list *l)
{
    bool map = f->shape == FS_MAP;
    if (!mp_write_fits(w, l->n, field_max(f, CODEC_COUNT_MAX)) || !mp_write_enter(w))
        return;
    put_size(&w->o, map ? 0x80 : 0x90, 15, map ? 0xde : 0xdc, l->n);
    for (size_t i = 0; i < l->n; i++) {
        if (map)
            write_str(w, key_at(f, l, i), CODEC_STRING_MAX);
        write_elem(w, f, elem_at(f, l, i));
    }
    w->depth--;
}

/* Says whether the reader gets the value back by itself. An empty list or map is not a null one. */
static bool
left_out(const struct writer *w, const struct field *f, const void *p)
{
    if (f->flags & w->ignore)
        return true;
    if (w->canonical && f->type == FT_VALUE && f->shape == FS_ONE) { /* "" is not null: ops.c */
        const struct value *v = *(const any_ptr *)p;
        return v == NULL || v->kind == VALUE_NULL;
    }
    if (w->canonical)
        return field_empty(f, p);
    if (f->shape != FS_ONE)
        return ((const struct any_list *)p)->v == NULL;
    if (f->type == FT_VALUE)
        return *(const any_ptr *)p == NULL;
    if (f->type == FT_BYTES)
        return ((const struct bytes *)p)->v == NULL;
    if (f->type == FT_FLOAT && !(f->flags & F_OPT)) {
        uint64_t bits; /* -0.0 is not left out */
        memcpy(&bits, p, sizeof(bits));
        return bits == 0;
    }
    return field_empty(f, p);
}

static void
write_field(struct writer *w, const struct field *f, const void *p)
{
    put_uint(&w->o, f->id);
    if (f->shape != FS_ONE)
        write_list(w, f, p);
    else
        write_elem(w, f, f->flags & F_OPT ? opt_value(f, p) : p);
}

static void
write_object(struct writer *w, const struct type *t, const void *obj)
{
    if (!mp_write_enter(w))
        return;
    /* the header's size is chosen by what the type could need, and patched */
    bool small = t->n_fields <= 15;
    size_t n = 0, at = out_at(&w->o);
    out_put(&w->o, "\xde\0\0", small ? 1 : 3);
    for (size_t i = 0; obj && i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        const void *p = field_ptr(f, obj);
        if (left_out(w, f, p))
            continue;
        write_field(w, f, p);
        n++;
    }
    w->depth--;
    if (!w->o.p)
        return;
    uint8_t *h = w->o.b->data + at;
    if (small) {
        h[0] = (uint8_t)(0x80 | n);
    } else {
        h[1] = (uint8_t)(n >> 8);
        h[2] = (uint8_t)n;
    }
}

static void
write_value_list(struct writer *w, const struct value *v)
{
    if (!mp_write_fits(w, v->list.n, CODEC_COUNT_MAX) || !mp_write_enter(w))
        return;
    put_size(&w->o, 0x90, 15, 0xdc, v->list.n);
    for (size_t i = 0; i < v->list.n; i++)
        write_value(w, v->list.v[i]);
    w->depth--;
}

static void
write_value_map(struct writer *w, const struct value *v)
{
    if (!mp_write_fits(w, v->map.n, CODEC_COUNT_MAX) || !mp_write_enter(w))
        return;
    const struct value_pair **sorted = w->canonical ? value_map_sorted(v) : NULL;
    put_size(&w->o, 0x80, 15, 0xde, v->map.n);
    for (size_t i = 0; i < v->map.n; i++) {
        const struct value_pair *p = sorted ? sorted[i] : &v->map.v[i];
        write_str(w, p->k, CODEC_STRING_MAX);
        write_value(w, p->v);
    }
    mem_free(sorted);
    w->depth--;
}

/* Keeps the length: a string may hold anything. */
static void
write_value_string(struct writer *w, const struct value *v)
{
    if (!w->canonical && v->str.n > 0 && memchr(v->str.s, 0, v->str.n))
        mp_write_refuse(w);
    else if (mp_write_fits(w, v->str.n, CODEC_STRING_MAX))
        put_strn(&w->o, v->str.s, v->str.n);
}

static void
write_value(struct writer *w, const struct value *v)
{
    switch (v ? v->kind : VALUE_NULL) {
    case VALUE_NULL:
        put_byte(&w->o, 0xc0);
        break;
    case VALUE_BOOL:
        put_byte(&w->o, v->b ? 0xc3 : 0xc2);
        break;
    case VALUE_INT:
        put_int(&w->o, v->i);
        break;
    case VALUE_FLOAT:
        if (w->canonical && float_is_int(v->f))
            put_int(&w->o, (int64_t)v->f);
        else
            put_f64(&w->o, v->f);
        break;
    case VALUE_STRING:
        write_value_string(w, v);
        break;
    case VALUE_LIST:
        write_value_list(w, v);
        break;
    case VALUE_MAP:
        write_value_map(w, v);
        break;
    case VALUE_BIG:
        ASSERT(false); /* a number within its room */
    }
}

void
mp_encode(struct buf *out, const struct type *t, const void *obj)
{
    struct writer w = {.canonical = false};
    out_begin(&w.o, out);
    write_object(&w, t, obj);
    out_end(&w.o);
}

void
mp_encode_canonical(struct buf *out, const struct type *t, const void *obj, unsigned ignore)
{
    struct writer w = {.ignore = ignore, .canonical = true};
    out_begin(&w.o, out);
    write_object(&w, t, obj);
    out_end(&w.o);
}
