/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP server: answers, whole (compressed when asked for) or chunked with pull. In this order: what
 * a handler reads of its request; heads; whole answers, and their compression by a worker; streams
 * and tunnels.
 *
 * A request lives until its answer is complete, also when its connection is gone: then the answer
 * is dropped here, and only here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "net/http/conn_int.h"
#include "net/http/gzip_int.h"
#include "net/limits.h"

const char *
http_method_name(enum http_method m)
{
    static const char *const names[] = {"GET",    "HEAD",    "POST",  "PUT",
                                        "DELETE", "OPTIONS", "PATCH", "OTHER"};
    return names[m];
}

const char *
http_query(const struct http_req *r, const char *name)
{
    for (size_t i = 0; i < r->n_query; i++)
        if (strcmp(r->query[i].k, name) == 0)
            return r->query[i].v;
    return NULL;
}

const char *
http_header(const struct http_req *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (strcmp(r->headers[i].k, name) == 0)
            return r->headers[i].v;
    return NULL;
}

const char *
http_status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } t[] = {
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {301, "Moved Permanently"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Payload Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {426, "Upgrade Required"},
        {431, "Request Header Fields Too Large"},
        {499, "Client Closed Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        if (t[i].status == status)
            return t[i].text;
    return "Status";
}

static struct http_request *
reply_request(const struct http_req *r)
{
    return (struct http_request *)(uintptr_t)r;
}

void
http_request_drop(struct http_request *r)
{
    struct http_server *s = r->server;

    s->body_bytes -= r->charged;
    buf_done(&r->body);
    free(r->room);
    talloc_free(r);
    http_server_unref(s);
}

void
http_forget(struct http_req *pub)
{
    struct http_request *r = reply_request(pub);

    free(TAKE(r->room));
    pub->target = pub->path = "";
    pub->query = pub->headers = NULL;
    pub->n_query = pub->n_headers = 0;
}

bool
http_closed(const struct http_req *r)
{
    return reply_request(r)->conn == NULL || reply_request(r)->told;
}

static bool
header_ok(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < ' ' && *s != '\t') || *s == 0x7f)
            return false;
    return true;
}

void
http_header_add(struct http_req *pub, const char *name, const char *value)
{
    struct http_request *r = reply_request(pub);
    ASSERT(!r->answered);
    if (!header_ok(name) || !header_ok(value) || r->n_out == HTTP_HEADERS_MAX)
        return;
    mem_resize(r, r->out, struct http_pair, r->n_out + 1);
    r->out[r->n_out++] = (struct http_pair){mem_strdup(r, name), mem_strdup(r, value)};
}

static void
put_pairs(struct buf *b, const struct http_pair *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_puts(b, p[i].k);
        buf_put(b, ": ", 2);
        buf_puts(b, p[i].v);
        buf_put(b, "\r\n", 2);
    }
}

static bool
reply_bodyless(int status)
{
    return status == 204 || status == 304 || status < 200;
}

/* Head of the answer; `length` -1: chunked (or until close in 1.0). */
static void
put_head(struct http_request *r, struct buf *b, int status, const char *ctype, int64_t length)
{
    struct http_server *s = r->conn->server;

    buf_printf(b, "HTTP/1.%d %d %s\r\nDate: %s\r\n", r->http10 ? 0 : 1, status,
               http_status_text(status), http_server_date(s));
    if (ctype && header_ok(ctype))
        buf_printf(b, "Content-Type: %s\r\n", ctype);
    put_pairs(b, r->out, r->n_out);
    put_pairs(b, s->cfg.headers, s->cfg.n_headers);
    if (length >= 0 && !reply_bodyless(status))
        buf_printf(b, "Content-Length: %lld\r\n", (long long)length);
    else if (length < 0 && r->chunked)
        buf_puts(b, "Transfer-Encoding: chunked\r\n");
    if (!r->keep_alive)
        buf_puts(b, "Connection: close\r\n");
    else if (r->http10)
        buf_puts(b, "Connection: keep-alive\r\n");
    buf_put(b, "\r\n", 2);
}

/* Asks whether the answer may go out. */
static bool
reply_admitted(struct http_request *r, int status, struct err *e)
{
    bool (*ask)(void *arg, int status, struct err *e) = TAKE(r->pub.on_answer);

    return ask == NULL || ask(r->pub.on_answer_arg, status, e);
}

/* Answers 503 in place of a stream, whose producer is told of a client that has gone. */
static void
refuse_stream(struct http_request *r, const struct err *e)
{
    struct buf b = BUF_INIT(2 * HTTP_HEADER_BYTES_MAX + 4096);

    r->muted = true;
    r->keep_alive = r->chunked = false;
    r->pull = NULL;
    put_head(r, &b, 503, "text/plain; charset=utf-8", (int64_t)strlen(e->text));
    buf_puts(&b, e->text);
    stream_write(r->conn->stream, &b, 1);
    stream_finish(r->conn->stream, HTTP_LINGER_MS);
}

/* Frees the request and lets its connection go on. */
static void
reply_complete(struct http_request *r)
{
    struct http_conn *c = r->conn;
    bool keep = r->keep_alive;

    timer_stop(TAKE(r->pull_timer));
    http_request_drop(r);
    if (c)
        http_conn_next(c, keep);
}

static void
send_whole(struct http_request *r, int status, const char *ctype, struct buf *body)
{
    struct buf out[2];

    if (!r->conn) {
        buf_done(body);
        reply_complete(r);
        return;
    }
    buf_init(&out[0], 2 * HTTP_HEADER_BYTES_MAX + 4096);
    put_head(r, &out[0], status, ctype, (int64_t)body->len);
    if (r->pub.method == METHOD_HEAD || reply_bodyless(status))
        buf_done(body);
    out[1] = *body;
    buf_init(body, body->max);
    stream_write(r->conn->stream, out, 2);
    http_conn_owes(r->conn);
    reply_complete(r);
}

/* --- compression of whole bodies --- */

struct gzip_job {
    struct http_request *r;
    int status;
    const char *ctype;
    struct buf in, out;
};

static void
gzip_work(void *arg)
{
    struct gzip_job *j = arg;
    http_gzip(&j->out, j->in.data, j->in.len);
}

static void
gzip_done(void *arg)
{
    struct gzip_job *j = arg;
    struct http_request *r = j->r;

    if (buf_error(&j->out) == 0 && j->out.len < j->in.len) {
        r->answered = false; /* for http_header_add: the head is not written yet */
        http_header_add(&r->pub, "Content-Encoding", "gzip");
        r->answered = true;
        buf_done(&j->in);
        send_whole(r, j->status, j->ctype, &j->out);
    } else {
        buf_done(&j->out);
        send_whole(r, j->status, j->ctype, &j->in);
    }
}

static void
gzip_done_free(void *arg)
{
    struct gzip_job *j = arg;
    gzip_done(j);
    talloc_free(j);
}

static void
send_gzip(struct http_request *r, int status, const char *ctype, struct buf *body)
{
    struct gzip_job *j = mem_new(NULL, struct gzip_job);
    j->r = r;
    j->status = status;
    j->ctype = mem_strdup(j, ctype);
    j->in = *body;
    buf_init(body, body->max);
    buf_init(&j->out, j->in.len);
    http_header_add(&r->pub, "Vary", "Accept-Encoding");
    r->answered = true;
    if (j->in.len >= HTTP_GZIP_OFFLOAD) {
        loop_work(r->loop, gzip_work, gzip_done_free, j);
        return;
    }
    gzip_work(j);
    gzip_done_free(j);
}

void
http_reply_buf(struct http_req *pub, int status, const char *ctype, struct buf *b)
{
    struct http_request *r = reply_request(pub);
    struct err e = ERR_INIT;

    ASSERT(!r->answered);
    if (!buf_error(b) && !reply_admitted(r, r->conn ? status : HTTP_NOBODY, &e)) {
        buf_done(b);
        http_fail(pub, 503, "%s", e.text);
        return;
    }
    if (buf_error(b)) {
        buf_done(b);
        http_fail(pub, 500, "the answer is too large");
        return;
    }
    if (r->conn && r->gzip_ok && b->len >= HTTP_GZIP_MIN && pub->method != METHOD_HEAD &&
        !reply_bodyless(status)) {
        send_gzip(r, status, ctype, b);
        return;
    }
    r->answered = true;
    send_whole(r, status, ctype, b);
}

void
http_reply(struct http_req *r, int status, const char *content_type, const void *p, size_t n)
{
    struct buf b = BUF_INIT(SIZE_MAX);
    buf_put(&b, p, n);
    http_reply_buf(r, status, content_type, &b);
}

void
http_fail(struct http_req *r, int status, const char *fmt, ...)
{
    struct buf b = BUF_INIT(64 << 10);
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    http_reply_buf(r, status, "text/plain; charset=utf-8", &b);
}

/* --- streams --- */

static void
pull_cb(void *arg)
{
    struct http_request *r = arg;
    r->pull_timer = NULL;
    if (r->conn && !r->told && stream_queued(r->conn->stream) < STREAM_LOW_WATER)
        r->pull(r->pub.user);
}

static void
pull_soon(struct http_request *r)
{
    if (r->pull && r->conn && !r->told && !r->pull_timer &&
        stream_queued(r->conn->stream) < STREAM_LOW_WATER)
        r->pull_timer = timer_start(r->loop, 0, pull_cb, r);
}

void
http_stream_start(struct http_req *pub, int status, const char *ctype, void (*pull)(void *user))
{
    struct http_request *r = reply_request(pub);
    struct err e = ERR_INIT;

    ASSERT(!r->answered);
    r->answered = true;
    r->streaming = true;
    r->pull = pull;
    r->chunked = !r->http10;
    if (!r->chunked)
        r->keep_alive = false;
    bool admitted = reply_admitted(r, r->conn ? status : HTTP_NOBODY, &e);
    if (!r->conn)
        return;
    if (!admitted) {
        refuse_stream(r, &e);
        return;
    }
    struct buf b = BUF_INIT(2 * HTTP_HEADER_BYTES_MAX + 4096);
    put_head(r, &b, status, ctype, -1);
    stream_write(r->conn->stream, &b, 1);
    pull_soon(r);
}

void
http_stream_write_buf(struct http_req *pub, struct buf *b)
{
    struct http_request *r = reply_request(pub);
    size_t n = b->len;
    struct buf out[3] = {BUF_INIT(64), *b, BUF_INIT(64)};

    ASSERT(r->streaming);
    buf_init(b, b->max);
    if (!r->conn || r->told || r->muted || n == 0 || pub->method == METHOD_HEAD) {
        buf_done(&out[1]);
        return;
    }
    if (stream_queued(r->conn->stream) + n > HTTP_STREAM_MAX) {
        buf_done(&out[1]);
        stream_close(r->conn->stream); /* the producer does not look at the queue */
        return;
    }
    if (r->chunked) {
        buf_printf(&out[0], "%zx\r\n", n);
        buf_put(&out[2], "\r\n", 2);
    }
    stream_write(r->conn->stream, out, 3);
    http_conn_owes(r->conn);
    pull_soon(r);
}

void
http_stream_write(struct http_req *r, const void *p, size_t n)
{
    struct buf b = BUF_INIT(SIZE_MAX);
    buf_put(&b, p, n);
    http_stream_write_buf(r, &b);
}

void
http_tunnel_start(struct http_req *pub, void (*on_data)(void *user, const void *p, size_t n),
                  void (*pull)(void *user))
{
    struct http_request *r = reply_request(pub);
    struct err e = ERR_INIT;

    ASSERT(!r->answered);
    r->answered = true;
    r->streaming = true;
    r->pull = pull;
    r->on_data = on_data;
    r->keep_alive = true; /* for the head: "Connection" is the caller's */
    bool admitted = reply_admitted(r, r->conn ? 101 : HTTP_NOBODY, &e);
    if (r->conn && !admitted) {
        r->n_out = 0;
        refuse_stream(r, &e);
    } else if (r->conn) {
        struct buf b = BUF_INIT(2 * HTTP_HEADER_BYTES_MAX + 4096);
        put_head(r, &b, 101, NULL, 0);
        stream_write(r->conn->stream, &b, 1);
        http_tunnel_read(pub, true);
        if (r->conn->in.len > 0)
            http_conn_later(r->conn);
    }
    r->keep_alive = false; /* the connection ends with it */
}

void
http_tunnel_read(struct http_req *pub, bool on)
{
    struct http_request *r = reply_request(pub);
    if (r->conn)
        stream_read(r->conn->stream, on);
}

size_t
http_stream_queued(const struct http_req *pub)
{
    struct http_request *r = reply_request(pub);
    return r->conn ? stream_queued(r->conn->stream) : 0;
}

void
http_stream_end(struct http_req *pub)
{
    struct http_request *r = reply_request(pub);

    ASSERT(r->streaming);
    if (r->conn && r->chunked && pub->method != METHOD_HEAD) {
        struct buf b = BUF_INIT(16);
        buf_puts(&b, HTTP_LAST_CHUNK);
        stream_write(r->conn->stream, &b, 1);
    }
    if (r->on_data)
        /* so that the client's last bytes do not reset the connection */
        http_tunnel_read(pub, true);
    reply_complete(r);
}

void
http_stream_cut(struct http_req *pub)
{
    struct http_request *r = reply_request(pub);

    ASSERT(r->streaming && !r->on_data);
    r->keep_alive = false;
    reply_complete(r);
}
