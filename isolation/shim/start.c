/* SPDX-License-Identifier: Apache-2.0
 *
 * From a plan to a running program: what a shim and a joiner (shim/join.c) have in common.
 * Free-standing.
 *
 * First what both do before, then start_payload(), the child: on a stack of its own it shares the
 * memory of its parent until execve, and may change nothing there but `launch`. Then the parent's
 * side: it gives up its privilege, takes the listener of the child's filter, and waits for the
 * program to run.
 */
#include "isolation/shim/start.h"

#include <fcntl.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "isolation/confine/confine.h"
#include "isolation/confine/raw.h"
#include "isolation/limits.h"
#include "isolation/root/mounts_apply.h"
#include "isolation/shim/parts.h"

enum { CHILDREN_BYTES = 1024, STACK_BYTES = 32 * 1024 };

/* The state that the child shares with its parent until its execve or exit, as all of their
 * memory. */
static struct {
    const struct shim_payload *of;
    int channel[2];    /* with PLAN_AUDIT: the parent's end, the child's end */
    long parent;       /* as the child sees it while it lives */
    long stack;        /* of the child */
    uint32_t built;    /* the root is complete */
    uint32_t prepares; /* the kernel sets it to 0 when the memory is ours alone again */
    struct shim_status failed;
} launch;

void
shim_fail(struct shim_status *st, int stage, long error, const char *what)
{
    st->stage = stage;
    st->error = (int32_t)-error;
    size_t n = strnlen(what, sizeof(st->what) - 1);
    memcpy(st->what, what, n);
    st->what[n] = '\0';
}

long
shim_signals(void)
{
    const uint64_t all = ~UINT64_C(0);
    const uint64_t told = UINT64_C(1) << (SIGCHLD - 1) | UINT64_C(1) << (SIGPWR - 1);
    (void)RAW(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, SIGSET_BYTES);
    return RAW(SYS_signalfd4, -1, &told, SIGSET_BYTES, O_CLOEXEC | O_NONBLOCK);
}

int
shim_map_plan(int fd, struct plan_header **ret)
{
    int64_t end = RAW(SYS_lseek, fd, 0, 2 /* SEEK_END */);
    if (end <= 0 || end > PLAN_BYTES_MAX)
        return -EINVAL;
    long at = RAW(SYS_mmap, NULL, end, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (at < 0)
        return (int)at;
    struct plan_header *h = (void *)at;
    int r = plan_check(h, (uint64_t)end);
    if (r < 0)
        return r;
    if (h->mounts != 0 && mounts_check(plan_text(h, h->mounts), h->mounts_bytes) < 0)
        return -EINVAL;
    if (h->bytes - h->confine < sizeof(struct confine))
        return -EINVAL;
    *ret = h;
    return 0;
}

/* Offsets become pointers. */
static void
start_strings(const struct plan_header *h, struct plan_strs s)
{
    uint64_t *v = (uint64_t *)(void *)plan_text(h, s.at);
    for (uint32_t i = 0; i < s.n; i++)
        v[i] += (uint64_t)(uintptr_t)h;
}

/* A task that is root of the host's user namespace is of its shim's user, and so might limit, slow
 * or signal it, were the shim not somebody whom no task can be. Its files stay root's, and so do
 * its capabilities until the end of the launch. */
long
shim_leave_root(void)
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

static long
enter_root(int fd)
{
    long r = RAW(SYS_fchdir, fd);
    return r < 0 ? r : RAW(SYS_chroot, ".");
}

/* Binds the child's life to its parent's; it must not start when that cannot be had. */
static long
bind_to_parent(uint32_t flags)
{
    /* neither a pid namespace nor a cgroup: it would outlive its shim. (As root it would not be
     * signalled: the shim has no CAP_KILL when it dies.) */
    if (!(flags & (PLAN_ROOT | PLAN_ISOLATED))) {
        long r = RAW(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (r < 0)
            return r;
    } else if (!(flags & PLAN_JOIN)) {
        return 0;
    }
    return RAW(SYS_getppid) == launch.parent ? 0 : -ESRCH;
}

static long
start_execute(const struct plan_header *h, bool by_fd)
{
    char *const *paths = (char **)(void *)plan_text(h, h->paths.at);
    if (by_fd)
        return RAW(SYS_execveat, CONFINE_PROGRAM_FD, "", plan_text(h, h->args.at),
                   plan_text(h, h->env.at), AT_EMPTY_PATH);
    long worst = -ENOENT; /* a file that cannot be executed says more than a missing one */
    for (uint32_t i = 0; i < h->paths.n; i++) {
        long r = RAW(SYS_execve, paths[i], plan_text(h, h->args.at), plan_text(h, h->env.at));
        /* in a directory of PATH that is closed to the task nothing is known to be */
        if (r == -EACCES && h->paths.n > 1 &&
            RAW(SYS_faccessat, AT_FDCWD, paths[i], F_OK) == -EACCES)
            continue;
        if (r != -ENOENT && r != -ENOTDIR)
            worst = r;
        if (r != -ENOENT && r != -ENOTDIR && r != -EACCES)
            break;
    }
    return worst;
}

/* Says whether the program is a script: its interpreter opens the descriptor again, so that it
 * stays; a program must not have it. */
static bool
is_script(int fd)
{
    char head[2];
    return fd > 0 && RAW(SYS_pread64, fd, head, sizeof(head), 0) == (long)sizeof(head) &&
           head[0] == '#' && head[1] == '!';
}

/* The child. */
static void
start_payload(void)
{
    const struct shim_payload *p = launch.of;
    const struct plan_header *h = p->plan;
    const struct confine *c = (const void *)plan_text(h, h->confine);
    struct confine_listener listener = {.channel = launch.channel[1], .fd = -1};
    struct confine_exec x = {
        .work_dir = plan_text(h, h->work_dir),
        .apparmor = h->apparmor != 0 ? plan_text(h, h->apparmor) : NULL,
        .keep_fds = 2,
        .program = p->program,
        .script = is_script(p->program),
        .terminal = (h->flags & PLAN_TERMINAL) != 0,
        .userns = p->userns,
        .filter = h->task_filter.n > 0 ? (const void *)plan_text(h, h->task_filter.at) : NULL,
        .n_filter = (uint16_t)h->task_filter.n,
        .listener = h->flags & PLAN_AUDIT ? &listener : NULL,
        .built = &launch.built,
    };
    const char *what = "root";
    int stage = SHIM_TASK;
    long r = be_root();
    if (r >= 0 && p->root >= 0)
        r = enter_root(p->root);
    if (r >= 0)
        what = "dup";
    for (int i = 0; i < 3 && r >= 0; i++)
        if (p->streams[i] != i)
            r = RAW(SYS_dup3, p->streams[i], i, 0);
    if (r >= 0)
        r = confine_task(c, &x, &what);
    if (r >= 0 && listener.fd >= 0)
        shim_audit_send(listener.channel, listener.fd);
    if (r >= 0) {
        what = "parent";
        r = bind_to_parent(h->flags);
    }
    if (r >= 0) {
        stage = SHIM_EXEC;
        what = "execve";
        r = start_execute(h, p->program > 0);
    }
    shim_fail(&launch.failed, stage, r, what);
    for (;;)
        (void)RAW(SYS_exit, 127);
}

/* Shares its memory with us, but for its stack: a copy would take longer. Unlike after vfork(2) we
 * go on meanwhile. */
static long
clone_payload(void *stack, int *pidfd)
{
    uint32_t flags = launch.of->plan->flags;
    struct clone_args a = {
        .flags = CLONE_VM | CLONE_PIDFD | CLONE_CHILD_CLEARTID,
        .pidfd = (uint64_t)(uintptr_t)pidfd,
        .child_tid = (uint64_t)(uintptr_t)&launch.prepares,
        .exit_signal = SIGCHLD,
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = STACK_BYTES,
    };
    if (flags & PLAN_CGROUP) {
        a.flags |= CLONE_INTO_CGROUP;
        a.cgroup = (uint32_t)launch.of->cgroup;
        if (flags & PLAN_ISOLATED)
            /* here, not with the shim: rooted at the leaf of the payload */
            a.flags |= CLONE_NEWCGROUP;
    }
    launch.prepares = 1;
    return raw_clone(&a, sizeof(a), start_payload);
}

/* Never watch a task with privilege. */
static void
give_up_privilege(const struct plan_header *h, uint64_t keep)
{
    const char *what = "";
    const void *f = h->shim_filter.n > 0 ? plan_text(h, h->shim_filter.at) : NULL;
    if (confine_end(f, (uint16_t)h->shim_filter.n, keep, &what) < 0)
        for (;;)
            (void)RAW(SYS_exit_group, 120);
}

/* The listener of the child's filter. Until we have it the child makes no call that the filter
 * denies; without it the kernel denies them, but nobody would count. */
static int
await_listener(void)
{
    raw_close(launch.channel[1]);
    int r = shim_audit_receive(launch.channel[0]);
    raw_close(launch.channel[0]);
    return r;
}

/* Until the child runs the program, or has ended. */
static void
await_program(void)
{
    while (__atomic_load_n(&launch.prepares, __ATOMIC_ACQUIRE) != 0)
        (void)RAW(SYS_futex, &launch.prepares, FUTEX_WAIT, 1, NULL, NULL, 0);
}

long
shim_clone_payload(const struct shim_payload *p, int *pidfd, struct shim_status *st)
{
    start_strings(p->plan, p->plan->paths);
    start_strings(p->plan, p->plan->args);
    start_strings(p->plan, p->plan->env);
    launch.of = p;
    /* a process that joins a pid namespace stays outside of it, and is nobody there */
    launch.parent =
        (p->plan->flags & PLAN_JOIN) && (p->plan->flags & PLAN_ISOLATED) ? 0 : RAW(SYS_getpid);
    launch.stack = RAW(SYS_mmap, NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    const char *what = "mmap";
    long pid = launch.stack;
    if (pid >= 0 && (p->plan->flags & PLAN_AUDIT)) {
        what = "socketpair";
        pid = RAW(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, launch.channel);
    }
    if (pid >= 0) {
        what = "clone3";
        pid = clone_payload((void *)launch.stack, pidfd);
    }
    if (pid < 0)
        shim_fail(st, SHIM_CLONE, pid, what);
    return pid;
}

void
shim_finish_payload(struct shim_status *st)
{
    const struct shim_payload *p = launch.of;
    bool audit = (p->plan->flags & PLAN_AUDIT) != 0;
    __atomic_store_n(&launch.built, 1, __ATOMIC_RELEASE);
    (void)RAW(SYS_futex, &launch.built, FUTEX_WAKE, 1, NULL, NULL, 0);
    give_up_privilege(p->plan, p->keep);
    if (audit)
        *p->listener = await_listener();
    await_program();
    (void)RAW(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0); /* which the child's ids have set */
    if (launch.failed.stage != SHIM_RUNS)
        *st = launch.failed;
    else if (audit && *p->listener < 0)
        shim_fail(st, SHIM_TASK, *p->listener, "seccomp listener");
}

void
shim_forget_start(void)
{
    (void)RAW(SYS_munmap, launch.stack, STACK_BYTES);
    (void)RAW(SYS_munmap, launch.of->plan, launch.of->plan->bytes);
}

/* Without root there is no cgroup that could be killed. What the payload left behind is our child,
 * or will be when its own parent is killed (we are its subreaper): children are ended until there
 * is none, whatever session or group they went to. */
void
shim_end_children(long group)
{
    char list[CHILDREN_BYTES];
    for (int round = 0; round < SHIM_END_ROUNDS_MAX; round++) {
        long fd = RAW(SYS_openat, AT_FDCWD, "/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
        long n = fd < 0 ? fd : RAW(SYS_read, fd, list, sizeof(list));
        raw_close(fd);
        if (fd < 0)
            (void)RAW(SYS_kill, -group, SIGKILL);
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
