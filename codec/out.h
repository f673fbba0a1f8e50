/* SPDX-License-Identifier: Apache-2.0
 *
 * A cursor over a struct buf for the writers: one bounds check per item instead of one call per
 * byte. Between out_begin and out_end nobody else touches the buffer.
 */
#ifndef PADDOCK_CODEC_OUT_H
#define PADDOCK_CODEC_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/buf.h"

struct out {
    struct buf *b;
    uint8_t *p, *end;
};

static inline void
out_begin(struct out *o, struct buf *b)
{
    o->b = b;
    o->p = o->end = NULL;
    if (!buf_error(b) && b->data) {
        o->p = b->data + b->len;
        o->end = b->data + b->cap;
    }
}

static inline void
out_end(struct out *o)
{
    if (o->p && !buf_error(o->b))
        o->b->len = (size_t)(o->p - o->b->data);
}

/* Room for n more bytes; false: the buffer holds the error, write nothing. */
static inline bool
out_need(struct out *o, size_t n)
{
    if ((size_t)(o->end - o->p) >= n)
        return true;
    out_end(o);
    if (!buf_reserve(o->b, n)) {
        o->p = o->end = NULL;
        return false;
    }
    out_begin(o, o->b);
    return true;
}

/* A short text to where there is room for it: without a call. */
static inline void
copy_short(uint8_t *to, const void *from, size_t n)
{
    const uint8_t *p = from;
    uint64_t a, b;
    uint32_t c, d;

    if (n >= 8) {
        for (size_t i = 0; i + 8 < n; i += 8) {
            memcpy(&a, p + i, 8);
            memcpy(to + i, &a, 8);
        }
        memcpy(&b, p + n - 8, 8);
        memcpy(to + n - 8, &b, 8);
    } else if (n >= 4) {
        memcpy(&c, p, 4);
        memcpy(&d, p + n - 4, 4);
        memcpy(to, &c, 4);
        memcpy(to + n - 4, &d, 4);
    } else {
        for (size_t i = 0; i < n; i++)
            to[i] = p[i];
    }
}

static inline void
out_put(struct out *o, const void *p, size_t n)
{
    if (n && out_need(o, n)) {
        memcpy(o->p, p, n);
        o->p += n;
    }
}

static inline void
out_putc(struct out *o, char c)
{
    if (out_need(o, 1))
        *o->p++ = (uint8_t)c;
}

/* Offset of the next byte. */
static inline size_t
out_at(const struct out *o)
{
    return o->p ? (size_t)(o->p - o->b->data) : o->b->len;
}

#endif
