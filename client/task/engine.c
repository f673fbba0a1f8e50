/* SPDX-License-Identifier: Apache-2.0
 *
 * A task that its driver's engine runs (drivers/driver.h), and not the warden.
 *
 * Two tables that face each other: the events of the engine, as inputs of the task's state machine;
 * and the verbs of a task's handle (client/task/handle.h), as calls of the engine. What an engine
 * has no verb for is refused with its name.
 */
#include <signal.h>

#include "client/task/handle.h"
#include "client/task/launch.h"
#include "common/clock.h"
#include "common/mem.h"

struct engine_place
engine_place(const struct task_runner *tr)
{
    const struct ground *g = tr->ar->g;
    const char *driver = tr->driver->can->name;
    return (struct engine_place){
        .loop = g->loop,
        .hand = str_list_has(&g->cfg.engines, driver) ? g->cfg.hand : NULL,
        .driver = driver,
        .alloc_id = tr->ar->id,
        .task = tr->sm.t->name,
        .started_ns = tr->sm.t->phase == TASK_LAUNCHING ? 0 : tr->sm.t->state->started_at};
}

bool
engine_off(const struct task_runner *tr)
{
    return tr->driver->engine->hand && !engine_place(tr).hand;
}

/* --- what the engine tells --- */

static void
on_started(void *arg, int64_t started_ns)
{
    struct task_runner *tr = arg;
    tr->up->started(tr, started_ns);
}

static void engine_close(struct task_runner *tr);
static void engine_destroy(struct task_runner *tr);

static void
on_failed(void *arg, const char *why, bool recoverable)
{
    struct task_runner *tr = arg;
    if (alloc_network(tr->ar))
        tr->ar->ready = READY_NONE; /* the network may be what is missing: look again */
    if (why)
        tr->up->failed(tr, TASK_EVENT_DRIVER_FAILURE, why, recoverable);
    else
        tr->up->given_up(tr);
    if (tr->driver->engine->forget) { /* what was made of it */
        engine_close(tr);
        engine_destroy(tr);
    }
}

static void
on_exited(void *arg, const struct engine_exit *e)
{
    struct task_runner *tr = arg;
    if (alloc_network(tr->ar)) /* an engine that was started again has made another one */
        tr->ar->ready = READY_NONE;
    struct task_exit x = {
        .code = e->code, .signal = e->sig, .oom_killed = e->oom_killed, .error = e->error,
        .with_machine = e->taken};
    tr->up->exited(tr, &x);
}

static void
adoption_over(struct task_runner *tr)
{
    if (tr->adopting && tr->ar->g->adopting > 0)
        tr->ar->g->adopting--;
    tr->adopting = false;
}

static void
on_adopted(void *arg, int64_t started_ns, bool over)
{
    struct task_runner *tr = arg;
    adoption_over(tr);
    tr->up->adopted(tr, started_ns, over);
}

static void
on_absent(void *arg)
{
    struct task_runner *tr = arg;
    bool restarted = tr->adopting;
    adoption_over(tr);
    if (!restarted)
        tr->up->exited(tr, &(struct task_exit){
                               .signal = SIGKILL,
                               .code = 128 + SIGKILL,
                               .error = "it is gone without a record of its end: somebody else "
                                        "has removed it"});
    else if (tr->sm.t->phase == TASK_LAUNCHING)
        tr->up->not_launched(tr);
    else
        tr->up->vanished(tr);
}

static void
on_said(void *arg, const char *text)
{
    struct task_runner *tr = arg;
    tr->act(tr, task_sm_note(&tr->sm, clock_civil_ns(), TASK_EVENT_DRIVER, text));
}

static const struct engine_events events = {.started = on_started,
                                            .failed = on_failed,
                                            .exited = on_exited,
                                            .adopted = on_adopted,
                                            .said = on_said,
                                            .absent = on_absent};

/* --- what is asked of it --- */

static void
engine_close(struct task_runner *tr)
{
    const struct engine *engine = tr->driver ? tr->driver->engine : NULL;
    adoption_over(tr);
    if (tr->output)
        engine->close(TAKE(tr->output));
    if (tr->engine && engine->logs && !tr->ar->stopped)
        tr->output = TAKE(tr->engine);
    else if (tr->engine)
        engine->close(TAKE(tr->engine));
}

static bool
engine_begin(struct task_runner *tr)
{
    if (engine_off(tr)) {
        tr->up->failed(tr, TASK_EVENT_DRIVER_FAILURE, "the driver is off on this node", false);
        return false;
    }
    if (launch_needs_alloc(tr))
        tr->events->need_ready(tr->ar);
    return true;
}

static void
engine_start(struct task_runner *tr)
{
    auto_mem void *tmp = mem_ctx("engine");
    struct err e = ERR_INIT;
    struct engine_place p = engine_place(tr);
    engine_close(tr);
    tr->launching = false;
    const struct driver_input *in = launch_input(tmp, tr, &e);
    if (in)
        tr->engine = tr->driver->engine->start(&p, in, &events, tr, &e);
    if (!tr->engine)
        tr->up->failed(tr, in ? TASK_EVENT_DRIVER_FAILURE : TASK_EVENT_VALIDATION, e.text, false);
}

static void
engine_stop(struct task_runner *tr, int sig)
{
    if (tr->engine)
        tr->driver->engine->stop(tr->engine, sig);
}

static void
engine_give_up(struct task_runner *tr)
{
    engine_stop(tr, tr->driver->kill_signal);
}

static void
engine_kill(struct task_runner *tr)
{
    if (tr->engine)
        tr->driver->engine->kill(tr->engine);
}

static void
engine_adopt(struct task_runner *tr)
{
    struct engine_place p = engine_place(tr);
    auto_mem void *tmp = mem_ctx("adopt");
    struct err e = ERR_INIT;
    if (!tr->driver->engine->adopt || engine_off(tr)) {
        tr->up->vanished(tr);
        return;
    }
    engine_close(tr);
    tr->adopting = true;
    tr->ar->g->adopting++;
    tr->engine = tr->driver->engine->adopt(&p, launch_input(tmp, tr, &e), &events, tr);
}

static void
engine_destroy(struct task_runner *tr)
{
    struct engine_place p = engine_place(tr);
    if (!tr->driver->engine->forget || engine_off(tr) || tr->engine || tr->launching ||
        tr->ar->stopped || /* the next agent does it, by link_up */
        task_sm_process(tr->sm.t))
        return;
    tr->engine = tr->driver->engine->forget(&p);
}

/* Removes what has ended before the agent did, and was not removed any more. */
static void
engine_link_up(struct task_runner *tr)
{
    if (tr->sm.t->launches > 0)
        engine_destroy(tr);
}

/* Refuses an operation for which the driver's engine has no verb. */
static void
engine_refuse(struct task_runner *tr, const char *what, client_done *done, void *arg)
{
    struct err e = ERR_INIT;
    err_set(&e, -ERR_UNSUPPORTED, "driver \"%s\" cannot %s its tasks", tr->driver->can->name, what);
    done(arg, &e);
}

static void
engine_signal(struct task_runner *tr, int sig, client_done *done, void *arg)
{
    if (tr->engine && tr->driver->engine->signal)
        tr->driver->engine->signal(tr->engine, sig, done, arg);
    else
        engine_refuse(tr, "signal", done, arg);
}

static void
engine_pause(struct task_runner *tr, bool on, client_done *done, void *arg)
{
    if (tr->engine && tr->driver->engine->pause)
        tr->driver->engine->pause(tr->engine, on, done, arg);
    else
        engine_refuse(tr, "pause", done, arg);
}

static struct task_exec *
engine_exec(struct task_runner *tr, const struct hand_exec *x, const struct task_exec_events *up,
            void *arg, struct err *e)
{
    if (tr->engine && tr->driver->engine->exec)
        return tr->driver->engine->exec(tr->engine, x, up, arg);
    err_set(e, -ERR_UNSUPPORTED, "task \"%s\" of driver \"%s\" is no process", tr->sm.t->name,
            tr->task->driver);
    return NULL;
}

static bool
engine_stats(struct task_runner *tr, struct task_reading *ret)
{
    bool known = tr->engine && tr->driver->engine->stats &&
                 tr->driver->engine->stats(tr->engine, &ret->cg, &ret->cgroup);
    ret->opened = ret->cgroup >= 0;
    return known;
}

static int64_t
engine_logs(struct task_runner *tr, int stream, int64_t at, void *p, size_t n)
{
    if (!tr->driver->engine->logs)
        return -ERR_UNSUPPORTED;
    const struct engine_task *t = tr->engine && !tr->output ? tr->engine : tr->output;
    return t ? tr->driver->engine->logs(t, stream, at, p, n) : 0;
}

/* Puts a file below the task's paths, if its engine has paths of its own: the allocation's
 * directories are there. */
static void
engine_put(struct task_runner *tr, const struct warden_put *put, client_done *done, void *arg)
{
    if (tr->driver->can->isolation)
        process_put(tr, put, done, arg);
    else
        engine_refuse(tr, "have files for", done, arg);
}

static void
on_resized(void *arg, const struct err *e)
{
    struct task_runner *tr = arg;
    auto_mem void *tmp = mem_ctx("resize");
    if (!tr->ar->stopped && (e || tr->limits_new))
        tr->act(tr,
                task_sm_note(
                    &tr->sm, clock_civil_ns(), TASK_EVENT_DRIVER,
                    e ? mem_printf(tmp, "new limits failed, the next start has them: %s", e->text)
                      : "limits changed"));
    tr->limits_new = false;
    hold_release(&tr->ar->hold);
}

static void
engine_resize(struct task_runner *tr)
{
    auto_mem void *tmp = mem_ctx("resize");
    struct err e = ERR_INIT;
    if (!tr->engine || !task_sm_process(tr->sm.t) || !tr->driver->engine->resize)
        return; /* the next start has them */
    const struct driver_input *in = launch_input(tmp, tr, &e);
    hold_take(&tr->ar->hold);
    if (!in || tr->driver->engine->resize(tr->engine, in, on_resized, tr, &e) < 0)
        on_resized(tr, &e);
}

const struct task_handle handle_engine = {.begin = engine_begin,
                                          .start = engine_start,
                                          .give_up = engine_give_up,
                                          .adopt = engine_adopt,
                                          .stop = engine_stop,
                                          .kill = engine_kill,
                                          .close = engine_close,
                                          .destroy = engine_destroy,
                                          .link_up = engine_link_up,
                                          .signal = engine_signal,
                                          .pause = engine_pause,
                                          .exec = engine_exec,
                                          .resize = engine_resize,
                                          .stats = engine_stats,
                                          .logs = engine_logs,
                                          .put = engine_put};
