/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries out what task_sm asks for: the launch chain through the warden, the watch on its end,
 * the kill sequence, timers. The order that makes `kill -9` harmless:
 *
 *   launch:  forget the record of an earlier launch (destroy) -> intent durable -> launch
 *   end:     read the record -> outcome durable -> destroy
 *   restart of the agent: adopt; a launch whose intent is durable and that the warden does not know
 * has not happened; anything else has a record.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "client/link.h"
#include "client/local.h"
#include "client/task/launch.h"
#include "client/task/limits_int.h"
#include "client/task/task_runner.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/record.h"

static void launch_continue(struct task_runner *tr);
static void adopt(struct task_runner *tr);
static bool unreachable(const struct err *e);

static const char *
name_of(const struct task_runner *tr)
{
    return tr->sm.t->name;
}

/* --- ends of a process --- */

static void
close_fds(struct task_runner *tr)
{
    task_limits_unwatch(tr);
    watch_stop(tr->watch);
    tr->watch = NULL;
    fd_close(&tr->ended);
    fd_close(&tr->cgroup);
    fd_close(&tr->record);
}

static void
on_destroyed(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    struct task_runner *tr = arg;
    if (!e && !tr->launching)
        tr->clean = true;
    else if (e && unreachable(e))
        tr->want_clean = true;
    hold_release(&tr->ar->hold);
}

/* The warden may forget what has ended. A launch that has begun meanwhile does so by itself, first.
 */
static void
forget_end(struct task_runner *tr)
{
    tr->want_clean = false;
    if (tr->launching || tr->clean || task_sm_process(tr->sm.t))
        return;
    hold_take(&tr->ar->hold);
    warden_destroy(tr->ar->g->warden, tr->ar->id, name_of(tr), on_destroyed, tr);
}

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
        forget_end(tr);
    hold_release(&tr->ar->hold);
}

/* After a process has ended and the machine has decided. */
static void
after_end(struct task_runner *tr, unsigned acts)
{
    close_fds(tr);
    mem_free(tr->sim);
    tr->clean = tr->clean && tr->driver && tr->driver->simulate;
    task_runner_act(tr, acts);
    if (tr->ar->g->warden && !tr->clean && !tr->launching) {
        hold_take(&tr->ar->hold);
        local_sync(tr->ar->g->local, end_is_durable, tr);
    }
}

uint64_t
task_runner_cgroup_id(struct task_runner *tr)
{
    struct record rec;
    if (tr->cgroup_id == 0 && tr->record >= 0 && record_read_raw(tr->record, &rec) == 0)
        tr->cgroup_id = rec.cgroup_id;
    return tr->cgroup_id;
}

static void
ended_with(struct task_runner *tr, const struct task_record *rec)
{
    struct task_exit x = {.code = rec->exit_code,
                          .signal = rec->signal,
                          .oom_killed = rec->oom_killed,
                          .error = str_empty(rec->error) ? NULL : rec->error};
    struct bpf_run_counts n;
    if (bpf_read_run(&tr->ar->g->link->counters, task_runner_cgroup_id(tr), &tr->runs_at, &n) &&
        n.ooms > 0) {
        x.oom_killed |= x.signal == SIGKILL;
        x.oom_pid = n.oom_pid;
        x.oom_comm = n.oom_comm;
        for (char *p = n.oom_comm; *p; p++)
            *p = *p < ' ' || *p > '~' ? '?' : *p;
    }
    if (x.signal != 0 && x.code == 0)
        x.code = 128 + x.signal;
    task_limits_denied(tr, rec); /* the last word of it */
    log_info("client", "task ended", "alloc_id", tr->ar->id, "task", name_of(tr), "exit_code",
             LOG_I64(x.code), "signal", LOG_I64(x.signal), NULL);
    after_end(tr, task_sm_exited(&tr->sm, clock_wall_ns(), rand_u64(), &x));
}

static void
vanished(struct task_runner *tr)
{
    log_warn("client", "task is gone without a record of its end", "alloc_id", tr->ar->id, "task",
             name_of(tr), NULL);
    after_end(tr, task_sm_vanished(&tr->sm, clock_wall_ns(), rand_u64()));
}

static void
on_ended(void *arg, int fd, unsigned events)
{
    (void)fd;
    (void)events;
    struct task_runner *tr = arg;
    auto_mem void *tmp = mem_ctx("record");
    struct record r;
    if (tr->record < 0 || record_read_raw(tr->record, &r) < 0) {
        vanished(tr);
        return;
    }
    (void)record_settle(&r, clock_wall_ns()); /* the shim was killed; the warden may not be there */
    ended_with(tr, record_export(tmp, &r));
}

static void
take_fds(struct task_runner *tr, struct warden_reply *r)
{
    close_fds(tr);
    tr->ended = TAKE_FD(r->ended);
    tr->cgroup = TAKE_FD(r->cgroup);
    tr->record = TAKE_FD(r->record);
    tr->cgroup_id = 0;
    if (tr->ended >= 0)
        tr->watch = watch_fd(tr->ar->g->loop, tr->ended, WATCH_READ, on_ended, tr);
}

/* --- simulation (mock driver) --- */

static void
sim_exit(void *arg)
{
    struct task_runner *tr = arg;
    tr->sim_timer = NULL;
    struct task_exit x = {
        .code = tr->sim->exit_code, .signal = tr->sim->exit_signal, .error = tr->sim->exit_error};
    if (tr->sim_killed)
        x = (struct task_exit){.code = 0};
    after_end(tr, task_sm_exited(&tr->sm, clock_wall_ns(), rand_u64(), &x));
}

static void
sim_kill(struct task_runner *tr, int64_t after_ns)
{
    if (!tr->sim)
        return;
    timer_stop(tr->sim_timer);
    tr->sim_killed = true;
    tr->sim_timer = timer_start(tr->ar->g->loop, after_ns / NS_PER_MS, sim_exit, tr);
}

static void
sim_started(void *arg)
{
    struct task_runner *tr = arg;
    tr->sim_timer = NULL;
    int64_t now = clock_wall_ns();
    unsigned acts;
    if (tr->sim->start_error) {
        acts = task_sm_start_failed(&tr->sm, now, rand_u64(), TASK_EVENT_DRIVER_FAILURE,
                                    tr->sim->start_error, tr->sim->start_recoverable);
        mem_free(tr->sim);
        task_runner_act(tr, acts);
        return;
    }
    if (tr->sim->run_for_ns >= 0)
        tr->sim_timer = timer_start(tr->ar->g->loop, tr->sim->run_for_ns / NS_PER_MS, sim_exit, tr);
    task_runner_act(tr, task_sm_started(&tr->sm, now, now));
}

static void
sim_launch(struct task_runner *tr)
{
    tr->sim = mem_new(NULL, struct driver_sim);
    tr->sim_killed = false;
    tr->launching = false;
    struct err e = ERR_INIT;
    if (launch_simulation(tr->sim, tr, tr->sim, &e) < 0) {
        mem_free(tr->sim);
        task_runner_act(tr, task_sm_start_failed(&tr->sm, clock_wall_ns(), 0,
                                                 TASK_EVENT_DRIVER_FAILURE, e.text, false));
        return;
    }
    tr->sim_timer =
        timer_start(tr->ar->g->loop, tr->sim->start_delay_ns / NS_PER_MS, sim_started, tr);
}

/* --- the launch chain --- */

static void
launch_failed(struct task_runner *tr, const char *type, const char *why, bool recoverable)
{
    tr->launching = false;
    log_warn("client", "task did not start", "alloc_id", tr->ar->id, "task", name_of(tr), "error",
             why, NULL);
    task_runner_act(
        tr, task_sm_start_failed(&tr->sm, clock_wall_ns(), rand_u64(), type, why, recoverable));
}

/* The connection to the warden broke: what was asked may have happened or not. */
static bool
unreachable(const struct err *e)
{
    return e->code == -ERR_UNAVAILABLE || e->code == -ERR_CLOSED;
}

/* Errors of a moment: the restart policy may try again. */
static bool
recoverable(int code)
{
    switch (-code) {
    case ERR_BUSY:
    case ERR_UNAVAILABLE:
    case ERR_TIMEOUT:
    case ERR_INTERNAL: /* the shim was killed during the start */
    case EAGAIN:
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
        return true;
    default:
        return false;
    }
}

static void
on_launched(void *arg, const struct err *e, struct warden_reply *r)
{
    struct task_runner *tr = arg;
    tr->asked = false;
    if (tr->ar->stopped) {
        hold_release(&tr->ar->hold);
        return;
    }
    if (!e) {
        tr->launching = false;
        tr->clean = false;
        int64_t now = clock_wall_ns();
        int64_t started = r->msg->records.n > 0 && r->msg->records.v[0]->started_at != 0
                              ? r->msg->records.v[0]->started_at
                              : now;
        take_fds(tr, r);
        tr->sm.t->state->paused = "";
        log_info("client", "task started", "alloc_id", tr->ar->id, "task", name_of(tr), NULL);
        task_runner_act(tr, task_sm_started(&tr->sm, now, started));
        task_limits_warn(tr, r->msg->warning);
        task_limits_watch(tr);
    } else if (unreachable(e)) {
        /* It may have happened: ask when the warden is back. */
        tr->want_adopt = true;
    } else if (e->code == -ERR_CONFLICT) {
        adopt(tr);
    } else {
        tr->clean = false;
        if (alloc_network(tr->ar))
            tr->ar->dirs = DIRS_NONE; /* the network may be what is missing: look again */
        launch_failed(tr, TASK_EVENT_DRIVER_FAILURE, e->text, recoverable(e->code));
    }
    hold_release(&tr->ar->hold);
}

static void
ask_launch(struct task_runner *tr)
{
    auto_mem void *tmp = mem_ctx("launch");
    struct err e = ERR_INIT;
    struct launch_spec *spec = launch_spec_build(tmp, tr, &e);
    if (!spec) {
        launch_failed(tr, TASK_EVENT_DRIVER_FAILURE, e.text, false);
        return;
    }
    tr->asked = true;
    hold_take(&tr->ar->hold);
    warden_launch(tr->ar->g->warden, spec, on_launched, tr);
}

static void
on_again(void *arg)
{
    struct task_runner *tr = arg;
    tr->again = NULL;
    if (tr->want_adopt)
        task_runner_resume(tr);
}

static void
ask_again(struct task_runner *tr)
{
    tr->want_adopt = true;
    timer_stop(tr->again);
    tr->again = timer_start(tr->ar->g->loop, CLIENT_AGAIN_MS, on_again, tr);
}

static void
on_cleaned(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    struct task_runner *tr = arg;
    tr->asked = false;
    if (tr->ar->stopped) {
        /* nothing */
    } else if (!e) {
        tr->clean = true;
        launch_continue(tr);
    } else if (unreachable(e)) {
        tr->want_adopt = true; /* link_up goes on with the chain */
    } else if (e->code == -ERR_BUSY) {
        ask_again(tr); /* it is being removed already */
    } else {
        launch_failed(tr, TASK_EVENT_SETUP_FAILURE, e->text, e->code != -ERR_INVALID);
    }
    hold_release(&tr->ar->hold);
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
    if (tr->sm.t->kill) {
        if (tr->want_adopt && tr->clean)
            return; /* it was asked for, and may have happened */
        tr->want_adopt = false;
        tr->launching = false;
        task_runner_act(tr, task_sm_aborted(&tr->sm, clock_wall_ns()));
        return;
    }
    bool simulated = tr->driver && tr->driver->simulate;
    if (!tr->clean && !simulated) {
        tr->asked = true;
        hold_take(&ar->hold);
        warden_destroy(ar->g->warden, ar->id, name_of(tr), on_cleaned, tr);
        return;
    }
    if (!tr->persisted) {
        tr->asked = true;
        hold_take(&ar->hold);
        local_put_task(ar->g->local, ar->id, tr->sm.t);
        local_sync(ar->g->local, intent_is_durable, tr);
        return;
    }
    if (simulated) {
        sim_launch(tr);
        return;
    }
    if (ar->dirs == DIRS_FAILED) {
        launch_failed(tr, TASK_EVENT_SETUP_FAILURE, ar->dirs_error, ar->dirs_again);
        ar->dirs = DIRS_NONE;
        return;
    }
    if (ar->dirs == DIRS_READY)
        ask_launch(tr);
    else if (ar->dirs == DIRS_NONE && ar->g->link->up)
        tr->events->need_dirs(ar);
}

static void
launch_begin(struct task_runner *tr)
{
    tr->launching = true;
    tr->persisted = false;
    struct alloc_core *ar = tr->ar;
    if (!tr->driver) {
        auto_mem void *tmp = mem_ctx("driver");
        launch_failed(
            tr, TASK_EVENT_DRIVER_FAILURE,
            mem_printf(tmp, "there is no driver \"%s\" on this node", str_or(tr->task->driver, "")),
            false);
        return;
    }
    if (!tr->driver->simulate && !ar->g->warden) {
        launch_failed(tr, TASK_EVENT_DRIVER_FAILURE, "the warden is not running", false);
        return;
    }
    if (!tr->driver->simulate)
        tr->events->need_dirs(ar);
    launch_continue(tr);
}

void
task_runner_dirs(struct task_runner *tr)
{
    launch_continue(tr);
}

/* --- kill sequence --- */

static void
on_signaled(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    struct task_runner *tr = arg;
    if (e && unreachable(e))
        tr->want_kill = true;
    else if (e && e->code != -ERR_NOT_FOUND)
        log_warn("client", "signal was not sent", "alloc_id", tr->ar->id, "task", name_of(tr),
                 "error", e->text, NULL);
    hold_release(&tr->ar->hold);
}

static void
send_kill_signal(struct task_runner *tr)
{
    int sig = signal_parse(tr->task->kill_signal);
    if (sig <= 0)
        sig = tr->driver ? tr->driver->kill_signal : 15;
    if (tr->sim) {
        sim_kill(tr, tr->sim->kill_after_ns);
        return;
    }
    task_limits_wake(tr);
    hold_take(&tr->ar->hold);
    warden_signal(tr->ar->g->warden, tr->ar->id, name_of(tr), sig, on_signaled, tr);
}

static void
force(struct task_runner *tr)
{
    if (tr->sim) {
        sim_kill(tr, 0);
        return;
    }
    hold_take(&tr->ar->hold);
    warden_kill(tr->ar->g->warden, tr->ar->id, name_of(tr), on_signaled, tr);
}

/* --- actions --- */

static void
on_timer(void *arg)
{
    struct task_runner *tr = arg;
    tr->timer = NULL;
    task_runner_act(tr, task_sm_timer(&tr->sm, clock_wall_ns()));
}

static void
rearm(struct task_runner *tr)
{
    timer_stop(tr->timer);
    tr->timer = NULL;
    if (tr->sm.t->deadline == 0)
        return;
    int64_t left = tr->sm.t->deadline - clock_wall_ns();
    int64_t ms = left <= 0 ? 0 : (left + NS_PER_MS - 1) / NS_PER_MS;
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
        force(tr);
    if (acts & TASK_ACT_TIMER)
        rearm(tr);
    if (acts & TASK_ACT_LAUNCH)
        launch_begin(tr);
    else if (tr->launching && tr->sm.t->kill)
        launch_continue(tr); /* killed while it waits for something */
    if (acts & TASK_ACT_REPORT)
        tr->events->changed(tr->ar);
}

/* --- adoption --- */

static void
adopt_done(struct task_runner *tr)
{
    struct ground *g = tr->ar->g;
    if (g->adopting > 0)
        g->adopting--;
}

/* It runs, as the record says: go on where the machine stood. */
static void
adopted_running(struct task_runner *tr, struct warden_reply *r, const struct task_record *rec)
{
    tr->launching = false;
    tr->clean = false;
    take_fds(tr, r);
    log_info("client", "task adopted", "alloc_id", tr->ar->id, "task", name_of(tr), NULL);
    switch ((enum task_phase)tr->sm.t->phase) {
    case TASK_LAUNCHING:
        task_runner_act(tr, task_sm_started(&tr->sm, clock_wall_ns(), rec->started_at));
        break;
    case TASK_STOPPING:
        send_kill_signal(tr);
        rearm(tr);
        break;
    case TASK_FORCED:
        force(tr);
        break;
    default:
        rearm(tr);
        break;
    }
    if (!tr->watch)
        vanished(tr);
    else if (tr->task->isolation) /* they may have changed since the agent was told */
        task_limits_resize(tr);
    if (tr->watch)
        task_limits_watch(tr);
}

static void
adopted_finished(struct task_runner *tr, const struct task_record *rec)
{
    tr->clean = false;
    tr->launching = false;
    if (tr->sm.t->phase == TASK_LAUNCHING && rec->started_at != 0)
        task_runner_act(tr, task_sm_started(&tr->sm, clock_wall_ns(), rec->started_at) &
                                ~(unsigned)(TASK_ACT_SIGNAL | TASK_ACT_FORCE));
    ended_with(tr, rec);
}

static void
adopt_unknown(struct task_runner *tr)
{
    tr->clean = true;
    if (tr->sm.t->phase != TASK_LAUNCHING) {
        vanished(tr);
        return;
    }
    /* The intent is durable, the launch did not happen. */
    tr->launching = true;
    tr->persisted = true;
    tr->events->need_dirs(tr->ar);
    launch_continue(tr);
}

static void
on_adopted(void *arg, const struct err *e, struct warden_reply *r)
{
    struct task_runner *tr = arg;
    tr->asked = false;
    if (tr->ar->stopped) {
        hold_release(&tr->ar->hold);
        return;
    }
    if (e && unreachable(e)) {
        tr->want_adopt = true;
        hold_release(&tr->ar->hold);
        return;
    }
    if (e && e->code == -ERR_BUSY) {
        ask_again(tr);
        hold_release(&tr->ar->hold);
        return;
    }
    adopt_done(tr);
    if (!task_sm_process(tr->sm.t)) { /* it ended otherwise meanwhile */
        forget_end(tr);
        hold_release(&tr->ar->hold);
        return;
    }
    const struct task_record *rec = !e && r->msg->records.n > 0 ? r->msg->records.v[0] : NULL;
    if (e && e->code == -ERR_NOT_FOUND)
        adopt_unknown(tr);
    else if (!rec)
        vanished(tr);
    else if (rec->finished_at != 0 || r->ended < 0)
        adopted_finished(tr, rec);
    else
        adopted_running(tr, r, rec);
    hold_release(&tr->ar->hold);
}

static void
adopt(struct task_runner *tr)
{
    tr->want_adopt = false;
    tr->asked = true;
    hold_take(&tr->ar->hold);
    warden_adopt(tr->ar->g->warden, tr->ar->id, name_of(tr), on_adopted, tr);
}

void
task_runner_link_up(struct task_runner *tr)
{
    if (tr->want_adopt)
        task_runner_resume(tr);
    if (tr->want_kill) {
        tr->want_kill = false;
        if (tr->sm.t->phase == TASK_STOPPING)
            send_kill_signal(tr);
        else if (tr->sm.t->phase == TASK_FORCED)
            force(tr);
    }
    if (tr->want_clean)
        forget_end(tr);
    if (tr->want_resize)
        task_limits_resize(tr);
}

void
task_runner_resume(struct task_runner *tr)
{
    bool simulated = tr->driver && tr->driver->simulate;
    if (tr->want_adopt) {
        tr->want_adopt = false;
        if (tr->launching && !tr->clean)
            launch_continue(tr); /* it was to destroy the old record */
        else
            adopt(tr);
    } else if (tr->sm.t->phase == TASK_DELAY) {
        rearm(tr);
    } else if (task_sm_process(tr->sm.t) && simulated) {
        vanished(tr);
    } else if (task_sm_process(tr->sm.t)) {
        tr->ar->g->adopting++;
        if (tr->ar->g->link->up)
            adopt(tr);
        else
            tr->want_adopt = true;
    }
}

/* --- life of the object --- */

void
task_runner_configure(struct task_runner *tr, const struct task *task)
{
    struct alloc_core *ar = tr->ar;
    tr->task = task;
    tr->driver = driver_find(task->driver);
    task_sm_configure(&tr->sm.cfg, ar->rec->alloc->job, ar->tg, task,
                      ar->g->cfg.max_kill_timeout_ns);
}

void
task_runner_init(struct task_runner *tr, struct alloc_core *ar, const struct task_events *events,
                 const struct task *task, struct client_task *record)
{
    *tr = (struct task_runner){.ar = ar,
                               .events = events,
                               .act = task_runner_act,
                               .ended = -1,
                               .cgroup = -1,
                               .record = -1};
    tr->clean = record->launches == 0;
    tr->sm.t = record;
    task_runner_configure(tr, task);
    tr->want_clean =
        !tr->clean && !task_sm_process(record) && !(tr->driver && tr->driver->simulate);
}

void
task_runner_done(struct task_runner *tr)
{
    timer_stop(tr->timer);
    timer_stop(tr->again);
    tr->timer = tr->again = NULL;
    timer_stop(tr->sim_timer);
    tr->sim_timer = NULL;
    close_fds(tr);
    mem_free(tr->sim);
}

/* --- an operator's signal --- */

struct signal_op {
    struct task_runner *tr;
    client_done *done;
    void *arg;
    int sig;
};

static void
on_operator_signal(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    struct signal_op *op = arg;
    struct task_runner *tr = op->tr;
    if (!e) {
        char name[16];
        task_runner_act(tr, task_sm_signaled(&tr->sm, clock_wall_ns(), signal_name(op->sig, name),
                                             "User requested signal"));
    }
    op->done(op->arg, e);
    talloc_free(op);
    hold_release(&tr->ar->hold);
}

void
task_runner_signal(struct task_runner *tr, int sig, client_done *done, void *arg)
{
    struct signal_op *op = mem_new(NULL, struct signal_op);
    *op = (struct signal_op){tr, done, arg, sig};
    hold_take(&tr->ar->hold);
    warden_signal(tr->ar->g->warden, tr->ar->id, name_of(tr), sig, on_operator_signal, op);
}
