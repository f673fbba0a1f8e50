/* SPDX-License-Identifier: Apache-2.0
 *
 * The key ring of gossip, and its file: a list of keys in base64 as JSON, the first of which seals,
 * with mode 0600. Where there is a file it counts, and not the key of the configuration.
 */
#ifndef PADDOCK_SERVER_GOSSIP_KEYS_H
#define PADDOCK_SERVER_GOSSIP_KEYS_H

#include "server/gossip/packet.h"

enum keys_op { KEYS_LIST = 1, KEYS_INSTALL, KEYS_USE, KEYS_REMOVE, KEYS_OPS = KEYS_REMOVE };

/* "list", "install", "use", "remove"; 0: none of them. */
enum keys_op keys_op_of(const char *name);

/* Base64 of 16, 24 or 32 bytes. */
int keys_parse(const char *text, struct gossip_key *ret, struct err *e);
const char *keys_text(const void *ctx, const struct gossip_key *k);
/* -ERR_CONFLICT, -ERR_LIMIT, -ERR_NOT_FOUND; the ring is unchanged then. A list changes nothing,
 * nor does what is done already. */
int keys_change(struct gossip_keys *ring, enum keys_op op, const struct gossip_key *k,
                struct err *e);

/* `configured` NULL: no key. Neither file nor key: an empty ring. A file is made where there is a
 * key. */
int keys_load(const char *path, const char *configured, struct gossip_keys *ret, struct err *e);
int keys_save(const char *path, const struct gossip_keys *ring, struct err *e);

#endif
