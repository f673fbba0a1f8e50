/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills any described object at random from a seed: the same seed, the same object. For round-trip
 * tests and benchmarks of every type there is.
 */
#ifndef PADDOCK_TESTS_CODEC_FILLER_H
#define PADDOCK_TESTS_CODEC_FILLER_H

#include "codec/codec.h"

struct filler {
    uint64_t state;
    unsigned depth_max; /* of nested structs */
    unsigned list_max;
    unsigned empty_percent; /* chance that a field stays empty */
};

/* Two bytes that name a type whatever its place among all, and back; any others are a type too. */
void filler_type_key(const struct type *t, uint8_t key[2]);
const struct type *filler_type(const uint8_t key[2]);

uint64_t filler_u64(struct filler *f);
void *filler_object(const void *ctx, struct filler *f, const struct type *t);

#endif
