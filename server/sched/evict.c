/* SPDX-License-Identifier: Apache-2.0
 *
 * Room by preemption: the node whose victims matter least (see select_int.h, preempt.h). In this
 * order: who may end on a row, found once per attempt; the victims among them, for processor,
 * memory and disk by preempt_choose(), then for devices; the row with the best score.
 */
#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/device.h"
#include "server/sched/limits.h"
#include "server/sched/preempt.h"
#include "server/sched/select_int.h"

static int64_t
priority_of(const struct job *j)
{
    return j != NULL && j->priority.set ? j->priority.v : 50;
}

static bool
evict_enabled(const struct select *s)
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

/* --- candidates: of a row, found once per attempt --- */

/* A group of another job. */
struct prey {
    int64_t priority, max_parallel;
    int64_t gone; /* of its allocations, by this plan */
    bool may;     /* it matters so much less that its allocations may end */
};

struct prey_pair {
    const char *k; /* namespace, job and group */
    struct prey *v;
};

/* An allocation of the prey, with what is needed in place of all that the state has. */
struct prey_alloc {
    struct allocation alloc;
    struct usage u;
    struct prey *of;
    bool devices;
};

struct prey_row {
    struct prey_alloc **v;
    size_t n;
    bool found;
};

struct evict {
    struct {
        struct prey_pair *v;
        size_t n;
    } groups;
    struct prey_row *rows;
    struct preempt_cand *scratch;
    size_t scratch_n;
    size_t left; /* candidates that may still be kept */
    bool spent;  /* there were more */
};

static struct evict *
evict_of(struct select *s)
{
    if (s->evict == NULL) {
        s->evict = mem_new(s, struct evict);
        s->evict->rows = mem_array(s->evict, struct prey_row, s->t->n);
        s->evict->left = PREEMPT_CANDIDATES;
    }
    return s->evict;
}

static struct prey *
prey_of(struct select *s, const struct allocation *a)
{
    struct evict *e = s->evict;
    auto_mem char *key = mem_printf(NULL, "%s\n%s\n%s", a->namespace, a->job_id, a->task_group);
    struct prey_pair *known = map_get(e->groups, key);

    if (known != NULL)
        return known->v;
    struct prey *p = mem_new(e, struct prey);
    map_put(e, e->groups, key)->v = p;
    const struct job *j = s->view->ops->job(s->view, a->namespace, a->job_id);
    const struct task_group *tg = j != NULL ? job_group(j, a->task_group) : NULL;
    p->priority = priority_of(j);
    p->may = j != NULL && priority_of(s->job) - p->priority >= PREEMPT_DELTA;
    if (tg != NULL && tg->migrate != NULL)
        p->max_parallel = tg->migrate->max_parallel.v;
    return p;
}

static struct prey_alloc *
prey_alloc_new(const void *ctx, const struct allocation *a, struct prey *of)
{
    struct prey_alloc *p = mem_new(ctx, struct prey_alloc);

    p->of = of;
    p->u = resources_of_alloc(a);
    p->devices = device_named(a);
    p->alloc = (struct allocation){.id = mem_strdup(p, a->id),
                                   .name = mem_strdup(p, a->name),
                                   .namespace = mem_strdup(p, a->namespace),
                                   .eval_id = mem_strdup(p, a->eval_id),
                                   .node_id = mem_strdup(p, a->node_id),
                                   .node_name = mem_strdup(p, a->node_name),
                                   .job_id = mem_strdup(p, a->job_id),
                                   .task_group = mem_strdup(p, a->task_group)};
    return p;
}

static struct prey_row *
prey_row(struct select *s, uint32_t row)
{
    struct evict *e = s->evict;
    struct prey_row *r = &e->rows[row];
    auto_mem void *tmp = mem_ctx("candidates");
    size_t n;

    if (r->found)
        return r;
    if (e->left == 0) {
        e->spent = true;
        return r;
    }
    r->found = true;
    const struct allocation *const *all =
        s->view->ops->allocs_by_node(s->view, tmp, s->t->facts[row]->node->id, &n);
    r->v = mem_array(e, struct prey_alloc *, n);
    for (size_t i = 0; i < n; i++) {
        const struct allocation *a = all[i];
        bool own = str_eq(a->job_id, s->job->id) && str_eq(a->namespace, s->job->namespace);
        if (alloc_terminal(a) || own)
            continue;
        struct prey *of = prey_of(s, a);
        if (of->may)
            r->v[r->n++] = prey_alloc_new(r->v, a, of);
    }
    e->left -= r->n < e->left ? r->n : e->left;
    return r;
}

/* --- victims on a row --- */

/* Stops the victims, which are of other jobs: no count of this one's allocations changes. */
static void
stop_victims(struct select *s, uint32_t row, const struct preempt_cand *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        node_table_use_row(s->t, row, &v[i].u, -1);
        change_add(s, v[i].alloc, row, true);
    }
}

/* Undoes the last evictions, the last first. */
static void
spare_victims(struct select *s, uint32_t row, const struct preempt_cand *v, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        node_table_use_row(s->t, row, &v[i].u, 1);
        s->first[row] = s->changes[--s->n_changes].next;
    }
}

static bool
evict_fits(struct select *s, struct group *g, uint32_t row, const struct preempt_cand *v, size_t n)
{
    auto_mem void *tmp = talloc_new(s);
    struct allocated_resources *resources = NULL;

    stop_victims(s, row, v, n);
    bool fits = row_verify(s, g, row, tmp, &resources) == NULL;
    spare_victims(s, row, v, n);
    return fits;
}

static void
swap_cands(struct preempt_cand *v, size_t a, size_t b)
{
    struct preempt_cand x = v[a];

    v[a] = v[b];
    v[b] = x;
}

/* Adds holders of devices to the first `n` victims, the least important first, until the group gets
 * its devices, and then spares whom nobody needs to end. Returns the number of victims; 0: all
 * holders are not enough. */
static size_t
evict_for_devices(struct select *s, struct group *g, uint32_t row, size_t n)
{
    struct preempt_cand *v = s->evict->scratch;
    size_t all = prey_row(s, row)->n;
    ASSERT(n <= all && all <= s->evict->scratch_n);
    bool fits = n > 0 && evict_fits(s, g, row, v, n);

    while (!fits) {
        size_t next = all;
        for (size_t i = n; i < all; i++)
            if (v[i].devices && (next == all || v[i].priority < v[next].priority))
                next = i;
        if (next == all)
            return 0;
        swap_cands(v, n++, next);
        fits = evict_fits(s, g, row, v, n);
    }
    for (size_t i = 0; i < n && n > 1;) {
        swap_cands(v, i, n - 1);
        if (evict_fits(s, g, row, v, n - 1)) {
            n--;
        } else {
            swap_cands(v, i, n - 1);
            i++;
        }
    }
    return n;
}

/* In the scratch list, which the next row overwrites. */
static size_t
evict_victims(struct select *s, struct group *g, uint32_t row)
{
    const struct usage *cap = &s->t->facts[row]->cap;
    struct usage ask = g->ask.u;
    struct evict *e = s->evict;
    const struct prey_row *r = prey_row(s, row);

    ask.cpu += g->ask.cores * s->t->facts[row]->core_mhz;
    if (r->n == 0 || resources_exhausted(cap, &ask) != NULL)
        return 0;
    struct usage left = {cap->cpu - s->t->cpu[row], cap->mem - s->t->mem[row],
                         cap->disk - s->t->disk[row]};
    if (e->scratch_n < r->n) {
        mem_resize(e, e->scratch, struct preempt_cand, r->n);
        e->scratch_n = r->n;
    }
    for (size_t i = 0; i < r->n; i++)
        e->scratch[i] = (struct preempt_cand){.alloc = &r->v[i]->alloc,
                                              .u = r->v[i]->u,
                                              .priority = r->v[i]->of->priority,
                                              .max_parallel = r->v[i]->of->max_parallel,
                                              .devices = r->v[i]->devices,
                                              .gone = r->v[i]->of->gone};
    size_t n = preempt_choose(e->scratch, r->n, &left, &ask);
    return device_wanted(g->tg) ? evict_for_devices(s, g, row, n) : n;
}

/* The row with the victims gone, if it then takes one more: kept when it is the best. */
static bool
row_option(struct select *s, struct group *g, uint32_t row, const struct select_req *req,
           struct eviction *best)
{
    size_t n = evict_victims(s, g, row);
    const struct preempt_cand *v = s->evict->scratch;
    struct score_parts parts = {.preemption = preempt_score(v, n)};
    struct allocated_resources *resources = NULL;

    if (n == 0)
        return false;
    auto_mem void *ctx = talloc_new(s);
    stop_victims(s, row, v, n);
    bool fits = row_verify(s, g, row, ctx, &resources) == NULL;
    double score = row_score_exact(s, g, row, req, &parts);
    spare_victims(s, row, v, n);
    if (fits && (best->n == 0 || score > best->score)) {
        mem_free(best->ctx);
        *best = (struct eviction){.ctx = TAKE(ctx),
                                  .row = row,
                                  .n = n,
                                  .score = score,
                                  .parts = parts,
                                  .resources = resources};
        best->v = mem_array(best->ctx, struct preempt_cand, n);
        memcpy(best->v, v, n * sizeof(*v));
    }
    return fits;
}

/* A row on which nothing helped is looked at again when the plan has changed something there. */
static bool
evict_barren(const struct select *s, const struct group *g, uint32_t row)
{
    return g->barren[row] == s->stamp[row] + 1;
}

bool
evict_choose(struct select *s, struct group *g, const struct select_req *req, struct eviction *ret)
{
    uint32_t only = req->only != NULL ? node_table_find(s->t, req->only) : NODES_NONE;
    size_t options = 0, from = g->n_rows > 0 ? rng_below(s->rng, g->n_rows) : 0;

    *ret = (struct eviction){0};
    if (!evict_enabled(s) || (req->only != NULL && (only == NODES_NONE || !g->ok[only])))
        return false;
    struct evict *e = evict_of(s);
    if (req->only != NULL)
        return row_option(s, g, only, req, ret);
    if (g->barren == NULL)
        g->barren = mem_array(s, uint32_t, s->t->n);
    for (size_t i = 0; i < g->n_rows && options < PREEMPT_OPTIONS; i++) {
        uint32_t row = g->rows[(from + i) % g->n_rows];
        bool option = !evict_barren(s, g, row) && row_option(s, g, row, req, ret);
        if (!option && e->rows[row].found)
            g->barren[row] = s->stamp[row] + 1;
        options += option;
    }
    return ret->n > 0;
}

void
evict_apply(struct select *s, const struct eviction *e, struct select_got *ret)
{
    struct prey_row *r = &s->evict->rows[e->row];
    size_t kept = 0;

    ret->node = s->t->facts[e->row]->node;
    ret->victims = mem_array(s, const struct allocation *, e->n);
    for (size_t i = 0; i < e->n; i++)
        ret->victims[ret->n_victims++] = e->v[i].alloc;
    stop_victims(s, e->row, e->v, e->n);
    row_touch(s, e->row);
    for (size_t i = 0; i < r->n; i++) {
        size_t k = 0;
        while (k < e->n && e->v[k].alloc != &r->v[i]->alloc)
            k++;
        if (k == e->n)
            r->v[kept++] = r->v[i];
        else
            r->v[i]->of->gone++;
    }
    r->n = kept;
}

bool
evict_spent(const struct select *s)
{
    return s->evict != NULL && s->evict->spent;
}
