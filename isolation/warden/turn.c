/* SPDX-License-Identifier: Apache-2.0
 *
 * In this order: signals and the policy that is read again, deadlines, the turns.
 */
#include "isolation/warden/turn.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/host/notify.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/policy.h"
#include "isolation/warden/exec.h"
#include "isolation/warden/files.h"
#include "isolation/warden/helper.h"
#include "isolation/warden/launch.h"
#include "isolation/warden/loop.h"
#include "isolation/warden/net.h"
#include "isolation/warden/task.h"

#define ROOM "warden"

static bool
same_list(const struct str_list *a, const struct str_list *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = str_eq(a->v[i], b->v[i]);
    return same;
}

/* A path that was not allowed at start may lie on a mount that our namespace has let go of: what
 * lies there is not what the operator means. True when nothing had to be left out. */
static bool
keep_known(struct str_list *l, const struct str_list *known)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < known->n; k++)
            if (str_eq(l->v[i], known->v[k])) {
                l->v[n++] = l->v[i];
                break;
            }
    bool all = n == l->n;
    l->n = n;
    return all;
}

static bool
keep_known_volumes(struct policy *p, const struct policy *known)
{
    size_t n = 0;
    for (size_t i = 0; i < p->host_volumes.n; i++) {
        struct policy_volume *v = p->host_volumes.v[i];
        const struct policy_volume *old = policy_volume(known, str_or(v->name, ""));
        if (old != NULL && str_eq(old->path, v->path))
            p->host_volumes.v[n++] = v;
    }
    bool all = n == p->host_volumes.n;
    p->host_volumes.n = n;
    return all;
}

/* SIGHUP: a changed policy binds the launches from here on. What was built at start from the old
 * one (directories, cgroup, tasks' root, the agent's ids) stays until the warden is started again.
 */
static void
turn_reload(struct warden *w)
{
    struct policy *p = NULL, *old = w->policy;
    struct err e = ERR_INIT;
    (void)notify_send("RELOADING=1");
    if (policy_load(w, w->policy_path, &p, &e) < 0) {
        log_error(ROOM, "reload failed: the old policy stays", "error", e.text, NULL);
        (void)notify_send("READY=1");
        return;
    }
    bool same = str_eq(p->data_dir, old->data_dir) && str_eq(p->run_dir, old->run_dir) &&
                str_eq(p->state_dir, old->state_dir) && p->agent_uid == old->agent_uid &&
                p->agent_gid == old->agent_gid && same_list(&p->bind_roots, &old->bind_roots) &&
                str_eq(p->bridge_name, old->bridge_name) &&
                str_eq(p->bridge_subnet, old->bridge_subnet);
    same = keep_known(&p->bind_allowed, &old->bind_allowed) && same;
    same = keep_known_volumes(p, old) && str_eq(p->host_volumes_dir, old->host_volumes_dir) && same;
    p->host_volumes_dir = mem_strdup(p, old->host_volumes_dir);
    same = keep_known(&p->image_paths, &old->image_paths) && same;
    same = keep_known(&p->device_paths, &old->device_paths) && same;
    same = keep_known(&p->allowed_devices, &old->allowed_devices) && same;
    p->data_dir = mem_strdup(p, old->data_dir);
    p->run_dir = mem_strdup(p, old->run_dir);
    p->state_dir = mem_strdup(p, old->state_dir);
    p->alloc_dir = mem_strdup(p, old->alloc_dir); /* resolved at start */
    p->cgroup_root = mem_strdup(p, old->cgroup_root);
    p->agent_uid = old->agent_uid;
    p->agent_gid = old->agent_gid;
    p->agent_user = mem_strdup(p, old->agent_user);
    w->policy = p;
    w->rules = NULL;
    w->users.n = 0;
    mem_free(old);
    log_info(ROOM, "policy reloaded", "raw_exec", p->raw_exec ? "yes" : "no", NULL);
    if (!same)
        log_warn(
            ROOM,
            "directories, bind paths, the bridge or the agent's user changed: restart the warden",
            NULL);
    (void)notify_send("READY=1");
}

static void
signal_event(struct warden *w, struct watch *watch, uint32_t events)
{
    (void)events;
    struct signalfd_siginfo s;
    if (read(watch->fd, &s, sizeof(s)) != (ssize_t)sizeof(s))
        return;
    if (s.ssi_signo == SIGHUP) {
        turn_reload(w);
    } else if (s.ssi_signo == SIGUSR1) {
        /* from the supervisor, or its death: end all tasks, then yourself */
        w->stop_tasks = true;
        task_kill_all(w);
    } else {
        (void)notify_send("STOPPING=1");
        w->stop = true;
    }
}

static void
turn_sweep(struct warden *w)
{
    w->sweep = false;
    loop_sweep(w);
    task_sweep(w);
}

/* Milliseconds; -1: nothing waits for time. */
static int
next_timeout(struct warden *w)
{
    const int64_t at[] = {w->trash_ns, w->nets_ns, exec_deadline(w), helper_deadline(w),
                          w->alive_ns};
    bool any = w->due != NULL;
    for (size_t i = 0; i < ARRAY_LEN(at); i++)
        any = any || at[i] != 0;
    if (!any)
        return -1;
    int64_t now = clock_mono_ns();
    int next = task_timeout(w, now);
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        int left = at[i] <= now ? 0 : (int)((at[i] - now) / NS_PER_MS) + 1;
        if (at[i] != 0 && (next < 0 || left < next))
            next = left;
    }
    return next;
}

static void
say_alive(struct warden *w)
{
    int64_t every = notify_watchdog_ns();
    if (w->alive_ns != 0)
        (void)notify_send("WATCHDOG=1");
    w->alive_ns = every > 0 ? clock_mono_ns() + every / 2 : 0;
}

int
turn_signals(struct warden *w, struct err *e)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    w->signals = (struct watch){signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), signal_event};
    if (w->signals.fd < 0 || loop_watch(w, &w->signals, EPOLLIN) < 0)
        return err_errno(e, errno, "watch signals");
    return 0;
}

int
turn_run(struct warden *w, struct err *e)
{
    notify_ready("Ready");
    say_alive(w);
    while (!w->stop && !(w->stop_tasks && w->n_tasks == 0)) {
        struct epoll_event ev;
        int n = epoll_wait(w->epoll, &ev, 1, next_timeout(w));
        if (n < 0 && errno != EINTR)
            return err_errno(e, errno, "wait for events");
        /* an event of what is gone now comes again or not at all */
        if (launch_settle(w) && n > 0) {
            struct watch *watch = ev.data.ptr;
            watch->fn(w, watch, ev.events);
        }
        if (w->due != NULL)
            task_deadlines(w, clock_mono_ns());
        if (w->n_exec_deadlines > 0)
            exec_deadlines(w, clock_mono_ns());
        helper_deadlines(w, clock_mono_ns());
        if (w->trash_ns != 0 && w->trash_ns <= clock_mono_ns())
            files_empty_trash(w);
        if (w->nets_ns != 0 && w->nets_ns <= clock_mono_ns())
            net_tick(w);
        if (w->alive_ns != 0 && w->alive_ns <= clock_mono_ns())
            say_alive(w);
        if (w->sweep)
            turn_sweep(w);
    }
    return 0;
}

void
turn_done(struct warden *w)
{
    while (w->n_tasks > 0)
        task_free(w, w->tasks[w->n_tasks - 1]);
    loop_close(w);
    loop_unwatch(w, &w->signals);
    loop_unwatch(w, &w->fence);
    bpf_net_close(&w->net);
    bpf_rows_close(&w->run);
    bpf_rows_close(&w->block);
    cgroup_root_close(&w->cgroup);
    mem_free(w);
}
