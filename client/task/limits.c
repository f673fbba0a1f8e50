/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done to a task while it runs: new limits after an update in place, pause,
 * and events of what it has to wait for and of what it is denied.
 */
#include "client/task/limits_int.h"

#include "api/isolation.h"
#include "client/link.h"
#include "client/task/launch.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/seccomp.h"
#include "isolation/launch/record.h"

static void
note(struct task_runner *tr, const char *text)
{
    tr->act(tr, task_sm_note(&tr->sm, clock_wall_ns(), TASK_EVENT_DRIVER, text));
}

void
task_limits_warn(struct task_runner *tr, const char *warning)
{
    if (str_empty(warning) || str_eq(tr->limits_told, warning))
        return;
    mem_free(tr->limits_told);
    tr->limits_told = mem_strdup(tr->ar, warning); /* `tr` is a part of that */
    note(tr, warning);
}

static void
on_resized(void *arg, const struct err *e, struct warden_reply *r)
{
    auto_mem void *tmp = mem_ctx("resize");
    struct task_runner *tr = arg;
    if (tr->ar->stopped) {
        /* nothing */
    } else if (e && (e->code == -ERR_UNAVAILABLE || e->code == -ERR_CLOSED)) {
        tr->proc.want_resize = true;
    } else if (e && e->code != -ERR_NOT_FOUND) {
        note(tr, mem_printf(tmp, "new limits failed: %s", e->text)); /* it says if some are set */
    } else if (!e && tr->limits_new) {
        tr->limits_new = false;
        log_info("client", "limits changed", "alloc_id", tr->ar->id, "task", tr->sm.t->name, NULL);
        note(tr, str_empty(r->msg->warning)
                     ? "limits changed"
                     : mem_printf(tmp, "limits changed; %s", r->msg->warning));
    }
    hold_release(&tr->ar->hold);
}

void
task_limits_resize(struct task_runner *tr)
{
    auto_mem void *tmp = mem_ctx("resize");
    struct err e = ERR_INIT;
    tr->proc.want_resize = false;
    if (tr->proc.cgroup < 0 || !task_sm_process(tr->sm.t))
        return; /* the next launch has them */
    struct launch_spec *spec = launch_spec_build(tmp, tr, &e);
    if (!spec) {
        note(tr, mem_printf(tmp, "limits were not changed: %s", e.text));
        return;
    }
    hold_take(&tr->ar->hold);
    warden_resize(tr->ar->g->warden, spec, on_resized, tr);
}

bool
task_limits_differ(const struct task *a, const struct task *b)
{
    return !codec_equal(&type_task_isolation, isolation_of(a->isolation), isolation_of(b->isolation), 0);
}

/* --- pause --- */

struct pause_op {
    struct task_runner *tr;
    client_done *done; /* NULL: nobody waits */
    void *arg;
    bool on;
};

static void
on_paused(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    struct pause_op *op = arg;
    struct task_runner *tr = op->tr;
    bool was = !str_empty(tr->sm.t->state->paused);
    if (!e && !tr->ar->stopped && was != op->on) {
        tr->sm.t->state->paused = op->on ? TASK_PAUSED : "";
        tr->act(tr, task_sm_note(&tr->sm, clock_wall_ns(),
                                 op->on ? TASK_EVENT_PAUSED : TASK_EVENT_RESUMED,
                                 op->on ? "Task paused" : "Task goes on"));
    }
    if (op->done)
        op->done(op->arg, e);
    talloc_free(op);
    hold_release(&tr->ar->hold);
}

void
task_limits_pause(struct task_runner *tr, int on, client_done *done, void *arg)
{
    struct pause_op *op = mem_new(NULL, struct pause_op);
    *op = (struct pause_op){tr, done, arg, on != 0};
    hold_take(&tr->ar->hold);
    (on != 0 ? warden_pause : warden_resume)(tr->ar->g->warden, tr->ar->id, tr->sm.t->name, on_paused, op);
}

void
task_limits_wake(struct task_runner *tr)
{
    if (!str_empty(tr->sm.t->state->paused))
        task_limits_pause(tr, false, NULL, NULL);
}

/* --- what is denied (seccomp mode "audit") --- */

#define QUIET_NS (300 * NS_PER_S) /* between two events of one kind: a task keeps few */
#define DENIED_LOOK_MS 2000

void
task_limits_denied(struct task_runner *tr, const struct task_record *rec)
{
    int64_t times = 0;
    for (size_t i = 0; i < rec->denied.n; i++)
        if (__builtin_add_overflow(times, rec->denied.v[i]->times, &times))
            times = INT64_MAX;
    if (times == tr->denied)
        return;
    tr->denied = times;
    tr->denied_ns = clock_wall_ns();
    auto_mem void *tmp = mem_ctx("denied");
    tr->act(tr, task_sm_note(&tr->sm, tr->denied_ns, TASK_EVENT_DENIED,
                             mem_printf(tmp, "Denied system calls: %s",
                                        str_or(record_denied(tmp, rec), "none"))));
}

/* The record has no descriptor that would say when it changes: who may not write it may not watch
 * it either. */
static void
look_denied(void *arg)
{
    struct task_runner *tr = arg;
    auto_mem void *tmp = mem_ctx("record");
    struct task_record *rec = NULL;
    tr->denied_timer = timer_start(tr->ar->g->loop, DENIED_LOOK_MS, look_denied, tr);
    bool quiet = tr->denied_ns != 0 && clock_wall_ns() - tr->denied_ns < QUIET_NS;
    if (!quiet && record_read(tmp, tr->proc.record, &rec) == 0)
        task_limits_denied(tr, rec);
}

static void
watch_denied(struct task_runner *tr)
{
    if (tr->proc.record < 0 || tr->denied_timer ||
        !seccomp_audits(isolation_of(tr->task->isolation)->seccomp))
        return;
    tr->denied_timer = timer_start(tr->ar->g->loop, DENIED_LOOK_MS, look_denied, tr);
}

/* --- pressure --- */

struct pressure_watch {
    struct task_runner *tr;
    struct watch *watch;
    int fd;
    int64_t told_ns;
    const char *what;
};

static void
unwatch(struct pressure_watch *p)
{
    watch_stop(p->watch);
    p->watch = NULL;
    fd_close(&p->fd);
}

static int64_t
threshold(const struct task_runner *tr, size_t i)
{
    const struct task_pressure *p = isolation_of(tr->task->isolation)->pressure;
    return !p ? 0 : i == 0 ? p->cpu : i == 1 ? p->memory : p->io;
}

static void
on_pressure(void *arg, int fd, unsigned events)
{
    struct pressure_watch *p = arg;
    struct task_runner *tr = p->tr;
    (void)fd;
    if (!(events & WATCH_PRIORITY)) { /* its cgroup is gone */
        unwatch(p);
        return;
    }
    int64_t now = clock_wall_ns();
    if (p->told_ns != 0 && now - p->told_ns < QUIET_NS)
        return;
    p->told_ns = now;
    auto_mem void *tmp = mem_ctx("pressure");
    char limit[DURATION_TEXT];
    (void)duration_format(threshold(tr, (size_t)(p - tr->pressure)), limit);
    tr->act(tr, task_sm_note(&tr->sm, now, TASK_EVENT_PRESSURE,
                             mem_printf(tmp, "Task waited for %s longer than %s in a second",
                                        p->what, limit)));
}

static void
on_watched(void *arg, const struct err *e, struct warden_reply *r)
{
    struct task_runner *tr = arg;
    static const char *const names[] = {"the processor", "memory", "disks"};
    if (!tr->ar->stopped && !e && tr->proc.watch) {
        if (!tr->pressure)
            tr->pressure = mem_array(tr->ar->rec, struct pressure_watch, ARRAY_LEN(names));
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            struct pressure_watch *p = &tr->pressure[i];
            if (p->tr)
                unwatch(p);
            *p = (struct pressure_watch){.tr = tr, .fd = TAKE_FD(r->pressure[i]), .what = names[i]};
            if (p->fd >= 0)
                p->watch = watch_fd(tr->ar->g->loop, p->fd, WATCH_PRIORITY, on_pressure, p);
        }
        task_limits_warn(tr, r->msg->warning);
    }
    hold_release(&tr->ar->hold);
}

void
task_limits_watch(struct task_runner *tr)
{
    watch_denied(tr);
    if (!tr->pressure && threshold(tr, 0) <= 0 && threshold(tr, 1) <= 0 && threshold(tr, 2) <= 0)
        return;
    if (tr->proc.cgroup < 0 || !task_sm_process(tr->sm.t))
        return;
    hold_take(&tr->ar->hold);
    warden_pressure(tr->ar->g->warden, tr->ar->id, tr->sm.t->name,
                    isolation_of(tr->task->isolation)->pressure, on_watched, tr);
}

void
task_limits_unwatch(struct task_runner *tr)
{
    timer_stop(tr->denied_timer);
    tr->denied_timer = NULL;
    tr->denied = tr->denied_ns = 0;
    for (size_t i = 0; tr->pressure && i < 3; i++)
        if (tr->pressure[i].tr)
            unwatch(&tr->pressure[i]);
    mem_free(tr->pressure);
    tr->pressure = NULL;
}
