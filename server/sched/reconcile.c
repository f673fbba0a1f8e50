/* SPDX-License-Identifier: Apache-2.0
 *
 * The reconciler (see reconcile.h; doc/scheduling.md 2.3, 2.4).
 */
#include "server/sched/reconcile.h"

#include <stdlib.h>
#include <string.h>

#include "api/away.h"
#include "api/eval.h"
#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/away.h"
#include "server/sched/names.h"
#include "server/sched/reschedule.h"
#include "server/sched/rollout.h"

enum class {
    CLASS_IGNORE,
    CLASS_COVERED,    /* nobody hears of it, and a replacement fills its place */
    CLASS_UNTAINTED,  /* counts, and stays */
    CLASS_MIGRATE,
    CLASS_LOST,
    CLASS_RESCHEDULE, /* failed, and is to be placed again now */
    CLASS_REPLACE,    /* nobody hears of it: another one is to be placed now, and it stays */
};

struct item {
    const struct allocation *a;
    enum class class;
    int64_t index;
    bool stopped;
    bool canary; /* of the deployment that is under way */
    bool destructive;
    bool covered; /* another one holds its place: away_holds() */
    bool back;    /* it was unknown, runs, and is kept */
};

struct group_run {
    const struct recon_in *in;
    struct recon *out;
    const struct task_group *tg;
    struct desired_updates *du;
    struct item *v;
    size_t n;
    int64_t count;
    bool batch;
    bool held; /* nothing is placed before the time of stop_on_client_after is over */
    struct names *names;
    struct rollout *ro;
    struct rollout_group rg;
};

#define push(ctx, list, ...)                                                  \
    do {                                                                      \
        if (((list).n & ((list).n - 1)) == 0)                                 \
            (list).v = mem_realloc((ctx), (list).v, sizeof(*(list).v),        \
                                   (list).n ? (list).n * 2 : 1, "recon");     \
        (list).v[(list).n++] = (__typeof__(*(list).v)){__VA_ARGS__};          \
    } while (0)

static bool
flag(const struct allocation *a, size_t offset)
{
    const char *t = (const void *)a->desired_transition;
    const struct opt_bool *f = t ? (const void *)(t + offset) : NULL;
    return f && f->set && f->v;
}
#define FLAG(a, member) flag((a), offsetof(struct desired_transition, member))

/* A follow-up evaluation at that time; the last mark is to bear its id when `named`. */
static void
follow_up(struct group_run *g, const struct allocation *a, const char *trigger, int64_t at,
          bool named)
{
    push(g->out, g->out->laters, a, trigger, at, named ? g->out->marks.n - 1 : SIZE_MAX);
}

/* A failed one waits for its time. */
static void
reschedule_later(struct group_run *g, const struct allocation *a, int64_t at)
{
    push(g->out, g->out->marks, a, NULL, NULL);
    follow_up(g, a, TRIGGER_ALLOC_RESCHEDULE, at, true);
    g->du->reschedule_later++;
}

static enum class
classify_failed(struct group_run *g, const struct allocation *a)
{
    int64_t at = 0;

    /* what a deployment placed is placed again when its watcher says so */
    if (rollout_holds(g->ro, a) && !FLAG(a, reschedule)) {
        g->ro->waits = a;
        return CLASS_UNTAINTED;
    }
    if (FLAG(a, force_reschedule))
        return CLASS_RESCHEDULE;
    if (!reschedule_allowed(g->tg->reschedule_policy, a, &at))
        return CLASS_UNTAINTED;
    if (at - g->in->now <= RESCHEDULE_NOW_WINDOW || str_eq(a->followup_eval_id, g->in->eval->id))
        return CLASS_RESCHEDULE;
    if (str_empty(a->followup_eval_id))
        reschedule_later(g, a, at);
    return CLASS_UNTAINTED;
}

static bool
of_older(const struct group_run *g, const struct allocation *a)
{
    const struct job *job = g->in->job;

    return a->job == NULL || a->job->job_modify_index != job->job_modify_index ||
           a->job->create_index != job->create_index;
}

/* --- of nodes of which nobody hears --- */

/* The group that it was placed as. */
static const struct task_group *
group_then(const struct group_run *g, const struct allocation *a)
{
    const struct task_group *tg = a->job != NULL ? job_group(a->job, a->task_group) : NULL;

    return tg != NULL ? tg : g->tg;
}

/* May another one be placed while nobody hears of it, and when? `since`: of the silence. */
static bool
replaced_at(const struct group_run *g, const struct allocation *a, int64_t since, int64_t *ret_at)
{
    int64_t ignored;

    if (!group_replaces(group_then(g, a)) || (rollout_holds(g->ro, a) && !FLAG(a, reschedule)) ||
        !reschedule_allowed(g->tg->reschedule_policy, a, &ignored))
        return false;
    *ret_at = since + reschedule_delay(g->tg->reschedule_policy, a);
    return true;
}

/* The time has come at which another one is placed. */
static bool
silence_is_due(const struct group_run *g, const struct allocation *a, int64_t since, int64_t at)
{
    bool first = since == g->in->now && at - since <= RESCHEDULE_NOW_WINDOW;

    return at <= g->in->now || first || str_eq(a->followup_eval_id, g->in->eval->id);
}

/* What is to come: it expires, and before that it is replaced; the last mark bears that id. */
static void
follow_up_silence(struct group_run *g, const struct item *it, int64_t since)
{
    int64_t at = 0, end = since + group_lost_after(group_then(g, it->a));
    bool replaces = !it->covered && replaced_at(g, it->a, since, &at) && at < end &&
                    !silence_is_due(g, it->a, since, at);

    follow_up(g, it->a, TRIGGER_MAX_DISCONNECT, end, !replaces);
    if (!replaces)
        return;
    follow_up(g, it->a, TRIGGER_ALLOC_RESCHEDULE, at, true);
    g->du->reschedule_later++;
}

static enum class
classify_silent(struct group_run *g, const struct item *it, int64_t since)
{
    int64_t at;

    if (it->covered) /* S16 */
        return CLASS_COVERED;
    return replaced_at(g, it->a, since, &at) && silence_is_due(g, it->a, since, at) ? CLASS_REPLACE
                                                                                  : CLASS_UNTAINTED;
}

/* Made for the end of a silence that is not over: its entry is younger, or clocks went back. */
static bool
comes_early(const struct group_run *g, int64_t end)
{
    return str_eq(g->in->eval->triggered_by, TRIGGER_MAX_DISCONNECT) && end > g->in->now &&
           !g->in->is_awaited(g->in->arg, TRIGGER_MAX_DISCONNECT, end);
}

static enum class
classify_unknown(struct group_run *g, const struct item *it)
{
    const struct allocation *a = it->a;
    const struct task_group *then = group_then(g, a);
    const char *st = away_node_status(g->in->nodes, a);
    int64_t since = alloc_recorded(a, ALLOC_UNKNOWN);

    bool fenced = group_fenced(then) && since != 0;

    if (alloc_expired(a, then, g->in->now) || (st == NULL && !fenced))
        return CLASS_LOST;
    if (fenced && (st == NULL || str_eq(st, NODE_DOWN)))
        return CLASS_UNTAINTED;
    if (str_eq(st, NODE_DOWN))
        return since != 0 && !group_replaces(then) ? CLASS_UNTAINTED : CLASS_LOST;
    bool away = str_eq(st, NODE_DISCONNECTED);
    if (!away && FLAG(a, migrate))
        return CLASS_MIGRATE;
    if (since != 0 && str_empty(a->followup_eval_id)) {
        push(g->out, g->out->marks, a, NULL, NULL);
        follow_up_silence(g, it, since);
    } else if (since != 0 && comes_early(g, since + group_lost_after(then))) {
        follow_up(g, a, TRIGGER_MAX_DISCONNECT, since + group_lost_after(then), false);
    }
    if (away && since != 0)
        return classify_silent(g, it, since);
    return it->covered ? CLASS_COVERED : CLASS_UNTAINTED; /* S8: until its client has spoken */
}

/* It was running when its node went silent. */
static enum class
disconnect(struct group_run *g, const struct item *it)
{
    push(g->out, g->out->marks, it->a, NULL, ALLOC_UNKNOWN);
    follow_up_silence(g, it, g->in->now);
    g->du->disconnect++;
    return classify_silent(g, it, g->in->now);
}

static enum class
classify_live(struct group_run *g, const struct item *it)
{
    const struct allocation *a = it->a;

    if (str_eq(a->client_status, ALLOC_UNKNOWN))
        return classify_unknown(g, it);
    if (group_fenced(group_then(g, a)) &&
        (away_node_lost(g->in->nodes, a) || away_node_silent(g->in->nodes, a)))
        return disconnect(g, it); /* it may run, whatever the servers know */
    if (away_node_lost(g->in->nodes, a))
        return CLASS_LOST;
    if (away_node_silent(g->in->nodes, a)) {
        bool runs = str_eq(a->client_status, ALLOC_RUNNING);
        return runs && group_lost_after(group_then(g, a)) > 0 ? disconnect(g, it) : CLASS_LOST;
    }
    return FLAG(a, migrate) ? CLASS_MIGRATE : CLASS_UNTAINTED;
}

/* First match decides (doc/scheduling.md 2.3, 2.4). */
static enum class
classify(struct group_run *g, const struct item *it)
{
    const struct job *job = g->in->job;
    const struct allocation *a = it->a;

    if (g->batch && alloc_terminal(a) && of_older(g, a))
        return CLASS_IGNORE;
    /* what failed may fill its place for good, but not in a job purged and registered anew */
    if (alloc_terminal(a) && a->job != NULL && a->job->create_index != job->create_index)
        return CLASS_IGNORE;
    /* another one fills its place already, unless it has done its part */
    if (alloc_terminal(a) && !str_empty(a->next_allocation) &&
        !(g->batch && !alloc_server_terminal(a) && str_eq(a->client_status, ALLOC_COMPLETE)))
        return CLASS_IGNORE;
    if (alloc_server_terminal(a)) {
        if (!g->batch)
            return CLASS_IGNORE;
        if (FLAG(a, migrate_disable_placement))
            return CLASS_UNTAINTED;
        /* one that was lost or told to move did not finish, however well it stopped */
        bool cut = FLAG(a, migrate) || alloc_recorded(a, ALLOC_LOST) != 0;
        return alloc_ran_successfully(a) && !cut ? CLASS_UNTAINTED : CLASS_IGNORE;
    }
    if (str_eq(a->client_status, ALLOC_FAILED))
        return classify_failed(g, a);
    if (alloc_client_terminal(a)) {
        /* a service is to run on; a finished batch allocation has done its part */
        if (g->batch && !str_eq(a->client_status, ALLOC_LOST))
            return CLASS_UNTAINTED;
        return CLASS_IGNORE;
    }
    return classify_live(g, it);
}

static void
stop_item(struct group_run *g, struct item *it, const char *desc, const char *client_status)
{
    push(g->out, g->out->stops, it->a, desc, client_status);
    it->stopped = true;
    g->du->stop++;
}

static int
item_cmp_desc(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;
    if (a->index != b->index)
        return a->index < b->index ? 1 : -1;
    return strcmp(a->a->id, b->a->id);
}

/* It fills one of the group's places: unless it is a canary that nobody has promoted yet. */
static bool
counts(const struct group_run *g, const struct item *it)
{
    return it->class >= CLASS_UNTAINTED && !it->stopped && !(it->canary && g->rg.canarying);
}

/* It may go when there are too many: nothing known is stopped for what is not known, nor that,
 * unless nothing at all is wanted. */
static bool
surplus(const struct group_run *g, const struct item *it)
{
    return counts(g, it) && !str_eq(it->a->client_status, ALLOC_UNKNOWN);
}

/* What bears the name of a canary that was promoted goes before others. How many went. */
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
    return n;
}

/* More than wanted: the ones that move first, then the failed, then the highest names. */
static void
stop_excess(struct group_run *g)
{
    static const enum class order[] = {CLASS_MIGRATE, CLASS_RESCHEDULE, CLASS_UNTAINTED};
    int64_t excess = -g->count;

    for (size_t i = 0; i < g->n; i++) {
        struct item *it = &g->v[i];
        bool silent = it->class == CLASS_COVERED || (counts(g, it) && !surplus(g, it));
        if (g->count == 0 && silent && !it->stopped && it->class != CLASS_LOST)
            stop_item(g, it, DESC_NOT_NEEDED, NULL);
        excess += surplus(g, it) && it->class != CLASS_LOST;
    }
    qsort(g->v, g->n, sizeof(*g->v), item_cmp_desc);
    excess -= stop_replaced(g, excess);
    for (size_t o = 0; o < ARRAY_LEN(order); o++)
        for (size_t i = 0; excess > 0 && i < g->n; i++) {
            struct item *it = &g->v[i];
            if (it->class != order[o] || !surplus(g, it))
                continue;
            names_unset(g->names, it->index);
            excess--;
            /* one that is stopped already only stops counting */
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
    if (c == CHANGE_INPLACE && g->in->may_stay(g->in->arg, g->tg, a->node_id)) {
        push(g->out, g->out->updates, a, g->tg, it->back);
        g->du->in_place_update++;
        return;
    }
    if (it->class == CLASS_COVERED) { /* what replaces it becomes the new one */
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

static void
place_migrated(struct group_run *g, struct item *it)
{
    stop_item(g, it, DESC_MIGRATING, NULL);
    g->du->stop--;
    g->du->migrate++;
    if (FLAG(it->a, migrate_disable_placement) || it->covered || g->held)
        return;
    push(g->out, g->out->places, g->tg, it->a->name, it->a, NULL, FLAG(it->a, reschedule),
         alloc_canary(it->a));
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
        push(g->out, g->out->places, g->tg, it->a->name, it->a, DESC_RESCHEDULED, true,
             alloc_canary(it->a));
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
        have += counts(g, &g->v[i]) && g->v[i].class != CLASS_LOST &&
                (g->v[i].class != CLASS_REPLACE || g->v[i].destructive);
    for (size_t i = g->n; i-- > 0 && have < g->count;) {
        const struct item *it = &g->v[i];
        if (it->class != CLASS_REPLACE || it->stopped || it->destructive)
            continue;
        push(g->out, g->out->places, g->tg, it->a->name, it->a, NULL, true, alloc_canary(it->a));
        g->du->reschedule_now++;
        have++;
        n++;
    }
    for (size_t i = g->n; i-- > 0 && have < g->count;) {
        const struct item *it = &g->v[i];
        if (it->class != CLASS_LOST || it->covered)
            continue;
        push(g->out, g->out->places, g->tg, it->a->name, it->a, NULL, false, alloc_canary(it->a));
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

/* --- what came back --- */

static bool
came_back(const struct group_run *g, const struct item *it)
{
    const struct allocation *a = it->a;

    return alloc_was_unknown(a) && str_eq(a->desired_status, ALLOC_DESIRED_RUN) &&
           str_eq(a->client_status, ALLOC_RUNNING) && !away_node_lost(g->in->nodes, a) &&
           !away_node_silent(g->in->nodes, a);
}

/* An operator or a newer job has decided about it meanwhile. */
static bool
not_wanted_back(const struct group_run *g, const struct item *it)
{
    const struct allocation *a = it->a;
    bool flagged = FLAG(a, migrate) || FLAG(a, reschedule) || FLAG(a, force_reschedule);

    return of_older(g, a) || (flagged && it->covered);
}

/* One that replaced it, or what replaced that, is there as well: one of them goes. */
static void
contest(struct group_run *g, struct item *o, struct item *m)
{
    if (o->stopped || m->stopped || alloc_server_terminal(m->a))
        return;
    if (g->batch && !alloc_server_terminal(o->a) && o->a->alloc_states.n > 0 &&
        str_eq(o->a->client_status, ALLOC_COMPLETE)) {
        if (!alloc_client_terminal(m->a))
            stop_item(g, m, DESC_NOT_NEEDED, NULL); /* it has done its part */
        return;
    }
    if (!o->back)
        return;
    bool keep = away_keeps_original(g->tg, o->a, m->a);
    stop_item(g, keep ? m : o, keep ? DESC_RECONNECTED : DESC_NOT_NEEDED, NULL);
    o->back = keep;
}

/* Every item that `m` came to replace, nearest first. */
static void
each_ancestor(struct group_run *g, const struct away_index *x, struct item *m,
              void (*fn)(struct group_run *g, struct item *o, struct item *m))
{
    const char *id = m->a->previous_allocation;

    for (size_t i = 0, at; i < AWAY_CHAIN_MAX && (at = away_find(x, id)) != SIZE_MAX; i++) {
        fn(g, &g->v[at], m);
        id = g->v[at].a->previous_allocation;
    }
}

static void
cover(struct group_run *g, struct item *o, struct item *m)
{
    o->covered |= away_holds(m->a, g->batch);
}

/* First: of an original that came back and what replaced it one stays (doc/reconnect.md 2.5). */
static void
settle(struct group_run *g)
{
    const struct allocation **v = mem_array(g->out, const struct allocation *, g->n + 1);
    struct away_index x;
    bool any = false;

    for (size_t i = 0; i < g->n; i++) {
        v[i] = g->v[i].a;
        any |= v[i]->alloc_states.n > 0 || str_eq(v[i]->client_status, ALLOC_UNKNOWN) ||
               (!alloc_terminal(v[i]) && away_node_silent(g->in->nodes, v[i]));
    }
    if (!any)
        return;
    away_index_init(g->out, &x, v, g->n);
    for (size_t i = 0; i < g->n; i++)
        each_ancestor(g, &x, &g->v[i], cover);
    for (size_t i = 0; i < g->n; i++) {
        struct item *it = &g->v[i];
        it->back = came_back(g, it);
        if (it->back && not_wanted_back(g, it)) {
            it->back = false;
            stop_item(g, it, DESC_NOT_NEEDED, NULL);
        } else if (it->covered && it->a->alloc_states.n > 0 && !alloc_server_terminal(it->a) &&
                   str_eq(it->a->client_status, ALLOC_FAILED)) {
            stop_item(g, it, DESC_RESCHEDULED, ALLOC_FAILED);
        }
    }
    for (size_t i = 0; i < g->n; i++)
        each_ancestor(g, &x, &g->v[i], contest);
}

/* stop_on_client_after: nothing of the group is placed while its lost ones may run on. Who was to
 * look again may have come a moment too early, or was canceled by a heartbeat: then another one. */
static void
hold_back(struct group_run *g)
{
    int64_t most = group_holds_back(g->tg), until = 0;
    const struct allocation *last = NULL;

    for (size_t i = 0; i < g->n && most > 0; i++) {
        const struct item *it = &g->v[i];
        int64_t lost = it->class == CLASS_LOST ? g->in->now : alloc_recorded(it->a, ALLOC_LOST);
        if (lost != 0 && lost + most > until) {
            until = lost + most;
            last = it->a;
        }
    }
    g->held = until > g->in->now;
    if (g->held && !g->in->is_awaited(g->in->arg, TRIGGER_ALLOC_RESCHEDULE, until))
        follow_up(g, last, TRIGGER_ALLOC_RESCHEDULE, until, false);
}

/* Canaries of an earlier or failed deployment go; of this one those that move or are lost. */
static void
sort_canary(struct group_run *g, struct item *it)
{
    if (it->class == CLASS_IGNORE)
        return;
    if (rollout_rejects(g->ro, it->a)) {
        if (!alloc_server_terminal(it->a))
            stop_item(g, it, DESC_NOT_NEEDED, NULL);
        it->class = CLASS_IGNORE;
    } else if (rollout_owns_canary(g->ro, it->a)) {
        bool moves = it->class == CLASS_MIGRATE;
        if (moves || it->class == CLASS_LOST) {
            push(g->out, g->out->stops, it->a, moves ? DESC_MIGRATING : DESC_LOST,
                 moves ? NULL : ALLOC_LOST);
            it->stopped = true;
            it->class = CLASS_IGNORE;
        } else {
            it->canary = true;
            g->rg.n_canaries++;
        }
    }
}

static void
classify_all(struct group_run *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct item *it = &g->v[i];
        it->class = it->stopped ? CLASS_IGNORE : classify(g, it);
        it->index = name_index(it->a->name);
        g->rg.had_running |= !of_older(g, it->a);
        bool old = it->class == CLASS_IGNORE;
        sort_canary(g, it);
        if (it->class != CLASS_IGNORE)
            names_set(g->names, it->index);
        else if (old)
            g->du->ignore += g->batch && alloc_terminal(it->a) && of_older(g, it->a);
    }
}

/* Of the deployment's allocations that stay: how far they are. */
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
    settle(g);
    classify_all(g);
    hold_back(g);
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].class == CLASS_LOST)
            stop_item(g, &g->v[i], DESC_LOST, ALLOC_LOST);
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
    if (alloc_expired(a, tg, in->now)) {
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
            /* it was to stop; now nobody is left to report that it did */
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
