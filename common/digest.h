/* SPDX-License-Identifier: Apache-2.0
 *
 * "sha256:<64 hexadecimal digits>": how a digest of a file is written in jobs and messages. Pure.
 */
#ifndef PADDOCK_COMMON_DIGEST_H
#define PADDOCK_COMMON_DIGEST_H

#include <stdint.h>

enum { DIGEST_BYTES = 32, DIGEST_TEXT = sizeof("sha256:") + 2 * DIGEST_BYTES };

/* Digits of either case. -ERR_INVALID. */
int digest_parse(const char *text, uint8_t ret[DIGEST_BYTES]);
/* Returns `to`. */
const char *digest_format(const uint8_t digest[DIGEST_BYTES], char to[DIGEST_TEXT]);

#endif
