/* SPDX-License-Identifier: Apache-2.0
 *
 * A task that its driver's engine runs (drivers/driver.h), and not the warden.
 */
#include "client/task/handle.h"
#include "client/task/launch.h"
#include "common/mem.h"
#include "common/num.h"

static void
on_started(void *arg)
{
    struct task_runner *tr = arg;
    tr->up->started(tr, clock_wall_ns());
}

static void
on_failed(void *arg, const char *why, bool recoverable)
{
    struct task_runner *tr = arg;
    tr->up->failed(tr, TASK_EVENT_DRIVER_FAILURE, why, recoverable);
}

static void
on_exited(void *arg, int code, int sig, const char *error)
{
    struct task_runner *tr = arg;
    struct task_exit x = {.code = code, .signal = sig, .error = error};
    tr->up->exited(tr, &x);
}

static const struct engine_events events = {on_started, on_failed, on_exited};

static void
engine_close(struct task_runner *tr)
{
    if (tr->engine)
        tr->driver->engine->close(TAKE(tr->engine));
}

static void
engine_start(struct task_runner *tr)
{
    auto_mem void *tmp = mem_ctx("engine");
    struct err e = ERR_INIT;
    engine_close(tr);
    tr->launching = false;
    const struct driver_input *in = launch_input(tmp, tr, &e);
    if (in)
        tr->engine = tr->driver->engine->start(tr->ar->g->loop, in, &events, tr, &e);
    if (!tr->engine)
        tr->up->failed(tr, TASK_EVENT_DRIVER_FAILURE, e.text, false);
}

static void
engine_stop(struct task_runner *tr, int sig)
{
    if (tr->engine)
        tr->driver->engine->stop(tr->engine, sig);
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
    tr->up->vanished(tr);
}

const struct task_handle handle_engine = {.start = engine_start,
                                          .adopt = engine_adopt,
                                          .stop = engine_stop,
                                          .kill = engine_kill,
                                          .close = engine_close};
