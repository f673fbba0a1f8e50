/* SPDX-License-Identifier: Apache-2.0
 *
 * One-shot gzip over zlib.
 */
#include "net/http/gzip_int.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "common/err.h"

enum { GZIP_WINDOW = 15 + 16, GZIP_LEVEL = 1, GZIP_MEM = 8 };

void
http_gzip(struct buf *out, const void *p, size_t n)
{
    z_stream z;

    memset(&z, 0, sizeof(z));
    if (n > UINT32_MAX || deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEM,
                                       Z_DEFAULT_STRATEGY) != Z_OK) {
        out->error = -ENOMEM;
        return;
    }
    size_t room = out->max - out->len;
    uint8_t *to = buf_reserve(out, room);
    if (to) {
        z.next_in = (Bytef *)(uintptr_t)p;
        z.avail_in = (uInt)n;
        z.next_out = to;
        z.avail_out = (uInt)room;
        if (deflate(&z, Z_FINISH) == Z_STREAM_END)
            out->len += room - z.avail_out;
        else
            out->error = -ERR_LIMIT;
    }
    deflateEnd(&z);
}

int
http_gunzip(struct buf *out, const void *p, size_t n)
{
    z_stream z;
    int r = Z_OK;

    memset(&z, 0, sizeof(z));
    if (n > UINT32_MAX || inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return -ENOMEM;
    z.next_in = (Bytef *)(uintptr_t)p;
    z.avail_in = (uInt)n;
    while (r == Z_OK) {
        uint8_t *to = buf_reserve(out, 16384);
        if (!to)
            break;
        z.next_out = to;
        z.avail_out = 16384;
        r = inflate(&z, Z_NO_FLUSH);
        if (r == Z_OK || r == Z_STREAM_END)
            out->len += 16384 - z.avail_out;
    }
    inflateEnd(&z);
    if (buf_error(out))
        return buf_error(out);
    return r == Z_STREAM_END ? 0 : -ERR_CORRUPT;
}
