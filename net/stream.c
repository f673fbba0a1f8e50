/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: reading, queued writing, connecting, closing. Listeners are in listener.c.
 */
#include "net/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "net/limits.h"
#include "net/loop_uv.h"
#include "net/stream_uv.h"

struct write_req {
    uv_write_t req;
    struct stream *s;
    size_t n_bytes;
    unsigned n;
    uint8_t *data[];
};

static const struct stream_ops no_ops;

static void
closed_cb(uv_handle_t *h)
{
    struct stream *s = h->data;
    if (s->listener)
        listener_forget(s);
    loop_note_close(s->loop);
    if (s->ops->on_close)
        s->ops->on_close(s->arg, s->close_code);
    talloc_free(s);
}

static void
close_with(struct stream *s, int code)
{
    if (s->closing)
        return;
    s->closing = true;
    s->close_code = code;
    timer_stop(TAKE(s->stall));
    timer_stop(TAKE(s->linger));
    if (s->resolving) {
        uv_cancel((uv_req_t *)s->resolving);
        s->resolving->data = NULL;
        s->resolving = NULL;
    }
    uv_close(&s->h.handle, closed_cb);
}

void
stream_close(struct stream *s)
{
    close_with(s, 0);
}

struct stream *
stream_make(struct loop *l, bool is_unix)
{
    struct stream *s = mem_new(NULL, struct stream);
    s->loop = l;
    s->is_unix = is_unix;
    s->ops = &no_ops;
    if (is_unix)
        ASSERT(uv_pipe_init(loop_uv(l), &s->h.pipe, 0) == 0);
    else
        ASSERT(uv_tcp_init(loop_uv(l), &s->h.tcp) == 0);
    s->h.handle.data = s;
    return s;
}

/* --- reading --- */

static void
alloc_cb(uv_handle_t *h, size_t hint, uv_buf_t *b)
{
    struct stream *s = h->data;
    (void)hint;
    b->base = loop_read_buffer(s->loop);
    b->len = STREAM_READ_SIZE;
}

static void
read_cb(uv_stream_t *h, ssize_t n, const uv_buf_t *b)
{
    struct stream *s = h->data;
    if (s->closing || n == 0)
        return;
    if (n > 0) {
        if (!s->finishing)
            s->ops->on_data(s->arg, (const uint8_t *)b->base, (size_t)n);
        return;
    }
    if (n != UV_EOF) {
        close_with(s, (int)n);
        return;
    }
    uv_read_stop(h);
    s->reading = false;
    if (s->finishing) {
        if (s->h.stream.write_queue_size == 0)
            close_with(s, 0);
    } else if (s->ops->on_eof) {
        s->ops->on_eof(s->arg);
    } else {
        close_with(s, -ERR_CLOSED);
    }
}

void
stream_read(struct stream *s, bool on)
{
    if (s->closing || s->reading == on)
        return;
    if (!on) {
        uv_read_stop(&s->h.stream);
        s->reading = false;
        return;
    }
    int r = uv_read_start(&s->h.stream, alloc_cb, read_cb);
    if (r < 0)
        close_with(s, r);
    else
        s->reading = true;
}

/* --- writing --- */

size_t
stream_queued(const struct stream *s)
{
    return s->closing ? 0 : s->h.stream.write_queue_size;
}

static void stall_cb(void *arg);

static void
stall_watch(struct stream *s)
{
    if (s->closing || s->stall || s->h.stream.write_queue_size == 0)
        return;
    size_t queued = s->h.stream.write_queue_size;
    s->stall_goal = s->enqueued - queued + (queued < STREAM_STALL_BYTES ? queued : STREAM_STALL_BYTES);
    s->stall = timer_start(s->loop, STREAM_STALL_MS, stall_cb, s);
}

static void
stall_cb(void *arg)
{
    struct stream *s = arg;
    s->stall = NULL;
    if (s->enqueued - s->h.stream.write_queue_size < s->stall_goal)
        close_with(s, -ERR_TIMEOUT);
    else
        stall_watch(s);
}

static void
shutdown_cb(uv_shutdown_t *req, int status)
{
    (void)status;
    free(req);
}

static void
linger_cb(void *arg)
{
    struct stream *s = arg;
    s->linger = NULL;
    close_with(s, 0);
}

/* All is written: the end that stream_finish asked for. */
static void
finished(struct stream *s)
{
    if (s->closing || s->linger)
        return;
    if (s->linger_ms <= 0 || !s->reading) {
        close_with(s, 0);
        return;
    }
    uv_shutdown_t *req = calloc(1, sizeof(*req));
    ASSERT(req != NULL);
    if (uv_shutdown(req, &s->h.stream, shutdown_cb) < 0) {
        free(req);
        close_with(s, 0);
        return;
    }
    s->linger = timer_start(s->loop, s->linger_ms, linger_cb, s);
}

void
stream_finish(struct stream *s, int64_t linger_ms)
{
    if (s->closing || s->finishing)
        return;
    s->finishing = true;
    s->linger_ms = linger_ms;
    if (s->h.stream.write_queue_size == 0)
        finished(s);
}

static void
write_cb(uv_write_t *req, int status)
{
    struct write_req *w = (struct write_req *)req;
    struct stream *s = w->s;

    for (unsigned i = 0; i < w->n; i++)
        free(w->data[i]);
    free(w);
    if (s->closing)
        return;
    if (status < 0) {
        close_with(s, status);
        return;
    }
    size_t left = s->h.stream.write_queue_size;
    if (left == 0)
        timer_stop(TAKE(s->stall));
    if (left == 0 && s->finishing)
        finished(s);
    else if (s->above && left < STREAM_LOW_WATER) {
        s->above = false;
        if (s->ops->on_drain && !s->finishing)
            s->ops->on_drain(s->arg);
    }
}

/* Queues what uv_try_write left: `skip` bytes of the buffers are gone already. */
static void
queue_rest(struct stream *s, struct buf *bufs, size_t n, size_t skip)
{
    struct write_req *w = calloc(1, sizeof(*w) + n * sizeof(w->data[0]));
    uv_buf_t v[STREAM_BUFS_MAX];
    unsigned nv = 0;

    ASSERT(w != NULL);
    w->s = s;
    for (size_t i = 0; i < n; i++) {
        struct buf *b = &bufs[i];
        size_t off = skip < b->len ? skip : b->len;
        skip -= off;
        if (b->len - off > 0) {
            v[nv++] = uv_buf_init((char *)b->data + off, (unsigned)(b->len - off));
            w->n_bytes += b->len - off;
        }
        w->data[w->n++] = b->data;
        buf_init(b, b->max);
    }
    s->enqueued += w->n_bytes;
    int r = uv_write(&w->req, &s->h.stream, v, nv, write_cb);
    if (r < 0) {
        for (unsigned i = 0; i < w->n; i++)
            free(w->data[i]);
        free(w);
        close_with(s, r);
        return;
    }
    if (s->h.stream.write_queue_size >= STREAM_LOW_WATER)
        s->above = true;
    stall_watch(s);
}

void
stream_write(struct stream *s, struct buf *bufs, size_t n)
{
    uv_buf_t v[STREAM_BUFS_MAX];
    size_t total = 0;
    int error = 0;

    ASSERT(n <= STREAM_BUFS_MAX);
    for (size_t i = 0; i < n; i++) {
        if (buf_error(&bufs[i]))
            error = buf_error(&bufs[i]);
        v[i] = uv_buf_init((char *)bufs[i].data, (unsigned)bufs[i].len);
        total += bufs[i].len;
    }
    if (!s->closing && error)
        close_with(s, error);
    else if (!s->closing && stream_queued(s) + total > STREAM_QUEUE_MAX)
        close_with(s, -ERR_LIMIT);
    if (s->closing || s->finishing || total == 0) {
        for (size_t i = 0; i < n; i++)
            buf_done(&bufs[i]);
        return;
    }
    int sent = 0;
    if (s->h.stream.write_queue_size == 0)
        sent = uv_try_write(&s->h.stream, v, (unsigned)n);
    if (sent < 0)
        sent = 0; /* EAGAIN, or an error that the queued write reports */
    if ((size_t)sent < total) {
        queue_rest(s, bufs, n, (size_t)sent);
        return;
    }
    for (size_t i = 0; i < n; i++)
        buf_done(&bufs[i]);
}

/* --- connecting --- */

struct connect_req {
    uv_connect_t req;
    struct stream *s;
};

static void
connect_timeout(void *arg)
{
    struct stream *s = arg;
    s->stall = NULL;
    close_with(s, -ERR_TIMEOUT);
}

static void
connect_cb(uv_connect_t *req, int status)
{
    struct connect_req *c = (struct connect_req *)req;
    struct stream *s = c->s;

    free(c);
    if (s->closing)
        return;
    if (status < 0) {
        close_with(s, status);
        return;
    }
    timer_stop(TAKE(s->stall));
    if (!s->is_unix) {
        uv_tcp_nodelay(&s->h.tcp, 1);
        uv_tcp_keepalive(&s->h.tcp, 1, 30);
    }
    s->ops->on_connect(s->arg);
    if (!s->closing)
        stream_read(s, true);
}

static void
connect_tcp(struct stream *s, const struct sockaddr *sa)
{
    struct connect_req *c = calloc(1, sizeof(*c));
    ASSERT(c != NULL);
    c->s = s;
    int r = uv_tcp_connect(&c->req, &s->h.tcp, sa, connect_cb);
    if (r < 0) {
        free(c);
        close_with(s, r);
    }
}

static void
resolve_cb(uv_getaddrinfo_t *req, int status, struct addrinfo *res)
{
    struct stream *s = req->data;

    if (s) {
        s->resolving = NULL;
        if (status < 0 || !res)
            close_with(s, -ERR_NOT_FOUND); /* the name; libuv's EAI codes have no text of ours */
        else
            connect_tcp(s, res->ai_addr);
    }
    uv_freeaddrinfo(res);
    free(req);
}

static void
resolve(struct stream *s, const struct addr *a)
{
    char port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    uv_getaddrinfo_t *req = calloc(1, sizeof(*req));

    ASSERT(req != NULL);
    snprintf(port, sizeof(port), "%u", a->port);
    /* "localhost" first means 127.0.0.1, where agents listen */
    if (strcmp(a->host, "localhost") == 0)
        hints.ai_family = AF_INET;
    req->data = s;
    s->resolving = req;
    int r = uv_getaddrinfo(loop_uv(s->loop), req, resolve_cb, a->host, port, &hints);
    if (r < 0) {
        s->resolving = NULL;
        free(req);
        close_with(s, r);
    }
}

struct stream *
stream_connect(struct loop *l, const struct addr *a, const struct stream_ops *ops, void *arg)
{
    struct stream *s = stream_make(l, a->is_unix);
    struct sockaddr_storage ss = {0};

    s->ops = ops;
    s->arg = arg;
    s->stall = timer_start(l, STREAM_CONNECT_MS, connect_timeout, s);
    char text[ADDR_TEXT];
    s->peer = mem_strdup(s, addr_format(a, text));
    if (a->is_unix) {
        struct connect_req *c = calloc(1, sizeof(*c));
        ASSERT(c != NULL);
        c->s = s;
        uv_pipe_connect(&c->req, &s->h.pipe, a->host, connect_cb);
    } else if (uv_ip4_addr(a->host, a->port, (struct sockaddr_in *)&ss) == 0 ||
               uv_ip6_addr(a->host, a->port, (struct sockaddr_in6 *)&ss) == 0) {
        connect_tcp(s, (struct sockaddr *)&ss);
    } else {
        resolve(s, a);
    }
    return s;
}

const char *
stream_peer(const struct stream *s)
{
    return s->peer;
}
