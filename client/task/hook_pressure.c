/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of what a task has to wait for, where its job wants them.
 */
#include "api/isolation.h"
#include "client/task/task_limits.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"

enum { WATCHES = 3 };

struct pressure_hook {
    struct task_runner *tr;
    struct watch *watch;
    int fd;
    int64_t told_ns;
    size_t i;
    const char *what;
};

static void
hook_pressure_unwatch(struct pressure_hook *p)
{
    watch_stop(p->watch);
    p->watch = NULL;
    fd_close(&p->fd);
}

static int64_t
hook_pressure_threshold(const struct task_runner *tr, size_t i)
{
    const struct task_pressure *p = isolation_of(tr->task->isolation)->pressure;
    return !p ? 0 : i == 0 ? p->cpu : i == 1 ? p->memory : p->io;
}

static void
on_pressure(void *arg, int fd, unsigned events)
{
    struct pressure_hook *p = arg;
    struct task_runner *tr = p->tr;
    (void)fd;
    if (!(events & WATCH_PRIORITY)) { /* its cgroup is gone */
        hook_pressure_unwatch(p);
        return;
    }
    int64_t now = clock_civil_ns();
    if (p->told_ns != 0 && now - p->told_ns < HOOK_QUIET_NS)
        return;
    p->told_ns = now;
    auto_mem void *tmp = mem_ctx("pressure");
    char limit[DURATION_TEXT];
    (void)duration_format(hook_pressure_threshold(tr, p->i), limit);
    tr->act(tr, task_sm_note(&tr->sm, now, TASK_EVENT_PRESSURE,
                             mem_printf(tmp, "Task waited for %s longer than %s in a second",
                                        p->what, limit)));
}

static void
on_watched(void *arg, const struct err *e, struct warden_reply *r)
{
    struct task_runner *tr = arg;
    static const char *const names[WATCHES] = {"the processor", "memory", "disks"};
    if (!tr->ar->stopped && !e && tr->proc.watch) {
        struct pressure_hook *all = tr->hook.pressure;
        if (!all)
            all = tr->hook.pressure = mem_array(tr->ar->rec, struct pressure_hook, WATCHES);
        for (size_t i = 0; i < WATCHES; i++) {
            struct pressure_hook *p = &all[i];
            if (p->tr)
                hook_pressure_unwatch(p);
            *p = (struct pressure_hook){
                .tr = tr, .i = i, .fd = TAKE_FD(r->pressure[i]), .what = names[i]};
            if (p->fd >= 0)
                p->watch = watch_fd(tr->ar->g->loop, p->fd, WATCH_PRIORITY, on_pressure, p);
        }
        task_limits_warn(tr, r->msg->warning);
    }
    hold_release(&tr->ar->hold);
}

static void
hook_pressure_poststart(struct task_runner *tr)
{
    if (!tr->hook.pressure && hook_pressure_threshold(tr, 0) <= 0 &&
        hook_pressure_threshold(tr, 1) <= 0 && hook_pressure_threshold(tr, 2) <= 0)
        return;
    if (tr->proc.cgroup < 0 || !task_sm_process(tr->sm.t))
        return;
    hold_take(&tr->ar->hold);
    warden_pressure(tr->ar->g->warden, tr->ar->id, tr->sm.t->name,
                    isolation_of(tr->task->isolation)->pressure, on_watched, tr);
}

static void
hook_pressure_stop(struct task_runner *tr)
{
    struct pressure_hook *all = TAKE(tr->hook.pressure);
    for (size_t i = 0; all && i < WATCHES; i++)
        hook_pressure_unwatch(&all[i]);
    mem_free(all);
}

const struct task_hook task_hook_pressure = {.poststart = hook_pressure_poststart,
                                             .stop = hook_pressure_stop};
