/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions of job files, constraints and filters: what RE2 (Go, so Nomad) and PCRE2 have
 * in common. A library of its own, for the warden and the shim do not link it. The caller sets the
 * limits of a match. Pure.
 */
#ifndef PADDOCK_COMMON_REGEX_H
#define PADDOCK_COMMON_REGEX_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stddef.h>

#include "common/err.h"

/* NULL: over REGEX_PATTERN_MAX, malformed, or a construct that RE2 does not have, which may need
 * exponential time: -ERR_INVALID. Freed with pcre2_code_free(). */
pcre2_code *regex_compile(const char *pattern, size_t n, struct err *e);

#endif
