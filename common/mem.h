/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory. Everything that has an owner hangs off a talloc context: one per request, evaluation,
 * connection, command. These wrappers abort when memory is out (small allocations only); a size
 * that comes from outside is charged to a `struct budget` first.
 */
#ifndef PADDOCK_COMMON_MEM_H
#define PADDOCK_COMMON_MEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <talloc.h>

/* All return zeroed memory owned by `ctx` and never NULL. `mem_array` of 0 elements is a valid,
 * non-NULL pointer (codec: empty is not null). */
void *mem_zalloc(const void *ctx, size_t size, const char *type);
void *mem_zalloc_array(const void *ctx, size_t size, size_t n, const char *type);
void *mem_realloc(const void *ctx, void *p, size_t size, size_t n, const char *type);
#define mem_new(ctx, T) ((T *)mem_zalloc((ctx), sizeof(T), #T))
#define mem_array(ctx, T, n) ((T *)mem_zalloc_array((ctx), sizeof(T), (n), #T))
/* New elements are not zeroed. */
#define mem_resize(ctx, p, T, n) ((p) = (T *)mem_realloc((ctx), (p), sizeof(T), (n), #T))
/* NULL stays NULL. */
char *mem_strdup(const void *ctx, const char *s);
char *mem_strndup(const void *ctx, const char *s, size_t n);
void *mem_dup(const void *ctx, const void *p, size_t n);
char *mem_printf(const void *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *mem_vprintf(const void *ctx, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
/* Frees and sets to NULL. */
#define mem_free(p)             \
    do {                        \
        if ((p) != NULL) {      \
            talloc_free((void *)(uintptr_t)(p)); \
            (p) = NULL;         \
        }                       \
    } while (0)

/* Scope-exit cleanup of a talloc context: `auto_mem void *tmp = mem_ctx("decode");` */
void mem_cleanup(void *pp);
#define auto_mem __attribute__((cleanup(mem_cleanup)))
void *mem_ctx(const char *name);

/* The bytes that a decoder may still allocate for one input. */
struct budget {
    size_t left;
};

/* False, and nothing charged, when `n` bytes are more than what is left. */
bool budget_charge(struct budget *b, size_t n);

#define BUDGET(bytes) (&(struct budget){.left = (bytes)})

/* An invariant of our own code: prints and aborts, in every build. */
#define ASSERT(cond) ((cond) ? (void)0 : mem_assert_fail(#cond, __FILE__, __LINE__))
_Noreturn void mem_assert_fail(const char *cond, const char *file, int line);

#define TAKE(p)                 \
    ({                          \
        __typeof__(p) _t = (p); \
        (p) = NULL;             \
        _t;                     \
    })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
