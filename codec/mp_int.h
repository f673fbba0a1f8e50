/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens of msgpack, for the decoder (mp_read.c) and the maker of JSON (lean.c).
 */
#ifndef PADDOCK_CODEC_MP_INT_H
#define PADDOCK_CODEC_MP_INT_H

#include "codec/intern.h"

enum kind { K_NIL, K_BOOL, K_INT, K_UINT, K_FLOAT, K_STR, K_BIN, K_ARRAY, K_MAP, K_EXT };

/* One decoded header. Strings and binaries: `p` and `n`; arrays and maps: `n` elements. */
struct token {
    enum kind kind;
    const uint8_t *at;
    const uint8_t *p;
    size_t n;
    union {
        bool b;
        int64_t i;  /* K_INT: negative */
        uint64_t u; /* K_UINT */
        double f;
    };
};

struct reader {
    struct decoder d;
    const uint8_t *s, *p, *end;
    bool strict; /* the outermost object may hold nothing unknown */
};

/* 0, or a negative code with r->d.e set. */
int mp_fail(struct reader *r, const uint8_t *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int mp_expected(struct reader *r, const struct token *tok, const char *what);
int mp_long_token(struct reader *r, uint8_t c, struct token *t);
/* Anything, whole. */
int mp_skip(struct reader *r);
/* The value of a field, which is nil or zero at `p` where it is absent. */
int mp_read_field(struct reader *r, const struct field *f, void *p);

static inline int
mp_body(struct reader *r, struct token *t, enum kind kind, size_t n)
{
    t->kind = kind;
    t->n = n;
    if ((size_t)(r->end - r->p) < n)
        return mp_fail(r, t->at, "truncated: %zu bytes announced, %zu there", n,
                       (size_t)(r->end - r->p));
    if (kind != K_EXT && n > CODEC_STRING_MAX)
        return mp_fail(r, t->at, "%zu bytes are more than %d", n, CODEC_STRING_MAX);
    t->p = r->p;
    r->p += n;
    return 0;
}

/* Each element takes at least one byte (each pair two): more cannot be there. */
static inline int
mp_count(struct reader *r, struct token *t, enum kind kind, size_t n)
{
    size_t left = (size_t)(r->end - r->p);
    t->kind = kind;
    t->n = n;
    if (n > CODEC_COUNT_MAX)
        return mp_fail(r, t->at, "%zu elements are more than %d", n, CODEC_COUNT_MAX);
    if (n > (kind == K_MAP ? left / 2 : left))
        return mp_fail(r, t->at, "truncated: %zu elements announced, %zu bytes there", n, left);
    return 0;
}

static inline void
mp_set_int(struct token *t, int64_t v)
{
    if (v < 0) {
        t->kind = K_INT;
        t->i = v;
    } else {
        t->kind = K_UINT;
        t->u = (uint64_t)v;
    }
}

static inline int
mp_next(struct reader *r, struct token *t)
{
    t->at = r->p;
    if (r->p >= r->end)
        return mp_fail(r, r->p, "truncated");
    uint8_t c = *r->p++;
    if (c < 0x80 || c >= 0xe0) {
        mp_set_int(t, (int8_t)c);
        return 0;
    }
    if (c < 0x90)
        return mp_count(r, t, K_MAP, c & 15);
    if (c < 0xa0)
        return mp_count(r, t, K_ARRAY, c & 15);
    if (c < 0xc0)
        return mp_body(r, t, K_STR, c & 31);
    if (c == 0xd9 && r->p < r->end)
        return mp_body(r, t, K_STR, *r->p++);
    return mp_long_token(r, c, t);
}

static inline const struct field *
field_by_id(const struct type *t, uint64_t id)
{
    /* most schemas number their fields from 1 in order */
    if (id - 1 < t->n_fields && t->fields[id - 1].id == id)
        return &t->fields[id - 1];
    size_t lo = 0, hi = t->n_fields;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const struct field *f = &t->fields[t->by_id[mid]];
        if (f->id == id)
            return f;
        if (f->id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* The next field id; unknown ones give NULL. */
static inline int
mp_read_id(struct reader *r, const struct type *t, const struct field **ret)
{
    struct token key;
    if (r->p < r->end && *r->p < 0x80) {
        *ret = field_by_id(t, *r->p++);
        return 0;
    }
    decoder_at(&r->d, STEP_NONE, NULL, 0);
    int rc = mp_next(r, &key);
    if (rc)
        return rc;
    if (key.kind != K_UINT && key.kind != K_INT)
        return mp_expected(r, &key, "a field id");
    *ret = key.kind == K_UINT ? field_by_id(t, key.u) : NULL;
    return 0;
}

#endif
