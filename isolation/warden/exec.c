/* SPDX-License-Identifier: Apache-2.0
 *
 * A command in a running task. It is confined as the record says of the task's own launch, checked
 * against today's policy; the agent says what is executed, not as whom. The launch pad forks a
 * joiner (shim/join.c), which reports that the program runs on the socket that the agent then gets:
 * from there on the session is between those two, and survives the warden.
 */
#include "isolation/warden/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/dir.h"
#include "isolation/launch/policy.h"
#include "isolation/proc.h"
#include "isolation/warden/handlers.h"
#include "isolation/warden/launch.h"
#include "isolation/warden/loop.h"
#include "isolation/warden/pad.h"
#include "isolation/warden/task.h"
#include "isolation/warden/userns.h"

#define ROOM "warden"

/* The state of a request until the joiner has it. */
struct join {
    void *ctx;
    struct wtask *task;
    const struct exec_request *request;
    struct launched_task *launched;
    struct user user;
    uint64_t caps;
    uint32_t id_base;
    int fds[SHIM_FD_END]; /* owned: plan, procs; others borrowed */
    void *plan;
    size_t plan_n;
};

/* --- what confines it --- */

static int
other_version(struct err *e)
{
    return err_set(e, -ERR_UNSUPPORTED, "it was started by another version of paddock: restart it");
}

static int
read_tail(struct join *j, struct record *r, struct err *e)
{
    uint8_t *text = mem_array(j->ctx, uint8_t, PROTO_PACKET_MAX);
    int rc = record_read_raw(j->task->record, r);
    if (rc < 0)
        return err_errno(e, -rc, "read the task's record");
    ssize_t n = pread(j->task->record, text, PROTO_PACKET_MAX, sizeof(*r));
    if (n <= 0 || r->version != SHIM_VERSION)
        return other_version(e);
    void *t = NULL;
    rc = mp_decode(j->ctx, &type_launched_task, SLICE(text, (size_t)n), BUDGET(PROTO_DECODE_MAX),
                   &t, e);
    j->launched = t;
    return rc == 0 && j->launched->spec == NULL ? other_version(e) : rc;
}

static int
exec_authorise(struct warden *w, struct join *j, struct err *e)
{
    struct record record;
    int r = read_tail(j, &record, e);
    if (r < 0)
        return r;
    struct launch_spec *s = j->launched->spec;
    const struct exec_request *x = j->request;
    s->command = x->command.v[0];
    s->args = (struct str_list){x->command.v + 1, x->command.n - 1};
    s->env = x->env;
    s->work_dir = x->work_dir;
    if (s->isolation == NULL)
        s->isolation = mem_new(s, struct task_isolation);
    if (seccomp_audits(
            s->isolation->seccomp)) /* nobody would listen: it is denied, and not counted */
        s->isolation->seccomp->mode = "enforce";
    r = proto_check_spec(s, e);
    if (r == 0)
        r = launch_authorise(w, s, &j->launched->userns, &j->user, &j->caps, e);
    if (r < 0)
        return r;
    const struct userns *u = NULL;
    if (j->launched->userns) {
        r = userns_get(w, j->task->alloc, &u, e);
        if (r < 0)
            return r;
        j->id_base = u->base;
        j->fds[SHIM_FD_USERNS] = u->fd;
    }
    if (record.uid != j->id_base + (w->root ? j->user.uid : (uint32_t)geteuid()))
        return err_set(e, -ERR_CONFLICT,
                       "its user \"%s\" has another id than when it was started: restart it",
                       str_or(s->user, "nobody"));
    return 0;
}

/* --- the joiner --- */

static int
make_plan(struct warden *w, struct join *j, struct err *e)
{
    const struct launch_spec *s = j->launched->spec;
    const struct seccomp_program *filter;
    int r = launch_filter(w, s, j->launched->no_setuid, &filter, e);
    if (r < 0)
        return r;
    struct plan_input in = {
        .spec = s,
        .join = j->request,
        .user = w->root ? &j->user : NULL,
        .task_filter = filter,
        .shim_filter = w->root ? &w->join_filter : NULL,
        .apparmor = policy_apparmor(w->policy, s),
        .task_dir = mem_printf(j->ctx, "%s/%s/%s", w->policy->alloc_dir, s->alloc_id, s->task_name),
        .caps = j->caps,
        .cgroup = w->cgroup.fd >= 0,
        .userns = j->launched->userns,
        .own_filter = s->isolation->seccomp != NULL || j->launched->no_setuid,
        .id_base = j->id_base,
        .landlock_abi = w->probe.landlock_abi,
    };
    r = plan_make(j->ctx, &in, &j->plan, &j->plan_n, e);
    if (r < 0)
        return r;
    j->fds[SHIM_FD_PLAN] = memfd_create("plan", MFD_CLOEXEC);
    if (j->fds[SHIM_FD_PLAN] < 0)
        return err_errno(e, errno, "make the plan's memory");
    r = fd_pwrite_full(j->fds[SHIM_FD_PLAN], j->plan, j->plan_n, 0);
    return r < 0 ? err_errno(e, -r, "write the plan") : 0;
}

static int
clone_joiner(struct warden *w, struct join *j, struct wexec *x, int status, struct err *e)
{
    struct wtask *t = j->task;
    struct pad_request q = {.want = PAD_JOINER};
    snprintf(q.title, sizeof(q.title), "exec in %.8s/%.40s", t->alloc, t->name);
    j->fds[SHIM_FD_CGROUP] = t->cgroup.task_fd;
    j->fds[SHIM_FD_TARGET] = t->shim.fd;
    j->fds[SHIM_FD_HOST] = j->launched->spec->isolated ? -1 : w->host_mnt;
    int pidfd = -1;
    (void)launch_settle(w);
    int pid = pad_request(w, &q, status, t->cgroup.shim_fd, e);
    if (pid == 0)
        pid = pad_take(w, &pidfd, e);
    if (pid < 0)
        return pid;
    x->joiner.fd = pidfd;
    int r = loop_watch(w, &x->joiner, EPOLLIN);
    if (r < 0)
        return err_errno(e, -r, "watch the joiner");
    return pad_work(x->status.fd, j->fds, NULL, 0, e);
}

/* --- sessions --- */

static void
exec_set_deadline(struct warden *w, struct wexec *x, int64_t at_ns)
{
    ASSERT(x->deadline_ns == 0 || w->n_exec_deadlines > 0);
    w->n_exec_deadlines += at_ns != 0;
    w->n_exec_deadlines -= x->deadline_ns != 0;
    x->deadline_ns = at_ns;
}

/* The start is over: `e` says how. */
static void
exec_started(struct warden *w, struct wexec *x, const struct err *e)
{
    exec_set_deadline(w, x, 0);
    mem_free(x->plan);
    loop_unwatch(w, &x->status);
    if (e == NULL)
        return;
    if (x->joiner.fd >= 0)
        (void)pidfd_signal(x->joiner.fd, SIGKILL);
    struct err told = *e;
    err_prefix(&told, "task \"%s\"", x->task);
    loop_refuse(w, x->to, &told);
}

static void
status_event(struct warden *w, struct watch *watch, uint32_t events)
{
    (void)events;
    struct wexec *x = WATCH_OWNER(watch, struct wexec, status);
    struct pad_fds fds = {.n = 0};
    struct err e = ERR_INIT;
    if (!pad_report(watch->fd, "joiner", x->plan, x->tty ? 1 : 3, &fds, &e))
        return;
    auto_mem void *ctx = mem_ctx("exec");
    struct answer a = {0};
    if (e.code == 0) {
        for (size_t i = 0; i < fds.n; i++)
            loop_answer_fd(ctx, &a, (enum warden_fd)(WARDEN_FD_EXEC + (x->tty ? 1 : i)), fds.v[i]);
        loop_answer_fd(ctx, &a, WARDEN_FD_EXIT, x->status.fd);
        loop_answer(w, x->to, &a);
    }
    exec_started(w, x, e.code != 0 ? &e : NULL);
    for (size_t i = 0; i < fds.n; i++)
        fd_close(&fds.v[i]);
}

static void
joiner_event(struct warden *w, struct watch *watch, uint32_t events)
{
    (void)events;
    struct wexec *x = WATCH_OWNER(watch, struct wexec, joiner);
    if (x->status.fd >= 0)
        status_event(w, &x->status, EPOLLIN); /* its report, or the end of the socket */
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)watch->fd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
        return;
    loop_unwatch(w, watch);
    x->used = false;
}

static struct wexec *
take_slot(struct warden *w, const struct wtask *t, struct err *e)
{
    struct wexec *found = NULL;
    size_t same = 0, all = 0;
    for (size_t i = 0; i < WARDEN_EXECS_MAX; i++) {
        struct wexec *x = &w->execs[i];
        if (!x->used)
            found = found != NULL ? found : x;
        else
            same += str_eq(x->alloc, t->alloc) && str_eq(x->task, t->name);
        all += x->used;
    }
    if (same >= WARDEN_EXECS_TASK_MAX) {
        err_set(e, -ERR_BUSY, "%zu commands run in it already: end one", same);
        return NULL;
    }
    if (found == NULL)
        err_set(e, -ERR_BUSY, "%zu commands run in tasks of this client already: end one", all);
    return found;
}

static bool
is_paused(const struct wtask *t)
{
    char text[16];
    return t->cgroup.task_fd >= 0 &&
           cgroup_read(t->cgroup.task_fd, "cgroup.freeze", text, sizeof(text)) == 0 &&
           text[0] == '1';
}

static int
exec_run(struct warden *w, struct join *j, struct wexec *x, struct err *e)
{
    int pair[2];
    int r = exec_authorise(w, j, e);
    if (r == 0)
        r = make_plan(w, j, e);
    if (r < 0)
        return r;
    if (j->task->cgroup.task_fd >= 0) {
        int fd = openat(j->task->cgroup.task_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            return err_errno(e, errno, "open its cgroup");
        j->fds[SHIM_FD_PROCS] = fd;
    }
    r = pad_socket(pair, e);
    if (r < 0)
        return r;
    x->status = (struct watch){pair[0], status_event};
    auto_fd int status = pair[1];
    if (fd_near_limit(pair[1], WARDEN_FDS_KEPT))
        return err_errno(e, EMFILE,
                         "the warden has few file descriptors left: raise its limit of open files");
    r = clone_joiner(w, j, x, status, e);
    if (r < 0)
        return r;
    r = loop_watch(w, &x->status, EPOLLIN);
    return r < 0 ? err_errno(e, -r, "watch the joiner") : 0;
}

void
exec_start(struct warden *w, struct waiter to, const struct warden_request *q)
{
    auto_mem void *ctx = mem_ctx("join");
    struct err e = ERR_INIT;
    struct join j = {.ctx = ctx, .request = q->exec};
    struct wexec *x = NULL;
    memset(j.fds, 0xff, sizeof(j.fds));
    j.task = task_find_now(w, q->alloc_id, q->task_name);
    if (j.task == NULL || j.task->state != TASK_RUNNING || j.task->destroying ||
        task_ended(j.task)) {
        task_unknown(w, to, q->alloc_id, q->task_name);
        return;
    }
    if (is_paused(j.task))
        err_set(&e, -ERR_CONFLICT, "it is paused: resume it first");
    else
        x = take_slot(w, j.task, &e);
    if (x == NULL) {
        err_prefix(&e, "task \"%s\"", q->task_name);
        loop_refuse(w, to, &e);
        return;
    }
    *x = (struct wexec){.used = true, .to = to, .tty = q->exec->tty};
    x->joiner = (struct watch){-1, joiner_event};
    x->status = (struct watch){-1, status_event};
    str_copy(x->alloc, sizeof(x->alloc), j.task->alloc);
    str_copy(x->task, sizeof(x->task), j.task->name);
    exec_set_deadline(w, x, clock_mono_ns() + WARDEN_EXEC_MS * NS_PER_MS);
    int r = exec_run(w, &j, x, &e);
    if (r == 0)
        x->plan = talloc_steal(w, j.plan);
    else
        exec_started(w, x, &e);
    x->used = x->joiner.fd >= 0; /* else there is nothing to wait for */
    fd_close(&j.fds[SHIM_FD_PLAN]);
    fd_close(&j.fds[SHIM_FD_PROCS]);
}

int64_t
exec_deadline(const struct warden *w)
{
    int64_t next = 0;
    for (size_t i = 0; w->n_exec_deadlines > 0 && i < WARDEN_EXECS_MAX; i++) {
        const struct wexec *x = &w->execs[i];
        if (x->used && x->deadline_ns != 0 && (next == 0 || x->deadline_ns < next))
            next = x->deadline_ns;
    }
    return next;
}

void
exec_deadlines(struct warden *w, int64_t now)
{
    for (size_t i = 0; i < WARDEN_EXECS_MAX; i++) {
        struct wexec *x = &w->execs[i];
        if (!x->used || x->deadline_ns == 0 || x->deadline_ns > now)
            continue;
        struct err e = ERR_INIT;
        err_set(&e, -ERR_TIMEOUT, "the command did not start within %d s", WARDEN_EXEC_MS / 1000);
        exec_started(w, x, &e);
    }
}
