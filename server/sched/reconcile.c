/* SPDX-License-Identifier: Apache-2.0
 *
 * The reconciler (see reconcile.h; doc/scheduling.md 2.3, 2.4).
 */
#include "server/sched/reconcile.h"

#include <stdlib.h>
#include <string.h>

#include "api/eval.h"
#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/names.h"
#include "server/sched/reschedule.h"

/* --- deployments: which one is under way, what may be done in this round, when it is complete --- */

struct rollout {
    const struct recon_in *in;
    struct recon *out;
    const struct deployment *old;     /* the latest one when it is over for this version; or NULL */
    const struct deployment *current; /* of this version of the job; or NULL */
    bool paused, failed;
    bool complete;
    size_t n_groups;
};

struct rollout_group {
    const struct task_group *tg;
    const struct update_strategy *update; /* NULL: nothing is paced */
    struct deployment_state *state;       /* a copy, or a new one */
    bool existing;                        /* the deployment that is under way has it */
    bool canarying;                       /* canaries that are not promoted */
    bool ready;                           /* more may be placed */
    bool wants_canaries;
    /* what the reconciler found */
    bool had_running; /* something of this version was there */
    bool unhealthy;
    int64_t n_canaries, n_destructive, n_in_place, n_migrate, n_unsettled;
    int64_t n_missing; /* new names that are wanted */
    int64_t n_moves;   /* whatever else is not settled */
};

static void
set_status(struct rollout *r, const struct deployment *d, const char *status, const char *text)
{
    struct deployment_status_update *u = mem_new(r->out, struct deployment_status_update);

    *u = (struct deployment_status_update){d->id, status, text};
    list_add(r->out, r->out->status, u);
}

static void
rollout_begin(struct rollout *r, const struct recon_in *in, struct recon *out)
{
    const struct deployment *d = in->latest;
    const struct job *j = in->job;

    *r = (struct rollout){.in = in, .out = out, .complete = true};
    if (d == NULL)
        return;
    bool active = deployment_active(d), stopped = j == NULL || j->stop;
    bool other =
        !stopped && (d->job_create_index != j->create_index || d->job_version != j->version);
    if (active && stopped)
        set_status(r, d, DEPLOYMENT_CANCELLED, DESC_DEPLOY_STOPPED);
    else if (active && other)
        set_status(r, d, DEPLOYMENT_CANCELLED, DESC_DEPLOY_NEWER);
    if (stopped || other || str_eq(d->status, DEPLOYMENT_SUCCESSFUL)) {
        r->old = d;
        return;
    }
    r->current = out->deployment = d;
    r->paused = str_eq(d->status, DEPLOYMENT_PAUSED);
    r->failed = str_eq(d->status, DEPLOYMENT_FAILED);
}

static struct deployment_state *
state_of(const struct deployment *d, const char *group)
{
    __auto_type e = d != NULL ? map_get(d->task_groups, group) : NULL;

    return e != NULL ? e->v : NULL;
}

static void
rollout_group_begin(struct rollout *r, struct rollout_group *g, const struct task_group *tg)
{
    const struct deployment_state *had = state_of(r->current, tg->name);
    bool service = str_eq(r->in->job->type, JOB_SERVICE);
    const struct update_strategy *u = service ? tg->update : NULL;

    *g = (struct rollout_group){.tg = tg, .existing = had != NULL};
    g->update = u != NULL && u->max_parallel.v > 0 ? u : NULL;
    if (had != NULL) {
        g->state = codec_clone(r->out, &type_deployment_state, had);
    } else {
        g->state = type_new(r->out, &type_deployment_state);
        if (g->update != NULL) {
            g->state->auto_revert = u->auto_revert;
            g->state->auto_promote = u->auto_promote;
            g->state->progress_deadline = u->progress_deadline.v;
        }
    }
    g->canarying = g->state->desired_canaries != 0 && !g->state->promoted;
}

static int64_t
rollout_canaries(struct rollout *r, struct rollout_group *g)
{
    if (!g->existing)
        g->state->desired_total += g->n_destructive + g->n_in_place;
    g->wants_canaries = g->update != NULL && g->n_destructive > 0 &&
                        g->n_canaries < g->update->canary && !g->state->promoted;
    if (g->wants_canaries) {
        g->state->desired_canaries = g->update->canary;
        g->canarying = true;
    }
    return g->wants_canaries && !r->paused && !r->failed ? g->update->canary - g->n_canaries : 0;
}

static int64_t
rollout_limit(struct rollout *r, struct rollout_group *g)
{
    g->ready = !r->paused && !r->failed && !g->canarying;
    if (g->update == NULL || g->n_destructive + g->n_migrate == 0)
        return INT64_MAX;
    if (r->current == NULL)
        return g->update->max_parallel.v;
    if (!g->ready || g->unhealthy)
        return 0;
    int64_t left = g->update->max_parallel.v - g->n_unsettled;
    return left > 0 ? left : 0;
}

static void
make(struct rollout *r)
{
    const struct job *j = r->in->job;
    struct deployment *d = type_new(r->out, &type_deployment);
    char id[UUID_TEXT];

    d->id = mem_strdup(d, rng_uuid(r->in->rng, id));
    d->namespace = j->namespace;
    d->job_id = j->id;
    d->job_version = j->version;
    d->job_modify_index = j->modify_index;
    d->job_spec_modify_index = j->job_modify_index;
    d->job_create_index = j->create_index;
    d->status = DEPLOYMENT_RUNNING;
    d->status_description = DESC_DEPLOY_RUNNING;
    d->eval_priority = r->in->eval->priority;
    d->create_time = r->in->now;
    r->out->made = d;
    r->out->deployment = d;
}

/* Everything that it wants is there, and healthy. */
static bool
group_complete(const struct rollout *r, const struct rollout_group *g)
{
    const struct deployment_state *s = g->state;
    int64_t want = s->desired_total > s->desired_canaries ? s->desired_total : s->desired_canaries;

    if (r->current == NULL || g->n_destructive + g->n_in_place + g->n_migrate + g->n_moves != 0 ||
        g->wants_canaries)
        return false;
    return !g->existing || (s->healthy_allocs >= want && (s->desired_canaries == 0 || s->promoted));
}

static void
rollout_group_end(struct rollout *r, struct rollout_group *g, int64_t placed)
{
    int64_t missing = g->ready ? 0 : g->n_missing; /* in `placed` where they are placed */

    r->complete &= group_complete(r, g);
    if (g->existing)
        return;
    g->state->desired_total += placed + missing;
    bool updates = g->n_destructive != 0 || g->n_in_place != 0;
    if (g->update == NULL || g->state->desired_total == 0 || (g->had_running && !updates) ||
        r->current != NULL)
        return;
    if (r->out->made == NULL)
        make(r);
    map_put(r->out->made, r->out->made->task_groups, g->tg->name)->v = g->state;
}

static void
rollout_end(struct rollout *r)
{
    struct deployment *made = r->out->made;
    bool automatic = true;

    if (r->current != NULL && r->complete && deployment_active(r->current))
        set_status(r, r->current, DEPLOYMENT_SUCCESSFUL, DESC_DEPLOY_DONE);
    if (made == NULL || !deployment_wants_promotion(made))
        return;
    for (size_t i = 0; i < made->task_groups.n; i++)
        automatic &= made->task_groups.v[i].v->desired_canaries == 0 ||
                     made->task_groups.v[i].v->auto_promote;
    made->status_description = automatic ? DESC_DEPLOY_AUTO_PROMOTE : DESC_DEPLOY_PROMOTE;
}

/* --- whose is it --- */

static bool
rollout_has(const struct rollout *r, const struct allocation *a)
{
    return r->current != NULL && str_eq(a->deployment_id, r->current->id);
}

static bool
rollout_holds(const struct rollout *r, const struct allocation *a)
{
    return rollout_has(r, a) && deployment_active(r->current);
}

static bool
rollout_failed_with(const struct rollout *r, const struct allocation *a)
{
    return r->failed && rollout_has(r, a);
}

static bool
placed_as_canary(const struct deployment *d, const struct allocation *a, bool unpromoted)
{
    const struct deployment_state *s = state_of(d, str_or(a->task_group, ""));

    if (s == NULL || (unpromoted && s->promoted))
        return false;
    for (size_t i = 0; i < s->placed_canaries.n; i++)
        if (str_eq(s->placed_canaries.v[i], a->id))
            return true;
    return false;
}

static bool
rollout_rejects(const struct rollout *r, const struct allocation *a)
{
    return placed_as_canary(r->old, a, true) ||
           (r->failed && placed_as_canary(r->current, a, true));
}

static bool
rollout_owns_canary(const struct rollout *r, const struct allocation *a)
{
    return placed_as_canary(r->current, a, false);
}

enum class {
    CLASS_IGNORE,
    CLASS_UNTAINTED,  /* counts, and stays */
    CLASS_MIGRATE,
    CLASS_LOST,
    CLASS_RESCHEDULE, /* failed, and is to be placed again now */
};

struct item {
    const struct allocation *a;
    enum class class;
    int64_t index;
    bool stopped;
    bool canary; /* of the deployment that is under way */
    bool destructive;
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

bool
recon_node_lost(const struct node_table *nodes, const struct allocation *a)
{
    uint32_t row = node_table_find(nodes, a->node_id);

    if (row == NODES_NONE)
        return true;
    const char *st = nodes->facts[row]->node->status;
    return str_eq(st, NODE_DOWN) || str_eq(st, NODE_DISCONNECTED);
}

static bool
str_map_equal(const struct str_map *a, const struct str_map *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!str_eq(a->v[i].k, b->v[i].k) || !str_eq(a->v[i].v, b->v[i].v))
            return false;
    return true;
}

enum recon_change
recon_change(const struct job *from, const struct job *to, const struct task_group *tg)
{
    if (from == NULL)
        return CHANGE_DESTRUCTIVE;
    if (from->job_modify_index == to->job_modify_index && from->create_index == to->create_index)
        return CHANGE_NONE;
    const struct task_group *old = job_group(from, tg->name);
    if (old == NULL || !codec_equal_but_inplace(&type_task_group, old, tg))
        return CHANGE_DESTRUCTIVE;
    /* the task's environment holds the job's metadata */
    if (!str_map_equal(&from->meta, &to->meta))
        return CHANGE_DESTRUCTIVE;
    return CHANGE_INPLACE;
}

static bool
flag(const struct allocation *a, size_t offset)
{
    if (a->desired_transition == NULL)
        return false;
    const struct opt_bool *f = (const void *)((const char *)a->desired_transition + offset);
    return f->set && f->v;
}
#define FLAG(a, member) flag((a), offsetof(struct desired_transition, member))

/* Waits for its time: marked for a follow-up evaluation that is made later (followups_make). */
static void
reschedule_later(struct group_run *g, const struct allocation *a, int64_t at)
{
    /* the time travels in the mark until the windows are known */
    push(g->out, g->out->marks, a, NULL);
    struct evaluation *e = mem_new(g->out, struct evaluation);
    e->wait_until = at;
    list_add(g->out, g->out->followups, e);
    g->du->reschedule_later++;
}

static enum class
classify_failed(struct group_run *g, const struct allocation *a)
{
    int64_t at = 0;

    /* what a deployment placed is placed again when its watcher says so */
    if (rollout_holds(g->ro, a) && !FLAG(a, reschedule))
        return CLASS_UNTAINTED;
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

/* First match decides (doc/scheduling.md 2.3, 2.4). */
static enum class
classify(struct group_run *g, const struct allocation *a)
{
    const struct job *job = g->in->job;

    if (g->batch && alloc_terminal(a) && of_older(g, a))
        return CLASS_IGNORE;
    /* what failed may fill its place for good, but not in a job purged and registered anew */
    if (alloc_terminal(a) && a->job != NULL && a->job->create_index != job->create_index)
        return CLASS_IGNORE;
    /* another one fills its place already */
    if (alloc_terminal(a) && !str_empty(a->next_allocation))
        return CLASS_IGNORE;
    if (alloc_server_terminal(a)) {
        if (!g->batch)
            return CLASS_IGNORE;
        if (FLAG(a, migrate_disable_placement))
            return CLASS_UNTAINTED;
        /* one that was told to move did not finish, however well it stopped */
        return alloc_ran_successfully(a) && !FLAG(a, migrate) ? CLASS_UNTAINTED : CLASS_IGNORE;
    }
    if (str_eq(a->client_status, ALLOC_FAILED))
        return classify_failed(g, a);
    if (alloc_client_terminal(a)) {
        /* a service is to run on; a finished batch allocation has done its part */
        if (g->batch && !str_eq(a->client_status, ALLOC_LOST))
            return CLASS_UNTAINTED;
        return CLASS_IGNORE;
    }
    if (recon_node_lost(g->in->nodes, a))
        return CLASS_LOST;
    return FLAG(a, migrate) ? CLASS_MIGRATE : CLASS_UNTAINTED;
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

    for (size_t i = 0; i < g->n; i++)
        excess += counts(g, &g->v[i]) && g->v[i].class != CLASS_LOST;
    qsort(g->v, g->n, sizeof(*g->v), item_cmp_desc);
    excess -= stop_replaced(g, excess);
    for (size_t o = 0; o < ARRAY_LEN(order); o++)
        for (size_t i = 0; excess > 0 && i < g->n; i++) {
            struct item *it = &g->v[i];
            if (it->class != order[o] || it->stopped || !counts(g, it))
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
    enum recon_change c = recon_change(a->job, g->in->job, g->tg);

    if (c == CHANGE_NONE || alloc_server_terminal(a)) {
        g->du->ignore++;
        return;
    }
    if (c == CHANGE_INPLACE && alloc_client_terminal(a)) {
        g->du->ignore++;
        return;
    }
    if (c == CHANGE_INPLACE && g->in->may_stay(g->in->arg, g->tg, a->node_id)) {
        push(g->out, g->out->updates, a, g->tg);
        g->du->in_place_update++;
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
    if (FLAG(it->a, migrate_disable_placement))
        return;
    push(g->out, g->out->places, g->tg, it->a->name, it->a, NULL, FLAG(it->a, reschedule),
         alloc_canary(it->a));
}

/* Failed ones, each under its name. Those of a deployment that failed stay as they are. */
static int64_t
place_failed(struct group_run *g)
{
    int64_t n = 0;

    for (size_t i = g->n; i-- > 0;) {
        const struct item *it = &g->v[i];
        if (it->stopped || it->class != CLASS_RESCHEDULE)
            continue;
        g->rg.n_moves++;
        if (!g->rg.ready && rollout_failed_with(g->ro, it->a))
            continue;
        push(g->out, g->out->places, g->tg, it->a->name, it->a, DESC_RESCHEDULED, true, alloc_canary(it->a));
        g->du->place++;
        g->du->reschedule_now++;
        n++;
    }
    return n;
}

/* Everything that stays counts; lost ones are replaced under their names, then new names follow, unless a
 * deployment is not to place more. How many. */
static int64_t
place_missing(struct group_run *g)
{
    int64_t have = 0, n = 0;

    for (size_t i = 0; i < g->n; i++)
        have += !g->v[i].stopped && counts(g, &g->v[i]) && g->v[i].class != CLASS_LOST;
    for (size_t i = g->n; i-- > 0 && have < g->count;) {
        const struct item *it = &g->v[i];
        if (it->class != CLASS_LOST)
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

/* Canaries take the names of what they are to replace, then free ones, then those behind the count. */
static void
place_canaries(struct group_run *g)
{
    int64_t want = rollout_canaries(g->ro, &g->rg), i = 0;
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
            push(g->out, g->out->places, g->tg, name_make(g->out, g->in->job_id, g->tg->name, i), NULL, NULL,
                 false, true);
            want--;
        }
}

/* Canaries of an earlier deployment, or of one that failed, go; those of this one are known from here on. One
 * that moves or is lost is stopped: a new one takes its place. */
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
            push(g->out, g->out->stops, it->a, moves ? DESC_MIGRATING : DESC_LOST, moves ? NULL : ALLOC_LOST);
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
        it->class = classify(g, it->a);
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
    classify_all(g);
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].class == CLASS_LOST)
            stop_item(g, &g->v[i], DESC_LOST, ALLOC_LOST);
    stop_excess(g);
    uint64_t in_place = g->du->in_place_update;
    for (size_t i = g->n; i-- > 0;) {
        struct item *it = &g->v[i];
        if (it->stopped)
            continue;
        if (it->class == CLASS_UNTAINTED)
            update_item(g, it);
        g->rg.n_migrate += it->class == CLASS_MIGRATE;
    }
    g->rg.n_in_place = (int64_t)(g->du->in_place_update - in_place);
    look_at_health(g);
    place_canaries(g);
    int64_t most = rollout_limit(g->ro, &g->rg);
    int64_t placed = place_failed(g) + place_missing(g);
    replace_some(g, g->rg.ready ? most - (placed < most ? placed : most) : 0);
    for (size_t i = g->n; g->rg.n_migrate > 0 && i-- > 0;)
        if (g->v[i].class == CLASS_MIGRATE && !g->v[i].stopped)
            place_migrated(g, &g->v[i]);
    g->rg.n_moves += placed + g->rg.n_missing + (int64_t)(g->out->marks.n - later);
    rollout_group_end(g->ro, &g->rg, placed);
}

struct later {
    struct recon_mark *mark;
    struct evaluation *eval;
};

static int
later_cmp(const void *pa, const void *pb)
{
    const struct later *a = pa, *b = pb;

    if (a->eval->wait_until != b->eval->wait_until)
        return a->eval->wait_until < b->eval->wait_until ? -1 : 1;
    return strcmp(a->mark->alloc->id, b->mark->alloc->id);
}

/* One delayed evaluation per window of 5 s, and every mark gets the id of its own. */
static void
followups_make(const struct recon_in *in, struct recon *out)
{
    size_t n = out->marks.n, kept = 0;
    struct later *l = mem_array(out, struct later, n);
    struct evaluation *cur = NULL;

    for (size_t i = 0; i < n; i++)
        l[i] = (struct later){&out->marks.v[i], out->followups.v[i]};
    qsort(l, n, sizeof(*l), later_cmp);
    for (size_t i = 0; i < n; i++) {
        struct evaluation *e = l[i].eval;
        if (cur == NULL || e->wait_until - cur->wait_until > RESCHEDULE_BATCH_WINDOW) {
            char id[UUID_TEXT];
            struct eval_args x = {.id = mem_strdup(out, rng_uuid(in->rng, id)),
                                  .after = in->eval,
                                  .trigger = TRIGGER_ALLOC_RESCHEDULE};
            cur = eval_new(out, &x);
            cur->job_modify_index = in->job->modify_index;
            cur->status_description = "created for delayed rescheduling";
            cur->wait_until = e->wait_until;
            out->followups.v[kept++] = cur;
        }
        l[i].mark->eval_id = cur->id;
    }
    out->followups.n = kept;
}

/* The job is stopped or gone, or no longer has the group. */
static void
stop_all(struct recon *out, const struct recon_in *in, const struct allocation *a)
{
    __auto_type e = map_put(out, out->desired, str_or(a->task_group, ""));

    if (e->v == NULL)
        e->v = mem_new(out, struct desired_updates);
    bool lost = !alloc_client_terminal(a) && recon_node_lost(in->nodes, a);
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
    struct rollout ro;

    rollout_begin(&ro, in, out);
    for (size_t i = 0; i < in->n_allocs; i++) {
        const struct allocation *a = in->allocs[i];
        if (stopped || job_group(in->job, a->task_group) == NULL)
            stop_all(out, in, a);
        else if (alloc_server_terminal(a) && !alloc_client_terminal(a) &&
                 recon_node_lost(in->nodes, a))
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
    followups_make(in, out);
    rollout_end(&ro);
    return out;
}
