/* SPDX-License-Identifier: Apache-2.0
 *
 * A growable byte buffer with a hard maximum. Errors stick: after one, appends do nothing and
 * `buf_error` tells, so a writer checks once at the end.
 */
#ifndef PADDOCK_COMMON_BUF_H
#define PADDOCK_COMMON_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of somebody else. */
struct slice {
    const void *p;
    size_t n;
};
#define SLICE(ptr, len) ((struct slice){(ptr), (len)})

struct buf {
    uint8_t *data; /* malloc'ed, owned; NUL-terminated by buf_str() only */
    size_t len;
    size_t cap;
    size_t max; /* most bytes it may hold */
    int error;  /* 0, -ENOMEM or -ERR_LIMIT; a writer's own: codec.h */
};

#define BUF_INIT(max_bytes) {NULL, 0, 0, (max_bytes), 0}
#define auto_buf __attribute__((cleanup(buf_done)))

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
void buf_reset(struct buf *b); /* empty, no error, memory kept */
int buf_error(const struct buf *b);

/* Room for `n` more bytes at data + len; NULL on error. The caller adds to `len` what it wrote. */
uint8_t *buf_reserve(struct buf *b, size_t n);
void buf_put(struct buf *b, const void *p, size_t n);
void buf_putc(struct buf *b, char c);
void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Big-endian integers. */
void buf_put_u8(struct buf *b, uint8_t v);
void buf_put_u16(struct buf *b, uint16_t v);
void buf_put_u32(struct buf *b, uint32_t v);
void buf_put_u64(struct buf *b, uint64_t v);
/* Returns the number that they wrote, of up to 8 bytes. */
uint64_t big_endian(const uint8_t *p, size_t n);
/* Bytes of somebody else, taken from the front: NULL and 0 from the first time on that there are
 * fewer than asked for. */
struct unpack {
    const uint8_t *p;
    size_t n;
    bool bad; /* there were fewer, or what was taken was refused */
};
const uint8_t *unpack_take(struct unpack *u, size_t n);
uint64_t unpack_number(struct unpack *u, size_t n); /* big-endian, of up to 8 bytes */
/* Drops `n` bytes at the front. */
void buf_consume(struct buf *b, size_t n);
/* NUL-terminated view; "" on error. Valid until the next append. */
const char *buf_str(struct buf *b);

#endif
