/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "isolation/confine.h"
#include "isolation/limits.h"
#include "isolation/mounts_apply.h"
#include "isolation/raw.h"
#include "isolation/record.h"

enum {
    SIGSET_BYTES = 8,
    PUMP_ROUNDS = 16,  /* 64 KiB each, before the next look at children */
    DRAIN_ROUNDS = 64, /* after the payload's end */
    EVENTS_BYTES = 256,
    RECORD_PAUSE_MS = 100,
    RECORD_START_TRIES = 3,
    RECORD_TRIES = 600, /* a minute */
    LOOK_PAUSE_MS = 50,
    CHILDREN_BYTES = 1024,
};

/* What lives as long as the shim; a few hundred bytes. */
static struct {
    struct record_run run;
    struct shim_log logs[2];
    char names[2][SHIM_NAME_MAX];
    int signals; /* signalfd of SIGCHLD */
    long payload;
    int fds[SHIM_FD_END];
    const int *trees;
    uint32_t n_trees;
} shim = {.signals = -1};

/* What the vfork child and its parent share; the parent is suspended until execve or exit. */
static struct {
    const struct plan_header *plan;
    long shim_pid;
    struct shim_status failed;
} launch;

static char *
text(const struct plan_header *h, uint32_t at)
{
    return (char *)(uintptr_t)h + at;
}

static void
fail(struct shim_status *st, int stage, long error, const char *what)
{
    st->stage = stage;
    st->error = (int32_t)-error;
    size_t n = strnlen(what, sizeof(st->what) - 1);
    memcpy(st->what, what, n);
    st->what[n] = '\0';
}

static int64_t
now_ns(void)
{
    struct timespec t = {0};
    (void)RAW(SYS_clock_gettime, CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Until it is written: a disk may be full where files are copied on write, and nobody else knows
 * how the task ended. */
static void
record_write(unsigned tries)
{
    while (tries-- > 0) {
        struct timespec pause = {.tv_nsec = RECORD_PAUSE_MS * 1000000};
        long n = RAW(SYS_pwrite64, shim.fds[SHIM_FD_RECORD], &shim.run, sizeof(shim.run),
                     offsetof(struct record, run));
        if (n == (long)sizeof(shim.run))
            return;
        (void)RAW(SYS_ppoll, NULL, 0, &pause, NULL, SIGSET_BYTES);
    }
}

/* The lock says that we live. A warden that found the record without one, because the warden that
 * made us died meanwhile, has settled it: nobody would know of us. */
static int
record_lock(void)
{
    const struct flock l = {.l_type = F_WRLCK};
    uint32_t state = RECORD_FINISHED;
    long r = RAW(SYS_fcntl, shim.fds[SHIM_FD_RECORD], F_SETLK, &l);
    if (r == 0)
        r = RAW(SYS_pread64, shim.fds[SHIM_FD_RECORD], &state, sizeof(state),
                offsetof(struct record, run.state));
    return r < 0 ? (int)r : state == RECORD_LAUNCHING ? 0 : -ESTALE;
}

/* --- the launch ------------------------------------------------------------------------------ */

static int
map_plan(struct plan_header **ret)
{
    int64_t end = RAW(SYS_lseek, shim.fds[SHIM_FD_PLAN], 0, 2 /* SEEK_END */);
    if (end <= 0 || end > PLAN_BYTES_MAX)
        return -EINVAL;
    long at =
        RAW(SYS_mmap, NULL, end, PROT_READ | PROT_WRITE, MAP_PRIVATE, shim.fds[SHIM_FD_PLAN], 0);
    if (at < 0)
        return (int)at;
    struct plan_header *h = (void *)at;
    int r = plan_check(h, (uint64_t)end);
    if (r < 0)
        return r;
    if (h->mounts != 0 && mounts_check(text(h, h->mounts), h->mounts_bytes) < 0)
        return -EINVAL;
    if (h->bytes - h->confine < sizeof(struct confine))
        return -EINVAL;
    *ret = h;
    return 0;
}

/* Offsets become pointers. */
static char **
strings(const struct plan_header *h, struct plan_strs s)
{
    uint64_t *v = (uint64_t *)(void *)text(h, s.at);
    for (uint32_t i = 0; i < s.n; i++)
        v[i] += (uint64_t)(uintptr_t)h;
    return (char **)(void *)v;
}

static int
open_logs(const struct plan_header *h, int write_ends[2], struct shim_status *st)
{
    const struct confine *c = (const void *)text(h, h->confine);
    for (int i = 0; i < 2; i++) {
        struct shim_log *l = &shim.logs[i];
        size_t n = strnlen(text(h, h->logs[i].name), SHIM_NAME_MAX - 13);
        memcpy(shim.names[i], text(h, h->logs[i].name), n);
        *l = (struct shim_log){.pipe = -1,
                               .file = -1,
                               .dir = shim.fds[SHIM_FD_LOGS],
                               .name = shim.names[i],
                               .index = h->logs[i].index,
                               .first = h->logs[i].first,
                               .files_max = h->log_files,
                               .gid = h->log_gid,
                               .bytes_max = h->log_bytes,
                               .errors = &shim.run.log_errors};
        write_ends[i] = i == 0 ? 1 : 2;
        if (!(h->flags & PLAN_LOGS))
            continue;
        int p[2];
        long r = shim_log_open(l);
        if (r == 0)
            r = RAW(SYS_pipe2, p, O_CLOEXEC);
        if (r < 0) {
            fail(st, SHIM_LOGS, r, i == 0 ? "stdout" : "stderr");
            return -1;
        }
        l->pipe = p[0];
        write_ends[i] = p[1];
        (void)RAW(SYS_fcntl, p[0], F_SETFL, O_NONBLOCK);
        /* so that the payload can open /dev/stdout */
        if (c->flags & CONFINE_IDS)
            (void)RAW(SYS_fchown, p[1], h->id_base + c->uid, h->id_base + c->gid);
    }
    return 0;
}

/* A task that is root of the host's user namespace is of its shim's user, and so might limit, slow
 * or signal it, were the shim not somebody whom no task can be. Its files stay root's, and so do
 * its capabilities until the end of the launch. */
static long
leave_root(void)
{
    long r = RAW(SYS_prctl, PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0);
    if (r < 0)
        return r == -EPERM ? 0 : r; /* a container that withholds CAP_SETPCAP */
    r = RAW(SYS_setresuid, CONFINE_SHIM_UID, CONFINE_SHIM_UID, CONFINE_SHIM_UID);
    if (r == -EINVAL) /* one whose user namespace has no such id */
        return RAW(SYS_prctl, PR_SET_SECUREBITS, 0, 0, 0, 0);
    (void)RAW(SYS_setfsuid, 0);
    return r;
}

/* In the payload, which takes its own ids from there. */
static long
be_root(void)
{
    if (RAW(SYS_getuid) != CONFINE_SHIM_UID)
        return 0;
    long r = RAW(SYS_setresuid, 0, 0, 0);
    return r == 0 ? RAW(SYS_prctl, PR_SET_SECUREBITS, 0, 0, 0, 0) : r;
}

/* The vfork child. */
static __attribute__((noinline)) _Noreturn void
payload(const int write_ends[2])
{
    const struct plan_header *h = launch.plan;
    const struct confine *c = (const void *)text(h, h->confine);
    struct confine_exec x = {
        .work_dir = text(h, h->work_dir),
        .apparmor = h->apparmor != 0 ? text(h, h->apparmor) : NULL,
        .keep_fds = 2,
        .userns = shim.fds[SHIM_FD_USERNS],
        .filter = h->task_filter.n > 0 ? (const void *)text(h, h->task_filter.at) : NULL,
        .n_filter = (uint16_t)h->task_filter.n,
    };
    const char *what = "root";
    int stage = SHIM_TASK;
    long r = be_root();
    if (r >= 0)
        what = "dup";
    for (int i = 0; i < 2 && r >= 0; i++)
        if (write_ends[i] > 2)
            r = RAW(SYS_dup3, write_ends[i], i + 1, 0);
    if (r >= 0)
        r = confine_task(c, &x, &what);
    if (r >= 0 && !(h->flags & (PLAN_ROOT | PLAN_ISOLATED))) {
        /* neither a pid namespace nor a cgroup: it would outlive its shim. (As root it would not be
         * signalled: the shim has no CAP_KILL when it dies.) */
        what = "parent";
        r = RAW(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (RAW(SYS_getppid) != launch.shim_pid)
            r = -ESRCH;
    }
    if (r >= 0) {
        stage = SHIM_EXEC;
        char *const *paths = (char **)(void *)text(h, h->paths.at);
        long worst =
            -ENOENT; /* a file that cannot be executed says more than one that is missing */
        for (uint32_t i = 0; i < h->paths.n; i++) {
            r = RAW(SYS_execve, paths[i], text(h, h->args.at), text(h, h->env.at));
            if (r != -ENOENT && r != -ENOTDIR)
                worst = r;
            if (r != -ENOENT && r != -ENOTDIR && r != -EACCES)
                break;
        }
        what = "execve";
        r = worst;
    }
    fail(&launch.failed, stage, r, what);
    for (;;)
        (void)RAW(SYS_exit, 127);
}

/* Shares stack and memory with the child as vfork(2) does: the child never returns from here. */
static __attribute__((noinline)) long
start_payload(uint32_t flags, int *pidfd, const int write_ends[2])
{
    struct clone_args a = {
        .flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD,
        .pidfd = (uint64_t)(uintptr_t)pidfd,
        .exit_signal = SIGCHLD,
    };
    if (flags & PLAN_CGROUP) {
        a.flags |= CLONE_INTO_CGROUP;
        a.cgroup = (uint32_t)shim.fds[SHIM_FD_CGROUP];
        if (flags & PLAN_ISOLATED)
            a.flags |=
                CLONE_NEWCGROUP; /* here, not with the shim: rooted at the leaf of the payload */
    }
    long r = RAW(SYS_clone3, &a, sizeof(a));
    if (r == 0)
        payload(write_ends);
    return r;
}

static void
send_status(const struct shim_status *st, int pidfd)
{
    shim_send(shim.fds[SHIM_FD_STATUS], st, sizeof(*st), pidfd);
}

/* What is made in an id-mapped directory must have an owner that the map knows: its root, who is
 * root on disk. Capabilities stay, which the change of this id would take. */
static long
own_by(uint32_t id_base)
{
    if (id_base == 0)
        return 0;
    long r = RAW(SYS_prctl, PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0);
    (void)RAW(SYS_setfsgid, id_base);
    (void)RAW(SYS_setfsuid, id_base);
    return r;
}

static int
build(const struct plan_header *h, struct shim_status *st)
{
    const struct confine *c = (const void *)text(h, h->confine);
    if (h->mounts != 0) {
        struct mounts_fail f = {.what = "securebits"};
        int r = (int)own_by(h->id_base);
        if (r == 0)
            r = mounts_apply((const void *)text(h, h->mounts), shim.trees, shim.n_trees, &f);
        if (r < 0) {
            fail(st, SHIM_MOUNTS, r, f.what);
            st->op = (int32_t)f.op;
            return -1;
        }
        (void)RAW(SYS_setfsuid, 0);
        (void)RAW(SYS_setfsgid, 0);
    }
    if (h->flags & PLAN_SUBREAPER)
        (void)RAW(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    const char *what = "";
    int r = confine_begin(c, &what);
    if (r == 0 && (h->flags & PLAN_ROOT)) {
        what = "the shim's user";
        r = (int)leave_root();
    }
    if (r < 0)
        fail(st, SHIM_BEGIN, r, what);
    return r;
}

static int
start(struct plan_header *h, struct shim_status *st)
{
    int write_ends[2];
    (void)RAW(SYS_umask, 0022);
    if (open_logs(h, write_ends, st) < 0 || build(h, st) < 0)
        return -1;
    (void)strings(h, h->paths);
    (void)strings(h, h->args);
    (void)strings(h, h->env);
    int pidfd = -1;
    launch.plan = h;
    launch.shim_pid = RAW(SYS_getpid);
    shim.payload = start_payload(h->flags, &pidfd, write_ends);
    if (shim.payload < 0) {
        fail(st, SHIM_CLONE, shim.payload, "clone3");
        return -1;
    }
    for (int i = 0; i < 2; i++)
        if (write_ends[i] > 2)
            raw_close(write_ends[i]);
    if (launch.failed.stage != SHIM_RUNS) {
        *st = launch.failed;
        return -1;
    }
    shim.run.state = RECORD_RUNNING;
    shim.run.started_ns = now_ns();
    shim.run.pid = (int32_t)shim.payload;
    record_write(RECORD_START_TRIES);
    send_status(st, pidfd);
    raw_close(pidfd);
    return 0;
}

/* Everything that only the launch needed goes: fds, the plan, privilege. */
static void
settle(struct plan_header *h)
{
    const char *what = "";
    raw_close(shim.fds[SHIM_FD_PLAN]);
    raw_close(shim.fds[SHIM_FD_CGROUP]);
    raw_close(shim.fds[SHIM_FD_HOST]);
    raw_close(shim.fds[SHIM_FD_USERNS]);
    const void *f = h->shim_filter.n > 0 ? text(h, h->shim_filter.at) : NULL;
    if (confine_end(f, (uint16_t)h->shim_filter.n, &what) < 0)
        for (;;)
            (void)RAW(SYS_exit_group, 120); /* never watch a task with privilege */
    (void)RAW(SYS_munmap, h, h->bytes);
}

/* --- watching -------------------------------------------------------------------------------- */

static bool
oom_killed(void)
{
    static const char key[] = "oom_kill ";
    char buf[EVENTS_BYTES];
    long n = RAW(SYS_pread64, shim.fds[SHIM_FD_OOM], buf, sizeof(buf), 0);
    for (long i = 0; i + (long)sizeof(key) <= n; i++)
        if ((i == 0 || buf[i - 1] == '\n') && memcmp(buf + i, key, sizeof(key) - 1) == 0)
            return buf[i + (long)sizeof(key) - 1] != '0';
    return false;
}

/* Reaps everything that has ended; true when the payload is among it. */
static bool
reap(bool oom)
{
    bool ended = false;
    for (;;) {
        int status = 0;
        long pid = RAW(SYS_wait4, -1, &status, WNOHANG, NULL);
        if (pid == -EINTR)
            continue;
        if (pid <= 0)
            return ended;
        if (pid != shim.payload)
            continue;
        ended = true;
        shim.run.finished_ns = now_ns();
        if (WIFSIGNALED(status)) {
            shim.run.signal = WTERMSIG(status);
            shim.run.flags |= WCOREDUMP(status) ? RECORD_CORE : 0;
        } else {
            shim.run.exit_code = WEXITSTATUS(status);
        }
        shim.run.flags |= oom && oom_killed() ? RECORD_OOM : 0;
    }
}

/* Without root there is no cgroup that could be killed. What the payload left behind is our child,
 * or will be when its own parent is killed (we are its subreaper): children are ended until there
 * is none, whatever session or group they went to. */
static void
end_children(void)
{
    char list[CHILDREN_BYTES];
    for (int round = 0; round < SHIM_END_ROUNDS_MAX; round++) {
        long fd = RAW(SYS_openat, AT_FDCWD, "/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
        long n = fd < 0 ? fd : RAW(SYS_read, fd, list, sizeof(list));
        raw_close(fd);
        if (fd < 0)
            (void)RAW(SYS_kill, -shim.payload, SIGKILL);
        if (n <= 0)
            return;
        long pid = 0;
        for (long i = 0; i < n; i++) { /* each number is followed by a space */
            if (list[i] >= '0' && list[i] <= '9') {
                pid = pid * 10 + (list[i] - '0');
            } else if (pid > 1) {
                (void)RAW(SYS_kill, pid, SIGKILL);
                pid = 0;
            }
        }
        int status = 0;
        (void)RAW(SYS_wait4, -1, &status, 0, NULL);
        while (RAW(SYS_wait4, -1, &status, WNOHANG, NULL) > 0)
            ;
    }
}

static void
watch(uint32_t flags)
{
    bool oom = (flags & PLAN_OOM) != 0;
    bool ended = false;
    while (!ended) {
        struct pollfd p[3] = {{.fd = shim.signals, .events = POLLIN},
                              {.fd = shim.logs[0].pipe, .events = POLLIN},
                              {.fd = shim.logs[1].pipe, .events = POLLIN}};
        long r = RAW(SYS_ppoll, p, 3, NULL, NULL, SIGSET_BYTES);
        if (r < 0) { /* a limit of fewer descriptors came over us: nothing is told, so look */
            const struct timespec pause = {.tv_nsec = LOOK_PAUSE_MS * 1000000};
            (void)RAW(SYS_ppoll, NULL, 0, &pause, NULL, SIGSET_BYTES);
        }
        for (int i = 0; i < 2; i++)
            if (r < 0 || p[i + 1].revents != 0)
                (void)shim_log_pump(&shim.logs[i], PUMP_ROUNDS);
        if (r < 0 || p[0].revents != 0) {
            char info[128];
            (void)RAW(SYS_read, shim.signals, info, sizeof(info));
            ended = reap(oom);
        }
    }
    if (!(flags & (PLAN_ROOT | PLAN_ISOLATED)))
        end_children();
    for (int i = 0; i < 2; i++)
        (void)shim_log_pump(&shim.logs[i], DRAIN_ROUNDS);
    shim.run.state = RECORD_FINISHED;
    record_write(RECORD_TRIES);
    /* The agent hears of it now: until the kernel has taken our namespaces apart it could launch
     * the next task. */
    raw_close(shim.fds[SHIM_FD_STATUS]);
}

int
shim_main(const int fds[SHIM_FD_END], const int *trees, uint32_t n_trees)
{
    struct shim_status st = {.stage = SHIM_RUNS};
    memcpy(shim.fds, fds, sizeof(shim.fds));
    shim.trees = trees;
    shim.n_trees = n_trees;
    (void)RAW(SYS_setpgid, 0, 0); /* SIGKILL to the warden's process group is not meant for us */
    /* all blocked for good: SIGCHLD comes by signalfd, and no other may end the keeper of the
     * status */
    const uint64_t all = ~UINT64_C(0), chld = UINT64_C(1) << (SIGCHLD - 1);
    (void)RAW(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, SIGSET_BYTES);
    shim.signals = (int)RAW(SYS_signalfd4, -1, &chld, SIGSET_BYTES, O_CLOEXEC | O_NONBLOCK);

    struct plan_header *h = NULL;
    const char *what = "plan";
    long r = record_lock();
    if (r == 0 && shim.fds[SHIM_FD_HOST] >= 0) {
        what = "setns to the host's mounts";
        r = RAW(SYS_setns, shim.fds[SHIM_FD_HOST], CLONE_NEWNS);
    }
    if (r == 0 && shim.fds[SHIM_FD_NETNS] >= 0) {
        what = "setns to the allocation's network";
        r = RAW(SYS_setns, shim.fds[SHIM_FD_NETNS], CLONE_NEWNET);
        raw_close(shim.fds[SHIM_FD_NETNS]);
    }
    if (r == 0)
        r = shim.signals < 0 ? shim.signals : map_plan(&h);
    if (r < 0)
        fail(&st, SHIM_PLAN, r, what);
    if (st.stage != SHIM_RUNS || start(h, &st) < 0) {
        send_status(&st, -1);
        return 1;
    }
    uint32_t flags = h->flags;
    settle(h);
    watch(flags);
    return 0;
}
