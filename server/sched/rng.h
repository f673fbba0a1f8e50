/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler's randomness: a generator (xoroshiro128++, public domain algorithm) that the caller
 * seeds with 128 random bits per evaluation, so that a run can be repeated exactly. Not for
 * secrets.
 */
#ifndef PADDOCK_SERVER_SCHED_RNG_H
#define PADDOCK_SERVER_SCHED_RNG_H

#include <stdint.h>
#include <stdio.h>

#include "common/uuid.h"


struct rng {
    uint64_t s[2];
};

static inline uint64_t
rng_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline struct rng
rng_seed(uint64_t a, uint64_t b)
{
    struct rng r = {{rng_mix(a), rng_mix(b ^ UINT64_C(0xd1b54a32d192ed03))}};

    if (r.s[0] == 0 && r.s[1] == 0)
        r.s[0] = 1;
    return r;
}

static inline uint64_t
rng_rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static inline uint64_t
rng_u64(struct rng *r)
{
    uint64_t a = r->s[0], b = r->s[1], out = rng_rotl(a + b, 17) + a;

    b ^= a;
    r->s[0] = rng_rotl(a, 49) ^ b ^ (b << 21);
    r->s[1] = rng_rotl(b, 28);
    return out;
}

/* 0 .. n - 1 without bias that matters (n far below 2^32). */
static inline uint64_t
rng_below(struct rng *r, uint64_t n)
{
    return n == 0 ? 0 : (uint64_t)(((unsigned __int128)rng_u64(r) * n) >> 64);
}

/* A version 4 UUID. Returns `out`. */
static inline const char *
rng_uuid(struct rng *r, char out[UUID_TEXT])
{
    uint64_t a = rng_u64(r), b = rng_u64(r);

    a = (a & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
    b = (b & ~(UINT64_C(3) << 62)) | (UINT64_C(2) << 62);
    snprintf(out, UUID_TEXT, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(a >> 32),
             (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xffff, (unsigned)(b >> 48),
             (unsigned long long)(b & UINT64_C(0xffffffffffff)));
    return out;
}

#endif
