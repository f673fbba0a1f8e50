/* SPDX-License-Identifier: Apache-2.0
 *
 * The joiner: a command that runs in a task which runs already. A fork of the launch pad, born in
 * the leaf of the task's shim. It enters the namespaces of the shim, which no task can change,
 * starts the program as a shim does (shim/start.c), and waits for it. Nothing of it is to be seen
 * in the task: the joiner stays in the host's pid namespace and cannot be traced, and the child has
 * closed all descriptors but three, and is the program, when the task may look into it.
 *
 * It ends with the program, with the task, and when nobody listens any more: then the joiner kills
 * the program and all of its session. For that it keeps CAP_KILL, for which its filter leaves
 * SIGKILL by pidfd alone.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

#include "isolation/confine/confine.h"
#include "isolation/confine/raw.h"
#include "isolation/limits.h"
#include "isolation/shim/parts.h"
#include "isolation/shim/start.h"

enum { PROCS_BYTES = 1024, LOOK_PAUSE_MS = 10 };

static struct {
    int status; /* the warden's, then the agent's */
    int fds[SHIM_FD_END];
    int signals;
    long pid; /* of the program, in our pid namespace; its session has the same number */
    int pidfd;
    int streams[3]; /* the program's */
    int ours[3];    /* the agent's: input, output, error; with a terminal the master alone */
    uint32_t n_ours;
} joiner = {.signals = -1, .pidfd = -1};

/* --- the start --- */

static long
join_enter(const struct plan_header *h, const char **what)
{
    long r = 0;
    *what = "setns to the host's mounts";
    if (joiner.fds[SHIM_FD_HOST] >= 0)
        r = RAW(SYS_setns, joiner.fds[SHIM_FD_HOST], CLONE_NEWNS);
    if (r < 0 || !(h->flags & (PLAN_ISOLATED | PLAN_ROOT)))
        return r;
    *what = "setns to the task";
    int all = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET;
    return RAW(SYS_setns, joiner.fds[SHIM_FD_TARGET],
               h->flags & PLAN_ISOLATED ? all : CLONE_NEWNET);
}

static long
make_pipes(const char **what)
{
    *what = "pipe";
    for (int i = 0; i < 3; i++) {
        int p[2];
        long r = RAW(SYS_pipe2, p, O_CLOEXEC);
        if (r < 0)
            return r;
        joiner.streams[i] = p[i == 0 ? 0 : 1];
        joiner.ours[i] = p[i == 0 ? 1 : 0];
    }
    joiner.n_ours = 3;
    return 0;
}

/* In the task's root a name may be anything by now: only a terminal of devpts will do. */
static long
open_master(uint32_t flags)
{
    struct statfs fs = {0};
    struct open_how how = {.flags = O_RDWR | O_NOCTTY | O_CLOEXEC};
    if (!(flags & PLAN_ISOLATED))
        return RAW(SYS_openat2, AT_FDCWD, "/dev/ptmx", &how, sizeof(how));
    how.resolve = RESOLVE_NO_SYMLINKS;
    long fd = RAW(SYS_openat2, AT_FDCWD, "/dev/pts/ptmx", &how, sizeof(how));
    long r = fd < 0 ? fd : RAW(SYS_fstatfs, fd, &fs);
    if (r == 0 && fs.f_type != DEVPTS_SUPER_MAGIC)
        r = -ENOTTY;
    if (r == 0)
        return fd;
    raw_close(fd);
    return r;
}

static long
make_terminal(const struct plan_header *h, const char **what)
{
    const struct winsize size = {.ws_row = h->rows, .ws_col = h->columns};
    const int unlock = 0;
    *what = "ptmx";
    long master = open_master(h->flags);
    if (master < 0)
        return master;
    *what = "terminal";
    long r = RAW(SYS_ioctl, master, TIOCSPTLCK, &unlock);
    if (r == 0 && (h->rows != 0 || h->columns != 0))
        r = RAW(SYS_ioctl, master, TIOCSWINSZ, &size);
    if (r == 0)
        r = RAW(SYS_ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (r < 0)
        return r;
    for (int i = 0; i < 3; i++)
        joiner.streams[i] = (int)r;
    joiner.ours[0] = (int)master;
    joiner.n_ours = 1;
    return 0;
}

/* Opens what the program reads and writes. Pipes it may open again by their names in /proc and
 * /dev; a terminal for writing only: the task has the same user, and who may open it for reading
 * has what is typed. So it stays root's, whom no user namespace of a task has. */
static long
make_streams(const struct plan_header *h, const char **what)
{
    const struct confine *c = (const void *)plan_text(h, h->confine);
    bool terminal = (h->flags & PLAN_TERMINAL) != 0;
    long r = terminal ? make_terminal(h, what) : make_pipes(what);
    if (r < 0 || !(c->flags & CONFINE_IDS))
        return r;
    const int gid = (int)(h->id_base + c->gid);
    if (terminal) {
        (void)RAW(SYS_fchown, joiner.streams[0], -1, gid);
        return RAW(SYS_fchmod, joiner.streams[0], 0620);
    }
    for (int i = 0; i < 3; i++)
        (void)RAW(SYS_fchown, joiner.streams[i], h->id_base + c->uid, gid);
    return 0;
}

static long
join_begin(const struct plan_header *h, const char **what)
{
    const struct confine *c = (const void *)plan_text(h, h->confine);
    (void)RAW(SYS_umask, 0022);
    if (h->flags & PLAN_SUBREAPER)
        (void)RAW(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    long r = h->flags & PLAN_ISOLATED ? confine_keyring(what) : 0;
    if (r == 0)
        r = confine_hostname(c, what);
    if (r == 0 && (h->flags & PLAN_ROOT)) {
        *what = "the joiner's user";
        r = shim_leave_root();
    }
    return r;
}

static void
join_start(struct plan_header *h, struct shim_status *st)
{
    const char *what = "";
    long r = join_enter(h, &what);
    if (r < 0) {
        shim_fail(st, SHIM_JOIN, r, what);
        return;
    }
    r = make_streams(h, &what);
    if (r < 0) {
        shim_fail(st, SHIM_TERMINAL, r, what);
        return;
    }
    r = join_begin(h, &what);
    if (r < 0) {
        shim_fail(st, SHIM_BEGIN, r, what);
        return;
    }
    static struct shim_payload p;
    p = (struct shim_payload){
        .plan = h,
        .cgroup = joiner.fds[SHIM_FD_CGROUP],
        .userns = joiner.fds[SHIM_FD_USERNS],
        .keep = h->flags & PLAN_ROOT ? UINT64_C(1) << CAP_KILL : 0,
        .root = -1,
    };
    memcpy(p.streams, joiner.streams, sizeof(p.streams));
    joiner.pid = shim_clone_payload(&p, &joiner.pidfd, st);
    if (joiner.pid >= 0)
        shim_finish_payload(st);
}

/* --- the end --- */

static bool
kill_one(long pid)
{
    if (pid <= 1 || RAW(SYS_getsid, pid) != joiner.pid)
        return false;
    long fd = RAW(SYS_pidfd_open, pid, 0);
    bool is = fd >= 0 && RAW(SYS_getsid, pid) == joiner.pid; /* the number was not used anew */
    if (is)
        (void)RAW(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
    raw_close(fd);
    return is;
}

/* SIGKILL to all of the session; false: there was none. The number of the session stays ours as
 * long as the program is not reaped. */
static bool
kill_session(void)
{
    char text[PROCS_BYTES];
    bool any = false;
    long n, pid = 0;
    (void)RAW(SYS_lseek, joiner.fds[SHIM_FD_PROCS], 0, 0 /* SEEK_SET */);
    while ((n = RAW(SYS_read, joiner.fds[SHIM_FD_PROCS], text, sizeof(text))) > 0)
        for (long i = 0; i < n; i++) { /* a number in each line */
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else {
                any = kill_one(pid) || any;
                pid = 0;
            }
        }
    return any;
}

static void
end_session(uint32_t flags)
{
    const struct timespec pause = {.tv_nsec = LOOK_PAUSE_MS * 1000000};
    (void)RAW(SYS_pidfd_send_signal, joiner.pidfd, SIGKILL, NULL, 0);
    if (flags & PLAN_CGROUP) {
        for (int i = 0; i < SHIM_END_ROUNDS_MAX && kill_session(); i++)
            (void)RAW(SYS_ppoll, NULL, 0, &pause, NULL, SIGSET_BYTES);
    } else if (!(flags & (PLAN_ROOT | PLAN_ISOLATED))) {
        shim_end_children(joiner.pid);
    }
}

/* 1: the program has ended; 0: not yet; or -errno. Reaps others, which are ours without a pid
 * namespace. */
static long
join_look(siginfo_t *info, int flags)
{
    for (;;) {
        info->si_pid = 0;
        long r = RAW(SYS_waitid, P_ALL, 0, info, WEXITED | WNOWAIT | flags, NULL);
        if (r == -EINTR)
            continue;
        if (r < 0 || info->si_pid == 0)
            return r;
        if (info->si_pid == joiner.pid)
            return 1;
        (void)RAW(SYS_wait4, info->si_pid, NULL, WNOHANG, NULL);
    }
}

static void
join_watch(uint32_t flags)
{
    siginfo_t info = {0};
    long ended = 0;
    bool over = false;
    while (ended == 0 && !over) {
        struct pollfd p[3] = {{.fd = joiner.signals, .events = POLLIN},
                              {.fd = joiner.status, .events = POLLIN},
                              {.fd = joiner.fds[SHIM_FD_TARGET], .events = POLLIN}};
        long r = RAW(SYS_ppoll, p, 3, NULL, NULL, SIGSET_BYTES);
        over = (r < 0 && r != -EINTR) || p[1].revents != 0 || p[2].revents != 0;
        char dropped[128];
        (void)RAW(SYS_read, joiner.signals, dropped, sizeof(dropped));
        ended = join_look(&info, WNOHANG);
    }
    if (ended <= 0) {
        (void)RAW(SYS_pidfd_send_signal, joiner.pidfd, SIGKILL, NULL, 0);
        ended = join_look(&info, 0);
    }
    struct exec_exit x = {.signal = SIGKILL};
    if (ended > 0 && info.si_code == CLD_EXITED)
        x = (struct exec_exit){.code = info.si_status};
    else if (ended > 0)
        x.signal = info.si_status;
    shim_send(joiner.status, &x, sizeof(x), NULL, 0);
    end_session(flags);
}

int
shim_join(int status)
{
    struct shim_status st = {.stage = SHIM_RUNS};
    struct plan_header *h = NULL;
    int no_trees[MOUNTS_TREES_MAX];
    uint32_t n_trees = 0;
    joiner.status = status;
    memset(joiner.fds, 0xff, sizeof(joiner.fds));
    (void)RAW(SYS_setpgid, 0, 0);
    long r = shim_signals();
    joiner.signals = (int)r;
    if (r >= 0)
        r = shim_await_work(status, joiner.fds, no_trees, &n_trees);
    if (r == 0)
        return 1;
    if (r > 0)
        r = shim_map_plan(joiner.fds[SHIM_FD_PLAN], &h);
    if (r < 0)
        shim_fail(&st, SHIM_PLAN, r, "plan");
    else
        join_start(h, &st);
    bool runs = st.stage == SHIM_RUNS;
    shim_send(status, &st, sizeof(st), joiner.ours, runs ? joiner.n_ours : 0);
    if (!runs)
        return 1;
    static const int done[] = {SHIM_FD_PLAN, SHIM_FD_CGROUP, SHIM_FD_HOST, SHIM_FD_USERNS};
    for (unsigned i = 0; i < sizeof(done) / sizeof(done[0]); i++)
        raw_close(joiner.fds[done[i]]);
    for (uint32_t i = 0; i < joiner.n_ours; i++)
        raw_close(joiner.ours[i]);
    for (uint32_t i = 0; i < joiner.n_ours; i++) /* one, three times, of a terminal */
        raw_close(joiner.streams[i]);
    uint32_t flags = h->flags;
    shim_forget_start();
    join_watch(flags);
    return 0;
}
