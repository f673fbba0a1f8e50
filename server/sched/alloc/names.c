/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation names (see names.h).
 */
#include "server/sched/alloc/names.h"

#include <string.h>

#include "common/mem.h"

int64_t
name_index(const char *name)
{
    const char *s = name ? strrchr(name, '[') : NULL;
    int64_t v = 0;

    if (s == NULL || s[1] == ']')
        return -1;
    for (s++; *s >= '0' && *s <= '9'; s++) {
        v = v * 10 + (*s - '0');
        if (v >= NAME_INDEX_MAX)
            return -1;
    }
    return s[0] == ']' && s[1] == '\0' ? v : -1;
}

const char *
name_make(const void *ctx, const char *job, const char *group, int64_t index)
{
    return mem_printf(ctx, "%s.%s[%lld]", job, group, (long long)index);
}

static void
names_grow(struct names *x, size_t n)
{
    if (n <= x->n)
        return;
    n = (n + 63) / 64 * 64;
    if (n < x->n * 2)
        n = x->n * 2;
    mem_resize(x, x->bits, uint64_t, n / 64);
    memset(x->bits + x->n / 64, 0, (n - x->n) / 8);
    x->n = n;
}

struct names *
names_new(const void *ctx, int64_t count)
{
    struct names *x = mem_new(ctx, struct names);

    names_grow(x, count > 0 ? (size_t)count : 64);
    return x;
}

void
names_set(struct names *x, int64_t index)
{
    if (index < 0)
        return;
    names_grow(x, (size_t)index + 1);
    x->bits[index / 64] |= UINT64_C(1) << (index % 64);
}

void
names_unset(struct names *x, int64_t index)
{
    if (index >= 0 && (size_t)index < x->n)
        x->bits[index / 64] &= ~(UINT64_C(1) << (index % 64));
}

bool
names_has(const struct names *x, int64_t index)
{
    return index >= 0 && (size_t)index < x->n && (x->bits[index / 64] >> (index % 64) & 1) != 0;
}

int64_t
names_next(struct names *x)
{
    for (size_t w = 0; w < x->n / 64; w++) {
        if (x->bits[w] == UINT64_MAX)
            continue;
        int64_t i = (int64_t)w * 64 + __builtin_ctzll(~x->bits[w]);
        names_set(x, i);
        return i;
    }
    int64_t i = (int64_t)x->n;
    names_set(x, i);
    return i;
}
