/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of frames: see frame.h.
 */
#include "net/peer_conn.h"

#include <unistd.h>

#include "common/mem.h"
#include "common/str.h"
#include "net/limits.h"
#include "net/rpc.h"
#include "net/stream_int.h"

enum { HEAD = 4 };

struct peer_conn {
    struct peer_conn_config cfg;
    struct stream *stream;
    struct buf in;      /* a frame that is not whole yet, and bytes from before the adoption */
    struct timer *feed; /* looks at those bytes */
    size_t limit;       /* bytes of a body now */
    bool closed;
};

/* The frames that are whole. */
static void
take_frames(struct peer_conn *c)
{
    size_t at = 0;
    while (!c->closed && c->in.len - at >= HEAD) {
        size_t n = (size_t)big_endian(c->in.data + at, HEAD);
        if (n > c->limit) {
            stream_close(c->stream);
            break;
        }
        if (c->in.len - at - HEAD < n)
            break;
        c->cfg.ops->on_frame(c->cfg.arg, c->in.data + at + HEAD, n);
        at += HEAD + n;
    }
    buf_consume(&c->in, at);
}

static void
on_data(void *arg, const uint8_t *p, size_t n)
{
    struct peer_conn *c = arg;
    buf_put(&c->in, p, n);
    if (buf_error(&c->in) != 0)
        stream_close(c->stream);
    else if (c->feed == NULL)
        take_frames(c);
}

static void
on_connect(void *arg)
{
    struct peer_conn *c = arg;
    transport_patience(c->stream->t, PEER_CONN_PATIENCE_MS);
    if (c->cfg.ops->on_open != NULL)
        c->cfg.ops->on_open(c->cfg.arg);
}

static void
on_close(void *arg, int code)
{
    struct peer_conn *c = arg;
    const struct peer_conn_config cfg = c->cfg;
    timer_stop(c->feed);
    buf_done(&c->in);
    talloc_free(c);
    cfg.ops->on_close(cfg.arg, code);
}

static const struct stream_ops ops = {
    .on_connect = on_connect, .on_data = on_data, .on_close = on_close};

static struct peer_conn *
peer_conn_make(const struct peer_conn_config *cfg)
{
    struct peer_conn *c = mem_new(NULL, struct peer_conn);
    c->cfg = *cfg;
    c->limit = cfg->body_max;
    buf_init(&c->in, HEAD + cfg->body_max + STREAM_READ_SIZE);
    return c;
}

struct peer_conn *
peer_conn_dial(const struct peer_conn_config *cfg, const char *addr, const char *name,
               struct err *e)
{
    struct addr a;
    struct stream_way way = {
        .filter = cfg->filter,
        .name = name,
        .protocol = cfg->protocol,
        .first = cfg->first | (cfg->filter != NULL ? RPC_FILTERED : 0),
    };
    if (addr_parse(addr, 0, &a, e) < 0)
        return NULL;
    struct peer_conn *c = peer_conn_make(cfg);
    c->stream = stream_connect(cfg->loop, &a, &way, &ops, c);
    return c;
}

static void
feed_cb(void *arg)
{
    struct peer_conn *c = arg;
    c->feed = NULL;
    take_frames(c);
}

struct peer_conn *
peer_conn_adopt(const struct peer_conn_config *cfg, int fd, bool filtered, const uint8_t *p,
                size_t n)
{
    struct peer_conn *c = peer_conn_make(cfg);
    c->limit = PEER_CONN_FIRST_MAX;
    c->stream = stream_over(cfg->loop, carrier_new(cfg->loop, false));
    bool ok = carrier_adopt(c->stream->carrier, fd);
    if (ok)
        transport_patience(c->stream->t, PEER_CONN_PATIENCE_MS);
    struct addr a;
    char text[ADDR_TEXT];
    transport_peer(c->stream->t, &a);
    c->stream->peer = mem_strdup(c->stream, addr_format(&a, text));
    if (filtered && ok) {
        ASSERT(cfg->filter != NULL);
        stream_wrap(c->stream, cfg->filter, cfg->protocol, p, n);
    } else {
        buf_put(&c->in, p, n);
        c->feed = timer_start(cfg->loop, 0, feed_cb, c);
    }
    stream_accept(c->stream, &ops, c);
    if (!ok) {
        (void)close(fd);
        stream_close(c->stream);
    }
    return c;
}

void
peer_conn_trust(struct peer_conn *c)
{
    c->limit = c->cfg.body_max;
}

void
peer_conn_send(struct peer_conn *c, struct buf *body)
{
    struct buf v[2] = {BUF_INIT(HEAD)};
    buf_put_u32(&v[0], (uint32_t)body->len);
    v[1] = *body;
    buf_init(body, 0);
    stream_write(c->stream, v, ARRAY_LEN(v));
}

size_t
peer_conn_queued(const struct peer_conn *c)
{
    return stream_queued(c->stream);
}

const char *
peer_conn_address(const struct peer_conn *c)
{
    return stream_peer(c->stream);
}

void
peer_conn_close(struct peer_conn *c)
{
    c->closed = true;
    stream_close(c->stream);
}
