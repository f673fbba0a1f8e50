/* SPDX-License-Identifier: Apache-2.0
 *
 * Public keys of others, and whether one of them has signed a token: RS, PS and ES with SHA-256,
 * -384 and -512, and EdDSA of Ed25519 (RFC 7518, 8037). A key does what its kind can, whatever the
 * header of a token says: there is no algorithm by which a public key would be a secret, and none
 * without a signature. Any thread; a set is immutable once it is shared.
 */
#ifndef PADDOCK_SERVER_JWT_KEY_H
#define PADDOCK_SERVER_JWT_KEY_H

#include <stdbool.h>

#include "server/jwt/token.h"

struct jwt_keys;

/* An empty set with one reference. */
struct jwt_keys *jwt_keys_new(void);
struct jwt_keys *jwt_keys_ref(struct jwt_keys *k);
void jwt_keys_unref(struct jwt_keys *k); /* NULL is fine */

/* Adds the public key of a PEM text: one, or that of a certificate. -ERR_INVALID. */
int jwt_keys_add_pem(struct jwt_keys *k, const char *pem, struct err *e);
/* Adds an RSA key by modulus and exponent in base64url. -ERR_INVALID. */
int jwt_keys_add_rsa(struct jwt_keys *k, const char *kid, const char *n, const char *exponent,
                     struct err *e);
/* Adds the keys of a JSON Web Key Set (RFC 7517), but those that are of no kind that is known, or
 * for another use. -ERR_INVALID: it is none, or none of it is left. */
int jwt_keys_add_set(struct jwt_keys *k, struct slice json, struct err *e);

/* Says whether a key has the id, or none at all. */
bool jwt_keys_has(const struct jwt_keys *k, const char *kid);

/* Says whether a key of the set has signed the token by one of the algorithms (NULL, or none: by
 * any). -ERR_FORBIDDEN. */
int jwt_keys_verify(const struct jwt_keys *k, const struct jwt_token *t,
                    const struct str_list *algorithms, struct err *e);

#endif
