/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/hooks_run.h"

#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

#define ROW(name) &hook_##name,
static const struct alloc_hook *const rows[] = {ALLOC_HOOKS(ROW)};

static bool
hooks_run_launching(const struct alloc_runner *ar)
{
    bool any = false;
    for (size_t i = 0; i < ar->n; i++)
        any = any || ar->tasks[i].launching;
    return any;
}

static bool
hooks_run_wanted(const struct alloc_hook *h, const struct alloc_runner *ar)
{
    return !h->wanted || h->wanted(ar);
}

static void
on_again(void *arg)
{
    struct alloc_runner *ar = arg;
    ar->hooks.timer = NULL;
    if (ar->a.ready != READY_ASKED)
        return;
    ar->a.ready = READY_NONE;
    hooks_resume(ar); /* unless it was stopped meanwhile */
}

/* The warden has too much to do just now: no failure of the allocation, which stays as it is. */
static void
hooks_run_wait(struct alloc_runner *ar, const struct alloc_hook *h, const struct err *e)
{
    if (ar->hooks.backoff_ms == 0)
        log_info("client", "allocation waits: what makes its surroundings is busy", "alloc_id",
                 ar->a.id, "hook", h->name, "reason", e->text, NULL);
    timer_stop(ar->hooks.timer);
    ar->hooks.timer = timer_start(ar->a.g->loop, backoff_next(&ar->hooks.backoff_ms), on_again, ar);
}

void
hooks_done(struct alloc_runner *ar, const struct alloc_hook *h, const struct err *e)
{
    struct alloc_core *a = &ar->a;
    size_t at = 0;
    while (at < ARRAY_LEN(rows) && rows[at] != h)
        at++;
    ASSERT(at < ARRAY_LEN(rows));
    if (a->stopped)
        return;
    if (!e) {
        while (++at < ARRAY_LEN(rows))
            if (rows[at]->prestart && hooks_run_wanted(rows[at], ar)) {
                rows[at]->prestart(ar);
                return;
            }
        a->ready = READY_YES;
    } else if (a->ready == READY_ASKED && e->code == -ERR_BUSY) {
        hooks_run_wait(ar, h, e);
        return;
    } else if (e->code == -ERR_UNAVAILABLE || e->code == -ERR_CLOSED) {
        a->ready = READY_NONE; /* link_up asks again */
    } else {
        a->ready = READY_FAILED;
        a->ready_again = e->code != -ERR_INVALID && e->code != -ERR_POLICY; /* it stays so */
        str_copy(a->ready_error, sizeof(a->ready_error), e->text);
    }
    ar->hooks.backoff_ms = 0;
    for (size_t i = 0; i < ar->n && a->ready != READY_NONE; i++)
        task_runner_ready(&ar->tasks[i]);
}

void
hooks_prestart(struct alloc_runner *ar)
{
    if (ar->a.ready == READY_ASKED || ar->a.ready == READY_YES || !ar->a.g->warden ||
        ar->in->crowded)
        return;
    timer_stop(TAKE(ar->hooks.timer));
    ar->a.ready = READY_ASKED;
    rows[0]->prestart(ar); /* directories: all have them */
}

void
hooks_resume(struct alloc_runner *ar)
{
    if (ar->a.ready == READY_NONE && hooks_run_launching(ar))
        hooks_prestart(ar);
}

void
hooks_changed(struct alloc_runner *ar)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i]->changed && hooks_run_wanted(rows[i], ar))
            rows[i]->changed(ar);
}

void
hooks_env(struct alloc_core *a, const void *ctx, struct str_map *ret)
{
    const struct alloc_runner *ar = (const struct alloc_runner *)a; /* its first member */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i]->env && hooks_run_wanted(rows[i], ar))
            rows[i]->env(ar, ctx, ret);
}

void
hooks_exited(struct alloc_runner *ar)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i]->exited && hooks_run_wanted(rows[i], ar))
            rows[i]->exited(ar);
}

void
hooks_other_ended(struct alloc_runner *ar)
{
    ALLOCS_EACH (ar->in, other)
        for (size_t i = 0; other != ar && i < ARRAY_LEN(rows); i++)
            if (rows[i]->other_ended)
                rows[i]->other_ended(other, ar);
}

void
hooks_blame(struct task_runner *tr, const char *what, const struct err *e)
{
    const struct task_state *s = tr->sm.t->state;
    auto_mem void *tmp = mem_ctx("blame");
    const char *why = mem_printf(tmp, "%s: %s", what, e->text);
    for (size_t i = 0; i < s->events.n; i++)
        if (str_eq(s->events.v[i]->message, why))
            return;
    task_runner_act(tr, task_sm_note(&tr->sm, clock_civil_ns(), TASK_EVENT_HOOK_FAILED, why));
}

void
hooks_stop(struct alloc_runner *ar)
{
    timer_stop(TAKE(ar->hooks.timer));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i]->stop)
            rows[i]->stop(ar);
}
