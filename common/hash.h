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

/* FNV-1a (Fowler, Noll, Vo), step by step: it starts with HASH_START. The values are kept and
 * compared between servers (computed classes), so they stay as they are. */
#define HASH_START UINT64_C(0xcbf29ce484222325)
static inline uint64_t
hash_byte(uint64_t h, uint64_t byte)
{
    return (h ^ byte) * UINT64_C(0x100000001b3);
}

static inline uint64_t
hash_text(uint64_t h, const char *s)
{
    for (; *s != '\0'; s++)
        h = hash_byte(h, (uint8_t)*s);
    return h;
}

/* Adds an end as well, so that no two sequences of texts run together. */
static inline uint64_t
hash_item(uint64_t h, const char *s)
{
    return hash_byte(hash_text(h, s), 0xff);
}

/* Rendezvous hashing (Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates",
 * 1998): of all places a key takes those with the lowest ranks. The mix is that of splitmix64. */
static inline uint64_t
hash_rank(const char *key, const char *address, int64_t port)
{
    uint64_t h = hash_byte(hash_item(hash_item(HASH_START, key), address), (uint64_t)port);
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

static inline uint32_t
hash_bytes(const void *p, size_t n)
{
    const uint8_t *b = (const uint8_t *)p;
    uint64_t h = HASH_START;

    for (size_t i = 0; i < n; i++)
        h = hash_byte(h, b[i]);
    h ^= h >> 32;
    return (uint32_t)h;
}

#define HASH_FUNCTION(keyptr, keylen, hashv) ((hashv) = hash_bytes((keyptr), (keylen)))
#include <uthash.h>

#endif
