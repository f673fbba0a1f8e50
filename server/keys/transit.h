/* SPDX-License-Identifier: Apache-2.0
 *
 * The wrapping key, sealed by the transit engine of a server that is compatible with Vault's: what
 * lies on the disk opens only while that server is there and takes the token. Functions wait for
 * the network, TRANSIT_MS at most: they are for workers.
 */
#ifndef PADDOCK_SERVER_KEYS_TRANSIT_H
#define PADDOCK_SERVER_KEYS_TRANSIT_H

#include "api/api.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/seal.h"

/* Writes the sealed text. -ERR_UNAVAILABLE: the server does not answer, or not well. */
int transit_seal(const struct agent_keyring *t, const uint8_t key[SEAL_KEY], struct buf *out,
                 struct err *e);
/* Opens such a text. -ERR_UNAVAILABLE; -ERR_INVALID: it holds no such key. */
int transit_open(const struct agent_keyring *t, const char *text, uint8_t key[SEAL_KEY],
                 struct err *e);

#endif
