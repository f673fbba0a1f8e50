/* SPDX-License-Identifier: Apache-2.0
 *
 * The public keys that others show at an address: asked for by HTTP when somebody needs them, kept
 * for a while, and asked for anew for a key that is not among them. One request per address at a
 * time, whoever waits. Addresses of links and of the metadata services of clouds are not dialled,
 * whatever name or redirection leads there; nor does a redirection lead from https to http. Loop
 * thread.
 */
#ifndef PADDOCK_SERVER_JWT_JWKS_H
#define PADDOCK_SERVER_JWT_JWKS_H

#include <stdbool.h>

#include "common/err.h"

struct env;
struct jwks;
struct jwt_keys;
struct loop;

/* An address. */
struct jwks_source {
    const char *url;
    bool issuer;    /* whose discovery document names the address of the keys */
    const char *ca; /* PEM of who signs the certificate there; NULL: those of the machine */
};

/* Both are borrowed. */
struct jwks *jwks_new(struct loop *l, const struct env *env);
/* Answers those who wait with -ERR_CANCELED before it returns. NULL is fine. */
void jwks_close(struct jwks *j);

/* Checks a text of certificates in PEM, called `name`; empty is fine. -ERR_INVALID. */
int jwks_check_ca(const char *name, const char *pem, struct err *e);

/* The keys (borrowed during the call), or why there are none. */
typedef void jwks_done(void *arg, struct jwt_keys *keys, const struct err *e);
/* Comes once, never from inside. `kid` is that of the key that is needed; "": any. */
void jwks_get(struct jwks *j, const struct jwks_source *src, const char *kid, jwks_done *done,
              void *arg);

#endif
