/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of one decoded or cloned object: charged to the budget first, then taken. Strings share
 * blocks, because a talloc chunk costs 96 bytes and a job has hundreds of them.
 */
#include "codec/intern.h"

#include <stdio.h>

enum { CHUNK_COST = 96, BLOCK_MIN = 64, BLOCK_MAX = 8192, POOL_MAX = 32768 };

static bool
alloc_charge(struct arena *a, size_t n)
{
    return !a->budget || budget_charge(a->budget, n);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NO_POOL 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define NO_POOL 1
#endif

void *
arena_root(struct arena *a, const void *ctx, const struct type *t, size_t guess)
{
    guess = guess < POOL_MAX ? guess : POOL_MAX;
    if (!alloc_charge(a, t->size + guess + CHUNK_COST))
        return NULL;
#ifdef NO_POOL /* the sanitizer sees single chunks only */
    a->root = mem_zalloc(ctx, t->size, t->name);
#else
    void *root = _talloc_pooled_object(ctx, t->size, t->name, 0, guess);
    ASSERT(root);
    a->root = memset(root, 0, t->size);
#endif
    return (void *)(uintptr_t)a->root;
}

void *
arena_zalloc(struct arena *a, size_t size, const char *type)
{
    if (!alloc_charge(a, size + CHUNK_COST))
        return NULL;
    return mem_zalloc(a->root, size ? size : 1, type);
}

char *
arena_bytes(struct arena *a, size_t n)
{
    if (n > a->left) {
        if (n > BLOCK_MAX / 4) {
            if (!alloc_charge(a, n + CHUNK_COST))
                return NULL;
            return mem_realloc(a->root, NULL, 1, n, "string");
        }
        size_t size = a->block < BLOCK_MIN ? BLOCK_MIN : a->block;
        while (size < n)
            size *= 2;
        if (!alloc_charge(a, size + CHUNK_COST))
            return NULL;
        a->p = mem_realloc(a->root, NULL, 1, size, "strings");
        a->left = size;
        a->block = size < BLOCK_MAX ? size * 2 : BLOCK_MAX;
    }
    char *p = a->p;
    a->p += n;
    a->left -= n;
    return p;
}

static void *
arena_aligned(struct arena *a, size_t n)
{
    size_t pad = (8 - ((uintptr_t)a->p & 7)) & 7;
    if (n + pad <= a->left) {
        a->p += pad;
        a->left -= pad;
    } else {
        a->left = 0; /* a new block is aligned */
    }
    char *p = arena_bytes(a, n);
    return p ? memset(p, 0, n) : NULL;
}

char *
arena_strndup(struct arena *a, const char *s, size_t n)
{
    char *p = arena_bytes(a, n + 1);
    if (!p)
        return NULL;
    memcpy(p, s, n);
    p[n] = 0;
    return p;
}

bool
arena_grow(struct arena *a, void **v, size_t *cap, size_t n, size_t elem)
{
    if (n < *cap)
        return true;
    size_t want = *cap ? *cap * 2 : 4;
    if (!alloc_charge(a, (want - *cap) * elem + (*cap ? 0 : CHUNK_COST)))
        return false;
    *v = mem_realloc(a->root, *v, elem, want, "list");
    memset((char *)*v + *cap * elem, 0, (want - *cap) * elem);
    *cap = want;
    return true;
}

struct value *
arena_value(struct arena *a, enum value_kind kind)
{
    struct value *v;
    /* containers must be able to own what is added to them later */
    if (kind == VALUE_LIST || kind == VALUE_MAP)
        v = arena_zalloc(a, sizeof(*v), "struct value");
    else
        v = arena_aligned(a, sizeof(*v));
    if (v)
        v->kind = kind;
    return v;
}

void
decoder_path(const struct decoder *d, char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (unsigned i = 1; i <= d->depth && at < size; i++) {
        const struct step *s = &d->path[i];
        int w = 0;
        int len = s->n > 64 ? 64 : (int)s->n;
        if (s->kind == STEP_FIELD)
            w = snprintf(out + at, size - at, "%s%.*s", at ? "." : "", len, s->s);
        else if (s->kind == STEP_INDEX)
            w = snprintf(out + at, size - at, "[%zu]", s->n);
        else if (s->kind == STEP_KEY)
            w = snprintf(out + at, size - at, "[\"%.*s\"]", len, s->s);
        at += w > 0 ? (size_t)w : 0;
    }
    if (!out[0])
        snprintf(out, size, "%s", d->type ? d->type->name : "value");
}
