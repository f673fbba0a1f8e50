/* SPDX-License-Identifier: Apache-2.0
 *
 * The msgpack writer: an object is a map from field id to value, fields in schema order, smallest
 * integer forms, empty fields left out. The bytes of equal objects are equal (hashing relies on it
 * in canonical mode).
 */
#include "codec/intern.h"

#include "common/str.h"

struct writer {
    struct buf *out;
    unsigned ignore; /* field flags left out */
    bool canonical;
    unsigned depth;
};

static void write_object(struct writer *w, const struct type *t, const void *obj);
static void write_value(struct writer *w, const struct value *v);

static void
put_uint(struct buf *out, uint64_t v)
{
    if (v < 0x80) {
        buf_put_u8(out, (uint8_t)v);
    } else if (v <= UINT8_MAX) {
        buf_put_u8(out, 0xcc);
        buf_put_u8(out, (uint8_t)v);
    } else if (v <= UINT16_MAX) {
        buf_put_u8(out, 0xcd);
        buf_put_u16(out, (uint16_t)v);
    } else if (v <= UINT32_MAX) {
        buf_put_u8(out, 0xce);
        buf_put_u32(out, (uint32_t)v);
    } else {
        buf_put_u8(out, 0xcf);
        buf_put_u64(out, v);
    }
}

static void
put_int(struct buf *out, int64_t v)
{
    if (v >= 0) {
        put_uint(out, (uint64_t)v);
    } else if (v >= -32) {
        buf_put_u8(out, (uint8_t)v);
    } else if (v >= INT8_MIN) {
        buf_put_u8(out, 0xd0);
        buf_put_u8(out, (uint8_t)v);
    } else if (v >= INT16_MIN) {
        buf_put_u8(out, 0xd1);
        buf_put_u16(out, (uint16_t)v);
    } else if (v >= INT32_MIN) {
        buf_put_u8(out, 0xd2);
        buf_put_u32(out, (uint32_t)v);
    } else {
        buf_put_u8(out, 0xd3);
        buf_put_u64(out, (uint64_t)v);
    }
}

static void
put_f64(struct buf *out, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    buf_put_u8(out, 0xcb);
    buf_put_u64(out, bits);
}

/* Sizes beyond 32 bits cannot be: buffers are bounded far below. */
static void
put_size(struct buf *out, uint8_t fix, size_t fix_max, uint8_t tag16, size_t n)
{
    if (n <= fix_max) {
        buf_put_u8(out, (uint8_t)(fix | n));
    } else if (n <= UINT16_MAX) {
        buf_put_u8(out, tag16);
        buf_put_u16(out, (uint16_t)n);
    } else {
        ASSERT(n <= UINT32_MAX);
        buf_put_u8(out, (uint8_t)(tag16 + 1));
        buf_put_u32(out, (uint32_t)n);
    }
}

static void
put_strn(struct buf *out, const char *s, size_t n)
{
    if (n > 31 && n <= UINT8_MAX) {
        buf_put_u8(out, 0xd9);
        buf_put_u8(out, (uint8_t)n);
    } else {
        put_size(out, 0xa0, 31, 0xda, n);
    }
    buf_put(out, s, n);
}

static void
put_str(struct buf *out, const char *s)
{
    put_strn(out, s ? s : "", s ? strlen(s) : 0);
}

static void
put_bytes(struct buf *out, const struct bytes *b)
{
    if (b->n <= UINT8_MAX) {
        buf_put_u8(out, 0xc4);
        buf_put_u8(out, (uint8_t)b->n);
    } else {
        put_size(out, 0, 0, 0xc5, b->n);
    }
    buf_put(out, b->v, b->n);
}

static bool
enter(struct writer *w)
{
    if (w->depth >= CODEC_DEPTH_MAX) {
        w->out->error = -ERR_LIMIT;
        return false;
    }
    w->depth++;
    return true;
}

static void
write_strings(struct writer *w, const struct str_list *l)
{
    put_size(w->out, 0x90, 15, 0xdc, l->n);
    for (size_t i = 0; i < l->n; i++)
        put_str(w->out, l->v[i]);
}

static void
write_elem(struct writer *w, const struct field *f, const void *p)
{
    switch ((enum field_type)f->type) {
    case FT_BOOL:
        buf_put_u8(w->out, *(const bool *)p ? 0xc3 : 0xc2);
        break;
    case FT_INT:
    case FT_DURATION:
    case FT_TIME:
        put_int(w->out, *(const int64_t *)p);
        break;
    case FT_UINT:
        put_uint(w->out, *(const uint64_t *)p);
        break;
    case FT_FLOAT:
        put_f64(w->out, *(const double *)p);
        break;
    case FT_STRING:
        put_str(w->out, *(const char *const *)p);
        break;
    case FT_BYTES:
        put_bytes(w->out, p);
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
    if (!enter(w))
        return;
    put_size(w->out, map ? 0x80 : 0x90, 15, map ? 0xde : 0xdc, l->n);
    for (size_t i = 0; i < l->n; i++) {
        if (map)
            put_str(w->out, key_at(f, l, i));
        write_elem(w, f, elem_at(f, l, i));
    }
    w->depth--;
}

/* What the reader gets back by itself. An empty list or map is not a null one. */
static bool
left_out(const struct writer *w, const struct field *f, const void *obj)
{
    const void *p = field_ptr(f, obj);
    if (f->flags & w->ignore)
        return true;
    if (w->canonical)
        return codec_field_empty(f, obj);
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
    return codec_field_empty(f, obj);
}

static void
write_field(struct writer *w, const struct field *f, const void *p)
{
    put_uint(w->out, f->id);
    if (f->shape != FS_ONE)
        write_list(w, f, p);
    else
        write_elem(w, f, f->flags & F_OPT ? opt_value(f, p) : p);
}

static void
write_object(struct writer *w, const struct type *t, const void *obj)
{
    if (!enter(w))
        return;
    /* the header's size is chosen by what the type could need, and patched */
    bool small = t->n_fields <= 15;
    size_t at = w->out->len, n = 0;
    buf_put(w->out, "\x80\0", small ? 1 : 3);
    for (size_t i = 0; obj && i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        if (left_out(w, f, obj))
            continue;
        write_field(w, f, field_ptr(f, obj));
        n++;
    }
    w->depth--;
    if (buf_error(w->out))
        return;
    uint8_t *h = w->out->data + at;
    if (small) {
        h[0] = (uint8_t)(0x80 | n);
    } else {
        h[0] = 0xde;
        h[1] = (uint8_t)(n >> 8);
        h[2] = (uint8_t)n;
    }
}

static void
write_value_map(struct writer *w, const struct value *v)
{
    const struct value_pair **sorted = w->canonical ? value_map_sorted(v) : NULL;
    put_size(w->out, 0x80, 15, 0xde, v->map.n);
    for (size_t i = 0; i < v->map.n; i++) {
        const struct value_pair *p = sorted ? sorted[i] : &v->map.v[i];
        put_str(w->out, p->k);
        write_value(w, p->v);
    }
    mem_free(sorted);
}

static void
write_value(struct writer *w, const struct value *v)
{
    switch (v ? v->kind : VALUE_NULL) {
    case VALUE_NULL:
        buf_put_u8(w->out, 0xc0);
        break;
    case VALUE_BOOL:
        buf_put_u8(w->out, v->b ? 0xc3 : 0xc2);
        break;
    case VALUE_INT:
        put_int(w->out, v->i);
        break;
    case VALUE_FLOAT:
        if (w->canonical && float_is_int(v->f))
            put_int(w->out, (int64_t)v->f);
        else
            put_f64(w->out, v->f);
        break;
    case VALUE_STRING:
        put_strn(w->out, v->str.s, v->str.n);
        break;
    case VALUE_LIST:
        if (!enter(w))
            break;
        put_size(w->out, 0x90, 15, 0xdc, v->list.n);
        for (size_t i = 0; i < v->list.n; i++)
            write_value(w, v->list.v[i]);
        w->depth--;
        break;
    case VALUE_MAP:
        if (!enter(w))
            break;
        write_value_map(w, v);
        w->depth--;
        break;
    }
}

void
mp_encode(struct buf *out, const struct type *t, const void *obj)
{
    struct writer w = {.out = out};
    write_object(&w, t, obj);
}

void
mp_encode_canonical(struct buf *out, const struct type *t, const void *obj, unsigned ignore)
{
    struct writer w = {.out = out, .ignore = ignore, .canonical = true};
    write_object(&w, t, obj);
}
