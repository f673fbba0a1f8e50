/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/check_script.h"

#include "client/task/handle.h"
#include "common/buf.h"
#include "common/duration.h"
#include "common/mem.h"

struct check_script { /* a talloc context */
    struct task_exec *far; /* the command; NULL: it is over */
    struct timer *timer;
    int64_t timeout_ms;
    struct buf output;
    probe_done *done;
    void *arg;
};

void
check_script_cancel(struct check_script *x)
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
check_script_finish(struct check_script *x, bool ok, const char *output)
{
    probe_done *done = x->done;
    void *arg = x->arg;
    auto_mem void *tmp = mem_ctx("script");
    const struct probe_answer a = {ok, 0, mem_strdup(tmp, output)};
    check_script_cancel(x);
    done(arg, &a);
}

static void
on_late(void *arg)
{
    struct check_script *x = arg;
    char text[DURATION_TEXT];
    auto_mem void *tmp = mem_ctx("script");
    x->timer = NULL;
    check_script_finish(x, false,
                        mem_printf(tmp, "nomad: the command did not end within %s",
                                   duration_format(x->timeout_ms * NS_PER_MS, text)));
}

/* --- what the command tells --- */

static void
on_opened(void *arg)
{
    const struct check_script *x = arg;
    x->far->verbs->end_input(x->far);
}

static void
on_output(void *arg, int stream, const void *p, size_t n)
{
    struct check_script *x = arg;
    size_t room = PROBE_OUTPUT_MAX - x->output.len;
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
    struct check_script *x = arg;
    auto_mem void *tmp = mem_ctx("script");
    const char *bytes = x->output.len > 0 ? (const char *)x->output.data : "";
    const char *text = probe_text(tmp, bytes, x->output.len);
    bool ok = !e && code == 0 && sig == 0;
    if (e)
        text = mem_printf(tmp, "nomad: %s", e->text);
    else if (sig != 0)
        text = mem_printf(tmp, "nomad: the command was ended by signal %d\n%s", sig, text);
    else if (text[0] == 0)
        text = mem_printf(tmp, "nomad: the command ended with %d", code);
    check_script_finish(x, ok, text);
}

static const struct task_exec_events script_events = {on_opened, on_output, on_closed, on_drained,
                                                      on_ended};

struct check_script *
check_script_start(struct task_runner *tr, const struct service_check *c, int64_t timeout_ms,
                   probe_done *done, void *arg, struct err *e)
{
    struct check_script *x = mem_new(NULL, struct check_script);
    struct hand_exec spec = {0};
    list_add(x, spec.command, c->command);
    for (size_t i = 0; i < c->args.n; i++)
        list_add(x, spec.command, c->args.v[i]);
    buf_init(&x->output, PROBE_OUTPUT_MAX);
    x->timeout_ms = timeout_ms;
    x->done = done;
    x->arg = arg;
    x->far = tr->handle->exec(tr, &spec, &script_events, x, e);
    if (!x->far) {
        check_script_cancel(x);
        return NULL;
    }
    x->timer = timer_start(tr->ar->g->loop, timeout_ms, on_late, x);
    return x;
}
