/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells the servers whether an allocation is healthy (health.h), once for each deployment: it is
 * kept in the allocation's record, where a restarted agent finds it told. What a task has to do
 * with a bad end of a deployment is an event of the task.
 */
#include "api/terms.h"
#include "client/alloc/check_watch.h"
#include "client/alloc/health.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"

enum {
    HEALTH_ADOPTING_MS = 250 /* between two looks while the fate of tasks is open */
};

struct health_hook {
    char deployment[UUID_TEXT]; /* what it is looked at for; "": none, or a drain */
    int64_t began;              /* wall clock, ns; 0: it is not looked at yet */
    struct timer *timer;
};

static void hook_health_look(struct alloc_runner *ar);

static bool
hook_health_told(const struct alloc_runner *ar)
{
    const struct alloc_deployment_status *d = ar->a.rec->alloc->deployment_status;
    return d && d->healthy.set;
}

/* Before anybody is told: telling comes back here. */
static void
hook_health_note(struct alloc_runner *ar, bool healthy, int64_t now)
{
    struct allocation *a = ar->a.rec->alloc;
    if (!a->deployment_status)
        a->deployment_status = type_new(a, &type_alloc_deployment_status);
    a->deployment_status->healthy = (struct opt_bool){true, healthy};
    a->deployment_status->timestamp = now;
    log_info("client", "allocation is judged", "alloc_id", ar->a.id, "healthy",
             healthy ? "true" : "false", NULL);
}

static void
hook_health_explain(struct alloc_runner *ar, const struct health_in *in)
{
    auto_mem void *tmp = mem_ctx("reasons");
    const char **why = mem_array(tmp, const char *, in->n);
    for (size_t i = 0; i < in->n; i++)
        why[i] = health_reason(tmp, in, i);
    for (size_t i = 0; i < in->n; i++)
        if (why[i])
            task_runner_act(&ar->tasks[i],
                            task_sm_note(&ar->tasks[i].sm, in->now, TASK_EVENT_UNHEALTHY, why[i]));
}

static void
on_time(void *arg)
{
    struct alloc_runner *ar = arg;
    ar->hook.health->timer = NULL;
    hook_health_look(ar);
}

static void
hook_health_wait(struct alloc_runner *ar, int64_t ns)
{
    int64_t ms = ns / NS_PER_MS + 1;
    ar->hook.health->timer = timer_start(ar->a.g->loop, ms, on_time, ar);
}

static void
hook_health_judge(struct alloc_runner *ar, const struct health_policy *p, int64_t now)
{
    auto_mem void *tmp = mem_ctx("health");
    const struct task_sm **v = mem_array(tmp, const struct task_sm *, ar->n);
    for (size_t i = 0; i < ar->n; i++)
        v[i] = &ar->tasks[i].sm;
    struct health_in in = {v, ar->n, *p, now, ar->hook.health->began, 0, 0, 0};
    in.passing_since = check_watch_since(ar, &in.passing, &in.checks);
    in.checks += ar->names.refused; /* nobody finds it */
    int64_t at = 0;
    enum health is = health_judge(&in, &at);
    if (is == HEALTH_OPEN) {
        hook_health_wait(ar, at - now);
        return;
    }
    hook_health_note(ar, is == HEALTH_GOOD, now);
    if (is == HEALTH_BAD && p->deploy)
        hook_health_explain(ar, &in);
    alloc_runner_persist(ar);
}

static void
hook_health_look(struct alloc_runner *ar)
{
    const struct allocation *a = ar->a.rec->alloc;
    if (!ar->hook.health)
        ar->hook.health = mem_new(ar, struct health_hook);
    struct health_hook *h = ar->hook.health;
    timer_stop(TAKE(h->timer));
    if (ar->a.stopped || ar->a.rec->stopping || alloc_server_terminal(a) || hook_health_told(ar))
        return;
    int64_t now = clock_civil_ns();
    if (h->began == 0 || !str_eq(h->deployment, a->deployment_id)) {
        str_copy(h->deployment, sizeof(h->deployment), str_or(a->deployment_id, ""));
        h->began = now;
    }
    struct health_policy p = health_policy_of(a, ar->a.tg);
    if (!p.judged && p.deploy && str_eq(ar->status, ALLOC_FAILED)) {
        hook_health_note(ar, false, now); /* whoever judges it need not wait for this one */
        alloc_runner_persist(ar);
    } else if (p.judged && ar->a.g->adopting > 0) {
        hook_health_wait(ar, HEALTH_ADOPTING_MS * NS_PER_MS);
    } else if (p.judged) {
        hook_health_judge(ar, &p, now);
    }
}

static void
hook_health_stop(struct alloc_runner *ar)
{
    if (ar->hook.health)
        timer_stop(TAKE(ar->hook.health->timer));
}

const struct alloc_hook hook_health = {
    .name = "health", .changed = hook_health_look, .stop = hook_health_stop};
