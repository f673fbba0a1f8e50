/* SPDX-License-Identifier: Apache-2.0 */
#include "client/task/command.h"

#include "client/task/handle.h"
#include "common/buf.h"
#include "common/mem.h"

struct command {           /* a talloc context */
    struct task_exec *far; /* the command; NULL: it is over */
    struct timer *timer;
    struct buf output;
    command_done *done;
    void *arg;
};

void
command_cancel(struct command *x)
{
    if (!x)
        return;
    struct task_exec *far = TAKE(x->far);
    timer_stop(x->timer);
    if (far)
        far->verbs->close(far);
    buf_done(&x->output);
    talloc_free(x);
}

static void
command_finish(struct command *x, struct command_end *end)
{
    command_done *done = x->done;
    void *arg = x->arg;
    auto_mem void *tmp = mem_ctx("command");
    end->n = x->output.len;
    end->output = mem_strndup(tmp, end->n > 0 ? (const char *)x->output.data : "", end->n);
    command_cancel(x);
    done(arg, end);
}

static void
on_late(void *arg)
{
    struct command *x = arg;
    struct command_end end = {.late = true};
    x->timer = NULL;
    command_finish(x, &end);
}

static void
on_opened(void *arg)
{
    const struct command *x = arg;
    x->far->verbs->end_input(x->far);
}

static void
on_output(void *arg, int stream, const void *p, size_t n)
{
    struct command *x = arg;
    size_t room = x->output.max - x->output.len;
    (void)stream;
    buf_put(&x->output, p, n < room ? n : room);
}

static void
on_closed(void *arg, int stream)
{
    (void)arg;
    (void)stream;
}

static void
on_drained(void *arg)
{
    (void)arg;
}

static void
on_ended(void *arg, int code, int sig, const struct err *e)
{
    struct command_end end = {.e = e, .code = code, .sig = sig};
    command_finish(arg, &end);
}

static const struct task_exec_events command_events = {on_opened, on_output, on_closed, on_drained,
                                                       on_ended};

struct command *
command_start(struct task_runner *tr, const struct command_wish *w, command_done *done, void *arg,
              struct err *e)
{
    struct command *x = mem_new(NULL, struct command);
    struct hand_exec spec = {0};
    list_add(x, spec.command, w->program);
    for (size_t i = 0; i < w->args->n; i++)
        list_add(x, spec.command, w->args->v[i]);
    buf_init(&x->output, w->output_max);
    x->done = done;
    x->arg = arg;
    x->far = tr->handle->exec(tr, &spec, &command_events, x, e);
    if (!x->far) {
        command_cancel(x);
        return NULL;
    }
    x->timer = timer_start(tr->ar->g->loop, w->timeout_ms, on_late, x);
    return x;
}
