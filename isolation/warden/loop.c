/* SPDX-License-Identifier: Apache-2.0
 *
 * In this order: watches, connections and answers, children that do blocking work.
 *
 * A connection is not freed while an event is served: it is marked broken, and loop_sweep() closes
 * it at the end of the turn. An answer that does not fit into the socket waits in its connection,
 * up to WARDEN_OUT_MAX; a peer that does not read more than this is closed.
 */
#include "isolation/warden/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/policy.h"
#include "isolation/packet.h"
#include "isolation/proc.h"

#define ROOM "warden"
enum { ACCEPT_PAUSE_MS = 50 };

int
loop_watch(struct warden *w, struct watch *watch, uint32_t events)
{
    ASSERT(watch->fn != NULL);
    struct epoll_event ev = {.events = events, .data = {.ptr = watch}};
    return epoll_ctl(w->epoll, EPOLL_CTL_ADD, watch->fd, &ev) < 0 ? -errno : 0;
}

void
loop_unwatch(struct warden *w, struct watch *watch)
{
    if (watch->fd >= 0)
        (void)epoll_ctl(w->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    fd_close(&watch->fd);
}

/* --- connections --- */

static void
out_free(struct out *o)
{
    for (size_t i = 0; i < o->n_fds; i++)
        fd_close(&o->fds[i]);
    mem_free(o);
}

static void
conn_close(struct warden *w, struct conn *c)
{
    loop_unwatch(w, &c->watch);
    while (c->out != NULL) {
        struct out *o = c->out;
        c->out = o->next;
        out_free(o);
    }
    for (size_t i = 0; i < WARDEN_CONNS_MAX; i++)
        if (w->conns[i] == c)
            w->conns[i] = NULL;
    mem_free(c);
}

static void
conn_break(struct warden *w, struct conn *c)
{
    c->broken = true;
    w->sweep = true;
}

static void
conn_events(struct warden *w, struct conn *c)
{
    struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = &c->watch}};
    if (c->out != NULL)
        ev.events |= EPOLLOUT;
    (void)epoll_ctl(w->epoll, EPOLL_CTL_MOD, c->watch.fd, &ev);
}

static void
conn_queue(struct warden *w, struct conn *c, const struct buf *b, const struct answer *a)
{
    if (c->out_bytes + sizeof(struct out) + b->len > WARDEN_OUT_MAX) {
        log_warn(ROOM, "the agent does not read its answers: connection closed", NULL);
        conn_break(w, c);
        return;
    }
    struct out *o = mem_zalloc(c, sizeof(*o) + b->len, "out");
    memcpy(o->data, b->data, b->len);
    o->n = b->len;
    for (size_t i = 0; i < a->n_fds; i++) {
        int fd = fcntl(a->fds[i], F_DUPFD_CLOEXEC, 0);
        if (fd >= 0)
            o->fds[o->n_fds++] = fd;
        if (fd < 0 || fd_near_limit(fd, WARDEN_FDS_KEPT / 4)) {
            log_warn(ROOM, "too many descriptors wait for the agent: connection closed", NULL);
            out_free(o);
            conn_break(w, c);
            return;
        }
    }
    c->out_bytes += sizeof(*o) + o->n;
    *c->out_tail = o;
    c->out_tail = &o->next;
    conn_events(w, c);
}

static void
conn_flush(struct warden *w, struct conn *c)
{
    while (c->out != NULL) {
        struct out *o = c->out;
        int r = packet_send(c->watch.fd, o->data, o->n, o->fds, o->n_fds);
        if (r == -EAGAIN)
            return;
        if (r < 0) {
            conn_break(w, c);
            return;
        }
        c->out = o->next;
        if (c->out == NULL)
            c->out_tail = &c->out;
        c->out_bytes -= sizeof(*o) + o->n;
        out_free(o);
    }
    conn_events(w, c);
}

void
loop_answer_fd(const void *ctx, struct answer *a, enum warden_fd kind, int fd)
{
    if (fd < 0)
        return;
    ASSERT(a->n_fds < PACKET_FDS_MAX);
    list_add(ctx, a->msg.fds, (int64_t)kind);
    a->fds[a->n_fds++] = fd;
}

void
loop_answer(struct warden *w, struct waiter to, struct answer *a)
{
    struct conn *c = NULL;
    for (size_t i = 0; i < WARDEN_CONNS_MAX; i++)
        if (w->conns[i] != NULL && w->conns[i]->id == to.conn)
            c = w->conns[i];
    if (c == NULL || c->broken)
        return;
    auto_buf struct buf b = BUF_INIT(PROTO_PACKET_MAX);
    a->msg.seq = to.seq;
    mp_encode(&b, &type_warden_response, &a->msg);
    if (buf_error(&b) < 0) {
        struct err e = ERR_INIT;
        err_set(&e, -ERR_LIMIT, "the answer is larger than a packet");
        loop_refuse(w, to, &e);
        return;
    }
    int r = c->out != NULL ? -EAGAIN : packet_send(c->watch.fd, b.data, b.len, a->fds, a->n_fds);
    if (r == -EAGAIN)
        conn_queue(w, c, &b, a);
    else if (r < 0)
        conn_break(w, c);
}

void
loop_refuse(struct warden *w, struct waiter to, const struct err *e)
{
    struct answer a = {
        .msg = {.code = e->code != 0 ? -(int64_t)e->code : ERR_INTERNAL, .error = e->text}};
    loop_answer(w, to, &a);
}

static void
conn_event(struct warden *w, struct watch *watch, uint32_t events)
{
    struct conn *c = WATCH_OWNER(watch, struct conn, watch);
    if (events & EPOLLOUT)
        conn_flush(w, c);
    if (c->broken || (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
        return;
    long n = packet_recv(watch->fd, w->in, PROTO_PACKET_MAX, NULL, NULL);
    if (n == -EAGAIN)
        return;
    if (n > 0) {
        if (!w->serve(w, c->id, &c->phase, (size_t)n))
            conn_break(w, c);
        return;
    }
    if (n == -ERR_LIMIT)
        log_warn(ROOM, "request too large or with file descriptors: connection closed", NULL);
    conn_break(w, c);
}

static void
listener_event(struct warden *w, struct watch *watch, uint32_t events)
{
    (void)events;
    auto_fd int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && errno_is_shortage(errno))
        (void)poll(NULL, 0, ACCEPT_PAUSE_MS); /* it is still there, and we would spin */
    if (fd < 0)
        return;
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return;
    if (peer.uid != (uid_t)w->policy->agent_uid && peer.uid != geteuid()) {
        log_warn(ROOM, "connection refused: not the agent", "uid", LOG_U64(peer.uid), NULL);
        return;
    }
    size_t i = 0;
    while (i < WARDEN_CONNS_MAX && w->conns[i] != NULL)
        i++;
    if (i == WARDEN_CONNS_MAX) {
        log_warn(ROOM, "connection refused: too many", NULL);
        return;
    }
    struct conn *c = mem_new(NULL, struct conn);
    c->watch = (struct watch){TAKE_FD(fd), conn_event};
    c->id = ++w->conn_last;
    c->phase = PROTO_HELLO;
    c->out_tail = &c->out;
    packet_buffers(c->watch.fd);
    w->conns[i] = c;
    if (loop_watch(w, &c->watch, EPOLLIN) < 0)
        conn_break(w, c);
}

int
loop_listen(struct warden *w, loop_serve *serve, struct err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char path[PATH_MAX];
    auto_mem void *ctx = mem_ctx("listen");
    str_copy(path, sizeof(path), mem_printf(ctx, "%s/%s", w->policy->run_dir, POLICY_SOCKET));
    if (!str_copy(a.sun_path, sizeof(a.sun_path), path))
        return err_set(
            e, -ERR_LIMIT,
            "the socket's path \"%s\" is longer than %zu bytes: choose a shorter data_dir", path,
            sizeof(a.sun_path) - 1);
    auto_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(e, errno, "make a socket");
    (void)unlink(path);
    mode_t old = umask(0177);
    int r = bind(fd, (const void *)&a, sizeof(a)) < 0 ? -errno : 0;
    (void)umask(old);
    if (r < 0 || listen(fd, WARDEN_CONNS_MAX) < 0)
        return err_errno(e, r < 0 ? -r : errno, "listen on \"%s\"", path);
    if (w->root && (chown(path, 0, (gid_t)w->policy->agent_gid) < 0 || chmod(path, 0660) < 0))
        return err_errno(e, errno, "give the agent access to \"%s\"", path);
    w->serve = serve;
    w->listener = (struct watch){TAKE_FD(fd), listener_event};
    r = loop_watch(w, &w->listener, EPOLLIN);
    return r < 0 ? err_errno(e, -r, "watch \"%s\"", path) : 0;
}

void
loop_sweep(struct warden *w)
{
    for (size_t i = 0; i < WARDEN_CONNS_MAX; i++)
        if (w->conns[i] != NULL && w->conns[i]->broken)
            conn_close(w, w->conns[i]);
}

void
loop_close(struct warden *w)
{
    for (size_t i = 0; i < WARDEN_CONNS_MAX; i++)
        if (w->conns[i] != NULL)
            conn_close(w, w->conns[i]);
    loop_unwatch(w, &w->listener);
}

/* --- blocking work in children --- */

static void
job_event(struct warden *w, struct watch *watch, uint32_t events)
{
    (void)events;
    struct wjob *j = WATCH_OWNER(watch, struct wjob, watch);
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)watch->fd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
        return;
    loop_unwatch(w, watch);
    j->used = false;
    struct answer a = {0};
    struct err e = ERR_INIT;
    if (info.si_code != CLD_EXITED)
        err_set(&e, -ERR_INTERNAL, "%s: the helper was killed", j->what);
    else if (info.si_status != 0)
        err_errno(&e, info.si_status, "%s", j->what);
    if (j->done != NULL)
        j->done(w, &e);
    if (j->waiter.conn == 0)
        return;
    if (e.code != 0)
        loop_refuse(w, j->waiter, &e);
    else
        loop_answer(w, j->waiter, &a);
}

static size_t
free_job(const struct warden *w)
{
    size_t i = 0;
    while (i < WARDEN_JOBS_MAX && w->jobs[i].used)
        i++;
    return i;
}

bool
loop_can_fork(const struct warden *w)
{
    return free_job(w) < WARDEN_JOBS_MAX;
}

int
loop_fork(struct warden *w, struct waiter to, const struct loop_work *work, struct err *e)
{
    const char *what = work->what;
    size_t i = free_job(w);
    ASSERT(work->fn != NULL);
    if (i == WARDEN_JOBS_MAX)
        return err_set(e, -ERR_BUSY, "%s: more than %d children at once", what, WARDEN_JOBS_MAX);
    int pidfd = -1;
    pid_t pid = proc_fork_bare(0, w->alloc_dir, w->host_mnt, &pidfd);
    if (pid < 0)
        return err_errno(e, -pid, "%s: clone", what);
    if (pid == 0) {
        int r = work->fn(w, work->arg);
        _exit(r < 0 ? (-r < 200 ? -r : EIO) : 0);
    }
    struct wjob *j = &w->jobs[i];
    *j = (struct wjob){
        .watch = {pidfd, job_event}, .waiter = to, .done = work->done, .used = true};
    str_copy(j->what, sizeof(j->what), what);
    int r = loop_watch(w, &j->watch, EPOLLIN);
    return r < 0 ? err_errno(e, -r, "%s: watch", what) : 0;
}
