/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of the system calls that a task was denied, where its job wants them (seccomp mode "audit").
 */
#include "api/isolation.h"
#include "client/task/hooks.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/seccomp.h"
#include "isolation/launch/record.h"

#define DENIED_LOOK_MS 2000

static void
note(struct task_runner *tr, const struct task_record *rec)
{
    int64_t times = 0;
    for (size_t i = 0; i < rec->denied.n; i++)
        if (__builtin_add_overflow(times, rec->denied.v[i]->times, &times))
            times = INT64_MAX;
    if (times == tr->denied)
        return;
    tr->denied = times;
    tr->denied_ns = clock_wall_ns();
    auto_mem void *tmp = mem_ctx("denied");
    tr->act(tr, task_sm_note(&tr->sm, tr->denied_ns, TASK_EVENT_DENIED,
                             mem_printf(tmp, "Denied system calls: %s",
                                        str_or(record_denied(tmp, rec), "none"))));
}

/* The record has no descriptor that would say when it changes: who may not write it may not watch
 * it either. */
static void
look_denied(void *arg)
{
    struct task_runner *tr = arg;
    auto_mem void *tmp = mem_ctx("record");
    struct task_record *rec = NULL;
    tr->denied_timer = timer_start(tr->ar->g->loop, DENIED_LOOK_MS, look_denied, tr);
    bool quiet = tr->denied_ns != 0 && clock_wall_ns() - tr->denied_ns < HOOK_QUIET_NS;
    if (!quiet && record_read(tmp, tr->proc.record, &rec) == 0)
        note(tr, rec);
}

static void
poststart(struct task_runner *tr)
{
    if (tr->proc.record < 0 || tr->denied_timer ||
        !seccomp_audits(isolation_of(tr->task->isolation)->seccomp))
        return;
    tr->denied_timer = timer_start(tr->ar->g->loop, DENIED_LOOK_MS, look_denied, tr);
}

/* The last word of it. */
static void
exited(struct task_runner *tr, const struct task_exit *x)
{
    if (x->record)
        note(tr, x->record);
}

static void
stop(struct task_runner *tr)
{
    timer_stop(TAKE(tr->denied_timer));
    tr->denied = tr->denied_ns = 0;
}

const struct task_hook task_hook_denied = {.poststart = poststart, .exited = exited, .stop = stop};
