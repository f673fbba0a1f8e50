/* SPDX-License-Identifier: Apache-2.0
 *
 * WebSocket frames (RFC 6455, section 5).
 */
#include "net/http/ws_frame.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"

enum { FIN = 0x80, RSV = 0x70, OPCODE = 0x0f }; /* the first byte */
enum { MASKED = 0x80, LENGTH = 0x7f, LENGTH_16 = 126, LENGTH_64 = 127 }; /* the second */

void
ws_reader_init(struct ws_reader *r, bool masked, size_t message_max)
{
    memset(r, 0, sizeof(*r));
    r->masked = masked;
    buf_init(&r->message, message_max);
}

void
ws_reader_done(struct ws_reader *r)
{
    buf_done(&r->message);
}

static int
ws_frame_refuse(struct ws_reader *r, enum ws_code code, const char *why)
{
    r->why = why;
    return -(int)code;
}

static bool
is_control(uint8_t op)
{
    return op & 0x8;
}

/* Bytes of the header, as far as its first two tell; 2 while they are not there. */
static size_t
header_len(const struct ws_reader *r)
{
    if (r->head_len < 2)
        return 2;
    uint8_t len = r->head[1] & LENGTH;
    size_t more = len == LENGTH_16 ? 2 : len == LENGTH_64 ? 8 : 0;
    return 2 + more + (r->head[1] & MASKED ? 4 : 0);
}

/* Checks the first byte (5.2, 5.4, 5.5). */
static int
check_opcode(struct ws_reader *r, uint8_t first, uint8_t len)
{
    uint8_t op = first & OPCODE;

    if (first & RSV)
        return ws_frame_refuse(r, WS_PROTOCOL, "a reserved bit is set");
    if (is_control(op)) {
        if (op > WS_PONG)
            return ws_frame_refuse(r, WS_PROTOCOL, "unknown opcode");
        if (!(first & FIN))
            return ws_frame_refuse(r, WS_PROTOCOL, "a control frame is fragmented");
        if (len > WS_CONTROL_MAX)
            return ws_frame_refuse(r, WS_PROTOCOL, "a control frame is too long");
        return 0;
    }
    if (op > WS_BINARY)
        return ws_frame_refuse(r, WS_PROTOCOL, "unknown opcode");
    if ((op == WS_CONTINUATION) != r->in_message)
        return ws_frame_refuse(r, WS_PROTOCOL,
                               r->in_message ? "a message begins within another"
                                             : "nothing to continue");
    return 0;
}

/* The header is whole: begins its frame. */
static int
begin_frame(struct ws_reader *r)
{
    uint8_t len = r->head[1] & LENGTH;
    bool masked = r->head[1] & MASKED;
    int rc = check_opcode(r, r->head[0], len);

    if (rc < 0)
        return rc;
    if (masked != r->masked)
        return ws_frame_refuse(r, WS_PROTOCOL,
                               masked ? "a server's frame is masked"
                                      : "a client's frame is not masked");
    r->left = len;
    if (len == LENGTH_16)
        r->left = big_endian(r->head + 2, 2);
    else if (len == LENGTH_64)
        r->left = big_endian(r->head + 2, 8);
    if ((len == LENGTH_16 && r->left < LENGTH_16) || (len == LENGTH_64 && r->left <= UINT16_MAX) ||
        r->left > INT64_MAX)
        return ws_frame_refuse(r, WS_PROTOCOL, "a length is not encoded in the shortest form");
    r->op = r->head[0] & OPCODE;
    if (!is_control(r->op) && r->left > r->message.max - r->message.len)
        return ws_frame_refuse(r, WS_TOO_BIG, "the message is too long");
    if (masked)
        memcpy(r->mask, r->head + r->head_len - 4, 4);
    r->fin = r->head[0] & FIN;
    r->at = 0;
    r->in_frame = true;
    r->head_len = 0;
    if (is_control(r->op)) {
        r->control_len = 0;
    } else if (!r->in_message) {
        r->in_message = true;
        r->message_op = r->op;
    }
    return 0;
}

static void
ws_frame_unmask(uint8_t *to, const uint8_t *p, size_t n, const uint8_t mask[4], uint64_t at)
{
    for (size_t i = 0; i < n; i++)
        to[i] = p[i] ^ mask[(at + i) & 3];
}

/* Payload, as much as is there. */
static int
take_payload(struct ws_reader *r, const uint8_t **p, size_t *n)
{
    size_t take = *n < r->left ? *n : (size_t)r->left;
    uint8_t *to;

    if (is_control(r->op)) {
        to = r->control + r->control_len;
        r->control_len += take;
    } else {
        to = buf_reserve(&r->message, take);
        if (!to)
            return ws_frame_refuse(r, WS_TOO_BIG, "no memory for the message");
        r->message.len += take;
    }
    if (take > 0)
        ws_frame_unmask(to, *p, take, r->masked ? r->mask : (const uint8_t[4]){0}, r->at);
    *p += take;
    *n -= take;
    r->left -= take;
    r->at += take;
    return 0;
}

/* Section 7.4: those that a peer may put on the wire. */
static bool
code_valid(unsigned code)
{
    return (code >= 1000 && code <= 1014 && code != 1004 && code != WS_NO_CODE &&
            code != WS_ABNORMAL) ||
           (code >= 3000 && code <= 4999);
}

static int
end_close(struct ws_reader *r, struct ws_message *ret)
{
    *ret = (struct ws_message){.op = WS_CLOSE, .code = WS_NO_CODE};
    if (r->control_len == 0)
        return 1;
    if (r->control_len == 1)
        return ws_frame_refuse(r, WS_PROTOCOL, "half a close code");
    ret->code = (unsigned)big_endian(r->control, 2);
    ret->p = r->control + 2;
    ret->n = r->control_len - 2;
    if (!code_valid(ret->code))
        return ws_frame_refuse(r, WS_PROTOCOL, "a close code that may not be sent");
    if (!utf8_valid((const char *)ret->p, ret->n))
        return ws_frame_refuse(r, WS_INVALID, "a close reason is not UTF-8");
    return 1;
}

/* The frame is whole: 1 when it ends something. */
static int
end_frame(struct ws_reader *r, struct ws_message *ret)
{
    r->in_frame = false;
    if (r->op == WS_CLOSE)
        return end_close(r, ret);
    if (is_control(r->op)) {
        *ret = (struct ws_message){.op = r->op, .p = r->control, .n = r->control_len};
        return 1;
    }
    if (!r->fin)
        return 0;
    r->in_message = false;
    r->given = true;
    *ret = (struct ws_message){.op = r->message_op, .p = r->message.data, .n = r->message.len};
    if (ret->op == WS_TEXT && !utf8_valid((const char *)ret->p, ret->n))
        return ws_frame_refuse(r, WS_INVALID, "a text is not UTF-8");
    return 1;
}

int
ws_reader_take(struct ws_reader *r, const uint8_t **p, size_t *n, struct ws_message *ret)
{
    int rc = 0;

    if (r->given) {
        r->given = false;
        buf_done(&r->message);
    }
    while (rc == 0) {
        if (!r->in_frame) {
            size_t want = header_len(r);
            while (r->head_len < want && *n > 0) {
                r->head[r->head_len++] = *(*p)++;
                (*n)--;
                want = header_len(r);
            }
            if (r->head_len < want)
                return 0;
            rc = begin_frame(r);
            if (rc < 0)
                return rc;
        }
        rc = take_payload(r, p, n);
        if (rc < 0 || r->left > 0)
            return rc;
        rc = end_frame(r, ret);
    }
    return rc;
}

/* --- writing --- */

void
ws_put(struct buf *out, enum ws_op op, const void *p, size_t n, const uint8_t mask[4])
{
    uint8_t bit = mask ? MASKED : 0;

    buf_put_u8(out, (uint8_t)(FIN | op));
    if (n < LENGTH_16) {
        buf_put_u8(out, (uint8_t)(bit | n));
    } else if (n <= UINT16_MAX) {
        buf_put_u8(out, bit | LENGTH_16);
        buf_put_u16(out, (uint16_t)n);
    } else {
        buf_put_u8(out, bit | LENGTH_64);
        buf_put_u64(out, n);
    }
    if (!mask) {
        buf_put(out, p, n);
        return;
    }
    buf_put(out, mask, 4);
    uint8_t *to = buf_reserve(out, n);
    if (!to)
        return;
    ws_frame_unmask(to, p, n, mask, 0);
    out->len += n;
}

void
ws_put_close(struct buf *out, unsigned code, const char *reason, const uint8_t mask[4])
{
    uint8_t payload[WS_CONTROL_MAX];
    size_t n = strlen(reason);

    if (code == WS_NO_CODE) {
        ws_put(out, WS_CLOSE, NULL, 0, mask);
        return;
    }
    if (n > WS_REASON_MAX)
        n = WS_REASON_MAX;
    while (n > 0 && !utf8_valid(reason, n))
        n--;
    payload[0] = (uint8_t)(code >> 8);
    payload[1] = (uint8_t)code;
    memcpy(payload + 2, reason, n);
    ws_put(out, WS_CLOSE, payload, 2 + n, mask);
}
