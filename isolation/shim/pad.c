/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch pad: paddock-shim as the warden starts it, once. It waits on its socket; each request
 * makes a shim, a fork of this small process that shares nothing with it, which is three times
 * faster than executing the program for every task. Shims are children of the warden
 * (CLONE_PARENT), not of the pad, and live on when both end. The pad ends with the warden's end of
 * the socket.
 *
 * The namespaces that take longest to make, of mounts, IPC and processes, are made as soon as the
 * warden hears of a launch, while it makes the cgroup: the pad enters new ones, the shim is born
 * there, and the pad goes home.
 */
#include <fcntl.h>
#include <linux/errno.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "isolation/confine/confine.h"
#include "isolation/confine/raw.h"
#include "isolation/shim/parts.h"
#include "isolation/shim/start.h"

enum {
    CONTROL_BYTES = CMSG_SPACE(SHIM_FDS_MAX * sizeof(int)),
    MADE_AHEAD = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID,
};

static struct {
    bool away; /* in namespaces that the next shim is to have */
    struct pad_request q;
    int fds[PAD_FDS_MAX];
    size_t n_fds;
} pad;

/* --- packets --- */

static bool
take_fds(struct msghdr *m, int *fds, size_t max, size_t *ret_n)
{
    *ret_n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (n > max - *ret_n)
            return false;
        memcpy(fds + *ret_n, CMSG_DATA(c), n * sizeof(int));
        *ret_n += n;
    }
    return (m->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
}

long
shim_recv(int sock, void *p, size_t n, int *fds, size_t max, size_t *n_fds)
{
    union {
        struct cmsghdr align;
        char bytes[CONTROL_BYTES];
    } control;
    struct iovec iov = {.iov_base = p, .iov_len = n};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = CONTROL_BYTES};
    long r;
    do
        r = RAW(SYS_recvmsg, sock, &m, MSG_CMSG_CLOEXEC);
    while (r == -EINTR);
    if (r <= 0)
        return r;
    return take_fds(&m, fds, max, n_fds) && r == (long)n ? 1 : -EPROTO;
}

long
shim_await_work(int status, int fds[SHIM_FD_END], int trees[MOUNTS_TREES_MAX], uint32_t *n_trees)
{
    struct shim_work work = {0};
    int got[SHIM_FDS_MAX];
    size_t n = 0, used = 0;
    long r = shim_recv(status, &work, sizeof(work), got, SHIM_FDS_MAX, &n);
    if (r <= 0)
        return r;
    for (int i = 0; i < SHIM_FD_END && used < n; i++)
        if (work.have >> i & 1)
            fds[i] = got[used++];
    if (work.n_trees > MOUNTS_TREES_MAX - *n_trees || used + work.n_trees != n)
        return -EPROTO;
    memcpy(trees + *n_trees, got + used, work.n_trees * sizeof(trees[0]));
    *n_trees += work.n_trees;
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

/* --- the pad --- */

static void
pad_send_pidfd(long pid, int pidfd)
{
    struct pad_answer a = {.pid = (int32_t)pid};
    shim_send(PAD_FD, &a, sizeof(a), &pidfd, pidfd >= 0);
}

static long
go_home(void)
{
    static const struct {
        int fd, type;
    } home[] = {
        {PAD_FD_MNT, CLONE_NEWNS}, {PAD_FD_IPC, CLONE_NEWIPC}, {PAD_FD_PID, CLONE_NEWPID}};
    long r = 0;
    for (unsigned i = 0; pad.away && r == 0 && i < sizeof(home) / sizeof(home[0]); i++)
        r = RAW(SYS_setns, home[i].fd, home[i].type);
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
    struct clone_args a = {
        .flags = CLONE_PARENT | CLONE_PIDFD | (pad.q.clone_flags & ~(pad.away ? MADE_AHEAD : 0ull)),
        .pidfd = (uint64_t)(uintptr_t)pidfd,
    };
    if (pad.n_fds > PAD_LEAF) {
        a.flags |= CLONE_INTO_CGROUP;
        a.cgroup = (uint32_t)pad.fds[PAD_LEAF];
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
    if (pad.n_fds > PAD_LEAF)
        raw_close(pad.fds[PAD_LEAF]);
    bool isolated = (pad.q.clone_flags & CLONE_NEWPID) != 0;
    return pad.q.want == PAD_JOINER ? shim_join(pad.fds[PAD_STATUS])
                                    : shim_main(pad.fds[PAD_STATUS], isolated);
}

int
shim_pad(char *title, size_t title_size)
{
    (void)RAW(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0); /* forks inherit it */
    static const char by_hand[] =
        "paddock-shim: there is no socket of paddock-warden: nothing else starts this program\n";
    const char *what = "";
    if (confine_signals(&what) < 0)
        return 1;
    for (;;) {
        long r = shim_recv(PAD_FD, &pad.q, sizeof(pad.q), pad.fds, PAD_FDS_MAX, &pad.n_fds);
        if (r == 0)
            return 0;
        if (r < 0 && r != -EPROTO) { /* no socket, or none that will ever say more */
            (void)RAW(SYS_write, 2, by_hand, sizeof(by_hand) - 1);
            return 1;
        }
        if (r == 1 && pad.q.want == PAD_SOON) { /* where that fails, clone3 says why */
            pad.away = pad.away || RAW(SYS_unshare, MADE_AHEAD) == 0;
            continue;
        }
        int pidfd = -1;
        if (r == 1)
            r = pad.n_fds > PAD_STATUS ? make_shim(&pidfd) : -EPROTO;
        if (r == 0)
            return become_shim(title, title_size);
        (void)RAW(SYS_sched_yield); /* where the shim waits for our processor it goes first */
        pad_send_pidfd(r, pidfd);
        (void)RAW(SYS_close_range, PAD_FD_END, ~0u, 0);
        if (go_home() < 0) /* never in a task's namespaces; the warden starts another pad */
            return 1;
    }
}
