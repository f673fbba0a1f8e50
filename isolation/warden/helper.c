/* SPDX-License-Identifier: Apache-2.0
 *
 * A helper is forked from the warden itself, into its cgroup and namespaces, and confines itself on
 * the way to its execve as a task without a root of its own does. A slot is in these steps:
 *
 *   used, pidfd >= 0      it runs, or is being killed
 *   used, pidfd < 0       it has ended; what is left of it is being removed
 *
 * The exit socket's other end is the agent's. It is told the end when nothing is left.
 */
#include "isolation/warden/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/drivers.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/random.h"
#include "common/str.h"
#include "isolation/cgroup/dir.h"
#include "isolation/confine/confine.h"
#include "isolation/confine/raw.h"
#include "isolation/confine/sandbox.h"
#include "isolation/launch/policy.h"
#include "isolation/packet.h"
#include "isolation/proc.h"
#include "isolation/warden/bpf.h"
#include "isolation/warden/cache.h"
#include "isolation/warden/files.h"
#include "isolation/warden/handlers.h"
#include "isolation/warden/launch.h"
#include "isolation/warden/loop.h"

#define ROOM "warden"

enum {
    FD_PROGRAM = HELPER_FD_END, /* in the child, until the execve */
    FD_STATUS,
    FD_FREE,
    NOFILE = 256,
    OF_PROGRAMS = 4, /* paths at the end, for one that starts programs */
    /* Numbers that the warden gives to nothing else. The child begins with its table, and takes no
     * more of it than what is below the end of its own numbers: with 1,000 tasks there are 6,000
     * descriptors, which to close takes longer than all else. */
    SLOTS_LEAST = 64,
    SLOT_HELPERS = FD_FREE - HELPER_FD_TALK, /* behind those of the child */
    SLOT_SIZE = SLOT_HELPERS + 1,
    SLOTS_SIZE = 1 + WARDEN_HELPERS_MAX * SLOT_SIZE, /* the namespace without a network is first */
};

/* Everything that a start holds until the child runs. */
struct helper_start {
    const struct helper_request *request;
    struct user user;
    bool ids;          /* set them */
    bool scratch;      /* it has a directory of its own */
    bool programs;     /* it starts some of the host's */
    int fds[FD_FREE];  /* by their number in the child; owned, but 0 to 2 */
    int slot;          /* the first of the numbers that they have, too, while it runs */
    int helpers;       /* directory of the programs; owned */
    int exit;          /* the agent's end; owned */
    int talk;          /* likewise */
    const struct seccomp_program *filter;
};

/* Told by the child through FD_STATUS, where its program does not run. */
struct helper_failure {
    int32_t error;
    char step[44];
};

/* --- the child --- */

static _Noreturn void
child_fail(int status, int error, const char *step)
{
    struct helper_failure f = {.error = error < 0 ? -error : error};
    (void)str_copy(f.step, sizeof(f.step), step);
    (void)!write(status, &f, sizeof(f));
    _exit(127);
}

/* The files of the host that a program with a network needs. */
static int
child_files(const struct helper_start *s, struct err *e)
{
    const struct sandbox_path paths[] = {
        {.fd = s->fds[HELPER_FD_TASK], .write = true},
        {.fd = s->fds[HELPER_FD_SHARED], .write = true},
        {.fd = s->fds[HELPER_FD_SCRATCH], .write = true},
        {.fd = s->fds[FD_PROGRAM], .execute = true},
        {.fd = s->helpers, .execute = true},
        {.path = "/usr", .execute = true},
        {.path = "/lib", .execute = true},
        {.path = "/lib32", .execute = true},
        {.path = "/lib64", .execute = true},
        {.path = "/etc/ld.so.cache"},
        {.path = "/etc/ld.so.preload"},
        {.path = "/etc/localtime"},
        {.path = "/etc/ssl"},
        {.path = "/etc/pki"},
        {.path = "/etc/ca-certificates"},
        {.path = "/etc/crypto-policies"},
        {.path = "/etc/resolv.conf"},
        {.path = "/etc/nsswitch.conf"},
        {.path = "/etc/host.conf"},
        {.path = "/etc/hosts"},
        {.path = "/etc/gai.conf"},
        {.path = "/etc/services"},
        {.path = "/dev/null"},
        {.path = "/dev/urandom"},
#ifdef INSTRUMENTED
        {.path = "/proc"}, /* the compiler's runtime reads its own maps */
#endif
        /* The rest is for programs. */
        {.path = "/dev/null", .write = true},
        {.path = "/bin", .execute = true},
        {.path = "/etc/passwd"}, /* ssh looks for its own name */
        {.path = "/etc/ssh/ssh_known_hosts"},
    };
    const size_t n = s->programs ? ARRAY_LEN(paths) : ARRAY_LEN(paths) - OF_PROGRAMS;
    int r = sandbox_files(paths, n, e);
    /* then the task's user is the wall; root is none */
    if (r == -ERR_UNSUPPORTED && (!s->ids || s->user.uid != 0))
        err_clear(e);
    return e->code;
}

/* Leaves the warden's table, which it shares until then. */
static void
child_descriptors(struct helper_start *s)
{
    const int end = s->slot + SLOT_SIZE, status = s->slot + FD_STATUS - HELPER_FD_TALK;
    if (RAW(SYS_close_range, end, ~0U, CLOSE_RANGE_UNSHARE) < 0 &&
        RAW(SYS_unshare, CLONE_FILES) < 0)
        _exit(127);
    for (int i = HELPER_FD_TALK; i < FD_FREE; i++) {
        long r = RAW(SYS_dup3, s->slot + i - HELPER_FD_TALK, i, i >= HELPER_FD_END ? O_CLOEXEC : 0);
        if (r < 0)
            child_fail(status, (int)-r, "number descriptors");
        s->fds[i] = i;
    }
    s->helpers = s->slot + SLOT_HELPERS;
}

/* Enters the namespace without a network that earlier helpers were in. No device is up there, and
 * no helper has the capability to raise one, or a socket but those of the internet. */
static void
child_network(const struct warden *w, const struct helper_start *s)
{
    if (w->root && !s->request->network && w->helper_net >= 0 &&
        RAW(SYS_setns, w->helper_net, CLONE_NEWNET) < 0)
        child_fail(FD_STATUS, EPERM, "enter the namespace without a network");
}

/* Enters the host's mount namespace: its files, as the operator has them now, are what names are
 * resolved by. A program of the host has its scratch directory at /tmp of a namespace of its own,
 * for it asks where it is; nothing of /tmp itself. */
static void
child_mounts(const struct warden *w, const struct helper_start *s)
{
    long tree = -1;
    if (w->root && s->programs)
        tree = RAW(SYS_open_tree, HELPER_FD_SCRATCH, "",
                   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    if (w->host_mnt >= 0 && RAW(SYS_setns, w->host_mnt, CLONE_NEWNS) < 0)
        child_fail(FD_STATUS, EPERM, "enter the host's mount namespace");
    if (!w->root || !s->programs)
        return;
    long r = tree < 0 ? tree : RAW(SYS_unshare, CLONE_NEWNS);
    if (r == 0)
        r = RAW(SYS_mount, NULL, "/", NULL, MS_REC | MS_SLAVE, NULL);
    if (r == 0)
        r = RAW(SYS_move_mount, tree, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH);
    if (r < 0)
        child_fail(FD_STATUS, (int)-r, "mount the scratch directory");
    (void)RAW(SYS_close, tree);
}

static _Noreturn void
helper_child(struct warden *w, struct helper_start *s, pid_t parent)
{
    static char title[] = "paddock-helper", path[] = "PATH=/usr/bin:/bin", lang[] = "LANG=C.UTF-8";
    char *argv[] = {title, NULL}, *envp[] = {path, lang, NULL};
    const char *what = "";
    struct err e = ERR_INIT;
    child_descriptors(s);
    child_network(w, s);
    child_mounts(w, s);
    if (child_files(s, &e) < 0)
        child_fail(FD_STATUS, e.code == -ERR_UNSUPPORTED ? EOPNOTSUPP : EPERM, "Landlock");
    struct confine c = {.flags = CONFINE_NO_NEW_PRIVS};
    if (s->ids) {
        c.flags |= CONFINE_ISOLATED | CONFINE_IDS;
        c.uid = s->user.uid;
        c.gid = s->user.gid;
        c.n_groups = s->user.n_groups < CONFINE_GROUPS_MAX ? s->user.n_groups : CONFINE_GROUPS_MAX;
        memcpy(c.groups, s->user.groups, c.n_groups * sizeof(c.groups[0]));
    }
    const uint64_t file = (uint64_t)s->request->file_max;
    const struct confine_rlimit limits[] = {{RLIMIT_CORE, 0, 0, 0},
                                            {RLIMIT_NOFILE, 0, NOFILE, NOFILE},
                                            {RLIMIT_FSIZE, 0, file, file}};
    memcpy(c.rlimits, limits, sizeof(limits));
    c.n_rlimits = ARRAY_LEN(limits);
    const struct confine_exec x = {
        .keep_fds = FD_STATUS, .filter = s->filter->insns, .n_filter = s->filter->n};
    (void)signal(SIGPIPE, SIG_DFL);
    int r = confine_task(&c, &x, &what);
    if (r < 0)
        child_fail(FD_STATUS, r, what);
    /* after the ids, which take it away. In a pid namespace the parent is no process: who is left
     * without it is found by its cgroup */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    pid_t now = getppid();
    if (now != 0 && now != parent)
        _exit(127);
    long k = RAW(SYS_execveat, FD_PROGRAM, "", argv, envp, AT_EMPTY_PATH);
    child_fail(FD_STATUS, (int)-k, "execute the program");
}

/* --- numbers of descriptors --- */

static int
slot_of(const struct warden *w, const struct whelper *h)
{
    return w->helper_slots + 1 + (int)(h - w->helpers) * SLOT_SIZE;
}

int
helper_reserve(struct warden *w, struct err *e)
{
    w->helper_nothing = open("/dev/null", O_PATH | O_CLOEXEC);
    if (w->helper_nothing < 0)
        return err_errno(e, errno, "open \"/dev/null\"");
    w->helper_slots = SLOTS_LEAST;
    for (int i = SLOTS_LEAST; i < w->helper_slots + SLOTS_SIZE; i++)
        if (fcntl(i, F_GETFD) >= 0) /* of who started us */
            w->helper_slots = i + 1;
    for (int i = 0; i < SLOTS_SIZE; i++)
        if (dup3(w->helper_nothing, w->helper_slots + i, O_CLOEXEC) < 0)
            return err_errno(e, errno, "reserve descriptors for helpers");
    return 0;
}

static int
slot_fill(const struct warden *w, const struct whelper *h, struct helper_start *s, struct err *e)
{
    s->slot = slot_of(w, h);
    for (int i = HELPER_FD_TALK; i <= FD_FREE; i++)
        if (dup3(i < FD_FREE ? s->fds[i] : s->helpers, s->slot + i - HELPER_FD_TALK, O_CLOEXEC) < 0)
            return err_errno(e, errno, "number the helper's descriptors");
    return 0;
}

static void
slot_empty(const struct warden *w, const struct whelper *h)
{
    for (int i = 0; i < SLOT_SIZE; i++)
        (void)dup3(w->helper_nothing, slot_of(w, h) + i, O_CLOEXEC);
}

/* --- the end --- */

static void
helper_kill(struct whelper *h)
{
    if (h->cgroup.task_fd >= 0)
        (void)cgroup_kill(h->cgroup.task_fd);
    if (h->process.fd < 0)
        return;
    if (h->cgroup.task_fd < 0)
        proc_kill_descendants(h->pid);
    (void)pidfd_signal(h->process.fd, SIGKILL);
}

/* Nothing of the helper runs any more. The file of a killed helper may be half a download. */
static void
helper_keep(struct warden *w, struct whelper *h)
{
    const struct helper_end *x = &h->end;
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    auto_fd int alloc = openat(w->alloc_dir, h->alloc, flags);
    auto_fd int scratch = alloc < 0 ? -1 : openat(alloc, h->name, flags);
    if (scratch >= 0 && x->cause == HELPER_ENDED && x->signal == 0 && x->code == 0)
        cache_take(w, scratch, h->cache);
    h->cache[0] = '\0';
}

/* Whether nothing of it is left but the slot. */
static bool
helper_removed(struct warden *w, struct whelper *h)
{
    if (h->cgroup.shim_fd >= 0 || h->cgroup.task_fd >= 0) {
        if (h->cgroup.task_fd >= 0)
            (void)cgroup_kill(h->cgroup.task_fd);
        if (cgroup_task_remove(&w->cgroup, h->alloc, h->name, NULL) == -EBUSY)
            return false;
        struct wtask t = {.cgroup = h->cgroup};
        bpf_remove(w, &t);
        cgroup_task_close(&h->cgroup);
    }
    if (h->cache[0] != '\0')
        helper_keep(w, h);
    files_discard(w, h->alloc, h->name);
    return true;
}

static void
helper_finish(struct warden *w, struct whelper *h)
{
    ASSERT(h->used && h->process.fd < 0);
    if (!helper_removed(w, h)) {
        h->deadline_ns = clock_mono_ns() + WARDEN_RETRY_MS * NS_PER_MS;
        return;
    }
    if (h->exit.fd >= 0)
        (void)packet_send(h->exit.fd, &h->end, sizeof(h->end), NULL, 0);
    loop_unwatch(w, &h->exit);
    fd_close(&h->status);
    slot_empty(w, h);
    h->used = false;
    h->deadline_ns = 0;
}

static bool
ran_out_of_memory(const struct whelper *h)
{
    char text[512];
    int64_t kills;
    return h->cgroup.task_fd >= 0 &&
           cgroup_read(h->cgroup.task_fd, "memory.events", text, sizeof(text)) == 0 &&
           cgroup_parse_flat(text, "oom_kill", &kills) && kills > 0;
}

static void
process_event(struct warden *w, struct watch *watch, uint32_t events)
{
    (void)events;
    struct whelper *h = WATCH_OWNER(watch, struct whelper, process);
    struct helper_failure f;
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)watch->fd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
        return;
    bool exited = info.si_code == CLD_EXITED;
    h->end.code = exited ? info.si_status : 0;
    h->end.signal = exited ? 0 : info.si_status;
    if (h->end.cause == HELPER_ENDED && ran_out_of_memory(h))
        h->end.cause = HELPER_MEMORY;
    if (read(h->status, &f, sizeof(f)) == (ssize_t)sizeof(f)) {
        h->end.cause = HELPER_NOT_RUN;
        h->end.error = f.error;
        f.step[sizeof(f.step) - 1] = '\0';
        (void)str_copy(h->end.step, sizeof(h->end.step), f.step);
    }
    loop_unwatch(w, watch);
    helper_finish(w, h);
}

/* The agent has closed it, or is gone. Nothing is to be read there. */
static void
exit_event(struct warden *w, struct watch *watch, uint32_t events)
{
    (void)events;
    struct whelper *h = WATCH_OWNER(watch, struct whelper, exit);
    helper_kill(h);
    loop_unwatch(w, watch);
}

int64_t
helper_deadline(const struct warden *w)
{
    int64_t next = 0;
    for (size_t i = 0; i < WARDEN_HELPERS_MAX; i++) {
        const struct whelper *h = &w->helpers[i];
        if (h->used && h->deadline_ns != 0 && (next == 0 || h->deadline_ns < next))
            next = h->deadline_ns;
    }
    return next;
}

void
helper_deadlines(struct warden *w, int64_t now)
{
    for (size_t i = 0; i < WARDEN_HELPERS_MAX; i++) {
        struct whelper *h = &w->helpers[i];
        if (!h->used || h->deadline_ns == 0 || h->deadline_ns > now)
            continue;
        h->deadline_ns = 0;
        if (h->process.fd < 0) {
            helper_finish(w, h);
            continue;
        }
        h->end.cause = HELPER_DEADLINE;
        helper_kill(h);
    }
}

void
helper_kill_all(struct warden *w)
{
    for (size_t i = 0; i < WARDEN_HELPERS_MAX; i++) {
        struct whelper *h = &w->helpers[i];
        if (!h->used)
            continue;
        helper_kill(h);
        if (h->process.fd >= 0)
            (void)waitid(P_PIDFD, (id_t)h->process.fd, NULL, WEXITED);
        loop_unwatch(w, &h->process);
        if (h->cgroup.task_fd >= 0)
            (void)cgroup_wait_empty(h->cgroup.task_fd, WARDEN_SHIM_EXIT_MS);
        helper_finish(w, h);
    }
}

void
helper_stray(struct warden *w, const char *alloc, const char *name)
{
    struct cgroup_task c;
    if (cgroup_task_open(&w->cgroup, alloc, name, &c, NULL) == 0 && c.task_fd >= 0) {
        (void)cgroup_kill(c.task_fd);
        (void)cgroup_wait_empty(c.task_fd, WARDEN_SHIM_EXIT_MS);
        struct wtask t = {.cgroup = c};
        bpf_remove(w, &t);
        cgroup_task_close(&c);
    }
    if (cgroup_task_remove(&w->cgroup, alloc, name, NULL) < 0)
        log_warn(ROOM, "the cgroup of a helper of before is not removed", "alloc_id", alloc, NULL);
}

/* --- the start --- */

static const char *
program_file(const char *name, struct helper_start *s)
{
#define PROGRAM(n, file, has_scratch, starts)                                                      \
    if (str_eq(name, n)) {                                                                         \
        s->scratch = has_scratch;                                                                  \
        s->programs = starts;                                                                      \
        return file;                                                                               \
    }
    HELPER_PROGRAMS(PROGRAM)
#undef PROGRAM
    return NULL;
}

static int
open_program(struct warden *w, struct helper_start *s, struct err *e)
{
    const char *file = program_file(s->request->program, s);
    if (file == NULL)
        return err_set(e, -ERR_INVALID, "the warden knows no helper \"%s\"", s->request->program);
    s->helpers = open(w->helpers_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    s->fds[FD_PROGRAM] = s->helpers < 0 ? -1 : openat(s->helpers, file, O_PATH | O_CLOEXEC);
    if (s->fds[FD_PROGRAM] < 0)
        return err_errno(e, errno, "open \"%s/%s\"", w->helpers_dir, file);
    return 0;
}

static int
open_directories(struct warden *w, struct whelper *h, struct helper_start *s, const char *task,
                 struct err *e)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    auto_fd int alloc = openat(w->alloc_dir, h->alloc, flags);
    if (alloc < 0)
        return err_errno(e, errno, "open the directory of allocation \"%s\"", h->alloc);
    s->fds[HELPER_FD_TASK] = openat(alloc, task, flags);
    s->fds[HELPER_FD_SHARED] = openat(alloc, "alloc", flags);
    if (s->fds[HELPER_FD_TASK] < 0 || s->fds[HELPER_FD_SHARED] < 0)
        return err_errno(e, errno, "open the directories of task \"%s\"", task);
    if (s->scratch && mkdirat(alloc, h->name, 0700) < 0 && errno != EEXIST)
        return err_errno(e, errno, "make a directory in that of the allocation");
    s->fds[HELPER_FD_SCRATCH] = openat(alloc, s->scratch ? h->name : task, flags);
    if (s->fds[HELPER_FD_SCRATCH] < 0)
        return err_errno(e, errno, "open a directory in that of the allocation");
    if (s->scratch && s->ids && fchown(s->fds[HELPER_FD_SCRATCH], s->user.uid, s->user.gid) < 0)
        return err_errno(e, errno, "give a directory to the task's user");
    return 0;
}

/* Opens what is kept of the download, and notes where the helper's own will be. */
static int
open_cache(const struct warden *w, struct whelper *h, struct helper_start *s, struct err *e)
{
    const char *key = str_or(s->request->cache, "");
    int fd = -1;
    if (*key != '\0' && (!s->scratch || s->programs || !cache_key_is_good(key)))
        return err_set(e, -ERR_INVALID, "the key of its download is none");
    if (*key != '\0' && w->policy->artifact_cache > 0) {
        (void)str_copy(h->cache, sizeof(h->cache), key);
        fd = cache_open(w, key);
    }
    s->fds[HELPER_FD_CACHE] = fd >= 0 ? fd : fcntl(w->helper_nothing, F_DUPFD_CLOEXEC, 0);
    return s->fds[HELPER_FD_CACHE] < 0 ? err_errno(e, errno, "copy a descriptor") : 0;
}

static int
open_sockets(struct whelper *h, struct helper_start *s, struct err *e)
{
    int talk[2], end[2], status[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, talk) < 0)
        return err_errno(e, errno, "make a socket");
    s->talk = talk[0];
    s->fds[HELPER_FD_TALK] = talk[1];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, end) < 0)
        return err_errno(e, errno, "make a socket");
    h->exit.fd = end[0];
    s->exit = end[1];
    if (pipe2(status, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_errno(e, errno, "make a pipe");
    h->status = status[0];
    s->fds[FD_STATUS] = status[1];
    return fd_near_limit(status[1], WARDEN_FDS_KEPT)
               ? err_errno(e, EMFILE, "the warden has few file descriptors left: raise its limit "
                                      "of open files")
               : 0;
}

static int
make_cgroup(struct warden *w, struct whelper *h, const struct helper_request *q, struct err *e)
{
    if (w->cgroup.fd < 0)
        return 0;
    struct cgroup_plan plan;
    const struct cgroup_limits l = {
        .memory_max = q->memory_max, .pids_max = q->pids_max, .zswap_max = -1};
    int r = cgroup_shim_make(&w->cgroup, h->alloc, h->name, &h->cgroup, e);
    if (r == 0)
        r = cgroup_task_make(&w->cgroup, h->alloc, h->name, &h->cgroup, e);
    if (r < 0)
        return r;
    cgroup_plan(&l, &w->cgroup, &plan);
    r = cgroup_task_limit(&w->cgroup, h->alloc, h->name, &plan, &h->cgroup, e);
    if (r < 0)
        return r;
    /* the operator's network policy, and what no task may reach, hold for it too */
    const struct wtask t = {.cgroup = h->cgroup};
    const struct launch_spec any = {.isolated = true};
    return bpf_add(w, &t, &any, e);
}

/* Keeps the namespace of the first helper without a network: to make and end one takes the kernel
 * longer than the work of most. */
static void
keep_network(struct warden *w, pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    w->helper_net = fd < 0 ? -1 : dup3(fd, w->helper_slots, O_CLOEXEC);
}

static int
helper_fork(struct warden *w, struct whelper *h, struct helper_start *s, struct err *e)
{
    uint64_t flags = CLONE_FILES | (w->root ? CLONE_NEWPID | CLONE_NEWIPC : 0);
    bool first = w->root && !s->request->network && w->helper_net < 0;
    if (first)
        flags |= CLONE_NEWNET;
    if (slot_fill(w, h, s, e) < 0)
        return e->code;
    pid_t parent = getpid();
    pid_t pid = proc_fork_into(flags, h->cgroup.task_fd, &h->process.fd);
    if (pid == 0)
        helper_child(w, s, parent);
    if (pid < 0) {
        h->process.fd = -1;
        return err_errno(e, -pid, "make the helper's process");
    }
    ASSERT(h->process.fd >= 0 && s->request->deadline_ms > 0);
    if (first)
        keep_network(w, pid);
    h->pid = pid;
    h->deadline_ns = clock_mono_ns() + s->request->deadline_ms * NS_PER_MS;
    int r = loop_watch(w, &h->process, EPOLLIN);
    if (r == 0)
        r = loop_watch(w, &h->exit, EPOLLIN);
    if (r < 0)
        helper_kill(h);
    return r < 0 ? err_errno(e, -r, "watch the helper") : 0;
}

static int
find_filter(struct warden *w, struct helper_start *s, struct err *e)
{
    struct seccomp_program *f = &w->helper_filters[s->programs];
    s->filter = f;
    return f->n > 0 ? 0 : seccomp_compile_helper(w, s->programs, f, e);
}

static int
helper_prepare(struct warden *w, struct whelper *h, struct helper_start *s,
               const struct warden_task *task, struct err *e)
{
    const struct policy *p = w->policy;
    int r = 0;
    if (!driver_engine(task->driver) && !str_list_has(&p->drivers, task->driver))
        r = err_set(e, -ERR_POLICY, "driver \"%s\" is not allowed on this client",
                    str_or(task->driver, ""));
    else if (driver_unboxed(task->driver) && !p->raw_exec)
        r = err_set(e, -ERR_POLICY, "driver \"%s\" is disabled on this client", task->driver);
    if (r == 0 && w->root) {
        /* a container's users are nobody the host knows: their directories are for all */
        const struct warden_task as = {
            task->name, driver_engine(task->driver) ? "nobody" : task->user, task->driver};
        r = files_owner(w, &as, &s->user, e);
    }
    s->ids = w->root;
    if (r == 0)
        r = open_program(w, s, e);
    if (r == 0)
        r = find_filter(w, s, e);
    if (r == 0)
        r = open_directories(w, h, s, task->name, e);
    if (r == 0)
        r = open_cache(w, h, s, e);
    if (r == 0)
        r = open_sockets(h, s, e);
    if (r == 0)
        r = make_cgroup(w, h, s->request, e);
    return r == 0 ? helper_fork(w, h, s, e) : r;
}

static struct whelper *
free_slot(struct warden *w)
{
    if (w->helper_stamp == 0)
        w->helper_stamp = (uint32_t)rand_u64() | 1;
    for (size_t i = 0; i < WARDEN_HELPERS_MAX; i++) {
        struct whelper *h = &w->helpers[i];
        if (h->used)
            continue;
        *h = (struct whelper){.used = true, .status = -1, .cgroup = {-1, -1, 0}};
        h->process = (struct watch){-1, process_event};
        h->exit = (struct watch){-1, exit_event};
        (void)snprintf(h->name, sizeof(h->name), HELPER_NAME "%08x-%zu", w->helper_stamp, i);
        return h;
    }
    return NULL;
}

void
helper_start(struct warden *w, struct waiter to, const struct warden_request *q)
{
    auto_mem void *ctx = mem_ctx("helper");
    struct err e = ERR_INIT;
    struct helper_start s = {.request = q->helper, .helpers = -1, .exit = -1, .talk = -1};
    for (int i = 0; i < FD_FREE; i++)
        s.fds[i] = -1;
    (void)launch_settle(w);
    struct whelper *h = free_slot(w);
    if (h == NULL) {
        err_set(&e, -ERR_BUSY, "%d helpers work for tasks of this client already",
                WARDEN_HELPERS_MAX);
    } else {
        (void)str_copy(h->alloc, sizeof(h->alloc), q->alloc_id);
        (void)helper_prepare(w, h, &s, q->tasks.v[0], &e);
    }
    if (e.code != 0) {
        err_prefix(&e, "helper \"%s\"", q->helper->program);
        loop_refuse(w, to, &e);
    } else {
        struct answer a = {0};
        loop_answer_fd(ctx, &a, WARDEN_FD_EXIT, s.exit);
        loop_answer_fd(ctx, &a, WARDEN_FD_HELPER, s.talk);
        loop_answer(w, to, &a);
    }
    for (int i = HELPER_FD_TALK; i < FD_FREE; i++)
        fd_close(&s.fds[i]);
    fd_close(&s.helpers);
    fd_close(&s.exit);
    fd_close(&s.talk);
    if (h != NULL && h->process.fd < 0) /* else its end is waited for */
        helper_finish(w, h);
}
