/* SPDX-License-Identifier: Apache-2.0
 *
 * RPC server: sessions over accepted connections. In this order: the carrier of a link; bytes that
 * come, the first of which names the protocol and says whether a filter follows; the life of
 * connections and of the server.
 */
#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "net/rpc_link_int.h"
#include "net/stream_int.h"

enum {
    TELL_MS = 60000 /* between two lines about the same */
};

struct conn {
    struct rpc_server *server;
    struct stream *stream;
    struct rpc_link *link; /* NULL until the protocol byte came */
    struct rpc_reader reader;
    struct timer *identify;
    struct timer *rest;     /* a frame has begun */
    size_t held;            /* bytes of it, as counted in the server */
    uint64_t frames, frames_seen;
    struct conn *prev, *next;
};

struct rpc_server {
    struct loop *loop;
    const struct rpc_service *services;
    size_t n;
    void *arg;
    const struct filter *filter; /* NULL: none */
    bool plain;                  /* connections without it are taken as well */
    uint8_t other; /* a protocol whose connections are given away; 0: none */
    rpc_take_fn *take;
    void *take_arg;
    struct listener *listener;
    struct conn *conns;
    size_t held; /* bytes of frames that are half received */
    size_t refs; /* owner and connections */
    int64_t told_ms; /* when a refusal was logged */
};

static void
server_unref(struct rpc_server *s)
{
    if (--s->refs == 0)
        talloc_free(s);
}

static void
carrier_send(void *arg, struct buf *bufs, size_t n)
{
    struct conn *c = arg;
    stream_write(c->stream, bufs, n);
    if (stream_queued(c->stream) > RPC_PAUSE_BYTES)
        stream_read(c->stream, false); /* until on_drain: the caller does not read its answers */
}

static size_t
carrier_queued(void *arg)
{
    return stream_queued(((struct conn *)arg)->stream);
}

static const struct peer_identity *
carrier_identity(void *arg)
{
    return stream_identity(((struct conn *)arg)->stream);
}

static bool
on_frame(void *arg, const struct rpc_head *h, const uint8_t *body)
{
    struct conn *c = arg;
    c->frames++;
    if (!rpc_link_frame(c->link, h, body))
        stream_close(c->stream);
    return c->link != NULL; /* a handler may have closed the server */
}

static void
link_start(struct conn *c)
{
    struct rpc_link_config cfg = {
        .loop = c->server->loop,
        .services = c->server->services,
        .n = c->server->n,
        .arg = c->server->arg,
        .peer = stream_peer(c->stream),
        .send = carrier_send,
        .queued = carrier_queued,
        .identity = carrier_identity,
        .carrier = c,
    };
    timer_stop(TAKE(c->identify));
    c->link = rpc_link_new(&cfg);
}

static void
rest_cb(void *arg)
{
    struct conn *c = arg;
    c->rest = NULL;
    if (c->held > 0 && c->frames == c->frames_seen) {
        stream_close(c->stream);
        return;
    }
    c->frames_seen = c->frames;
    if (c->held > 0)
        c->rest = timer_start(c->server->loop, RPC_FRAME_MS, rest_cb, c);
}

/* Counts what is kept of a frame that is not complete; false: the connection must go. */
static bool
rpc_server_hold(struct conn *c)
{
    struct rpc_server *s = c->server;
    s->held += c->reader.in.len - c->held;
    c->held = c->reader.in.len;
    if (c->held > 0 && !c->rest) {
        c->frames_seen = c->frames;
        c->rest = timer_start(s->loop, RPC_FRAME_MS, rest_cb, c);
    }
    if (s->held <= RPC_PARTIAL_MAX)
        return true;
    log_warn("rpc", "connection closed: too many large calls are half received", "peer",
             stream_peer(c->stream), NULL);
    return false;
}

static void
conn_feed(struct conn *c, const uint8_t *p, size_t n)
{
    int r = rpc_reader_feed(&c->reader, p, n);
    if (c->link && (r < 0 || !rpc_server_hold(c)))
        stream_close(c->stream);
}

/* Gives the connection away, with the bytes that follow its first one; nothing more is read
 * here. */
static void
rpc_server_give_conn(struct conn *c, bool filtered, const uint8_t *p, size_t n)
{
    int fd = carrier_give(c->stream->carrier);
    if (fd >= 0)
        c->server->take(c->server->take_arg, fd, filtered, p, n);
    else
        log_warn("rpc", "a connection of another server is lost", "peer", stream_peer(c->stream),
                 "error", strerror(errno), NULL);
    stream_close(c->stream);
}

/* Says once in a while that a connection is refused since one side alone has the filter. */
static void
conn_refuse(struct conn *c, const char *why)
{
    struct rpc_server *s = c->server;
    int64_t now = loop_now_ms(s->loop);

    if (s->told_ms == 0 || now - s->told_ms >= TELL_MS) {
        s->told_ms = now;
        log_warn("rpc", why, "peer", stream_peer(c->stream), NULL);
    }
    stream_close(c->stream);
}

/* The first byte of a connection: its protocol, and whether a filter is to follow. p[0..n) come
 * behind it. */
static void
conn_take_first(struct conn *c, uint8_t first, const uint8_t *p, size_t n)
{
    struct rpc_server *s = c->server;
    bool filtered = (first & RPC_FILTERED) != 0;
    uint8_t protocol = first & (uint8_t)~RPC_FILTERED;
    bool other = s->other != 0 && protocol == s->other;

    if (!other && protocol != RPC_PROTOCOL_BYTE) {
        stream_close(c->stream);
    } else if (filtered && s->filter == NULL) {
        conn_refuse(c, "a connection by TLS is refused: this server has none (tls.rpc)");
    } else if (!filtered && s->filter != NULL && !s->plain) {
        conn_refuse(c,
                    "a connection in plain text is refused: this server wants TLS (tls.rpc there)");
    } else if (other) {
        rpc_server_give_conn(c, filtered, p, n);
    } else {
        link_start(c);
        if (filtered)
            stream_wrap(c->stream, s->filter, RPC_PROTOCOL, p, n);
        else
            conn_feed(c, p, n);
    }
}

static void
on_data(void *arg, const uint8_t *p, size_t n)
{
    struct conn *c = arg;

    if (c->link == NULL)
        conn_take_first(c, p[0], p + 1, n - 1);
    else
        conn_feed(c, p, n);
}
static void
on_drain(void *arg)
{
    struct conn *c = arg;
    stream_read(c->stream, true);
    rpc_link_drained(c->link);
}

static void
conn_stop(struct conn *c)
{
    timer_stop(TAKE(c->identify));
    timer_stop(TAKE(c->rest));
    rpc_link_close(TAKE(c->link), -ERR_CLOSED, "its connection closed");
}

static void
on_close(void *arg, int code)
{
    struct conn *c = arg;
    struct rpc_server *s = c->server;

    (void)code;
    conn_stop(c);
    s->held -= c->held;
    rpc_reader_done(&c->reader);
    if (c->prev)
        c->prev->next = c->next;
    else
        s->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    talloc_free(c);
    server_unref(s);
}

static const struct stream_ops conn_ops = {
    .on_data = on_data, .on_drain = on_drain, .on_close = on_close};

static void
identify_cb(void *arg)
{
    struct conn *c = arg;
    c->identify = NULL;
    stream_close(c->stream);
}

static void
on_accept(void *arg, struct stream *st)
{
    struct rpc_server *s = arg;
    struct conn *c = mem_new(NULL, struct conn);

    c->server = s;
    c->stream = st;
    rpc_reader_init(&c->reader, on_frame, c);
    c->next = s->conns;
    if (c->next)
        c->next->prev = c;
    s->conns = c;
    s->refs++;
    c->identify = timer_start(s->loop, RPC_IDENTIFY_MS, identify_cb, c);
    stream_accept(st, &conn_ops, c);
}

struct rpc_server *
rpc_listen(struct loop *l, const struct addr *at, const struct rpc_service *services, size_t n,
           void *arg, struct err *e)
{
    struct rpc_server *s = mem_new(NULL, struct rpc_server);
    s->loop = l;
    s->services = services;
    s->n = n;
    s->arg = arg;
    s->refs = 1;
    struct listener_config lc = {
        .conns_max = RPC_CONNS_MAX,
        .per_peer = RPC_CONNS_PER_PEER,
        .on_accept = on_accept,
        .arg = s,
    };
    s->listener = listener_new(l, at, &lc, e);
    if (!s->listener) {
        talloc_free(s);
        return NULL;
    }
    return s;
}

void
rpc_server_give(struct rpc_server *s, uint8_t protocol, rpc_take_fn *take, void *arg)
{
    s->other = protocol;
    s->take = take;
    s->take_arg = arg;
}

void
rpc_server_secure(struct rpc_server *s, const struct filter *f, bool plain)
{
    s->filter = f;
    s->plain = plain;
}

uint16_t
rpc_server_port(const struct rpc_server *s)
{
    return listener_port(s->listener);
}

void
rpc_server_limit(struct rpc_server *s, size_t per_peer)
{
    listener_limit(s->listener, per_peer > 0 ? per_peer : SIZE_MAX);
}

void
rpc_server_close(struct rpc_server *s)
{
    if (!s)
        return;
    listener_close(s->listener);
    for (struct conn *c = s->conns; c; c = c->next) {
        stream_close(c->stream);
        conn_stop(c);
    }
    server_unref(s);
}
