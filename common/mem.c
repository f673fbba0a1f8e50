/* SPDX-License-Identifier: Apache-2.0 */
#include "common/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void
mem_assert_fail(const char *cond, const char *file, int line)
{
    fprintf(stderr, "paddock: bug: %s does not hold at %s:%d\n", cond, file, line);
    abort();
}

static void *
mem_need(void *p)
{
    if (!p) {
        fputs("paddock: out of memory\n", stderr);
        abort();
    }
    return p;
}

void *
mem_zalloc(const void *ctx, size_t size, const char *type)
{
    void *p = mem_need(talloc_named_const(ctx, size, type));
    memset(p, 0, size);
    return p;
}

void *
mem_zalloc_array(const void *ctx, size_t size, size_t n, const char *type)
{
    size_t total;
    ASSERT(!__builtin_mul_overflow(size, n, &total));
    return mem_zalloc(ctx, total, type);
}

void *
mem_realloc(const void *ctx, void *p, size_t size, size_t n, const char *type)
{
    size_t total;
    ASSERT(!__builtin_mul_overflow(size, n, &total));
    /* talloc frees on 0: our arrays stay allocated */
    return mem_need(_talloc_realloc(ctx, p, total ? total : 1, type));
}

char *
mem_strdup(const void *ctx, const char *s)
{
    return s ? mem_need(talloc_strdup(ctx, s)) : NULL;
}

char *
mem_strndup(const void *ctx, const char *s, size_t n)
{
    return s ? mem_need(talloc_strndup(ctx, s, n)) : NULL;
}

void *
mem_dup(const void *ctx, const void *p, size_t n)
{
    return p ? mem_need(talloc_memdup(ctx, p, n)) : NULL;
}

char *
mem_vprintf(const void *ctx, const char *fmt, va_list ap)
{
    return mem_need(talloc_vasprintf(ctx, fmt, ap));
}

char *
mem_printf(const void *ctx, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = mem_vprintf(ctx, fmt, ap);
    va_end(ap);
    return s;
}

void
mem_cleanup(void *pp)
{
    void *p = *(void **)pp;
    if (p)
        talloc_free(p);
}

void *
mem_ctx(const char *name)
{
    return mem_need(talloc_named_const(NULL, 0, name));
}

bool
budget_charge(struct budget *b, size_t n)
{
    if (n > b->left)
        return false;
    b->left -= n;
    return true;
}
