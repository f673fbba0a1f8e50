/* SPDX-License-Identifier: Apache-2.0
 *
 * The change_mode of templates whose file is another one: signals, scripts, a restart.
 */
#include "api/terms.h"
#include "client/task/command.h"
#include "client/task/handle.h"
#include "client/task/hook_template.h"
#include "client/turn.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/random.h"
#include "common/str.h"

enum { SCRIPT_OUTPUT_MAX = 1024 /* nobody reads it */ };

static void
template_signal(struct template_hook *h, const char *name)
{
    struct task_runner *tr = h->tr;
    auto_mem void *tmp = mem_ctx("signal");
    int sig = signal_parse(name);
    if (tr->sm.t->phase != TASK_RUNNING)
        tr->act(tr, task_sm_note(
                        &tr->sm, clock_civil_ns(), TASK_EVENT_HOOK_MESSAGE,
                        mem_printf(tmp, "Template skipped signal %s: task is not running", name)));
    else if (sig > 0)
        tr->signal(tr, sig, "Template re-rendered", NULL, NULL);
}

static const char *
script_args(const void *ctx, const struct change_script *c)
{
    char *text = mem_strdup(ctx, "[");
    for (size_t i = 0; i < c->args.n; i++)
        text = mem_printf(ctx, "%s%s%.100s", text, i > 0 ? " " : "", c->args.v[i]);
    return mem_printf(ctx, "%s]", text);
}

static void
script_told(struct template_hook *h, const struct change_script *c, bool ok, const char *text)
{
    struct task_runner *tr = h->tr;
    tr->act(tr, task_sm_note(&tr->sm, clock_civil_ns(),
                             ok ? TASK_EVENT_HOOK_MESSAGE : TASK_EVENT_HOOK_FAILED, text));
    if (!ok && c->fail_on_error.v && tr->hook.template == h)
        tr->act(tr, task_sm_fail(&tr->sm, clock_civil_ns(),
                                 "Template script failed, task is being killed"));
}

static void
on_script(void *arg, const struct command_end *end)
{
    struct template_state *s = arg;
    struct template_hook *h = s->h;
    const struct change_script *c = template_of(h, (size_t)(s - h->v))->change_script;
    auto_mem void *tmp = mem_ctx("script");
    const char *args = script_args(tmp, c);
    bool ok = end->e == NULL && !end->late && end->code == 0 && end->sig == 0;
    const char *text;
    s->script = NULL;
    if (ok)
        text = mem_printf(
            tmp, "Template successfully ran script %.200s with arguments: %s. Exit code: 0",
            c->command, args);
    else if (end->e != NULL || end->late)
        text =
            mem_printf(tmp,
                       "Template failed to run script %.200s with arguments %s on change: %s. "
                       "Exit code: %d",
                       c->command, args,
                       end->late ? "it did not end within its timeout" : end->e->text, end->code);
    else
        text = mem_printf(tmp,
                          "Template ran script %.200s with arguments %s on change but it exited "
                          "with code: %d",
                          c->command, args, end->sig != 0 ? 128 + end->sig : end->code);
    script_told(h, c, ok, text);
}

void
template_script(struct template_hook *h, size_t i)
{
    struct template_state *s = &h->v[i];
    const struct template *t = template_of(h, i);
    const struct change_script *c = t->change_script;
    auto_mem void *tmp = mem_ctx("script");
    struct err e = ERR_INIT;
    if (h->tr->sm.t->phase != TASK_RUNNING || c == NULL)
        return;
    command_cancel(s->script); /* of the change before */
    const struct command_wish w = {c->command, &c->args, c->timeout.v / NS_PER_MS,
                                   SCRIPT_OUTPUT_MAX};
    s->script = command_start(h->tr, &w, on_script, s, &e);
    if (s->script == NULL)
        script_told(h, c, false,
                    mem_printf(tmp,
                               "Template failed to run script %.200s with arguments %s on change: "
                               "%s. Exit code: 0",
                               c->command, script_args(tmp, c), e.text));
}

void
template_know(struct template_hook *h, size_t i)
{
    struct client_task *t = h->tr->sm.t;
    if (t->told.n != h->n) {
        mem_free(t->told.v);
        t->told.v = mem_array(t, int64_t, h->n);
        t->told.n = h->n;
    }
    t->told.v[i] = h->v[i].digest;
}

static bool
template_restarts(const struct template_hook *h)
{
    bool restart = false;
    for (size_t i = 0; i < h->n; i++)
        restart = restart || (h->v[i].changed && str_eq(template_of(h, i)->change_mode, "restart"));
    return restart;
}

/* A restart goes before all else; each signal is sent once. */
static void
template_do(struct template_hook *h)
{
    struct task_runner *tr = h->tr;
    bool restart = template_restarts(h);
    for (size_t i = 0; i < h->n && !restart; i++) /* a start says so itself */
        if (h->v[i].changed)
            template_know(h, i);
    for (size_t i = 0; i < h->n; i++) {
        const struct template *t = template_of(h, i);
        bool seen = !h->v[i].changed || !str_eq(t->change_mode, "signal");
        for (size_t k = 0; k < i; k++)
            seen = seen || (h->v[k].changed && str_eq(template_of(h, k)->change_mode, "signal") &&
                            str_eq(template_of(h, k)->change_signal, t->change_signal));
        if (!restart && !seen)
            template_signal(h, t->change_signal);
    }
    for (size_t i = 0; i < h->n && tr->hook.template == h; i++) {
        bool script = h->v[i].changed && str_eq(template_of(h, i)->change_mode, "script");
        h->v[i].changed = false;
        if (!restart && script)
            template_script(h, i);
    }
    if (restart)
        tr->act(tr, task_sm_restart(&tr->sm, clock_civil_ns(),
                                    "Template with change_mode restart re-rendered"));
}

/* Says whether allocations of the group wait for their turns. */
static bool
turn_needed(const struct task_runner *tr)
{
    const struct task_group *g = tr->ar->tg;
    const struct job *j = tr->ar->rec->alloc->job;
    const struct update_strategy *u = g != NULL ? g->update : NULL;
    if (u == NULL || u->max_parallel.v <= 0)
        return false;
    return !str_eq(j->type, JOB_SERVICE) || g->count.v > u->max_parallel.v;
}

static void
on_turn(void *arg)
{
    template_do(arg);
}

static void
on_splay(void *arg)
{
    struct template_hook *h = arg;
    h->splay = NULL;
    if (!template_restarts(h) || !turn_needed(h->tr) || turn_is_granted(h->turn))
        template_do(h);
    else if (h->turn == NULL)
        h->turn = turn_ask(h->tr->ar, h->tr->sm.t->name, on_turn, h);
}

void
template_apply(struct template_hook *h)
{
    int64_t splay = -1;
    for (size_t i = 0; i < h->n; i++) {
        const struct template *t = template_of(h, i);
        if (h->v[i].changed && str_eq(t->change_mode, "noop")) {
            h->v[i].changed = false;
            template_know(h, i);
        }
        if (h->v[i].changed && t->splay.v > splay)
            splay = t->splay.v;
    }
    if (splay < 0 || h->splay != NULL || h->tr->launching)
        return;
    int64_t ms = splay > 0 ? (int64_t)(rand_u64() % (uint64_t)splay) / NS_PER_MS : 0;
    h->splay = timer_start(h->tr->ar->g->loop, ms, on_splay, h);
}
