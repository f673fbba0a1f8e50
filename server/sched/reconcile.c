/* SPDX-License-Identifier: Apache-2.0
 *
 * The reconciler's second half (see reconcile.h; doc/scheduling.md 2.4): from the classes of a
 * group's allocations (classify.c) to what stops, changes and is placed.
 *
 * In the order of reading: surplus; changes of the specification, in place or by
 * replacement; placements, for allocations that move, failed, were lost or are missing, and for
 * canaries; run_group(), which is the order of all this for a group; jobs and groups that are not
 * wanted any more; reconcile().
 */
#include <stdlib.h>
#include <string.h>

#include "api/away.h"
#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/away.h"
#include "server/sched/classify.h"
#include "server/sched/reconcile.h"

static int
item_cmp_desc(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;
    if (a->index != b->index)
        return a->index < b->index ? 1 : -1;
    return strcmp(a->a->id, b->a->id);
}

/* An item fills a place of the group, unless it is a canary that nobody has promoted yet. */
static bool
reconcile_counts(const struct group_run *g, const struct item *it)
{
    return it->class >= CLASS_UNTAINTED && !it->stopped && !(it->canary && g->rg.canarying);
}

/* An item may go when there are too many: nothing known is stopped for an unknown one, and no
 * unknown one, unless nothing at all is wanted. */
static bool
reconcile_surplus(const struct group_run *g, const struct item *it)
{
    return reconcile_counts(g, it) && !str_eq(it->a->client_status, ALLOC_UNKNOWN);
}

/* Stops allocations that bear the name of a promoted canary, before others. How many went. */
static int64_t
stop_replaced(struct group_run *g, int64_t excess)
{
    int64_t n = 0;

    if (excess <= 0 || g->rg.canarying || g->rg.n_canaries == 0)
        return 0;
    for (size_t c = 0; c < g->n; c++)
        for (size_t i = 0; g->v[c].canary && n < excess && i < g->n; i++) {
            struct item *it = &g->v[i];
            if (it->canary || it->class != CLASS_UNTAINTED || it->stopped ||
                alloc_server_terminal(it->a) || !str_eq(it->a->name, g->v[c].a->name))
                continue;
            stop_item(g, it, DESC_NOT_NEEDED, NULL);
            n++;
        }
    ASSERT(n <= excess);
    return n;
}

/* To be replaced, not changed in place. */
static bool
is_replaced(const struct group_run *g, const struct allocation *a)
{
    enum rollout_change c = rollout_change(a->job, g->in->job, g->tg);

    return c == CHANGE_DESTRUCTIVE ||
           (c == CHANGE_INPLACE && !g->in->may_stay(g->in->arg, g->tg, a->node_id));
}

/* How many may stay: fewer are wanted by a version that has canaries only when these are promoted,
 * since that version may fail. */
static int64_t
count_before_promotion(const struct group_run *g)
{
    const struct update_strategy *u = g->rg.update;
    int64_t count = g->count;

    if (u == NULL || u->canary <= 0 || g->rg.state->promoted || count == 0)
        return count;
    for (size_t i = 0; i < g->n; i++) {
        const struct item *it = &g->v[i];
        const struct task_group *then =
            it->a->job != NULL ? job_group(it->a->job, g->tg->name) : NULL;
        if (reconcile_counts(g, it) && !it->canary && !alloc_server_terminal(it->a) &&
            then != NULL && then->count.v > count && is_replaced(g, it->a))
            count = then->count.v;
    }
    return count;
}

/* More than wanted: the ones that move first, then the failed, then the highest names. */
static void
stop_excess(struct group_run *g)
{
    static const enum class order[] = {CLASS_MIGRATE, CLASS_RESCHEDULE, CLASS_UNTAINTED};
    int64_t excess = -g->keep;

    for (size_t i = 0; i < g->n; i++) {
        struct item *it = &g->v[i];
        bool silent =
            it->class == CLASS_COVERED || (reconcile_counts(g, it) && !reconcile_surplus(g, it));
        if (g->count == 0 && silent && !it->stopped && it->class != CLASS_LOST)
            stop_item(g, it, DESC_NOT_NEEDED, NULL);
        excess += reconcile_surplus(g, it) && it->class != CLASS_LOST;
    }
    qsort(g->v, g->n, sizeof(*g->v), item_cmp_desc);
    excess -= stop_replaced(g, excess);
    for (size_t o = 0; o < ARRAY_LEN(order); o++)
        for (size_t i = 0; excess > 0 && i < g->n; i++) {
            struct item *it = &g->v[i];
            if (it->class != order[o] || !reconcile_surplus(g, it))
                continue;
            names_unset(g->names, it->index);
            excess--;
            /* an allocation that is stopped already only stops counting */
            if (alloc_server_terminal(it->a))
                it->class = CLASS_IGNORE;
            else
                stop_item(g, it, DESC_NOT_NEEDED, NULL);
        }
    /* a duplicate's name may have been freed while its twin stays */
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].class != CLASS_IGNORE && !g->v[i].stopped)
            names_set(g->names, g->v[i].index);
}

static void
update_item(struct group_run *g, struct item *it)
{
    const struct allocation *a = it->a;
    enum rollout_change c = rollout_change(a->job, g->in->job, g->tg);

    if (c == CHANGE_NONE && it->back) {
        push(g->out, g->out->updates, a, g->tg, true);
        g->du->reconnect++;
        return;
    }
    if (c == CHANGE_NONE || alloc_server_terminal(a)) {
        g->du->ignore++;
        return;
    }
    if (c == CHANGE_INPLACE && alloc_client_terminal(a)) {
        g->du->ignore++;
        return;
    }
    if (!is_replaced(g, a)) {
        push(g->out, g->out->updates, a, g->tg, it->back);
        g->du->in_place_update++;
        return;
    }
    if (it->class == CLASS_COVERED) { /* its replacement becomes the new one */
        stop_item(g, it, DESC_NOT_NEEDED, NULL);
        return;
    }
    it->destructive = true;
    g->rg.n_destructive++;
}

/* In the order of their names, as far as the round goes. */
static void
replace_some(struct group_run *g, int64_t most)
{
    for (size_t i = g->n; i-- > 0;) {
        const struct item *it = &g->v[i];
        if (!it->destructive)
            continue;
        if (most-- <= 0) {
            g->du->ignore++;
            continue;
        }
        push(g->out, g->out->places, g->tg, it->a->name, it->a, DESC_UPDATING, false);
        g->du->destructive_update++;
    }
}

/* In the place of an allocation, a new one. While canaries wait for their promotion the others stay
 * what they are: the newest version is not promoted yet. */
static void
place_for(struct group_run *g, const struct item *it, const char *stop_desc, bool reschedule)
{
    const struct allocation *a = it->a;
    const struct job *then = a->job;
    const struct task_group *tg = then != NULL ? job_group(then, g->tg->name) : NULL;
    bool stays = g->rg.canarying && !it->canary && tg != NULL &&
                 then->create_index == g->in->job->create_index &&
                 then->job_modify_index != g->in->job->job_modify_index;

    push(g->out, g->out->places, stays ? tg : g->tg, a->name, a, stop_desc, reschedule,
         alloc_canary(a), stays ? then : NULL);
}

static void
place_migrated(struct group_run *g, struct item *it)
{
    stop_item(g, it, DESC_MIGRATING, NULL);
    ASSERT(g->du->stop > 0);
    g->du->stop--;
    g->du->migrate++;
    if (FLAG(it->a, migrate_disable_placement) || it->covered || g->held)
        return;
    place_for(g, it, NULL, FLAG(it->a, reschedule));
}

/* Failed ones, each under its name. Those of a deployment that failed stay as they are. */
static int64_t
place_failed(struct group_run *g)
{
    int64_t n = 0;

    for (size_t i = g->n; i-- > 0 && !g->held;) {
        const struct item *it = &g->v[i];
        if (it->stopped || it->class != CLASS_RESCHEDULE)
            continue;
        g->rg.n_moves++;
        if (!g->rg.ready && rollout_failed_with(g->ro, it->a))
            continue;
        place_for(g, it, DESC_RESCHEDULED, true);
        g->du->place++;
        g->du->reschedule_now++;
        n++;
    }
    return n;
}

/* All that stays counts; lost ones are replaced by their names, then new names come. How many. */
static int64_t
place_missing(struct group_run *g)
{
    int64_t have = 0, n = 0;

    if (g->held)
        return 0;
    for (size_t i = 0; i < g->n; i++)
        have += reconcile_counts(g, &g->v[i]) && g->v[i].class != CLASS_LOST &&
                (g->v[i].class != CLASS_REPLACE || g->v[i].destructive);
    for (size_t i = g->n; i-- > 0 && have < g->keep;) {
        const struct item *it = &g->v[i];
        if (it->class != CLASS_REPLACE || it->stopped || it->destructive)
            continue;
        place_for(g, it, NULL, true);
        g->du->reschedule_now++;
        have++;
        n++;
    }
    for (size_t i = g->n; i-- > 0 && have < g->keep;) {
        const struct item *it = &g->v[i];
        if (it->class != CLASS_LOST || it->covered)
            continue;
        place_for(g, it, NULL, false);
        have++;
        n++;
    }
    for (; have < g->count; have++, g->rg.n_missing++) {
        if (!g->rg.ready)
            continue;
        const char *name = name_make(g->out, g->in->job_id, g->tg->name, names_next(g->names));
        push(g->out, g->out->places, g->tg, name, NULL, NULL, false);
        n++;
    }
    g->du->place += (uint64_t)n;
    return n;
}

/* Canaries take names of what they are to replace, then free ones, then those behind the count. */
static void
place_canaries(struct group_run *g)
{
    int64_t want = g->held ? 0 : rollout_canaries(g->ro, &g->rg), i = 0;
    struct names *replaced = names_new(g->out, g->count), *taken = names_new(g->out, g->count);

    for (size_t k = 0; k < g->n; k++) {
        if (g->v[k].destructive)
            names_set(replaced, g->v[k].index);
        if (g->v[k].canary)
            names_set(taken, g->v[k].index);
    }
    g->du->canary += want > 0 ? (uint64_t)want : 0;
    for (int pass = 0; pass < 3; pass++)
        for (i = pass < 2 ? 0 : g->count; want > 0 && (pass == 2 || i < g->count); i++) {
            bool fits = pass == 0 ? names_has(replaced, i) : pass == 2 || !names_has(g->names, i);
            if (!fits || names_has(taken, i))
                continue;
            names_set(taken, i);
            names_set(g->names, i);
            push(g->out, g->out->places, g->tg, name_make(g->out, g->in->job_id, g->tg->name, i),
                 NULL, NULL, false, true);
            want--;
        }
}

/* Counts the health of the deployment's allocations that stay. */
static void
look_at_health(struct group_run *g)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct item *it = &g->v[i];
        if (it->class != CLASS_UNTAINTED || it->stopped || !rollout_has(g->ro, it->a))
            continue;
        g->rg.unhealthy |= alloc_unhealthy(it->a);
        g->rg.n_unsettled += !alloc_healthy(it->a);
    }
}

static void
run_group(struct group_run *g)
{
    size_t later = g->out->marks.n;
    g->names = names_new(g->out, g->count);
    rollout_group_begin(g->ro, &g->rg, g->tg);
    classify_group(g);
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].class == CLASS_LOST)
            stop_item(g, &g->v[i], DESC_LOST, ALLOC_LOST);
    g->keep = count_before_promotion(g);
    stop_excess(g);
    uint64_t in_place = g->du->in_place_update;
    for (size_t i = g->n; i-- > 0;) {
        struct item *it = &g->v[i];
        if (it->stopped)
            continue;
        if (it->class == CLASS_UNTAINTED || it->class == CLASS_COVERED ||
            it->class == CLASS_REPLACE)
            update_item(g, it);
        g->rg.n_migrate += it->class == CLASS_MIGRATE;
    }
    g->rg.n_in_place = (int64_t)(g->du->in_place_update - in_place);
    look_at_health(g);
    place_canaries(g);
    int64_t most = rollout_limit(g->ro, &g->rg);
    int64_t placed = place_failed(g) + place_missing(g);
    replace_some(g, g->rg.ready && !g->held ? most - (placed < most ? placed : most) : 0);
    for (size_t i = g->n; g->rg.n_migrate > 0 && i-- > 0;)
        if (g->v[i].class == CLASS_MIGRATE && !g->v[i].stopped)
            place_migrated(g, &g->v[i]);
    g->rg.n_moves += placed + g->rg.n_missing + (int64_t)(g->out->marks.n - later);
    rollout_group_end(g->ro, &g->rg, placed);
}

/* Fenced, not wanted any more, of a silent node: unknown, and lost in time. False: it is not. */
static bool
stop_silent(struct recon *out, const struct recon_in *in, const struct allocation *a)
{
    const struct task_group *tg = a->job != NULL ? job_group(a->job, a->task_group) : NULL;
    bool silent = away_node_lost(in->nodes, a) || away_node_silent(in->nodes, a);

    if (!silent || alloc_client_terminal(a) || !group_fenced(tg))
        return false;
    if (alloc_expired(a, tg, away_node_status(in->nodes, a), in->now)) {
        push(out, out->stops, a, NULL, ALLOC_LOST);
    } else if (alloc_recorded(a, ALLOC_UNKNOWN) == 0) {
        push(out, out->marks, a, NULL, ALLOC_UNKNOWN);
        push(out, out->laters, a, TRIGGER_MAX_DISCONNECT, in->now + group_lost_after(tg), SIZE_MAX);
    }
    return true;
}

/* The job is stopped or gone, or no longer has the group. */
static void
stop_all(struct recon *out, const struct recon_in *in, const struct allocation *a)
{
    __auto_type e = map_put(out, out->desired, str_or(a->task_group, ""));

    if (e->v == NULL)
        e->v = mem_new(out, struct desired_updates);
    bool fenced = stop_silent(out, in, a);
    bool lost = !fenced && !alloc_client_terminal(a) && away_node_lost(in->nodes, a);
    /* a failed one is no longer to run either: it fills no place when the job starts again */
    bool over = alloc_client_terminal(a) && !str_eq(a->client_status, ALLOC_FAILED);
    if (over || (alloc_server_terminal(a) && !lost))
        return;
    push(out, out->stops, a, lost ? DESC_LOST : DESC_NOT_NEEDED, lost ? ALLOC_LOST : NULL);
    e->v->stop++;
}

struct recon *
reconcile(const void *ctx, const struct recon_in *in)
{
    struct recon *out = mem_new(ctx, struct recon);
    bool stopped = in->job == NULL || in->job->stop;
    struct rollout ro = {.ctx = out,
                         .job = in->job,
                         .latest = in->latest,
                         .priority = in->eval->priority,
                         .now = in->now,
                         .rng = in->rng};

    rollout_begin(&ro);
    for (size_t i = 0; i < in->n_allocs; i++) {
        const struct allocation *a = in->allocs[i];
        if (stopped || job_group(in->job, a->task_group) == NULL)
            stop_all(out, in, a);
        else if (alloc_server_terminal(a) && !alloc_client_terminal(a) &&
                 !stop_silent(out, in, a) && away_node_lost(in->nodes, a))
            /* it was to stop; nobody is left to report the end */
            push(out, out->stops, a, NULL, ALLOC_LOST);
    }
    for (size_t t = 0; !stopped && t < in->job->task_groups.n; t++) {
        const struct task_group *tg = in->job->task_groups.v[t];
        struct group_run g = {.in = in, .out = out, .tg = tg, .ro = &ro};
        g.count = tg->count.v > 0 ? tg->count.v : 0;
        g.batch = str_eq(in->job->type, JOB_BATCH);
        __auto_type e = map_put(out, out->desired, tg->name);
        e->v = e->v ? e->v : mem_new(out, struct desired_updates);
        g.du = e->v;
        g.v = mem_array(out, struct item, in->n_allocs);
        for (size_t i = 0; i < in->n_allocs; i++)
            if (str_eq(in->allocs[i]->task_group, tg->name))
                g.v[g.n++].a = in->allocs[i];
        run_group(&g);
    }
    rollout_end(&ro);
    if (ro.waits != NULL)
        push(out, out->laters, ro.waits, TRIGGER_ALLOC_RESCHEDULE, in->now, SIZE_MAX);
    out->deployment = ro.deployment;
    out->made = ro.made;
    out->status = ro.status;
    return out;
}
