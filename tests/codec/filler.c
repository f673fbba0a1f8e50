/* SPDX-License-Identifier: Apache-2.0
 *
 * Random objects of any described type.
 */
#include "tests/codec/filler.h"

#include <string.h>

#include "api/api.h"
#include "codec/intern.h"
#include "common/crc.h"

uint64_t
filler_u64(struct filler *f)
{
    /* splitmix64 */
    uint64_t z = (f->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t
below(struct filler *f, uint64_t n)
{
    return filler_u64(f) % n;
}

static int64_t
integer(struct filler *f)
{
    static const int64_t corners[] = {0,           1,         -1,        127,       128,
                                      -32,         -33,       -128,      -129,      32767,
                                      65536,       INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN,
                                      INT64_C(9007199254740993)};
    if (below(f, 3) == 0)
        return corners[below(f, ARRAY_LEN(corners))];
    return (int64_t)(filler_u64(f) >> below(f, 63));
}

static const char *
string(const void *ctx, struct filler *f, size_t max)
{
    static const char *const bits[] = {"a",   "Z9",  "-",    "\"",   "\\",           "\n",
                                       "/",   "é",   "€",    "😀",   "\x01",         "\x7f",
                                       "${x}", "tab\t", "web", "redis", "some longer text, plain"};
    char *s = mem_strdup(ctx, "");
    for (uint64_t n = below(f, 6); n; n--) {
        const char *bit = bits[below(f, ARRAY_LEN(bits))];
        if (strlen(s) + strlen(bit) <= max)
            s = talloc_strdup_append(s, bit);
    }
    return s;
}

static double
real(struct filler *f)
{
    static const double corners[] = {0.1, -1.5, 1e300, 5e-324, 3, 1e21, 123456.789, -0.0, 2.5e-7};
    return corners[below(f, ARRAY_LEN(corners))];
}

static struct value *
value(const void *ctx, struct filler *f, unsigned depth)
{
    switch (below(f, depth > 3 ? 5 : 7)) {
    case 0:
        return value_null(ctx);
    case 1:
        return value_bool(ctx, below(f, 2));
    case 2:
        return value_int(ctx, integer(f));
    case 3:
        return value_float(ctx, real(f));
    case 4:
        return value_str(ctx, string(ctx, f, SIZE_MAX));
    case 5: {
        struct value *l = value_list(ctx);
        for (uint64_t n = below(f, 4); n; n--)
            value_list_add(l, value(ctx, f, depth + 1));
        return l;
    }
    default: {
        struct value *m = value_map(ctx);
        for (uint64_t n = below(f, 12); n; n--)
            value_map_set(m, string(ctx, f, SIZE_MAX), value(ctx, f, depth + 1));
        return m;
    }
    }
}

static void *object(const void *ctx, struct filler *f, const struct type *t, unsigned depth);

static void
elem(const void *ctx, struct filler *f, const struct field *fd, void *p, unsigned depth)
{
    switch ((enum field_type)fd->type) {
    case FT_BOOL:
        *(bool *)p = below(f, 2);
        break;
    case FT_INT:
    case FT_DURATION:
        *(int64_t *)p = integer(f);
        break;
    case FT_UINT:
        *(uint64_t *)p = (uint64_t)integer(f);
        break;
    case FT_TIME: /* years 1970..2250 to the nanosecond */
        *(int64_t *)p = (int64_t)below(f, UINT64_C(8835984000000000000));
        break;
    case FT_FLOAT:
        *(double *)p = real(f);
        break;
    case FT_STRING:
        *(const char **)p = string(ctx, f, fd->shape == FS_ONE && fd->max ? (size_t)fd->max : SIZE_MAX);
        break;
    case FT_BYTES: {
        size_t n = below(f, 300);
        uint8_t *b = mem_array(ctx, uint8_t, n);
        for (size_t i = 0; i < n; i++)
            b[i] = (uint8_t)filler_u64(f);
        *(struct bytes *)p = (struct bytes){b, n};
        break;
    }
    case FT_VALUE:
        *(struct value **)p = value(ctx, f, 0);
        break;
    case FT_STRUCT:
        *(any_ptr *)p = object(ctx, f, fd->sub, depth + 1);
        break;
    case FT_STRINGS: {
        struct str_list *l = p;
        l->v = mem_array(ctx, const char *, 4);
        for (l->n = 0; l->n < 3; l->n++)
            l->v[l->n] = string(ctx, f, SIZE_MAX);
        break;
    }
    }
}

static void
container(const void *ctx, struct filler *f, const struct field *fd, struct any_list *l,
          unsigned depth)
{
    uint64_t n = below(f, f->list_max + 1);
    if (fd->shape == FS_MAP) {
        l->v = mem_zalloc(ctx, 1, "map");
        l->n = 0;
        void *first = l->v;
        l->v = NULL;
        for (; n; n--)
            elem(ctx, f, fd,
                 (char *)codec_map_put(ctx, l, map_stride(fd), string(ctx, f, SIZE_MAX)) + sizeof(char *),
                 depth);
        if (!l->n)
            l->v = first;
        return;
    }
    l->v = mem_zalloc_array(ctx, elem_size(fd), pow2_ceil(n), "list");
    for (l->n = 0; l->n < n; l->n++)
        elem(ctx, f, fd, (char *)l->v + l->n * elem_size(fd), depth);
}

static void *
object(const void *ctx, struct filler *f, const struct type *t, unsigned depth)
{
    void *obj = type_new(ctx, t);
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *fd = &t->fields[i];
        void *p = field_ptr(fd, obj);
        if (below(f, 100) < f->empty_percent)
            continue;
        if (fd->type == FT_STRUCT && depth >= f->depth_max)
            continue;
        if (fd->shape != FS_ONE) {
            container(ctx, f, fd, p, depth);
        } else if (fd->flags & F_OPT) {
            *opt_set(p) = true;
            elem(ctx, f, fd, opt_value(fd, p), depth);
        } else {
            elem(ctx, f, fd, p, depth);
        }
    }
    return obj;
}

void *
filler_object(const void *ctx, struct filler *f, const struct type *t)
{
    return object(ctx, f, t, 0);
}

void
filler_type_key(const struct type *t, uint8_t key[2])
{
    uint32_t h = crc32c(0, t->name, strlen(t->name));
    key[0] = (uint8_t)h;
    key[1] = (uint8_t)(h >> 8);
}

const struct type *
filler_type(const uint8_t key[2])
{
    for (size_t i = 0; i < api_types_n; i++) {
        uint8_t k[2];
        filler_type_key(api_types[i], k);
        if (k[0] == key[0] && k[1] == key[1])
            return api_types[i];
    }
    return api_types[(size_t)(key[0] << 8 | key[1]) % api_types_n];
}
