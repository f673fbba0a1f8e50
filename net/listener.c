/* SPDX-License-Identifier: Apache-2.0
 *
 * Listeners: accept, with limits in total and per peer address. Memory goes when the listener and
 * the last of its streams are closed.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/hash.h"

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/limits.h"
#include "net/loop_int.h"
#include "net/stream_int.h"

enum { ACCEPT_PAUSE_MS = 20 };

/* The connections of one address; of all unix sockets together, which have no limit of their own.
 */
struct peer {
    struct listener *listener;
    char host[64];
    size_t n;
    UT_hash_handle hh;
};

struct listener {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } h;
    struct loop *loop;
    struct listener_config cfg;
    struct peer *peers;
    size_t conns;
    size_t refs; /* the handle and every stream */
    int64_t told_ns; /* when a failure was last logged */
    uint16_t port;
    bool is_unix;
    char path[ADDR_TEXT];
};

static void
listener_unref(struct listener *n)
{
    if (--n->refs == 0)
        talloc_free(n);
}

static struct peer *
peer_of(struct listener *n, const char *host)
{
    struct peer *p = NULL;

    HASH_FIND_STR(n->peers, host, p);
    if (!p) {
        p = mem_new(n, struct peer);
        p->listener = n;
        (void)str_copy(p->host, sizeof(p->host), host);
        HASH_ADD_STR(n->peers, host, p);
    }
    return p;
}

/* A stream has ended. */
static void
stream_gone(void *arg)
{
    struct peer *p = arg;
    struct listener *n = p->listener;

    n->conns--;
    if (--p->n == 0) {
        HASH_DEL(n->peers, p);
        talloc_free(p);
    }
    listener_unref(n);
}

static void
listener_refuse(struct stream *s, const char *text)
{
    struct buf b = BUF_INIT(4096);
    if (text)
        buf_puts(&b, text);
    stream_read(s, true);
    stream_write(s, &b, 1);
    stream_finish(s, HTTP_LINGER_MS);
}

bool
listener_same_peer(const struct stream *a, const struct stream *b)
{
    return a->gone_arg != NULL && a->gone_arg == b->gone_arg;
}

static bool
is_loopback(const char *host)
{
    return str_prefix(host, "127.") || str_eq(host, "::1") || str_prefix(host, "::ffff:127.");
}

/* The connection that waits, counted; NULL: it has gone. */
static struct stream *
listener_take(struct listener *n, uv_stream_t *h)
{
    struct stream *s = stream_over(n->loop, carrier_new(n->loop, n->is_unix));
    struct addr a;
    char text[ADDR_TEXT];

    if (!carrier_accept(s->carrier, h)) {
        stream_close(s);
        return NULL;
    }
    transport_peer(s->t, &a);
    s->peer = mem_strdup(s, n->is_unix ? "unix" : addr_format(&a, text));
    struct peer *p = peer_of(n, a.host);
    p->n++;
    n->conns++;
    n->refs++;
    s->on_gone = stream_gone;
    s->gone_arg = p;
    return s;
}

static void
accept_cb(uv_stream_t *h, int status)
{
    struct listener *n = h->data;

    if (status < 0) {
        /* Out of fds all the same. Where libuv can it closes those that wait and does not come
         * here; else it tries again at once, for as long as there are none: let others give some
         * back. */
        if (status == UV_EMFILE || status == UV_ENFILE)
            (void)poll(NULL, 0, ACCEPT_PAUSE_MS);
        if (clock_mono_ns() - n->told_ns > 10 * NS_PER_S) {
            n->told_ns = clock_mono_ns();
            log_warn("net", "connections are not accepted: raise the limit of open files", "error",
                     uv_strerror(status), NULL);
        }
        return;
    }
    struct stream *s = listener_take(n, h);
    if (!s)
        return;
    const struct peer *p = s->gone_arg;
    /* even refusals have an end; and too few fds leave none for words, which take a while to be
     * read */
    if (n->conns > n->cfg.conns_max + n->cfg.conns_max / 4 ||
        transport_fds_short(s->t, LISTENER_FDS_KEPT / 2)) {
        stream_close(s);
        return;
    }
    bool over =
        !n->is_unix && p->n > (is_loopback(p->host) ? n->cfg.per_loopback : n->cfg.per_peer);
    if (over && n->cfg.make_room)
        over = !n->cfg.make_room(n->cfg.arg, s);
    /* files, pidfds and our own connections need the last fds more than another peer does */
    if (over || n->conns > n->cfg.conns_max || transport_fds_short(s->t, LISTENER_FDS_KEPT)) {
        listener_refuse(s, n->cfg.busy);
        return;
    }
    if (n->cfg.filter != NULL && !n->is_unix)
        stream_wrap(s, n->cfg.filter, n->cfg.protocol, NULL, 0);
    n->cfg.on_accept(n->cfg.arg, s);
}

void
stream_accept(struct stream *s, const struct stream_ops *ops, void *arg)
{
    s->ops = ops;
    s->arg = arg;
    stream_read(s, true);
}

/* Removes a socket file that nobody listens on. */
static int
clear_stale(const char *path, struct err *e)
{
    struct stat st;
    struct sockaddr_un sun = {.sun_family = AF_UNIX};

    if (lstat(path, &st) < 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, -EEXIST, "cannot listen on '%s': the file exists and is no socket", path);
    (void)str_copy(sun.sun_path, sizeof(sun.sun_path), path);
    auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0)
        return err_set(e, -EADDRINUSE, "cannot listen on '%s': another process does", path);
    unlink(path);
    return 0;
}

static int
bind_unix(struct listener *n, const struct addr *a, struct err *e)
{
    int r = clear_stale(a->host, e);
    if (r < 0)
        return r;
    (void)str_copy(n->path, sizeof(n->path), a->host);
    mode_t old = umask(0177);
    r = uv_pipe_bind(&n->h.pipe, a->host);
    umask(old);
    return r;
}

static int
bind_tcp(struct listener *n, const struct addr *a, struct err *e)
{
    struct sockaddr_storage ss = {0};
    const char *host = str_eq(a->host, "localhost") ? "127.0.0.1" : a->host;

    if (uv_ip4_addr(host, a->port, (struct sockaddr_in *)&ss) < 0 &&
        uv_ip6_addr(host, a->port, (struct sockaddr_in6 *)&ss) < 0)
        return err_set(e, -ERR_INVALID, "cannot listen on '%s': not an IP address", a->host);
    return uv_tcp_bind(&n->h.tcp, (struct sockaddr *)&ss, 0);
}

static void
closed_cb(uv_handle_t *h)
{
    listener_unref(h->data);
}

static uint16_t
bound_port(struct listener *n)
{
    struct sockaddr_storage ss = {0};
    int len = sizeof(ss);
    if (n->is_unix || uv_tcp_getsockname(&n->h.tcp, (struct sockaddr *)&ss, &len) < 0)
        return 0;
    if (ss.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&ss)->sin6_port);
    return ntohs(((struct sockaddr_in *)&ss)->sin_port);
}

struct listener *
listener_new(struct loop *l, const struct addr *a, const struct listener_config *cfg, struct err *e)
{
    struct listener *n = mem_new(NULL, struct listener);
    char text[ADDR_TEXT];

    n->loop = l;
    n->cfg = *cfg;
    if (n->cfg.per_loopback == 0)
        n->cfg.per_loopback = n->cfg.per_peer;
    n->is_unix = a->is_unix;
    n->refs = 1;
    if (a->is_unix)
        ASSERT(uv_pipe_init(loop_uv(l), &n->h.pipe, 0) == 0);
    else
        ASSERT(uv_tcp_init(loop_uv(l), &n->h.tcp) == 0);
    n->h.handle.data = n;
    struct err why = ERR_INIT;
    int r = a->is_unix ? bind_unix(n, a, &why) : bind_tcp(n, a, &why);
    if (r == 0)
        r = uv_listen(&n->h.stream, STREAM_BACKLOG, accept_cb);
    if (r < 0) {
        if (why.code)
            err_set(e, why.code, "%s", why.text);
        else
            err_errno(e, -r, "cannot listen on '%s'", addr_format(a, text));
        uv_close(&n->h.handle, closed_cb);
        return NULL;
    }
    n->port = bound_port(n);
    return n;
}

uint16_t
listener_port(const struct listener *n)
{
    return n->port;
}

void
listener_limit(struct listener *n, size_t per_peer)
{
    n->cfg.per_peer = n->cfg.per_loopback = per_peer;
}

void
listener_close(struct listener *n)
{
    if (n)
        uv_close(&n->h.handle, closed_cb); /* libuv unlinks the socket file */
}
