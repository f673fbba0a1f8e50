/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"

void
buf_init(struct buf *b, size_t max)
{
    *b = (struct buf)BUF_INIT(max);
}

void
buf_done(struct buf *b)
{
    free(b->data);
    buf_init(b, b->max);
}

void
buf_reset(struct buf *b)
{
    b->len = 0;
    b->error = 0;
}

int
buf_error(const struct buf *b)
{
    return b->error;
}

uint8_t *
buf_reserve(struct buf *b, size_t n)
{
    if (b->error)
        return NULL;
    if (n > b->max || b->len > b->max - n) {
        b->error = -ERR_LIMIT;
        return NULL;
    }
    size_t want = b->len + n;
    if (want > b->cap) {
        size_t cap = b->cap ? b->cap : 128;
        while (cap < want)
            cap = cap > b->max / 2 ? b->max : cap * 2;
        uint8_t *p = realloc(b->data, cap + 1); /* one more for buf_str */
        if (!p) {
            b->error = -ENOMEM;
            return NULL;
        }
        b->data = p;
        b->cap = cap;
    } else if (!b->data) {
        b->data = malloc(1);
        if (!b->data) {
            b->error = -ENOMEM;
            return NULL;
        }
    }
    return b->data + b->len;
}

void
buf_put(struct buf *b, const void *p, size_t n)
{
    if (n == 0)
        return;
    uint8_t *to = buf_reserve(b, n);
    if (!to)
        return;
    memcpy(to, p, n);
    b->len += n;
}

void
buf_putc(struct buf *b, char c)
{
    uint8_t *to = buf_reserve(b, 1);
    if (!to)
        return;
    *to = (uint8_t)c;
    b->len++;
}

void
buf_puts(struct buf *b, const char *s)
{
    buf_put(b, s, strlen(s));
}

void
buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    char tmp[256];
    int n = vsnprintf(tmp, sizeof(tmp), fmt, ap);
    if (n < 0) {
        b->error = b->error ? b->error : -EINVAL;
    } else if ((size_t)n < sizeof(tmp)) {
        buf_put(b, tmp, (size_t)n);
    } else {
        uint8_t *to = buf_reserve(b, (size_t)n + 1);
        if (to) {
            (void)vsnprintf((char *)to, (size_t)n + 1, fmt, again);
            b->len += (size_t)n;
        }
    }
    va_end(again);
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

static void
put_be(struct buf *b, uint64_t v, size_t n)
{
    uint8_t *to = buf_reserve(b, n);
    if (!to)
        return;
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
    b->len += n;
}

void
buf_put_u8(struct buf *b, uint8_t v)
{
    put_be(b, v, 1);
}

void
buf_put_u16(struct buf *b, uint16_t v)
{
    put_be(b, v, 2);
}

void
buf_put_u32(struct buf *b, uint32_t v)
{
    put_be(b, v, 4);
}

void
buf_put_u64(struct buf *b, uint64_t v)
{
    put_be(b, v, 8);
}

uint64_t
big_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

const uint8_t *
unpack_take(struct unpack *u, size_t n)
{
    const uint8_t *p = u->p;
    u->bad = u->bad || n > u->n;
    if (u->bad)
        return NULL;
    u->p += n;
    u->n -= n;
    return p;
}

uint64_t
unpack_number(struct unpack *u, size_t n)
{
    const uint8_t *p = unpack_take(u, n);
    return p != NULL ? big_endian(p, n) : 0;
}

void
buf_consume(struct buf *b, size_t n)
{
    if (n >= b->len) {
        b->len = 0;
        return;
    }
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
}

const char *
buf_str(struct buf *b)
{
    if (b->error || !b->data)
        return "";
    b->data[b->len] = 0;
    return (const char *)b->data;
}
