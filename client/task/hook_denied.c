/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of the system calls that a task was denied, where its job wants them (seccomp mode
 * "audit").
 */
#include "api/isolation.h"
#include "client/task/task_int.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/seccomp.h"
#include "isolation/launch/record.h"

#define DENIED_LOOK_MS 2000

struct denied_hook {
    struct timer *timer;
    int64_t times;   /* how many an event told of, in this run */
    int64_t told_ns; /* ... and when; 0: never */
};

static struct denied_hook *
denied_of(struct task_runner *tr)
{
    if (!tr->hook.denied)
        tr->hook.denied = mem_new(tr->ar, struct denied_hook);
    return tr->hook.denied;
}

static void
hook_denied_note(struct task_runner *tr, const struct task_record *rec)
{
    struct denied_hook *d = denied_of(tr);
    int64_t times = 0;
    for (size_t i = 0; i < rec->denied.n; i++)
        if (__builtin_add_overflow(times, rec->denied.v[i]->times, &times))
            times = INT64_MAX;
    if (times == d->times)
        return;
    d->times = times;
    d->told_ns = clock_civil_ns();
    auto_mem void *tmp = mem_ctx("denied");
    tr->act(tr, task_sm_note(&tr->sm, d->told_ns, TASK_EVENT_DENIED,
                             mem_printf(tmp, "Denied system calls: %s",
                                        str_or(record_denied(tmp, rec), "none"))));
}

/* The record has no descriptor that would say when it changes: who may not write it may not watch
 * it either. */
static void
hook_denied_look(void *arg)
{
    struct task_runner *tr = arg;
    struct denied_hook *d = denied_of(tr);
    auto_mem void *tmp = mem_ctx("record");
    struct task_record *rec = NULL;
    d->timer = timer_start(tr->ar->g->loop, DENIED_LOOK_MS, hook_denied_look, tr);
    bool quiet = d->told_ns != 0 && clock_civil_ns() - d->told_ns < HOOK_QUIET_NS;
    if (!quiet && record_read(tmp, tr->proc.record, &rec) == 0)
        hook_denied_note(tr, rec);
}

static void
hook_denied_poststart(struct task_runner *tr)
{
    if (tr->proc.record < 0 || !seccomp_audits(isolation_of(tr->task->isolation)->seccomp))
        return;
    struct denied_hook *d = denied_of(tr);
    if (!d->timer)
        d->timer = timer_start(tr->ar->g->loop, DENIED_LOOK_MS, hook_denied_look, tr);
}

/* The last word of it. */
static void
hook_denied_exited(struct task_runner *tr, const struct task_exit *x)
{
    if (x->record)
        hook_denied_note(tr, x->record);
}

static void
hook_denied_stop(struct task_runner *tr)
{
    struct denied_hook *d = TAKE(tr->hook.denied);
    if (d)
        timer_stop(d->timer);
    mem_free(d);
}

const struct task_hook task_hook_denied = {
    .poststart = hook_denied_poststart, .exited = hook_denied_exited, .stop = hook_denied_stop};
