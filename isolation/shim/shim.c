/* SPDX-License-Identifier: Apache-2.0
 *
 * The shim of a task, pid 1 of its namespaces: shim_main() is the order of everything. First the
 * record, whose lock says that the shim lives; then the launch, as far as it can go before the plan
 * is there, and the rest when the warden has sent it; then watching, until the payload and whatever
 * it left have ended, with the logs pumped meanwhile.
 *
 * Free-standing. All of its state is one static struct, and after the start it holds no privilege
 * and makes only the calls of its own filter.
 */
#include "isolation/shim/parts.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "isolation/confine/confine.h"
#include "isolation/confine/raw.h"
#include "isolation/launch/record.h"
#include "isolation/limits.h"
#include "isolation/root/mounts_apply.h"
#include "isolation/shim/start.h"

enum {
    PUMP_ROUNDS = 16,  /* 64 KiB each, before the next look at children */
    DRAIN_ROUNDS = 64, /* after the payload's end */
    EVENTS_BYTES = 256,
    RECORD_PAUSE_MS = 100,
    RECORD_START_TRIES = 3,
    RECORD_TRIES = 600, /* a minute */
    LOOK_PAUSE_MS = 50,
    SIGNALS_AT_ONCE = 4, /* more than there are kinds */
};

/* The head of struct signalfd_siginfo, whose header cannot stand beside fcntl.h. */
struct signal_info {
    uint32_t signo;
    int32_t error;
    int32_t code;
    uint32_t pid; /* of the sender, as we see it; 0: from outside of our pid namespace */
    uint32_t uid;
    uint32_t rest[27];
};
_Static_assert(sizeof(struct signal_info) == 128, "signalfd(2)");

/* The state that lives as long as the shim; a few hundred bytes. */
static struct {
    struct record_run run;
    struct shim_log logs[2];
    char names[2][SHIM_NAME_MAX];
    int signals; /* signalfd of SIGCHLD and SIGPWR */
    int pipes[2][2]; /* of the logs, made before it is known whether there are any */
    long payload;
    int status; /* the warden; closed when the record is complete */
    int fds[SHIM_FD_END];
    int trees[MOUNTS_TREES_MAX];
    uint32_t n_trees;
    struct shim_audit audit;
} shim = {.signals = -1, .audit.listener = -1};

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

/* The lock says that we live. After the death of the warden that made us, another warden may have
 * found the record without a lock and settled the task: nobody would know of us. */
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

/* --- the launch --- */

/* Does what needs no plan, while the warden makes the plan. */
static void
start_early(bool isolated, struct shim_status *st)
{
    const char *what = "";
    shim.signals = (int)shim_signals();
    int r = isolated ? confine_keyring(&what) : 0;
    if (r < 0)
        shim_fail(st, SHIM_BEGIN, r, what);
    for (int i = 0; i < 2 && r >= 0; i++) {
        r = (int)RAW(SYS_pipe2, shim.pipes[i], O_CLOEXEC);
        if (r < 0)
            shim_fail(st, SHIM_LOGS, r, i == 0 ? "stdout" : "stderr");
    }
}

/* Chooses the payload's standard output and error. */
static void
choose_streams(const struct plan_header *h, int write_ends[2])
{
    for (int i = 0; i < 2; i++) {
        int *p = shim.pipes[i];
        if (h->flags & PLAN_LOGS) {
            write_ends[i] = p[1];
            (void)RAW(SYS_fcntl, p[0], F_SETFL, O_NONBLOCK);
        } else {
            write_ends[i] = i == 0 ? 1 : 2;
            raw_close(p[0]);
            raw_close(p[1]);
            p[0] = -1;
        }
    }
}

static int
open_logs(const struct plan_header *h, const int write_ends[2], struct shim_status *st)
{
    const struct confine *c = (const void *)plan_text(h, h->confine);
    for (int i = 0; i < 2; i++) {
        struct shim_log *l = &shim.logs[i];
        size_t n = strnlen(plan_text(h, h->logs[i].name), SHIM_NAME_MAX - 13);
        memcpy(shim.names[i], plan_text(h, h->logs[i].name), n);
        *l = (struct shim_log){.pipe = shim.pipes[i][0],
                               .file = -1,
                               .dir = shim.fds[SHIM_FD_LOGS],
                               .name = shim.names[i],
                               .index = h->logs[i].index,
                               .first = h->logs[i].first,
                               .files_max = h->log_files,
                               .gid = h->log_gid,
                               .bytes_max = h->log_bytes,
                               .errors = &shim.run.log_errors};
        if (!(h->flags & PLAN_LOGS))
            continue;
        int r = shim_log_open(l);
        if (r < 0) {
            shim_fail(st, SHIM_LOGS, r, i == 0 ? "stdout" : "stderr");
            return -1;
        }
        /* so that the payload can open /dev/stdout */
        if (c->flags & CONFINE_IDS)
            (void)RAW(SYS_fchown, write_ends[i], h->id_base + c->uid, h->id_base + c->gid);
    }
    return 0;
}

static void
send_status(const struct shim_status *st, int pidfd)
{
    shim_send(shim.status, st, sizeof(*st), &pidfd, pidfd >= 0);
}

/* Makes files under the id of an id-mapped directory's root, who is root on disk: what is made
 * there must have an owner that the map knows. Capabilities stay, which the change of this id would
 * take. */
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

/* Sets up what the payload inherits. */
static int
shim_begin(const struct plan_header *h, struct shim_status *st)
{
    const char *what = "";
    if (h->flags & PLAN_SUBREAPER)
        (void)RAW(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    int r = confine_hostname((const void *)plan_text(h, h->confine), &what);
    if (r < 0)
        shim_fail(st, SHIM_BEGIN, r, what);
    return r;
}

static int
shim_build(const struct plan_header *h, struct shim_status *st)
{
    if (h->mounts != 0) {
        struct mounts_fail f = {.what = "securebits"};
        int r = (int)own_by(h->id_base);
        if (r == 0)
            r = mounts_apply((const void *)plan_text(h, h->mounts), shim.trees, shim.n_trees, &f);
        if (r < 0) {
            shim_fail(st, SHIM_MOUNTS, r, f.what);
            st->op = (int32_t)f.op;
            return -1;
        }
        (void)RAW(SYS_setfsuid, 0);
        (void)RAW(SYS_setfsgid, 0);
    }
    int r = h->flags & PLAN_ROOT ? (int)shim_leave_root() : 0;
    if (r < 0)
        shim_fail(st, SHIM_BEGIN, r, "the shim's user");
    return r;
}

static int
seal_each(const struct plan_header *h, int *program, struct shim_status *st)
{
    const struct plan_verity *v = (const void *)plan_text(h, h->verity.at);
    for (uint32_t i = 0; i < h->verity.n; i++) {
        uint8_t digest[VERITY_DIGEST_BYTES];
        const char *what = "";
        long fd = verity_seal(plan_text(h, v[i].path), digest, &what);
        if (fd >= 0 && v[i].has_digest && memcmp(digest, v[i].digest, sizeof(digest)) != 0) {
            raw_close(fd);
            memcpy(st->digest, digest, sizeof(digest));
            fd = -EBADMSG;
            what = VERITY_DIGEST;
        }
        if (fd < 0) {
            shim_fail(st, SHIM_VERITY, fd, what);
            st->op = (int32_t)i;
            return -1;
        }
        if (h->program == i + 1)
            *program = (int)fd;
        else
            raw_close(fd);
    }
    return 0;
}

/* Files of the task that must be sealed, before anything of it runs. What is executed stays open:
 * *program. Their hashes are the allocation's on disk: no limit on that is passed, which the
 * capability would. */
static int
shim_seal(const struct plan_header *h, int *program, struct shim_status *st)
{
    if (h->verity.n == 0)
        return 0;
    long own = confine_use_cap(CAP_SYS_RESOURCE, false);
    int r = own < 0 ? (int)own : seal_each(h, program, st);
    if (r == 0 && own > 0)
        own = confine_use_cap(CAP_SYS_RESOURCE, true);
    if (own < 0)
        shim_fail(st, SHIM_BEGIN, own, "capset");
    return own < 0 ? -1 : r;
}

static int
clone_payload(struct plan_header *h, const int write_ends[2], int program, int root, int *pidfd,
              struct shim_status *st)
{
    static struct shim_payload p;
    p = (struct shim_payload){.plan = h,
                              .cgroup = shim.fds[SHIM_FD_CGROUP],
                              .userns = shim.fds[SHIM_FD_USERNS],
                              .program = program,
                              .streams = {0, write_ends[0], write_ends[1]},
                              .listener = &shim.audit.listener,
                              .root = root};
    shim.payload = shim_clone_payload(&p, pidfd, st);
    return shim.payload < 0 ? -1 : 0;
}

static int
await_rest(struct shim_status *st)
{
    long r = shim_await_work(shim.status, shim.fds, shim.trees, &shim.n_trees);
    if (r > 0)
        r = record_lock();
    else
        r = r == 0 ? -EPIPE : r;
    if (r < 0)
        shim_fail(st, SHIM_PLAN, r, "work");
    return (int)r;
}

/* The payload prepares itself while its root is built, unless it needs something of that. */
static int
shim_start(struct plan_header *h, struct shim_status *st)
{
    int write_ends[2], pidfd = -1, program = 0;
    bool early = shim.n_trees > 0 && h->apparmor == 0 && h->verity.n == 0;
    (void)RAW(SYS_umask, 0022);
    choose_streams(h, write_ends);
    if (shim_begin(h, st) < 0)
        return -1;
    if (early && clone_payload(h, write_ends, 0, shim.trees[0], &pidfd, st) < 0)
        return -1;
    if (await_rest(st) < 0 || open_logs(h, write_ends, st) < 0 || shim_build(h, st) < 0 ||
        shim_seal(h, &program, st) < 0)
        return -1;
    if (!early && clone_payload(h, write_ends, program, -1, &pidfd, st) < 0)
        return -1;
    shim_finish_payload(st);
    if (program > 0)
        raw_close(program);
    for (int i = 0; i < 2; i++)
        if (write_ends[i] > 2)
            raw_close(write_ends[i]);
    if (st->stage != SHIM_RUNS)
        return -1;
    shim.run.state = RECORD_RUNNING;
    shim.run.started_ns = now_ns();
    shim.run.pid = (int32_t)shim.payload;
    record_write(RECORD_START_TRIES);
    send_status(st, pidfd);
    raw_close(pidfd);
    return 0;
}

/* --- watching --- */

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

/* systemd ends all tasks when their pause process was killed, and only then: it says nothing
 * before. */
static bool
pause_is_gone(void)
{
    struct timespec now = {0};
    struct pollfd p = {.fd = shim.fds[SHIM_FD_PAUSE], .events = POLLIN};
    return p.fd >= 0 && RAW(SYS_ppoll, &p, 1, &now, NULL, SIGSET_BYTES) == 1;
}

/* Reaps everything that has ended; true when the payload is among it. */
static bool
shim_reap(bool oom)
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
        shim.run.flags |= pause_is_gone() ? RECORD_ENDING : 0;
    }
}

/* Reads what is pending. The pause process's unit says by SIGPWR that it stops, before any task is
 * signalled: the word is pending before the end which it explains. A task says so in vain. */
static void
take_signals(bool isolated)
{
    struct signal_info info[SIGNALS_AT_ONCE];
    long n = RAW(SYS_read, shim.signals, info, sizeof(info)) / (long)sizeof(info[0]);
    for (long i = 0; i < n; i++) {
        bool by_root = isolated ? info[i].pid == 0 : info[i].uid == 0;
        if (info[i].signo != SIGPWR || !by_root || shim.run.flags & RECORD_ENDING)
            continue;
        shim.run.flags |= RECORD_ENDING;
        record_write(1);
    }
}

static void
shim_watch(uint32_t flags)
{
    bool oom = (flags & PLAN_OOM) != 0;
    bool ended = false;
    while (!ended) {
        struct timespec soon = {.tv_nsec = 0, .tv_sec = SHIM_AUDIT_PAUSE_MS / 1000};
        struct pollfd p[4] = {{.fd = shim.signals, .events = POLLIN},
                              {.fd = shim.logs[0].pipe, .events = POLLIN},
                              {.fd = shim.logs[1].pipe, .events = POLLIN},
                              {.fd = shim.audit.listener, .events = POLLIN}};
        long r = RAW(SYS_ppoll, p, shim.audit.listener >= 0 ? 4 : 3,
                     shim.audit.unwritten ? &soon : NULL, NULL, SIGSET_BYTES);
        if (r < 0) { /* a limit of fewer descriptors came over us: nothing is told, so look */
            const struct timespec pause = {.tv_nsec = LOOK_PAUSE_MS * 1000000};
            (void)RAW(SYS_ppoll, NULL, 0, &pause, NULL, SIGSET_BYTES);
        }
        for (int i = 0; i < 2; i++)
            if (r < 0 || p[i + 1].revents != 0)
                (void)shim_log_pump(&shim.logs[i], PUMP_ROUNDS);
        if (r < 0 || p[0].revents != 0) {
            take_signals((flags & PLAN_ISOLATED) != 0);
            ended = shim_reap(oom);
        }
        if (!ended && shim_audit_turn(&shim.audit, r < 0 ? POLLERR : p[3].revents, &shim.run))
            record_write(1);
    }
    if (!(flags & (PLAN_ROOT | PLAN_ISOLATED)))
        shim_end_children(shim.payload);
    for (int i = 0; i < 2; i++)
        (void)shim_log_pump(&shim.logs[i], DRAIN_ROUNDS);
    shim.run.state = RECORD_FINISHED;
    record_write(RECORD_TRIES);
    /* The agent hears of it now: until the kernel has taken our namespaces apart it could launch
     * the next task. */
    raw_close(shim.status);
}

/* With everything that it was given, up to the running payload. */
static struct plan_header *
shim_launch(struct shim_status *st)
{
    struct plan_header *h = NULL;
    const char *what = "plan";
    long r = 0;
    if (shim.fds[SHIM_FD_HOST] >= 0) {
        what = "setns to the host's mounts";
        r = RAW(SYS_setns, shim.fds[SHIM_FD_HOST], CLONE_NEWNS);
    }
    if (r == 0 && shim.fds[SHIM_FD_NETNS] >= 0) {
        what = "setns to the allocation's network";
        r = RAW(SYS_setns, shim.fds[SHIM_FD_NETNS], CLONE_NEWNET);
        raw_close(shim.fds[SHIM_FD_NETNS]);
    }
    if (r == 0)
        r = shim.signals < 0 ? shim.signals : shim_map_plan(shim.fds[SHIM_FD_PLAN], &h);
    if (r < 0)
        shim_fail(st, SHIM_PLAN, r, what);
    return st->stage == SHIM_RUNS && shim_start(h, st) == 0 ? h : NULL;
}

int
shim_main(int status, bool isolated)
{
    struct shim_status st = {.stage = SHIM_RUNS};
    shim.status = status;
    memset(shim.fds, 0xff, sizeof(shim.fds));
    (void)RAW(SYS_setpgid, 0, 0); /* SIGKILL to the warden's process group is not meant for us */
    start_early(isolated, &st);
    long r = shim_await_work(status, shim.fds, shim.trees, &shim.n_trees);
    if (r < 0)
        shim_fail(&st, SHIM_PLAN, r, "work");
    struct plan_header *h = r > 0 && st.stage == SHIM_RUNS ? shim_launch(&st) : NULL;
    if (h == NULL) {
        send_status(&st, -1);
        return 1;
    }
    uint32_t flags = h->flags;
    raw_close(shim.fds[SHIM_FD_PLAN]);
    raw_close(shim.fds[SHIM_FD_CGROUP]);
    raw_close(shim.fds[SHIM_FD_HOST]);
    raw_close(shim.fds[SHIM_FD_USERNS]);
    shim_forget_start();
    shim_watch(flags);
    return 0;
}
