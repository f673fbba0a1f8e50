/* SPDX-License-Identifier: Apache-2.0
 *
 * The table-driven JSON reader: straight from text into the struct, without a tree between. Names
 * match as in Go: exactly, else ASCII case-insensitively. Recursion is bounded by CODEC_DEPTH_MAX.
 */
#include <stdio.h>

#include "codec/base64.h"
#include "codec/json_scan.h"
#include "common/duration.h"

static int read_object(struct json_reader *r, const struct type *t, void *obj);
static int read_list(struct json_reader *r, const struct field *f, struct any_list *l);

/* --- scalars --- */

static int
read_bool(struct json_reader *r, bool *p)
{
    if (json_take_word(r, "true", 4))
        *p = true;
    else if (json_take_word(r, "false", 5))
        *p = false;
    else
        return json_expected(r, "a boolean");
    return 0;
}

static int
need_number(struct json_reader *r, struct json_number *n, const char *what)
{
    if (r->p >= r->end || !(*r->p == '-' || (*r->p >= '0' && *r->p <= '9')))
        return json_expected(r, what);
    return json_scan_number(r, n);
}

static int
read_int(struct json_reader *r, int64_t *p, const char *what)
{
    struct json_number n;
    int rc = need_number(r, &n, what);
    if (rc)
        return rc;
    if (!n.integral) {
        double f;
        rc = json_number_float(r, &n, &f);
        if (rc)
            return rc;
        /* "1e3" and "5.0" are integers in other writers' clothes, within exact doubles */
        if (!float_is_int(f) || f > 9007199254740992.0 || f < -9007199254740992.0)
            return json_fail(r, n.s, "expected %s, found a fraction", what);
        *p = (int64_t)f;
        return 0;
    }
    if (n.big || n.mag > (uint64_t)INT64_MAX + (n.neg ? 1 : 0))
        return json_fail(r, n.s, "number %.*s does not fit 64 bits", (int)(n.n < 40 ? n.n : 40),
                         n.s);
    *p = n.neg ? (int64_t)(~n.mag + 1) : (int64_t)n.mag;
    return 0;
}

static int
read_uint(struct json_reader *r, uint64_t *p)
{
    struct json_number n;
    int rc = need_number(r, &n, "an integer");
    if (rc)
        return rc;
    if (n.neg && n.mag)
        return json_fail(r, n.s, "must not be negative");
    if (!n.integral)
        return json_fail(r, n.s, "expected an integer, found a fraction");
    if (n.big)
        return json_fail(r, n.s, "number %.*s does not fit 64 bits", (int)(n.n < 40 ? n.n : 40),
                         n.s);
    *p = n.mag;
    return 0;
}

static int
read_float(struct json_reader *r, double *p)
{
    struct json_number n;
    int rc = need_number(r, &n, "a number");
    return rc ? rc : json_number_float(r, &n, p);
}

/* Short text into a terminated buffer; long text cannot be a duration or a time. */
static int
short_text(struct json_reader *r, char *out, size_t size, const char *what)
{
    const char *s, *at = r->p;
    size_t n;
    int rc = json_string(r, &s, &n);
    if (rc)
        return rc;
    if (n >= size)
        return json_fail(r, at, "expected %s", what);
    memcpy(out, s, n);
    out[n] = 0;
    return 0;
}

static int
read_duration(struct json_reader *r, int64_t *p)
{
    if (r->p >= r->end || *r->p != '"')
        return read_int(r, p, "a duration");
    char t[64];
    const char *at = r->p;
    int rc = short_text(r, t, sizeof(t), "a duration like \"1m30s\"");
    if (rc)
        return rc;
    /* Clients of Nomad write "" for a duration that is not given. */
    if (t[0] == 0)
        *p = 0;
    else if (duration_parse(t, p))
        return json_fail(r, at, "\"%s\" is not a duration like \"1m30s\"", t);
    return 0;
}

static int
read_time(struct json_reader *r, int64_t *p)
{
    char t[64];
    const char *at = r->p;
    if (r->p >= r->end || *r->p != '"')
        return json_expected(r, "a time in quotes");
    int rc = short_text(r, t, sizeof(t), "a time like \"2006-01-02T15:04:05Z\"");
    if (rc)
        return rc;
    if (!t[0]) {
        *p = 0;
        return 0;
    }
    if (time_parse(t, strlen(t), p))
        return json_fail(r, at, "\"%s\" is not a time like \"2006-01-02T15:04:05Z\"", t);
    return 0;
}

static int
read_string(struct json_reader *r, const struct field *f, const char **p)
{
    const char *s, *at = r->p;
    size_t n;
    if (r->p >= r->end || *r->p != '"')
        return json_expected(r, "a string");
    int rc = json_string(r, &s, &n);
    if (rc)
        return rc;
    size_t max = field_max(f, CODEC_STRING_MAX);
    /* in lists and maps `max` counts elements */
    if (f && f->shape == FS_ONE && n > max)
        return json_fail(r, at, "%zu bytes are more than the %zu allowed", n, max);
    char *copy = arena_strndup(&r->d.a, s, n);
    if (!copy)
        return json_no_memory(r);
    *p = copy;
    return 0;
}

static int
read_bytes(struct json_reader *r, struct bytes *b)
{
    const char *s, *at = r->p;
    size_t n, len;
    if (r->p >= r->end || *r->p != '"')
        return json_expected(r, "base64 text");
    int rc = json_string(r, &s, &n);
    if (rc)
        return rc;
    char *out = arena_bytes(&r->d.a, BASE64_DECODED(n));
    if (!out)
        return json_no_memory(r);
    if (base64_decode(s, n, (uint8_t *)out, &len))
        return json_fail(r, at, "not valid base64");
    *b = (struct bytes){(uint8_t *)out, len};
    return 0;
}

/* --- containers --- */

static int
read_strings(struct json_reader *r, struct str_list *l)
{
    static const struct field elem = {.type = FT_STRING, .shape = FS_LIST};
    return read_list(r, &elem, (struct any_list *)(void *)l);
}

static int
read_struct(struct json_reader *r, const struct field *f, any_ptr *p)
{
    if (r->p >= r->end || *r->p != '{')
        return json_expected(r, "an object");
    void *obj = arena_zalloc(&r->d.a, f->sub->size, f->sub->name);
    if (!obj)
        return json_no_memory(r);
    *p = obj;
    return read_object(r, f->sub, obj);
}

static int
read_elem(struct json_reader *r, const struct field *f, void *p)
{
    switch ((enum field_type)f->type) {
    case FT_BOOL:
        return read_bool(r, p);
    case FT_INT:
        return read_int(r, p, "an integer");
    case FT_UINT:
        return read_uint(r, p);
    case FT_FLOAT:
        return read_float(r, p);
    case FT_DURATION:
        return read_duration(r, p);
    case FT_TIME:
        return read_time(r, p);
    case FT_STRING:
        return read_string(r, f, p);
    case FT_BYTES:
        return read_bytes(r, p);
    case FT_VALUE:
        return json_value(r, p);
    case FT_STRUCT:
        return read_struct(r, f, p);
    case FT_STRINGS:
        return read_strings(r, p);
    }
    return json_fail(r, r->p, "unknown field type");
}

/* null inside a list or map: an empty string, zero or null value; never a missing struct. */
static int
read_null_elem(struct json_reader *r, const struct field *f, void *p)
{
    if (f->type == FT_STRUCT)
        return json_fail(r, r->p, "null is not allowed here");
    if (f->type == FT_STRING)
        *(const char **)p = arena_strndup(&r->d.a, "", 0);
    else if (f->type == FT_VALUE)
        *(struct value **)p = arena_value(&r->d.a, VALUE_NULL);
    else
        return 0;
    return *(any_ptr *)p ? 0 : json_no_memory(r);
}

static int
read_list_elem(struct json_reader *r, const struct field *f, void *p)
{
    if (json_take_null(r))
        return read_null_elem(r, f, p);
    return read_elem(r, f, p);
}

static int
read_list(struct json_reader *r, const struct field *f, struct any_list *l)
{
    size_t cap = 0, n = 0, size = elem_size(f), max = field_max(f, CODEC_COUNT_MAX);
    void *v = NULL;
    if (r->p >= r->end || *r->p != '[')
        return json_expected(r, "a list");
    int rc = json_open(r);
    if (rc)
        return rc;
    if (!arena_grow(&r->d.a, &v, &cap, 0, size))
        return json_no_memory(r);
    if (!json_empty(r, ']')) {
        do {
            json_space(r);
            decoder_at(&r->d, STEP_INDEX, NULL, n);
            if (n >= max)
                return json_fail(r, r->p, "more than %zu elements", max);
            if (!arena_grow(&r->d.a, &v, &cap, n, size))
                return json_no_memory(r);
            rc = read_list_elem(r, f, (char *)v + n * size);
            if (rc)
                return rc;
            n++;
            rc = json_next(r, ']');
        } while (rc > 0);
        if (rc)
            return rc;
    }
    l->v = v;
    l->n = n;
    return 0;
}

static int
read_map_entry(struct json_reader *r, const struct field *f, char *pair)
{
    const char *k;
    size_t len;
    int rc = json_key(r, &k, &len);
    if (rc)
        return rc;
    decoder_at(&r->d, STEP_KEY, k, len);
    char *copy = arena_strndup(&r->d.a, k, len);
    if (!copy)
        return json_no_memory(r);
    *(const char **)(void *)pair = copy;
    return read_list_elem(r, f, pair + sizeof(char *));
}

static int
read_map(struct json_reader *r, const struct field *f, struct any_list *l)
{
    size_t cap = 0, n = 0, stride = map_stride(f), max = field_max(f, CODEC_COUNT_MAX);
    void *v = NULL;
    if (r->p >= r->end || *r->p != '{')
        return json_expected(r, "an object");
    const char *start = r->p;
    int rc = json_open(r);
    if (rc)
        return rc;
    if (!arena_grow(&r->d.a, &v, &cap, 0, stride))
        return json_no_memory(r);
    if (!json_empty(r, '}')) {
        do {
            if (n >= max)
                return json_fail(r, r->p, "more than %zu entries", max);
            if (!arena_grow(&r->d.a, &v, &cap, n, stride))
                return json_no_memory(r);
            rc = read_map_entry(r, f, (char *)v + n * stride);
            if (rc)
                return rc;
            n++;
            rc = json_next(r, '}');
        } while (rc > 0);
        if (rc)
            return rc;
    }
    const char *dup = map_sort(v, n, stride);
    if (dup)
        return json_fail(r, start, "key \"%.64s\" is there twice", dup);
    l->v = v;
    l->n = n;
    return 0;
}

static int
read_field(struct json_reader *r, const struct field *f, void *p)
{
    if (json_take_null(r))
        return 0;
    if (f->shape == FS_LIST)
        return read_list(r, f, p);
    if (f->shape == FS_MAP)
        return read_map(r, f, p);
    if (!(f->flags & F_OPT))
        return read_elem(r, f, p);
    const char *at = r->p;
    int rc = read_elem(r, f, opt_value(f, p));
    bool absent = f->type == FT_DURATION && *at == '"' && r->p - at == 2; /* "" */
    if (!rc && !absent)
        *opt_set(p) = true;
    return rc;
}

static int
unknown_field(struct json_reader *r, const struct type *t, const char *k, size_t len)
{
    if (!r->strict)
        return json_skip(r);
    const char *near = type_nearest(t, k, len);
    int show = len < 64 ? (int)len : 64;
    if (near)
        return json_fail(r, r->p, "unknown field \"%.*s\" in %s, did you mean \"%s\"?", show, k,
                         t->name, near);
    return json_fail(r, r->p, "unknown field \"%.*s\" in %s", show, k, t->name);
}

static int
read_entry(struct json_reader *r, const struct type *t, void *obj, size_t *hint, uint64_t *seen)
{
    const char *k;
    size_t len;
    decoder_at(&r->d, STEP_NONE, NULL, 0);
    int rc = json_key(r, &k, &len);
    if (rc)
        return rc;
    const struct field *f = type_field_hint(t, k, len, hint);
    if (!f)
        return unknown_field(r, t, k, len);
    decoder_at(&r->d, STEP_FIELD, f->wire, f->wire_len);
    size_t i = (size_t)(f - t->fields);
    if (seen[i / 64] & UINT64_C(1) << i % 64)
        return json_fail(r, r->p, "field is there twice");
    seen[i / 64] |= UINT64_C(1) << i % 64;
    return read_field(r, f, field_ptr(f, obj));
}

static int
read_object(struct json_reader *r, const struct type *t, void *obj)
{
    uint64_t seen[TYPE_FIELDS_MAX / 64] = {0};
    size_t hint = 0;
    ASSERT(t->n_fields <= TYPE_FIELDS_MAX);
    if (r->p >= r->end || *r->p != '{')
        return json_expected(r, "an object");
    int rc = json_open(r);
    if (rc || json_empty(r, '}'))
        return rc;
    do {
        rc = read_entry(r, t, obj, &hint, seen);
        if (rc)
            return rc;
        rc = json_next(r, '}');
    } while (rc > 0);
    return rc;
}

/* --- entry points --- */

static int
at_end(struct json_reader *r)
{
    json_space(r);
    if (r->p < r->end)
        return json_expected(r, "the end of the document");
    return 0;
}

static void
reader_init(struct json_reader *r, struct slice text, struct budget *b, struct err *e)
{
    r->s = r->p = text.p;
    r->end = r->s + text.n;
    r->d.e = e;
    r->d.a.budget = b;
    r->d.a.allowed = b ? b->left : 0;
    r->d.a.block = text.n / 2 < 4096 ? text.n / 2 : 4096;
}

static int
json_read_decode(struct json_reader *r, const void *ctx, void **ret)
{
    const struct type *t = r->d.type;
    void *obj = arena_root(&r->d.a, ctx, t, (size_t)(r->end - r->s) * 2);
    if (!obj)
        return json_no_memory(r);
    json_space(r);
    int rc = read_object(r, t, obj);
    rc = rc ? rc : at_end(r);
    if (rc) {
        talloc_free(obj);
        return rc;
    }
    *ret = obj;
    return 0;
}

int
json_decode(const void *ctx, const struct type *t, struct slice text, struct budget *b, void **ret,
            struct err *e)
{
    struct json_reader r = {.d = {.type = t}};
    reader_init(&r, text, b, e);
    return json_read_decode(&r, ctx, ret);
}

int
json_decode_strict(const void *ctx, const struct type *t, struct slice text, struct budget *b,
                   void **ret, struct err *e)
{
    struct json_reader r = {.d = {.type = t}, .strict = true};
    reader_init(&r, text, b, e);
    return json_read_decode(&r, ctx, ret);
}

int
json_decode_value(const void *ctx, struct slice text, struct budget *b, struct value **ret,
                  struct err *e)
{
    struct json_reader r = {0};
    reader_init(&r, text, b, e);
    /* the owner: what the text holds is moved into it */
    struct value *root = mem_new(ctx, struct value), *v = NULL;
    r.d.a.root = root;
    json_space(&r);
    int rc = json_value(&r, &v);
    rc = rc ? rc : at_end(&r);
    if (rc) {
        talloc_free(root);
        return rc;
    }
    *root = *v;
    *ret = root;
    return 0;
}

int
json_decode_list(const void *ctx, const struct type *t, struct slice text, struct budget *b,
                 struct object_list *ret, struct err *e)
{
    const struct field f = {.wire = "list", .sub = t, .type = FT_STRUCT, .shape = FS_LIST};
    struct json_reader r = {0};
    struct any_list l = {NULL, 0};
    reader_init(&r, text, b, e);
    void *root = talloc_new(ctx);
    r.d.a.root = root;
    r.d.type = t;
    json_space(&r);
    int rc = json_take_null(&r) ? 0 : read_list(&r, &f, &l);
    rc = rc ? rc : at_end(&r);
    if (rc) {
        talloc_free(root);
        return rc;
    }
    ret->v = mem_array(ctx, void *, pow2_ceil(l.n));
    ret->n = l.n;
    if (l.n)
        memcpy(ret->v, l.v, l.n * sizeof(void *));
    talloc_steal(ret->v, root);
    return 0;
}
