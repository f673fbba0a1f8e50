/* SPDX-License-Identifier: Apache-2.0
 *
 * WebSocket frames: any bytes to the reader. Oracles: cut in pieces they come to the same as at once,
 * with the same end; a message is within the limit, a text is UTF-8; what was read, written by us for
 * the other role, reads as the same. The first byte: bit 0 the role, the others the size of the pieces.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "net/http/ws_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MESSAGE_MAX = 2048 };

static void
note(struct buf *out, const struct ws_message *m)
{
    buf_put_u8(out, m->op);
    buf_put_u32(out, m->code);
    buf_put_u32(out, (uint32_t)m->n);
    buf_put(out, m->p, m->n);
}

/* Writes the message as the peer would, reads it. */
static void
round_trip(const struct ws_message *m, bool masked)
{
    static const uint8_t mask[4] = {0xde, 0xad, 0, 1};
    struct buf b = BUF_INIT(2 * MESSAGE_MAX);
    struct ws_reader r;
    struct ws_message again;

    if (m->op == WS_CLOSE) {
        char reason[WS_REASON_MAX + 1] = "";
        memcpy(reason, m->n ? (const char *)m->p : "", m->n);
        if (strlen(reason) != m->n)
            return; /* a NUL: ours are C strings */
        ws_put_close(&b, m->code, reason, masked ? mask : NULL);
    } else {
        ws_put(&b, m->op, m->p, m->n, masked ? mask : NULL);
    }
    const uint8_t *p = b.data;
    size_t n = b.len;
    ws_reader_init(&r, masked, MESSAGE_MAX);
    ASSERT(ws_reader_take(&r, &p, &n, &again) == 1 && n == 0);
    ASSERT(again.op == m->op && again.code == m->code && again.n == m->n);
    ASSERT(m->n == 0 || memcmp(again.p, m->p, m->n) == 0);
    ws_reader_done(&r);
    buf_done(&b);
}

/* All that the bytes come to, and how they end. */
static int
read_all(const uint8_t *data, size_t len, size_t step, bool masked, struct buf *out)
{
    struct ws_reader r;
    struct ws_message m;
    int rc = 0;

    ws_reader_init(&r, masked, MESSAGE_MAX);
    for (size_t at = 0; at < len && rc >= 0; at += step) {
        size_t n = len - at < step ? len - at : step;
        uint8_t *piece = malloc(n);
        const uint8_t *p = piece;
        ASSERT(piece != NULL);
        memcpy(piece, data + at, n);
        while ((rc = ws_reader_take(&r, &p, &n, &m)) > 0) {
            ASSERT(m.n <= MESSAGE_MAX);
            ASSERT(m.op != WS_TEXT || utf8_valid((const char *)m.p, m.n));
            note(out, &m);
            round_trip(&m, masked);
        }
        ASSERT(rc < 0 || n == 0);
        free(piece);
    }
    ASSERT(rc == 0 || (r.why && (rc == -WS_PROTOCOL || rc == -WS_INVALID || rc == -WS_TOO_BIG)));
    ASSERT(r.message.cap <= MESSAGE_MAX);
    ws_reader_done(&r);
    return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct buf whole = BUF_INIT(8 << 20), pieces = BUF_INIT(8 << 20);

    if (n < 2)
        return 0;
    bool masked = data[0] & 1;
    size_t step = (data[0] >> 1) + 1u;
    int a = read_all(data + 1, n - 1, n - 1, masked, &whole);
    int b = read_all(data + 1, n - 1, step, masked, &pieces);
    ASSERT(a == b && whole.len == pieces.len && buf_error(&whole) == 0);
    ASSERT(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
    buf_done(&whole);
    buf_done(&pieces);
    return 0;
}
