/* SPDX-License-Identifier: Apache-2.0
 *
 * Lean objects: where the members of an encoded object are, a struct with the few that are looked
 * at, and JSON of the others from their bytes.
 */
#include "codec/json_int.h"
#include "codec/mp_int.h"

enum { LEAN_ROOM = 512 }; /* for what is decoded of an object */

struct lean {
    const struct type *dst, *src;
    const uint8_t *start, *end;         /* of the object that is open */
    const uint8_t *at[TYPE_FIELDS_MAX]; /* by index in src: where its value is; NULL: absent */
    size_t n_needs;
    uint16_t needs[TYPE_FIELDS_MAX]; /* of src */
    int16_t from[TYPE_FIELDS_MAX];   /* by index in dst: of src, or -1: from a struct */
};

/* --- opening --- */

/* The next of the names, which are separated by spaces; NULL at their end. */
static const struct field *
next_named(const struct type *t, const char **names)
{
    const struct field *f = NULL;

    while (f == NULL && **names != '\0') {
        size_t n = strcspn(*names, " ");
        f = type_field(t, *names, n);
        *names += n + strspn(*names + n, " ");
    }
    return f;
}

static int16_t
index_in(const struct type *t, const struct field *f)
{
    return (int16_t)(f - t->fields);
}

/* The field of src that is written where `to` is, or -1. */
static int16_t
written_from(struct lean *l, const struct field *to)
{
    const struct field *from = type_field(l->src, to->wire, to->wire_len);

    if (from == NULL)
        return -1;
    if (to->type == FT_BOOL && from->type == FT_STRUCT) /* whether it is there */
        l->needs[l->n_needs++] = (uint16_t)index_in(l->src, from);
    bool same = to->shape == from->shape && to->type == from->type && to->sub == from->sub;
    return same && (!(to->flags & F_OPT) || (from->flags & F_OPT)) ? index_in(l->src, from) : -1;
}

struct lean *
lean_new(const void *ctx, const struct type *dst, const struct type *src, const char *needs,
         const char *makes)
{
    struct lean *l = mem_new(ctx, struct lean);
    const struct field *f;

    ASSERT(dst->n_fields <= TYPE_FIELDS_MAX && src->n_fields <= TYPE_FIELDS_MAX);
    l->dst = dst;
    l->src = src;
    for (size_t i = 0; i < dst->n_fields; i++)
        l->from[i] = dst == src ? (int16_t)i : written_from(l, &dst->fields[i]);
    while ((f = next_named(src, &needs)) != NULL)
        l->needs[l->n_needs++] = (uint16_t)index_in(src, f);
    while ((f = next_named(dst, &makes)) != NULL)
        l->from[index_in(dst, f)] = -1;
    return l;
}

/* Finds the places of the object's members. */
static int
find_members(struct lean *l, struct reader *r)
{
    struct token tok;

    memset(l->at, 0, l->src->n_fields * sizeof(l->at[0]));
    int rc = mp_next(r, &tok);
    if (rc == 0 && tok.kind != K_MAP)
        rc = mp_expected(r, &tok, "a map");
    r->d.depth = 1;
    r->d.path[1].kind = STEP_NONE;
    for (size_t n = 0; rc == 0 && n < tok.n; n++) {
        const struct field *f = NULL;

        rc = mp_read_id(r, l->src, &f);
        if (rc == 0 && f != NULL)
            l->at[f - l->src->fields] = r->p;
        rc = rc ? rc : mp_skip(r);
    }
    if (rc == 0 && r->p < r->end)
        rc = mp_fail(r, r->p, "%zu bytes left over", (size_t)(r->end - r->p));
    return rc;
}

int
lean_open(const void *ctx, struct lean *l, struct slice in, struct budget *b, void **ret,
          struct err *e)
{
    struct reader r = {.d = {.type = l->src, .e = e, .a = {.budget = b, .allowed = b->left}}};

    r.s = r.p = l->start = in.p;
    r.end = l->end = l->start + in.n;
    int rc = find_members(l, &r);
    void *obj = rc == 0 ? arena_root(&r.d.a, ctx, l->src, LEAN_ROOM) : NULL;
    if (rc == 0 && obj == NULL)
        rc = err_set(e, -ERR_LIMIT, "msgpack: %s needs more memory than it may take", l->src->name);
    for (size_t i = 0; rc == 0 && i < l->n_needs; i++) {
        const struct field *f = &l->src->fields[l->needs[i]];

        r.p = l->at[l->needs[i]];
        if (r.p == NULL)
            continue;
        decoder_at(&r.d, STEP_FIELD, f->wire, f->wire_len);
        rc = mp_read_field(&r, f, field_ptr(f, obj));
    }
    if (rc != 0) {
        talloc_free(obj);
        return rc;
    }
    *ret = obj;
    return 0;
}

const char *
lean_text(const void *ctx, const struct lean *l, const char *wire, const char *key)
{
    const struct field *f = type_field(l->src, wire, strlen(wire));
    const uint8_t *at = l->at[f - l->src->fields];
    struct err e = ERR_INIT;
    struct reader r = {.d = {.type = l->src, .e = &e}, .s = at, .p = at, .end = l->end};
    struct token map, k, v;

    ASSERT(f->shape == FS_MAP && f->type == FT_STRING);
    if (at == NULL || mp_next(&r, &map) != 0 || map.kind != K_MAP)
        return NULL;
    for (size_t i = 0; i < map.n && mp_next(&r, &k) == 0 && mp_next(&r, &v) == 0; i++)
        if (k.kind == K_STR && v.kind == K_STR && k.n == strlen(key) && memcmp(k.p, key, k.n) == 0)
            return mem_strndup(ctx, (const char *)v.p, v.n);
    return NULL;
}

/* --- JSON, of members that come in the order of the schema that wrote them --- */

static void raw_object(struct writer *w, struct reader *r, const struct type *t,
                       const struct token *tok);
static void raw_value(struct writer *w, struct reader *r, const struct token *tok);

/* The bytes are not what the type says: the buffer holds the error. */
static void
raw_bad(struct writer *w, struct reader *r)
{
    out_end(&w->o);
    w->o.b->error = -ERR_CORRUPT;
    w->o.p = w->o.end = NULL;
    r->p = r->end; /* nothing more is read */
}

static void
raw_int(struct writer *w, struct reader *r, const struct field *f, const struct token *tok)
{
    if ((tok->kind != K_INT && tok->kind != K_UINT) ||
        (tok->kind == K_INT ? f->type == FT_UINT : f->type != FT_UINT && tok->u > INT64_MAX))
        raw_bad(w, r);
    else if (f->type == FT_TIME)
        json_write_time(w, tok->i);
    else if (tok->kind == K_INT)
        put_i64(w, tok->i);
    else
        put_u64(w, tok->u, false);
}

static void
raw_float(struct writer *w, struct reader *r, const struct token *tok)
{
    if (tok->kind == K_FLOAT)
        json_put_f64(w, tok->f);
    else if (tok->kind == K_INT)
        json_put_f64(w, (double)tok->i);
    else if (tok->kind == K_UINT)
        json_put_f64(w, (double)tok->u);
    else
        raw_bad(w, r);
}

static void raw_list(struct writer *w, struct reader *r, const struct field *f,
                     const struct token *tok);

static void
raw_elem(struct writer *w, struct reader *r, const struct field *f, const struct token *tok)
{
    static const struct field text = {.type = FT_STRING, .shape = FS_LIST};

    switch ((enum field_type)f->type) {
    case FT_INT:
    case FT_UINT:
    case FT_DURATION:
    case FT_TIME:
        raw_int(w, r, f, tok);
        return;
    case FT_FLOAT:
        raw_float(w, r, tok);
        return;
    case FT_VALUE:
        raw_value(w, r, tok);
        return;
    case FT_STRUCT:
        raw_object(w, r, f->sub, tok);
        return;
    case FT_STRINGS:
        raw_list(w, r, &text, tok);
        return;
    case FT_BOOL:
        if (tok->kind != K_BOOL)
            break;
        put_bool(w, tok->b);
        return;
    case FT_STRING:
        if (tok->kind != K_STR)
            break;
        json_put_text(&w->o, (const char *)tok->p, tok->n);
        return;
    case FT_BYTES:
        if (tok->kind != K_BIN)
            break;
        json_write_bytes(w, &(struct bytes){tok->p, tok->n});
        return;
    }
    raw_bad(w, r);
}

/* The next token; of a failed writer none. */
static bool
raw_next(struct writer *w, struct reader *r, struct token *tok)
{
    if (mp_next(r, tok) == 0)
        return true;
    raw_bad(w, r);
    return false;
}

/* A key and its colon, in a map. */
static bool
raw_key(struct writer *w, struct reader *r)
{
    struct token k;

    if (!raw_next(w, r, &k))
        return false;
    if (k.kind != K_STR) {
        raw_bad(w, r);
        return false;
    }
    json_put_text(&w->o, (const char *)k.p, k.n);
    put_colon(w);
    return true;
}

static void
raw_list(struct writer *w, struct reader *r, const struct field *f, const struct token *tok)
{
    bool map = f->shape == FS_MAP, any = false;
    struct token t;

    if (tok->kind != (map ? K_MAP : K_ARRAY)) {
        raw_bad(w, r);
        return;
    }
    if (!open_with(w, map ? '{' : '['))
        return;
    for (size_t i = 0; i < tok->n; i++) {
        json_separate(w, &any);
        if ((map && !raw_key(w, r)) || !raw_next(w, r, &t))
            return;
        raw_elem(w, r, f, &t);
    }
    close_with(w, map ? '}' : ']', any);
}

static void
raw_value(struct writer *w, struct reader *r, const struct token *tok)
{
    static const struct field list = {.type = FT_VALUE, .shape = FS_LIST},
                              map = {.type = FT_VALUE, .shape = FS_MAP},
                              scalar[] = {[K_BOOL] = {.type = FT_BOOL},
                                          [K_INT] = {.type = FT_INT},
                                          [K_UINT] = {.type = FT_INT},
                                          [K_FLOAT] = {.type = FT_FLOAT},
                                          [K_STR] = {.type = FT_STRING}};

    if (tok->kind == K_NIL)
        PUT(w, "null");
    else if (tok->kind == K_ARRAY || tok->kind == K_MAP)
        raw_list(w, r, tok->kind == K_MAP ? &map : &list, tok);
    else if (tok->kind < ARRAY_LEN(scalar))
        raw_elem(w, r, &scalar[tok->kind], tok);
    else
        raw_bad(w, r);
}

/* Returns what field_empty() says of the decoded value. */
static bool
raw_empty(const struct field *f, const struct token *t)
{
    if (t->kind == K_NIL || f->shape != FS_ONE || t->kind == K_STR || t->kind == K_BIN)
        return t->kind == K_NIL || t->n == 0;
    if (f->type == FT_VALUE)
        return (t->kind == K_ARRAY || t->kind == K_MAP) && t->n == 0;
    if (f->type == FT_STRUCT || (f->flags & F_OPT))
        return false;
    return t->kind == K_BOOL ? !t->b : t->kind == K_FLOAT ? t->f == 0 : t->u == 0;
}

/* A member with its name. `at` NULL: absent. */
static void
raw_member(struct writer *w, struct reader *r, const struct field *f, bool *any, const uint8_t *at)
{
    struct token t = {.kind = K_NIL};

    if (at != NULL) {
        r->p = at;
        if (!raw_next(w, r, &t))
            return;
    }
    if ((f->flags & F_OMIT) && !(w->flags & JSON_NO_OMIT) && raw_empty(f, &t))
        return;
    put_name(w, any, f);
    if (t.kind == K_NIL || ((w->flags & JSON_HIDE_SECRETS) && (f->flags & F_SECRET))) {
        json_write_field(w, f, json_zero);
        if (t.kind != K_NIL && at != NULL) {
            r->p = at;
            mp_skip(r);
        }
    } else if (f->shape != FS_ONE) {
        raw_list(w, r, f, &t);
    } else {
        raw_elem(w, r, f, &t);
    }
}

/* Written by a release whose schema had another order: the members are found first. */
static void __attribute__((noinline))
raw_unordered(struct writer *w, struct reader *r, const struct type *t, size_t n)
{
    const uint8_t *at[TYPE_FIELDS_MAX] = {0};
    const struct field *f = NULL;
    bool any = false;

    for (; n > 0; n--) {
        if (mp_read_id(r, t, &f) != 0) {
            raw_bad(w, r);
            return;
        }
        if (f != NULL)
            at[f - t->fields] = r->p;
        if (mp_skip(r) != 0) {
            raw_bad(w, r);
            return;
        }
    }
    const uint8_t *end = r->p;
    for (size_t i = 0; i < t->n_fields; i++)
        raw_member(w, r, &t->fields[i], &any, at[i]);
    if (!buf_error(w->o.b))
        r->p = end;
    close_with(w, '}', any);
}

static void
raw_object(struct writer *w, struct reader *r, const struct type *t, const struct token *tok)
{
    const uint8_t *start = r->p;
    const struct field *f = NULL;
    size_t i = 0, mark;
    bool any = false;

    if (tok->kind != K_MAP) {
        raw_bad(w, r);
        return;
    }
    if (!open_with(w, '{'))
        return;
    mark = out_at(&w->o);
    for (size_t n = 0; n < tok->n; n++) {
        if (mp_read_id(r, t, &f) != 0 || (f == NULL && mp_skip(r) != 0)) {
            raw_bad(w, r);
            return;
        }
        if (f == NULL)
            continue;
        if ((size_t)(f - t->fields) < i) {
            if (w->o.p != NULL)
                w->o.p = w->o.b->data + mark;
            r->p = start;
            raw_unordered(w, r, t, tok->n);
            return;
        }
        while (&t->fields[i] < f)
            raw_member(w, r, &t->fields[i++], &any, NULL);
        raw_member(w, r, &t->fields[i++], &any, r->p);
    }
    while (i < t->n_fields)
        raw_member(w, r, &t->fields[i++], &any, NULL);
    close_with(w, '}', any);
}

static void
lean_object(struct writer *w, const struct lean *l, const void *obj)
{
    struct err e = ERR_INIT;
    struct reader r = {.d = {.type = l->src, .e = &e}, .s = l->start, .end = l->end};
    bool any = false;

    if (!open_with(w, '{'))
        return;
    for (size_t i = 0; i < l->dst->n_fields; i++) {
        const struct field *f = &l->dst->fields[i];
        const void *p = l->from[i] < 0 ? field_ptr(f, obj) : NULL;

        if (p == NULL) {
            raw_member(w, &r, f, &any, l->at[l->from[i]]);
        } else if (!(f->flags & F_OMIT) || (w->flags & JSON_NO_OMIT) || !field_empty(f, p)) {
            put_name(w, &any, f);
            json_write_field(w, f, p);
        }
    }
    close_with(w, '}', any);
}

void
lean_write(struct buf *out, const struct lean *l, const void *obj, unsigned flags)
{
    struct writer w = {.flags = flags};
    out_begin(&w.o, out);
    lean_object(&w, l, obj);
    out_end(&w.o);
}

void
lean_write_row(struct buf *out, const struct lean *l, const void *obj, unsigned flags)
{
    struct writer w = {.flags = flags, .depth = 1};
    bool any = true;
    out_begin(&w.o, out);
    json_separate(&w, &any);
    lean_object(&w, l, obj);
    out_end(&w.o);
}
