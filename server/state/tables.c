/* SPDX-License-Identifier: Apache-2.0
 *
 * State: the rows of tables.h as data, and the keys that are made by them.
 */
#include "server/state/tables.h"

#include <string.h>
#include <xxhash.h>

#include "api/terms.h"
#include "server/state/state_int.h"

static bool
alloc_lives(const void *obj)
{
    return !alloc_terminal(obj);
}

static bool
job_is_child(const void *obj)
{
    return !str_empty(((const struct job *)obj)->parent_id);
}

static bool
eval_open(const void *obj)
{
    const struct evaluation *ev = obj;

    return str_eq(ev->status, EVAL_PENDING) || str_eq(ev->status, EVAL_BLOCKED);
}

static bool
alloc_deployed(const void *obj)
{
    return !str_empty(((const struct allocation *)obj)->deployment_id);
}

static bool
deployment_active_row(const void *obj)
{
    return deployment_active(obj);
}

static bool
variable_locked(const void *obj)
{
    return ((const struct sealed_variable *)obj)->lock != NULL;
}

#define KEY(...) {__VA_ARGS__}
#define WATCHES(...) {__VA_ARGS__}
#define ABOUT(kind, ...) {kind, {__VA_ARGS__}}
#define STR(type, member) {PART_STR, offsetof(struct type, member), NULL}
#define HASH(type, member) {PART_HASH, offsetof(struct type, member), NULL}
#define OLDEST(type, member) {PART_OLDEST, offsetof(struct type, member), NULL}
#define NEWEST(type, member) {PART_NEWEST, offsetof(struct type, member), NULL}
#define WORD(text) {PART_WORD, 0, text}

const struct table_row table_rows[STATE_TABLES] = {
#define ROW(NAME, id, type, name, key, watches, gone) \
    [STATE_##NAME] = {name, &type_##type, id, key, watches, gone},
    STATE_ROWS(ROW)
#undef ROW
};

const struct index_row index_rows[STATE_INDEXES_N] = {
#define INDEX(NAME, TABLE, name, key, holds) \
    [STATE_##NAME] = {name, STATE_##TABLE, key, holds},
    STATE_INDEXES(INDEX)
#undef INDEX
};

const struct type *
state_type(enum state_table table)
{
    return table_rows[table].type;
}

/* --- keys --- */

uint64_t
be64_get(const void *p)
{
    const uint8_t *b = p;
    uint64_t v = 0;
    for (unsigned i = 0; i < 8; i++)
        v = v << 8 | b[i];
    return v;
}

void
be64_put(void *p, uint64_t v)
{
    uint8_t *b = p;
    for (unsigned i = 0; i < 8; i++)
        b[i] = (uint8_t)(v >> (56 - 8 * i));
}

static void
key_bytes(struct key *k, const void *p, size_t n)
{
    ASSERT(n <= sizeof(k->b) - k->n);
    if (n > 0)
        memcpy(k->b + k->n, p, n);
    k->n += n;
}

void
key_part(struct key *k, const char *s)
{
    size_t n = s != NULL ? strlen(s) : 0;
    if (n <= KEY_PART_MAX) {
        key_bytes(k, s, n);
    } else {
        uint8_t hash[8];
        be64_put(hash, XXH3_64bits(s, n));
        key_bytes(k, s, KEY_PART_MAX - 9);
        key_bytes(k, "\x01", 1);
        key_bytes(k, hash, 8);
    }
    key_bytes(k, "", 1);
}

void
key_u64(struct key *k, uint64_t v)
{
    uint8_t b[8];
    be64_put(b, v);
    key_bytes(k, b, 8);
}

void
key_hash(struct key *k, const char *s)
{
    key_u64(k, s != NULL ? XXH3_64bits(s, strlen(s)) : 0);
}

struct key
key1(const char *a)
{
    struct key k = {.n = 0};
    key_part(&k, a);
    return k;
}

struct key
key2(const char *a, const char *b)
{
    struct key k = {.n = 0};
    key_part(&k, a);
    key_part(&k, b);
    return k;
}

static void
key_add(struct key *k, const struct part *p, const char *s, uint64_t n)
{
    switch (p->kind) {
    case PART_STR:
        key_part(k, s);
        break;
    case PART_HASH:
        key_hash(k, s);
        break;
    case PART_OLDEST:
        key_u64(k, n);
        break;
    case PART_NEWEST:
        key_u64(k, ~n);
        break;
    case PART_WORD:
        key_part(k, p->word);
        break;
    case PART_END:
        break;
    }
}

static bool
is_text(const struct part *p)
{
    return p->kind == PART_STR || p->kind == PART_HASH;
}

void
key_of(struct key *k, const struct part *parts, const void *obj)
{
    k->n = 0;
    for (const struct part *p = parts; p < parts + KEY_PARTS && p->kind != PART_END; p++) {
        const void *at = (const char *)obj + p->at;
        bool text = is_text(p);
        key_add(k, p, text ? *(const char *const *)at : NULL,
                text || p->kind == PART_WORD ? 0 : *(const uint64_t *)at);
    }
}

struct key
key_from(const struct part *parts, const struct state_key *from)
{
    struct key k = {.n = 0};
    const char *const texts[] = {from->a, from->b, from->c, NULL};
    size_t at = 0;

    for (const struct part *p = parts; p < parts + KEY_PARTS && p->kind != PART_END; p++) {
        key_add(&k, p, texts[at], from->n);
        at += is_text(p) && at + 1 < ARRAY_LEN(texts);
    }
    return k;
}

uint64_t
key_watch(enum state_watch_kind kind, const struct key *about)
{
    uint64_t h = XXH3_64bits_withSeed(about->b, about->n, (uint64_t)kind);
    return h != 0 ? h : 1; /* 0 is none */
}

uint64_t
state_watch_key(enum state_watch_kind kind, const char *a, const char *b)
{
    struct key about = b != NULL ? key2(a, b) : key1(a);

    return key_watch(kind, &about);
}
