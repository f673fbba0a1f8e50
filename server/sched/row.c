/* SPDX-License-Identifier: Apache-2.0
 *
 * One node for one group: the room left, how well the group fits there, and the heaps of candidates
 * that follow the changes of a plan (see select_int.h).
 */
#include "server/sched/select.h"

#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/select_int.h"

static const struct select_req no_req = {0};

static double
row_clamp18(double x)
{
    return (x < 0 ? 0 : x > 18 ? 18 : x) / 18;
}

/* Returns what the row would hold with one more of the group. */
static struct usage
usage_with(const struct select *s, const struct group *g, uint32_t row)
{
    struct usage u = {
        .cpu = s->t->cpu[row] + g->ask.u.cpu,
        .mem = s->t->mem[row] + g->ask.u.mem,
        .disk = s->t->disk[row] + g->ask.u.disk,
    };

    if (g->exact)
        u.cpu += g->ask.cores * s->t->facts[row]->core_mhz;
    return u;
}

const char *
row_exhausted(const struct select *s, const struct group *g, uint32_t row)
{
    const struct node_set *set = s->t->set;
    struct usage cap = {set->cap_cpu[row], set->cap_mem[row], set->cap_disk[row]};
    struct usage u = usage_with(s, g, row);

    if (set->max_allocs[row] > 0 && s->t->allocs[row] >= set->max_allocs[row])
        return "max allocations";
    if (g->exact && set->facts[row]->core_mhz <= 0)
        return "cores";
    const char *why = resources_exhausted(&cap, &u);
    /* without the cores that are asked for there would be enough: it is they that lack */
    if (g->exact && str_eq(why, "cpu") && s->t->cpu[row] + g->ask.u.cpu <= set->cap_cpu[row])
        return "cores";
    return why;
}

static bool
in_list(const char *id, const char *const *l, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(id, l[i]))
            return true;
    return false;
}

/* The fit part, from the row's stored terms: within rounding of the exact one. */
static double
fit_fast(const struct select *s, const struct group *g, uint32_t row, bool spread)
{
    uint32_t shape = s->t->set->shape_no[row];
    double sum = s->t->pow_cpu[row] * g->k_cpu[shape] + s->t->pow_mem[row] * g->k_mem[shape];

    return row_clamp18(spread ? sum - 2 : 20 - sum);
}

static double
fit_exact(const struct select *s, const struct group *g, uint32_t row, bool spread)
{
    const struct usage *cap = &s->t->facts[row]->cap;
    struct usage u = usage_with(s, g, row);

    return spread ? resources_score_spread(cap, &u) : resources_score_binpack(cap, &u);
}

static struct sum
row_sum(const struct select *s, const struct group *g, uint32_t row, const struct select_req *req,
        struct score_parts *parts)
{
    int64_t count = g->tg->count.v > 0 ? g->tg->count.v : 1;
    struct sum sum = {parts->binpack, 1};

    parts->anti = parts->penalty = parts->affinity = parts->spread = 0;
    if (g->count[row] > 0) {
        parts->anti = -(double)(g->count[row] + 1) / (double)count;
        sum.v += parts->anti;
        sum.n++;
    }
    if (req->n_penalty > 0 && in_list(s->t->facts[row]->node->id, req->penalty, req->n_penalty)) {
        parts->penalty = -1;
        sum.v += parts->penalty;
        sum.n++;
    }
    if (g->affinity != NULL) {
        parts->affinity = g->affinity[row];
        sum.v += parts->affinity;
        sum.n++;
    }
    return sum;
}

/* A spread part of nothing is no part. */
double
row_mean(struct sum sum, double spread)
{
    return spread != 0 ? (sum.v + spread) / (sum.n + 1) : sum.v / sum.n;
}

static double
row_score(const struct select *s, const struct group *g, uint32_t row, const struct select_req *req,
          struct score_parts *parts)
{
    struct sum sum = row_sum(s, g, row, req, parts);

    if (g->spread != NULL)
        parts->spread = spread_score(g->spread, g->spread->bucket[row]);
    return row_mean(sum, parts->spread);
}

double
row_score_exact(const struct select *s, const struct group *g, uint32_t row,
                const struct select_req *req, struct score_parts *parts)
{
    parts->binpack = fit_exact(s, g, row, s->empty_first);
    double score = row_score(s, g, row, req, parts);
    if (parts->preemption == 0)
        return score;
    int n = 1 + (parts->anti != 0) + (parts->penalty != 0) + (g->affinity != NULL) +
            (parts->spread != 0);
    return (score * n + parts->preemption) / (n + 1);
}

static double
row_fit(const struct select *s, const struct group *g, uint32_t row)
{
    return g->exact ? fit_exact(s, g, row, s->empty_first) : fit_fast(s, g, row, s->empty_first);
}

/* A candidate for the row; false when it has no room. */
bool
row_cand(const struct select *s, const struct group *g, uint32_t row, const struct select_req *req,
         struct cand *ret)
{
    struct score_parts parts;

    if (row_exhausted(s, g, row) != NULL)
        return false;
    parts.binpack = row_fit(s, g, row);
    *ret = (struct cand){row_score(s, g, row, req, &parts), row, s->stamp[row]};
    return true;
}

/* The heap of the group for a row, and its candidate there. */
struct heap *
row_group_cand(const struct select *s, const struct group *g, uint32_t row, struct cand *ret)
{
    struct score_parts parts;

    if (g->spread == NULL)
        return row_cand(s, g, row, &no_req, ret) ? &g->heaps.v[0] : NULL;
    if (row_exhausted(s, g, row) != NULL)
        return NULL;
    parts.binpack = row_fit(s, g, row);
    *ret = (struct cand){row_sum(s, g, row, &no_req, &parts).v, row, s->stamp[row]};
    return &g->heaps.v[2 * g->spread->bucket[row] + (g->count[row] > 0)];
}

void
row_group_offer(struct select *s, struct group *g, uint32_t row)
{
    struct cand c;
    struct heap *h = row_group_cand(s, g, row, &c);

    if (h != NULL)
        heap_push(s, h, c);
}

void
row_heap_offer(struct select *s, struct group *g, struct heap *h, uint32_t row,
           const struct select_req *req)
{
    struct cand c;

    if (row_cand(s, g, row, req, &c))
        heap_push(s, h, c);
}

void
row_touch(struct select *s, uint32_t row)
{
    s->stamp[row]++;
    for (size_t i = 0; i < s->n_groups; i++) {
        struct group *g = &s->groups[i];
        if (!g->open || !g->ok[row])
            continue;
        g->why[row] = NULL;
        if (g->heaped)
            row_group_offer(s, g, row);
    }
}

void
change_add(struct select *s, const struct allocation *a, uint32_t row, bool stop)
{
    if (s->n_changes == s->cap_changes) {
        s->cap_changes = s->cap_changes ? s->cap_changes * 2 : 32;
        mem_resize(s, s->changes, struct change, s->cap_changes);
    }
    s->changes[s->n_changes] = (struct change){a, s->first[row], stop};
    s->first[row] = (int32_t)s->n_changes++;
}

/* Why the row cannot take one more after all, or NULL and the resources it gives. */
const char *
row_verify(struct select *s, struct group *g, uint32_t row, const void *ctx,
           struct allocated_resources **ret)
{
    const char *why = NULL;

    if (g->distinct) {
        int32_t there = s->job_distinct ? s->job_count[row] : g->count[row];
        if (there > 0)
            return FILTER_DISTINCT_HOSTS;
    }
    why = distinct_refused(s, ctx, g, row);
    if (why == NULL && g->by_name && g->name != NULL &&
        !feasible_volumes(g->feas, s->t->facts[row]->node, g->name))
        return FILTER_VOLUMES;
    if (why == NULL && g->tg->volumes.n > 0 && !grant_volumes(s, g, row))
        return FILTER_VOLUMES;
    if (why == NULL)
        why = row_exhausted(s, g, row);
    return why ? why : grant(s, g, row, ctx, ret);
}
