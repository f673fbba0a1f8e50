/* SPDX-License-Identifier: Apache-2.0
 *
 * RPC client: pending calls, one connection that is made when needed, or a session in process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#include "common/mem.h"
#include "common/num.h"
#include "net/rpc_wire.h"
#include "net/stream.h"

struct pending {
    struct rpc_client *client;
    uint64_t id;
    const struct rpc_method *method;
    rpc_done *done;
    void *arg;
    struct buf frame; /* kept until sent */
    bool sent;
    int code;          /* what the timer completes with */
    const char *why;   /* static */
    int64_t queued_ms;
    struct timer *timer;
    UT_hash_handle hh; /* insertion order is kept */
};

enum link { LINK_DOWN, LINK_CONNECTING, LINK_UP };

struct rpc_client {
    struct loop *loop;
    struct pending *pending;
    uint64_t next_id;
    size_t refs; /* owner and connection */
    bool closed;
    struct rpc_reader reader;
    /* over the network */
    struct addr *servers;
    size_t n_servers, current;
    struct stream *stream;
    enum link link;
    int64_t backoff_ms;
    struct timer *retry;
    char last_error[256];
    /* in process */
    bool local;
    struct rpc_session *session;
    struct rpc_reader serve;
    struct buf to_server, to_client;
    struct timer *pump;
};

static void
client_unref(struct rpc_client *c)
{
    if (--c->refs == 0) {
        rpc_reader_done(&c->reader);
        rpc_reader_done(&c->serve);
        buf_done(&c->to_server);
        buf_done(&c->to_client);
        talloc_free(c);
    }
}

/* Completes and frees; `e` NULL is success. */
static void
finish(struct pending *p, const struct err *e, const void *resp)
{
    rpc_done *done = p->done;
    void *arg = p->arg;

    HASH_DEL(p->client->pending, p);
    timer_stop(p->timer);
    buf_done(&p->frame);
    free(p);
    if (done)
        done(arg, e, resp);
}

static void
fail(struct pending *p, int code, const char *why)
{
    struct err e = ERR_INIT;
    err_set(&e, code, "rpc %s: %s", p->method->name, why);
    finish(p, &e, NULL);
}

/* --- frames in --- */

static bool
on_frame(void *arg, const struct rpc_head *h, const uint8_t *body)
{
    struct rpc_client *c = arg;
    struct pending *p = NULL;
    struct err e = ERR_INIT;
    void *resp = NULL;

    HASH_FIND(hh, c->pending, &h->id, sizeof(h->id), p);
    if (!p)
        return true; /* given up meanwhile */
    if (h->kind != RPC_KIND_REPLY && h->kind != RPC_KIND_ERROR) {
        if (c->stream)
            stream_close(c->stream);
        return true;
    }
    void *ctx = mem_ctx("rpc response");
    if (h->version != RPC_VERSION)
        err_set(&e, -ERR_METHOD,
                "rpc %s: the server speaks version %u of the RPC protocol, this agent %d: run the same "
                "release on both",
                p->method->name, h->version, RPC_VERSION);
    else if (h->kind == RPC_KIND_ERROR)
        rpc_get_error(body, h->len, &e);
    else if (rpc_decode(ctx, p->method->resp, body, h->len, &resp, &e) < 0)
        err_prefix(&e, "rpc %s: response", p->method->name);
    c->refs++;
    finish(p, e.code ? &e : NULL, resp);
    talloc_free(ctx);
    bool go_on = !c->closed;
    client_unref(c);
    return go_on;
}

/* --- in process --- */

static void pump_cb(void *arg);

static void
pump_soon(struct rpc_client *c)
{
    if (!c->pump && !c->closed)
        c->pump = timer_start(c->loop, 0, pump_cb, c);
}

/* The first frame of a turn is taken as it is. */
static void
pump_put(struct rpc_client *c, struct buf *to, struct buf *frame)
{
    if (to->len == 0) {
        struct buf spare = *to;
        *to = *frame;
        to->max = SIZE_MAX;
        *frame = spare;
    } else {
        buf_put(to, frame->data, frame->len);
    }
    buf_done(frame);
    pump_soon(c);
}

static void
local_carrier(void *arg, struct buf *frame)
{
    struct rpc_client *c = arg;
    pump_put(c, &c->to_client, frame);
}

static bool
on_serve_frame(void *arg, const struct rpc_head *h, const uint8_t *body)
{
    struct rpc_client *c = arg;
    bool ok = rpc_session_frame(c->session, h, body);
    ASSERT(ok || c->closed); /* our own frames */
    return !c->closed;
}

static void
pump_one(struct rpc_client *c, struct buf *from, struct rpc_reader *to)
{
    struct buf b = *from;
    buf_init(from, b.max);
    if (b.len > 0 && !c->closed)
        ASSERT(rpc_reader_feed(to, b.data, b.len) >= 0);
    buf_done(&b);
}

static void
pump_cb(void *arg)
{
    struct rpc_client *c = arg;
    c->pump = NULL;
    c->refs++;
    pump_one(c, &c->to_server, &c->serve);
    pump_one(c, &c->to_client, &c->reader);
    client_unref(c);
}

/* --- over the network --- */

static void connect_next(struct rpc_client *c);

static void
put_out(struct rpc_client *c, struct buf *frame)
{
    if (c->local)
        pump_put(c, &c->to_server, frame);
    else
        stream_write(c->stream, frame, 1);
}

static void
on_connect(void *arg)
{
    struct rpc_client *c = arg;
    struct buf hello = BUF_INIT(1);

    c->link = LINK_UP;
    c->backoff_ms = RPC_BACKOFF_MIN_MS;
    c->last_error[0] = 0;
    buf_put_u8(&hello, RPC_PROTOCOL_BYTE);
    stream_write(c->stream, &hello, 1);
    for (struct pending *p = c->pending; p; p = p->hh.next)
        if (!p->sent && !p->code) {
            p->sent = true;
            put_out(c, &p->frame);
        }
}

static void
on_data(void *arg, const uint8_t *p, size_t n)
{
    struct rpc_client *c = arg;
    c->refs++;
    if (rpc_reader_feed(&c->reader, p, n) < 0 && !c->closed)
        stream_close(c->stream);
    client_unref(c);
}

static void
retry_cb(void *arg)
{
    struct rpc_client *c = arg;
    c->retry = NULL;
    connect_next(c);
}

/* Fails the calls that a broken connection takes with it: those that were sent, and those that have
 * waited too long for one. */
static void
link_lost(struct rpc_client *c, bool was_up)
{
    int64_t now = loop_now_ms(c->loop);
    struct pending *p;
    char why[320];

    snprintf(why, sizeof(why), "%s", was_up ? "connection to the server closed" : c->last_error);
    do { /* completions may do anything to the table: start again after each */
        for (p = c->pending; p; p = p->hh.next)
            if (!p->code && (p->sent || now - p->queued_ms >= RPC_PATIENCE_MS))
                break;
        if (p)
            fail(p, p->sent ? -ERR_CLOSED : -ERR_UNAVAILABLE, why);
    } while (p && !c->closed);
}

static void
on_close(void *arg, int code)
{
    struct rpc_client *c = arg;
    bool was_up = c->link == LINK_UP;
    char text[ADDR_TEXT];

    c->link = LINK_DOWN;
    c->stream = NULL;
    rpc_reader_done(&c->reader);
    if (!c->closed) {
        snprintf(c->last_error, sizeof(c->last_error), "no server reachable: %s: %s",
                 addr_format(&c->servers[c->current], text), err_name(code));
        c->current = (c->current + 1) % c->n_servers;
        link_lost(c, was_up);
    }
    if (!c->closed && c->pending && !c->retry && c->link == LINK_DOWN) {
        /* half fixed, half random, so that clients of a lost server do not come in step */
        int64_t d = c->backoff_ms / 2 + (int64_t)(rand_u64() % (uint64_t)c->backoff_ms);
        c->backoff_ms = c->backoff_ms * 2 > RPC_BACKOFF_MAX_MS ? RPC_BACKOFF_MAX_MS : c->backoff_ms * 2;
        c->retry = timer_start(c->loop, d, retry_cb, c);
    }
    client_unref(c);
}

static const struct stream_ops client_ops = {
    .on_connect = on_connect, .on_data = on_data, .on_close = on_close};

static void
connect_next(struct rpc_client *c)
{
    if (c->closed || c->link != LINK_DOWN || c->retry || !c->pending)
        return;
    c->link = LINK_CONNECTING;
    c->refs++;
    c->stream = stream_connect(c->loop, &c->servers[c->current], &client_ops, c);
}

/* --- calls out --- */

/* Tells the server, if it knows of the call. */
static void
send_cancel(struct pending *p)
{
    struct rpc_client *c = p->client;
    struct rpc_head h = {
        .kind = RPC_KIND_CANCEL, .version = RPC_VERSION, .method = p->method->id, .id = p->id};
    struct buf b = BUF_INIT(RPC_HEAD);

    if (!p->sent || !(c->local || c->link == LINK_UP))
        return;
    rpc_frame_end(&b, rpc_frame_begin(&b, &h));
    put_out(c, &b);
}

static void
expire_cb(void *arg)
{
    struct pending *p = arg;
    struct rpc_client *c = p->client;

    p->timer = NULL;
    if (!p->code)
        send_cancel(p);
    if (p->code)
        fail(p, p->code, p->why);
    else if (p->sent)
        fail(p, -ERR_TIMEOUT, "no answer in time");
    else
        fail(p, -ERR_UNAVAILABLE, c->last_error[0] ? c->last_error : "no connection in time");
}

static void
fail_soon(struct pending *p, int code, const char *why)
{
    p->code = code;
    p->why = why;
    timer_stop(p->timer);
    p->timer = timer_start(p->client->loop, 0, expire_cb, p);
}

/* The frame of a call; on failure with what it fails. */
static int
put_call(struct pending *p, const struct rpc_request *r, uint32_t deadline_ms, const char **why)
{
    struct rpc_head h = {.kind = RPC_KIND_CALL,
                         .version = RPC_VERSION,
                         .method = p->method->id,
                         .id = p->id,
                         .deadline_ms = deadline_ms};

    buf_init(&p->frame, RPC_HEAD + RPC_FRAME_MAX);
    size_t at = rpc_frame_begin(&p->frame, &h);
    *why = "its region, namespace and token are over 32 KiB";
    if (rpc_put_envelope(&p->frame, r->env) < 0)
        return -ERR_LIMIT;
    mp_encode(&p->frame, p->method->req, r->req);
    rpc_frame_end(&p->frame, at);
    *why = "the request is over 16 MiB";
    return buf_error(&p->frame) ? -ERR_LIMIT : 0;
}

uint64_t
rpc_send(struct rpc_client *c, const struct rpc_request *r, rpc_done *done, void *arg)
{
    struct pending *p = calloc(1, sizeof(*p));
    int64_t timeout_ms = r->timeout_ms > 0 ? r->timeout_ms : RPC_TIMEOUT_DEFAULT_MS;
    const char *why;

    ASSERT(p != NULL);
    if (timeout_ms > RPC_TIMEOUT_MAX_MS)
        timeout_ms = RPC_TIMEOUT_MAX_MS;
    p->client = c;
    p->id = ++c->next_id;
    p->method = rpc_method_by_id(r->id);
    p->done = done;
    p->arg = arg;
    p->queued_ms = loop_now_ms(c->loop);
    ASSERT(p->method != NULL && !c->closed);
    bool full = HASH_COUNT(c->pending) >= (c->local ? RPC_INFLIGHT_LOCAL_MAX : RPC_INFLIGHT_MAX);
    HASH_ADD(hh, c->pending, id, sizeof(p->id), p);
    int code = put_call(p, r, (uint32_t)timeout_ms, &why);
    if (code < 0) {
        fail_soon(p, code, why);
        return p->id;
    }
    if (full) {
        fail_soon(p, -ERR_BUSY, "too many calls wait for the server");
        return p->id;
    }
    p->timer = timer_start(c->loop, timeout_ms, expire_cb, p);
    if (c->local || c->link == LINK_UP) {
        p->sent = true;
        put_out(c, &p->frame);
    } else {
        connect_next(c);
    }
    return p->id;
}

void
rpc_cancel(struct rpc_client *c, uint64_t call_id)
{
    struct pending *p = NULL;

    HASH_FIND(hh, c->pending, &call_id, sizeof(call_id), p);
    if (!p || p->code)
        return;
    send_cancel(p);
    fail_soon(p, -ERR_CANCELED, "canceled");
}

/* --- life --- */

static struct rpc_client *
client_make(struct loop *l)
{
    struct rpc_client *c = mem_new(NULL, struct rpc_client);
    c->loop = l;
    c->refs = 1;
    c->backoff_ms = RPC_BACKOFF_MIN_MS;
    rpc_reader_init(&c->reader, on_frame, c);
    return c;
}

struct rpc_client *
rpc_dial(struct loop *l, const struct str_list *servers, struct err *e)
{
    struct rpc_client *c = client_make(l);

    if (servers->n == 0)
        err_set(e, -ERR_INVALID, "no server address given");
    c->servers = mem_array(c, struct addr, servers->n);
    for (size_t i = 0; i < servers->n; i++)
        if (addr_parse(servers->v[i], 4647, &c->servers[i], e) < 0)
            break;
    c->n_servers = servers->n;
    if (e->code) {
        client_unref(c);
        return NULL;
    }
    return c;
}

struct rpc_client *
rpc_local(struct loop *l, const struct rpc_service *services, size_t n, void *arg)
{
    struct rpc_client *c = client_make(l);
    struct rpc_session_config cfg = {
        .loop = l,
        .services = services,
        .n = n,
        .arg = arg,
        .peer = "local",
        .inflight_max = RPC_INFLIGHT_LOCAL_MAX,
        .local = true,
        .send = local_carrier,
        .carrier = c,
    };
    c->local = true;
    buf_init(&c->to_server, SIZE_MAX);
    buf_init(&c->to_client, SIZE_MAX);
    rpc_reader_init(&c->serve, on_serve_frame, c);
    c->session = rpc_session_new(&cfg);
    return c;
}

void
rpc_client_close(struct rpc_client *c)
{
    if (!c)
        return;
    c->closed = true;
    timer_stop(TAKE(c->retry));
    timer_stop(TAKE(c->pump));
    if (c->stream)
        stream_close(c->stream);
    while (c->pending)
        fail(c->pending, -ERR_CANCELED, "the agent stops");
    rpc_session_free(TAKE(c->session));
    client_unref(c);
}
