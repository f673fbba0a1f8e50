/* SPDX-License-Identifier: Apache-2.0
 *
 * The runner of an allocation, see alloc_runner.h: the machines (alloc_sm.h, task_sm.h) decide,
 * hooks and tasks act, and the runner joins them. In this order: the table of all; status and
 * reports; steps, in which the outputs of the machine are carried out until nothing follows;
 * making, from the servers' word or the local state; changes from the servers; and the end, when
 * every task is destroyed and the hold of the allocation is empty.
 */
#include "client/alloc/alloc_runner.h"

#include <string.h>

#include "api/terms.h"
#include "client/alloc/hooks_run.h"
#include "client/local.h"
#include "client/task/hooks.h"
#include "client/task/task_limits.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"

static void alloc_runner_step(struct alloc_core *a);
static void need_ready(struct alloc_core *a);

static const struct task_events task_events = {alloc_runner_step, need_ready, hooks_env};

static struct alloc_runner *
runner_of(struct alloc_core *a)
{
    _Static_assert(offsetof(struct alloc_runner, a) == 0, "the first");
    return (struct alloc_runner *)(void *)a;
}

struct alloc_runner *
alloc_runner_find(const struct allocs *in, const char *id)
{
    struct alloc_runner *ar = NULL;
    HASH_FIND_STR(in->all, id, ar);
    return ar;
}

void
alloc_runner_detach(struct alloc_runner *ar)
{
    ar->a.stopped = true;
    timer_stop(TAKE(ar->names.timer));
    hooks_stop(ar);
    for (size_t i = 0; i < ar->n; i++)
        task_runner_done(&ar->tasks[i]);
}

static void
alloc_runner_released(void *arg)
{
    struct alloc_runner *ar = arg;
    if (ar->a.hold.n > 0 || !ar->doomed)
        return;
    alloc_runner_detach(ar);
    HASH_DEL(ar->in->all, ar);
    talloc_free(ar);
}

struct task_runner *
alloc_runner_task(struct alloc_runner *ar, const char *task)
{
    for (size_t i = 0; i < ar->n; i++)
        if (str_eq(ar->tasks[i].sm.t->name, task))
            return &ar->tasks[i];
    return NULL;
}

/* --- status and reports --- */

static const struct task_sm *const *
alloc_runner_machines(const void *ctx, const struct alloc_runner *ar)
{
    const struct task_sm **v = mem_array(ctx, const struct task_sm *, ar->n);
    for (size_t i = 0; i < ar->n; i++)
        v[i] = &ar->tasks[i].sm;
    return v;
}

void
alloc_runner_persist(struct alloc_runner *ar)
{
    local_put_alloc(ar->a.g->local, ar->a.rec);
    ar->in->events->changed(ar->in->arg, ar);
}

bool
alloc_runner_terminal(const struct alloc_runner *ar)
{
    for (size_t i = 0; i < ar->n; i++)
        if (task_sm_live(ar->tasks[i].sm.t))
            return false;
    return true;
}

struct allocation *
alloc_runner_report(const void *ctx, const struct alloc_runner *ar)
{
    const struct allocation *a = ar->a.rec->alloc;
    struct allocation *r = mem_new(ctx, struct allocation);
    r->id = ar->a.id;
    r->namespace = a->namespace;
    r->node_id = ar->a.g->node_id;
    r->job_id = a->job_id;
    r->task_group = a->task_group;
    r->client_status = ar->status;
    r->client_description = ar->description;
    r->network_status = a->network_status;
    if (!r->network_status) { /* readers of the API take it for granted */
        const struct task_group *g = job_group(a->job, a->task_group);
        r->network_status = mem_new(r, struct alloc_network_status);
        r->network_status->dns = g && g->networks.n > 0 ? g->networks.v[0]->dns : NULL;
    }
    r->deployment_id = a->deployment_id; /* the one that the health is of */
    r->deployment_status = a->deployment_status;
    for (size_t i = 0; i < ar->n; i++)
        map_put(r, r->task_states, ar->tasks[i].sm.t->name)->v = ar->tasks[i].sm.t->state;
    return r;
}

static void
refresh_status(struct alloc_runner *ar)
{
    auto_mem void *tmp = mem_ctx("status");
    const char *was = ar->status;
    ar->status = alloc_sm_status(alloc_runner_machines(tmp, ar), ar->n, &ar->description);
    if (ar->a.rec->overdue && alloc_runner_terminal(ar)) {
        ar->status = ALLOC_COMPLETE;
        ar->description = ALLOC_OVERDUE;
    }
    if (!str_eq(was, ar->status)) /* how many a start finds that have ended is said once */
        log_write(!was && alloc_runner_terminal(ar) ? LOG_DEBUG : LOG_INFO, "client",
                  "allocation is now", "alloc_id", ar->a.id, "status", ar->status, NULL);
    if (ar->ended_ns == 0 && alloc_runner_terminal(ar)) {
        for (size_t i = 0; i < ar->n; i++)
            if (ar->tasks[i].sm.t->state->finished_at > ar->ended_ns)
                ar->ended_ns = ar->tasks[i].sm.t->state->finished_at;
        if (ar->ended_ns == 0)
            ar->ended_ns = clock_civil_ns();
    }
}

/* --- steps --- */

static bool
carry_out(struct alloc_runner *ar, const struct alloc_verdict *v)
{
    const struct desired_transition *dt = ar->a.rec->alloc->desired_transition;
    bool no_delay = dt && dt->no_shutdown_delay.set && dt->no_shutdown_delay.v;
    bool any = false;
    for (size_t i = 0; i < ar->n; i++) {
        struct task_runner *tr = &ar->tasks[i];
        unsigned acts = 0;
        if (v[i].kill)
            acts = task_sm_kill(&tr->sm, clock_civil_ns(), v[i].why, v[i].sibling, no_delay);
        else if (v[i].start)
            acts = task_sm_start(&tr->sm, clock_civil_ns());
        task_runner_act(tr, acts);
        any = any || acts != 0;
    }
    return any;
}

static void
after_terminal(struct alloc_runner *ar)
{
    hooks_exited(ar);
    hooks_other_ended(ar);
    ar->in->events->ended(ar->in->arg, ar);
}

static enum alloc_end
alloc_runner_end(const struct alloc_runner *ar)
{
    if (ar->a.rec->overdue)
        return ALLOC_END_OVERDUE;
    return ar->a.rec->stopping ? ALLOC_END_STOP : ALLOC_END_NONE;
}

static void
alloc_runner_step(struct alloc_core *a)
{
    struct alloc_runner *ar = runner_of(a);
    ar->again = true;
    if (ar->stepping || ar->a.stopped || ar->collecting)
        return;
    ar->stepping = true;
    hold_take(&ar->a.hold);
    auto_mem void *tmp = mem_ctx("step");
    struct alloc_verdict *v = mem_array(tmp, struct alloc_verdict, ar->n);
    const struct task_sm *const *m = alloc_runner_machines(tmp, ar);
    /* Every round moves at least one task forward, so this ends. */
    while (ar->again) {
        ar->again = false;
        alloc_sm_step(m, ar->n, alloc_runner_end(ar), v);
        if (carry_out(ar, v))
            ar->again = true;
    }
    refresh_status(ar);
    hooks_changed(ar); /* what it notes needs no further round */
    ar->stepping = false;
    ar->in->events->changed(ar->in->arg, ar);
    if (alloc_runner_terminal(ar))
        after_terminal(ar);
    hold_release(&ar->a.hold);
}

static void
need_ready(struct alloc_core *a)
{
    hooks_prestart(runner_of(a));
}

/* --- making --- */

static struct client_task *
record_for(struct client_task **tasks, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(tasks[i]->name, name))
            return tasks[i];
    return NULL;
}

/* `rec` and the records in `tasks` become the runner's. NULL when the allocation makes no sense. */
static struct alloc_runner *
alloc_runner_make(struct allocs *in, struct client_alloc *rec, struct client_task **tasks, size_t n)
{
    const struct task_group *tg = job_group(rec->alloc->job, rec->alloc->task_group);
    if (!tg || !uuid_valid(rec->alloc->id) || tg->tasks.n == 0) {
        log_error("client", "allocation without its task group is ignored", "alloc_id",
                  str_or(rec->alloc->id, ""), NULL);
        return NULL;
    }
    struct alloc_runner *ar = mem_new(NULL, struct alloc_runner);
    ar->in = in;
    ar->a.g = in->g;
    ar->a.hold = (struct hold){.above = &in->g->hold, .released = alloc_runner_released, .arg = ar};
    str_copy(ar->a.id, sizeof(ar->a.id), rec->alloc->id);
    ar->a.rec = talloc_steal(ar, rec);
    ar->a.tg = tg;
    ar->n = tg->tasks.n;
    ar->tasks = mem_array(ar, struct task_runner, ar->n);
    for (size_t i = 0; i < ar->n; i++) {
        const struct task *task = tg->tasks.v[i];
        struct client_task *t = record_for(tasks, n, task->name);
        if (!t)
            t = task_sm_new_record(ar, task->name, clock_civil_ns());
        talloc_steal(ar, t);
        task_runner_init(&ar->tasks[i], &ar->a, &task_events, task, t);
    }
    HASH_ADD_STR(in->all, a.id, ar);
    if (str_eq(rec->alloc->client_status, ALLOC_PENDING))
        ar->report.told = ALLOC_PENDING; /* what the server says itself is no news to it */
    refresh_status(ar);
    return ar;
}

void
alloc_runner_add(struct allocs *in, const struct allocation *a)
{
    struct client_alloc *rec = mem_new(NULL, struct client_alloc);
    rec->alloc = codec_clone(rec, &type_allocation, a);
    rec->server_index = a->alloc_modify_index;
    rec->stopping = alloc_server_terminal(a);
    struct alloc_runner *ar = alloc_runner_make(in, rec, NULL, 0);
    if (!ar) {
        talloc_free(rec);
        return;
    }
    log_info("client", "allocation received", "alloc_id", ar->a.id, "job_id", str_or(a->job_id, ""),
             "group", str_or(a->task_group, ""), NULL);
    local_put_alloc(in->g->local, ar->a.rec);
    for (size_t i = 0; i < ar->n; i++)
        local_put_task(in->g->local, ar->a.id, ar->tasks[i].sm.t);
    alloc_runner_step(&ar->a);
}

void
alloc_runner_restore(struct allocs *in, struct client_alloc *rec, struct client_task **tasks,
                     size_t n)
{
    talloc_steal(NULL, rec);
    for (size_t i = 0; i < n; i++)
        talloc_steal(rec, tasks[i]);
    struct alloc_runner *ar = alloc_runner_make(in, rec, tasks, n);
    if (!ar)
        talloc_free(rec);
}

void
alloc_runner_resume(struct alloc_runner *ar)
{
    for (size_t i = 0; i < ar->n; i++)
        task_runner_resume(&ar->tasks[i]);
    alloc_runner_step(&ar->a);
}

static void
link_up(struct alloc_runner *ar)
{
    if (ar->a.stopped)
        return;
    for (size_t i = 0; i < ar->n; i++)
        task_runner_link_up(&ar->tasks[i]);
    hooks_resume(ar);
    if (alloc_runner_terminal(ar))
        after_terminal(ar);
}

void
allocs_link_up(struct allocs *in)
{
    ALLOCS_EACH (in, ar)
        link_up(ar);
}

/* --- changes from the server --- */

/* Keeps the health that was told once, until the allocation is of another deployment. Health that
 * servers set themselves, for an operator, is not told to them again. */
static void
keep_health(struct allocation *a, const struct allocation *old)
{
    const struct alloc_deployment_status *was = old->deployment_status;
    if (!was || !was->healthy.set || !str_eq(a->deployment_id, old->deployment_id))
        return;
    if (!a->deployment_status)
        a->deployment_status = type_new(a, &type_alloc_deployment_status);
    if (a->deployment_status->healthy.set)
        return;
    a->deployment_status->healthy = was->healthy;
    a->deployment_status->timestamp = was->timestamp;
}

void
alloc_runner_update(struct alloc_runner *ar, const struct allocation *a)
{
    const struct task_group *tg = job_group(a->job, a->task_group);
    if (a->alloc_modify_index <= ar->a.rec->server_index || !tg)
        return;
    /* A group of another shape is another allocation: the server replaces, it does not update. */
    for (size_t i = 0; i < tg->tasks.n; i++)
        if (!alloc_runner_task(ar, tg->tasks.v[i]->name))
            return;
    if (tg->tasks.n != ar->n)
        return;
    struct allocation *old = ar->a.rec->alloc;
    ar->a.rec->alloc = codec_clone(ar->a.rec, &type_allocation, a);
    if (old->network_status) /* the servers have it from here */
        ar->a.rec->alloc->network_status =
            codec_clone(ar->a.rec->alloc, &type_alloc_network_status, old->network_status);
    keep_health(ar->a.rec->alloc, old);
    ar->a.rec->server_index = a->alloc_modify_index;
    ar->a.tg = tg = job_group(ar->a.rec->alloc->job, ar->a.rec->alloc->task_group);
    for (size_t i = 0; i < ar->n; i++) {
        struct task_runner *tr = alloc_runner_task(ar, tg->tasks.v[i]->name);
        bool resize = task_limits_differ(tr->task, tg->tasks.v[i]);
        task_runner_configure(tr, tg->tasks.v[i]);
        tr->limits_new = tr->limits_new || resize;
        if (resize && tr->handle->resize) {
            tr->handle->resize(tr);
            task_hooks_poststart(tr);
        }
    }
    talloc_free(old);
    if (str_eq(a->client_status, ALLOC_UNKNOWN)) /* whatever was acknowledged */
        ar->a.rec->acked = 0;
    if (alloc_server_terminal(a) && !ar->a.rec->stopping) {
        log_info("client", "allocation is to stop", "alloc_id", ar->a.id, NULL);
        ar->a.rec->stopping = true;
    }
    local_put_alloc(ar->a.g->local, ar->a.rec);
    alloc_runner_step(&ar->a);
}

void
alloc_runner_stop(struct alloc_runner *ar)
{
    if (!ar->a.rec->stopping) {
        ar->a.rec->stopping = true;
        local_put_alloc(ar->a.g->local, ar->a.rec);
    }
    alloc_runner_step(&ar->a);
}

void
alloc_runner_overdue(struct alloc_runner *ar)
{
    ar->a.rec->overdue = true;
    local_put_alloc(ar->a.g->local, ar->a.rec);
    alloc_runner_step(&ar->a);
}

void
alloc_runner_note_wait(struct alloc_runner *ar)
{
    for (size_t i = 0; i < ar->n; i++)
        task_runner_note_wait(&ar->tasks[i]);
}

void
alloc_runner_begin_anew(struct alloc_runner *ar, const char *why)
{
    /* all are marked before one that is dead already could be started */
    ar->stepping = true;
    for (size_t i = 0; i < ar->n; i++)
        task_runner_act(&ar->tasks[i], task_sm_rewind(&ar->tasks[i].sm, clock_civil_ns(), why));
    ar->stepping = false;
    alloc_runner_step(&ar->a);
}

void
alloc_runner_remove(struct alloc_runner *ar)
{
    if (ar->removed)
        return;
    ar->removed = true;
    alloc_runner_stop(ar);
}

/* --- end --- */

static void
alloc_runner_collected(struct alloc_runner *ar, const struct err *e)
{
    ar->collecting = false;
    if (ar->doomed || ar->a.stopped) {
        /* the agent goes down: what is left is found at the next start */
    } else if (!e) {
        local_del_alloc(ar->a.g->local, ar->a.id);
        ar->doomed = true;
        log_info("client", "allocation collected", "alloc_id", ar->a.id, NULL);
    } else {
        log_warn("client", "allocation directory was not removed", "alloc_id", ar->a.id, "error",
                 e->text, NULL);
    }
    ar->in->events->gone(ar->in->arg, ar, e);
}

static void
on_removed(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    struct alloc_runner *ar = arg;
    alloc_runner_collected(ar, e);
    hold_release(&ar->a.hold);
}

struct destroying {
    struct alloc_runner *ar;
    size_t left;
};

static void
on_task_destroyed(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)e;
    (void)r;
    struct destroying *d = arg;
    struct alloc_runner *ar = d->ar;
    if (--d->left == 0) {
        talloc_free(d);
        hold_take(&ar->a.hold);
        warden_alloc_remove(ar->a.g->warden, ar->a.id, on_removed, ar);
    }
    hold_release(&ar->a.hold);
}

static void
collect_posted(void *arg)
{
    struct alloc_runner *ar = arg;
    alloc_runner_collected(ar, NULL);
    hold_release(&ar->a.hold);
}

void
alloc_runner_destroy(struct alloc_runner *ar)
{
    ASSERT(alloc_runner_terminal(ar) && ar->collecting);
    if (!ar->a.g->warden) {
        hold_take(&ar->a.hold);
        loop_post(ar->a.g->loop, collect_posted, ar);
        return;
    }
    /* also what was never launched: its directories may have been made */
    struct destroying *d = mem_new(NULL, struct destroying);
    *d = (struct destroying){ar, ar->n};
    for (size_t i = 0; i < ar->n; i++) {
        hold_take(&ar->a.hold);
        warden_destroy(ar->a.g->warden, ar->a.id, ar->tasks[i].sm.t->name, on_task_destroyed, d);
    }
}

void
allocs_free(struct allocs *in)
{
    ALLOCS_EACH (in, ar) {
        HASH_DEL(in->all, ar);
        talloc_free(ar);
    }
}
