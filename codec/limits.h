/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of codec/, named. `make check-docs` holds paddock-limits(7) against this file: the
 * comment of each is its text there.
 */
#ifndef PADDOCK_CODEC_LIMITS_H
#define PADDOCK_CODEC_LIMITS_H

enum {
    /* --- JSON and msgpack, of every origin --- */
    CODEC_DEPTH_MAX = 64,        /* nested objects and lists */
    CODEC_STRING_MAX = 16 << 20, /* bytes of a string */
    CODEC_COUNT_MAX = 1 << 20,   /* elements of a list or map */
};

#endif
