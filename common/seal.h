/* SPDX-License-Identifier: Apache-2.0
 *
 * Sealing: authenticated encryption under one 256-bit key (XAES-256-GCM of C2SP: AES-256-GCM under
 * a key derived for each message, so that nonces may be random, however many messages there are).
 * A sealed text is nonce, ciphertext and tag, SEAL_EXTRA bytes longer than the text. A library of
 * its own, since not all programs link libcrypto.
 *
 * Keys and texts that are secret live in memory of seal_alloc(): locked, left out of core dumps,
 * wiped when it is freed.
 */
#ifndef PADDOCK_COMMON_SEAL_H
#define PADDOCK_COMMON_SEAL_H

#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

enum { SEAL_KEY = 32, SEAL_NONCE = 24, SEAL_TAG = 16, SEAL_EXTRA = SEAL_NONCE + SEAL_TAG };

/* Writes text.n + SEAL_EXTRA bytes. `about` is not in the sealed text, and whoever opens it must
 * name the same. */
void seal(const uint8_t key[SEAL_KEY], struct slice about, struct slice text, uint8_t *ret);

/* Writes sealed.n - SEAL_EXTRA bytes; what a failure wrote is wiped. -ERR_CORRUPT: too short, of
 * another key, about something else, or changed. */
int seal_open(const uint8_t key[SEAL_KEY], struct slice about, struct slice sealed, uint8_t *ret);

/* Secret memory, zeroed; never NULL. Where the kernel locks no more it is as other memory, but for
 * the wiping. For keys: of bounded number and size. */
void *seal_alloc(size_t n);
void seal_free(void *p, size_t n); /* NULL is fine */
void seal_wipe(void *p, size_t n);

#endif
