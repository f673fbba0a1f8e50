/* SPDX-License-Identifier: Apache-2.0
 *
 * Listeners: accept, with limits in total and per peer address. Memory goes when the listener and
 * the last of its streams are closed.
 */
#include <errno.h>
#include <netinet/in.h>
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

/* Between two looks whether a descriptor is free; connections that are taken in one turn. */
enum { ACCEPT_PAUSE_MS = 20, ACCEPT_TURN_MAX = 64 };

/* The connections of one address; of all unix sockets together, which have no limit of their own.
 */
struct peer {
    struct listener *listener;
    char host[64];
    size_t n;
    UT_hash_handle hh;
};

struct listener {
    int fd;
    struct watch *watch; /* NULL: closed */
    struct timer *pause; /* or NULL; until then nothing is accepted */
    struct loop *loop;
    struct listener_config cfg;
    struct peer *peers;
    size_t conns;
    size_t refs; /* the socket, a turn, and every stream */
    int64_t told_ns; /* when a failure was last logged */
    uint16_t port;
    bool is_unix;
    char path[ADDR_TEXT];
    char *name; /* of a socket that somebody else made; NULL: it is ours */
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

/* A connection, counted. */
static struct stream *
listener_count(struct listener *n, int fd)
{
    struct stream *s = stream_over(n->loop, carrier_new(n->loop, n->is_unix));
    struct addr a;
    char text[ADDR_TEXT];

    if (!carrier_adopt(s->carrier, fd)) {
        close(fd);
        stream_close(s);
        return NULL;
    }
    transport_peer(s->t, &a);
    s->peer = mem_strdup(s, n->is_unix ? str_or(n->name, "unix") : addr_format(&a, text));
    struct peer *p = peer_of(n, a.host);
    p->n++;
    n->conns++;
    n->refs++;
    s->on_gone = stream_gone;
    s->gone_arg = p;
    return s;
}

static void
listener_take(struct listener *n, int fd)
{
    struct stream *s = listener_count(n, fd);
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

static void
pause_over(void *arg)
{
    struct listener *n = arg;

    n->pause = NULL;
    watch_set(n->watch, WATCH_READ);
}

/* Lets who waits wait, until a descriptor may be free: they stay readable, and would be tried again
 * at once. */
static void
listener_pause(struct listener *n, int errnum)
{
    watch_set(n->watch, 0);
    n->pause = timer_start(n->loop, ACCEPT_PAUSE_MS, pause_over, n);
    if (clock_mono_ns() - n->told_ns > 10 * NS_PER_S) {
        n->told_ns = clock_mono_ns();
        log_warn("net", "connections are not accepted: raise the limit of open files", "error",
                 strerror(errnum), NULL);
    }
}

static void
listener_turn(void *arg, int listening, unsigned events)
{
    struct listener *n = arg;

    (void)events;
    n->refs++; /* whoever takes a connection may close it */
    for (int i = 0; i < ACCEPT_TURN_MAX && n->watch != NULL && n->pause == NULL; i++) {
        int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            listener_take(n, fd);
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR && errno != ECONNABORTED)
            listener_pause(n, errno);
    }
    listener_unref(n);
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

/* Returns a socket that listens, or -errno. */
static int
listen_on(const struct sockaddr *sa, socklen_t n)
{
    auto_fd int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int yes = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
        bind(fd, sa, n) < 0 || listen(fd, STREAM_BACKLOG) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static int
listen_unix(struct listener *n, const struct addr *a, struct err *e)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    int r = clear_stale(a->host, e);
    if (r < 0)
        return r;
    if (!str_copy(sun.sun_path, sizeof(sun.sun_path), a->host))
        return -ENAMETOOLONG;
    mode_t old = umask(0177);
    r = listen_on((struct sockaddr *)&sun, sizeof(sun));
    umask(old);
    if (r >= 0)
        (void)str_copy(n->path, sizeof(n->path), a->host);
    return r;
}

static int
listen_tcp(const struct addr *a, struct err *e)
{
    struct sockaddr_storage ss = {0};
    const char *host = str_eq(a->host, "localhost") ? "127.0.0.1" : a->host;

    if (uv_ip4_addr(host, a->port, (struct sockaddr_in *)&ss) < 0 &&
        uv_ip6_addr(host, a->port, (struct sockaddr_in6 *)&ss) < 0)
        return err_set(e, -ERR_INVALID, "cannot listen on '%s': not an IP address", a->host);
    return listen_on((struct sockaddr *)&ss, ss.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                                      : sizeof(struct sockaddr_in));
}

static uint16_t
bound_port(const struct listener *n)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);
    if (n->is_unix || getsockname(n->fd, (struct sockaddr *)&ss, &len) < 0)
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
    struct err why = ERR_INIT;
    n->fd = a->is_unix ? listen_unix(n, a, &why) : listen_tcp(a, &why);
    if (n->fd < 0) {
        if (why.code)
            err_set(e, why.code, "%s", why.text);
        else
            err_errno(e, -n->fd, "cannot listen on '%s'", addr_format(a, text));
        talloc_free(n);
        return NULL;
    }
    n->watch = watch_fd(l, n->fd, WATCH_READ, listener_turn, n);
    ASSERT(n->watch != NULL);
    n->port = bound_port(n);
    return n;
}

struct listener *
listener_adopt(struct loop *l, int fd, const char *name, const struct listener_config *cfg)
{
    struct listener *n = mem_new(NULL, struct listener);

    *n = (struct listener){
        .loop = l, .cfg = *cfg, .is_unix = true, .refs = 1, .fd = fd, .name = mem_strdup(n, name)};
    n->watch = watch_fd(l, n->fd, WATCH_READ, listener_turn, n);
    ASSERT(n->watch != NULL);
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
    if (!n)
        return;
    watch_stop(TAKE(n->watch));
    timer_stop(TAKE(n->pause));
    close(n->fd);
    if (n->is_unix && n->name == NULL)
        unlink(n->path);
    listener_unref(n);
}
