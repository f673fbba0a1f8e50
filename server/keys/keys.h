/* SPDX-License-Identifier: Apache-2.0
 *
 * The key ring: root keys of the state, in clear. A root key is an AES key, which seals variables,
 * and an RSA key, which signs identities. In the state both are sealed by the wrapping key of the
 * servers, which is in neither log nor snapshot: a file of 32 bytes in base64, 0600, that all
 * servers of a region have (doc/security.md). Keys in clear are in locked memory, wiped when the
 * last who uses them has gone. Functions are for any thread.
 */
#ifndef PADDOCK_SERVER_KEYS_KEYS_H
#define PADDOCK_SERVER_KEYS_KEYS_H

#include <stdatomic.h>

#include <openssl/types.h>

#include "api/api.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/seal.h"
#include "common/uuid.h"

struct keys;
struct state_txn;

enum { KEYS_WRAPPING_NAME = 16 + 1 };

/* The place of the wrapping key. */
struct keys_place {
    const char *path;
    bool given; /* the file is the operator's, must be there, and is never written */
    const struct agent_keyring *transit; /* seals what is in the file (borrowed); NULL: nothing */
    const char *plain; /* an older file with the key in clear, which goes when the key is sealed */
};

/* Reads the wrapping key, if it is there and nothing seals it. -ERR_INVALID, -errno: it cannot be
 * used. */
int keys_open(const void *ctx, const struct keys_place *at, struct keys **ret, struct err *e);
/* Opens the wrapping key that is sealed; waits for the network. 0: it is here, or there is none as
 * yet. -ERR_UNAVAILABLE, -errno. */
int keys_unseal(struct keys *k, struct err *e);

/* A root key in clear: immutable, counted. */
struct key {
    atomic_size_t refs;
    char id[UUID_TEXT];
    uint8_t *aes; /* SEAL_KEY bytes */
    EVP_PKEY *rsa;
};

/* Adds a reference to the key of that id. NULL with -ERR_NOT_FOUND: there is none;
 * -ERR_UNAVAILABLE: this server has not the wrapping key; -ERR_CORRUPT. */
struct key *keys_get(struct keys *k, struct state_txn *t, const char *id, struct err *e);
/* The same of the one that seals and signs. -ERR_UNAVAILABLE: there is none yet. */
struct key *keys_active(struct keys *k, struct state_txn *t, struct err *e);
void key_unref(struct key *k); /* NULL is fine */

/* Makes a root key that is active; takes a worker a while (RSA). It is wrapped as those of the
 * state are; of the first one the wrapping key is made as well. -ERR_UNAVAILABLE. */
struct root_key *keys_make(const void *ctx, struct keys *k, struct state_txn *t, const char *id,
                           struct err *e);

/* The wrapping key's name, and itself (to be wiped). False: it is not here. */
bool keys_wrapping(struct keys *k, char name[KEYS_WRAPPING_NAME], uint8_t key[SEAL_KEY]);
/* Takes and stores the wrapping key of another server, in place of one by which nothing is wrapped.
 * Waits for the disk, and the network. -errno; -ERR_UNAVAILABLE; -ERR_POLICY: the operator gave
 * one. */
int keys_take_wrapping(struct keys *k, const uint8_t key[SEAL_KEY], struct err *e);

/* --- variables --- */
/* Seals the items; v->namespace and v->path are set, v->key_id and v->sealed are made, owned by
 * ctx. */
void keys_seal_items(const void *ctx, const struct key *k, const struct str_map *items,
                     struct sealed_variable *v);
/* Opens them: *ret is owned by ctx. Whoever has used it calls keys_wipe_items(). */
int keys_open_items(const void *ctx, const struct key *k, const struct sealed_variable *v,
                    struct variable_items **ret, struct err *e);
/* Seals with another key what was opened with the first. */
int keys_reseal(const void *ctx, const struct key *from, const struct key *to,
                struct sealed_variable *v, struct err *e);
/* Wipes values that are memory of nobody else. */
void keys_wipe_items(struct str_map *items);

#endif
