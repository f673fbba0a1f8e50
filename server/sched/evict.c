/* SPDX-License-Identifier: Apache-2.0
 *
 * Room by preemption: the node whose victims matter least (see select_int.h, preempt.h).
 */
#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/preempt.h"
#include "server/sched/select_int.h"

static int64_t
priority_of(const struct job *j)
{
    return j != NULL && j->priority.set ? j->priority.v : 50;
}

static bool
enabled(const struct select *s)
{
    static const struct preemption_config system = {.system_scheduler_enabled = true};
    const struct preemption_config *p = s->view->config ? s->view->config->preemption_config : NULL;
    const char *type = s->job->type;

    p = p != NULL ? p : &system;
    if (str_eq(type, JOB_SYSTEM))
        return p->system_scheduler_enabled;
    if (str_eq(type, JOB_SYSBATCH))
        return p->sys_batch_scheduler_enabled;
    return str_eq(type, JOB_BATCH) ? p->batch_scheduler_enabled : p->service_scheduler_enabled;
}

/* Allocations of the victim's group that the plan has preempted. */
static int64_t
gone_of(const struct select *s, const struct allocation *a)
{
    int64_t n = 0;

    for (size_t i = 0; i < s->n_changes; i++) {
        const struct allocation *o = s->changes[i].alloc;
        n += s->changes[i].preempted && str_eq(o->job_id, a->job_id) &&
             str_eq(o->namespace, a->namespace) && str_eq(o->task_group, a->task_group);
    }
    return n;
}

/* May it be preempted, and what is it then. */
static bool
candidate(struct select *s, const struct allocation *a, struct preempt_cand *ret)
{
    if (alloc_terminal(a) ||
        (str_eq(a->job_id, s->job->id) && str_eq(a->namespace, s->job->namespace)))
        return false;
    const struct job *j = a->job ? a->job : s->view->ops->job(s->view, a->namespace, a->job_id);
    if (j == NULL || priority_of(s->job) - priority_of(j) < PREEMPT_DELTA)
        return false;
    const struct task_group *tg = job_group(j, a->task_group);
    *ret = (struct preempt_cand){.alloc = a, .priority = priority_of(j), .gone = gone_of(s, a)};
    ret->u = resources_of_alloc(a);
    if (tg != NULL && tg->migrate != NULL)
        ret->max_parallel = tg->migrate->max_parallel.v;
    return true;
}

static size_t
victims(struct select *s, const struct group *g, uint32_t row, struct preempt_cand **ret)
{
    const struct usage *cap = &s->t->facts[row]->cap;
    struct usage ask = g->ask.u;
    size_t n, k = 0;

    ask.cpu += g->ask.cores * s->t->facts[row]->core_mhz;
    if (resources_exhausted(cap, &ask) != NULL)
        return 0;
    struct usage left = {cap->cpu - s->t->cpu[row], cap->mem - s->t->mem[row],
                         cap->disk - s->t->disk[row]};
    const struct allocation *const *all =
        s->view->ops->allocs_by_node(s->view, s->t->facts[row]->node->id, &n);
    *ret = mem_array(s, struct preempt_cand, n);
    for (size_t i = 0; i < n; i++)
        if (!stopped_on(s, row, all[i]->id))
            k += candidate(s, all[i], &(*ret)[k]);
    return preempt_choose(*ret, k, &left, &ask);
}

static void
preempt(struct select *s, const struct preempt_cand *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        select_stop(s, v[i].alloc);
        s->changes[s->n_changes - 1].preempted = true;
    }
}

static void
spare(struct select *s, const struct preempt_cand *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        select_unstop(s, v[i].alloc);
}

/* The row with these victims gone, if it then takes one more. */
static bool
row_option(struct select *s, struct group *g, uint32_t row, const struct select_req *req,
           struct eviction *ret)
{
    struct preempt_cand *v = NULL;
    size_t n = victims(s, g, row, &v);
    struct score_parts parts = {.preemption = preempt_score(v, n)};

    if (n == 0)
        return false;
    preempt(s, v, n);
    bool fits = row_verify(s, g, row, s, &ret->resources) == NULL;
    double score = row_score_exact(s, g, row, req, &parts);
    spare(s, v, n);
    if (!fits || (ret->n > 0 && score <= ret->score))
        return false;
    *ret = (struct eviction){row, v, n, score, parts, ret->resources};
    return true;
}

bool
evict_choose(struct select *s, struct group *g, const struct select_req *req, struct eviction *ret)
{
    uint32_t only = req->only != NULL ? node_table_find(s->t, req->only) : NODES_NONE;
    size_t options = 0, from = g->n_rows > 0 ? rng_below(s->rng, g->n_rows) : 0;

    *ret = (struct eviction){0};
    if (!enabled(s) || (req->only != NULL && (only == NODES_NONE || !g->ok[only])))
        return false;
    if (req->only != NULL)
        return row_option(s, g, only, req, ret);
    for (size_t i = 0; i < g->n_rows && options < PREEMPT_OPTIONS; i++)
        options += row_option(s, g, g->rows[(from + i) % g->n_rows], req, ret);
    return ret->n > 0;
}

void
evict_apply(struct select *s, const struct eviction *e, struct select_got *ret)
{
    ret->node = s->t->facts[e->row]->node;
    ret->victims = mem_array(s, const struct allocation *, e->n);
    for (size_t i = 0; i < e->n; i++)
        ret->victims[ret->n_victims++] = e->v[i].alloc;
    preempt(s, e->v, e->n);
}
