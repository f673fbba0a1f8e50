/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "isolation/confine.h"
#include "isolation/mounts_apply.h"
#include "isolation/raw.h"
#include "isolation/record.h"

enum {
    SIGSET_BYTES = 8,
    PUMP_ROUNDS = 16,  /* 64 KiB each, before the next look at children */
    DRAIN_ROUNDS = 64, /* after the payload's end */
    EVENTS_BYTES = 256,
};

/* What lives as long as the shim; a few hundred bytes. */
static struct {
    struct record_run run;
    struct shim_log logs[2];
    char names[2][SHIM_NAME_MAX];
    int signals; /* signalfd of SIGCHLD */
    long payload;
} shim = {.signals = -1};

/* What the vfork child and its parent share; the parent is suspended until execve or exit. */
static struct {
    const struct plan_header *plan;
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

static void
record_write(void)
{
    (void)RAW(SYS_pwrite64, SHIM_FD_RECORD, &shim.run, sizeof(shim.run),
              offsetof(struct record, run));
}

/* --- the launch ------------------------------------------------------------------------------ */

static struct plan_header *
map_plan(void)
{
    int64_t end = RAW(SYS_lseek, SHIM_FD_PLAN, 0, 2 /* SEEK_END */);
    if (end <= 0 || end > PLAN_BYTES_MAX)
        return NULL;
    long at = RAW(SYS_mmap, NULL, end, PROT_READ | PROT_WRITE, MAP_PRIVATE, SHIM_FD_PLAN, 0);
    if (at < 0)
        return NULL;
    struct plan_header *h = (void *)at;
    if (plan_check(h, (uint64_t)end) < 0 ||
        (h->mounts != 0 && mounts_check(text(h, h->mounts), h->mounts_bytes) < 0))
        return NULL;
    if (h->bytes - h->confine < sizeof(struct confine))
        return NULL;
    return h;
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
                               .dir = SHIM_FD_LOGS,
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
            (void)RAW(SYS_fchown, p[1], c->uid, c->gid);
    }
    return 0;
}

/* The vfork child. */
static __attribute__((noinline)) _Noreturn void
payload(const int write_ends[2])
{
    const struct plan_header *h = launch.plan;
    const struct confine *c = (const void *)text(h, h->confine);
    struct confine_exec x = {
        .work_dir = text(h, h->work_dir),
        .keep_fds = 2,
        .filter = h->task_filter.n > 0 ? (const void *)text(h, h->task_filter.at) : NULL,
        .n_filter = (uint16_t)h->task_filter.n,
    };
    const char *what = "dup";
    int stage = SHIM_TASK;
    long r = 0;
    for (int i = 0; i < 2 && r >= 0; i++)
        if (write_ends[i] > 2)
            r = RAW(SYS_dup3, write_ends[i], i + 1, 0);
    if (r >= 0)
        r = confine_task(c, &x, &what);
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
        a.cgroup = SHIM_FD_CGROUP;
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
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } c = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)st, .iov_len = sizeof(*st)};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (pidfd >= 0) {
        m.msg_control = c.bytes;
        m.msg_controllen = sizeof(c.bytes);
        c.align.cmsg_level = SOL_SOCKET;
        c.align.cmsg_type = SCM_RIGHTS;
        c.align.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&c.align), &pidfd, sizeof(int));
    }
    /* the warden may be gone: the task runs on and will be adopted */
    (void)RAW(SYS_sendmsg, SHIM_FD_STATUS, &m, MSG_NOSIGNAL);
    raw_close(SHIM_FD_STATUS);
}

static int
build(const struct plan_header *h, struct shim_status *st)
{
    const struct confine *c = (const void *)text(h, h->confine);
    if (h->mounts != 0) {
        struct mounts_fail f = {0};
        int r = mounts_apply((const void *)text(h, h->mounts), &f);
        if (r < 0) {
            fail(st, SHIM_MOUNTS, r, f.what);
            st->op = (int32_t)f.op;
            return -1;
        }
    }
    if (h->flags & PLAN_SUBREAPER)
        (void)RAW(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    const char *what = "";
    int r = confine_begin(c, &what);
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
    record_write();
    send_status(st, pidfd);
    raw_close(pidfd);
    return 0;
}

/* Everything that only the launch needed goes: fds, the plan, privilege. */
static void
settle(struct plan_header *h)
{
    const char *what = "";
    raw_close(SHIM_FD_PLAN);
    raw_close(SHIM_FD_CGROUP);
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
    long n = RAW(SYS_pread64, SHIM_FD_OOM, buf, sizeof(buf), 0);
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

static void
watch(uint32_t flags)
{
    bool oom = (flags & PLAN_OOM) != 0;
    bool ended = false;
    while (!ended) {
        struct pollfd p[3] = {{.fd = shim.signals, .events = POLLIN},
                              {.fd = shim.logs[0].pipe, .events = POLLIN},
                              {.fd = shim.logs[1].pipe, .events = POLLIN}};
        (void)RAW(SYS_ppoll, p, 3, NULL, NULL, SIGSET_BYTES);
        for (int i = 0; i < 2; i++)
            if (p[i + 1].revents != 0)
                (void)shim_log_pump(&shim.logs[i], PUMP_ROUNDS);
        if (p[0].revents != 0) {
            char info[128];
            (void)RAW(SYS_read, shim.signals, info, sizeof(info));
            ended = reap(oom);
        }
    }
    for (int i = 0; i < 2; i++)
        (void)shim_log_pump(&shim.logs[i], DRAIN_ROUNDS);
    if (!(flags & (PLAN_ROOT | PLAN_ISOLATED)))
        (void)RAW(SYS_kill, -shim.payload, SIGKILL); /* rootless: no cgroup that could be killed */
    shim.run.state = RECORD_FINISHED;
    record_write();
}

int
shim_main(void)
{
    struct shim_status st = {.stage = SHIM_RUNS};
    (void)RAW(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    (void)RAW(SYS_setpgid, 0, 0); /* SIGKILL to the warden's process group is not meant for us */
    /* all blocked for good: SIGCHLD comes by signalfd, and no other may end the keeper of the
     * status */
    const uint64_t all = ~UINT64_C(0), chld = UINT64_C(1) << (SIGCHLD - 1);
    (void)RAW(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, SIGSET_BYTES);
    shim.signals = (int)RAW(SYS_signalfd4, -1, &chld, SIGSET_BYTES, O_CLOEXEC | O_NONBLOCK);

    struct plan_header *h = map_plan();
    if (h == NULL || shim.signals < 0)
        fail(&st, SHIM_PLAN, -EINVAL, "plan");
    if (st.stage != SHIM_RUNS || start(h, &st) < 0) {
        send_status(&st, -1);
        return 1;
    }
    uint32_t flags = h->flags;
    settle(h);
    watch(flags);
    return 0;
}
