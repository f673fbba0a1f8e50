/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement metrics, and distinct_property (see select_int.h).
 */
#include <string.h>

#include "api/operators.h"
#include "common/buf.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "api/terms.h"
#include "server/sched/limits.h"
#include "server/sched/select_int.h"

/* Texts of jobs and nodes are cut, and of many reasons the last ones are one: a metric is stored
 * with each allocation and evaluation. */
static void
metric_count(const void *ctx, struct i64_map *m, const char *what, int64_t n)
{
    size_t at = utf8_cut(what, METRIC_TEXT_MAX);

    if (what[at] != '\0')
        what = mem_printf(ctx, "%.*s...", (int)at, what);
    if (m->n >= METRIC_REASONS_MAX && map_get(*m, what) == NULL)
        what = "others";
    map_put(ctx, *m, what)->v += n;
}

size_t
metric_bytes(const struct alloc_metric *m)
{
    auto_buf struct buf b = BUF_INIT(METRICS_BYTES_MAX);

    mp_encode(&b, &type_alloc_metric, m);
    return buf_error(&b) != 0 ? METRICS_BYTES_MAX : b.len;
}

struct alloc_metric *
metric_numbers(const void *ctx, const struct alloc_metric *m)
{
    struct alloc_metric *n = mem_new(ctx, struct alloc_metric);

    n->nodes_evaluated = m->nodes_evaluated;
    n->nodes_filtered = m->nodes_filtered;
    n->nodes_in_pool = m->nodes_in_pool;
    n->nodes_exhausted = m->nodes_exhausted;
    n->allocation_time = m->allocation_time;
    return n;
}

void
metric_filtered(const void *ctx, struct alloc_metric *m, const struct node *n, const char *why,
                int64_t n_nodes)
{
    m->nodes_filtered += n_nodes;
    metric_count(ctx, &m->constraint_filtered, why, n_nodes);
    if (!str_empty(n->node_class))
        metric_count(ctx, &m->class_filtered, n->node_class, n_nodes);
}

void
metric_drivers(const void *ctx, struct alloc_metric *m, const struct node *n,
               const struct task_group *tg)
{
    const char *words = feasible_driver_words(ctx, tg, n);

    if (words != NULL)
        metric_count(ctx, &m->drivers_missing, words, 1);
}

void
metric_exhausted(const void *ctx, struct alloc_metric *m, const struct node *n, const char *why)
{
    m->nodes_exhausted++;
    metric_count(ctx, &m->dimension_exhausted, why, 1);
    if (!str_empty(n->node_class))
        metric_count(ctx, &m->class_exhausted, n->node_class, 1);
}

static void
score_part(struct node_score_meta *sm, const char *name, double v)
{
    sm->scores.v[sm->scores.n].k = name;
    sm->scores.v[sm->scores.n++].v = v;
}

void
metric_score(const void *ctx, struct alloc_metric *m, const struct node *n,
             const struct score_parts *p, double score)
{
    struct node_score_meta *sm = mem_new(ctx, struct node_score_meta);

    sm->node_id = n->id;
    sm->norm_score = score;
    /* sorted by name, as a map must be */
    sm->scores.v = mem_zalloc_array(ctx, sizeof(*sm->scores.v), 6, "scores");
    if (p->spread != 0)
        score_part(sm, "allocation-spread", p->spread);
    score_part(sm, "binpack", p->binpack);
    score_part(sm, "job-anti-affinity", p->anti);
    score_part(sm, "node-affinity", p->affinity);
    score_part(sm, "node-reschedule-penalty", p->penalty);
    if (p->preemption != 0)
        score_part(sm, "preemption", p->preemption);
    list_add(ctx, m->score_meta_data, sm);
}

static void
distinct_add(struct select *s, const struct constraint_list *l, const struct task_group *tg)
{
    for (size_t i = 0; i < l->n; i++) {
        int64_t limit = 1;
        if (operator_code(l->v[i]->operand) != OP_DISTINCT_PROPERTY)
            continue;
        /* a malformed count fails everywhere; registration refuses it */
        if (!str_empty(l->v[i]->r_target) && num_parse_i64(l->v[i]->r_target, &limit) != 0)
            limit = 0;
        mem_resize(s, s->distinct, struct distinct, s->n_distinct + 1);
        s->distinct[s->n_distinct++] = (struct distinct){.c = l->v[i], .tg = tg, .limit = limit};
    }
}

void
distinct_open(struct select *s, const struct allocation *const *allocs, size_t n)
{
    distinct_add(s, &s->job->constraints, NULL);
    for (size_t g = 0; g < s->n_groups; g++) {
        const struct task_group *tg = s->groups[g].tg;
        distinct_add(s, &tg->constraints, tg);
        for (size_t t = 0; t < tg->tasks.n; t++)
            distinct_add(s, &tg->tasks.v[t]->constraints, tg);
    }
    for (size_t i = 0; s->n_distinct > 0 && i < n; i++) {
        uint32_t row = node_table_find(s->view->nodes, allocs[i]->node_id);
        if (row != NODES_NONE && !alloc_terminal(allocs[i]))
            distinct_count(s, allocs[i], row, 1);
    }
}

static bool
distinct_concerns(const struct distinct *d, const char *group)
{
    return d->tg == NULL || str_eq(d->tg->name, group);
}

void
distinct_count(struct select *s, const struct allocation *a, uint32_t row, int sign)
{
    for (size_t i = 0; i < s->n_distinct; i++) {
        struct distinct *d = &s->distinct[i];
        const char *value;
        if (!distinct_concerns(d, a->task_group) ||
            !target_resolve(s->t->facts[row]->node, d->c->l_target, &value))
            continue;
        map_put(s, d->used, value)->v += sign;
    }
}

const char *
distinct_refused(struct select *s, const void *ctx, const struct group *g, uint32_t row)
{
    for (size_t i = 0; i < s->n_distinct; i++) {
        struct distinct *d = &s->distinct[i];
        const char *value;
        if (!distinct_concerns(d, g->tg->name))
            continue;
        if (!target_resolve(s->t->facts[row]->node, d->c->l_target, &value))
            return mem_printf(ctx, "distinct_property: missing %s", str_or(d->c->l_target, ""));
        __auto_type used = map_get(d->used, value);
        if ((used ? used->v : 0) >= d->limit)
            return mem_printf(ctx, "distinct_property: %s=%s used by %lld allocs",
                              str_or(d->c->l_target, ""), value,
                              (long long)(used ? used->v : 0));
    }
    return NULL;
}
