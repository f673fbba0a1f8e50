/* SPDX-License-Identifier: Apache-2.0
 *
 * Transports over sockets, by libuv: TCP and unix. In this order: reading, writing (at once as far
 * as the kernel takes it, the rest queued with memory of its own), the end, what is asked of any
 * transport, connecting with name resolution, and accepted connections, which may be handed to
 * another loop or adopted.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/mem.h"
#include "net/limits.h"
#include "net/loop_int.h"
#include "net/transport_int.h"

struct carrier {
    struct transport base; /* first */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } h;
    struct loop *loop;
    bool closing;
    bool outside; /* of struct addr */
    uv_getaddrinfo_t *resolving;
};

struct connect_req {
    uv_connect_t req;
    struct carrier *t;
};

struct write_req {
    uv_write_t req;
    struct carrier *t;
    unsigned n;
    uint8_t *data[];
};

static struct carrier *
socket_self(const struct transport *t)
{
    return (struct carrier *)(uintptr_t)t;
}

struct transport *
carrier_transport(struct carrier *c)
{
    return &c->base;
}

/* --- reading --- */

static void
alloc_cb(uv_handle_t *h, size_t hint, uv_buf_t *b)
{
    struct carrier *t = h->data;

    (void)hint;
    b->base = loop_read_buffer(t->loop);
    b->len = STREAM_READ_SIZE;
}

static void
read_cb(uv_stream_t *h, ssize_t n, const uv_buf_t *b)
{
    struct carrier *t = h->data;

    if (t->closing || n == 0)
        return;
    if (n > 0) {
        t->base.up->got(t->base.arg, (const uint8_t *)b->base, (size_t)n);
        return;
    }
    uv_read_stop(h);
    t->base.up->ended(t->base.arg, n == UV_EOF ? 0 : (int)n);
}

static int
socket_read(struct transport *base, bool on)
{
    struct carrier *t = socket_self(base);
    return on ? uv_read_start(&t->h.stream, alloc_cb, read_cb) : uv_read_stop(&t->h.stream);
}

/* --- writing --- */

static void
write_free(struct write_req *w)
{
    for (unsigned i = 0; i < w->n; i++)
        free(w->data[i]);
    free(w);
}

static void
write_cb(uv_write_t *req, int status)
{
    struct write_req *w = (struct write_req *)req;
    struct carrier *t = w->t;

    write_free(w);
    if (!t->closing)
        t->base.up->wrote(t->base.arg, status);
}

/* Queues what was not written at once: `skip` bytes of the buffers are gone already. */
static int
queue_rest(struct carrier *t, struct buf *bufs, size_t n, size_t skip)
{
    struct write_req *w = calloc(1, sizeof(*w) + n * sizeof(w->data[0]));
    uv_buf_t v[TRANSPORT_BUFS_MAX];
    unsigned nv = 0;

    ASSERT(w != NULL);
    w->t = t;
    for (size_t i = 0; i < n; i++) {
        struct buf *b = &bufs[i];
        size_t off = skip < b->len ? skip : b->len;
        skip -= off;
        if (b->len - off > 0)
            v[nv++] = uv_buf_init((char *)b->data + off, (unsigned)(b->len - off));
        w->data[w->n++] = b->data;
        buf_init(b, b->max);
    }
    int r = uv_write(&w->req, &t->h.stream, v, nv, write_cb);
    if (r < 0)
        write_free(w);
    return r;
}

static int
socket_write(struct transport *base, struct buf *bufs, size_t n)
{
    struct carrier *t = socket_self(base);
    uv_buf_t v[TRANSPORT_BUFS_MAX] = {0};
    size_t total = 0;
    int sent = 0;

    ASSERT(n <= TRANSPORT_BUFS_MAX);
    for (size_t i = 0; i < n; i++) {
        v[i] = uv_buf_init((char *)bufs[i].data, (unsigned)bufs[i].len);
        total += bufs[i].len;
    }
    if (t->h.stream.write_queue_size == 0)
        sent = uv_try_write(&t->h.stream, v, (unsigned)n);
    if (sent < 0)
        sent = 0; /* EAGAIN, or an error that the queued write reports */
    if ((size_t)sent < total)
        return queue_rest(t, bufs, n, (size_t)sent);
    for (size_t i = 0; i < n; i++)
        buf_done(&bufs[i]);
    return 0;
}

static size_t
socket_queued(const struct transport *base)
{
    return socket_self(base)->h.stream.write_queue_size;
}

/* --- the end --- */

static void
shutdown_cb(uv_shutdown_t *req, int status)
{
    (void)status;
    free(req);
}

static int
socket_shutdown(struct transport *base)
{
    uv_shutdown_t *req = calloc(1, sizeof(*req));

    ASSERT(req != NULL);
    int r = uv_shutdown(req, &socket_self(base)->h.stream, shutdown_cb);
    if (r < 0)
        free(req);
    return r;
}

static void
closed_cb(uv_handle_t *h)
{
    struct carrier *t = h->data;
    t->base.up->closed(t->base.arg);
}

static void
socket_close(struct transport *base)
{
    struct carrier *t = socket_self(base);

    t->closing = true;
    if (t->resolving) {
        uv_cancel((uv_req_t *)t->resolving);
        t->resolving->data = NULL;
        t->resolving = NULL;
    }
    uv_close(&t->h.handle, closed_cb);
}

/* --- what is asked of the socket --- */

static void
addr_of(struct addr *ret, const struct sockaddr_storage *ss)
{
    if (ss->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;
        uv_ip6_name(in6, ret->host, sizeof(ret->host));
        ret->port = ntohs(in6->sin6_port);
    } else if (ss->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
        uv_ip4_name(in, ret->host, sizeof(ret->host));
        ret->port = ntohs(in->sin_port);
    }
}

static void
socket_peer(const struct transport *base, struct addr *ret)
{
    struct carrier *t = socket_self(base);
    struct sockaddr_storage ss = {0};
    int len = sizeof(ss);

    *ret = (struct addr){0};
    ret->is_unix = t->h.handle.type != UV_TCP;
    if (!ret->is_unix && uv_tcp_getpeername(&t->h.tcp, (struct sockaddr *)&ss, &len) == 0)
        addr_of(ret, &ss);
}

static void
socket_patience(const struct transport *base, unsigned ms)
{
    uv_os_fd_t fd;
    if (uv_fileno(&socket_self(base)->h.handle, &fd) == 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

static bool
socket_fds_short(const struct transport *base, unsigned kept)
{
    uv_os_fd_t fd;
    return uv_fileno(&socket_self(base)->h.handle, &fd) == 0 && fd_near_limit(fd, kept);
}

static const struct transport_ops socket_ops = {
    .read = socket_read,
    .write = socket_write,
    .queued = socket_queued,
    .shutdown = socket_shutdown,
    .close = socket_close,
    .peer = socket_peer,
    .patience = socket_patience,
    .fds_short = socket_fds_short,
};

void
transport_peer(const struct transport *t, struct addr *ret)
{
    if (t->ops->peer != NULL)
        t->ops->peer(t, ret);
    else
        *ret = (struct addr){0};
}

void
transport_patience(const struct transport *t, unsigned ms)
{
    if (t->ops->patience != NULL)
        t->ops->patience(t, ms);
}

bool
transport_fds_short(const struct transport *t, unsigned kept)
{
    return t->ops->fds_short != NULL && t->ops->fds_short(t, kept);
}

struct carrier *
carrier_new(struct loop *l, bool is_unix)
{
    struct carrier *t = mem_new(NULL, struct carrier);

    t->base.ops = &socket_ops;
    t->loop = l;
    if (is_unix)
        ASSERT(uv_pipe_init(loop_uv(l), &t->h.pipe, 0) == 0);
    else
        ASSERT(uv_tcp_init(loop_uv(l), &t->h.tcp) == 0);
    t->h.handle.data = t;
    return t;
}

static void
transport_tune(struct carrier *t)
{
    if (t->h.handle.type != UV_TCP)
        return;
    uv_tcp_nodelay(&t->h.tcp, 1);
    uv_tcp_keepalive(&t->h.tcp, 1, 30);
}

/* --- connecting --- */

static void
connect_cb(uv_connect_t *req, int status)
{
    struct connect_req *c = (struct connect_req *)req;
    struct carrier *t = c->t;

    free(c);
    if (t->closing)
        return;
    if (status == 0)
        transport_tune(t);
    t->base.up->connected(t->base.arg, status);
}

static struct connect_req *
connect_req(struct carrier *t)
{
    struct connect_req *c = calloc(1, sizeof(*c));
    ASSERT(c != NULL);
    c->t = t;
    return c;
}

static int
connect_tcp(struct carrier *t, const struct sockaddr *sa)
{
    char host[INET6_ADDRSTRLEN] = "";

    if (t->outside && (uv_ip_name(sa, host, sizeof(host)) < 0 || addr_is_of_link(host)))
        return -ERR_POLICY;
    struct connect_req *c = connect_req(t);
    int r = uv_tcp_connect(&c->req, &t->h.tcp, sa, connect_cb);

    if (r < 0)
        free(c);
    return r;
}

static void
resolve_cb(uv_getaddrinfo_t *req, int status, struct addrinfo *res)
{
    struct carrier *t = req->data;

    if (t) {
        t->resolving = NULL;
        /* the name is not there; libuv's EAI codes have no text of ours */
        int r = status < 0 || res == NULL ? -ERR_NOT_FOUND : connect_tcp(t, res->ai_addr);
        if (r < 0)
            t->base.up->connected(t->base.arg, r);
    }
    uv_freeaddrinfo(res);
    free(req);
}

static int
transport_resolve(struct carrier *t, const struct addr *a)
{
    char port[8];
    /* AI_ADDRCONFIG would find nothing where only `lo` is up; addresses out of reach are the last
     * anyway (RFC 6724) */
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    uv_getaddrinfo_t *req = calloc(1, sizeof(*req));

    ASSERT(req != NULL);
    snprintf(port, sizeof(port), "%u", a->port);
    /* "localhost" first means 127.0.0.1, where agents listen */
    if (strcmp(a->host, "localhost") == 0)
        hints.ai_family = AF_INET;
    req->data = t;
    t->resolving = req;
    int r = uv_getaddrinfo(loop_uv(t->loop), req, resolve_cb, a->host, port, &hints);
    if (r < 0) {
        t->resolving = NULL;
        free(req);
    }
    return r;
}

static int
bind_from(struct carrier *t, const char *from)
{
    struct sockaddr_storage ss = {0};

    if (uv_ip4_addr(from, 0, (struct sockaddr_in *)&ss) < 0 &&
        uv_ip6_addr(from, 0, (struct sockaddr_in6 *)&ss) < 0)
        return -ERR_INVALID;
    return uv_tcp_bind(&t->h.tcp, (struct sockaddr *)&ss, 0);
}

int
carrier_connect(struct carrier *t, const struct addr *a)
{
    struct sockaddr_storage ss = {0};
    int r = a->from[0] != '\0' && !a->is_unix ? bind_from(t, a->from) : 0;

    t->outside = a->outside;
    if (r < 0)
        return r;
    if (a->is_unix) {
        uv_pipe_connect(&connect_req(t)->req, &t->h.pipe, a->host, connect_cb);
        return 0;
    }
    if (uv_ip4_addr(a->host, a->port, (struct sockaddr_in *)&ss) == 0 ||
        uv_ip6_addr(a->host, a->port, (struct sockaddr_in6 *)&ss) == 0)
        return connect_tcp(t, (struct sockaddr *)&ss);
    return transport_resolve(t, a);
}

/* --- accepted connections --- */

int
carrier_give(const struct carrier *t)
{
    uv_os_fd_t fd;
    if (uv_fileno(&t->h.handle, &fd) != 0) {
        errno = EBADF;
        return -1;
    }
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

bool
carrier_adopt(struct carrier *t, int fd)
{
    bool is_tcp = t->h.handle.type == UV_TCP;
    if ((is_tcp ? uv_tcp_open(&t->h.tcp, fd) : uv_pipe_open(&t->h.pipe, fd)) < 0)
        return false;
    transport_tune(t);
    return true;
}
