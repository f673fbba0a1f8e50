/* SPDX-License-Identifier: Apache-2.0
 *
 * mock_driver: no process, only timers: an engine for tests. Not part of the table: a test (or an agent
 * built for tests) adds it with driver_add(&driver_mock).
 */
#include "drivers/mock.h"

#include <signal.h>

#include "common/mem.h"
#include "common/num.h"
#include "net/loop.h"

static const struct driver_option options[] = {
    {"run_for", DRIVER_DURATION},
    {"exit_code", DRIVER_INT},
    {"exit_signal", DRIVER_INT},
    {"exit_err_msg", DRIVER_STRING},
    {"start_error", DRIVER_STRING},
    {"start_error_recoverable", DRIVER_BOOL},
    {"start_block_for", DRIVER_DURATION},
    {"kill_after", DRIVER_DURATION},
};

static void
fingerprint(const void *ctx, const struct driver_host *host, struct driver_info *ret)
{
    (void)ctx;
    (void)host;
    ret->detected = ret->healthy = true;
    ret->health_description = "Healthy";
}

struct engine_task {
    struct loop *loop;
    struct timer *timer;
    const struct engine_events *up;
    void *arg;
    int64_t run_for_ns;    /* < 0: for ever */
    int64_t kill_after_ns; /* how long it ignores the kill signal */
    const char *start_error, *exit_error; /* NULL: none */
    int exit_code, exit_signal;
    bool start_recoverable;
    bool killed;
};

static void
on_exit_time(void *arg)
{
    struct engine_task *t = arg;
    t->timer = NULL;
    struct engine_exit x = {0};
    if (!t->killed)
        x = (struct engine_exit){
            .code = t->exit_code, .sig = t->exit_signal, .error = t->exit_error};
    t->up->exited(t->arg, &x);
}

static void
on_start_time(void *arg)
{
    struct engine_task *t = arg;
    t->timer = NULL;
    if (t->start_error) {
        t->up->failed(t->arg, t->start_error, t->start_recoverable);
        return;
    }
    if (t->run_for_ns >= 0)
        t->timer = timer_start(t->loop, t->run_for_ns / NS_PER_MS, on_exit_time, t);
    t->up->started(t->arg, clock_wall_ns());
}

static const char *
text(const struct engine_task *t, const struct value *config, const char *option)
{
    const char *s = driver_string(config, option, "");
    return *s ? mem_strdup(t, s) : NULL;
}

static struct engine_task *
start(const struct engine_place *p, const struct driver_input *in, const struct engine_events *up,
      void *arg, struct err *e)
{
    (void)e;
    struct engine_task *t = mem_new(NULL, struct engine_task);
    *t = (struct engine_task){
        .loop = p->loop,
        .up = up,
        .arg = arg,
        .run_for_ns = driver_duration(in->config, "run_for", 0),
        .kill_after_ns = driver_duration(in->config, "kill_after", 0),
        .start_error = text(t, in->config, "start_error"),
        .exit_error = text(t, in->config, "exit_err_msg"),
        .exit_code = (int)driver_int(in->config, "exit_code", 0),
        .exit_signal = (int)driver_int(in->config, "exit_signal", 0),
        .start_recoverable = driver_bool(in->config, "start_error_recoverable", false),
    };
    int64_t delay_ns = driver_duration(in->config, "start_block_for", 0);
    t->timer = timer_start(p->loop, delay_ns / NS_PER_MS, on_start_time, t);
    return t;
}

static void
end(struct engine_task *t, int64_t after_ns)
{
    timer_stop(t->timer);
    t->killed = true;
    t->timer = timer_start(t->loop, after_ns / NS_PER_MS, on_exit_time, t);
}

static void
stop(struct engine_task *t, int sig)
{
    (void)sig;
    end(t, t->kill_after_ns);
}

static void
kill_now(struct engine_task *t)
{
    end(t, 0);
}

static void
close_task(struct engine_task *t)
{
    timer_stop(t->timer);
    talloc_free(t);
}

const struct driver driver_mock = {
    .can = &(const struct driver_can){.name = "mock_driver"},
    .options = options,
    .n_options = ARRAY_LEN(options),
    .kill_signal = SIGINT,
    .fingerprint = fingerprint,
    .engine = &(const struct engine){.start = start, .stop = stop, .kill = kill_now, .close = close_task},
};
