/* SPDX-License-Identifier: Apache-2.0
 *
 * System calls for code that may run in the shim (free-standing: no libc, no errno), or before an
 * execve in its memory: the result, or -errno. The same code works in normal programs, so that
 * tests of them are tests of the shim's.
 */
#ifndef PADDOCK_ISOLATION_CONFINE_RAW_H
#define PADDOCK_ISOLATION_CONFINE_RAW_H

#include <linux/errno.h>
#include <linux/sched.h>
#include <sys/syscall.h>

#define RAW_INLINE static inline __attribute__((always_inline))

struct raw_args {
    long a, b, c, d, e, f;
};

#if defined(__x86_64__)
RAW_INLINE long
raw_call(long nr, struct raw_args v)
{
    long ret;
    register long r10 __asm__("r10") = v.d;
    register long r8 __asm__("r8") = v.e;
    register long r9 __asm__("r9") = v.f;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(v.a), "S"(v.b), "d"(v.c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}
#elif defined(__aarch64__)
RAW_INLINE long
raw_call(long nr, struct raw_args v)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = v.a;
    register long x1 __asm__("x1") = v.b;
    register long x2 __asm__("x2") = v.c;
    register long x3 __asm__("x3") = v.d;
    register long x4 __asm__("x4") = v.e;
    register long x5 __asm__("x5") = v.f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "the shim knows x86-64 and aarch64"
#endif

/* clone3 with a stack (args->stack): the child goes on in entry() and never returns. */
RAW_INLINE long
raw_clone(struct clone_args *args, unsigned long size, void (*entry)(void))
{
    long ret;
#if defined(__x86_64__)
    __asm__ volatile("syscall\n"
                     "    test %%rax, %%rax\n"
                     "    jnz 1f\n"
                     "    xor %%ebp, %%ebp\n"
                     "    call *%[entry]\n"
                     "    hlt\n"
                     "1:"
                     : "=a"(ret)
                     : "a"(SYS_clone3), "D"(args), "S"(size), [entry] "r"(entry)
                     : "rcx", "r11", "memory", "cc");
#else
    register long x8 __asm__("x8") = SYS_clone3;
    register long x0 __asm__("x0") = (long)args;
    register long x1 __asm__("x1") = (long)size;
    __asm__ volatile("svc 0\n"
                     "    cbnz x0, 1f\n"
                     "    mov x29, #0\n"
                     "    blr %[entry]\n"
                     "    brk #0\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), [entry] "r"(entry)
                     : "memory", "cc");
    ret = x0;
#endif
    return ret;
}

/* Arguments are converted to long: pointers, ints (sign-extended, as AT_FDCWD wants) and flags. */
#define RAW_ARG(x) ((long)(x))
#define RAW_6(nr, a, b, c, d, e, f)                                                                \
    raw_call(nr, (struct raw_args){RAW_ARG(a), RAW_ARG(b), RAW_ARG(c), RAW_ARG(d), RAW_ARG(e),     \
                                   RAW_ARG(f)})
#define RAW_5(nr, a, b, c, d, e) RAW_6(nr, a, b, c, d, e, 0)
#define RAW_4(nr, a, b, c, d) RAW_6(nr, a, b, c, d, 0, 0)
#define RAW_3(nr, a, b, c) RAW_6(nr, a, b, c, 0, 0, 0)
#define RAW_2(nr, a, b) RAW_6(nr, a, b, 0, 0, 0, 0)
#define RAW_1(nr, a) RAW_6(nr, a, 0, 0, 0, 0, 0)
#define RAW_0(nr) RAW_6(nr, 0, 0, 0, 0, 0, 0)
#define RAW_PICK(_0, _1, _2, _3, _4, _5, _6, name, ...) name
/* RAW(SYS_openat2, dirfd, path, &how, sizeof(how)) */
#define RAW(...)                                                                                   \
    RAW_PICK(__VA_ARGS__, RAW_6, RAW_5, RAW_4, RAW_3, RAW_2, RAW_1, RAW_0, _)(__VA_ARGS__)

static inline void
raw_close(long fd)
{
    if (fd >= 0)
        (void)RAW(SYS_close, fd);
}

#endif
