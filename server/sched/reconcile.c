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

/* More than wanted: the ones that move first, then the failed, then the highest names. */
static void
stop_excess(struct group_run *g)
{
    static const enum class order[] = {CLASS_MIGRATE, CLASS_RESCHEDULE, CLASS_UNTAINTED};
    int64_t excess = -g->count;

    for (size_t i = 0; i < g->n; i++)
        excess += g->v[i].class >= CLASS_UNTAINTED && g->v[i].class != CLASS_LOST;
    qsort(g->v, g->n, sizeof(*g->v), item_cmp_desc);
    for (size_t o = 0; o < ARRAY_LEN(order); o++)
        for (size_t i = 0; excess > 0 && i < g->n; i++) {
            struct item *it = &g->v[i];
            if (it->class != order[o] || it->stopped)
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
    push(g->out, g->out->places, g->tg, a->name, a, DESC_UPDATING, false);
    g->du->destructive_update++;
}

static void
place_migrated(struct group_run *g, struct item *it)
{
    stop_item(g, it, DESC_MIGRATING, NULL);
    g->du->stop--;
    g->du->migrate++;
    if (FLAG(it->a, migrate_disable_placement))
        return;
    push(g->out, g->out->places, g->tg, it->a->name, it->a, NULL, FLAG(it->a, reschedule));
}

/* Everything that stays counts; lost ones are replaced under their names, then new names follow. */
static void
place_missing(struct group_run *g)
{
    int64_t have = 0;

    for (size_t i = 0; i < g->n; i++)
        have += !g->v[i].stopped &&
                (g->v[i].class == CLASS_UNTAINTED || g->v[i].class == CLASS_MIGRATE ||
                 g->v[i].class == CLASS_RESCHEDULE);
    for (size_t i = g->n; i-- > 0 && have < g->count;) {
        const struct item *it = &g->v[i];
        if (it->class != CLASS_LOST)
            continue;
        push(g->out, g->out->places, g->tg, it->a->name, it->a, NULL, false);
        g->du->place++;
        have++;
    }
    for (; have < g->count; have++) {
        const char *name = name_make(g->out, g->in->job_id, g->tg->name, names_next(g->names));
        push(g->out, g->out->places, g->tg, name, NULL, NULL, false);
        g->du->place++;
    }
}

static void
run_group(struct group_run *g)
{
    g->names = names_new(g->out, g->count);
    for (size_t i = 0; i < g->n; i++) {
        g->v[i].class = classify(g, g->v[i].a);
        g->v[i].index = name_index(g->v[i].a->name);
        if (g->v[i].class != CLASS_IGNORE)
            names_set(g->names, g->v[i].index);
        else
            g->du->ignore += g->batch && alloc_terminal(g->v[i].a) && of_older(g, g->v[i].a);
    }
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].class == CLASS_LOST)
            stop_item(g, &g->v[i], DESC_LOST, ALLOC_LOST);
    stop_excess(g);
    size_t moved = 0;
    for (size_t i = g->n; i-- > 0;) {
        struct item *it = &g->v[i];
        if (it->stopped)
            continue;
        if (it->class == CLASS_UNTAINTED)
            update_item(g, it);
        else if (it->class == CLASS_RESCHEDULE) {
            push(g->out, g->out->places, g->tg, it->a->name, it->a, DESC_RESCHEDULED, true);
            g->du->place++;
            g->du->reschedule_now++;
        }
        moved += it->class == CLASS_MIGRATE;
    }
    place_missing(g);
    for (size_t i = g->n; moved > 0 && i-- > 0;)
        if (g->v[i].class == CLASS_MIGRATE && !g->v[i].stopped)
            place_migrated(g, &g->v[i]);
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
        struct group_run g = {.in = in, .out = out, .tg = tg};
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
    return out;
}
