/* SPDX-License-Identifier: Apache-2.0
 *
 * The reconciler's first half (see reconcile.h; doc/scheduling.md 2.3, doc/reconnect.md 2.5):
 * what each allocation of a group is, before anything is decided about the group.
 *
 * In the order of reading: failures; allocations that may run on silent nodes, with the follow-up
 * evaluations of their silence; classify_item(), where the first match decides; originals that came
 * back and their replacements, of which some go (classify_settle()); the group that is held back;
 * canaries. Marks, stops and follow-ups come of this half, placements of the other.
 */
#include <stdlib.h>
#include <string.h>

#include "api/away.h"
#include "api/eval.h"
#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/away.h"
#include "server/sched/classify.h"
#include "server/sched/alloc/reschedule.h"

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

    /* an allocation that a deployment placed is placed again when its watcher says so */
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

/* Makes the follow-ups of a silence: its end, and a replacement before the end; the last mark bears
 * that id. */
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

static enum class classify_unknown(struct group_run *g, const struct item *it) {
    const struct allocation *a = it->a; const struct task_group *then = group_then(g, a);
    const char *st = away_node_status(g->in->nodes, a);
    int64_t since = alloc_recorded(a, ALLOC_UNKNOWN);

    bool fenced = group_fenced(then) && since != 0;

    if (alloc_expired(a, then, st, g->in->now) || (st == NULL && !fenced)) return CLASS_LOST;
    if (fenced && (st == NULL || str_eq(st, NODE_DOWN))) return CLASS_UNTAINTED;
    if (str_eq(st, NODE_DOWN)) return since != 0 && !group_replaces(then) ? CLASS_UNTAINTED
                                                                          : CLASS_LOST;
    bool away = str_eq(st, NODE_DISCONNECTED); if (!away && FLAG(a, migrate)) return CLASS_MIGRATE;
    if (since != 0 && str_empty(a->followup_eval_id)){push(g->out, g->out->marks, a, NULL, NULL);
                                                      follow_up_silence(g, it, since);}
else if (since != 0 && comes_early(g, since + group_lost_after(then)))
{
    follow_up(g, a, TRIGGER_MAX_DISCONNECT, since + group_lost_after(then), false);
}
    if (away && since != 0)
        return classify_silent(g, it, since);
    return it->covered ? CLASS_COVERED : CLASS_UNTAINTED; /* S8: until its client has spoken */
}

/* Classifies an allocation that was running when its node went silent. */
static enum class
classify_disconnect(struct group_run *g, const struct item *it)
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
        return classify_disconnect(g, it); /* it may run, whatever the servers know */
    if (away_node_lost(g->in->nodes, a))
        return CLASS_LOST;
    if (away_node_silent(g->in->nodes, a)) {
        bool runs = str_eq(a->client_status, ALLOC_RUNNING);
        return runs && group_lost_after(group_then(g, a)) > 0 ? classify_disconnect(g, it)
                                                              : CLASS_LOST;
    }
    return FLAG(a, migrate) ? CLASS_MIGRATE : CLASS_UNTAINTED;
}

/* First match decides (doc/scheduling.md 2.3, 2.4). */
static enum class
classify_item(struct group_run *g, const struct item *it)
{
    const struct job *job = g->in->job;
    const struct allocation *a = it->a;

    if (g->batch && alloc_terminal(a) && of_older(g, a))
        return CLASS_IGNORE;
    /* a failed one may fill its place for good, but not in a job purged and registered anew */
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
        /* an allocation that was lost or told to move did not finish, however well it stopped */
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

/* An original, and a replacement of it or of its replacement: one of the two goes. */
static void
classify_contest(struct group_run *g, struct item *o, struct item *m)
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
    stop_other(g, keep ? m : o, keep ? DESC_RECONNECTED : DESC_NOT_NEEDED, keep ? o : m);
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
classify_cover(struct group_run *g, struct item *o, struct item *m)
{
    o->covered |= away_holds(m->a, g->batch);
}

/* First: an original that came back or its replacement stays, not both (doc/reconnect.md 2.5). */
static void
classify_settle(struct group_run *g)
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
        each_ancestor(g, &x, &g->v[i], classify_cover);
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
        each_ancestor(g, &x, &g->v[i], classify_contest);
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
        it->class = it->stopped ? CLASS_IGNORE : classify_item(g, it);
        ASSERT(it->class <= CLASS_REPLACE && !it->canary);
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

void
classify_group(struct group_run *g)
{
    classify_settle(g);
    classify_all(g);
    hold_back(g);
}
