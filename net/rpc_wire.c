/* SPDX-License-Identifier: Apache-2.0
 *
 * RPC frames as bytes.
 */
#include "net/rpc_wire_int.h"

#include <string.h>

size_t
rpc_frame_begin(struct buf *b, const struct rpc_head *h)
{
    size_t at = b->len;
    buf_put_u32(b, h->len);
    buf_put_u8(b, (uint8_t)h->kind);
    buf_put_u8(b, h->version);
    buf_put_u16(b, h->method);
    buf_put_u64(b, h->id);
    buf_put_u32(b, h->deadline_ms);
    return at;
}

void
rpc_frame_end(struct buf *b, size_t at)
{
    if (buf_error(b))
        return;
    uint32_t len = (uint32_t)(b->len - at - RPC_HEAD);
    for (unsigned i = 0; i < 4; i++)
        b->data[at + i] = (uint8_t)(len >> (24 - 8 * i));
}

void
rpc_put_error(struct buf *b, int code, const char *text)
{
    buf_put_u32(b, (uint32_t)(code < 0 ? -code : code));
    buf_put(b, text, strnlen(text, ERR_TEXT_MAX - 1));
}

void
rpc_get_error(const uint8_t *p, size_t n, struct err *e)
{
    if (n < 4 || n > 4 + ERR_TEXT_MAX) {
        err_set(e, -ERR_CORRUPT, "malformed error from the server");
        return;
    }
    uint64_t code = big_endian(p, 4);
    if (code == 0 || code > 100000)
        code = ERR_INTERNAL;
    err_set(e, -(int)code, "%.*s", (int)(n - 4), (const char *)p + 4);
}

int
rpc_head_parse(const uint8_t p[RPC_HEAD], struct rpc_head *ret)
{
    struct rpc_head h = {
        .len = (uint32_t)big_endian(p, 4),
        .kind = (enum rpc_kind)p[4],
        .version = p[5],
        .method = (uint16_t)big_endian(p + 6, 2),
        .id = big_endian(p + 8, 8),
        .deadline_ms = (uint32_t)big_endian(p + 16, 4),
    };
    if (h.len > RPC_FRAME_MAX || p[4] < RPC_KIND_CALL || p[4] > RPC_KIND_BACK_END || h.id == 0)
        return -ERR_INVALID;
    *ret = h;
    return 0;
}

void
rpc_reader_init(struct rpc_reader *r,
                bool (*frame)(void *, const struct rpc_head *, const uint8_t *), void *arg)
{
    buf_init(&r->in, RPC_HEAD + RPC_FRAME_MAX + STREAM_READ_SIZE);
    r->frame = frame;
    r->arg = arg;
}

void
rpc_reader_done(struct rpc_reader *r)
{
    buf_done(&r->in);
    r->data.len = 0;
}

/* Whole frames of p[0..n); *used counts their bytes. Of the next one at most the head, if it brings
 * bytes of a stream. */
static int
rpc_wire_frames(struct rpc_reader *r, const uint8_t *p, size_t n, size_t *used)
{
    struct rpc_head h;

    while (n - *used >= RPC_HEAD) {
        const uint8_t *at = p + *used;
        if (rpc_head_parse(at, &h) < 0)
            return -ERR_INVALID;
        if (n - *used - RPC_HEAD < h.len) {
            if (h.kind != RPC_KIND_DATA && h.kind != RPC_KIND_BACK_DATA)
                break;
            r->data = h;
            *used += RPC_HEAD;
            break;
        }
        *used += RPC_HEAD + h.len;
        if (!r->frame(r->arg, &h, at + RPC_HEAD))
            return 1;
    }
    return 0;
}

/* Reads on in the frame that has begun: no byte more is copied than must be. */
static int
more_frame(struct rpc_reader *r, const uint8_t *p, size_t n, size_t *used)
{
    struct buf *in = &r->in;
    size_t body = in->len < RPC_HEAD ? 0 : (size_t)big_endian(in->data, 4);
    size_t want = RPC_HEAD + body - in->len, done = 0;
    struct rpc_head h;

    *used = want < n ? want : n;
    if (in->len == RPC_HEAD && want <= n) {
        (void)rpc_head_parse(in->data, &h);
        buf_done(in);
        return r->frame(r->arg, &h, p) ? 0 : 1;
    }
    buf_put(in, p, *used);
    if (buf_error(in) || *used < want)
        return buf_error(in) ? -ERR_LIMIT : 0;
    int rc = rpc_wire_frames(r, in->data, in->len, &done);
    if (rc == 0 && done > 0)
        buf_done(in);
    return rc;
}

/* Bytes of a stream are passed on as they come. */
static int
more_data(struct rpc_reader *r, const uint8_t *p, size_t n, size_t *used)
{
    struct rpc_head h = r->data;

    if (h.len > n)
        h.len = (uint32_t)n;
    *used = h.len;
    r->data.len -= h.len;
    return r->frame(r->arg, &h, p) ? 0 : 1;
}

int
rpc_reader_feed(struct rpc_reader *r, const uint8_t *p, size_t n)
{
    while (n > 0) {
        size_t used = 0;
        int rc = r->data.len > 0 ? more_data(r, p, n, &used)
                 : r->in.len > 0 ? more_frame(r, p, n, &used)
                                 : rpc_wire_frames(r, p, n, &used);
        if (rc != 0)
            return rc;
        if (used == 0) { /* the begin of one */
            buf_put(&r->in, p, n);
            return buf_error(&r->in) ? -ERR_LIMIT : 0;
        }
        p += used;
        n -= used;
    }
    return 0;
}

int
rpc_put_envelope(struct buf *b, const struct rpc_envelope *env)
{
    size_t at = b->len;

    buf_put_u16(b, 0);
    if (env == NULL)
        return 0;
    mp_encode(b, &type_rpc_envelope, env);
    size_t n = b->len - at - 2;
    if (buf_error(b) || n > RPC_ENVELOPE_MAX)
        return -ERR_LIMIT;
    b->data[at] = (uint8_t)(n >> 8);
    b->data[at + 1] = (uint8_t)n;
    return 0;
}

int
rpc_get_envelope(const void *ctx, const uint8_t *p, size_t n, const struct rpc_envelope **ret,
                 size_t *used, struct err *e)
{
    static const struct rpc_envelope empty;
    size_t len = n < 2 ? 0 : (size_t)big_endian(p, 2);
    void *env = NULL;

    if (n < 2 || len > RPC_ENVELOPE_MAX || len > n - 2)
        return err_set(e, -ERR_INVALID, "malformed envelope");
    if (len > 0 && rpc_decode(ctx, &type_rpc_envelope, p + 2, len, &env, e) < 0)
        return err_prefix(e, "envelope");
    *ret = len > 0 ? env : &empty;
    *used = len + 2;
    return 0;
}

int
rpc_decode(const void *ctx, const struct type *t, const uint8_t *p, size_t n, void **ret,
           struct err *e)
{
    size_t memory = n * RPC_DECODE_FACTOR + RPC_DECODE_EXTRA;
    struct budget b = {.left = memory < RPC_DECODE_MAX ? memory : RPC_DECODE_MAX};
    return mp_decode(ctx, t, SLICE(p, n), &b, ret, e);
}

const struct rpc_method *
rpc_method_by_id(enum rpc_id id)
{
    for (size_t i = 0; i < api_methods_n; i++)
        if (api_methods[i].id == (uint16_t)id)
            return &api_methods[i];
    return NULL;
}
