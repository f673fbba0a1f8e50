/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends an allocation of a batch or sysbatch job that exists for max_run_duration of its group. The
 * time counts from the creation by the servers: no restart of a task or of the agent begins anew.
 */
#include "api/terms.h"
#include "client/alloc/alloc_runner.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

struct deadline_hook {
    struct timer *timer;
    int64_t most_ns; /* for which the timer is */
};

/* Nanoseconds; 0: no limit, or no reason to look at it. */
static int64_t
hook_deadline_most(const struct alloc_runner *ar)
{
    const struct allocation *a = ar->a.rec->alloc;
    const char *type = str_or(a->job->type, "");
    if (ar->a.rec->stopping || ar->a.rec->overdue || alloc_runner_terminal(ar) ||
        !ar->a.tg->max_run_duration.set || a->create_time <= 0 ||
        (!str_eq(type, JOB_BATCH) && !str_eq(type, JOB_SYSBATCH)))
        return 0;
    return ar->a.tg->max_run_duration.v;
}

static void
hook_deadline_due(void *arg)
{
    struct alloc_runner *ar = arg;
    ar->hook.deadline->timer = NULL;
    if (ar->a.stopped || hook_deadline_most(ar) == 0)
        return;
    log_info("client", "allocation has run for max_run_duration: it is ended", "alloc_id", ar->a.id,
             "max_run_duration", LOG_DUR(hook_deadline_most(ar)), NULL);
    alloc_runner_overdue(ar);
}

static void
hook_deadline_changed(struct alloc_runner *ar)
{
    int64_t most = ar->a.stopped ? 0 : hook_deadline_most(ar);
    if (ar->hook.deadline == NULL && most == 0)
        return;
    if (ar->hook.deadline == NULL)
        ar->hook.deadline = mem_new(ar, struct deadline_hook);
    struct deadline_hook *h = ar->hook.deadline;
    if (h->timer != NULL && h->most_ns == most)
        return;
    timer_stop(TAKE(h->timer));
    h->most_ns = most;
    if (most == 0)
        return;
    int64_t past = clock_civil_ns() - ar->a.rec->alloc->create_time;
    int64_t left = past < most ? most - past : 0;
    h->timer = timer_start(ar->a.g->loop, left / NS_PER_MS + 1, hook_deadline_due, ar);
}

static void
hook_deadline_stop(struct alloc_runner *ar)
{
    if (ar->hook.deadline != NULL)
        timer_stop(TAKE(ar->hook.deadline->timer));
}

const struct alloc_hook hook_deadline = {
    .name = "deadline", .changed = hook_deadline_changed, .stop = hook_deadline_stop};
