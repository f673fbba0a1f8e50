/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/nethand.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/str.h"
#include "isolation/netns.h"
#include "isolation/proto.h"

enum { SOCKET_FD = 3, LOCK_FD = 4 };

/* All of it in the child. */
struct hand {
    const struct net_conf *conf;
    int home;
};

/* --- operations: 0, or -errno with the step in a->what --------------------------------------- */

static int
fail(struct hand_answer *a, int r, const char *what)
{
    if (r < 0)
        str_copy(a->what, sizeof(a->what), what);
    return r;
}

static int
make_ns(struct hand *h, struct hand_answer *a, int *ns)
{
    const char *what = "";
    int r = *ns >= 0 ? *ns : netns_make(h->home, &what);
    if (r < 0)
        return fail(a, r, what);
    *ns = r;
    return 0;
}

static int
serve(struct hand *h, const struct hand_request *q, struct hand_answer *a, int *fd)
{
    switch (q->op) {
    case HAND_SPARE:
    case HAND_MAKE:
        return make_ns(h, a, fd);
    default:
        return 0;
    }
}

/* --- the child ------------------------------------------------------------------------------- */

/* Nothing else of the warden's is kept: it would outlive it. */
static int
keep(int socket, int lock)
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
nethand_run(const struct net_conf *conf, int socket, int lock)
{
    struct hand h = {.conf = conf};
    struct hand_request q;
    sigset_t all;
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL); /* it ends with its socket, between two requests */
    if (keep(socket, lock) < 0)
        _exit(1);
    while (flock(LOCK_FD, LOCK_EX) < 0 && errno == EINTR)
        ;
    h.home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    while (h.home >= 0) {
        int fds[PROTO_FDS_MAX], fd = -1;
        size_t n_fds = 0;
        wait_for(POLLIN);
        long n = proto_recv(SOCKET_FD, &q, sizeof(q), fds, &n_fds);
        if (n == -EAGAIN)
            continue;
        if (n != (long)sizeof(q))
            break;
        fd = n_fds > 0 ? fds[0] : -1;
        struct hand_answer a = {.op = q.op, .seq = q.seq};
        a.code = serve(&h, &q, &a, &fd);
        bool give = a.code == 0 && (q.op == HAND_SPARE || q.op == HAND_MAKE);
        int r;
        while ((r = proto_send(SOCKET_FD, &a, sizeof(a), &fd, give)) == -EAGAIN)
            wait_for(POLLOUT);
        fd_close(&fd);
        if (r < 0)
            break;
    }
    _exit(0);
}

int
nethand_probe(const struct net_conf *conf, struct hand_answer *ret)
{
    (void)conf;
    ret->code = -EOPNOTSUPP;
    return fail(ret, ret->code, "bridge");
}
