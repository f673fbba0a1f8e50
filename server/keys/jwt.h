/* SPDX-License-Identifier: Apache-2.0
 *
 * Identities of tasks: JSON Web Tokens (RFC 7519) that a root key signs, RS256. Functions are for
 * any thread; signing takes a worker most of a millisecond.
 */
#ifndef PADDOCK_SERVER_KEYS_JWT_H
#define PADDOCK_SERVER_KEYS_JWT_H

#include "server/keys/keys.h"

/* The audience of tokens that are good at our own API. */
#define JWT_AUDIENCE "nomadproject.io"

enum { JWT_MAX = 8192 /* characters of one */ };

/* The claims of a token; empty ones are left out. Times in seconds since the epoch. */
struct jwt_claims {
    struct str_list audience;
    int64_t expires; /* 0: it does not end */
    int64_t issued;
    const char *id, *issuer;
    const char *region, *namespace, *job, *group, *task, *alloc; /* who it is of */
    const char *identity;                                        /* its name */
    const char *subject;               /* in place of them, of what is no task's; NULL */
    const char *node_name, *node_pool; /* of the introduction of a node, or of a node */
    const char *node, *node_class, *node_datacenter;
    const struct str_map *extra;                                 /* NULL: none */
};

/* Returns the token, owned by ctx. Whoever has signed on a worker calls jwt_signed(). */
char *jwt_sign(const void *ctx, const struct key *k, const struct jwt_claims *c);

/* Lets go of what the thread holds for signing. */
void jwt_signed(void);

/* Reads a token of ours, signed by a key of the state, begun and not over. Of its claims those are
 * filled in that say who it is; owned by ctx. -ERR_FORBIDDEN. */
int jwt_open(const void *ctx, struct state_txn *t, const char *token, int64_t now_s,
             struct jwt_claims *ret);

#endif
