/* SPDX-License-Identifier: Apache-2.0
 *
 * A drain as a dry run (see simulate.h): the nodes take no more work, their allocations are told to
 * migrate, and each of their jobs gets an attempt on the table as the attempts before have left it.
 */
#include "server/sched/query/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/sched/sched.h"

/* The view with the drain laid over it. */
struct overlay {
    struct sched_view view;
    struct sched_view *under;
    const struct simulate_in *in;
    const void *ctx;
};

struct moved_job {
    const char *ns, *id;
    int64_t priority;
};

struct moved_jobs {
    struct moved_job *v;
    size_t n;
};

static bool
simulate_drains(const struct simulate_in *in, const char *node_id)
{
    for (size_t i = 0; i < in->n_drain; i++)
        if (str_eq(in->drain[i], node_id))
            return true;
    return false;
}

static const struct job *
overlay_job(struct sched_view *v, const char *ns, const char *id)
{
    struct overlay *o = v->arg;

    return o->under->ops->job(o->under, ns, id);
}

static const struct allocation *const *
overlay_allocs_by_job(struct sched_view *v, const char *ns, const char *id, size_t *ret_n)
{
    static struct desired_transition moves = {.migrate = {true, true}};
    struct overlay *o = v->arg;
    const struct allocation *const *all = o->under->ops->allocs_by_job(o->under, ns, id, ret_n);
    const struct allocation **mine = mem_array(o->ctx, const struct allocation *, *ret_n + 1);

    for (size_t i = 0; i < *ret_n; i++) {
        mine[i] = all[i];
        if (alloc_terminal(all[i]) || !simulate_drains(o->in, all[i]->node_id))
            continue;
        struct allocation *a = mem_new(o->ctx, struct allocation);
        *a = *all[i];
        a->desired_transition = &moves;
        mine[i] = a;
    }
    return mine;
}

static const struct allocation *const *
overlay_allocs_by_node(struct sched_view *v, const void *ctx, const char *node_id, size_t *ret_n)
{
    struct overlay *o = v->arg;

    return o->under->ops->allocs_by_node(o->under, ctx, node_id, ret_n);
}

static const struct deployment *
overlay_latest_deployment(struct sched_view *v, const char *ns, const char *id)
{
    struct overlay *o = v->arg;

    return o->under->ops->latest_deployment(o->under, ns, id);
}

static struct str_list
overlay_awaited(struct sched_view *v, const void *ctx, const struct evaluation *e,
                const char *trigger, int64_t at)
{
    struct overlay *o = v->arg;

    return o->under->ops->awaited(o->under, ctx, e, trigger, at);
}

static const struct node_pool *
overlay_node_pool(struct sched_view *v, const char *name)
{
    struct overlay *o = v->arg;

    return o->under->ops->node_pool(o->under, name);
}

static const char *
overlay_volume_claim(struct sched_view *v, const struct job *job, const char *alloc_name,
                     const char *volume)
{
    struct overlay *o = v->arg;

    return o->under->ops->volume_claim(o->under, job, alloc_name, volume);
}

static const struct sched_view_ops ops = {
    .volume_claim = overlay_volume_claim,
    .awaited = overlay_awaited,
    .node_pool = overlay_node_pool,
    .latest_deployment = overlay_latest_deployment,
    .job = overlay_job,
    .allocs_by_job = overlay_allocs_by_job,
    .allocs_by_node = overlay_allocs_by_node,
};

/* In the order of priority, as evaluations would come. */
static int
by_priority(const void *a, const void *b)
{
    const struct moved_job *x = a, *y = b;
    int by_ns = strcmp(x->ns, y->ns);

    if (x->priority != y->priority)
        return x->priority < y->priority ? 1 : -1;
    return by_ns != 0 ? by_ns : strcmp(x->id, y->id);
}

static void
note_job(const void *ctx, struct moved_jobs *jobs, const struct job *j)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (str_eq(jobs->v[i].id, j->id) && str_eq(jobs->v[i].ns, j->namespace))
            return;
    mem_resize(ctx, jobs->v, struct moved_job, jobs->n + 1);
    jobs->v[jobs->n++] =
        (struct moved_job){j->namespace, j->id, j->priority.set ? j->priority.v : 50};
}

/* Takes the node out of the table, and notes whose allocations move from it. */
static int
drain_node(struct overlay *o, const char *id, struct moved_jobs *jobs, struct simulation *ret,
           struct err *e)
{
    struct node_table *t = o->view.nodes;
    uint32_t row = node_table_find(t, id);
    struct drain_strategy drain = {0};
    size_t n;

    if (row == NODES_NONE || str_empty(t->facts[row]->node->status))
        return err_set(e, -ERR_NOT_FOUND, "node \"%.64s\" not found", id);
    struct node node = *t->facts[row]->node;
    node.drain_strategy = &drain;
    node_table_put(t, node_facts_new(&node));
    const struct allocation *const *all = o->under->ops->allocs_by_node(o->under, o->ctx, id, &n);
    for (size_t i = 0; i < n; i++) {
        const struct job *j = overlay_job(&o->view, all[i]->namespace, all[i]->job_id);
        if (j == NULL || alloc_terminal(all[i]))
            continue;
        if (str_eq(j->type, JOB_SYSTEM) || str_eq(j->type, JOB_SYSBATCH))
            ret->stops++;
        else
            note_job(o->ctx, jobs, j);
    }
    return 0;
}

/* Allocations of the group that are told to move. */
static int64_t
simulate_moving(const struct overlay *o, const struct allocation *const *all, size_t n,
                const char *group)
{
    int64_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += !alloc_terminal(all[i]) && simulate_drains(o->in, all[i]->node_id) &&
                 str_eq(all[i]->task_group, group);
    return count;
}

static const struct allocation *
simulate_replaced(const struct allocation *const *all, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(all[i]->id, id))
            return all[i];
    return NULL;
}

/* Adds where the allocations of one job go. */
static void
move_job(struct overlay *o, const struct moved_job *m, struct simulation *ret)
{
    struct evaluation ev = {.id = "simulation",
                            .namespace = m->ns,
                            .job_id = m->id,
                            .priority = m->priority,
                            .triggered_by = TRIGGER_NODE_DRAIN,
                            .status = EVAL_PENDING};
    struct sched_in in = {.view = &o->view, .eval = &ev, .now = o->in->now, .rng = o->in->rng};
    ev.type = overlay_job(&o->view, m->ns, m->id)->type;
    struct sched_out *out = sched_attempt(o->ctx, &in);
    size_t n, first = ret->moves.n;
    const struct allocation *const *all = overlay_allocs_by_job(&o->view, m->ns, m->id, &n);

    for (size_t i = 0; out->plan != NULL && i < out->plan->node_allocation.n; i++) {
        const struct allocation *a = out->plan->node_allocation.v[i];
        const struct allocation *was = simulate_replaced(all, n, a->previous_allocation);
        if (was == NULL || !simulate_drains(o->in, was->node_id))
            continue;
        struct simulated_move *x = mem_new(o->ctx, struct simulated_move);
        *x = (struct simulated_move){.namespace = m->ns,
                                     .job_id = m->id,
                                     .task_group = a->task_group,
                                     .alloc_id = was->id,
                                     .name = a->name,
                                     .from_node_id = was->node_id,
                                     .from_node = was->node_name,
                                     .to_node_id = a->node_id,
                                     .to_node = a->node_name};
        list_add(o->ctx, ret->moves, x);
    }
    for (size_t i = 0; i < out->failed.n; i++) {
        int64_t left = simulate_moving(o, all, n, out->failed.v[i].k);
        for (size_t k = first; k < ret->moves.n; k++)
            left -= str_eq(ret->moves.v[k]->task_group, out->failed.v[i].k);
        if (left <= 0) /* what waited for a place before is not the drain's */
            continue;
        struct simulated_failure *f = mem_new(o->ctx, struct simulated_failure);
        *f = (struct simulated_failure){.namespace = m->ns,
                                        .job_id = m->id,
                                        .task_group = out->failed.v[i].k,
                                        .count = left,
                                        .metric = out->failed.v[i].v};
        list_add(o->ctx, ret->failures, f);
    }
}

int
sched_simulate(const void *ctx, const struct simulate_in *in, struct simulation **ret,
               struct err *e)
{
    struct overlay o = {.view = *in->view, .under = in->view, .in = in};
    struct moved_jobs jobs = {0};

    o.ctx = *ret = mem_new(ctx, struct simulation);
    o.view.ops = &ops;
    o.view.arg = &o;
    for (size_t i = 0; i < in->n_drain; i++)
        if (drain_node(&o, in->drain[i], &jobs, *ret, e) < 0)
            return e->code;
    if (jobs.n > 0)
        qsort(jobs.v, jobs.n, sizeof(*jobs.v), by_priority);
    for (size_t i = 0; i < jobs.n; i++)
        move_job(&o, &jobs.v[i], *ret);
    return 0;
}
