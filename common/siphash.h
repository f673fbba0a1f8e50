/* SPDX-License-Identifier: Apache-2.0
 *
 * SipHash-2-4 of words of 64 bits (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
 * 2012): names for contents that somebody else chose, who does not know the key. Pure.
 */
#ifndef PADDOCK_COMMON_SIPHASH_H
#define PADDOCK_COMMON_SIPHASH_H

#include <stdint.h>

struct siphash {
    uint64_t v[4];
    uint64_t words;
};

static inline void
siphash_round(uint64_t v[4])
{
#define SIP_HALF(a, b, c, d, s, t)                                   \
    do {                                                             \
        v[a] += v[b];                                                \
        v[c] += v[d];                                                \
        v[b] = (v[b] << (s) | v[b] >> (64 - (s))) ^ v[a];            \
        v[d] = (v[d] << (t) | v[d] >> (64 - (t))) ^ v[c];            \
        v[a] = v[a] << 32 | v[a] >> 32;                              \
    } while (0)
    SIP_HALF(0, 1, 2, 3, 13, 16);
    SIP_HALF(2, 1, 0, 3, 17, 21);
#undef SIP_HALF
}

static inline void
siphash_init(struct siphash *h, const uint64_t key[2])
{
    *h = (struct siphash){.v = {key[0] ^ UINT64_C(0x736f6d6570736575),
                                key[1] ^ UINT64_C(0x646f72616e646f6d),
                                key[0] ^ UINT64_C(0x6c7967656e657261),
                                key[1] ^ UINT64_C(0x7465646279746573)}};
}

static inline void
siphash_word(struct siphash *h, uint64_t word)
{
    h->v[3] ^= word;
    siphash_round(h->v);
    siphash_round(h->v);
    h->v[0] ^= word;
}

static inline void
siphash_add(struct siphash *h, uint64_t word)
{
    siphash_word(h, word);
    h->words++;
}

static inline uint64_t
siphash_end(struct siphash *h)
{
    siphash_word(h, h->words * 8 << 56); /* the length in bytes, its low eight bits on top */
    h->v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        siphash_round(h->v);
    return h->v[0] ^ h->v[1] ^ h->v[2] ^ h->v[3];
}

#endif
