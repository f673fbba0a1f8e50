/* SPDX-License-Identifier: Apache-2.0
 *
 * The bounded msgpack reader. What an element count claims is never believed: an array grows with
 * the elements that are really there, and every allocation is charged first. Unknown ids are
 * skipped, any integer form is accepted, wrong types fail with path and byte offset. Recursion is
 * bounded by CODEC_DEPTH_MAX.
 */
#include <stdarg.h>
#include <stdio.h>

#include "codec/mp_int.h"

static int read_object(struct reader *r, const struct type *t, void *obj, const struct token *tok);
static int read_list(struct reader *r, const struct field *f, struct any_list *l,
                     const struct token *tok);
static int read_value(struct reader *r, const struct token *tok, struct value **ret);

static int
fail_with(struct reader *r, int code, const uint8_t *at, const char *text)
{
    char path[256];
    decoder_path(&r->d, path, sizeof(path));
    return err_set(r->d.e, code, "msgpack: %s (byte %zu): %s", path, (size_t)(at - r->s), text);
}

int
mp_fail(struct reader *r, const uint8_t *at, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return fail_with(r, -ERR_INVALID, at, text);
}

static int
no_memory(struct reader *r)
{
    char text[200];
    snprintf(text, sizeof(text),
             "the message needs more memory than one may take: %zu KiB for %zu bytes; it has too "
             "many small "
             "objects",
             r->d.a.allowed >> 10, (size_t)(r->end - r->s));
    return fail_with(r, -ERR_LIMIT, r->p, text);
}

int
mp_expected(struct reader *r, const struct token *tok, const char *what)
{
    static const char *const names[] = {"nil",     "a boolean",   "an integer",  "an integer",
                                        "a float", "a string",    "binary data", "a list",
                                        "a map",   "an extension"};
    return mp_fail(r, tok->at, "expected %s, found %s", what, names[tok->kind]);
}

/* --- headers --- */

static void
set_float(struct token *t, uint64_t bits, size_t n)
{
    t->kind = K_FLOAT;
    if (n == 4) {
        uint32_t b32 = (uint32_t)bits;
        float f;
        memcpy(&f, &b32, sizeof(f));
        t->f = (double)f;
    } else {
        memcpy(&t->f, &bits, sizeof(t->f));
    }
}

/* How many bytes of argument follow each tag 0xc0..0xdf. */
static const uint8_t arg_size[32] = {0, 0, 0, 0, 1, 2, 4, 1, 2, 4, 4, 8, 1, 2, 4, 8,
                                     1, 2, 4, 8, 0, 0, 0, 0, 0, 1, 2, 4, 2, 4, 2, 4};

int
mp_long_token(struct reader *r, uint8_t c, struct token *t)
{
    size_t n = arg_size[c - 0xc0];
    if ((size_t)(r->end - r->p) < n)
        return mp_fail(r, t->at, "truncated");
    uint64_t v = 0;
    if (n > 0 && (size_t)(r->end - r->p) >= sizeof(v)) {
        memcpy(&v, r->p, sizeof(v));
        v = __builtin_bswap64(v) >> (64 - 8 * n);
    } else {
        v = big_endian(r->p, n);
    }
    r->p += n;
    switch (c) {
    case 0xc0:
        t->kind = K_NIL;
        return 0;
    case 0xc2:
    case 0xc3:
        t->kind = K_BOOL;
        t->b = c == 0xc3;
        return 0;
    case 0xc4 ... 0xc6:
        return mp_body(r, t, K_BIN, v);
    case 0xc7 ... 0xc9:
        return mp_body(r, t, K_EXT, v + 1);
    case 0xca:
    case 0xcb:
        set_float(t, v, n);
        return 0;
    case 0xcc ... 0xcf:
        t->kind = K_UINT;
        t->u = v;
        return 0;
    case 0xd0:
        mp_set_int(t, (int8_t)v);
        return 0;
    case 0xd1:
        mp_set_int(t, (int16_t)v);
        return 0;
    case 0xd2:
        mp_set_int(t, (int32_t)v);
        return 0;
    case 0xd3:
        mp_set_int(t, (int64_t)v);
        return 0;
    case 0xd4 ... 0xd8:
        return mp_body(r, t, K_EXT, ((size_t)1 << (c - 0xd4)) + 1);
    case 0xd9 ... 0xdb:
        return mp_body(r, t, K_STR, v);
    case 0xdc:
    case 0xdd:
        return mp_count(r, t, K_ARRAY, v);
    case 0xde:
    case 0xdf:
        return mp_count(r, t, K_MAP, v);
    default:
        return mp_fail(r, t->at, "byte 0x%02x is no msgpack", c);
    }
}

static int
mp_read_enter(struct reader *r, const struct token *t)
{
    if (r->d.depth >= CODEC_DEPTH_MAX)
        return mp_fail(r, t->at, "nested deeper than %d levels", CODEC_DEPTH_MAX);
    r->d.depth++;
    r->d.path[r->d.depth].kind = STEP_NONE;
    return 0;
}

static void
mp_read_leave(struct reader *r)
{
    r->d.depth--;
}

/* Small integers and short strings, which most tokens are. */
static bool
skip_short(struct reader *r)
{
    size_t left = (size_t)(r->end - r->p), n;
    if (left < 2)
        return false;
    uint8_t c = *r->p;
    if (c < 0x80 || c >= 0xe0)
        n = 1;
    else if (c >= 0xa0 && c < 0xc0)
        n = 1 + (c & 31U);
    else if (c == 0xd9)
        n = 2 + (size_t)r->p[1];
    else
        return false;
    if (n > left)
        return false;
    r->p += n;
    return true;
}

/* Anything, whole, without recursion: elements still to come are counted. */
int
mp_skip(struct reader *r)
{
    size_t open[CODEC_DEPTH_MAX + 1];
    unsigned depth = r->d.depth;
    unsigned base = depth;
    struct token t;
    open[depth] = 1;
    for (;;) {
        while (open[depth] == 0) {
            if (depth == base)
                return 0;
            depth--;
        }
        open[depth]--;
        if (skip_short(r))
            continue;
        int rc = mp_next(r, &t);
        if (rc)
            return rc;
        if (t.kind != K_ARRAY && t.kind != K_MAP)
            continue;
        if (depth >= CODEC_DEPTH_MAX)
            return mp_fail(r, t.at, "nested deeper than %d levels", CODEC_DEPTH_MAX);
        open[++depth] = t.kind == K_MAP ? t.n * 2 : t.n;
    }
}

/* --- scalars --- */

static int
copy_string(struct reader *r, const struct token *t, const char **ret)
{
    if (t->kind != K_STR)
        return mp_expected(r, t, "a string");
    if (t->n && memchr(t->p, 0, t->n))
        return mp_fail(r, t->at, "string holds a zero byte");
    char *s = arena_strndup(&r->d.a, (const char *)t->p, t->n);
    if (!s)
        return no_memory(r);
    *ret = s;
    return 0;
}

static int
read_string(struct reader *r, const struct field *f, const struct token *t, const char **ret)
{
    size_t max = field_max(f, CODEC_STRING_MAX);
    if (t->kind == K_STR && f && f->shape == FS_ONE && t->n > max)
        return mp_fail(r, t->at, "%zu bytes are more than the %zu allowed", t->n, max);
    return copy_string(r, t, ret);
}

static int
read_int(struct reader *r, const struct token *t, int64_t *p)
{
    if (t->kind == K_INT)
        *p = t->i;
    else if (t->kind == K_UINT && t->u <= INT64_MAX)
        *p = (int64_t)t->u;
    else if (t->kind == K_UINT)
        return mp_fail(r, t->at, "integer does not fit 63 bits");
    else
        return mp_expected(r, t, "an integer");
    return 0;
}

static int
read_uint(struct reader *r, const struct token *t, uint64_t *p)
{
    if (t->kind == K_INT)
        return mp_fail(r, t->at, "must not be negative");
    if (t->kind != K_UINT)
        return mp_expected(r, t, "an integer");
    *p = t->u;
    return 0;
}

static int
read_float(struct reader *r, const struct token *t, double *p)
{
    if (t->kind == K_FLOAT)
        *p = t->f;
    else if (t->kind == K_INT)
        *p = (double)t->i;
    else if (t->kind == K_UINT)
        *p = (double)t->u;
    else
        return mp_expected(r, t, "a number");
    return 0;
}

static int
read_bytes(struct reader *r, const struct token *t, struct bytes *b)
{
    if (t->kind != K_BIN)
        return mp_expected(r, t, "binary data");
    char *p = arena_strndup(&r->d.a, (const char *)t->p, t->n);
    if (!p)
        return no_memory(r);
    *b = (struct bytes){(uint8_t *)p, t->n};
    return 0;
}

/* --- containers --- */

static int
read_strings(struct reader *r, const struct token *t, struct str_list *l)
{
    static const struct field elem = {.type = FT_STRING, .shape = FS_LIST};
    return read_list(r, &elem, (struct any_list *)(void *)l, t);
}

static int
read_struct(struct reader *r, const struct field *f, const struct token *t, any_ptr *p)
{
    if (t->kind != K_MAP)
        return mp_expected(r, t, "a map");
    void *obj = arena_zalloc(&r->d.a, f->sub->size, f->sub->name);
    if (!obj)
        return no_memory(r);
    *p = obj;
    return read_object(r, f->sub, obj, t);
}

static int
read_elem(struct reader *r, const struct field *f, const struct token *t, void *p)
{
    switch ((enum field_type)f->type) {
    case FT_BOOL:
        if (t->kind != K_BOOL)
            return mp_expected(r, t, "a boolean");
        *(bool *)p = t->b;
        return 0;
    case FT_INT:
    case FT_DURATION:
    case FT_TIME:
        return read_int(r, t, p);
    case FT_UINT:
        return read_uint(r, t, p);
    case FT_FLOAT:
        return read_float(r, t, p);
    case FT_STRING:
        return read_string(r, f, t, p);
    case FT_BYTES:
        return read_bytes(r, t, p);
    case FT_VALUE:
        return read_value(r, t, p);
    case FT_STRUCT:
        return read_struct(r, f, t, p);
    case FT_STRINGS:
        return read_strings(r, t, p);
    }
    return mp_fail(r, t->at, "unknown field type");
}

static int
read_list(struct reader *r, const struct field *f, struct any_list *l, const struct token *tok)
{
    size_t cap = 0, size = elem_size(f), max = field_max(f, CODEC_COUNT_MAX);
    void *v = NULL;
    if (tok->kind != K_ARRAY)
        return mp_expected(r, tok, "a list");
    if (tok->n > max)
        return mp_fail(r, tok->at, "%zu elements are more than the %zu allowed", tok->n, max);
    int rc = mp_read_enter(r, tok);
    if (rc)
        return rc;
    if (!arena_grow(&r->d.a, &v, &cap, 0, size))
        return no_memory(r);
    for (size_t i = 0; i < tok->n; i++) {
        struct token t;
        decoder_at(&r->d, STEP_INDEX, NULL, i);
        if (!arena_grow(&r->d.a, &v, &cap, i, size))
            return no_memory(r);
        rc = mp_next(r, &t);
        rc = rc ? rc : read_elem(r, f, &t, (char *)v + i * size);
        if (rc)
            return rc;
    }
    mp_read_leave(r);
    l->v = v;
    l->n = tok->n;
    return 0;
}

static int
read_key(struct reader *r, const char **ret)
{
    struct token t;
    int rc = mp_next(r, &t);
    if (rc)
        return rc;
    decoder_at(&r->d, STEP_NONE, NULL, 0);
    rc = copy_string(r, &t, ret);
    if (rc)
        return rc;
    decoder_at(&r->d, STEP_KEY, *ret, t.n);
    return 0;
}

static int
read_map(struct reader *r, const struct field *f, struct any_list *l, const struct token *tok)
{
    size_t cap = 0, stride = map_stride(f), max = field_max(f, CODEC_COUNT_MAX);
    void *v = NULL;
    if (tok->kind != K_MAP)
        return mp_expected(r, tok, "a map");
    if (tok->n > max)
        return mp_fail(r, tok->at, "%zu entries are more than the %zu allowed", tok->n, max);
    int rc = mp_read_enter(r, tok);
    if (rc)
        return rc;
    if (!arena_grow(&r->d.a, &v, &cap, 0, stride))
        return no_memory(r);
    for (size_t i = 0; i < tok->n; i++) {
        struct token t;
        if (!arena_grow(&r->d.a, &v, &cap, i, stride))
            return no_memory(r);
        char *pair = (char *)v + i * stride;
        rc = read_key(r, (const char **)(void *)pair);
        rc = rc ? rc : mp_next(r, &t);
        rc = rc ? rc : read_elem(r, f, &t, pair + sizeof(char *));
        if (rc)
            return rc;
    }
    mp_read_leave(r);
    const char *dup = map_sort(v, tok->n, stride);
    if (dup)
        return mp_fail(r, tok->at, "key \"%.64s\" is there twice", dup);
    l->v = v;
    l->n = tok->n;
    return 0;
}

int
mp_read_field(struct reader *r, const struct field *f, void *p)
{
    struct token t;
    int rc = mp_next(r, &t);
    if (rc || t.kind == K_NIL) {
        /* a value that is null is not an absent one */
        if (!rc && f->type == FT_VALUE && f->shape == FS_ONE)
            return read_value(r, &t, p);
        return rc;
    }
    if (f->shape == FS_LIST)
        return read_list(r, f, p, &t);
    if (f->shape == FS_MAP)
        return read_map(r, f, p, &t);
    if (!(f->flags & F_OPT))
        return read_elem(r, f, &t, p);
    rc = read_elem(r, f, &t, opt_value(f, p));
    if (!rc)
        *opt_set(p) = true;
    return rc;
}

/* The id at `at` is none that we know. */
static int
unknown_id(struct reader *r, const uint8_t *at)
{
    struct token key;
    char text[64];
    r->p = at;
    int rc = mp_next(r, &key);
    if (rc)
        return rc;
    snprintf(text, sizeof(text), "field %llu is not known to this release",
             (unsigned long long)key.u);
    return fail_with(r, -ERR_UNSUPPORTED, at, text);
}

static int
read_object(struct reader *r, const struct type *t, void *obj, const struct token *tok)
{
    uint64_t seen[TYPE_FIELDS_MAX / 64] = {0};
    ASSERT(t->n_fields <= TYPE_FIELDS_MAX);
    if (tok->kind != K_MAP)
        return mp_expected(r, tok, "a map");
    int rc = mp_read_enter(r, tok);
    if (rc)
        return rc;
    for (size_t n = 0; n < tok->n; n++) {
        const struct field *f = NULL;
        const uint8_t *at = r->p;
        rc = mp_read_id(r, t, &f);
        if (rc)
            return rc;
        if (f) {
            size_t i = (size_t)(f - t->fields);
            decoder_at(&r->d, STEP_FIELD, f->wire, f->wire_len);
            if (seen[i / 64] & UINT64_C(1) << i % 64)
                return mp_fail(r, at, "field is there twice");
            seen[i / 64] |= UINT64_C(1) << i % 64;
        } else if (r->strict && r->d.depth == 1) {
            return unknown_id(r, at);
        }
        rc = f ? mp_read_field(r, f, field_ptr(f, obj)) : mp_skip(r);
        if (rc)
            return rc;
    }
    mp_read_leave(r);
    return 0;
}

/* --- values --- */

static int
read_value_list(struct reader *r, const struct token *tok, struct value *list)
{
    void *arr = NULL;
    size_t cap = 0;
    int rc = mp_read_enter(r, tok);
    if (rc)
        return rc;
    for (size_t i = 0; i < tok->n; i++) {
        struct token t;
        decoder_at(&r->d, STEP_INDEX, NULL, i);
        if (!arena_grow(&r->d.a, &arr, &cap, i, sizeof(struct value *)))
            return no_memory(r);
        rc = mp_next(r, &t);
        rc = rc ? rc : read_value(r, &t, &((struct value **)arr)[i]);
        if (rc)
            return rc;
    }
    mp_read_leave(r);
    list->list.v = arr;
    list->list.n = tok->n;
    return 0;
}

static int
read_value_map(struct reader *r, const struct token *tok, struct value *map)
{
    void *arr = NULL;
    size_t cap = 0;
    int rc = mp_read_enter(r, tok);
    if (rc)
        return rc;
    for (size_t i = 0; i < tok->n; i++) {
        struct token t;
        if (!arena_grow(&r->d.a, &arr, &cap, i, sizeof(struct value_pair)))
            return no_memory(r);
        struct value_pair *pair = &((struct value_pair *)arr)[i];
        rc = read_key(r, &pair->k);
        rc = rc ? rc : mp_next(r, &t);
        rc = rc ? rc : read_value(r, &t, &pair->v);
        if (rc)
            return rc;
    }
    mp_read_leave(r);
    map->map.v = arr;
    map->map.n = tok->n;
    const char *dup = value_map_duplicate(map);
    if (dup)
        return mp_fail(r, tok->at, "key \"%.64s\" is there twice", dup);
    return 0;
}

static int
fill_value(struct reader *r, const struct token *tok, struct value *v)
{
    switch (tok->kind) {
    case K_BOOL:
        v->b = tok->b;
        return 0;
    case K_INT:
    case K_UINT:
        return read_int(r, tok, &v->i);
    case K_FLOAT:
        v->f = tok->f;
        return 0;
    case K_STR:
        v->str.n = tok->n;
        return copy_string(r, tok, &v->str.s);
    case K_ARRAY:
        return read_value_list(r, tok, v);
    case K_MAP:
        return read_value_map(r, tok, v);
    default:
        return 0;
    }
}

static int
read_value(struct reader *r, const struct token *tok, struct value **ret)
{
    static const enum value_kind kinds[] = {
        [K_NIL] = VALUE_NULL,   [K_BOOL] = VALUE_BOOL,   [K_INT] = VALUE_INT,
        [K_UINT] = VALUE_INT,   [K_FLOAT] = VALUE_FLOAT, [K_STR] = VALUE_STRING,
        [K_ARRAY] = VALUE_LIST, [K_MAP] = VALUE_MAP};
    if (tok->kind == K_BIN || tok->kind == K_EXT)
        return mp_expected(r, tok, "a value");
    struct value *v = arena_value(&r->d.a, kinds[tok->kind]);
    if (!v)
        return no_memory(r);
    *ret = v;
    return fill_value(r, tok, v);
}

/* --- entry point --- */

static int
mp_read_decode(struct reader *r, const void *ctx, struct slice in, struct budget *b, void **ret)
{
    const struct type *t = r->d.type;
    struct token tok;
    r->s = r->p = in.p;
    r->end = r->s + in.n;
    r->d.a.budget = b;
    r->d.a.allowed = b ? b->left : 0;
    r->d.a.block = in.n < 4096 ? in.n : 4096;
    void *obj = arena_root(&r->d.a, ctx, t, in.n * 8);
    if (!obj)
        return no_memory(r);
    int rc = mp_next(r, &tok);
    rc = rc ? rc : read_object(r, t, obj, &tok);
    if (!rc && r->p < r->end)
        rc = mp_fail(r, r->p, "%zu bytes left over", (size_t)(r->end - r->p));
    if (!rc && r->strict && t->one_of && codec_member(t, obj) == 0)
        rc = mp_fail(r, r->s, "exactly one of its members is to be set");
    if (rc) {
        talloc_free(obj);
        return rc;
    }
    *ret = obj;
    return 0;
}

int
mp_decode(const void *ctx, const struct type *t, struct slice in, struct budget *b, void **ret,
          struct err *e)
{
    struct reader r = {.d = {.type = t, .e = e}};
    return mp_read_decode(&r, ctx, in, b, ret);
}

int
mp_decode_strict(const void *ctx, const struct type *t, struct slice in, struct budget *b,
                 void **ret, struct err *e)
{
    struct reader r = {.d = {.type = t, .e = e}, .strict = true};
    return mp_read_decode(&r, ctx, in, b, ret);
}
