/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing nodes (see select.h). Scores: the plain mean of the parts that apply (scheduler.md 3.7).
 */
#include "server/sched/select.h"

#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/select_int.h"

static int
cand_cmp(const struct cand *a, const struct cand *b)
{
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return a->tie < b->tie ? -1 : a->tie > b->tie;
}

void
heap_push(const void *ctx, struct heap *h, struct cand c)
{
    if (h->n == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 64;
        mem_resize(ctx, h->v, struct cand, h->cap);
    }
    size_t i = h->n++;
    for (; i > 0 && cand_cmp(&h->v[(i - 1) / 2], &c) < 0; i = (i - 1) / 2)
        h->v[i] = h->v[(i - 1) / 2];
    h->v[i] = c;
}

struct cand
heap_pop(struct heap *h)
{
    struct cand top = h->v[0], last = h->v[--h->n];
    size_t i = 0, k;

    while ((k = 2 * i + 1) < h->n) {
        if (k + 1 < h->n && cand_cmp(&h->v[k], &h->v[k + 1]) < 0)
            k++;
        if (cand_cmp(&last, &h->v[k]) >= 0)
            break;
        h->v[i] = h->v[k];
        i = k;
    }
    if (h->n > 0)
        h->v[i] = last;
    return top;
}

/* Counts the allocations of the job, and of each group, on each row. */
static void
count_alloc(struct select *s, const struct allocation *a, uint32_t row, int sign)
{
    if (!str_eq(a->job_id, s->job->id) || !str_eq(a->namespace, s->job->namespace))
        return;
    s->job_count[row] += sign;
    for (size_t i = 0; i < s->n_groups; i++)
        if (str_eq(s->groups[i].tg->name, a->task_group))
            s->groups[i].count[row] += sign;
}

static void
find_candidates(struct select *s)
{
    const struct node_table *t = s->view->nodes;

    s->rows = mem_array(s, uint32_t, t->n);
    for (size_t i = 0; i < t->n; i++) {
        const struct node_facts *f = t->facts[i];
        if (f == NULL || !f->takes_work || !feasible_pool(s->job, f->node))
            continue;
        s->in_pool++;
        if (!feasible_datacenter(s->job, f->node))
            continue;
        s->rows[s->n_rows++] = (uint32_t)i;
        map_put(s, s->available, str_or(f->node->datacenter, ""))->v++;
    }
}

struct select *
select_new(const void *ctx, struct sched_view *v, const struct job *job,
           const struct allocation *const *allocs, size_t n_allocs, struct rng *rng)
{
    struct select *s = mem_new(ctx, struct select);
    const struct node_table *t = v->nodes;

    s->view = v;
    s->job = job;
    s->rng = rng;
    s->tie_seed = rng_u64(rng);
    s->rx = regexes_new(s);
    s->cpu = mem_dup(s, t->cpu, t->n * sizeof(*t->cpu));
    s->mem = mem_dup(s, t->mem, t->n * sizeof(*t->mem));
    s->disk = mem_dup(s, t->disk, t->n * sizeof(*t->disk));
    s->allocs = mem_dup(s, t->allocs, t->n * sizeof(*t->allocs));
    s->stamp = mem_array(s, uint32_t, t->n);
    s->job_count = mem_array(s, int32_t, t->n);
    s->first = mem_array(s, int32_t, t->n);
    memset(s->first, 0xff, t->n * sizeof(*s->first));
    s->groups = mem_array(s, struct group, job->task_groups.n);
    s->n_groups = job->task_groups.n;
    for (size_t i = 0; i < s->n_groups; i++) {
        s->groups[i].tg = job->task_groups.v[i];
        s->groups[i].count = mem_array(s, int32_t, t->n);
    }
    for (size_t i = 0; i < n_allocs; i++) {
        uint32_t row = node_table_find(t, allocs[i]->node_id);
        if (row != NODES_NONE && !alloc_terminal(allocs[i]))
            count_alloc(s, allocs[i], row, 1);
    }
    s->job_distinct = feasible_distinct_hosts(&job->constraints);
    distinct_open(s, allocs, n_allocs);
    find_candidates(s);
    return s;
}

static struct group *
group_of(struct select *s, const struct task_group *tg)
{
    for (size_t i = 0; i < s->n_groups; i++)
        if (s->groups[i].tg == tg)
            return &s->groups[i];
    ASSERT(!"group of another job");
    return NULL;
}

/* Static filter of a group, once. */
static void
group_open(struct select *s, struct group *g)
{
    if (g->open)
        return;
    g->open = true;
    g->ask = resources_ask(g->tg);
    g->distinct = s->job_distinct || feasible_distinct_hosts(&g->tg->constraints);
    g->feas = feasible_new(s, s->rx, s->job, g->tg);
    g->base = mem_new(s, struct alloc_metric);
    g->ok = mem_array(s, bool, s->view->nodes->n);
    g->why = mem_array(s, const char *, s->view->nodes->n);
    g->rows = mem_array(s, uint32_t, s->n_rows);
    g->base->nodes_evaluated = (int64_t)s->n_rows;
    g->base->nodes_in_pool = s->in_pool;
    g->base->node_pool = str_or(s->job->node_pool, POOL_DEFAULT);
    for (size_t i = 0; i < s->available.n; i++)
        map_put(s, g->base->nodes_available, s->available.v[i].k)->v = s->available.v[i].v;
    for (size_t i = 0; i < s->n_rows; i++) {
        const struct node_facts *f = s->view->nodes->facts[s->rows[i]];
        const char *why = feasible_check(g->feas, f);
        if (why == NULL) {
            g->ok[s->rows[i]] = true;
            g->rows[g->n_rows++] = s->rows[i];
        } else {
            metric_filtered(s, g->base, f->node, why);
        }
    }
}

/* What the row would hold with one more of the group. */
static struct usage
usage_with(const struct select *s, const struct group *g, uint32_t row)
{
    const struct node_facts *f = s->view->nodes->facts[row];

    return (struct usage){
        .cpu = s->cpu[row] + g->ask.u.cpu + g->ask.cores * f->core_mhz,
        .mem = s->mem[row] + g->ask.u.mem,
        .disk = s->disk[row] + g->ask.u.disk,
    };
}

/* The first dimension in which the row is exhausted, or NULL. */
static const char *
row_exhausted(const struct select *s, const struct group *g, uint32_t row)
{
    const struct node_facts *f = s->view->nodes->facts[row];
    struct usage u = usage_with(s, g, row);

    if (f->node->node_max_allocs > 0 && s->allocs[row] >= f->node->node_max_allocs)
        return "max allocations";
    if (g->ask.cores > 0 && f->core_mhz <= 0)
        return "cores";
    return resources_exhausted(&f->cap, &u);
}

static bool
in_list(const char *id, const char *const *l, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(id, l[i]))
            return true;
    return false;
}

/* Mean of the parts that apply; *parts gets each for the metrics. */
static double
row_score(const struct select *s, const struct group *g, uint32_t row,
          const struct select_req *req, struct score_parts *parts)
{
    const struct node_facts *f = s->view->nodes->facts[row];
    struct usage u = usage_with(s, g, row);
    int64_t count = g->tg->count.v > 0 ? g->tg->count.v : 1;
    bool spread = s->view->config && str_eq(s->view->config->scheduler_algorithm, "spread");
    int n = 1;

    *parts = (struct score_parts){0};
    parts->binpack = spread ? resources_score_spread(&f->cap, &u) : resources_score_binpack(&f->cap, &u);
    double sum = parts->binpack;
    if (g->count[row] > 0) {
        parts->anti = -(double)(g->count[row] + 1) / (double)count;
        sum += parts->anti;
        n++;
    }
    if (req->n_penalty > 0 && in_list(f->node->id, req->penalty, req->n_penalty)) {
        parts->penalty = -1;
        sum += parts->penalty;
        n++;
    }
    return sum / n;
}

static void
heap_offer(struct select *s, struct group *g, struct heap *h, uint32_t row,
           const struct select_req *req)
{
    struct score_parts parts;

    if (row_exhausted(s, g, row) != NULL)
        return;
    double score = row_score(s, g, row, req, &parts);
    heap_push(s, h, (struct cand){score, rng_mix(s->tie_seed ^ row), row, s->stamp[row]});
}

static const struct select_req no_req = {0};

/* The plan changed what is on a row: every group that has a heap scores it again. */
static void
row_touch(struct select *s, uint32_t row)
{
    s->stamp[row]++;
    for (size_t i = 0; i < s->n_groups; i++) {
        struct group *g = &s->groups[i];
        if (!g->open || !g->ok[row])
            continue;
        g->why[row] = NULL;
        if (g->heaped)
            heap_offer(s, g, &g->heap, row, &no_req);
    }
}

static void
row_use(struct select *s, uint32_t row, const struct usage *u, int sign)
{
    s->cpu[row] += sign * u->cpu;
    s->mem[row] += sign * u->mem;
    s->disk[row] += sign * u->disk;
    s->allocs[row] += sign;
}

static void
change_add(struct select *s, const struct allocation *a, uint32_t row, bool stop)
{
    if (s->n_changes == s->cap_changes) {
        s->cap_changes = s->cap_changes ? s->cap_changes * 2 : 32;
        mem_resize(s, s->changes, struct change, s->cap_changes);
    }
    s->changes[s->n_changes] = (struct change){a, s->first[row], stop};
    s->first[row] = (int32_t)s->n_changes++;
}

void
select_stop(struct select *s, const struct allocation *a)
{
    uint32_t row = node_table_find(s->view->nodes, a->node_id);
    struct usage u = resources_of_alloc(a);

    if (row == NODES_NONE || alloc_client_terminal(a))
        return;
    row_use(s, row, &u, -1);
    if (!alloc_server_terminal(a)) {
        count_alloc(s, a, row, -1);
        distinct_count(s, a, row, -1);
    }
    change_add(s, a, row, true);
    row_touch(s, row);
}

void
select_unstop(struct select *s, const struct allocation *a)
{
    uint32_t row = node_table_find(s->view->nodes, a->node_id);
    struct usage u = resources_of_alloc(a);

    if (row == NODES_NONE || alloc_client_terminal(a))
        return;
    for (int32_t *at = &s->first[row]; *at >= 0; at = &s->changes[*at].next) {
        if (s->changes[*at].alloc != a)
            continue;
        *at = s->changes[*at].next;
        break;
    }
    row_use(s, row, &u, 1);
    if (!alloc_server_terminal(a)) {
        count_alloc(s, a, row, 1);
        distinct_count(s, a, row, 1);
    }
    row_touch(s, row);
}

void
select_book(struct select *s, const struct allocation *a)
{
    uint32_t row = node_table_find(s->view->nodes, a->node_id);
    struct usage u = resources_of_alloc(a);

    row_use(s, row, &u, 1);
    count_alloc(s, a, row, 1);
    distinct_count(s, a, row, 1);
    change_add(s, a, row, false);
    row_touch(s, row);
}

/* Why the row cannot take one more after all, or NULL and the resources it gives. */
static const char *
row_verify(struct select *s, struct group *g, uint32_t row, const void *ctx,
           struct allocated_resources **ret)
{
    const char *why = NULL;

    if (g->distinct) {
        int32_t there = s->job_distinct ? s->job_count[row] : g->count[row];
        if (there > 0)
            return FILTER_DISTINCT_HOSTS;
    }
    why = distinct_refused(s, g, row);
    if (why == NULL)
        why = row_exhausted(s, g, row);
    return why ? why : grant(s, g, row, ctx, ret);
}

/* Takes candidates from the heap until one holds. NODES_NONE when none does. */
static uint32_t
take_best(struct select *s, struct group *g, struct heap *h, const void *ctx,
          struct allocated_resources **ret)
{
    while (h->n > 0) {
        struct cand c = heap_pop(h);
        if (c.stamp != s->stamp[c.row])
            continue;
        g->why[c.row] = row_verify(s, g, c.row, ctx, ret);
        if (g->why[c.row] == NULL)
            return c.row;
    }
    return NODES_NONE;
}

static bool
is_filter(const char *why)
{
    return str_eq(why, FILTER_DISTINCT_HOSTS) || str_prefix(why, "distinct_property");
}

/* Adds what the plan and the snapshot exhaust to the static counts. */
static void
metric_exhaustion(struct select *s, struct group *g, struct alloc_metric *m)
{
    for (size_t i = 0; i < g->n_rows; i++) {
        uint32_t row = g->rows[i];
        const struct node *n = s->view->nodes->facts[row]->node;
        const char *why = g->why[row] ? g->why[row] : row_exhausted(s, g, row);
        if (why == NULL)
            continue;
        if (is_filter(why))
            metric_filtered(s, m, n, why);
        else
            metric_exhausted(s, m, n, why);
    }
}

static void
metric_scores(struct select *s, struct group *g, struct heap *h, uint32_t row,
              const struct select_req *req, struct alloc_metric *m)
{
    struct cand kept[SCORES_KEPT];
    size_t n = 0;
    struct score_parts parts;
    double score = row_score(s, g, row, req, &parts);

    metric_score(s, m, s->view->nodes->facts[row]->node, &parts, score);
    while (n + 1 < SCORES_KEPT && h->n > 0) {
        struct cand c = heap_pop(h);
        if (c.stamp != s->stamp[c.row])
            continue;
        kept[n++] = c;
        score = row_score(s, g, c.row, req, &parts);
        metric_score(s, m, s->view->nodes->facts[c.row]->node, &parts, score);
    }
    for (size_t i = 0; i < n; i++)
        heap_push(s, h, kept[i]);
}

/* A heap for this request alone: one node, or scores with penalties. */
static void
heap_special(struct select *s, struct group *g, const struct select_req *req, const char *only,
             struct heap *h)
{
    for (size_t i = 0; i < g->n_rows; i++) {
        uint32_t row = g->rows[i];
        if (only == NULL || str_eq(s->view->nodes->facts[row]->node->id, only))
            heap_offer(s, g, h, row, req);
    }
}

static void
heap_open(struct select *s, struct group *g)
{
    if (g->heaped)
        return;
    g->heaped = true;
    for (size_t i = 0; i < g->n_rows; i++)
        heap_offer(s, g, &g->heap, g->rows[i], &no_req);
}

void
select_place(struct select *s, const struct select_req *req, struct select_got *ret)
{
    struct group *g = group_of(s, req->tg);
    struct heap special = {0}, *h = &special;
    uint32_t row = NODES_NONE;

    *ret = (struct select_got){0};
    group_open(s, g);
    if (req->preferred != NULL) {
        heap_special(s, g, req, req->preferred, h);
        row = take_best(s, g, h, s, &ret->resources);
    }
    if (row == NODES_NONE && req->only != NULL) {
        h->n = 0;
        heap_special(s, g, req, req->only, h);
        row = take_best(s, g, h, s, &ret->resources);
    } else if (row == NODES_NONE && req->n_penalty > 0) {
        h->n = 0;
        heap_special(s, g, req, NULL, h);
        row = take_best(s, g, h, s, &ret->resources);
    } else if (row == NODES_NONE) {
        heap_open(s, g);
        h = &g->heap;
        row = take_best(s, g, h, s, &ret->resources);
    }
    ret->metrics = codec_clone(s, &type_alloc_metric, g->base);
    if (row == NODES_NONE) {
        metric_exhaustion(s, g, ret->metrics);
    } else {
        ret->node = s->view->nodes->facts[row]->node;
        metric_scores(s, g, h, row, req, ret->metrics);
        /* taken from the heap: offered again when it is booked, or now if the caller changes its mind */
        s->stamp[row]++;
        if (g->heaped)
            heap_offer(s, g, &g->heap, row, &no_req);
    }
    mem_free(special.v);
}

bool
select_may_stay(struct select *s, const struct task_group *tg, const char *node_id)
{
    struct group *g = group_of(s, tg);
    uint32_t row = node_table_find(s->view->nodes, node_id);

    if (row == NODES_NONE)
        return false;
    const struct node_facts *f = s->view->nodes->facts[row];
    group_open(s, g);
    return feasible_pool(s->job, f->node) && feasible_datacenter(s->job, f->node) &&
           feasible_check(g->feas, f) == NULL;
}

size_t
select_feasible(struct select *s, const struct task_group *tg, const uint32_t **ret_rows)
{
    struct group *g = group_of(s, tg);

    group_open(s, g);
    *ret_rows = g->rows;
    return g->n_rows;
}

struct elig_arg {
    const void *ctx;
    struct bool_map *elig;
};

static void
elig_add(void *arg, uint64_t hash, bool ok)
{
    struct elig_arg *a = arg;
    char name[CLASS_TEXT];

    snprintf(name, sizeof(name), "v1:%llu", (unsigned long long)hash);
    __auto_type e = map_put(a->ctx, *a->elig, name);
    e->v |= ok;
}

bool
select_classes(struct select *s, const void *ctx, const struct task_group *tg, struct bool_map *elig)
{
    struct group *g = group_of(s, tg);
    struct elig_arg arg = {ctx, elig};

    group_open(s, g);
    feasible_classes(g->feas, elig_add, &arg);
    return !feasible_escapes(g->feas);
}
