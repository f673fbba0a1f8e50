/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP server: listeners, life of connections, timers. Requests are in parse.c, answers in reply.c.
 *
 * A connection has a single timer, whose deadline is moved lazily: when it fires too early it is
 * set again. One request of a connection is open at a time; bytes that come meanwhile wait, up to
 * HTTP_PIPELINE_MAX. When an address has all the connections that it may have, idle ones give way
 * to its next.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "net/http/conn_int.h"
#include "net/limits.h"

void
http_server_unref(struct http_server *s)
{
    if (--s->refs == 0)
        talloc_free(s);
}

/* --- timers: one per connection, moved lazily --- */

static void
deadline_cb(void *arg)
{
    struct http_conn *c = arg;
    struct http_bad bad;

    c->timer = NULL;
    int64_t now = loop_now_ms(c->server->loop);
    if (c->deadline_ms > now) {
        if (c->deadline_ms != INT64_MAX)
            http_conn_deadline(c, c->deadline_ms - now);
        return;
    }
    if (c->state == HTTP_READ_HEAD && c->in.len == 0) {
        c->state = HTTP_CLOSING; /* idle: close without a word */
        stream_close(c->stream);
        return;
    }
    if (c->state == HTTP_READ_HEAD)
        http_bad_set(&bad, 408, "request header took too long");
    else if (c->state == HTTP_READ_BODY)
        http_bad_set(&bad, 408, "request body took too long");
    else
        return;
    http_conn_refuse(c, &bad);
}

void
http_conn_deadline(struct http_conn *c, int64_t delay_ms)
{
    if (delay_ms < 0) {
        c->deadline_ms = INT64_MAX;
        return;
    }
    c->deadline_ms = loop_now_ms(c->server->loop) + delay_ms;
    if (c->timer && c->timer_at_ms <= c->deadline_ms)
        return; /* fires earlier and then starts again */
    timer_stop(c->timer);
    c->timer_at_ms = c->deadline_ms;
    c->timer = timer_start(c->server->loop, delay_ms, deadline_cb, c);
}

/* --- connections --- */

void
http_conn_owes(struct http_conn *c)
{
    size_t queued = stream_queued(c->stream);
    if (queued < STREAM_LOW_WATER)
        queued = 0; /* whose draining nobody tells */
    c->server->answer_bytes += queued - c->owed;
    c->owed = queued;
}

void
http_conn_tell(struct http_conn *c)
{
    struct http_request *r = c->req;
    if (!r || c->state != HTTP_OPEN || r->told)
        return;
    r->told = true;
    timer_stop(TAKE(r->pull_timer));
    if (r->pub.on_close && (!r->answered || r->streaming))
        r->pub.on_close(r->pub.user);
}

/* Takes the open request off the connection, which is going away. */
static void
server_detach(struct http_conn *c)
{
    struct http_request *r = c->req;
    if (!r)
        return;
    if (c->state == HTTP_OPEN) {
        c->req = NULL;
        r->conn = NULL;
        r->pub.peer = mem_strdup(r, r->pub.peer); /* was the stream's */
        timer_stop(TAKE(r->pull_timer));
        if (!r->told && r->pub.on_close && (!r->answered || r->streaming)) {
            r->told = true;
            r->pub.on_close(r->pub.user);
        }
    } else {
        c->req = NULL;
        http_request_drop(r);
    }
}

void
http_conn_refuse(struct http_conn *c, const struct http_bad *bad)
{
    struct buf b = BUF_INIT(4096);

    if (c->req) {
        http_request_drop(c->req);
        c->req = NULL;
    }
    c->state = HTTP_CLOSING;
    buf_done(&c->in);
    buf_printf(&b,
               "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
               "Content-Length: %zu\r\n%sConnection: close\r\n\r\n%s",
               bad->status, http_status_text(bad->status), strlen(bad->why),
               bad->status == 503 ? "Retry-After: 1\r\n" : "", bad->why);
    stream_write(c->stream, &b, 1);
    stream_finish(c->stream, HTTP_LINGER_MS);
}

static void resume_cb(void *arg);

void
http_conn_later(struct http_conn *c)
{
    if (!c->resume)
        c->resume = timer_start(c->server->loop, 0, resume_cb, c);
}

static void
resume_cb(void *arg)
{
    struct http_conn *c = arg;
    c->resume = NULL;
    if (c->state == HTTP_OPEN && c->req && c->req->on_data) {
        /* came with the request for a tunnel */
        struct buf early = c->in;
        buf_init(&c->in, early.max);
        c->req->on_data(c->req->pub.user, early.data, early.len);
        buf_done(&early);
        return;
    }
    if (c->state == HTTP_READ_HEAD && !c->choked)
        stream_read(c->stream, c->in.len <= HTTP_PIPELINE_MAX);
    http_process(c);
}

static void go_on(struct http_conn *c);

void
http_conn_next(struct http_conn *c, bool keep_alive)
{
    c->req = NULL;
    if (!keep_alive || c->eof || c->server->closed) {
        c->state = HTTP_CLOSING;
        stream_finish(c->stream, keep_alive ? 0 : HTTP_LINGER_MS);
        return;
    }
    c->state = HTTP_READ_HEAD;
    c->scanned = 0;
    if (stream_queued(c->stream) >= STREAM_LOW_WATER) {
        c->choked = true; /* until on_drain; STREAM_STALL_MS watches */
        http_conn_deadline(c, -1);
        stream_read(c->stream, false);
        return;
    }
    go_on(c);
}

/* Takes the next request. */
static void
go_on(struct http_conn *c)
{
    c->since_ms = loop_now_ms(c->server->loop);
    http_conn_deadline(c, HTTP_KEEPALIVE_MS);
    stream_read(c->stream, c->in.len <= HTTP_PIPELINE_MAX);
    if (c->in.len == 0)
        buf_done(&c->in);
    else if (!c->processing)
        http_conn_later(c);
}

static void
on_data(void *arg, const uint8_t *p, size_t n)
{
    struct http_conn *c = arg;

    if (c->state == HTTP_CLOSING)
        return;
    if (c->state == HTTP_OPEN && c->req && c->req->on_data && c->in.len == 0) {
        c->req->on_data(c->req->pub.user, p, n);
        return;
    }
    if (c->state == HTTP_READ_BODY) {
        http_feed_body(c, p, n);
    } else {
        buf_put(&c->in, p, n);
        if ((c->state == HTTP_OPEN || c->resume) && c->in.len > HTTP_PIPELINE_MAX)
            stream_read(c->stream, false);
    }
    if (buf_error(&c->in)) {
        stream_close(c->stream);
        return;
    }
    if (!c->resume && !c->choked)
        http_process(c);
}

static void
on_eof(void *arg)
{
    struct http_conn *c = arg;

    c->eof = true;
    if (c->state == HTTP_OPEN)
        http_conn_tell(c); /* and the answer, which must come, still goes out */
    else if (c->state != HTTP_CLOSING && !c->resume)
        stream_close(c->stream);
}

static void
on_drain(void *arg)
{
    struct http_conn *c = arg;
    struct http_request *r = c->req;
    http_conn_owes(c);
    if (c->choked) {
        c->choked = false;
        go_on(c);
        return;
    }
    if (c->state == HTTP_OPEN && r && r->streaming && r->pull && !r->told && !r->pull_timer)
        r->pull(r->pub.user);
}

static void
on_close(void *arg, int code)
{
    struct http_conn *c = arg;
    struct http_server *s = c->server;

    (void)code;
    server_detach(c);
    s->answer_bytes -= c->owed;
    timer_stop(c->timer);
    timer_stop(c->resume);
    buf_done(&c->in);
    if (c->prev)
        c->prev->next = c->next;
    else
        s->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    s->n_conns--;
    talloc_free(c);
    http_server_unref(s);
}

static const struct stream_ops conn_ops = {
    .on_data = on_data, .on_eof = on_eof, .on_drain = on_drain, .on_close = on_close};

/* Idle connections and half requests of an address give way to its next one, the longest waiting
 * first: so who opens many and says nothing keeps nobody out who shares the address. Not those
 * whose request is being answered, or came in this burst and is not read yet. */
static bool
make_room(void *arg, const struct stream *st)
{
    struct http_server *s = arg;
    struct http_conn *oldest = NULL;
    int64_t before_ms = loop_now_ms(s->loop) - s->cfg.give_way_ms;

    for (struct http_conn *c = s->conns; c; c = c->next)
        if ((c->state == HTTP_READ_HEAD || c->state == HTTP_READ_BODY) && !c->choked &&
            c->since_ms <= before_ms && listener_same_peer(c->stream, st) &&
            (!oldest || c->since_ms <= oldest->since_ms))
            oldest = c;
    if (!oldest)
        return false;
    server_detach(oldest);
    oldest->state = HTTP_CLOSING;
    stream_close(oldest->stream);
    return true;
}

void
http_server_serve(struct http_server *s, struct stream *st)
{
    struct http_conn *c = mem_new(NULL, struct http_conn);

    c->server = s;
    c->stream = st;
    c->next = s->conns;
    if (c->next)
        c->next->prev = c;
    s->conns = c;
    s->n_conns++;
    s->refs++;
    /* a whole head, and on top of the bytes kept those of a read */
    buf_init(&c->in, HTTP_PIPELINE_MAX + 2 * STREAM_READ_SIZE);
    c->since_ms = loop_now_ms(s->loop);
    http_conn_deadline(c, s->cfg.header_ms);
    stream_accept(st, &conn_ops, c);
}

static void
on_accept(void *arg, struct stream *st)
{
    struct http_server *s = arg;
    if (s->closed || (s->cfg.conns_all != 0 && s->n_conns >= s->cfg.conns_all))
        stream_close(st);
    else
        http_server_serve(s, st);
}

/* --- the server --- */

struct http_server *
http_server_new(struct loop *l, const struct http_server_config *cfg)
{
    struct http_server *s = mem_new(NULL, struct http_server);
    s->loop = l;
    s->cfg = *cfg;
    s->refs = 1;
    if (s->cfg.conns_max == 0)
        s->cfg.conns_max = LISTENER_CONNS_MAX;
    if (s->cfg.conns_per_peer == 0)
        s->cfg.conns_per_peer = LISTENER_CONNS_PER_PEER;
    if (s->cfg.header_ms <= 0)
        s->cfg.header_ms = HTTP_HEADER_MS;
    if (s->cfg.give_way_ms <= 0)
        s->cfg.give_way_ms = HTTP_GIVE_WAY_MS;
    if (s->cfg.body_idle_ms <= 0)
        s->cfg.body_idle_ms = HTTP_BODY_IDLE_MS;
    return s;
}

static struct listener_config
server_listeners(struct http_server *s)
{
    return (struct listener_config){
        .conns_max = s->cfg.conns_max,
        .per_peer = s->cfg.conns_per_peer,
        .per_loopback = s->cfg.conns_per_loopback,
        .make_room = make_room,
        .busy = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\nRetry-After: 1\r\n"
                "Connection: close\r\n\r\nYour IP is issuing too many concurrent connections, "
                "please rate limit your calls\n",
        .on_accept = on_accept,
        .arg = s,
        .filter = s->cfg.filter,
        .protocol = HTTP_PROTOCOL,
    };
}

int
http_server_listen(struct http_server *s, const char *addr, uint16_t port, struct err *e)
{
    struct addr a;
    const struct listener_config lc = server_listeners(s);
    int r = addr_parse(addr, 1, &a, e);
    if (r < 0)
        return r;
    a.port = port;
    struct listener *n = listener_new(s->loop, &a, &lc, e);
    if (!n)
        return -ERR_INVALID;
    mem_resize(s, s->listeners, struct listener *, s->n_listeners + 1);
    s->listeners[s->n_listeners++] = n;
    return 0;
}

struct http_door {
    struct http_server *server; /* a reference */
    struct listener *listener;
};

struct http_door *
http_door_open(struct http_server *s, int fd, const char *name)
{
    const struct listener_config lc = server_listeners(s);
    struct http_door *d = mem_new(NULL, struct http_door);
    *d = (struct http_door){s, listener_adopt(s->loop, fd, name, &lc)};
    s->refs++;
    return d;
}

void
http_door_close(struct http_door *d)
{
    listener_close(d->listener);
    http_server_unref(d->server);
    talloc_free(d);
}

uint16_t
http_server_port(const struct http_server *s)
{
    for (size_t i = 0; i < s->n_listeners; i++)
        if (listener_port(s->listeners[i]))
            return listener_port(s->listeners[i]);
    return 0;
}

size_t
http_server_conns(const struct http_server *s)
{
    return s->n_conns;
}

/* Ends a stream of which nothing is missing: the client is not to take that for a failure. */
static void
server_end_stream(struct http_conn *c)
{
    const struct http_request *r = c->state == HTTP_OPEN ? c->req : NULL;
    struct buf b = BUF_INIT(16);

    if (r == NULL || !r->streaming || !r->chunked || r->muted || !r->pub.ends_well ||
        r->pub.method == METHOD_HEAD)
        return;
    buf_puts(&b, HTTP_LAST_CHUNK);
    stream_write(c->stream, &b, 1);
}

void
http_server_close(struct http_server *s)
{
    if (!s)
        return;
    s->closed = true;
    for (size_t i = 0; i < s->n_listeners; i++)
        listener_close(s->listeners[i]);
    s->n_listeners = 0;
    for (struct http_conn *c = s->conns; c; c = c->next) {
        server_end_stream(c);
        server_detach(c);
        c->state = HTTP_CLOSING;
        stream_close(c->stream);
    }
    http_server_unref(s);
}

const char *
http_server_date(struct http_server *s)
{
    int64_t now = clock_wall_ns() / NS_PER_S;
    if (now != s->date_s) {
        time_t t = (time_t)now;
        struct tm tm;
        gmtime_r(&t, &tm);
        strftime(s->date, sizeof(s->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        s->date_s = now;
    }
    return s->date;
}
