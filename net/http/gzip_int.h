/* SPDX-License-Identifier: Apache-2.0
 *
 * One-shot gzip (RFC 1952). Any thread. Private to net/.
 */
#ifndef PADDOCK_NET_HTTP_GZIP_INT_H
#define PADDOCK_NET_HTTP_GZIP_INT_H

#include "common/buf.h"

/* Appends the compressed bytes; the buffer's error is set when they do not fit. */
void http_gzip(struct buf *out, const void *p, size_t n);
/* Appends at most out->max bytes of what `p` unpacks to; 0, -ERR_LIMIT or -ERR_CORRUPT. */
int http_gunzip(struct buf *out, const void *p, size_t n);

#endif
