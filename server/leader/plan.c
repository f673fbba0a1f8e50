/* SPDX-License-Identifier: Apache-2.0
 *
 * Plan verification (see plan.h; doc/scheduling.md 1.8, doc/reconnect.md 1.11). A plan is two
 * sorted lists, which become parts (a change each) and spans (the parts of one node). In this
 * order: loading them node by node; the check of a span against the live table; rejection, which
 * spreads to the spans whose room it takes back; units, the parts that must be in one entry; the
 * verdict; and its parts as entries.
 *
 * plan_check_step() looks at a bounded number of parts, so that no check holds up the apply thread
 * for long.
 */
#include "server/leader/plan.h"

#include <stdlib.h>
#include <string.h>

#include "api/terms.h"
#include "api/volume/volume.h"
#include "common/mem.h"
#include "server/limits.h"
#include "server/sched/device.h"
#include "server/sched/ports.h"
#include "server/sched/reconcile.h"
#include "server/sched/resources.h"

/* One change of the plan. */
struct part {
    struct allocation *a;
    bool stop;
    bool existing; /* of a placement: an update of what is on the node */
    bool dropped;
    struct part *of; /* of a stop: the placement that it is for; NULL: none */
};

/* The parts of one node: v[from .. to). */
struct span {
    size_t from, to;
    bool rejected;
};

struct plan_check {
    const void *ctx;
    const struct live *live;
    const struct quota_room *quota; /* or NULL */
    struct state_txn *txn; /* of this step */
    const struct plan *plan;
    struct part *v; /* sorted by node */
    size_t n;
    struct span *spans;
    size_t n_spans;
    size_t checked;       /* of the spans */
    struct loaded {
        size_t stops, places;
    } at; /* what is loaded of the plan */
    const char *why;      /* of the first rejection */
    struct stop_at *stops; /* sorted by id; made for the first rejection */
};

/* The place of an allocation's stop. */
struct stop_at {
    const char *id;
    size_t span, part;
};

static int
alloc_cmp(const void *pa, const void *pb)
{
    const struct allocation *a = *(struct allocation *const *)pa,
                            *b = *(struct allocation *const *)pb;
    int c = strcmp(str_or(a->node_id, ""), str_or(b->node_id, ""));

    return c != 0 ? c : strcmp(a->id, b->id);
}

void
plan_sort(struct plan *p)
{
    if (p->node_update.n > 0)
        qsort(p->node_update.v, p->node_update.n, sizeof(*p->node_update.v), alloc_cmp);
    if (p->node_allocation.n > 0)
        qsort(p->node_allocation.v, p->node_allocation.n, sizeof(*p->node_allocation.v), alloc_cmp);
}

static const char *
node_at(const struct allocation_list *l, size_t i)
{
    return i < l->n ? str_or(l->v[i]->node_id, "") : NULL;
}

/* The next change of two sorted lists, node by node, stops first; `at` moves behind it. NULL: no
 * more. */
static struct allocation *
next_change(const struct allocation_list *stops, const struct allocation_list *places,
            struct loaded *at, bool *ret_stop)
{
    const char *s = node_at(stops, at->stops), *p = node_at(places, at->places);

    ASSERT(at->stops <= stops->n && at->places <= places->n);
    ASSERT(s == NULL || at->stops == 0 || strcmp(node_at(stops, at->stops - 1), s) <= 0);
    ASSERT(p == NULL || at->places == 0 || strcmp(node_at(places, at->places - 1), p) <= 0);
    if (s == NULL && p == NULL)
        return NULL;
    *ret_stop = p == NULL || (s != NULL && strcmp(s, p) <= 0);
    return *ret_stop ? stops->v[at->stops++] : places->v[at->places++];
}

/* The next change becomes a part of its span; false: there is none. */
static bool
part_load(struct plan_check *v)
{
    struct usage u;
    bool stop;
    struct allocation *a =
        next_change(&v->plan->node_update, &v->plan->node_allocation, &v->at, &stop);

    if (a == NULL)
        return false;
    if (v->n == 0 || !str_eq(a->node_id, v->v[v->n - 1].a->node_id))
        v->spans[v->n_spans++].from = v->n;
    ASSERT(v->n_spans > 0 && v->n < v->plan->node_update.n + v->plan->node_allocation.n);
    v->v[v->n++] = (struct part){
        .a = a, .stop = stop, .existing = !stop && live_holds(v->live, a->id, a->node_id, &u)};
    v->spans[v->n_spans - 1].to = v->n;
    return true;
}

static bool
stopped_here(const struct plan_check *v, const struct span *s, const char *id)
{
    for (size_t i = s->from; i < s->to && v->v[i].stop; i++)
        if (!v->v[i].dropped && str_eq(v->v[i].a->id, id))
            return true;
    return false;
}

static bool
names_cores(const struct allocation *a)
{
    const struct allocated_resources *r = a->allocated_resources;

    for (size_t i = 0; r != NULL && i < r->tasks.n; i++)
        if (r->tasks.v[i].v && r->tasks.v[i].v->cpu && r->tasks.v[i].v->cpu->reserved_cores.n > 0)
            return true;
    return false;
}

static bool
names_ports(const struct allocation *a)
{
    const struct allocated_resources *r = a->allocated_resources;

    if (r != NULL && r->shared != NULL && (r->shared->ports.n > 0 || r->shared->networks.n > 0))
        return true;
    for (size_t i = 0; r != NULL && i < r->tasks.n; i++)
        if (r->tasks.v[i].v != NULL && r->tasks.v[i].v->networks.n > 0)
            return true;
    return false;
}

/* Returns the group of a placement that writes to volumes; NULL: to none. */
static const struct task_group *
writing_group(const struct plan_check *v, const struct allocation *a)
{
    const struct job *j = v->plan->job;
    const struct task_group *tg =
        j != NULL && str_eq(a->job_id, j->id) && str_eq(a->namespace, j->namespace)
            ? job_group(j, a->task_group)
            : NULL;

    return tg != NULL && volume_written(tg) ? tg : NULL;
}

/* Looks for one that the placement may not write to a volume beside: an allocation of the node that
 * holds something, or an earlier placement of the plan. */
static const char *
volume_check_writers(struct plan_check *v, const struct span *s, const struct part *p)
{
    auto_mem void *tmp = mem_ctx("writers");
    const struct task_group *tg = writing_group(v, p->a), *other;
    struct state_iter *it = state_allocs_by_node(v->txn, tmp, p->a->node_id);
    const char *found = NULL;

    for (struct allocation *a; (a = state_next(it, tmp)) != NULL;) {
        if (found != NULL || alloc_client_terminal(a) || str_eq(a->id, p->a->id) ||
            stopped_here(v, s, a->id))
            continue;
        const struct job *j = state_alloc_job(v->txn, a);
        other = j != NULL ? job_group(j, a->task_group) : NULL;
        if (other != NULL && volume_clash(tg, p->a->name, other, a->name))
            found = a->id;
    }
    for (size_t i = s->from; i < s->to && &v->v[i] != p && found == NULL; i++) {
        other = v->v[i].stop || v->v[i].dropped ? NULL : writing_group(v, v->v[i].a);
        if (other != NULL && volume_clash(tg, p->a->name, other, v->v[i].a->name))
            found = v->v[i].a->id;
    }
    return found != NULL ? mem_printf(v->ctx, "a volume has a writer, %s", found) : NULL;
}

static bool
take_cores(uint64_t *used, const struct allocation *a)
{
    const struct allocated_resources *r = a->allocated_resources;
    bool ok = true;

    for (size_t i = 0; r != NULL && i < r->tasks.n; i++) {
        const struct allocated_task_resources *t = r->tasks.v[i].v;
        for (size_t k = 0; t && t->cpu && k < t->cpu->reserved_cores.n; k++) {
            uint64_t id = (uint64_t)t->cpu->reserved_cores.v[k], bit = UINT64_C(1) << (id % 64);
            if (id >= PLAN_CORES_MAX || (used[id / 64] & bit) != 0)
                ok = false;
            else
                used[id / 64] |= bit;
        }
    }
    return ok;
}

/* Ports, cores, devices and volumes, exactly: against every allocation that holds something on the
 * node. */
static const char *
exact_check(struct plan_check *v, const struct span *s, const struct node *n)
{
    auto_mem void *tmp = mem_ctx("plan");
    struct ports *ports = ports_new(tmp, n);
    uint64_t cores[PLAN_CORES_MAX / 64] = {0};
    struct str_list devices = {NULL, 0};
    struct state_iter *it = state_allocs_by_node(v->txn, tmp, n->id);

    for (struct allocation *a; (a = state_next(it, tmp)) != NULL;) {
        if (alloc_client_terminal(a) || stopped_here(v, s, a->id))
            continue;
        ports_add(ports, tmp, a);
        take_cores(cores, a);
        (void)device_take(tmp, &devices, a);
    }
    for (size_t i = s->from; i < s->to; i++) {
        const struct part *p = &v->v[i];
        if (p->stop || p->existing)
            continue;
        const char *clash = ports_add(ports, tmp, p->a);
        if (clash != NULL)
            return mem_printf(v->ctx, "reserved port collision %s", clash);
        if (!take_cores(cores, p->a))
            return "cores";
        if (!device_take(tmp, &devices, p->a))
            return "device oversubscribed";
        clash = writing_group(v, p->a) != NULL ? volume_check_writers(v, s, p) : NULL;
        if (clash != NULL)
            return clash;
    }
    return NULL;
}

/* Whether what the plan adds fits what is left. */
static const char *
fit_check(struct plan_check *v, const struct span *s, uint32_t row)
{
    const struct node_table *t = v->live->nodes;
    const struct node_facts *f = t->facts[row];
    struct usage used = {t->cpu[row], t->mem[row], t->disk[row]}, u;
    int64_t allocs = t->allocs[row];
    bool exact = false;

    ASSERT(row < t->n && f != NULL);
    for (size_t i = s->from; i < s->to; i++) {
        const struct part *p = &v->v[i];
        int sign = 1;
        if (p->existing || p->dropped)
            continue;
        if (p->stop) {
            if (str_empty(p->a->desired_status) ||
                !live_holds(v->live, p->a->id, p->a->node_id, &u))
                continue;
            sign = -1;
        } else {
            u = resources_of_alloc(p->a);
            exact |= names_ports(p->a) || names_cores(p->a) || device_named(p->a) ||
                     writing_group(v, p->a) != NULL;
        }
        used.cpu += sign * u.cpu;
        used.mem += sign * u.mem;
        used.disk += sign * u.disk;
        allocs += sign;
    }
    if (f->node->node_max_allocs > 0 && allocs > f->node->node_max_allocs)
        return "max allocations";
    const char *why = resources_exhausted(&f->cap, &used);
    return why == NULL && exact ? exact_check(v, s, f->node) : why;
}

/* Says whether the node's part is only about allocations that nobody hears and that are there: each
 * may be told of a newer job (doc/reconnect.md 1.11). */
static bool
only_silent(const struct plan_check *v, const struct span *s)
{
    for (size_t i = s->from; i < s->to; i++)
        if (!v->v[i].stop && !(v->v[i].existing && str_eq(v->v[i].a->client_status, ALLOC_UNKNOWN)))
            return false;
    return true;
}

static const char *
span_check(struct plan_check *v, const struct span *s)
{
    bool places = false, new = false;

    ASSERT(s->from < s->to && s->to <= v->n);
    for (size_t i = s->from; i < s->to; i++) {
        places |= !v->v[i].stop;
        new |= !v->v[i].stop && !v->v[i].existing;
    }
    if (!places)
        return NULL;
    const char *id = v->v[s->from].a->node_id;
    uint32_t row = node_table_find(v->live->nodes, id);
    if (row == NODES_NONE)
        return "node does not exist";
    const struct node_facts *f = v->live->nodes->facts[row];
    if (!node_responsive(f->node) && !only_silent(v, s))
        return "node is not responsive";
    if (new && !f->takes_work)
        return "node does not take work";
    /* nothing happened on the node since the plan's snapshot: it was checked there */
    if (!new || live_changed(v->live, id) <= v->plan->snapshot_index)
        return NULL;
    return fit_check(v, s, row);
}

static int
stop_cmp(const void *pa, const void *pb)
{
    return strcmp(((const struct stop_at *)pa)->id, ((const struct stop_at *)pb)->id);
}

static struct span *
span_of(struct plan_check *v, const char *stop_id, struct part **ret)
{
    struct span *spans = v->spans;
    size_t n_stops = v->plan->node_update.n, k = 0;

    if (v->stops == NULL) {
        v->stops = mem_array(v->ctx, struct stop_at, n_stops + 1);
        for (size_t i = 0; i < v->n_spans; i++)
            for (size_t p = spans[i].from; p < spans[i].to; p++)
                if (v->v[p].stop)
                    v->stops[k++] = (struct stop_at){v->v[p].a->id, i, p};
        ASSERT(k == n_stops); /* each change of the plan is a part */
        qsort(v->stops, n_stops, sizeof(*v->stops), stop_cmp);
    }
    struct stop_at key = {.id = stop_id};
    const struct stop_at *at = bsearch(&key, v->stops, n_stops, sizeof(key), stop_cmp);
    if (at == NULL)
        return NULL;
    ASSERT(v->v[at->part].stop);
    *ret = &v->v[at->part];
    return &spans[at->span];
}

/* Only what stops *because* it is replaced depends on its replacement; and what is marked unknown
 * with it. */
static bool
plan_tied(const struct allocation *stop)
{
    return str_eq(stop->client_status, ALLOC_UNKNOWN) ||
           str_eq(stop->desired_description, DESC_UPDATING) ||
           str_eq(stop->desired_description, DESC_RESCHEDULED);
}

/* Rejects the span and the stops that its placements were to follow; a node that loses such a stop
 * may not have the room it was promised, so its placements go too. True when another span fell. */
static bool
span_reject(struct plan_check *v, struct span *s)
{
    bool more = false;

    s->rejected = true;
    for (size_t i = s->from; i < s->to; i++) {
        struct part *p = &v->v[i], *stop;
        if (p->stop && !str_empty(p->a->preempted_by_allocation))
            p->dropped = true; /* for nothing */
        if (p->stop || p->dropped)
            continue;
        p->dropped = true;
        if (p->existing || str_empty(p->a->previous_allocation))
            continue;
        struct span *other = span_of(v, p->a->previous_allocation, &stop);
        if (other == NULL || stop->dropped || !plan_tied(stop->a))
            continue;
        stop->dropped = true;
        if (other != s && !other->rejected)
            more |= other->rejected = true;
    }
    return more;
}

/* Makes the part of the job that an entry has: which version the allocations are of. The rest is in
 * the state. */
static struct job *
job_ref_of(const void *ctx, const struct job *job)
{
    struct job *ref = job != NULL ? mem_new(ctx, struct job) : NULL;

    if (ref != NULL) {
        ref->id = job->id;
        ref->namespace = job->namespace;
        ref->version = job->version;
        ref->job_modify_index = job->job_modify_index;
    }
    return ref;
}

/* By the placement that they are for: in the order of the parts. */
static int
tied_cmp(const void *pa, const void *pb)
{
    const struct part *a = *(struct part *const *)pa, *b = *(struct part *const *)pb;

    if (a->of != b->of)
        return a->of < b->of ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Which stops are for which placements: of what those replace, or of what makes room for them. */
static void
find_units(struct plan_check *v)
{
    struct part *stop;

    for (size_t i = 0; i < v->n && v->plan->node_update.n > 0; i++) {
        struct part *p = &v->v[i];
        if (p->stop || p->dropped)
            continue;
        if (!str_empty(p->a->previous_allocation) &&
            span_of(v, p->a->previous_allocation, &stop) != NULL)
            stop->of = p;
        for (size_t k = 0; k < p->a->preempted_allocations.n; k++)
            if (span_of(v, p->a->preempted_allocations.v[k], &stop) != NULL)
                stop->of = p;
    }
}

static void
unit_add(struct plan_verdict *ret, const struct plan_result *r)
{
    ret->units[ret->n_units++] = (struct plan_unit){r->stopped.n, r->placed.n};
}

static void
put_units(struct plan_check *v, struct plan_verdict *ret, struct plan_result *r)
{
    struct part **tied = mem_array(v->ctx, struct part *, v->n + 1);
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++)
        if (v->v[i].stop && !v->v[i].dropped && v->v[i].of != NULL)
            tied[n++] = &v->v[i];
    qsort(tied, n, sizeof(*tied), tied_cmp);
    for (size_t i = 0, t = 0; i < v->n; i++) {
        struct part *p = &v->v[i];
        if (p->dropped || (p->stop && p->of != NULL))
            continue;
        unit_add(ret, r);
        if (p->stop) {
            r->stopped.v[r->stopped.n++] = p->a;
            continue;
        }
        for (; t < n && tied[t]->of == p; t++)
            r->stopped.v[r->stopped.n++] = tied[t]->a;
        r->placed.v[r->placed.n++] = p->a;
    }
}

static struct plan_result *
result_make(struct plan_check *v, struct plan_verdict *ret)
{
    struct plan_result *r = mem_new(v->ctx, struct plan_result);

    r->eval_id = v->plan->eval_id;
    r->snapshot_index = v->plan->snapshot_index;
    r->job = job_ref_of(v->ctx, v->plan->job);
    r->stopped.v = mem_array(v->ctx, struct allocation *, v->plan->node_update.n);
    r->placed.v = mem_array(v->ctx, struct allocation *, v->plan->node_allocation.n);
    ret->units = mem_array(v->ctx, struct plan_unit, v->n + 1);
    find_units(v);
    put_units(v, ret, r);
    ret->units[ret->n_units] = (struct plan_unit){r->stopped.n, r->placed.n};
    ASSERT(r->stopped.n <= v->plan->node_update.n && r->placed.n <= v->plan->node_allocation.n);
    r->deployment = v->plan->deployment;
    r->deployment_updates = v->plan->deployment_updates;
    return r->stopped.n + r->placed.n + r->deployment_updates.n > 0 || r->deployment != NULL ? r
                                                                                             : NULL;
}

struct plan_check *
plan_check_new(const void *ctx, const struct live *live, const struct plan *plan,
               const struct quota_room *quota)
{
    struct plan_check *v = mem_new(ctx, struct plan_check);
    size_t n = plan->node_update.n + plan->node_allocation.n;

    *v = (struct plan_check){.ctx = ctx, .live = live, .plan = plan, .quota = quota};
    v->v = mem_array(ctx, struct part, n);
    v->spans = mem_array(ctx, struct span, n);
    return v;
}

static bool
is_new(const struct part *p)
{
    return !p->stop && !p->existing;
}

/* Returns what the plan adds to the namespace's quota. */
static struct quota_use
quota_wanted(const struct plan_check *v)
{
    struct quota_use sum = {0};

    for (size_t i = 0; i < v->n; i++) {
        const struct part *p = &v->v[i];
        struct usage u = {0};
        if (is_new(p))
            u = resources_of_alloc(p->a);
        else if (!p->stop || str_empty(p->a->desired_status) ||
                 !str_empty(p->a->preempted_by_allocation) ||
                 !live_holds(v->live, p->a->id, p->a->node_id, &u))
            continue;
        quota_add(&sum, &(struct quota_use){1, u.cpu, u.mem}, p->stop ? -1 : 1);
    }
    return sum;
}

static void
check_quota(struct plan_check *v)
{
    struct quota_use more = v->quota != NULL ? quota_wanted(v) : (struct quota_use){0};

    if (v->quota == NULL)
        return;
    struct str_list why = quota_exceeded(v->ctx, v->quota, &more);
    if (why.n == 0)
        return;
    v->why = v->why == NULL ? why.v[0] : v->why;
    for (size_t s = 0; s < v->n_spans; s++)
        for (size_t i = v->spans[s].from; i < v->spans[s].to; i++)
            v->spans[s].rejected |= is_new(&v->v[i]);
}

static void
plan_sum_up(struct plan_check *v, struct plan_verdict *ret)
{
    ASSERT(v->checked == v->n_spans && v->at.stops + v->at.places == v->n);
    ASSERT(v->n == v->plan->node_update.n + v->plan->node_allocation.n);
    check_quota(v);
    *ret = (struct plan_verdict){.why = v->why};
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < v->n_spans; i++)
            if (v->spans[i].rejected)
                more |= span_reject(v, &v->spans[i]);
    }
    for (size_t i = 0; i < v->n_spans; i++)
        if (v->spans[i].rejected)
            list_add(v->ctx, ret->rejected, v->v[v->spans[i].from].a->node_id);
    if (!v->plan->all_at_once || ret->rejected.n == 0)
        ret->result = result_make(v, ret);
}

bool
plan_check_step(struct plan_check *v, struct state_txn *t, size_t max, struct plan_verdict *ret)
{
    size_t done = 0;

    ASSERT(max > 0);
    v->txn = t;
    while (done < max && part_load(v))
        done++;
    while (done < max && v->checked < v->n_spans) {
        struct span *s = &v->spans[v->checked++];
        const char *why = span_check(v, s);
        s->rejected = why != NULL;
        v->why = v->why == NULL ? why : v->why;
        done += s->to - s->from;
    }
    if (done >= max)
        return false;
    plan_sum_up(v, ret);
    return true;
}

bool
plan_part(const struct plan_verdict *all, size_t max, struct plan_at *at, struct plan_result *ret)
{
    const struct plan_result *r = all->result;
    const struct plan_unit *from = &all->units[at->unit], *to = from;

    ASSERT(max > 0 && at->unit <= all->n_units);
    while (at->unit < all->n_units) {
        const struct plan_unit *next = &all->units[at->unit + 1];
        if (to != from && next->stops - from->stops + next->places - from->places > max)
            break;
        to = next;
        at->unit++;
    }
    *ret = (struct plan_result){
        .eval_id = r->eval_id,
        .snapshot_index = r->snapshot_index,
        .job = r->job,
        .stopped = {r->stopped.v + from->stops, to->stops - from->stops},
        .placed = {r->placed.v + from->places, to->places - from->places},
    };
    if (!at->begun) {
        ret->deployment = r->deployment;
        ret->deployment_updates = r->deployment_updates;
    }
    at->begun = true;
    return ret->stopped.n + ret->placed.n + ret->deployment_updates.n > 0 ||
           ret->deployment != NULL;
}
