/* SPDX-License-Identifier: Apache-2.0
 *
 * Originals and replacements (see away.h).
 */
#include "server/sched/away.h"

#include <stdlib.h>
#include <string.h>

#include "api/eval.h"
#include "api/terms.h"
#include "common/mem.h"

static bool
away_runs(const struct allocation *a)
{
    return str_eq(a->client_status, ALLOC_RUNNING);
}

/* The best of the scores with which it was placed; false: it has none. */
static bool
away_score(const struct allocation *a, double *ret)
{
    bool any = false;

    for (size_t i = 0; a->metrics != NULL && i < a->metrics->score_meta_data.n; i++) {
        double s = a->metrics->score_meta_data.v[i]->norm_score;
        *ret = !any || s > *ret ? s : *ret;
        any = true;
    }
    return any;
}

static bool
best_score_keeps_original(const struct allocation *o, const struct allocation *r)
{
    double os = 0, rs = 0;
    bool has_o = away_score(o, &os), has_r = away_score(r, &rs);

    return !(has_r && (!has_o || rs > os) && (away_runs(r) || !away_runs(o)));
}

/* When a task last began; 0: it has not. */
static int64_t
away_began(const struct allocation *a, const char *task)
{
    __auto_type e = map_get(a->task_states, task);

    if (e == NULL || e->v == NULL)
        return 0;
    return e->v->last_restart > e->v->started_at ? e->v->last_restart : e->v->started_at;
}

/* Returns when the leader began, else the task that began first. */
static int64_t
running_since(const struct task_group *tg, const struct allocation *a)
{
    int64_t first = 0;

    for (size_t i = 0; i < tg->tasks.n; i++)
        if (tg->tasks.v[i]->leader)
            return away_began(a, tg->tasks.v[i]->name);
    for (size_t i = 0; i < a->task_states.n; i++) {
        int64_t t = away_began(a, a->task_states.v[i].k);
        if (t != 0 && (first == 0 || t < first))
            first = t;
    }
    return first;
}

static bool
longest_keeps_original(const struct task_group *tg, const struct allocation *o,
                       const struct allocation *r)
{
    int64_t os = running_since(tg, o), rs = running_since(tg, r);

    if (os == 0 && rs == 0)
        return best_score_keeps_original(o, r);
    if (os == 0 || rs == 0)
        return rs == 0;
    return os < rs;
}

static bool
is_newer(const struct allocation *r, const struct allocation *o)
{
    if (r->job == NULL || o->job == NULL)
        return false;
    return r->job->create_index > o->job->create_index ||
           (r->job->create_index == o->job->create_index && r->job->version > o->job->version);
}

bool
away_keeps_original(const struct task_group *tg, const struct allocation *o,
                    const struct allocation *r)
{
    const char *how = tg->disconnect != NULL ? str_or(tg->disconnect->reconcile, "") : "";

    if (alloc_client_terminal(o) || alloc_client_terminal(r)) /* S15 */
        return !alloc_client_terminal(o);
    if (away_runs(o) != away_runs(r)) /* S15: what is known to run is not stopped for what is not */
        return away_runs(o);
    if (is_newer(r, o))
        return false;
    if (str_eq(how, "keep_original"))
        return true;
    if (str_eq(how, "keep_replacement"))
        return false;
    return str_eq(how, "longest_running") ? longest_keeps_original(tg, o, r)
                                          : best_score_keeps_original(o, r);
}

bool
away_holds(const struct allocation *r, bool batch)
{
    if (alloc_server_terminal(r) || str_eq(r->client_status, ALLOC_LOST))
        return false;
    return !str_eq(r->client_status, ALLOC_COMPLETE) || (batch && alloc_ran_successfully(r));
}

/* --- nodes --- */

const char *
away_node_status(const struct node_table *nodes, const struct allocation *a)
{
    uint32_t row = node_table_find(nodes, a->node_id);

    return row != NODES_NONE ? nodes->facts[row]->node->status : NULL;
}

bool
away_node_lost(const struct node_table *nodes, const struct allocation *a)
{
    const char *st = away_node_status(nodes, a);

    return st == NULL || str_eq(st, NODE_DOWN);
}

bool
away_node_silent(const struct node_table *nodes, const struct allocation *a)
{
    return str_eq(away_node_status(nodes, a), NODE_DISCONNECTED);
}

/* --- by id --- */

struct named {
    const struct allocation *a;
    size_t at;
};

static int
named_cmp(const void *pa, const void *pb)
{
    return strcmp(((const struct named *)pa)->a->id, ((const struct named *)pb)->a->id);
}

void
away_index_init(void *ctx, struct away_index *x, const struct allocation *const *v, size_t n)
{
    struct named *s = mem_array(ctx, struct named, n + 1);

    for (size_t i = 0; i < n; i++)
        s[i] = (struct named){v[i], i};
    qsort(s, n, sizeof(*s), named_cmp);
    x->v = mem_array(ctx, const struct allocation *, n + 1);
    x->at = mem_array(ctx, size_t, n + 1);
    x->n = n;
    for (size_t i = 0; i < n; i++) {
        x->v[i] = s[i].a;
        x->at[i] = s[i].at;
    }
}

size_t
away_find(const struct away_index *x, const char *id)
{
    size_t lo = 0, hi = x->n;

    while (lo < hi && !str_empty(id)) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(x->v[mid]->id, id);
        if (c == 0)
            return x->at[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return SIZE_MAX;
}
