/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of the host, with an environment that is given whole, no input, and no descriptor of
 * ours.
 */
#ifndef PADDOCK_FETCH_PROGRAM_H
#define PADDOCK_FETCH_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct program {
    const char *const *argv; /* NULL-terminated, as `env` */
    const char *const *env;
    int dir;             /* it begins in */
    int64_t deadline_ns; /* clock_mono_ns(): then it is killed */
};

/* Runs it to its end. `out` (may be NULL): what it prints, cut at `size`, without the last newline.
 * -ERR_UNAVAILABLE: it failed, and its last words; -ERR_NOT_FOUND: there is no such program. */
int program_run(const struct program *p, char *out, size_t size, struct err *e);

#endif
