/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two tables of attempts (attempt.c, attempt_more.c) have in common. Static program, no
 * rooms of ours.
 */
#ifndef PADDOCK_TESTS_ATTEMPTS_ATTEMPT_H
#define PADDOCK_TESTS_ATTEMPTS_ATTEMPT_H

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

struct attempt {
    const char *name;
    long (*fn)(void); /* >= 0, or -errno */
};

extern const struct attempt more_attempts[];
extern const size_t n_more_attempts;

static inline long
ret(long r)
{
    return r == -1 ? -errno : r;
}

#define CALL(...) ret(syscall(__VA_ARGS__))

/* Opens and closes it. */
long open_of(const char *path, int flags);

#endif
