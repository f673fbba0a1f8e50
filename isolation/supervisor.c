/* SPDX-License-Identifier: Apache-2.0
 *
 * `paddock agent` without systemd: see supervisor.h for the processes and signals. In this order:
 * the policy, which a child compiles; children, how each begins (groups, privilege, the signal of
 * its parent's death) and ends; signals; supervisor_step(), which alone decides what comes next
 * from time, phase and ends of children; the start in its order; and the loop.
 *
 * Nothing here parses anything but the compiled policy, and all of it runs as root where the agent
 * was started as root.
 */
#include "isolation/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/client.h"
#include "isolation/launch/policy.h"
#include "isolation/proc.h"

#define ROOM "supervisor"
#define WARDEN_NAME "paddock-warden"
#define HAND_NAME "paddock-hand"

enum {
    PAUSE_FIRST_MS = 250,
    PAUSE_MAX_MS = 30000,
    STEADY_MS = 10000,   /* ran that long: the next restart comes at once */
    FIRST_RUN_MS = 1000, /* an agent that ends sooner than that at first is not restarted */
    AGENT_STOP_MS = 60000,
    WARDEN_STOP_MS = 20000,
    WARDEN_READY_MS = 15000,
    SUPERVISOR_LOCK_MS = 10000,
    RELOAD_PAUSE_MS = 1000,
};

struct child {
    const char *name;
    pid_t pid; /* 0: not running */
    int64_t started_ns;
    int64_t restart_ns; /* 0: not waiting */
    int64_t pause_ms;
    unsigned starts;
};

enum phase { RUNNING, STOPPING_AGENT, STOPPING_WARDEN };

struct run {
    const struct supervisor *conf;
    void *ctx;
    struct policy *policy;
    const char *policy_path; /* of policy */
    char warden_exe[PATH_MAX];
    char hand_exe[PATH_MAX];
    bool root;
    int self; /* our own program, or what was installed in its place */
    char self_path[PATH_MAX];
    int lock;    /* inherited by the agent: held until it has ended */
    int signals; /* signalfd */
    int bell;    /* inotify: the agent asks for a reload; -1: nobody can */
    int64_t reload_ns, reloaded_ns; /* when the next is due, 0: none; and the last was */
    struct child warden, agent, hand; /* the last one where an engine is turned on */
    enum phase phase;
    int64_t deadline_ns;
    int exit_code;
};

static bool
has_warden(const char *dir)
{
    auto_mem void *ctx = mem_ctx("helpers");
    return access(mem_printf(ctx, "%s/" WARDEN_NAME, dir), X_OK) == 0;
}

int
supervisor_helpers(char *ret, unsigned long size, struct err *e)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n > 0) {
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        if (slash != NULL)
            *slash = '\0';
        if (has_warden(self) && str_copy(ret, size, self))
            return 0;
    } else {
        (void)str_copy(self, sizeof(self), "?");
    }
    if (has_warden(PKGLIBEXECDIR) && str_copy(ret, size, PKGLIBEXECDIR))
        return 0;
    return err_set(e, -ERR_NOT_FOUND, WARDEN_NAME " is neither in \"%s\" nor in \"%s\"", self,
                   PKGLIBEXECDIR);
}

/* --- the policy --- */

/* In the child: the only process that parses configuration as root. */
static _Noreturn void
compile_child(const struct supervisor *conf, int out)
{
    auto_mem void *ctx = mem_ctx("policy");
    struct policy *p = NULL;
    struct err e = ERR_INIT;
    auto_buf struct buf b = BUF_INIT(POLICY_BYTES_MAX);
    int r = conf->load(conf->arg, ctx, &p, &e);
    if (r == 0) {
        mp_encode(&b, &type_policy, p);
        r = buf_error(&b);
    }
    if (r == 0)
        r = fd_write_full(out, b.data, b.len);
    if (r < 0 && e.text[0] != '\0')
        fprintf(stderr, "%s\n", e.text);
    _exit(r < 0 ? 1 : 0);
}

/* 0, or the exit status of a failure that the child has told. */
static int
compile_policy(struct run *u, struct err *e)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return err_errno(e, errno, "make a pipe");
    pid_t pid = proc_fork(NULL);
    if (pid == 0)
        compile_child(u->conf, p[1]);
    fd_close(&p[1]);
    uint8_t *text = mem_array(u->ctx, uint8_t, POLICY_BYTES_MAX);
    ssize_t n = pid < 0 ? pid : fd_read_full(p[0], text, POLICY_BYTES_MAX);
    fd_close(&p[0]);
    if (n < 0)
        return err_errno(e, (int)-n, "compile the policy");
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return 1;
    void *ret = NULL;
    int r = mp_decode(u->ctx, &type_policy, SLICE(text, (size_t)n), BUDGET(8 << 20), &ret, e);
    mem_free(text);
    u->policy = ret;
    return r < 0 ? r : policy_check(u->policy, e);
}

static int
find_user(struct run *u, struct err *e)
{
    struct policy *p = u->policy;
    struct user user;
    if (!u->root) {
        p->agent_uid = geteuid();
        p->agent_gid = getegid();
        char id[LOG_NUM];
        struct err unknown = ERR_INIT;
        bool named = users_resolve(log_u64(id, geteuid()), NULL, 0, NULL, &user, &unknown) == 0;
        p->agent_user = mem_strdup(p, named && user.name[0] != '\0' ? user.name : id);
        return 0;
    }
    struct err why = ERR_INIT;
    const char *name = str_or(p->agent_user, "paddock");
    if (users_resolve(name, NULL, 0, NULL, &user, &why) < 0)
        return err_set(
            e, -ERR_NOT_FOUND,
            "user \"%s\" does not exist, and the agent must not run as root: make it with "
            "`useradd --system --home-dir /var/lib/paddock --shell /usr/sbin/nologin %s`",
            name, name);
    if (user.uid == 0)
        return err_set(e, -ERR_POLICY, "user \"%s\" is root: the agent must not run as root", name);
    p->agent_user = mem_strdup(p, name);
    p->agent_uid = user.uid;
    p->agent_gid = user.gid;
    return 0;
}

/* --- children --- */

static int
drop_privilege(const struct run *u)
{
    if (u->root) {
        for (int cap = 0; cap < 64; cap++)
            if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno == EINVAL)
                break;
        gid_t gid = (gid_t)u->policy->agent_gid;
        uid_t uid = (uid_t)u->policy->agent_uid;
        if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
            return -errno;
    }
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static _Noreturn void
child_failed(const char *what, int error)
{
    fprintf(stderr, "paddock: cannot start %s: %s\n", what, err_name(-error));
    _exit(126);
}

/* Common to both: own process group (a terminal's ^C is the supervisor's), end with the supervisor
 * by the signal `death`. */
static void
child_begin(pid_t parent, int death)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, death, 0, 0, 0);
    if (getppid() != parent)
        _exit(126);
}

static _Noreturn void
warden_child(struct run *u, pid_t parent)
{
    char *argv[] = {(char *)(uintptr_t)WARDEN_NAME, (char *)(uintptr_t) "-policy",
                    (char *)(uintptr_t)u->policy_path, NULL};
    const char *journal = getenv("JOURNAL_STREAM");
    char *envp[] = {(char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                    str_empty(journal) ? NULL : mem_printf(u->ctx, "JOURNAL_STREAM=%s", journal),
                    NULL};
    child_begin(parent, u->conf->stop_tasks ? SIGUSR1 : SIGTERM);
    execve(u->warden_exe, argv, envp);
    child_failed(u->warden_exe, errno);
}

static _Noreturn void
hand_child(struct run *u, pid_t parent)
{
    char *argv[] = {(char *)(uintptr_t)HAND_NAME, (char *)(uintptr_t) "-policy",
                    (char *)(uintptr_t)u->policy_path, NULL};
    char *envp[] = {(char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    child_begin(parent, SIGTERM);
    execve(u->hand_exe, argv, envp);
    child_failed(u->hand_exe, errno);
}

static _Noreturn void
agent_child(struct run *u, pid_t parent)
{
    const struct supervisor *s = u->conf;
    char **argv = mem_array(u->ctx, char *, (size_t)s->argc + 4);
    size_t n = 0;
    argv[n++] = (char *)(uintptr_t) "paddock";
    argv[n++] = s->argv[0];
    argv[n++] = (char *)(uintptr_t) "-supervised";
    argv[n++] = (char *)(uintptr_t)u->policy->run_dir;
    for (int i = 1; i < s->argc; i++)
        argv[n++] = s->argv[i];
    ASSERT(n == (size_t)s->argc + 3); /* and a NULL */
    int r = drop_privilege(u);
    if (r < 0)
        child_failed("the agent", -r);
    (void)fcntl(u->lock, F_SETFD, 0);
    /* After the change of user, which forgets the signal. An agent whose tasks are being ended
     * under it would start them again, and ask a warden that is gone to stop them; nothing of it is
     * kept. */
    child_begin(parent, s->stop_tasks ? SIGKILL : SIGTERM);
    fexecve(u->self, argv, environ);
    child_failed("the agent", errno);
}

/* A daemon that starts again is the program that is installed now. */
static void
find_self(struct run *u)
{
    int fd = open(u->self_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* removed: what we have is still good */
    fd_close(&u->self);
    u->self = fd;
}

static void
before_agent(struct run *u)
{
    struct err e = ERR_INIT;
    if (u->conf->before_agent != NULL && u->conf->before_agent(u->conf->arg, u->policy, &e) < 0)
        log_error(ROOM, "the agent gets the configuration as it was", "error", e.text, NULL);
}

/* Takes over which files are to be read for the agent, the next time. */
static void
take_agent_files(struct policy *to, const struct policy *from)
{
    to->agent_files = (struct str_list){NULL, 0};
    for (size_t i = 0; i < from->agent_files.n; i++)
        list_add(to, to->agent_files, mem_strdup(to, from->agent_files.v[i]));
}

/* The policy of the configuration as it is now, for the warden. What both daemons were started with
 * stays. */
static void
reload_policy(struct run *u)
{
    struct policy *old = u->policy, *p;
    struct err e = ERR_INIT;
    int r = compile_policy(u, &e);
    p = u->policy;
    u->policy = old;
    if (r == 0 && (!str_eq(p->run_dir, old->run_dir) || !str_eq(p->data_dir, old->data_dir) ||
                   !str_eq(p->alloc_dir, old->alloc_dir)))
        r = err_set(&e, -ERR_CONFLICT, "its directories are others: that takes a new start");
    if (r == 0) {
        p->agent_user = old->agent_user;
        p->agent_uid = old->agent_uid;
        p->agent_gid = old->agent_gid;
        p->cgroup_root = old->cgroup_root;
        r = policy_install(p, NULL, &e);
    }
    if (r == 0)
        take_agent_files(old, p);
    if (r == 0 && u->warden.pid > 0)
        (void)kill(u->warden.pid, SIGHUP);
    if (r != 0)
        log_error(ROOM, "the warden keeps the policy as it was", "error",
                  str_or(e.text, "it was told above"), NULL);
    if (p != old)
        talloc_free(p);
}

static int
supervisor_start(struct run *u, struct child *c)
{
    find_self(u);
    if (c == &u->agent)
        before_agent(u);
    pid_t parent = getpid();
    pid_t pid = proc_fork(NULL);
    if (pid == 0) {
        if (c == &u->warden)
            warden_child(u, parent);
        if (c == &u->hand)
            hand_child(u, parent);
        agent_child(u, parent);
    }
    c->restart_ns = 0;
    if (pid < 0) {
        log_error(ROOM, "cannot fork", "name", c->name, "error", err_name(pid), NULL);
        c->restart_ns = clock_mono_ns() + PAUSE_FIRST_MS * NS_PER_MS;
        return pid;
    }
    c->pid = pid;
    c->starts++;
    c->started_ns = clock_mono_ns();
    log_debug(ROOM, "started", "name", c->name, "pid", LOG_I64(pid), NULL);
    return 0;
}

static void
child_ended(struct run *u, struct child *c, int status)
{
    int64_t now = clock_mono_ns(), ran_ms = (now - c->started_ns) / NS_PER_MS;
    bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    c->pid = 0;
    bool refused = WIFEXITED(status) && WEXITSTATUS(status) != LOG_FATAL_STATUS && c->starts == 1 &&
                   ran_ms < FIRST_RUN_MS;
    if (c == &u->agent && u->phase == RUNNING && (clean || refused)) {
        u->phase = STOPPING_AGENT; /* it has; go on with the warden */
        u->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        return;
    }
    /* while the agent drains, it needs a warden to stop its tasks */
    if (u->phase == STOPPING_WARDEN || (u->phase == STOPPING_AGENT && c == &u->agent)) {
        if (c == &u->agent && !clean)
            u->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        return;
    }
    if (ran_ms >= STEADY_MS)
        c->pause_ms = 0;
    char code[LOG_NUM];
    log_warn(ROOM, "ended: restarting it", "name", c->name,
             WIFSIGNALED(status) ? "signal" : "exit_code",
             log_i64(code, WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)), "pause",
             LOG_DUR(c->pause_ms * NS_PER_MS), NULL);
    c->restart_ns = now + c->pause_ms * NS_PER_MS + 1;
    c->pause_ms = c->pause_ms == 0 ? PAUSE_FIRST_MS : c->pause_ms * 2;
    if (c->pause_ms > PAUSE_MAX_MS)
        c->pause_ms = PAUSE_MAX_MS;
}

/* Also what the warden leaves to us as the nearest reaper: shims whose warden died. */
static void
supervisor_reap(struct run *u)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == u->warden.pid)
            child_ended(u, &u->warden, status);
        else if (pid == u->agent.pid)
            child_ended(u, &u->agent, status);
        else if (pid == u->hand.pid)
            child_ended(u, &u->hand, status);
    }
}

static void
supervisor_reload(struct run *u)
{
    u->reload_ns = 0;
    u->reloaded_ns = clock_mono_ns();
    reload_policy(u);
    before_agent(u);
    if (u->agent.pid > 0)
        (void)kill(u->agent.pid, SIGHUP);
}

/* The agent wrote into its file: as often as it likes, and is heard once a second. */
static void
on_bell(struct run *u)
{
    char events[4096];

    while (read(u->bell, events, sizeof(events)) > 0)
        ;
    if (u->reload_ns == 0)
        u->reload_ns = u->reloaded_ns + RELOAD_PAUSE_MS * NS_PER_MS;
}

static void
on_signal(struct run *u)
{
    struct signalfd_siginfo s;
    if (read(u->signals, &s, sizeof(s)) != (ssize_t)sizeof(s))
        return;
    if (s.ssi_signo == SIGCHLD) {
        supervisor_reap(u);
        return;
    }
    if (s.ssi_signo == SIGHUP) {
        supervisor_reload(u);
        return;
    }
    bool again = u->phase != RUNNING; /* asked twice: do not wait any longer */
    if (u->agent.pid > 0)
        (void)kill(u->agent.pid, again ? SIGKILL : (int)s.ssi_signo);
    u->agent.restart_ns = 0;
    if (!again) {
        u->phase = STOPPING_AGENT;
        u->deadline_ns = clock_mono_ns() + AGENT_STOP_MS * NS_PER_MS;
        /* the agent may drain its node first */
        if (__builtin_add_overflow(u->deadline_ns, u->policy->drain_time, &u->deadline_ns))
            u->deadline_ns = INT64_MAX;
    }
}

/* Does what time or the end of a child brings about. Returns the milliseconds to wait, -1 for ever,
 * or -2: done */
static int
supervisor_step(struct run *u)
{
    int64_t now = clock_mono_ns(), next = INT64_MAX;
    struct child *const all[] = {&u->warden, &u->agent, &u->hand};
    if (u->phase == STOPPING_AGENT && u->agent.pid == 0) {
        u->phase = STOPPING_WARDEN;
        u->deadline_ns = now + WARDEN_STOP_MS * NS_PER_MS;
        if (u->warden.pid > 0)
            (void)kill(u->warden.pid, u->conf->stop_tasks ? SIGUSR1 : SIGTERM);
        if (u->hand.pid > 0)
            (void)kill(u->hand.pid, SIGTERM);
    }
    for (size_t i = 0; i < ARRAY_LEN(all) && u->phase != STOPPING_WARDEN; i++) {
        if (all[i]->restart_ns != 0 && all[i]->restart_ns <= now)
            (void)supervisor_start(u, all[i]);
        if (all[i]->restart_ns != 0 && all[i]->restart_ns < next)
            next = all[i]->restart_ns;
    }
    if (u->phase == STOPPING_WARDEN && u->warden.pid == 0 && u->hand.pid == 0)
        return -2;
    if (u->reload_ns != 0 && u->reload_ns <= now && u->phase == RUNNING)
        supervisor_reload(u);
    if (u->reload_ns != 0 && u->reload_ns < next && u->phase == RUNNING)
        next = u->reload_ns;
    if (u->phase != RUNNING) {
        if (u->deadline_ns <= now) {
            struct child *c = u->phase == STOPPING_AGENT ? &u->agent
                              : u->warden.pid > 0        ? &u->warden
                                                         : &u->hand;
            log_warn(ROOM, "does not stop: killed", "name", c->name, NULL);
            if (c->pid > 0)
                (void)kill(c->pid, SIGKILL);
            u->deadline_ns = now + NS_PER_S;
        }
        if (u->deadline_ns < next)
            next = u->deadline_ns;
    }
    int64_t ms = (next - now) / NS_PER_MS + 1;
    return next == INT64_MAX || ms > INT_MAX ? -1 : (int)ms;
}

static void
supervisor_loop(struct run *u)
{
    for (;;) {
        int timeout = supervisor_step(u);
        if (timeout == -2)
            return;
        struct pollfd p[] = {{.fd = u->signals, .events = POLLIN},
                             {.fd = u->bell, .events = POLLIN}};
        if (poll(p, ARRAY_LEN(p), timeout) <= 0)
            continue;
        if (p[0].revents)
            on_signal(u);
        if (p[1].revents)
            on_bell(u);
    }
}

/* The agent finds a warden that works, and an error at start is told once and ends all. */
static int
await_warden(struct run *u, struct err *e)
{
    struct warden_client *c =
        warden_client_new(u->ctx, mem_printf(u->ctx, "%s/" POLICY_SOCKET, u->policy->run_dir));
    int64_t end = clock_mono_ns() + WARDEN_READY_MS * NS_PER_MS;
    int r;
    for (;;) {
        struct err why = ERR_INIT;
        r = warden_client_connect(c, &why);
        if (r == 0)
            break;
        supervisor_reap(u);
        if (u->warden.pid == 0) {
            r = err_set(e, -ERR_UNAVAILABLE, "the warden does not start");
            break;
        }
        if (clock_mono_ns() > end) {
            r = err_set(e, -ERR_TIMEOUT, "the warden does not answer: %s", why.text);
            break;
        }
        struct pollfd p = {.fd = u->signals, .events = POLLIN};
        (void)poll(&p, 1, 2);
    }
    warden_client_free(c);
    return r;
}

/* A supervisor that was killed leaves an agent that is about to end. (The warden has its own lock.)
 */
static int
take_lock(struct run *u, struct err *e)
{
    const char *dir = u->policy->run_dir, *path = mem_printf(u->ctx, "%s/supervisor.lock", dir);
    int64_t end = clock_mono_ns() + SUPERVISOR_LOCK_MS * NS_PER_MS;
    bool told = false;
    int r = dir_make(AT_FDCWD, dir, 0755);
    if (r < 0)
        return err_errno(e, -r, "make \"%s\"", dir);
    u->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (u->lock < 0)
        return err_errno(e, errno, "open \"%s\"", path);
    while (flock(u->lock, LOCK_EX | LOCK_NB) < 0) {
        if (clock_mono_ns() >= end)
            return err_set(e, -ERR_CONFLICT,
                           "the agent of another supervisor runs with \"%s\": stop it first", path);
        if (!told)
            log_warn(ROOM, "an agent runs with the same run_dir: waiting for its end", "lock", path,
                     NULL);
        told = true;
        (void)poll(NULL, 0, PAUSE_FIRST_MS / 10);
    }
    return 0;
}

static int
supervisor_prepare(struct run *u, struct err *e)
{
    char dir[PATH_MAX];
    int r = supervisor_helpers(dir, sizeof(dir), e);
    if (r == 0 &&
        !str_copy(u->warden_exe, sizeof(u->warden_exe), mem_printf(u->ctx, "%s/" WARDEN_NAME, dir)))
        r = err_set(e, -ERR_LIMIT, "the path of " WARDEN_NAME " is too long");
    if (r == 0)
        (void)str_copy(u->hand_exe, sizeof(u->hand_exe), mem_printf(u->ctx, "%s/" HAND_NAME, dir));
    if (r == 0)
        r = compile_policy(u, e);
    if (r == 0)
        r = find_user(u, e);
    if (r == 0)
        r = take_lock(u, e);
    if (r == 0) /* not before: an agent that still runs has the policy of its start */
        r = policy_install(u->policy, &u->policy_path, e);
    if (r != 0)
        return r;
    u->self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ssize_t n = readlink("/proc/self/exe", u->self_path, sizeof(u->self_path) - 1);
    if (u->self < 0 || n < 0)
        return err_errno(e, errno, "open our own program");
    u->self_path[n] = '\0';
    sigset_t set;
    sigemptyset(&set);
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    u->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (u->signals < 0)
        return err_errno(e, errno, "watch signals");
    u->bell = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (u->bell >= 0)
        (void)inotify_add_watch(
            u->bell, mem_printf(u->ctx, "%s/" POLICY_RELOAD, u->policy->run_dir), IN_CLOSE_WRITE);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    return 0;
}

int
supervisor_main(const struct supervisor *s)
{
    auto_mem void *ctx = mem_ctx("supervisor");
    struct err e = ERR_INIT;
    struct run *u = mem_new(ctx, struct run);
    log_setup(LOG_INFO, false, STDERR_FILENO);
    *u = (struct run){.conf = s,
                      .ctx = ctx,
                      .root = geteuid() == 0,
                      .self = -1,
                      .lock = -1,
                      .signals = -1,
                      .bell = -1,
                      .warden = {.name = "warden"},
                      .hand = {.name = "hand"},
                      .agent = {.name = "agent"}};
    int r = supervisor_prepare(u, &e);
    if (r == 0) {
        (void)supervisor_start(u, &u->warden);
        u->warden.restart_ns = 0;
        r = u->warden.pid > 0 ? await_warden(u, &e) : -ERR_UNAVAILABLE;
        if (r == 0) {
            if (u->policy->engines.n > 0)
                (void)supervisor_start(u, &u->hand);
            (void)supervisor_start(u, &u->agent);
        } else {
            u->phase = STOPPING_WARDEN;
            u->exit_code = 1;
            u->deadline_ns = clock_mono_ns() + NS_PER_S;
            if (u->warden.pid > 0)
                (void)kill(u->warden.pid, SIGTERM);
        }
        supervisor_loop(u);
        if (s->stop_tasks && s->ended)
            s->ended(s->arg, u->policy);
    }
    if (r < 0)
        fprintf(stderr, "paddock: %s\n", e.text);
    fd_close(&u->self);
    fd_close(&u->lock);
    fd_close(&u->bell);
    fd_close(&u->signals);
    return r != 0 ? 1 : u->exit_code;
}
