/* SPDX-License-Identifier: Apache-2.0
 *
 * The limits of a task that runs, after an update in place.
 */
#include "client/task/task_limits.h"

#include "api/isolation.h"
#include "client/task/launch.h"
#include "client/warden_link.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

static void
limits_note(struct task_runner *tr, const char *text)
{
    tr->act(tr, task_sm_note(&tr->sm, clock_civil_ns(), TASK_EVENT_DRIVER, text));
}

void
task_limits_warn(struct task_runner *tr, const char *warning)
{
    if (str_empty(warning) || str_eq(tr->limits_told, warning))
        return;
    mem_free(tr->limits_told);
    tr->limits_told = mem_strdup(tr->ar, warning); /* `tr` is a part of that */
    limits_note(tr, warning);
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
        limits_note(
            tr, mem_printf(tmp, "new limits failed: %s", e->text)); /* it says if some are set */
    } else if (!e && tr->limits_new) {
        tr->limits_new = false;
        log_info("client", "limits changed", "alloc_id", tr->ar->id, "task", tr->sm.t->name, NULL);
        limits_note(tr, str_empty(r->msg->warning)
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
        limits_note(tr, mem_printf(tmp, "limits were not changed: %s", e.text));
        return;
    }
    hold_take(&tr->ar->hold);
    warden_resize(tr->ar->g->warden, spec, on_resized, tr);
}

bool
task_limits_differ(const struct task *a, const struct task *b)
{
    return !codec_equal(&type_task_isolation, isolation_of(a->isolation),
                        isolation_of(b->isolation), 0);
}
