/* SPDX-License-Identifier: Apache-2.0
 *
 * What a free-standing program needs: the entry point, and the memory and string functions that the
 * compiler and the shared sources call.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "isolation/confine/raw.h"
#include "isolation/shim/parts.h"

void *
memcpy(void *restrict dst, const void *restrict src, size_t n)
{
    char *d = dst;
    const char *s = src;
    while (n-- > 0)
        *d++ = *s++;
    return dst;
}

void *
memset(void *dst, int c, size_t n)
{
    char *d = dst;
    while (n-- > 0)
        *d++ = (char)c;
    return dst;
}

void *
memmove(void *dst, const void *src, size_t n)
{
    char *d = dst;
    const char *s = src;
    if ((uintptr_t)d < (uintptr_t)s) {
        while (n-- > 0)
            *d++ = *s++;
    } else {
        while (n-- > 0)
            d[n] = s[n];
    }
    return dst;
}

int
memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;
    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i])
            return x[i] - y[i];
    return 0;
}

size_t
strlen(const char *s)
{
    size_t n = 0;
    while (s[n] != '\0')
        n++;
    return n;
}

size_t
strnlen(const char *s, size_t max)
{
    size_t n = 0;
    while (n < max && s[n] != '\0')
        n++;
    return n;
}

char *
strchr(const char *s, int c)
{
    for (;; s++) {
        if (*s == (char)c)
            return (char *)(uintptr_t)s;
        if (*s == '\0')
            return NULL;
    }
}

/* `start`: argument count, then the arguments, as the kernel lays them out. */
_Noreturn void shim_entry(long *start);
_Noreturn void
shim_entry(long *start)
{
    char none[1] = "";
    char *title = start[0] > 1 ? (char *)start[2] : none;
    int code = shim_pad(title, strlen(title));
    for (;;)
        (void)RAW(SYS_exit_group, code);
}

/* The kernel enters with an aligned stack and no return address. */
#if defined(__x86_64__)
__asm__(".globl _start\n"
        "_start:\n"
        "    xor %ebp, %ebp\n"
        "    mov %rsp, %rdi\n"
        "    and $-16, %rsp\n"
        "    call shim_entry\n"
        "    hlt\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n"
        "_start:\n"
        "    mov x29, #0\n"
        "    mov x30, #0\n"
        "    mov x0, sp\n"
        "    b shim_entry\n");
#endif
