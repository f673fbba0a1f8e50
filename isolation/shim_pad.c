/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch pad: paddock-shim as the warden starts it, once. It waits on its socket; each request
 * makes one shim, a fork of this small process that shares nothing with it, which is three times
 * faster than executing the program for every task. Shims are children of the warden
 * (CLONE_PARENT), not of the pad, and live on when both end. The pad ends with the warden's end of
 * the socket.
 *
 * The two namespaces that take longest to make, of mounts and of IPC, are made ahead: a moment
 * after a launch the pad enters new ones, the next shim is born there, and the pad goes home.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "isolation/confine.h"
#include "isolation/raw.h"
#include "isolation/shim.h"
#include "isolation/shim_start.h"

enum {
    CONTROL_BYTES = CMSG_SPACE(PAD_FDS_MAX * sizeof(int)),
    MADE_AHEAD = CLONE_NEWNS | CLONE_NEWIPC,
    REST_MS = 1, /* after a launch, which is to have the processor for itself */
};

static struct {
    bool away;   /* in namespaces that the next shim is to have */
    bool wanted; /* such are to be made */
    struct pad_request q;
    int received[PAD_FDS_MAX];
    size_t n_received;
    int fds[SHIM_FD_END];
    union {
        struct cmsghdr align;
        char bytes[CONTROL_BYTES];
    } control;
} pad;

static void
keep_fds(struct msghdr *m)
{
    pad.n_received = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (n > PAD_FDS_MAX - pad.n_received)
            n = PAD_FDS_MAX - pad.n_received;
        memcpy(pad.received + pad.n_received, CMSG_DATA(c), n * sizeof(int));
        pad.n_received += n;
    }
}

/* 1: a request is there; 0: the warden is gone; -errno: not a request. */
static long
receive(void)
{
    struct iovec iov = {.iov_base = &pad.q, .iov_len = sizeof(pad.q)};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = pad.control.bytes,
                       .msg_controllen = sizeof(pad.control.bytes)};
    long n = RAW(SYS_recvmsg, PAD_FD, &m, MSG_CMSG_CLOEXEC);
    if (n == -EINTR)
        return -EAGAIN;
    if (n <= 0)
        return 0;
    keep_fds(&m);
    size_t used = 0;
    for (int i = 0; i < SHIM_FD_END; i++) {
        bool here = (pad.q.have >> i & 1) != 0;
        pad.fds[i] = here && used < pad.n_received ? pad.received[used] : -1;
        used += here;
    }
    if (n != (long)sizeof(pad.q) || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
        used + pad.q.n_trees != pad.n_received)
        return -EPROTO;
    return 1;
}

void
shim_send(int sock, const void *p, size_t n, const int *fds, size_t n_fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(SHIM_SEND_FDS_MAX * sizeof(int))];
    } c = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n_fds > 0) {
        m.msg_control = c.bytes;
        m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        c.align.cmsg_level = SOL_SOCKET;
        c.align.cmsg_type = SCM_RIGHTS;
        c.align.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(&c.align), fds, n_fds * sizeof(int));
    }
    (void)RAW(SYS_sendmsg, sock, &m, MSG_NOSIGNAL);
}

static void
answer(long pid, int pidfd)
{
    struct pad_answer a = {.pid = (int32_t)pid};
    shim_send(PAD_FD, &a, sizeof(a), &pidfd, pidfd >= 0);
}

/* A launch that comes earlier makes its own. */
static void
rest(void)
{
    const struct timespec pause = {.tv_nsec = REST_MS * 1000000};
    struct pollfd p = {.fd = PAD_FD, .events = POLLIN};
    if (!pad.wanted || RAW(SYS_ppoll, &p, 1, &pause, NULL, SIGSET_BYTES) != 0)
        return;
    pad.wanted = false;
    pad.away = RAW(SYS_unshare, MADE_AHEAD) == 0;
}

static long
go_home(void)
{
    long r = 0;
    if (pad.away)
        r = RAW(SYS_setns, PAD_FD_MNT, CLONE_NEWNS);
    if (pad.away && r == 0)
        r = RAW(SYS_setns, PAD_FD_IPC, CLONE_NEWIPC);
    pad.away = r < 0;
    return r;
}

/* No CLONE_VM: what the shim does with its memory is its own. */
static long
make_shim(int *pidfd)
{
    bool isolated = (pad.q.clone_flags & MADE_AHEAD) == MADE_AHEAD;
    long r = isolated ? 0 : go_home();
    if (r < 0)
        return r;
    pad.wanted = pad.wanted || isolated;
    struct clone_args a = {
        .flags = CLONE_PARENT | CLONE_PIDFD | (pad.q.clone_flags & ~(pad.away ? MADE_AHEAD : 0ull)),
        .pidfd = (uint64_t)(uintptr_t)pidfd,
    };
    if (pad.fds[SHIM_FD_LEAF] >= 0) {
        a.flags |= CLONE_INTO_CGROUP;
        a.cgroup = (uint32_t)pad.fds[SHIM_FD_LEAF];
    }
    return RAW(SYS_clone3, &a, sizeof(a));
}

/* In the shim; ps shows the title. */
static int
become_shim(char *title, size_t title_size)
{
    size_t n = strnlen(pad.q.title, PAD_TITLE_MAX);
    memset(title, 0, title_size);
    memcpy(title, pad.q.title, n < title_size ? n : title_size);
    (void)RAW(SYS_close_range, PAD_FD, PAD_FD_END - 1, 0);
    raw_close(pad.fds[SHIM_FD_LEAF]);
    if (pad.q.join)
        return shim_join(pad.fds);
    return shim_main(pad.fds, pad.received + (pad.n_received - pad.q.n_trees), pad.q.n_trees);
}

int
shim_pad(char *title, size_t title_size)
{
    (void)RAW(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0); /* forks inherit it */
    const char *what = "";
    if (confine_signals(&what) < 0)
        return 1;
    for (;;) {
        rest();
        long r = receive();
        if (r == 0)
            return 0;
        if (r == -EAGAIN)
            continue;
        int pidfd = -1;
        if (r == 1)
            r = make_shim(&pidfd);
        if (r == 0)
            return become_shim(title, title_size);
        answer(r, pidfd);
        (void)RAW(SYS_close_range, PAD_FD_END, ~0u, 0);
        if (go_home() < 0) /* never in a task's namespaces; the warden starts another pad */
            return 1;
    }
}
