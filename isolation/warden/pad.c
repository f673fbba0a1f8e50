/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden's side of the launch pad (shim/pad.c): started with the warden, started again should
 * it die. One request at a time; the answer comes within the time of one fork, in which the warden
 * goes on with what the shim will need.
 */
#include "isolation/warden/pad.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/log.h"
#include "isolation/confine/raw.h"
#include "isolation/packet.h"
#include "isolation/proc.h"

#define ROOM "warden"

/* The root of the pad has no /proc, so /proc/self/ns is opened before: what is in it is then of
 * where we are. */
static int
enter_home(struct warden *w, int home[PAD_FD_END - PAD_FD_MNT], struct err *e)
{
    auto_fd int ns = open("/proc/self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (ns < 0)
        return err_errno(e, errno, "open /proc/self/ns");
    int r = w->base.dir != NULL ? base_enter(&w->base, e) : 0;
    if (r < 0)
        return r;
    static const char *const names[] = {"mnt", "ipc", "pid"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        home[i] = openat(ns, names[i], O_RDONLY | O_CLOEXEC);
        if (home[i] < 0)
            return err_errno(e, errno, "open /proc/self/ns/%s", names[i]);
    }
    return 0;
}

static _Noreturn void
run_pad(struct warden *w, int socket)
{
    /* room for what ps shows of a shim: the arguments of a process are where they were at start */
    static char title[PAD_TITLE_MAX] = "launch pad";
    memset(title + strlen(title), ' ', sizeof(title) - 1 - strlen(title));
    struct err e = ERR_INIT;
    int fds[PAD_FD_END] = {[PAD_FD] = socket};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* it makes directories for nobody */
    if (enter_home(w, fds + PAD_FD_MNT, &e) < 0) {
        log_error(ROOM, "the launch pad does not start", "error", e.text, NULL);
        _exit(1);
    }
    /* a task's standard input is no inode of the host's */
    auto_fd int null = w->base.dir != NULL ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
    for (int i = 0; i < 3 && w->base.dir != NULL; i++)
        if (null < 0 || dup2(null, i) < 0) {
            log_error(ROOM, "the launch pad does not start: /dev/null of tasks", "error",
                      strerror(errno), NULL);
            _exit(1);
        }
    char name[] = "paddock-shim";
    char *argv[] = {name, title, NULL}, *envp[] = {NULL};
    /* out of the way of the numbers that they get */
    int exe = fcntl(w->shim_exe, F_DUPFD_CLOEXEC, PAD_FD_END);
    long r = exe < 0 ? -errno : 0;
    for (int i = PAD_FD; i < PAD_FD_END && r >= 0; i++) {
        fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, PAD_FD_END);
        r = fds[i] < 0 ? -errno : 0;
    }
    for (int i = PAD_FD; i < PAD_FD_END && r >= 0; i++)
        r = RAW(SYS_dup3, fds[i], i, 0);
    if (r >= 0)
        r = RAW(SYS_execveat, exe, "", argv, envp, AT_EMPTY_PATH);
    log_error(ROOM, "the launch pad cannot be executed", "error", strerror((int)-r), NULL);
    _exit(1);
}

void
pad_stop(struct warden *w)
{
    fd_close(&w->pad);
    if (w->pad_pid > 0) {
        (void)kill(w->pad_pid, SIGKILL);
        while (waitpid(w->pad_pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    w->pad_pid = 0;
}

int
pad_start(struct warden *w, struct err *e)
{
    pad_stop(w);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, errno, "make the launch pad's socket");
    pid_t pid = proc_fork(NULL);
    if (pid == 0)
        run_pad(w, pair[1]);
    fd_close(&pair[1]);
    if (pid < 0) {
        fd_close(&pair[0]);
        return err_errno(e, -pid, "make the launch pad");
    }
    w->pad = pair[0];
    w->pad_pid = pid;
    return 0;
}

static int
send_fds(int sock, const void *p, size_t size, const int *fds, size_t n_fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(SHIM_FDS_MAX * sizeof(int))];
    } c;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = size};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    ASSERT(n_fds <= SHIM_FDS_MAX);
    if (n_fds > 0) {
        m.msg_control = c.bytes;
        m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        c.align.cmsg_level = SOL_SOCKET;
        c.align.cmsg_type = SCM_RIGHTS;
        c.align.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(&c.align), fds, n_fds * sizeof(int));
    }
    ssize_t n;
    do
        n = sendmsg(sock, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

static int
send_request(struct warden *w, const struct pad_request *q, const int *fds, size_t n_fds)
{
    return w->pad >= 0 ? send_fds(w->pad, q, sizeof(*q), fds, n_fds) : -EPIPE;
}

int
pad_socket(int pair[2], struct err *e)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, errno, "make the status socket");
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK); /* the shim waits in it, the warden does not */
    return 0;
}

/* Without an answer: should the pad be gone, pad_request() finds out. */
void
pad_wake(struct warden *w)
{
    (void)send_request(w, &(struct pad_request){.want = PAD_SOON}, NULL, 0);
}

int
pad_request(struct warden *w, const struct pad_request *q, int status, int leaf, struct err *e)
{
    const int fds[PAD_FDS_MAX] = {[PAD_STATUS] = status, [PAD_LEAF] = leaf};
    size_t n_fds = leaf >= 0 ? PAD_LEAF + 1 : PAD_STATUS + 1;
    int r = send_request(w, q, fds, n_fds);
    if (r == -EPIPE || r == -ECONNRESET) { /* it died before: one more try */
        log_warn(ROOM, "the launch pad is gone and is started again", NULL);
        r = pad_start(w, e);
        if (r < 0)
            return r;
        r = send_request(w, q, fds, n_fds);
    }
    return r < 0 ? err_errno(e, -r, "ask the launch pad for a shim") : 0;
}

static int
await_answer(struct warden *w, struct pad_answer *a, int *ret_pidfd)
{
    struct pollfd p = {.fd = w->pad, .events = POLLIN};
    int got[PACKET_FDS_MAX];
    size_t n_got = 0;
    long r;
    while ((r = packet_recv(w->pad, a, sizeof(*a), got, &n_got)) == -EAGAIN) {
        int ready = poll(&p, 1, WARDEN_PAD_MS);
        if (ready == 0 || (ready < 0 && errno != EINTR))
            return ready == 0 ? -ETIMEDOUT : -errno;
    }
    *ret_pidfd = n_got == 1 ? got[0] : -1;
    for (size_t i = 1; i < n_got; i++)
        fd_close(&got[i]);
    return r == (long)sizeof(*a) ? 0 : -EIO;
}

int
pad_take(struct warden *w, int *ret_pidfd, struct err *e)
{
    struct pad_answer a = {0};
    int r = await_answer(w, &a, ret_pidfd);
    if (r < 0) { /* there may be a shim: it ends with our end of its socket */
        pad_stop(w);
        return err_errno(e, -r, "get a shim from the launch pad");
    }
    if (a.pid <= 0 || *ret_pidfd < 0)
        return err_errno(e, a.pid < 0 ? -a.pid : EPROTO, "clone the shim");
    return a.pid;
}

int
pad_work(int status, const int fds[SHIM_FD_END], const int *trees, uint32_t n_trees, struct err *e)
{
    struct shim_work work = {.n_trees = n_trees};
    int all[SHIM_FDS_MAX];
    size_t n = 0;
    for (int i = 0; i < SHIM_FD_END; i++) {
        if (fds[i] < 0)
            continue;
        work.have |= 1u << i;
        all[n++] = fds[i];
    }
    if (n_trees > 0)
        memcpy(all + n, trees, n_trees * sizeof(all[0]));
    int r = send_fds(status, &work, sizeof(work), all, n + n_trees);
    if (r == -EPIPE || r == -ECONNRESET) /* it has failed, and has said why */
        r = 0;
    return r < 0 ? err_errno(e, -r, "tell the shim its work") : 0;
}

bool
pad_report(int socket, const char *who, const void *plan, size_t want, struct pad_fds *ret,
           struct err *e)
{
    struct shim_status st = {0};
    long n = packet_recv(socket, &st, sizeof(st), ret->v, &ret->n);
    if (n == -EAGAIN)
        return false;
    if (n != (long)sizeof(st))
        err_set(e, -ERR_INTERNAL, "the %s died during the start", who);
    else if (st.stage != SHIM_RUNS)
        plan_explain(plan, &st, e);
    else if (ret->n != want)
        err_set(e, -ERR_INTERNAL, "the %s sent %zu descriptors, not %zu", who, ret->n, want);
    return true;
}
