/* SPDX-License-Identifier: Apache-2.0
 *
 * A task that is nothing but timers: of drivers that launch nothing (mock_driver, of test builds).
 */
#include "client/task/handle.h"
#include "client/task/launch.h"
#include "common/mem.h"
#include "common/num.h"

struct sim {
    struct task_runner *tr;
    struct driver_sim plan;
    struct timer *timer;
    bool killed;
};

static void
on_exit_time(void *arg)
{
    struct sim *s = arg;
    struct task_runner *tr = s->tr;
    s->timer = NULL;
    struct task_exit x = {
        .code = s->plan.exit_code, .signal = s->plan.exit_signal, .error = s->plan.exit_error};
    if (s->killed)
        x = (struct task_exit){.code = 0};
    tr->up->exited(tr, &x);
}

static void
on_start_time(void *arg)
{
    struct sim *s = arg;
    struct task_runner *tr = s->tr;
    s->timer = NULL;
    if (s->plan.start_error) {
        tr->up->failed(tr, TASK_EVENT_DRIVER_FAILURE, s->plan.start_error,
                       s->plan.start_recoverable);
        return;
    }
    if (s->plan.run_for_ns >= 0)
        s->timer = timer_start(tr->ar->g->loop, s->plan.run_for_ns / NS_PER_MS, on_exit_time, s);
    tr->up->started(tr, clock_wall_ns());
}

static void
close_sim(struct task_runner *tr)
{
    if (tr->sim)
        timer_stop(tr->sim->timer);
    mem_free(tr->sim);
    tr->sim = NULL;
}

static void
start(struct task_runner *tr)
{
    struct err e = ERR_INIT;
    close_sim(tr);
    struct sim *s = tr->sim = mem_new(NULL, struct sim);
    s->tr = tr;
    tr->launching = false;
    if (launch_simulation(s, tr, &s->plan, &e) < 0)
        tr->up->failed(tr, TASK_EVENT_DRIVER_FAILURE, e.text, false);
    else
        s->timer =
            timer_start(tr->ar->g->loop, s->plan.start_delay_ns / NS_PER_MS, on_start_time, s);
}

static void
end(struct task_runner *tr, int64_t after_ns)
{
    struct sim *s = tr->sim;
    if (!s)
        return;
    timer_stop(s->timer);
    s->killed = true;
    s->timer = timer_start(tr->ar->g->loop, after_ns / NS_PER_MS, on_exit_time, s);
}

static void
stop(struct task_runner *tr, int sig)
{
    (void)sig;
    if (tr->sim)
        end(tr, tr->sim->plan.kill_after_ns);
}

static void
kill_now(struct task_runner *tr)
{
    end(tr, 0);
}

static void
adopt(struct task_runner *tr)
{
    tr->up->vanished(tr);
}

const struct task_handle handle_sim = {
    .start = start, .adopt = adopt, .stop = stop, .kill = kill_now, .close = close_sim};
