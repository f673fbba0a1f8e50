/* SPDX-License-Identifier: Apache-2.0
 *
 * Explanations (see explain.h): the checks of a placement, node by node, in the order in which they
 * come there.
 */
#include "server/sched/query/explain.h"

#include <stdlib.h>
#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/sched/feasible.h"
#include "server/sched/limits.h"
#include "server/sched/select.h"

#define FITS "has room"

static const char *
node_refusal(const void *ctx, const struct job *job, const struct node *n)
{
    if (!str_eq(n->status, NODE_READY))
        return mem_printf(ctx, "the node is %s", str_or(n->status, "unknown"));
    if (n->drain_strategy != NULL)
        return "the node drains";
    if (!node_takes_work(n))
        return "the node is marked as ineligible";
    if (!feasible_pool(job, n))
        return mem_printf(ctx, "in node pool \"%s\", not \"%s\"",
                          str_or(n->node_pool, POOL_DEFAULT), str_or(job->node_pool, POOL_DEFAULT));
    if (!feasible_datacenter(job, n))
        return mem_printf(ctx, "in datacenter \"%s\"", str_or(n->datacenter, ""));
    return NULL;
}

/* Says how much is asked for and is free, if the reason is a dimension. */
static const char *
explain_detail(const void *ctx, const struct node_table *t, uint32_t row, const struct ask *ask,
               const char *why)
{
    const struct usage *cap = &t->facts[row]->cap;
    const struct {
        const char *name, *unit;
        int64_t want, used, cap;
    } dims[] = {{"cpu", "MHz", ask->u.cpu, t->cpu[row], cap->cpu},
                {"memory", "MiB", ask->u.mem, t->mem[row], cap->mem},
                {"disk", "MiB", ask->u.disk, t->disk[row], cap->disk}};

    for (size_t i = 0; i < ARRAY_LEN(dims); i++)
        if (str_eq(why, dims[i].name))
            return mem_printf(ctx, "wants %lld %s, %lld of %lld are free", (long long)dims[i].want,
                              dims[i].unit, (long long)(dims[i].cap - dims[i].used),
                              (long long)dims[i].cap);
    return NULL;
}


static bool
node_meant(const struct node *n, const char *word)
{
    return str_empty(word) || str_prefix(n->id, word) || str_eq(n->name, word);
}

static int
by_score(const void *a, const void *b)
{
    const struct reason_node *x = *(void *const *)a, *y = *(void *const *)b;
    int by_id = strcmp(x->id, y->id);

    return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : by_id;
}

static int
by_count(const void *a, const void *b)
{
    const struct node_reason *x = *(void *const *)a, *y = *(void *const *)b;
    int by_text = strcmp(x->reason, y->reason);

    if (x->fits != y->fits)
        return (int)y->fits - (int)x->fits;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count) : by_text;
}

/* --- one group --- */

static struct node_reason *
reason_find(const struct group_explanation *g, const char *why, bool fits)
{
    for (size_t i = 0; i < g->reasons.n; i++)
        if (g->reasons.v[i]->fits == fits && str_eq(g->reasons.v[i]->reason, why))
            return g->reasons.v[i];
    return NULL;
}

/* Finds or makes the row of a reason; the last of many are one row. */
static struct node_reason *
reason_of(const void *ctx, struct group_explanation *g, const char *why, bool fits)
{
    struct node_reason *r = reason_find(g, why, fits);

    if (r == NULL && g->reasons.n >= METRIC_REASONS_MAX)
        r = reason_find(g, why = "other reasons", fits);
    if (r != NULL)
        return r;
    r = mem_new(ctx, struct node_reason);
    r->reason = mem_strdup(r, why);
    r->fits = fits;
    list_add(ctx, g->reasons, r);
    return r;
}

/* The best `n` stay, in their order. */
static void
keep_best(struct reason_node_list *l, size_t n)
{
    qsort(l->v, l->n, sizeof(*l->v), by_score);
    while (l->n > n)
        talloc_free(l->v[--l->n]);
}

static void
explain_node(const void *ctx, const struct explain_in *in, struct select *s,
             const struct task_group *tg, uint32_t row, struct group_explanation *g)
{
    auto_mem void *tmp = mem_ctx("node");
    const struct node_table *t = in->view->nodes;
    const struct node *n = t->facts[row]->node;
    struct reason_node x = {.id = n->id, .name = n->name};
    struct ask ask = resources_ask(tg);
    const char *why = node_refusal(tmp, in->job, n);

    if (why == NULL && (why = select_refusal(s, tmp, tg, row, &x.score)) != NULL)
        x.detail = explain_detail(tmp, t, row, &ask, why);
    if (x.detail != NULL)
        why = mem_printf(tmp, "%s exhausted", why);
    else if (why != NULL && str_eq(why, FILTER_DRIVERS))
        x.detail = feasible_driver_words(tmp, tg, n);
    struct node_reason *r = reason_of(ctx, g, why != NULL ? why : FITS, why == NULL);
    struct reason_node *kept = mem_dup(ctx, &x, sizeof(x));
    kept->detail = mem_strdup(kept, x.detail);
    r->count++;
    g->nodes++;
    list_add(ctx, r->nodes, kept);
    if (r->nodes.n >= 2 * in->n_named + 16)
        keep_best(&r->nodes, in->n_named);
}

static struct group_explanation *
explain_group(const void *ctx, const struct explain_in *in, struct select *s,
              const struct task_group *tg)
{
    struct group_explanation *g = mem_new(ctx, struct group_explanation);
    const struct node_table *t = in->view->nodes;

    g->name = tg->name;
    for (uint32_t row = 0; row < t->n; row++) /* a row that only allocations name has no status */
        if (t->facts[row] != NULL && !str_empty(t->facts[row]->node->status) &&
            node_meant(t->facts[row]->node, in->node))
            explain_node(ctx, in, s, tg, row, g);
    for (size_t i = 0; i < g->reasons.n; i++)
        keep_best(&g->reasons.v[i]->nodes, in->n_named);
    if (g->reasons.n > 0)
        qsort(g->reasons.v, g->reasons.n, sizeof(*g->reasons.v), by_count);
    return g;
}

int
sched_explain(const void *ctx, const struct explain_in *in, struct job_explanation **ret,
              struct err *e)
{
    struct sched_view *v = in->view;
    const struct task_group_list *groups = &in->job->task_groups;
    size_t n_allocs, n = str_empty(in->group) ? groups->n : 1;

    if (n > EXPLAIN_CHECKS_MAX / (v->nodes->n + 1))
        return err_set(e, -ERR_LIMIT, "%zu groups on %zu nodes are more than the %d checks of an "
                                      "explanation: ask for one group (group=)",
                       n, (size_t)v->nodes->n, EXPLAIN_CHECKS_MAX);
    struct job_explanation *x = mem_new(ctx, struct job_explanation);
    const struct allocation *const *allocs =
        v->ops->allocs_by_job(v, in->job->namespace, in->job->id, &n_allocs);
    struct select *s = select_new(x, v, in->job, allocs, n_allocs, in->rng);

    x->namespace = in->job->namespace;
    x->job_id = in->job->id;
    for (size_t i = 0; i < groups->n; i++)
        if (str_empty(in->group) || str_eq(in->group, groups->v[i]->name))
            list_add(x, x->groups, explain_group(x, in, s, groups->v[i]));
    *ret = x;
    return 0;
}
