/* SPDX-License-Identifier: Apache-2.0 */
#include "common/frame.h"

#include "common/err.h"

void
frame_put(struct buf *b, uint8_t type, const void *p, size_t n)
{
    buf_put_u32(b, (uint32_t)type << 24);
    buf_put_u32(b, (uint32_t)n);
    buf_put(b, p, n);
}

int
frame_feed(struct buf *rest, const void *p, size_t n, frame_fn *fn, void *arg)
{
    buf_put(rest, p, n);
    if (buf_error(rest))
        return -ERR_CORRUPT;
    size_t at = 0;
    while (rest->len - at >= FRAME_HEAD) {
        const uint8_t *f = rest->data + at;
        size_t len = (size_t)big_endian(f + 4, 4);
        if (f[1] || f[2] || f[3] || len > rest->max / 2)
            return -ERR_CORRUPT;
        if (rest->len - at < FRAME_HEAD + len)
            break;
        int r = fn(arg, f[0], f + FRAME_HEAD, len);
        if (r != 0)
            return r;
        at += FRAME_HEAD + len;
    }
    buf_consume(rest, at);
    return 0;
}
