/* SPDX-License-Identifier: Apache-2.0
 *
 * uthash with a hash function of our own (FNV-1a with a last mix): its default one does not compile
 * cleanly under clang (-Wimplicit-fallthrough). Include this, not <uthash.h>. Iteration is in order
 * of insertion, so no order depends on the function.
 */
#ifndef PADDOCK_COMMON_HASH_H
#define PADDOCK_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t
hash_bytes(const void *p, size_t n)
{
    const uint8_t *b = (const uint8_t *)p;
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * UINT64_C(0x100000001b3);
    h ^= h >> 32;
    return (uint32_t)h;
}

#define HASH_FUNCTION(keyptr, keylen, hashv) ((hashv) = hash_bytes((keyptr), (keylen)))
#include <uthash.h>

#endif
