/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP client: a queue of exchanges over one kept connection, parsed by llhttp. In this order: how
 * an exchange ends; the response, from llhttp's callbacks; requests, with bodies from memory or
 * from a file; http_fetch(), the same for callers without a loop.
 *
 * A kept connection may have been closed by the server just as a request goes out: a GET of which
 * nothing came back then goes over a new one, once.
 */
#include <llhttp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/str.h"
#include "net/http/http.h"
#include "net/stream.h"

struct exchange {
    struct http_client *client;
    struct exchange *next;
    struct http_ask ask; /* strings and bytes copied */
    struct buf out;      /* the request, until sent */
    bool head, sent, retried, complete, tunnel;
    struct timer *timer;
    /* the response as it comes */
    struct http_resp resp;
    struct http_pair *pairs;
    struct buf field, value, body;
    size_t head_bytes;
    bool in_value, headers_done, stopped, enough;
    struct timer *feed; /* of a body that is a file */
    size_t fed;
};

/* One connection; a dropped one may close after its successor was made. */
struct link {
    struct http_client *client;
    struct stream *stream;
};

struct http_client {
    struct loop *loop;
    struct addr addr;
    struct stream_way way; /* a connection is made */
    struct link *link; /* NULL: none */
    bool up, closed;
    bool once; /* it has no address to connect to again */
    bool fresh; /* nothing was exchanged on this connection yet */
    size_t refs;
    struct exchange *queue, **tail; /* the first one is on the wire */
    llhttp_t parser;
    llhttp_settings_t settings;
    struct timer *kick;
};

enum { FEED_CHUNK = 64 << 10, FEED_CHUNKS = 16 };

static void client_start_next(struct http_client *c);
static void client_feed(void *arg);
static void drop_link(struct http_client *c);

static void
client_unref(struct http_client *c)
{
    if (--c->refs == 0)
        talloc_free(c);
}

static void
exchange_free(struct exchange *x)
{
    timer_stop(x->timer);
    timer_stop(x->feed);
    buf_done(&x->out);
    buf_done(&x->field);
    buf_done(&x->value);
    buf_done(&x->body);
    talloc_free(x);
}

static void
unlink_exchange(struct exchange *x)
{
    struct http_client *c = x->client;
    for (struct exchange **p = &c->queue; *p; p = &(*p)->next)
        if (*p == x) {
            *p = x->next;
            if (c->tail == &x->next)
                c->tail = p;
            return;
        }
}

/* Completes and frees; e NULL is success. */
static void
client_finish(struct exchange *x, const struct err *e)
{
    unlink_exchange(x);
    if (!e) {
        x->resp.body = buf_str(&x->body);
        x->resp.body_len = x->body.len;
    }
    if (x->ask.done)
        x->ask.done(x->ask.arg, e, e ? NULL : &x->resp);
    exchange_free(x);
}

static void
client_fail(struct exchange *x, int code, const char *why)
{
    struct err e = ERR_INIT;
    char text[ADDR_TEXT];

    err_set(&e, code, "%s %s at %s: %s", x->ask.method, x->ask.target,
            addr_format(&x->client->addr, text), why);
    client_finish(x, &e);
}

/* --- response --- */

static int
count_head(struct exchange *x, size_t n)
{
    x->head_bytes += n;
    return x->head_bytes > 2 * HTTP_HEADER_BYTES_MAX ? HPE_USER : 0;
}

static int
end_header(struct exchange *x)
{
    if (!x->in_value)
        return 0;
    if (x->resp.n_headers == HTTP_HEADERS_MAX)
        return HPE_USER;
    char *k = mem_strndup(x, (char *)x->field.data, x->field.len);
    char *v = mem_strndup(x, x->value.data ? (char *)x->value.data : "", x->value.len);
    for (char *p = k; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    mem_resize(x, x->pairs, struct http_pair, x->resp.n_headers + 1);
    x->pairs[x->resp.n_headers++] = (struct http_pair){k, v};
    x->resp.headers = x->pairs;
    buf_reset(&x->field);
    buf_reset(&x->value);
    x->in_value = false;
    return 0;
}

static int
on_field(llhttp_t *p, const char *at, size_t n)
{
    struct exchange *x = ((struct http_client *)p->data)->queue;
    if (end_header(x) != 0)
        return HPE_USER;
    buf_put(&x->field, at, n);
    return count_head(x, n);
}

static int
on_value(llhttp_t *p, const char *at, size_t n)
{
    struct exchange *x = ((struct http_client *)p->data)->queue;
    x->in_value = true;
    buf_put(&x->value, at, n);
    return count_head(x, n);
}

static int
on_headers_complete(llhttp_t *p)
{
    struct exchange *x = ((struct http_client *)p->data)->queue;
    if (end_header(x) != 0)
        return -1;
    p->upgrade = 0;
    x->resp.status = llhttp_get_status_code(p);
    x->headers_done = true;
    if (x->resp.status == 200 && !x->head && x->ask.on_head)
        x->ask.on_head(x->ask.arg, &x->resp);
    return x->head ? 1 : 0;
}

static int
on_body(llhttp_t *p, const char *at, size_t n)
{
    struct exchange *x = ((struct http_client *)p->data)->queue;
    if (x->ask.on_body && x->resp.status < 300) {
        if (!x->ask.on_body(x->ask.arg, &x->resp, at, n)) {
            x->stopped = true;
            return HPE_USER;
        }
        return 0;
    }
    size_t left = x->ask.body_enough ? x->ask.body_enough - x->body.len : SIZE_MAX;
    buf_put(&x->body, at, n < left ? n : left);
    if (n >= left) { /* the rest is of no interest */
        x->enough = x->complete = true;
        return HPE_PAUSED;
    }
    return buf_error(&x->body) ? HPE_USER : 0;
}

static int
on_message_complete(llhttp_t *p)
{
    struct exchange *x = ((struct http_client *)p->data)->queue;
    if (x->resp.status / 100 == 1 && x->resp.status != 101) { /* an interim response */
        x->resp.status = 0;
        x->resp.n_headers = 0;
        x->headers_done = false;
        return 0;
    }
    x->complete = true;
    return HPE_PAUSED;
}

static void
drop_link(struct http_client *c)
{
    struct link *k = TAKE(c->link);
    c->up = false;
    if (k)
        stream_close(k->stream);
}

/* Bytes of a tunnel. False: the caller has had enough. */
static bool
client_pass(struct exchange *x, const uint8_t *p, size_t n)
{
    return n == 0 || x->ask.on_body(x->ask.arg, &x->resp, p, n);
}

static void
client_stop_exchange(struct http_client *c, struct exchange *x)
{
    drop_link(c);
    client_fail(x, -ERR_CANCELED, "stopped by the caller");
    if (!c->closed)
        client_start_next(c);
}

/* The exchange on the wire is over: next one, on this connection if it lives. */
static void
client_completed(struct http_client *c, bool keep)
{
    c->fresh = false;
    if (!keep)
        drop_link(c);
    c->refs++;
    client_finish(c->queue, NULL);
    if (!c->closed)
        client_start_next(c);
    client_unref(c);
}

static void
on_data(void *arg, const uint8_t *p, size_t n)
{
    struct link *k = arg;
    struct http_client *c = k->client;
    struct exchange *x = c->queue;

    if (!x || !x->sent) { /* bytes nobody asked for */
        drop_link(c);
        return;
    }
    c->refs++;
    if (x->tunnel) {
        if (!client_pass(x, p, n))
            client_stop_exchange(c, x);
        client_unref(c);
        return;
    }
    llhttp_errno_t e = llhttp_execute(&c->parser, (const char *)p, n);
    if (c->closed || c->link != k) {
        client_unref(c);
        return;
    }
    if (e == HPE_PAUSED && x->complete && x->resp.status == 101 && x->ask.on_tunnel) {
        const uint8_t *rest = (const uint8_t *)llhttp_get_error_pos(&c->parser);
        x->tunnel = true;
        if (!x->ask.on_tunnel(x->ask.arg, &x->resp) ||
            !client_pass(x, rest, (size_t)(p + n - rest)))
            client_stop_exchange(c, x);
    } else if (e == HPE_PAUSED && x->complete) {
        bool all = llhttp_get_error_pos(&c->parser) == (const char *)p + n;
        client_completed(c, all && !x->enough && llhttp_should_keep_alive(&c->parser));
    } else if (e != HPE_OK) {
        if (x->stopped) {
            client_stop_exchange(c, x);
        } else {
            drop_link(c);
            client_fail(x, -ERR_CORRUPT,
                        e == HPE_USER ? "the response is too large"
                                      : llhttp_get_error_reason(&c->parser));
            if (!c->closed)
                client_start_next(c);
        }
    }
    client_unref(c);
}

static void
on_eof(void *arg)
{
    struct link *k = arg;
    struct http_client *c = k->client;
    struct exchange *x = c->queue;

    if (x && x->tunnel) {
        client_completed(c, false);
        return;
    }
    if (x && x->sent && x->headers_done) {
        llhttp_errno_t e = llhttp_finish(&c->parser);
        if ((e == HPE_OK || e == HPE_PAUSED) && x->complete) {
            client_completed(c, false);
            return;
        }
    }
    stream_close(k->stream); /* on_close tells the exchange */
}

static void
on_connect(void *arg)
{
    struct http_client *c = ((struct link *)arg)->client;
    c->up = true;
    c->fresh = true;
    client_start_next(c);
}

static void
on_close(void *arg, int code)
{
    struct link *k = arg;
    struct http_client *c = k->client;
    struct exchange *x = c->queue;

    if (!c->closed && c->link == k) { /* not closed by us */
        bool reused = c->up && !c->fresh;
        c->up = false;
        c->link = NULL;
        if (x && x->sent && reused && !x->retried && x->head_bytes == 0 &&
            strcmp(x->ask.method, "GET") == 0) {
            x->retried = true; /* an idle connection that the server had closed */
            x->sent = false;
            client_start_next(c);
        } else if (x) {
            const char *why = stream_why(k->stream);
            client_fail(x, code ? code : -ERR_CLOSED,
                        why != NULL ? why
                        : x->sent   ? "the connection closed before the response was complete"
                                    : err_name(code ? code : -ERR_CLOSED));
            if (!c->closed)
                client_start_next(c);
        }
    }
    talloc_free(k);
    client_unref(c);
}

static void
on_drain(void *arg)
{
    struct link *k = arg;
    struct exchange *x = k->client->link == k ? k->client->queue : NULL;
    if (x && x->tunnel && x->ask.on_drain)
        x->ask.on_drain(x->ask.arg);
    else if (x && x->sent && !x->tunnel && !x->ask.body && x->fed < x->ask.body_len && !x->feed)
        x->feed = timer_start(k->client->loop, 0, client_feed, x);
}

static const struct stream_ops client_ops = {.on_connect = on_connect,
                                             .on_data = on_data,
                                             .on_eof = on_eof,
                                             .on_drain = on_drain,
                                             .on_close = on_close};

/* --- requests --- */

static void
put_request(struct exchange *x, struct buf *b)
{
    const struct http_ask *a = &x->ask;
    char host[ADDR_TEXT];

    buf_printf(b, "%s %s HTTP/1.1\r\nHost: %s\r\n", a->method, a->target,
               a->host                 ? a->host
               : x->client->addr.is_unix ? "localhost"
                                         : addr_format(&x->client->addr, host));
    for (size_t i = 0; i < a->n_headers; i++)
        buf_printf(b, "%s: %s\r\n", a->headers[i].k, a->headers[i].v);
    if (a->content_type)
        buf_printf(b, "Content-Type: %s\r\n", a->content_type);
    if (a->body_len > 0 || (strcmp(a->method, "GET") != 0 && strcmp(a->method, "HEAD") != 0))
        buf_printf(b, "Content-Length: %zu\r\n", a->body_len);
    buf_puts(b, "\r\n");
    if (a->body)
        buf_put(b, a->body, a->body_len);
}

/* Bytes of the file that is the body, as fast as they are taken, and no more than so many at once:
 * others want their turn. */
static void
client_feed(void *arg)
{
    struct exchange *x = arg;
    struct http_client *c = x->client;
    x->feed = NULL;
    for (int i = 0; i < FEED_CHUNKS && x->fed < x->ask.body_len; i++) {
        size_t left = x->ask.body_len - x->fed, want = left < FEED_CHUNK ? left : FEED_CHUNK;
        struct buf b = BUF_INIT(FEED_CHUNK);
        uint8_t *p = buf_reserve(&b, want);
        ssize_t n = p ? pread(x->ask.body_fd, p, want, (off_t)x->fed) : -1;
        if (n <= 0) { /* the server waits for the rest in vain: there is no other end */
            buf_done(&b);
            drop_link(c);
            c->refs++;
            client_fail(x, -ERR_CLOSED,
                        "the file that is sent has become shorter, or is not readable");
            if (!c->closed)
                client_start_next(c);
            client_unref(c);
            return;
        }
        b.len = (size_t)n;
        x->fed += (size_t)n;
        stream_write(c->link->stream, &b, 1);
        if (stream_queued(c->link->stream) >= STREAM_LOW_WATER)
            return; /* on_drain goes on */
    }
    if (x->fed < x->ask.body_len)
        x->feed = timer_start(c->loop, 0, client_feed, x);
}

static void
client_start_next(struct http_client *c)
{
    struct exchange *x = c->queue;

    if (!x || x->sent || c->closed)
        return;
    if (!c->link && c->once) {
        client_fail(x, -ERR_CLOSED, "the connection has gone");
        return;
    }
    if (!c->link) {
        c->refs++;
        c->link = mem_new(NULL, struct link);
        c->link->client = c;
        c->link->stream = stream_connect(c->loop, &c->addr, &c->way, &client_ops, c->link);
        return;
    }
    if (!c->up)
        return;
    struct buf b = BUF_INIT(SIZE_MAX);
    put_request(x, &b);
    x->sent = true;
    x->complete = x->headers_done = false;
    llhttp_init(&c->parser, HTTP_RESPONSE, &c->settings);
    c->parser.data = c;
    stream_write(c->link->stream, &b, 1);
    x->fed = 0;
    if (!x->ask.body && x->ask.body_len > 0)
        x->feed = timer_start(c->loop, 0, client_feed, x);
}

static void
kick_cb(void *arg)
{
    struct http_client *c = arg;
    c->kick = NULL;
    client_start_next(c);
}

static void
timeout_cb(void *arg)
{
    struct exchange *x = arg;
    struct http_client *c = x->client;

    x->timer = NULL;
    if (x == c->queue)
        drop_link(c);
    c->refs++;
    client_fail(x, -ERR_TIMEOUT, "no answer in time");
    if (!c->closed)
        client_start_next(c);
    client_unref(c);
}

void
http_send(struct http_client *c, const struct http_ask *ask)
{
    struct exchange *x = mem_new(NULL, struct exchange);

    x->client = c;
    x->ask = *ask;
    x->ask.method = mem_strdup(x, ask->method);
    x->ask.target = mem_strdup(x, ask->target);
    x->ask.host = mem_strdup(x, ask->host);
    x->ask.content_type = mem_strdup(x, ask->content_type);
    x->ask.body = ask->body && ask->body_len ? mem_dup(x, ask->body, ask->body_len) : NULL;
    struct http_pair *pairs = mem_array(x, struct http_pair, ask->n_headers);
    for (size_t i = 0; i < ask->n_headers; i++) {
        pairs[i].k = mem_strdup(x, ask->headers[i].k);
        pairs[i].v = mem_strdup(x, ask->headers[i].v);
    }
    x->ask.headers = pairs;
    x->head = strcmp(ask->method, "HEAD") == 0;
    buf_init(&x->field, 2 * HTTP_HEADER_BYTES_MAX);
    buf_init(&x->value, 2 * HTTP_HEADER_BYTES_MAX);
    buf_init(&x->body, HTTP_CLIENT_BODY_MAX);
    *c->tail = x;
    c->tail = &x->next;
    if (ask->timeout_ms > 0)
        x->timer = timer_start(c->loop, ask->timeout_ms, timeout_cb, x);
    if (c->queue == x && !c->kick)
        c->kick = timer_start(c->loop, 0, kick_cb, c);
}

static struct http_client *
client_make(struct loop *l)
{
    struct http_client *c = mem_new(NULL, struct http_client);

    c->loop = l;
    c->refs = 1;
    c->tail = &c->queue;
    llhttp_settings_init(&c->settings);
    c->settings.on_header_field = on_field;
    c->settings.on_header_value = on_value;
    c->settings.on_headers_complete = on_headers_complete;
    c->settings.on_body = on_body;
    c->settings.on_message_complete = on_message_complete;
    return c;
}

struct http_client *
http_client_new(const struct dialer *d, const char *addr, struct err *e)
{
    struct addr a;
    bool https = d->filter != NULL && str_prefix(addr, "https://");
    auto_mem char *plain = https ? mem_printf(NULL, "http://%s", addr + strlen("https://")) : NULL;

    if (addr_parse(https ? plain : addr, 4646, &a, e) < 0)
        return NULL;
    struct http_client *c = client_make(d->loop);
    c->addr = a;
    c->addr.outside = d->outside;
    if (https)
        c->way = (struct stream_way){.filter = d->filter,
                                     .name = mem_strdup(c, d->name != NULL ? d->name : a.host),
                                     .protocol = HTTP_PROTOCOL};
    return c;
}

struct http_client *
http_client_over(struct loop *l, struct stream *st)
{
    struct http_client *c = client_make(l);

    c->addr = (struct addr){.host = "the other side", .is_unix = true};
    c->once = c->up = c->fresh = true;
    c->refs++;
    c->link = mem_new(NULL, struct link);
    *c->link = (struct link){c, st};
    stream_accept(st, &client_ops, c->link);
    return c;
}

void
http_client_read(struct http_client *c, bool on)
{
    if (c->link && c->up)
        stream_read(c->link->stream, on);
}

void
http_client_write(struct http_client *c, struct buf *b)
{
    if (c->link && c->queue && c->queue->tunnel)
        stream_write(c->link->stream, b, 1);
    else
        buf_done(b);
}

void
http_client_end(struct http_client *c)
{
    if (c->link && c->queue && c->queue->tunnel)
        stream_end(c->link->stream);
}

size_t
http_client_queued(const struct http_client *c)
{
    return c->link ? stream_queued(c->link->stream) : 0;
}

void
http_client_close(struct http_client *c)
{
    if (!c)
        return;
    c->closed = true;
    timer_stop(TAKE(c->kick));
    drop_link(c);
    while (c->queue)
        client_fail(c->queue, -ERR_CANCELED, "canceled");
    client_unref(c);
}

/* --- synchronous --- */

struct fetch {
    const void *ctx;
    bool over;
    struct http_resp *resp;
    struct err err;
    const struct http_ask *ask;
};

static void
fetch_done(void *arg, const struct err *e, const struct http_resp *r)
{
    struct fetch *f = arg;

    f->over = true;
    if (e) {
        f->err = *e;
        return;
    }
    struct http_resp *o = mem_new(f->ctx, struct http_resp);
    struct http_pair *pairs = mem_array(o, struct http_pair, r->n_headers);
    for (size_t i = 0; i < r->n_headers; i++) {
        pairs[i].k = mem_strdup(o, r->headers[i].k);
        pairs[i].v = mem_strdup(o, r->headers[i].v);
    }
    o->status = r->status;
    o->headers = pairs;
    o->n_headers = r->n_headers;
    o->body_len = r->body_len;
    o->body = mem_dup(o, r->body, r->body_len + 1); /* with its NUL */
    f->resp = o;
}

static bool
fetch_body(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct fetch *f = arg;
    return f->ask->on_body(f->ask->arg, r, p, n);
}

int
http_fetch(const void *ctx, const char *addr, const struct http_ask *ask, struct http_resp **ret,
           struct err *e)
{
    struct fetch f = {.ctx = ctx, .err = ERR_INIT, .ask = ask};
    struct http_ask a = *ask;
    struct loop *l = loop_new();
    struct dialer d = ask->dialer != NULL ? *ask->dialer : (struct dialer){0};
    d.loop = l;
    struct http_client *c = http_client_new(&d, addr, e);

    if (!c) {
        loop_free(l);
        return e->code;
    }
    a.done = fetch_done;
    a.on_body = ask->on_body ? fetch_body : NULL;
    a.arg = &f;
    http_send(c, &a);
    loop_run_until(l, &f.over, -1);
    http_client_close(c);
    loop_free(l);
    if (f.err.code)
        return err_set(e, f.err.code, "%s", f.err.text);
    *ret = f.resp;
    return 0;
}

const char *
http_resp_header(const struct http_resp *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (strcmp(r->headers[i].k, name) == 0)
            return r->headers[i].v;
    return NULL;
}

void
http_escape(struct buf *out, const char *s, bool keep_slash)
{
    static const char hex[] = "0123456789ABCDEF";

    for (; *s; s++) {
        unsigned char ch = (unsigned char)*s;
        bool plain = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
                     (ch >= '0' && ch <= '9') || strchr("-._~", ch) || (ch == '/' && keep_slash);
        if (plain) {
            buf_putc(out, (char)ch);
        } else {
            buf_putc(out, '%');
            buf_putc(out, hex[ch >> 4]);
            buf_putc(out, hex[ch & 15]);
        }
    }
}
