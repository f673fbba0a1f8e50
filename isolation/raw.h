/* SPDX-License-Identifier: Apache-2.0
 *
 * System calls for code that may run in the shim, or between vfork and execve: no libc wrappers with
 * locks, cancellation points or broadcasts to threads; results as -errno. Free-standing.
 */
#ifndef PADDOCK_ISOLATION_RAW_H
#define PADDOCK_ISOLATION_RAW_H

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline long
raw_ret(long r)
{
    return r == -1 ? -(long)errno : r;
}

#define RAW(...) raw_ret(syscall(__VA_ARGS__))

static inline void
raw_close(long fd)
{
    if (fd >= 0)
        (void)RAW(SYS_close, fd);
}

#endif
