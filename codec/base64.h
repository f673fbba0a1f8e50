/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64: the standard alphabet with padding (RFC 4648 section 4), and that of URLs without
 * (section 5).
 */
#ifndef PADDOCK_CODEC_BASE64_H
#define PADDOCK_CODEC_BASE64_H

#include "common/buf.h"

void base64_encode(struct buf *out, const void *p, size_t n);
/* Upper bound of what `n` characters decode to. */
#define BASE64_DECODED(n) ((n) / 4 * 3 + 3)
/* Strict: the whole input or -EINVAL. `out` has BASE64_DECODED(n) bytes. */
int base64_decode(const char *s, size_t n, uint8_t *out, size_t *ret_len);
void base64url_encode(struct buf *out, const void *p, size_t n);

#endif
