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
    {"signal_error", DRIVER_STRING},
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
    struct timer *timer; /* of its start or its end; NULL: stands still, or is over */
    const struct engine_events *up;
    void *arg;
    int64_t left_ns;       /* of its run, when it last began or went on */
    int64_t since_ns;      /* clock_mono_ns() of that; 0: it does not run */
    int64_t kill_after_ns; /* how long it ignores the kill signal */
    const char *start_error, *exit_error, *signal_error; /* NULL: none */
    int exit_code, exit_signal;
    bool start_recoverable;
};

/* --- its time --- */

static void
on_exit_time(void *arg)
{
    struct engine_task *t = arg;
    const struct engine_exit x = {
        .code = t->exit_code, .sig = t->exit_signal, .error = t->exit_error};
    t->timer = NULL;
    t->since_ns = 0;
    t->up->exited(t->arg, &x);
}

static void
go_on(struct engine_task *t)
{
    t->since_ns = clock_mono_ns();
    t->timer = timer_start(t->loop, t->left_ns / NS_PER_MS, on_exit_time, t);
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
    go_on(t);
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
        .left_ns = driver_duration(in->config, "run_for", 0),
        .kill_after_ns = driver_duration(in->config, "kill_after", 0),
        .start_error = text(t, in->config, "start_error"),
        .exit_error = text(t, in->config, "exit_err_msg"),
        .signal_error = text(t, in->config, "signal_error"),
        .exit_code = (int)driver_int(in->config, "exit_code", 0),
        .exit_signal = (int)driver_int(in->config, "exit_signal", 0),
        .start_recoverable = driver_bool(in->config, "start_error_recoverable", false),
    };
    int64_t delay_ns = driver_duration(in->config, "start_block_for", 0);
    t->timer = timer_start(p->loop, delay_ns / NS_PER_MS, on_start_time, t);
    return t;
}

/* --- what is asked of it --- */

struct answer {
    engine_done *done;
    void *arg;
    struct err e;
};

static void
on_answer(void *arg)
{
    struct answer *a = arg;
    a->done(a->arg, a->e.code ? &a->e : NULL);
    talloc_free(a);
}

/* `why` NULL: it is done. */
static void
answer(struct engine_task *t, const char *why, engine_done *done, void *arg)
{
    struct answer *a = mem_new(NULL, struct answer);
    *a = (struct answer){.done = done, .arg = arg};
    if (why)
        err_set(&a->e, -ERR_CONFLICT, "%s", why);
    loop_post(t->loop, on_answer, a);
}

static void
signal_task(struct engine_task *t, int sig, engine_done *done, void *arg)
{
    (void)sig;
    answer(t, t->signal_error, done, arg);
}

/* Time that it stands still is not time that it runs. */
static void
pause_task(struct engine_task *t, bool on, engine_done *done, void *arg)
{
    if (on && t->since_ns != 0) {
        t->left_ns -= clock_mono_ns() - t->since_ns;
        t->left_ns = t->left_ns < 0 ? 0 : t->left_ns;
        t->since_ns = 0;
        timer_stop(TAKE(t->timer));
    } else if (!on && t->since_ns == 0 && !t->timer) {
        go_on(t);
    }
    answer(t, NULL, done, arg);
}

static void
end(struct engine_task *t, int64_t after_ns)
{
    timer_stop(t->timer);
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
    .engine = &(const struct engine){.start = start,
                                     .stop = stop,
                                     .kill = kill_now,
                                     .signal = signal_task,
                                     .pause = pause_task,
                                     .close = close_task},
};
