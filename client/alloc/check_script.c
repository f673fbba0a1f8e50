/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/check_script.h"

#include "client/task/command.h"
#include "common/duration.h"
#include "common/mem.h"

struct check_script { /* a talloc context */
    struct command *command;
    int64_t timeout_ms;
    probe_done *done;
    void *arg;
};

void
check_script_cancel(struct check_script *x)
{
    if (!x)
        return;
    command_cancel(x->command);
    talloc_free(x);
}

static const char *
script_text(const void *ctx, const struct check_script *x, const struct command_end *end)
{
    char after[DURATION_TEXT];
    const char *text = probe_text(ctx, end->output, end->n);
    if (end->late)
        return mem_printf(ctx, "nomad: the command did not end within %s",
                          duration_format(x->timeout_ms * NS_PER_MS, after));
    if (end->e)
        return mem_printf(ctx, "nomad: %s", end->e->text);
    if (end->sig != 0)
        return mem_printf(ctx, "nomad: the command was ended by signal %d\n%s", end->sig, text);
    return text[0] == 0 ? mem_printf(ctx, "nomad: the command ended with %d", end->code) : text;
}

static void
on_command(void *arg, const struct command_end *end)
{
    struct check_script *x = arg;
    probe_done *done = x->done;
    void *whose = x->arg;
    auto_mem void *tmp = mem_ctx("script");
    const struct probe_answer a = {!end->late && !end->e && end->code == 0 && end->sig == 0, 0,
                                   script_text(tmp, x, end)};
    talloc_free(x);
    done(whose, &a);
}

struct check_script *
check_script_start(struct task_runner *tr, const struct service_check *c, int64_t timeout_ms,
                   probe_done *done, void *arg, struct err *e)
{
    struct check_script *x = mem_new(NULL, struct check_script);
    *x = (struct check_script){.timeout_ms = timeout_ms, .done = done, .arg = arg};
    const struct command_wish w = {c->command, &c->args, timeout_ms, PROBE_OUTPUT_MAX};
    x->command = command_start(tr, &w, on_command, x, e);
    if (x->command)
        return x;
    talloc_free(x);
    return NULL;
}
