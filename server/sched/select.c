/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing nodes (see select.h). Scores: the plain mean of the parts that apply
 * (doc/scheduling.md 3.7).
 */
#include "server/sched/select.h"

#include <string.h>

#include "api/pool.h"
#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/select_int.h"

/* --- the plan's world --- */

static void
group_count(struct group *g, uint32_t row, int sign)
{
    g->count[row] += sign;
    if (g->spread != NULL)
        spread_use(g->spread, row, sign);
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
            group_count(&s->groups[i], row, sign);
}

/* Datacenter and pool are decided once per place. */
static void
find_candidates(struct select *s)
{
    const struct node_set *set = s->t->set;
    const struct node_kinds *places = &set->places;
    bool *pool = mem_array(s, bool, places->n), *dc = mem_array(s, bool, places->n);
    int64_t *count = mem_array(s, int64_t, places->n);

    for (size_t i = 0; i < places->n; i++) {
        pool[i] = feasible_pool(s->job, places->sample[i]->node);
        dc[i] = pool[i] && feasible_datacenter(s->job, places->sample[i]->node);
    }
    s->rows = mem_array(s, uint32_t, set->n);
    for (size_t i = 0; i < set->n; i++) {
        if (set->facts[i] == NULL || !set->takes_work[i])
            continue;
        uint32_t place = set->place_no[i];
        s->in_pool += pool[place];
        if (!dc[place])
            continue;
        s->rows[s->n_rows++] = (uint32_t)i;
        count[place]++;
    }
    for (size_t i = 0; i < places->n; i++)
        if (count[i] > 0)
            map_put(s, s->available, str_or(places->sample[i]->node->datacenter, ""))->v +=
                count[i];
}

struct select *
select_new(const void *ctx, struct sched_view *v, const struct job *job,
           const struct allocation *const *allocs, size_t n_allocs, struct rng *rng)
{
    struct select *s = mem_new(ctx, struct select);
    struct node_table *t = v->nodes;

    s->view = v;
    s->t = t;
    s->job = job;
    const struct node_pool *pool = v->ops->node_pool(v, str_or(job->node_pool, POOL_DEFAULT));
    s->empty_first = str_eq(pool_algorithm(pool, v->config), "spread");
    s->oversubscribes = pool_oversubscribes(pool, v->config);
    s->rng = rng;
    s->tie_seed = rng_u64(rng);
    s->rx = regexes_new(s);
    s->stamp = mem_array(s, uint32_t, t->n);
    s->job_count = mem_array(s, int32_t, t->n);
    s->first = mem_array(s, int32_t, t->n);
    memset(s->first, 0xff, t->n * sizeof(*s->first));
    s->groups = mem_array(s, struct group, job->task_groups.n);
    s->n_groups = job->task_groups.n;
    for (size_t i = 0; i < s->n_groups; i++) {
        s->groups[i].tg = job->task_groups.v[i];
        s->groups[i].job = job;
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

void
select_older(struct select *s, const struct job *job, const struct task_group *tg)
{
    const struct group *now = NULL;

    for (size_t i = 0; i < s->n_groups; i++) {
        if (s->groups[i].tg == tg)
            return;
        now = str_eq(s->groups[i].tg->name, tg->name) ? &s->groups[i] : now;
    }
    ASSERT(now != NULL && !now->open); /* the same allocations are counted */
    struct group g = {.tg = tg, .job = job};
    g.count = mem_dup(s, now->count, s->t->n * sizeof(*g.count));
    mem_resize(s, s->groups, struct group, s->n_groups + 1);
    s->groups[s->n_groups++] = g;
}

static struct group *
group_of(struct select *s, const struct task_group *tg)
{
    for (size_t i = 0; i < s->n_groups; i++)
        if (s->groups[i].tg == tg)
            return &s->groups[i];
    bool group_is_of_the_job = false;
    ASSERT(group_is_of_the_job);
    return NULL;
}

/* Decided once per class; *ret_why is given to the one who asks first. */
static bool
class_ok(struct group *g, const struct node_facts *f, uint32_t no, const char **ret_why)
{
    *ret_why = FILTER_CLASS;
    if (g->class_ok[no] == CLASS_UNKNOWN) {
        *ret_why = feasible_class(g->feas, f->node);
        g->class_ok[no] = *ret_why == NULL ? CLASS_OK : CLASS_BAD;
    }
    return g->class_ok[no] == CLASS_OK;
}

/* Static filter of all candidate rows. Rows of a class that is out are only counted. */
static void
group_filter(struct select *s, struct group *g)
{
    const struct node_set *set = s->t->set;
    int64_t *again = mem_array(s, int64_t, set->classes.n);
    bool node_part = feasible_has_node_part(g->feas);

    for (size_t i = 0; i < s->n_rows; i++) {
        uint32_t row = s->rows[i], no = set->class_no[row];
        const char *why = NULL;
        if (g->class_ok[no] == CLASS_BAD) {
            again[no]++;
            continue;
        }
        if (class_ok(g, set->facts[row], no, &why))
            why = node_part ? feasible_node(g->feas, set->facts[row]->node) : NULL;
        if (why != NULL) {
            metric_filtered(s, g->base, set->facts[row]->node, why, 1);
            if (str_eq(why, FILTER_DRIVERS))
                metric_drivers(s, g->base, set->facts[row]->node, g->tg);
            continue;
        }
        g->ok[row] = true;
        g->rows[g->n_rows++] = row;
    }
    for (size_t no = 0; no < set->classes.n; no++)
        if (again[no] > 0)
            metric_filtered(s, g->base, set->classes.sample[no]->node, FILTER_CLASS, again[no]);
}

static void
group_powers(struct select *s, struct group *g)
{
    const struct node_kinds *shapes = &s->t->set->shapes;

    g->k_cpu = mem_array(s, double, shapes->n);
    g->k_mem = mem_array(s, double, shapes->n);
    for (size_t i = 0; i < shapes->n; i++) {
        /* a free share of minus x is a use of x with nothing free before */
        const struct usage *cap = &shapes->sample[i]->cap;
        struct usage used = {cap->cpu + g->ask.u.cpu, cap->mem + g->ask.u.mem, 0};
        resources_powers(cap, &used, &g->k_cpu[i], &g->k_mem[i]);
    }
}

static void
group_open(struct select *s, struct group *g)
{
    if (g->open)
        return;
    g->open = true;
    g->ask = resources_ask(g->tg);
    g->exact = g->ask.cores > 0;
    g->distinct = s->job_distinct || feasible_distinct_hosts(&g->tg->constraints);
    g->feas = feasible_new(s, s->rx, g->job, g->tg);
    g->by_name = feasible_by_name(g->tg);
    g->base = mem_new(s, struct alloc_metric);
    g->ok = mem_array(s, bool, s->t->n);
    g->why = mem_array(s, const char *, s->t->n);
    g->rows = mem_array(s, uint32_t, s->n_rows);
    g->class_ok = mem_array(s, uint8_t, s->t->set->classes.n);
    g->affinity = affinity_column(s, s->rx, s->t, g->job, g->tg);
    g->base->nodes_evaluated = (int64_t)s->n_rows;
    g->base->nodes_in_pool = s->in_pool;
    g->base->node_pool = str_or(s->job->node_pool, POOL_DEFAULT);
    for (size_t i = 0; i < s->available.n; i++)
        map_put(s, g->base->nodes_available, s->available.v[i].k)->v = s->available.v[i].v;
    group_filter(s, g);
    group_powers(s, g);
    g->spread =
        spread_new(s, s->t, g->job, g->tg, &(struct spread_rows){g->rows, g->n_rows, g->count});
}

static const struct select_req no_req = {0};

void
select_stop(struct select *s, const struct allocation *a)
{
    uint32_t row = node_table_find(s->view->nodes, a->node_id);
    struct usage u = resources_of_alloc(a);

    if (row == NODES_NONE || alloc_client_terminal(a))
        return;
    node_table_use_row(s->t, row, &u, -1);
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
    node_table_use_row(s->t, row, &u, 1);
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

    node_table_use_row(s->t, row, &u, 1);
    count_alloc(s, a, row, 1);
    distinct_count(s, a, row, 1);
    change_add(s, a, row, false);
    row_touch(s, row);
}

static double
whole_score(const struct group *g, const struct heap *h, const struct cand *c)
{
    return h->parts == 0
               ? c->score
               : row_mean((struct sum){c->score, h->parts}, spread_score(g->spread, h->bucket));
}

/* The best candidate of all heaps, taken out of its own; false: there is none. */
static bool
heaps_pop(struct select *s, const struct group *g, struct heaps *hs, struct cand *ret,
          struct heap **ret_from)
{
    struct heap *best = NULL;
    struct cand top = {0};
    double lowest = 0; /* targets of spreads come before scores */

    for (size_t i = 0; i < hs->n; i++) {
        struct heap *h = &hs->v[i];
        while (h->n > 0 && h->v[0].stamp != s->stamp[h->v[0].row])
            heap_pop(h);
        if (h->n == 0)
            continue;
        struct cand c = {whole_score(g, h, &h->v[0]), h->v[0].row, h->v[0].stamp};
        double level = h->parts != 0 ? spread_level(g->spread, h->bucket) : 0;
        if (best == NULL || level < lowest || (level == lowest && heap_better(h, &c, &top))) {
            best = h;
            top = c;
            lowest = level;
        }
    }
    if (best == NULL)
        return false;
    *ret = heap_pop(best);
    *ret_from = best;
    return true;
}

/* Takes candidates until one holds. NODES_NONE when none does. */
static uint32_t
take_best(struct select *s, struct group *g, struct heaps *hs, const void *ctx,
          struct allocated_resources **ret)
{
    struct heap *from;
    struct cand c;

    while (heaps_pop(s, g, hs, &c, &from)) {
        g->why[c.row] = row_verify(s, g, c.row, ctx, ret);
        if (g->why[c.row] == NULL)
            return c.row;
    }
    return NODES_NONE;
}

static void
metric_scores(struct select *s, struct group *g, struct heaps *hs, uint32_t row,
              const struct select_req *req, struct alloc_metric *m)
{
    struct cand kept[SCORES_KEPT];
    struct heap *from[SCORES_KEPT];
    size_t n = 0;
    struct score_parts parts = {0};
    double score = row_score_exact(s, g, row, req, &parts);

    metric_score(s, m, s->t->facts[row]->node, &parts, score);
    while (n + 1 < SCORES_KEPT && heaps_pop(s, g, hs, &kept[n], &from[n])) {
        uint32_t other = kept[n++].row;
        score = row_score_exact(s, g, other, req, &parts);
        metric_score(s, m, s->t->facts[other]->node, &parts, score);
    }
    for (size_t i = 0; i < n; i++)
        heap_push(s, from[i], kept[i]);
}

/* Scores every feasible row for one request. */
static void
heap_fill(struct select *s, struct group *g, struct heap *h, const struct select_req *req)
{
    h->n = 0;
    heap_room(s, h, g->n_rows);
    for (size_t i = 0; i < g->n_rows; i++)
        h->n += row_cand(s, g, g->rows[i], req, &h->v[h->n]);
    heap_order(h);
}

/* The group's heaps, for all requests that say nothing of nodes. */
static void
group_heaps(struct select *s, struct group *g)
{
    struct heaps *hs = &g->heaps;

    hs->n = g->spread ? 2 * g->spread->n_buckets : 1;
    hs->v = mem_array(s, struct heap, hs->n);
    for (size_t i = 0; i < hs->n; i++) {
        hs->v[i].seed = s->tie_seed;
        if (g->spread == NULL)
            continue;
        hs->v[i].bucket = (uint32_t)i / 2;
        hs->v[i].parts = 1 + (int)(i % 2) + (g->affinity != NULL);
    }
    g->heaped = true;
    if (g->spread == NULL) {
        heap_fill(s, g, &hs->v[0], &no_req);
        return;
    }
    for (size_t i = 0; i < g->n_rows; i++) {
        struct cand c;
        struct heap *h = row_group_cand(s, g, g->rows[i], &c);
        if (h == NULL)
            continue;
        heap_room(s, h, h->n + 1);
        h->v[h->n++] = c;
    }
    for (size_t i = 0; i < hs->n; i++)
        heap_order(&hs->v[i]);
}

/* One node or none. */
static uint32_t
take_only(struct select *s, struct group *g, const struct select_req *req, const char *node_id,
          struct heaps *hs, struct allocated_resources **ret)
{
    uint32_t row = node_table_find(s->t, node_id);

    hs->v[0].n = 0;
    if (row == NODES_NONE || !g->ok[row])
        return NODES_NONE;
    row_heap_offer(s, g, &hs->v[0], row, req);
    return take_best(s, g, hs, s, ret);
}

static bool
is_filter(const char *why)
{
    return str_eq(why, FILTER_DISTINCT_HOSTS) || str_eq(why, FILTER_VOLUMES) ||
           str_prefix(why, "distinct_property");
}

/* Adds what the plan and the snapshot exhaust to the static counts. */
static void
metric_exhaustion(struct select *s, struct group *g, struct alloc_metric *m)
{
    for (size_t i = 0; i < g->n_rows; i++) {
        uint32_t row = g->rows[i];
        const struct node *n = s->t->facts[row]->node;
        const char *why = g->why[row] ? g->why[row] : row_exhausted(s, g, row);
        if (g->claim != NULL && !str_eq(n->id, g->claim))
            why = FILTER_VOLUMES;
        if (why == NULL)
            continue;
        if (is_filter(why))
            metric_filtered(s, m, n, why, 1);
        else
            metric_exhausted(s, m, n, why);
    }
}

void
select_place(struct select *s, const struct select_req *req, struct select_got *ret)
{
    struct group *g = group_of(s, req->tg);
    struct heap special = {.seed = s->tie_seed};
    struct heaps own = {&special, 1}, *h = &own;
    uint32_t row = NODES_NONE;

    *ret = (struct select_got){0};
    group_open(s, g);
    g->name = req->name;
    g->claim = req->claimed ? req->only : NULL;
    for (size_t i = 0; g->by_name && i < g->n_rows; i++)
        g->why[g->rows[i]] = NULL; /* of another allocation */
    if (req->preferred != NULL)
        row = take_only(s, g, req, req->preferred, h, &ret->resources);
    if (row == NODES_NONE && req->only != NULL) {
        row = take_only(s, g, req, req->only, h, &ret->resources);
    } else if (row == NODES_NONE) {
        if (req->n_penalty > 0 || g->by_name) { /* scores of this request alone */
            heap_fill(s, g, &special, req);
        } else {
            h = &g->heaps;
            if (!g->heaped)
                group_heaps(s, g);
        }
        row = take_best(s, g, h, s, &ret->resources);
    }
    ret->metrics = mem_new(s, struct alloc_metric);
    *ret->metrics = *g->base; /* its maps are not written any more */
    struct eviction ev = {0};
    if (row == NODES_NONE && evict_choose(s, g, req, &ev)) {
        ret->resources = ev.resources;
        metric_score(s, ret->metrics, s->t->facts[ev.row]->node, &ev.parts, ev.score);
        evict_apply(s, &ev, ret);
    } else if (row == NODES_NONE) {
        ret->metrics = codec_clone(s, &type_alloc_metric, g->base);
        metric_exhaustion(s, g, ret->metrics);
    } else {
        ret->node = s->t->facts[row]->node;
        metric_scores(s, g, h, row, req, ret->metrics);
        /* taken from the heap: offered again when it is booked, or now if the caller changes its
         * mind */
        s->stamp[row]++;
        if (g->heaped)
            row_group_offer(s, g, row);
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
    const struct node_facts *f = s->t->facts[row];
    const char *why;
    group_open(s, g);
    return feasible_pool(s->job, f->node) && feasible_datacenter(s->job, f->node) &&
           class_ok(g, f, s->t->set->class_no[row], &why) &&
           feasible_node(g->feas, f->node) == NULL;
}

/* Returns what class_ok() says, with the reason for every node of the class. */
static const char *
class_refusal(struct select *s, struct group *g, uint32_t row)
{
    uint32_t no = s->t->set->class_no[row];

    if (g->class_why == NULL)
        g->class_why = mem_array(s, const char *, s->t->set->classes.n);
    const struct node *n = s->t->facts[row]->node;
    const char *why = feasible_drivers(g->feas, n);
    if (why != NULL)
        return why;
    if (g->class_why[no] == NULL)
        g->class_why[no] = str_or(feasible_class(g->feas, n), "");
    return *g->class_why[no] != '\0' ? g->class_why[no] : NULL;
}

const char *
select_refusal(struct select *s, const void *ctx, const struct task_group *tg, uint32_t row,
               double *ret_score)
{
    struct group *g = group_of(s, tg);
    struct allocated_resources *got;
    struct score_parts parts = {0};

    group_open(s, g);
    const struct node *n = s->t->facts[row]->node;
    const char *why = class_refusal(s, g, row);
    if (why == NULL && feasible_has_node_part(g->feas))
        why = feasible_node(g->feas, n);
    if (why == NULL)
        why = row_verify(s, g, row, ctx, &got);
    if (why == NULL)
        *ret_score = row_score_exact(s, g, row, &no_req, &parts);
    return why;
}

size_t
select_feasible(struct select *s, const struct task_group *tg, const uint32_t **ret_rows)
{
    struct group *g = group_of(s, tg);

    group_open(s, g);
    *ret_rows = g->rows;
    return g->n_rows;
}

struct alloc_metric *
select_filtered(struct select *s, const struct task_group *tg)
{
    struct group *g = group_of(s, tg);

    group_open(s, g);
    return codec_clone(s, &type_alloc_metric, g->base);
}

bool
select_classes(struct select *s, const void *ctx, const struct task_group *tg,
               struct bool_map *elig)
{
    struct group *g = group_of(s, tg);
    const struct node_kinds *classes = &s->t->set->classes;
    char name[CLASS_TEXT];

    group_open(s, g);
    for (size_t no = 0; no < classes->n; no++) {
        if (g->class_ok[no] == CLASS_UNKNOWN)
            continue;
        __auto_type e = map_put(ctx, *elig, class_name(classes->sample[no]->node, name));
        e->v |= g->class_ok[no] == CLASS_OK;
    }
    return !feasible_escapes(g->feas);
}
