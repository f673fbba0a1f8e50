/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON Web Tokens (RFC 7519) in their compact form (RFC 7515): the three parts of one. What is read
 * here is a stranger's text until jwt_keys_verify() (key.h) has found its signature good. Pure; any
 * thread.
 */
#ifndef PADDOCK_SERVER_JWT_TOKEN_H
#define PADDOCK_SERVER_JWT_TOKEN_H

#include "api/api.h"
#include "common/err.h"

struct jwt_token {
    const char *alg;   /* as it says */
    const char *kid;   /* "": it names no key */
    struct slice text; /* that is signed; borrowed from the token */
    struct slice sig;
    struct slice payload; /* not verified */
};

/* Decodes base64url (RFC 7515 section 2) strictly; n 0: it is none. Owned by ctx. */
struct slice jwt_base64url(const void *ctx, const char *s, size_t n);

/* Takes a token of at most `max` characters apart; -ERR_FORBIDDEN: it is none, or is not to be
 * understood. Owned by ctx. */
int jwt_read(const void *ctx, const char *token, size_t max, struct jwt_token *ret, struct err *e);

#endif
