/* SPDX-License-Identifier: Apache-2.0
 *
 * WebSocket connections: messages over a tunnel of the HTTP server or client, and both handshakes
 * (RFC 6455, section 4).
 */
#include "net/http/ws.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "codec/base64.h"
#include "common/mem.h"
#include "common/random.h"
#include "net/http/scan_int.h"

enum { KEY_BYTES = 16, KEY_TEXT = 24, ACCEPT_TEXT = 28 };

struct ws {
    struct loop *loop;
    const struct ws_ops *ops;
    void *arg;
    struct http_req *req;       /* the tunnel, of a server, who owns us */
    struct http_client *client; /* the tunnel, of a client */
    struct ws_reader in;
    struct buf rest;      /* bytes that came while reading was held */
    struct timer *resume; /* zero delay: read what is in `rest` */
    bool held;            /* by the owner */
    bool choked;          /* by what waits for the peer: pongs to a peer that does not read */
    bool feeding, closed;
    bool ending; /* the client object is being closed */
    char accept[ACCEPT_TEXT + 1]; /* what the server must answer */
};

/* --- the end --- */

/* Frees; the tunnel is another's business by now. */
static void
ws_release(struct ws *w)
{
    timer_stop(TAKE(w->resume));
    ws_reader_done(&w->in);
    buf_done(&w->rest);
    if (w->req)
        http_stream_end(w->req);
    else
        talloc_free(w);
}

/* After `closed` was set: the transport ends, now or when the bytes at hand are through. */
static void
ws_end(struct ws *w)
{
    if (w->feeding)
        return;
    w->ending = true;
    if (w->req)
        ws_release(w);
    else
        http_client_close(w->client); /* client_done comes, and releases */
}

/* The peer, or its connection, is through. */
static void
ws_tell(struct ws *w, unsigned code, const char *why)
{
    if (w->closed)
        return;
    w->closed = true;
    w->ops->on_close(w->arg, code, why);
}

/* --- writing --- */

static const uint8_t *
mask_of(const struct ws *w, uint8_t mask[4])
{
    if (w->req)
        return NULL;
    rand_bytes(mask, 4);
    return mask;
}

static void
write_buf(struct ws *w, struct buf *b)
{
    if (w->req)
        http_stream_write(w->req, b->data, b->len);
    else
        http_client_write(w->client, b);
    buf_done(b);
}

static void
ws_put_frame(struct ws *w, enum ws_op op, const void *p, size_t n)
{
    struct buf b = BUF_INIT(HTTP_STREAM_MAX);
    uint8_t mask[4];
    ws_put(&b, op, p, n, mask_of(w, mask));
    write_buf(w, &b);
}

void
ws_send(struct ws *w, const void *p, size_t n)
{
    if (!w->closed)
        ws_put_frame(w, WS_TEXT, p, n);
}

size_t
ws_queued(const struct ws *w)
{
    return w->req ? http_stream_queued(w->req) : http_client_queued(w->client);
}

static void
say_close(struct ws *w, unsigned code, const char *reason)
{
    struct buf b = BUF_INIT(WS_HEADER_MAX + WS_CONTROL_MAX);
    uint8_t mask[4];
    ws_put_close(&b, code, reason, mask_of(w, mask));
    write_buf(w, &b);
}

void
ws_close(struct ws *w, unsigned code, const char *reason)
{
    if (!w || w->closed)
        return;
    w->closed = true;
    say_close(w, code, reason);
    ws_end(w);
}

/* --- reading --- */

static void
tunnel_read(struct ws *w)
{
    bool on = !w->held && !w->choked;
    if (w->req)
        http_tunnel_read(w->req, on);
    else
        http_client_read(w->client, on);
}

static void
on_close_frame(struct ws *w, const struct ws_message *m)
{
    char reason[WS_REASON_MAX + 1];

    snprintf(reason, sizeof(reason), "%.*s", (int)m->n, m->n ? (const char *)m->p : "");
    say_close(w, m->code, "");
    ws_tell(w, m->code, reason);
}

static void
ws_got(struct ws *w, const struct ws_message *m)
{
    if (m->op == WS_TEXT || m->op == WS_BINARY)
        w->ops->on_message(w->arg, m->p, m->n);
    else if (m->op == WS_PING)
        ws_put_frame(w, WS_PONG, m->p, m->n);
    else if (m->op == WS_CLOSE)
        on_close_frame(w, m);
}

/* Bytes of the peer. False: the connection is over, and `w` is to be ended. */
static bool
ws_feed(struct ws *w, const uint8_t *p, size_t n)
{
    w->feeding = true;
    while (!w->closed && !w->held) {
        struct ws_message m;
        int rc = ws_reader_take(&w->in, &p, &n, &m);
        if (rc == 0)
            break;
        if (rc > 0) {
            ws_got(w, &m);
        } else {
            say_close(w, (unsigned)-rc, w->in.why);
            ws_tell(w, (unsigned)-rc, w->in.why);
        }
    }
    buf_put(&w->rest, p, n);
    if (buf_error(&w->rest))
        ws_tell(w, WS_INTERNAL, "no memory for what came");
    w->feeding = false;
    if (w->closed)
        return false;
    if (!w->choked && ws_queued(w) >= STREAM_LOW_WATER) {
        w->choked = true;
        tunnel_read(w);
    }
    return true;
}

static void
resume_cb(void *arg)
{
    struct ws *w = arg;
    struct buf rest = w->rest;

    w->resume = NULL;
    buf_init(&w->rest, rest.max);
    bool on = ws_feed(w, rest.data, rest.len);
    buf_done(&rest);
    if (!on)
        ws_end(w);
    else if (!w->held)
        tunnel_read(w);
}

void
ws_read(struct ws *w, bool on)
{
    if (w->closed || w->held == !on)
        return;
    w->held = !on;
    if (on && w->rest.len > 0 && !w->resume)
        w->resume = timer_start(w->loop, 0, resume_cb, w);
    else if (!w->resume)
        tunnel_read(w);
}

static void
on_drain(void *arg)
{
    struct ws *w = arg;

    if (w->choked) {
        w->choked = false;
        if (!w->resume)
            tunnel_read(w);
    }
    w->ops->on_drain(w->arg);
}

static struct ws *
ws_make(const void *ctx, struct loop *l, const struct ws_ops *ops, void *arg)
{
    struct ws *w = mem_new(ctx, struct ws);

    w->loop = l;
    w->ops = ops;
    w->arg = arg;
    /* bytes that came with the handshake, and the most that a read adds */
    buf_init(&w->rest, HTTP_PIPELINE_MAX + 2 * STREAM_READ_SIZE);
    return w;
}

/* --- the handshake --- */

/* Section 4.2.2: what answers a key. */
static bool
accept_text(const char *key, char out[ACCEPT_TEXT + 1])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    char text[KEY_TEXT + sizeof(guid)];
    uint8_t md[EVP_MAX_MD_SIZE];
    unsigned n;
    struct buf b = BUF_INIT(ACCEPT_TEXT + 1);

    snprintf(text, sizeof(text), "%s%s", key, guid);
    if (EVP_Digest(text, strlen(text), md, &n, EVP_sha1(), NULL) != 1)
        return false;
    base64_encode(&b, md, n);
    snprintf(out, ACCEPT_TEXT + 1, "%s", buf_str(&b));
    buf_done(&b);
    return true;
}

static bool
key_valid(const char *key)
{
    uint8_t raw[BASE64_DECODED(KEY_TEXT)];
    size_t n;
    return strlen(key) == KEY_TEXT && base64_decode(key, KEY_TEXT, raw, &n) == 0 && n == KEY_BYTES;
}

/* The header, when it is there once. */
static const char *
ws_only(const struct http_req *r, const char *name)
{
    const char *v = NULL;
    for (size_t i = 0; i < r->n_headers; i++)
        if (strcmp(r->headers[i].k, name) == 0) {
            if (v)
                return NULL;
            v = r->headers[i].v;
        }
    return v;
}

static void
other_version(struct http_req *r)
{
    http_header_add(r, "Sec-WebSocket-Version", "13");
    http_fail(r, 426, "Sec-WebSocket-Version must be 13");
}

/* Section 4.2.1. */
bool
ws_check(struct http_req *r)
{
    const char *version = ws_only(r, "sec-websocket-version"),
               *key = ws_only(r, "sec-websocket-key");

    if (http_closed(r))
        http_fail(r, 499, "client gone");
    else if (r->method != METHOD_GET || !http_list_has(http_header(r, "connection"), "upgrade") ||
        !http_list_has(http_header(r, "upgrade"), "websocket"))
        http_fail(r, 400, "this is a WebSocket: ask with GET and \"Upgrade: websocket\"");
    else if (!version || strcmp(version, "13") != 0)
        other_version(r);
    else if (!key || !key_valid(key))
        http_fail(r, 400, "Sec-WebSocket-Key must be 16 bytes in base64");
    else
        return true;
    return false;
}

/* --- server --- */

static void
server_data(void *user, const void *p, size_t n)
{
    struct ws *w = user;
    if (!ws_feed(w, p, n))
        ws_end(w);
}

static void
server_gone(void *user)
{
    struct ws *w = user;
    ws_tell(w, WS_ABNORMAL, "the connection ended");
    ws_end(w);
}

struct ws *
ws_accept(struct loop *l, struct http_req *r, const struct ws_ops *ops, void *arg)
{
    if (!ws_check(r))
        return NULL;
    struct ws *w = ws_make(r, l, ops, arg);
    if (!accept_text(http_header(r, "sec-websocket-key"), w->accept)) {
        talloc_free(w);
        http_fail(r, 500, "SHA-1 failed: is OpenSSL in order?");
        return NULL;
    }
    w->req = r;
    ws_reader_init(&w->in, true, WS_MESSAGE_MAX);
    r->user = w;
    r->on_close = server_gone;
    http_header_add(r, "Upgrade", "websocket");
    http_header_add(r, "Connection", "Upgrade");
    http_header_add(r, "Sec-WebSocket-Accept", w->accept);
    http_tunnel_start(r, server_data, on_drain);
    return w;
}

/* --- client --- */

static bool
client_tunnel(void *arg, const struct http_resp *r)
{
    struct ws *w = arg;
    const char *got_text = http_resp_header(r, "sec-websocket-accept");

    w->feeding = true;
    if (!got_text || strcmp(got_text, w->accept) != 0)
        ws_tell(w, 0, "the answer is not that of a WebSocket server");
    else if (w->ops->on_open)
        w->ops->on_open(w->arg);
    w->feeding = false;
    return !w->closed;
}

static bool
client_data(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    (void)r;
    return ws_feed(arg, p, n);
}

static void
client_done(void *arg, const struct err *e, const struct http_resp *r)
{
    struct ws *w = arg;
    struct http_client *c = w->client;
    bool ending = w->ending;

    if (r && r->status != 101)
        ws_tell(w, 0,
                mem_printf(w, "Unexpected response code: %d (%.*s)", r->status,
                           (int)(r->body_len < 900 ? r->body_len : 900), r->body));
    else
        ws_tell(w, WS_ABNORMAL, e ? e->text : "the connection ended");
    ws_release(w);
    if (!ending)
        http_client_close(c);
}

struct ws *
ws_connect(struct loop *l, const char *addr, const struct http_ask *ask, const struct ws_ops *ops,
           void *arg, struct err *e)
{
    struct ws *w = ws_make(NULL, l, ops, arg);
    struct buf key = BUF_INIT(KEY_TEXT + 1);
    uint8_t raw[KEY_BYTES];

    struct dialer d = ask->dialer != NULL ? *ask->dialer : (struct dialer){0};
    d.loop = l;
    w->client = http_client_new(&d, addr, e);
    rand_bytes(raw, sizeof(raw));
    base64_encode(&key, raw, sizeof(raw));
    if (!w->client || !accept_text(buf_str(&key), w->accept)) {
        if (w->client)
            err_set(e, -ERR_INTERNAL, "SHA-1 failed: is OpenSSL in order?");
        http_client_close(w->client);
        talloc_free(w);
        buf_done(&key);
        return NULL;
    }
    ws_reader_init(&w->in, false, WS_MESSAGE_MAX);
    const struct http_pair ours[] = {{"Connection", "Upgrade"},
                                     {"Upgrade", "websocket"},
                                     {"Sec-WebSocket-Version", "13"},
                                     {"Sec-WebSocket-Key", buf_str(&key)}};
    struct http_pair *all = mem_array(w, struct http_pair, ARRAY_LEN(ours) + ask->n_headers);
    memcpy(all, ours, sizeof(ours));
    if (ask->n_headers)
        memcpy(all + ARRAY_LEN(ours), ask->headers, ask->n_headers * sizeof(*all));
    struct http_ask a = {.method = "GET",
                         .target = ask->target,
                         .headers = all,
                         .n_headers = ARRAY_LEN(ours) + ask->n_headers,
                         .on_tunnel = client_tunnel,
                         .on_body = client_data,
                         .on_drain = on_drain,
                         .done = client_done,
                         .arg = w};
    http_send(w->client, &a);
    talloc_free(all);
    buf_done(&key);
    return w;
}
