/* SPDX-License-Identifier: Apache-2.0
 *
 * mock_driver: no process, only time: an engine for tests, with every verb that there is. Not part of the
 * table: a test (or an agent built for tests) adds it with driver_add(&driver_mock). Options are Nomad's.
 *
 * What a task does is a script, a function of the time that it has run: so a task is adopted by nothing
 * but its config and its start. Its output is kept here (struct engine, `logs`), and is not in files.
 */
#include "tests/lib/mock.h"

#include <signal.h>
#include <string.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "net/loop.h"

enum { REPEAT_MAX = 1000000 };

#define SCRIPT_OPTIONS(X)                                                                          \
    X("run_for", DRIVER_DURATION)                                                                  \
    X("exit_code", DRIVER_INT)                                                                     \
    X("exit_signal", DRIVER_INT)                                                                   \
    X("exit_err_msg", DRIVER_STRING)                                                               \
    X("signal_error", DRIVER_STRING)                                                               \
    X("stdout_string", DRIVER_STRING)                                                              \
    X("stdout_repeat", DRIVER_INT)                                                                 \
    X("stdout_repeat_duration", DRIVER_DURATION)                                                   \
    X("stderr_string", DRIVER_STRING)                                                              \
    X("stderr_repeat", DRIVER_INT)                                                                 \
    X("stderr_repeat_duration", DRIVER_DURATION)

#define KEY(name, kind) name,
#define OPTION(name, kind) {name, kind},
static const char *const script_keys[] = {SCRIPT_OPTIONS(KEY) NULL};

static const struct driver_option options[] = {
    SCRIPT_OPTIONS(OPTION) /* */
    {"exec_command", DRIVER_BLOCKS, .keys = script_keys},
    {"start_error", DRIVER_STRING},
    {"start_error_recoverable", DRIVER_BOOL},
    {"start_block_for", DRIVER_DURATION},
    {"kill_after", DRIVER_DURATION},
    {"fingerprint_error", DRIVER_STRING}, /* ours: the engine is not healthy while the task runs */
};

/* --- scripts: pure --- */

struct output {
    const char *text;
    size_t n;
    int64_t repeat, every_ns;
};

struct script { /* what a task does, or a command in one */
    int64_t run_for_ns;
    int code, sig;
    const char *error, *signal_error; /* NULL: none */
    struct output out[2];
};

static const char *
text(const void *ctx, const struct value *config, const char *option)
{
    const char *s = driver_string(config, option, "");
    return *s ? mem_strdup(ctx, s) : NULL;
}

static void
output_load(const void *ctx, const struct value *config, const char *stream, struct output *ret)
{
    auto_mem void *tmp = mem_ctx("option");
    int64_t repeat = driver_int(config, mem_printf(tmp, "%s_repeat", stream), 0);
    ret->text = text(ctx, config, mem_printf(tmp, "%s_string", stream));
    ret->n = ret->text ? strlen(ret->text) : 0;
    ret->repeat = repeat < 0 ? 0 : repeat > REPEAT_MAX ? REPEAT_MAX : repeat;
    ret->every_ns = driver_duration(config, mem_printf(tmp, "%s_repeat_duration", stream), 0);
}

static void
script_load(const void *ctx, const struct value *config, struct script *ret)
{
    *ret = (struct script){
        .run_for_ns = driver_duration(config, "run_for", 0),
        .code = (int)driver_int(config, "exit_code", 0),
        .sig = (int)driver_int(config, "exit_signal", 0),
        .error = text(ctx, config, "exit_err_msg"),
        .signal_error = text(ctx, config, "signal_error"),
    };
    output_load(ctx, config, "stdout", &ret->out[0]);
    output_load(ctx, config, "stderr", &ret->out[1]);
    for (int i = 0; i < 2; i++) { /* it does not end before its output */
        int64_t last_ns = 0;
        if (ret->out[i].n > 0 &&
            !__builtin_mul_overflow(ret->out[i].repeat, ret->out[i].every_ns, &last_ns) &&
            last_ns > ret->run_for_ns)
            ret->run_for_ns = last_ns;
    }
}

/* How much is written by then. */
static int64_t
output_at(const struct output *o, int64_t ran_ns)
{
    int64_t times = o->every_ns > 0 && ran_ns / o->every_ns < o->repeat ? ran_ns / o->every_ns : o->repeat;
    return (1 + times) * (int64_t)o->n;
}

/* The bytes from `at` on, of `end`; as many as were copied. */
static size_t
output_copy(const struct output *o, int64_t at, int64_t end, char *p, size_t n)
{
    size_t k = 0;
    for (; k < n && at < end; k++, at++)
        p[k] = o->text[(size_t)at % o->n];
    return k;
}

/* --- how the engine is --- */

struct engine_watch {
    engine_told *told;
    void *arg;
    struct timer *timer;
};

static struct engine_watch *watcher; /* one client a process, in tests */

static void
tell_health(bool healthy, const char *description)
{
    const struct hand_info info = {.healthy = healthy, .description = description, .version = "1"};
    if (watcher)
        watcher->told(watcher->arg, &info);
}

static void
on_watch_time(void *arg)
{
    struct engine_watch *w = arg;
    w->timer = NULL;
    tell_health(true, "Healthy");
}

static struct engine_watch *
watch(const struct engine_place *p, engine_told *told, void *arg)
{
    watcher = mem_new(NULL, struct engine_watch);
    *watcher = (struct engine_watch){.told = told, .arg = arg};
    watcher->timer = timer_start(p->loop, 0, on_watch_time, watcher);
    return watcher;
}

static void
unwatch(struct engine_watch *w)
{
    watcher = NULL;
    timer_stop(w->timer);
    talloc_free(w);
}

static void
fingerprint(const void *ctx, const struct driver_host *host, struct driver_info *ret)
{
    ret->detected = host->engine != NULL;
    ret->healthy = host->engine && host->engine->healthy;
    ret->health_description = host->engine ? mem_strdup(ctx, host->engine->description) : NULL;
}

/* --- a task's time --- */

struct engine_task {
    struct loop *loop;
    struct timer *timer; /* of its start or its end; NULL: stands still, or is over */
    const struct engine_events *up;
    void *arg;
    struct script does;
    struct value *exec;    /* script of commands; NULL: none */
    int64_t ran_ns;        /* until it last began or went on */
    int64_t since_ns;      /* clock_mono_ns() of that; 0: it does not run */
    int64_t kill_after_ns; /* how long it ignores the kill signal */
    int64_t memory;        /* bytes: all that it was given */
    const char *start_error; /* NULL: none */
    const char *illness;     /* of the engine while it runs; NULL: none */
    bool start_recoverable;
    bool over;
};

static int64_t
ran(const struct engine_task *t)
{
    return t->ran_ns + (t->since_ns ? clock_mono_ns() - t->since_ns : 0);
}

static void
stand_still(struct engine_task *t)
{
    t->ran_ns = ran(t);
    t->since_ns = 0;
    timer_stop(TAKE(t->timer));
}

static void
on_exit_time(void *arg)
{
    struct engine_task *t = arg;
    const struct engine_exit x = {.code = t->does.code, .sig = t->does.sig, .error = t->does.error};
    t->timer = NULL;
    stand_still(t);
    t->over = true;
    if (t->illness)
        tell_health(true, "Healthy");
    t->up->exited(t->arg, &x);
}

/* A delay for timer_start() that is not over before @ns are: the loop's clock shows whole milliseconds. */
static int64_t
delay_ms(int64_t ns)
{
    return ns > 0 ? (ns + NS_PER_MS - 1) / NS_PER_MS + 1 : 0;
}

static void
go_on(struct engine_task *t)
{
    t->since_ns = clock_mono_ns();
    t->timer = timer_start(t->loop, delay_ms(t->does.run_for_ns - t->ran_ns), on_exit_time, t);
}

/* --- its beginning --- */

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
    if (t->illness)
        tell_health(false, t->illness);
    t->up->started(t->arg, clock_wall_ns());
}

static void
take_limits(struct engine_task *t, const struct driver_input *in)
{
    const struct allocated_memory_resources *m = in->resources ? in->resources->memory : NULL;
    t->memory = m ? m->memory_mb << 20 : 0;
}

static struct engine_task *
make(const struct engine_place *p, const struct driver_input *in, const struct engine_events *up, void *arg)
{
    struct engine_task *t = mem_new(NULL, struct engine_task);
    *t = (struct engine_task){.loop = p->loop, .up = up, .arg = arg};
    if (!in)
        return t;
    const struct value *exec = driver_block(in->config, "exec_command", 0);
    script_load(t, in->config, &t->does);
    t->exec = exec ? value_clone(t, exec) : NULL;
    t->kill_after_ns = driver_duration(in->config, "kill_after", 0);
    t->start_error = text(t, in->config, "start_error");
    t->illness = text(t, in->config, "fingerprint_error");
    t->start_recoverable = driver_bool(in->config, "start_error_recoverable", false);
    take_limits(t, in);
    return t;
}

static struct engine_task *
start(const struct engine_place *p, const struct driver_input *in, const struct engine_events *up,
      void *arg, struct err *e)
{
    struct engine_task *t = make(p, in, up, arg);
    (void)e;
    int64_t block_for = driver_duration(in->config, "start_block_for", 0);
    t->timer = timer_start(p->loop, delay_ms(block_for), on_start_time, t);
    return t;
}

static void
on_adopt_time(void *arg)
{
    struct engine_task *t = arg;
    t->timer = NULL;
    go_on(t);
    t->up->adopted(t->arg, clock_wall_ns() - t->ran_ns, false);
}

static void
on_absent(void *arg)
{
    struct engine_task *t = arg;
    t->timer = NULL;
    t->up->absent(t->arg);
}

/* It went on while no agent was there. */
static struct engine_task *
adopt(const struct engine_place *p, const struct driver_input *in, const struct engine_events *up, void *arg)
{
    struct engine_task *t = make(p, in, up, arg);
    bool there = in && p->started_ns > 0;
    if (there && clock_wall_ns() > p->started_ns)
        t->ran_ns = clock_wall_ns() - p->started_ns;
    t->timer = timer_start(p->loop, 0, there ? on_adopt_time : on_absent, t);
    return t;
}

/* --- what is asked of it --- */

struct answer {
    engine_done *done;
    engine_net_made *made; /* instead */
    void *arg;
    struct err e;
};

static void
on_answer(void *arg)
{
    struct answer *a = arg;
    const struct err *e = a->e.code ? &a->e : NULL;
    if (a->made)
        a->made(a->arg, e, &(const struct hand_network_state){.address = MOCK_ADDRESS});
    else
        a->done(a->arg, e);
    talloc_free(a);
}

/* `why` NULL: it is done. */
static void
answer(struct loop *loop, const char *why, engine_done *done, void *arg)
{
    struct answer *a = mem_new(NULL, struct answer);
    *a = (struct answer){.done = done, .arg = arg};
    if (why)
        err_set(&a->e, -ERR_CONFLICT, "%s", why);
    loop_post(loop, on_answer, a);
}

static void
signal_task(struct engine_task *t, int sig, engine_done *done, void *arg)
{
    (void)sig;
    answer(t->loop, t->does.signal_error, done, arg);
}

/* Time that it stands still is not time that it runs. */
static void
pause_task(struct engine_task *t, bool on, engine_done *done, void *arg)
{
    if (on && t->since_ns != 0)
        stand_still(t);
    else if (!on && t->since_ns == 0 && !t->timer && !t->over)
        go_on(t);
    answer(t->loop, NULL, done, arg);
}

static int
resize(struct engine_task *t, const struct driver_input *in, engine_done *done, void *arg, struct err *e)
{
    (void)e;
    take_limits(t, in);
    answer(t->loop, NULL, done, arg);
    return 0;
}

static void
end(struct engine_task *t, int64_t after_ns)
{
    if (t->over)
        return;
    timer_stop(t->timer);
    t->timer = timer_start(t->loop, delay_ms(after_ns), on_exit_time, t);
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

/* Nothing is left of one. */
static struct engine_task *
forget(const struct engine_place *p)
{
    struct engine_task *t = make(p, NULL, NULL, NULL);
    t->over = true;
    return t;
}

static void
close_task(struct engine_task *t)
{
    timer_stop(t->timer);
    talloc_free(t);
}

/* All the memory that it has, and all of one processor. */
static bool
stats(const struct engine_task *t, struct cgroup_stats *ret, int *ret_dir)
{
    (void)ret_dir;
    ret->memory_rss = ret->memory_current = t->memory;
    ret->user_us = ran(t) / NS_PER_US;
    ret->system_us = 0;
    return true;
}

static int64_t
logs(const struct engine_task *t, int stream, int64_t at, void *p, size_t n)
{
    const struct output *o = &t->does.out[stream - 1];
    int64_t size = t->ran_ns > 0 || t->since_ns != 0 ? output_at(o, ran(t)) : 0;
    return p ? (int64_t)output_copy(o, at, size, p, n) : size;
}

/* --- a command in it --- */

struct command { /* a talloc context */
    struct task_exec base;
    struct loop *loop;
    const struct task_exec_events *up;
    void *arg;
    struct timer *timer; /* the next step; NULL: its output is not read, or its input awaited */
    struct script does;
    struct buf input;
    int64_t begun_ns;
    int64_t told[2]; /* bytes of each stream */
    bool shows;      /* "showinput": its output is its input, after the end of that */
    bool none;       /* the task's config has no command */
    bool tty, opened, no_more, held, busy, closed;
};

static struct command *
of(struct task_exec *x)
{
    return (struct command *)x;
}

static void
release(struct command *x)
{
    buf_done(&x->input);
    talloc_free(x);
}

static void
exec_close(struct task_exec *base)
{
    struct command *x = of(base);
    x->closed = true;
    timer_stop(TAKE(x->timer));
    if (!x->busy)
        release(x);
}

/* Tells what is written by now; false: it was closed. */
static bool
tell_output(struct command *x, int64_t ran_ns)
{
    char block[4096];
    for (int i = 0; i < 2; i++) {
        int64_t end = output_at(&x->does.out[i], ran_ns);
        while (x->told[i] < end && !x->closed) {
            size_t n = output_copy(&x->does.out[i], x->told[i], end, block, sizeof(block));
            x->told[i] += (int64_t)n;
            x->up->output(x->arg, i + 1, block, n);
        }
    }
    return !x->closed;
}

static void
end_command(struct command *x)
{
    struct err e = ERR_INIT;
    if (x->none)
        err_set(&e, -ERR_INVALID, "no exec command is configured");
    else if (x->does.error)
        err_set(&e, -ERR_CONFLICT, "%s", x->does.error);
    x->up->ended(x->arg, x->does.code, x->does.sig, e.code ? &e : NULL);
}

static void
step(void *arg)
{
    struct command *x = arg;
    int64_t now = clock_mono_ns(), next = INT64_MAX;
    x->timer = NULL;
    x->busy = true;
    if (!x->opened && !x->none) {
        x->opened = true;
        x->begun_ns = now;
        x->up->opened(x->arg);
    }
    int64_t ran_ns = now - x->begun_ns;
    bool waits = x->held || (x->shows && !x->no_more && !x->none);
    if (x->closed || waits || !tell_output(x, ran_ns)) {
        /* another event comes, or none */
    } else if (x->none || ran_ns >= x->does.run_for_ns) {
        end_command(x);
    } else {
        next = x->does.run_for_ns - ran_ns;
        for (int i = 0; i < 2; i++) {
            const struct output *o = &x->does.out[i];
            if (o->n > 0 && o->every_ns > 0 && ran_ns / o->every_ns < o->repeat &&
                o->every_ns - ran_ns % o->every_ns < next)
                next = o->every_ns - ran_ns % o->every_ns;
        }
    }
    x->busy = false;
    if (x->closed)
        release(x);
    else if (next != INT64_MAX)
        x->timer = timer_start(x->loop, (next + NS_PER_MS - 1) / NS_PER_MS, step, x);
}

static void
step_soon(struct command *x)
{
    timer_stop(x->timer);
    x->timer = timer_start(x->loop, 0, step, x);
}

static void
exec_write(struct task_exec *x, const void *p, size_t n)
{
    if (of(x)->shows)
        buf_put(&of(x)->input, p, n);
}

static size_t
exec_queued(const struct task_exec *x)
{
    (void)x;
    return 0;
}

static void
exec_end_input(struct task_exec *base)
{
    struct command *x = of(base);
    if (!x->shows || x->no_more)
        return;
    x->no_more = true;
    x->does = (struct script){.run_for_ns = NS_PER_MS};
    x->does.out[0].text =
        mem_printf(x, "TTY: %s\nStdin:\n%s\n", x->tty ? "true" : "false", buf_str(&x->input));
    x->does.out[0].n = strlen(x->does.out[0].text);
    step_soon(x);
}

static void
exec_resize(struct task_exec *x, uint16_t rows, uint16_t columns)
{
    (void)x, (void)rows, (void)columns;
}

static void
exec_read(struct task_exec *base, bool on)
{
    of(base)->held = !on;
    if (on && of(base)->opened)
        step_soon(of(base));
}

static struct task_exec *
exec(struct engine_task *t, const struct hand_exec *spec, const struct task_exec_events *up, void *arg)
{
    static const struct task_exec_verbs verbs = {.write = exec_write,
                                                 .queued = exec_queued,
                                                 .end_input = exec_end_input,
                                                 .resize = exec_resize,
                                                 .read = exec_read,
                                                 .close = exec_close};
    struct command *x = mem_new(NULL, struct command);
    *x = (struct command){
        .base = {&verbs}, .loop = t->loop, .up = up, .arg = arg, .none = !t->exec, .tty = spec->tty};
    x->shows = spec->command.n == 1 && str_eq(spec->command.v[0], "showinput");
    buf_init(&x->input, 1 << 20);
    if (t->exec && !x->shows)
        script_load(x, t->exec, &x->does);
    x->timer = timer_start(t->loop, 0, step, x);
    return &x->base;
}

/* --- the network of its group --- */

static void
net_make(const struct engine_place *p, const struct hand_network *n, engine_net_made *made, void *arg)
{
    struct answer *a = mem_new(NULL, struct answer);
    (void)n;
    *a = (struct answer){.made = made, .arg = arg};
    loop_post(p->loop, on_answer, a);
}

static void
net_remove(const struct engine_place *p, engine_done *done, void *arg)
{
    answer(p->loop, NULL, done, arg);
}

const struct driver driver_mock = {
    .can = &(const struct driver_can){.name = "mock_driver"},
    .options = options,
    .n_options = ARRAY_LEN(options),
    .kill_signal = SIGINT,
    .fingerprint = fingerprint,
    .engine = &(const struct engine){.watch = watch,
                                     .unwatch = unwatch,
                                     .start = start,
                                     .adopt = adopt,
                                     .signal = signal_task,
                                     .pause = pause_task,
                                     .resize = resize,
                                     .stop = stop,
                                     .kill = kill_now,
                                     .forget = forget,
                                     .stats = stats,
                                     .logs = logs,
                                     .exec = exec,
                                     .net_make = net_make,
                                     .net_remove = net_remove,
                                     .close = close_task},
};
