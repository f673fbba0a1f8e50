/* SPDX-License-Identifier: Apache-2.0
 *
 * The health protocol of gRPC, see grpc.h. In this order: what is asked; the message that answers;
 * frames. Sections are of RFC 9113.
 */
#include "client/probe/grpc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"

enum frame { /* 6.1 to 6.10 */
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RST_STREAM = 3,
    FRAME_SETTINGS = 4,
    FRAME_PUSH_PROMISE = 5,
    FRAME_PING = 6,
    FRAME_GOAWAY = 7
};

enum {
    FLAG_ACK = 1,
    FLAG_END_STREAM = 1,
    FLAG_END_HEADERS = 4,
    FLAG_PADDED = 8,
    HEAD = 9,
    PREFIX = 5, /* of a message: compressed or not, length */
    STREAM = 1  /* ours */
};

/* --- what is asked --- */

static size_t
frame_begin(struct buf *b, enum frame type, uint8_t flags, uint32_t stream)
{
    size_t at = b->len;
    buf_put_u32(b, (uint32_t)type); /* the length, 24 bits, and the type */
    buf_put_u8(b, flags);
    buf_put_u32(b, stream);
    return at;
}

static void
frame_end(struct buf *b, size_t at)
{
    if (buf_error(b))
        return;
    size_t n = b->len - at - HEAD;
    b->data[at] = (uint8_t)(n >> 16);
    b->data[at + 1] = (uint8_t)(n >> 8);
    b->data[at + 2] = (uint8_t)n;
}

/* A number with a prefix of 7 bits (RFC 7541, 5.1), and so many bytes: no Huffman code. */
static void
put_text(struct buf *b, const char *s)
{
    size_t n = strlen(s), rest = n - 127;
    buf_put_u8(b, (uint8_t)(n < 127 ? n : 127));
    if (n >= 127) {
        for (; rest >= 128; rest /= 128)
            buf_put_u8(b, (uint8_t)(128 + rest % 128));
        buf_put_u8(b, (uint8_t)rest);
    }
    buf_puts(b, s);
}

/* Fields without an index of their own; their names are of the static table (RFC 7541, A). */
static void
put_fields(struct buf *b, const char *authority, bool tls)
{
    buf_put_u8(b, 0x83);              /* :method POST */
    buf_put_u8(b, tls ? 0x87 : 0x86); /* :scheme */
    buf_put_u8(b, 0x04);              /* :path */
    put_text(b, "/grpc.health.v1.Health/Check");
    buf_put_u8(b, 0x01); /* :authority */
    put_text(b, authority);
    buf_put_u16(b, 0x0f10); /* content-type, 31 */
    put_text(b, "application/grpc");
    buf_put_u16(b, 0x0f2b); /* user-agent, 58 */
    put_text(b, "Paddock");
    buf_put_u8(b, 0x00);
    put_text(b, "te");
    put_text(b, "trailers");
}

static void
put_setting(struct buf *b, uint16_t id, uint32_t value)
{
    buf_put_u16(b, id);
    buf_put_u32(b, value);
}

void
grpc_ask(struct buf *b, const char *authority, const char *service, bool tls)
{
    size_t n = strlen(service);
    ASSERT(n <= GRPC_TEXT_MAX && strlen(authority) <= GRPC_TEXT_MAX);
    buf_puts(b, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); /* 3.4 */
    size_t at = frame_begin(b, FRAME_SETTINGS, 0, 0);
    put_setting(b, 1, 0); /* SETTINGS_HEADER_TABLE_SIZE */
    put_setting(b, 2, 0); /* SETTINGS_ENABLE_PUSH */
    frame_end(b, at);
    at = frame_begin(b, FRAME_HEADERS, FLAG_END_HEADERS, STREAM);
    put_fields(b, authority, tls);
    frame_end(b, at);
    at = frame_begin(b, FRAME_DATA, FLAG_END_STREAM, STREAM);
    buf_put_u8(b, 0);
    buf_put_u32(b, (uint32_t)(n == 0 ? 0 : n < 128 ? n + 2 : n + 3));
    if (n > 0) { /* HealthCheckRequest { service = 1 } */
        buf_put_u8(b, 0x0a);
        if (n >= 128)
            buf_put_u8(b, (uint8_t)(128 + n % 128));
        buf_put_u8(b, (uint8_t)(n < 128 ? n : n / 128));
        buf_puts(b, service);
    }
    frame_end(b, at);
}

/* --- the message --- */

__attribute__((format(printf, 2, 3))) static void
grpc_fail(struct grpc *g, const char *fmt, ...)
{
    va_list ap;
    if (g->state != GRPC_OPEN)
        return;
    g->state = GRPC_FAILED;
    va_start(ap, fmt);
    vsnprintf(g->why, sizeof(g->why), fmt, ap);
    va_end(ap);
}

static uint64_t
take_varint(struct unpack *u)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t b = unpack_number(u, 1);
        v |= (b & 127) << shift;
        if (b < 128)
            return v;
    }
    u->bad = true;
    return 0;
}

/* Reads HealthCheckResponse { status = 1 }; false: it is none. */
static bool
take_status(struct unpack *u, uint64_t *ret)
{
    *ret = 0;
    while (u->n > 0 && !u->bad) {
        uint64_t tag = take_varint(u), n;
        switch (tag & 7) {
        case 0:
            n = take_varint(u);
            *ret = tag >> 3 == 1 ? n : *ret;
            break;
        case 1:
            (void)unpack_take(u, 8);
            break;
        case 2:
            n = take_varint(u);
            (void)unpack_take(u, n > u->n ? u->n + 1 : (size_t)n);
            break;
        case 5:
            (void)unpack_take(u, 4);
            break;
        default:
            u->bad = true;
        }
    }
    return !u->bad;
}

static void
grpc_answer(struct grpc *g)
{
    static const char *const names[] = {"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"};
    struct unpack u = {g->message, g->message_n, false};
    bool compressed = unpack_number(&u, 1) != 0;
    uint64_t n = unpack_number(&u, 4), status;
    if (u.bad)
        return;
    if (n > GRPC_MESSAGE_MAX)
        grpc_fail(g, "the answer is over %d bytes", GRPC_MESSAGE_MAX);
    else if (compressed)
        grpc_fail(g, "the answer is compressed, which was not asked for");
    if (g->state != GRPC_OPEN || u.n < n)
        return;
    u.n = (size_t)n;
    if (!take_status(&u, &status))
        grpc_fail(g, "the answer is no HealthCheckResponse");
    else if (status == 1)
        g->state = GRPC_SERVING;
    else if (status < sizeof(names) / sizeof(names[0]))
        grpc_fail(g, "status %s", names[status]);
    else
        grpc_fail(g, "status %llu", (unsigned long long)status);
}

/* --- frames --- */

static void
take_data(struct grpc *g, uint8_t flags)
{
    const uint8_t *p = g->payload;
    size_t n = g->payload_n, pad = 0;
    if ((flags & FLAG_PADDED) && n > 0) {
        pad = *p++;
        n--;
    } else if (flags & FLAG_PADDED) {
        pad = 1;
    }
    if (pad > n) { /* 6.1 */
        grpc_fail(g, "a frame is padded over its end");
        return;
    }
    n -= pad;
    size_t room = sizeof(g->message) - g->message_n;
    n = n < room ? n : room; /* more is no message of ours */
    memcpy(g->message + g->message_n, p, n);
    g->message_n += n;
    grpc_answer(g);
}

static void
take_settings(struct grpc *g, uint8_t flags, struct buf *reply)
{
    g->settled = true;
    if (g->payload_n % 6 != 0)
        grpc_fail(g, "its settings are malformed");
    else if (!(flags & FLAG_ACK))
        frame_end(reply, frame_begin(reply, FRAME_SETTINGS, FLAG_ACK, 0));
}

static void
take_ping(struct grpc *g, uint8_t flags, struct buf *reply)
{
    if (flags & FLAG_ACK)
        return;
    size_t at = frame_begin(reply, FRAME_PING, FLAG_ACK, 0);
    buf_put(reply, g->payload, g->payload_n < 8 ? g->payload_n : 8);
    frame_end(reply, at);
}

static void
take_frame(struct grpc *g, uint8_t type, uint8_t flags, uint32_t stream, struct buf *reply)
{
    struct unpack u = {g->payload, g->payload_n, false};
    uint64_t last;
    if (stream > STREAM) {
        grpc_fail(g, "it opened a stream of its own");
        return;
    }
    switch (type) {
    case FRAME_DATA:
        take_data(g, flags);
        break;
    case FRAME_SETTINGS:
        take_settings(g, flags, reply);
        break;
    case FRAME_PING:
        take_ping(g, flags, reply);
        break;
    case FRAME_RST_STREAM:
        grpc_fail(g, "it gave the call up with error %llu of HTTP/2",
                  (unsigned long long)unpack_number(&u, 4));
        break;
    case FRAME_PUSH_PROMISE:
        grpc_fail(g, "it pushes, which was turned off");
        break;
    case FRAME_GOAWAY: /* 6.8: calls up to the stream that it names are answered */
        last = unpack_number(&u, 4) & INT32_MAX;
        if (last < STREAM)
            grpc_fail(g, "it takes no calls, with error %llu of HTTP/2",
                      (unsigned long long)unpack_number(&u, 4));
        break;
    default:; /* 5.5: others are no concern of ours */
    }
    if ((type == FRAME_DATA || type == FRAME_HEADERS) && (flags & FLAG_END_STREAM))
        grpc_fail(g, "the call was refused: does the server have the service "
                     "grpc.health.v1.Health, and know the name that is asked for?");
}

/* Takes the head of a frame; true: it is complete. */
static bool
take_head(struct grpc *g, const uint8_t **p, const uint8_t *end)
{
    while (g->head_n < HEAD && *p < end)
        g->head[g->head_n++] = *(*p)++;
    if (g->head_n < HEAD)
        return false;
    if (!g->settled && g->head[3] != FRAME_SETTINGS)
        grpc_fail(g, "it does not speak HTTP/2 with prior knowledge");
    else if (big_endian(g->head, 3) > GRPC_FRAME_MAX)
        grpc_fail(g, "a frame is over %d bytes", GRPC_FRAME_MAX);
    return g->state == GRPC_OPEN;
}

enum grpc_state
grpc_take(struct grpc *g, const uint8_t *p, size_t n, struct buf *reply)
{
    const uint8_t *end = p + n;
    g->bytes += n;
    while (g->state == GRPC_OPEN && take_head(g, &p, end)) {
        size_t length = (size_t)big_endian(g->head, 3), want = length - g->payload_n;
        size_t k = (size_t)(end - p) < want ? (size_t)(end - p) : want;
        memcpy(g->payload + g->payload_n, p, k);
        g->payload_n += k;
        p += k;
        if (k < want)
            break;
        take_frame(g, g->head[3], g->head[4], (uint32_t)big_endian(g->head + 5, 4) & INT32_MAX,
                   reply);
        g->head_n = g->payload_n = 0;
    }
    if (g->bytes > GRPC_BYTES_MAX)
        grpc_fail(g, "it sent over %d bytes and no answer", GRPC_BYTES_MAX);
    return g->state;
}
