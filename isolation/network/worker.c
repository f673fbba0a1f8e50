/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/network/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/network/netbridge.h"
#include "isolation/network/netmap.h"
#include "isolation/network/netns.h"
#include "isolation/packet.h"

enum { SOCKET_FD = 3, LOCK_FD = 4 };

/* All of it in the child. */
struct worker {
    const struct net_conf *conf;
    int home;
    bool ready; /* bridge and table are there */
};

/* --- operations: 0, or -errno with the step in a->what --- */

static int
worker_fail(struct work_answer *a, int r, const char *what)
{
    if (r < 0)
        str_copy(a->what, sizeof(a->what), what);
    return r;
}

static int
make_ns(struct worker *h, struct work_answer *a, int *ns)
{
    const char *what = "";
    int r = *ns >= 0 ? *ns : netns_make(h->home, &what);
    if (r < 0)
        return worker_fail(a, r, what);
    *ns = r;
    return 0;
}

/* The bridge and its table, from the first allocation that needs them on. */
static int
worker_prepare(struct worker *h, struct work_answer *a)
{
    const char *what = "";
    int index, r = h->ready ? 0 : netbridge_open(h->conf, &index, &what);
    if (r == 0 && !h->ready)
        r = netmap_reset(h->conf, NULL, 0, &what);
    h->ready = h->ready || r == 0;
    return worker_fail(a, r, what);
}

static int
worker_make(struct worker *h, const struct net_record *net, struct work_answer *a, int *fd)
{
    const char *what = "";
    int r = make_ns(h, a, fd);
    if (r < 0 || net->addr == 0)
        return r;
    r = worker_prepare(h, a);
    if (r < 0)
        return r;
    r = netbridge_attach(h->conf, h->home, *fd, net->addr, &what);
    if (r == 0)
        r = netmap_add(h->conf, net, &what);
    if (r == -ENOENT)
        _exit(1); /* somebody flushed all rules: the next worker makes them anew */
    if (r < 0) {
        worker_fail(a, r, what);
        (void)netbridge_detach(h->conf, net->addr, &what);
    }
    return r;
}

/* Ports first: nobody shall be led to who comes next. */
static int
worker_unmake(struct worker *h, const struct net_record *net, struct work_answer *a)
{
    const char *what = "";
    int r = netmap_remove(h->conf, net, &what);
    if (r == 0)
        r = netbridge_detach(h->conf, net->addr, &what);
    return worker_fail(a, r, what);
}

/* --- all at once --- */

struct all {
    const struct net_record **v;
    size_t n;
};

static bool
is_known(uint32_t addr, void *arg)
{
    const struct all *all = arg;
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i]->addr == addr)
            return true;
    return false;
}

/* The warden's own bytes. */
static int
read_all(void *ctx, int fd, struct all *all)
{
    struct net_record rec;
    off_t at = 0;
    while (pread(fd, &rec, NET_RECORD_BYTES(0), at) == (ssize_t)NET_RECORD_BYTES(0)) {
        size_t n = NET_RECORD_BYTES(rec.n_ports);
        if (rec.n_ports > NET_PORTS_MAX || pread(fd, &rec, n, at) != (ssize_t)n)
            return -EPROTO;
        if ((all->n & (all->n - 1)) == 0)
            mem_resize(ctx, all->v, const struct net_record *, all->n > 0 ? all->n * 2 : 1);
        all->v[all->n++] = mem_dup(ctx, &rec, n);
        at += (off_t)n;
    }
    return 0;
}

/* Makes the bridge and the table anew, with the networks of the records. If there are none, and no
 * bridge of ours, nothing is touched. */
static int
worker_reset(struct worker *h, int fd, struct work_answer *a)
{
    auto_mem void *ctx = mem_ctx("reset");
    struct all all = {0};
    const char *what = "read the records";
    int index, r = read_all(ctx, fd, &all);
    if (r == 0 && all.n == 0 && !netbridge_is_ours(h->conf))
        return 0;
    if (r == 0)
        r = netbridge_open(h->conf, &index, &what);
    if (r == 0)
        r = netmap_reset(h->conf, all.v, all.n, &what);
    if (r == 0)
        r = netbridge_prune(h->conf, is_known, &all, &what);
    h->ready = r == 0;
    return worker_fail(a, r, what);
}

static int
worker_clear(struct worker *h, struct work_answer *a)
{
    struct all none = {0};
    const char *what = "";
    if (!netbridge_is_ours(h->conf))
        return 0;
    h->ready = false;
    int r = netmap_clear(h->conf, &what);
    if (r == 0)
        r = netbridge_prune(h->conf, is_known, &none, &what);
    if (r == 0)
        r = netbridge_remove(h->conf, &what);
    return worker_fail(a, r, what);
}

static int
worker_serve(struct worker *h, const struct work_request *q, struct work_answer *a, int *fd)
{
    switch (q->op) {
    case WORK_SPARE:
        return make_ns(h, a, fd);
    case WORK_MAKE:
        return worker_make(h, &q->net, a, fd);
    case WORK_REMOVE:
        return worker_unmake(h, &q->net, a);
    case WORK_RESET:
        return worker_reset(h, *fd, a);
    case WORK_CLEAR:
        return worker_clear(h, a);
    default:
        return worker_fail(a, -EINVAL, "unknown operation");
    }
}

/* --- the child --- */

/* Nothing else of the warden's is kept: it would outlive it. */
static int
worker_keep(int socket, int lock)
{
    int s = fcntl(socket, F_DUPFD_CLOEXEC, LOCK_FD + 1),
        l = fcntl(lock, F_DUPFD_CLOEXEC, LOCK_FD + 1);
    if (s < 0 || l < 0 || dup3(s, SOCKET_FD, O_CLOEXEC) < 0 || dup3(l, LOCK_FD, O_CLOEXEC) < 0)
        return -errno;
    return close_range(LOCK_FD + 1, ~0U, 0) < 0 ? -errno : 0;
}

static void
wait_for(short events)
{
    struct pollfd p = {.fd = SOCKET_FD, .events = events};
    (void)poll(&p, 1, -1);
}

_Noreturn void
worker_run(const struct net_conf *conf, int socket, int lock)
{
    struct worker h = {.conf = conf};
    struct work_request q;
    sigset_t all;
    (void)prctl(PR_SET_NAME, "paddock-network", 0, 0, 0);
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL); /* it ends with its socket, between two requests */
    if (worker_keep(socket, lock) < 0)
        _exit(1);
    while (flock(LOCK_FD, LOCK_EX) < 0 && errno == EINTR)
        ;
    h.home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    while (h.home >= 0) {
        int fds[PACKET_FDS_MAX], fd = -1;
        size_t n_fds = 0;
        wait_for(POLLIN);
        long n = packet_recv(SOCKET_FD, &q, sizeof(q), fds, &n_fds);
        if (n == -EAGAIN)
            continue;
        if (n != (long)sizeof(q))
            break;
        fd = n_fds > 0 ? fds[0] : -1;
        struct work_answer a = {.op = q.op, .seq = q.seq};
        a.code = worker_serve(&h, &q, &a, &fd);
        bool give = a.code == 0 && (q.op == WORK_SPARE || q.op == WORK_MAKE);
        int r;
        while ((r = packet_send(SOCKET_FD, &a, sizeof(a), &fd, give)) == -EAGAIN)
            wait_for(POLLOUT);
        fd_close(&fd);
        if (r < 0)
            break;
    }
    _exit(0);
}

int
worker_probe(const struct net_conf *conf, struct work_answer *ret)
{
    struct worker h = {.conf = conf};
    const struct net_record net = {
        .addr = net_gateway(conf) + 1, .n_ports = 1, .ports = {{1, 1, 1}}};
    auto_fd int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    auto_fd int ns = -1;
    const char *what = "";
    h.home = home < 0 ? home : netns_make(home, &what);
    if (h.home < 0) {
        ret->code = h.home;
        return worker_fail(ret, h.home, what);
    }
    int r = netns_enter(h.home);
    if (r == 0)
        r = worker_make(&h, &net, ret, &ns);
    if (netns_enter(home) < 0)
        abort(); /* in the wrong network */
    fd_close(&h.home);
    ret->code = r;
    return r;
}
