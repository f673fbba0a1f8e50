/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors. Leaf functions return 0 or a negative code: -errno, or one of the codes below. Where an
 * operator needs words, the last parameter is a `struct err *e` owned by the caller: fixed size, no
 * allocation, set once where the failure is seen and prefixed on the way up.
 *
 * Text: lower case, no final dot, names quoted; says the attempt and its object, the cause of the
 * failure, and the cure.
 */
#ifndef PADDOCK_COMMON_ERR_H
#define PADDOCK_COMMON_ERR_H

#include <stdarg.h>

#include "common/limits.h"

/* Codes beyond errno: name, text, HTTP status that answers it. */
#define ERR_CODES(X)                                          \
    X(ERR_INVALID, 10001, "invalid input", 400)               \
    X(ERR_LIMIT, 10002, "limit exceeded", 413)                \
    X(ERR_NOT_FOUND, 10003, "not found", 404)                 \
    X(ERR_FORBIDDEN, 10004, "permission denied", 403)         \
    X(ERR_CONFLICT, 10005, "conflict", 409)                   \
    X(ERR_METHOD, 10006, "invalid method", 405)               \
    X(ERR_UNSUPPORTED, 10007, "not supported", 501)           \
    X(ERR_BUSY, 10008, "too many requests", 429)              \
    X(ERR_UNAVAILABLE, 10009, "unavailable", 503)             \
    X(ERR_NO_LEADER, 10010, "no cluster leader", 500)         \
    X(ERR_NOT_LEADER, 10011, "not the leader", 500)           \
    X(ERR_TIMEOUT, 10012, "timed out", 504)                   \
    X(ERR_CANCELED, 10013, "canceled", 499)                   \
    X(ERR_CLOSED, 10014, "connection closed", 502)            \
    X(ERR_CORRUPT, 10015, "corrupt data", 500)                \
    X(ERR_POLICY, 10016, "refused by policy", 403)            \
    X(ERR_INTERNAL, 10017, "internal error", 500)             \
    X(ERR_NO_REGION, 10018, "no path to region", 500)

enum err_code {
#define ERR_ENUM(name, code, text, http) name = code,
    ERR_CODES(ERR_ENUM)
#undef ERR_ENUM
};

struct err {
    int code; /* 0: no error; else negative */
    char text[ERR_TEXT_MAX];
};

#define ERR_INIT {0, ""}

/* Sets `e` (NULL: only returns) and returns `code`, which must be negative. The first error set
 * wins: a later err_set on a set error is ignored, so cleanup cannot hide the cause. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Does what err_set does with code -errnum, and ": <strerror>" appended. `errnum` is positive. */
int err_errno(struct err *e, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* "<prefix>: <text>"; returns e->code. Truncates at the end, never the prefix. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void err_clear(struct err *e);

/* Text of a code (negative or positive), static or thread-local storage. */
const char *err_name(int code);
/* HTTP status that answers a code; 500 where nothing fits better. */
int err_http_status(int code);

#endif
