/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries out what task_sm asks for, on the handle of the task: the launch chain, the kill
 * sequence, timers, and what is durable before what:
 *
 *   launch:  trace of an earlier launch forgotten -> intent durable -> start
 *   end:     outcome durable -> its record forgotten
 */
#include "client/task/task_runner.h"
#include "client/local.h"
#include "client/task/handle.h"
#include "client/task/hooks.h"
#include "client/warden_link.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/random.h"
#include "common/str.h"

static void launch_continue(struct task_runner *tr);

static const char *
name_of(const struct task_runner *tr)
{
    return tr->sm.t->name;
}

/* --- its end --- */

static void
end_is_durable(void *arg, int code)
{
    struct task_runner *tr = arg;
    /* The record says how it ended, and stays until the local state does. */
    if (code < 0 && !tr->ar->stopped && !tr->launching) {
        local_sync(tr->ar->g->local, end_is_durable, tr);
        return;
    }
    if (code == 0)
        tr->handle->destroy(tr);
    hold_release(&tr->ar->hold);
}

/* After the machine has decided. */
static void
after_end(struct task_runner *tr, unsigned acts)
{
    task_hooks_stop(tr);
    tr->handle->close(tr);
    task_runner_act(tr, acts);
    if (tr->handle->destroy && !tr->launching) {
        hold_take(&tr->ar->hold);
        local_sync(tr->ar->g->local, end_is_durable, tr);
    }
}

static void
task_runner_exited(struct task_runner *tr, const struct task_exit *x)
{
    task_hooks_exited(tr, x);
    after_end(tr, task_sm_exited(&tr->sm, clock_civil_ns(), rand_u64(), x));
}

static void
task_runner_vanished(struct task_runner *tr)
{
    after_end(tr, task_sm_vanished(&tr->sm, clock_civil_ns()));
}

/* --- the launch chain --- */

static void
launch_failed(struct task_runner *tr, const char *type, const char *why, bool recoverable)
{
    tr->launching = false;
    task_hooks_stop(tr);
    log_warn("client", "task did not start", "alloc_id", tr->ar->id, "task", name_of(tr), "error",
             why, NULL);
    task_runner_act(
        tr, task_sm_start_failed(&tr->sm, clock_civil_ns(), rand_u64(), type, why, recoverable));
}

static void
given_up(struct task_runner *tr)
{
    tr->launching = false;
    task_hooks_stop(tr);
    task_runner_act(tr, task_sm_aborted(&tr->sm, clock_civil_ns()));
}

static void
task_runner_started(struct task_runner *tr, int64_t started_ns)
{
    tr->launching = false;
    tr->sm.t->state->paused = "";
    task_runner_act(tr, task_sm_started(&tr->sm, clock_civil_ns(), started_ns));
    task_hooks_poststart(tr);
}

static void
intent_is_durable(void *arg, int code)
{
    struct task_runner *tr = arg;
    tr->asked = false;
    if (!tr->ar->stopped && tr->launching) {
        tr->persisted = code == 0;
        if (code == 0)
            launch_continue(tr);
        else
            launch_failed(tr, TASK_EVENT_SETUP_FAILURE,
                          "the disk of the client's data_dir is full: free some space on this node",
                          true);
    }
    hold_release(&tr->ar->hold);
}

/* One step of the chain; each completion calls it again. */
static void
launch_continue(struct task_runner *tr)
{
    struct alloc_core *ar = tr->ar;
    if (!tr->launching || tr->asked || ar->stopped)
        return;
    if (task_sm_unwanted(tr->sm.t)) {
        if (tr->handle->abort && !tr->handle->abort(tr))
            return;
        given_up(tr);
        return;
    }
    if (tr->handle->clear && !tr->handle->clear(tr))
        return;
    if (tr->persisted) {
        if (task_hooks_prestart(tr))
            tr->handle->start(tr);
        return;
    }
    tr->asked = true;
    hold_take(&ar->hold);
    local_put_task(ar->g->local, ar->id, tr->sm.t);
    local_sync(ar->g->local, intent_is_durable, tr);
}

void
task_runner_note_wait(struct task_runner *tr)
{
    const char *why = tr->ar->g->link->trouble;
    if (tr->sm.t->phase != TASK_LAUNCHING || !why || tr->waits == why)
        return;
    tr->waits = why;
    task_runner_act(tr, task_sm_note(&tr->sm, clock_civil_ns(), TASK_EVENT_DRIVER, why));
}

static void
launch_begin(struct task_runner *tr, bool persisted)
{
    tr->launching = true;
    tr->persisted = persisted;
    tr->waits = NULL;
    task_runner_note_wait(tr);
    if (!tr->driver) {
        auto_mem void *tmp = mem_ctx("driver");
        launch_failed(
            tr, TASK_EVENT_DRIVER_FAILURE,
            mem_printf(tmp, "there is no driver \"%s\" on this node", str_or(tr->task->driver, "")),
            false);
        return;
    }
    if (!tr->handle->begin || tr->handle->begin(tr))
        launch_continue(tr);
}

void
task_runner_ready(struct task_runner *tr)
{
    launch_continue(tr);
}

/* --- actions --- */

static void
send_kill_signal(struct task_runner *tr)
{
    int sig = signal_parse(tr->task->kill_signal);
    if (sig <= 0)
        sig = tr->driver ? tr->driver->kill_signal : 15;
    if (!str_empty(tr->sm.t->state->paused)) /* what stands still obeys no signal */
        task_runner_pause(tr, false, NULL, NULL);
    tr->handle->stop(tr, sig);
}

static void
on_timer(void *arg)
{
    struct task_runner *tr = arg;
    tr->timer = NULL;
    task_runner_act(tr, task_sm_timer(&tr->sm, clock_civil_ns()));
}

static void
task_runner_rearm(struct task_runner *tr)
{
    timer_stop(tr->timer);
    tr->timer = NULL;
    if (tr->sm.t->deadline == 0)
        return;
    int64_t left = task_sm_left(&tr->sm, clock_civil_ns());
    int64_t ms = (left + NS_PER_MS - 1) / NS_PER_MS;
    tr->timer = timer_start(tr->ar->g->loop, ms, on_timer, tr);
}

void
task_runner_act(struct task_runner *tr, unsigned acts)
{
    if (acts == 0 || tr->ar->stopped)
        return;
    if ((acts & TASK_ACT_PERSIST) && !(acts & TASK_ACT_LAUNCH))
        local_put_task(tr->ar->g->local, tr->ar->id, tr->sm.t);
    if (acts & TASK_ACT_SIGNAL)
        send_kill_signal(tr);
    if (acts & TASK_ACT_FORCE)
        tr->handle->kill(tr);
    if (acts & TASK_ACT_TIMER)
        task_runner_rearm(tr);
    if (acts & TASK_ACT_LAUNCH)
        launch_begin(tr, false);
    else if (tr->launching && task_sm_unwanted(tr->sm.t))
        launch_continue(tr); /* killed while it waits for something */
    else if (task_sm_unwanted(tr->sm.t) && tr->sm.t->phase == TASK_LAUNCHING && tr->handle->give_up)
        tr->handle->give_up(tr);
    if (tr->sm.t->phase == TASK_DEAD)
        task_hooks_stop(tr);
    if (acts & TASK_ACT_REPORT)
        tr->events->changed(tr->ar);
}

/* --- adoption --- */

static void
end_it(struct task_runner *tr)
{
    if (tr->sm.t->phase == TASK_STOPPING)
        send_kill_signal(tr);
    else if (tr->sm.t->phase == TASK_FORCED)
        tr->handle->kill(tr);
}

/* Goes on where the machine stood. */
static void
task_runner_adopted(struct task_runner *tr, int64_t started_ns, bool over)
{
    bool launched = tr->sm.t->phase == TASK_LAUNCHING;
    tr->launching = false;
    if (over) {
        if (launched && started_ns != 0)
            task_runner_act(tr, task_sm_started(&tr->sm, clock_civil_ns(), started_ns) &
                                    ~(unsigned)(TASK_ACT_SIGNAL | TASK_ACT_FORCE));
    } else if (launched) {
        task_runner_act(tr, task_sm_started(&tr->sm, clock_civil_ns(), started_ns));
    } else {
        end_it(tr);
        if (tr->sm.t->phase != TASK_FORCED)
            task_runner_rearm(tr);
    }
    if (!over)
        task_hooks_poststart(tr);
}

/* The intent is durable, the launch did not happen. */
static void
not_launched(struct task_runner *tr)
{
    launch_begin(tr, true);
}

static const struct handle_events handle_events = {
    .go_on = launch_continue,
    .started = task_runner_started,
    .failed = launch_failed,
    .given_up = given_up,
    .exited = task_runner_exited,
    .vanished = task_runner_vanished,
    .adopted = task_runner_adopted,
    .not_launched = not_launched,
    .end_it = end_it,
};

void
task_runner_link_up(struct task_runner *tr)
{
    if (tr->handle->link_up)
        tr->handle->link_up(tr);
}

void
task_runner_resume(struct task_runner *tr)
{
    if (tr->sm.t->phase == TASK_DELAY)
        task_runner_rearm(tr);
    else if (task_sm_process(tr->sm.t))
        tr->handle->adopt(tr);
}

/* --- life of the object --- */

void
task_runner_configure(struct task_runner *tr, const struct task *task)
{
    struct alloc_core *ar = tr->ar;
    tr->task = task;
    tr->driver = driver_find(task->driver);
    tr->handle = handle_of(tr->driver);
    task_sm_configure(&tr->sm.cfg, ar->rec->alloc->job, ar->tg, task,
                      ar->g->cfg.agent->max_kill_timeout);
}

void
task_runner_init(struct task_runner *tr, struct alloc_core *ar, const struct task_events *events,
                 const struct task *task, struct client_task *record)
{
    *tr = (struct task_runner){.ar = ar,
                               .events = events,
                               .up = &handle_events,
                               .act = task_runner_act,
                               .poststart = task_hooks_poststart,
                               .signal = task_runner_signal};
    tr->sm.t = record;
    process_init(tr);
    task_runner_configure(tr, task);
}

void
task_runner_done(struct task_runner *tr)
{
    timer_stop(tr->timer);
    tr->timer = NULL;
    task_hooks_stop(tr);
    tr->handle->close(tr);
}

/* --- what is asked of a task that runs --- */

struct asked {
    struct task_runner *tr;
    client_done *done; /* NULL: nobody waits */
    void *arg;
    bool on;
};

static struct asked *
asked_new(struct task_runner *tr, client_done *done, void *arg)
{
    struct asked *op = mem_new(NULL, struct asked);
    *op = (struct asked){.tr = tr, .done = done, .arg = arg};
    hold_take(&tr->ar->hold);
    return op;
}

static void
on_answered(void *arg, const struct err *e)
{
    struct asked *op = arg;
    struct task_runner *tr = op->tr;
    if (op->done)
        op->done(op->arg, e);
    talloc_free(op);
    hold_release(&tr->ar->hold);
}

/* The event comes before the signal: a task that ends by the signal at once has "Signaling" before
 * its "Terminated". A signal that could not be sent has its event too: it was asked for. */
void
task_runner_signal(struct task_runner *tr, int sig, const char *why, client_done *done, void *arg)
{
    char name[16];
    struct asked *op = asked_new(tr, done, arg);
    task_runner_act(tr, task_sm_signaled(&tr->sm, clock_civil_ns(), signal_name(sig, name), why));
    tr->handle->signal(tr, sig, on_answered, op);
}

static void
on_paused(void *arg, const struct err *e)
{
    struct asked *op = arg;
    struct task_runner *tr = op->tr;
    bool was = !str_empty(tr->sm.t->state->paused);
    if (!e && !tr->ar->stopped && was != op->on) {
        tr->sm.t->state->paused = op->on ? TASK_PAUSED : "";
        task_runner_act(tr, task_sm_note(&tr->sm, clock_civil_ns(),
                                         op->on ? TASK_EVENT_PAUSED : TASK_EVENT_RESUMED,
                                         op->on ? "Task paused" : "Task goes on"));
    }
    on_answered(op, e);
}

void
task_runner_pause(struct task_runner *tr, int on, client_done *done, void *arg)
{
    struct asked *op = asked_new(tr, done, arg);
    op->on = on != 0;
    tr->handle->pause(tr, op->on, on_paused, op);
}
