/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: nodes. The next status is decided here, from the state at the entry's index
 * (doc/reconnect.md 1.13; rule numbers below are its).
 */
#include "api/away.h"
#include "common/duration.h"
#include "server/fsm/fsm_int.h"

/* --- what is on a node --- */

struct on_node {
    struct allocation **live;
    size_t n_live;
    bool unknown;   /* a live one is unknown */
    bool may_wait;  /* one asked to survive a disconnect and its time is not over
                       (doc/reconnect.md 1.8) */
    struct allocation **all;
    size_t n;
};

static bool
may_wait(struct apply *a, struct allocation *al)
{
    if (!str_eq(al->desired_status, ALLOC_DESIRED_RUN) || alloc_client_terminal(al))
        return false;
    int64_t lost_after = entry_lost_after(a, al);
    if (lost_after <= 0)
        return false;
    if (!str_eq(al->client_status, ALLOC_UNKNOWN))
        return true;
    int64_t since = alloc_recorded(al, ALLOC_UNKNOWN); /* S17 */
    return since != 0 && a->now - since < lost_after;
}

static struct on_node
load_node(struct apply *a, const char *id)
{
    struct on_node o = {0};
    struct allocation_list all = {NULL, 0};
    struct allocation_list live = {NULL, 0};
    struct state_iter *it = state_allocs_by_node(a->t, a->tmp, id);
    for (struct allocation *al; (al = state_next(it, a->ctx)) != NULL;) {
        list_add(a->tmp, all, al);
        if (!alloc_live(al))
            continue;
        list_add(a->tmp, live, al);
        o.unknown |= str_eq(al->client_status, ALLOC_UNKNOWN);
    }
    ASSERT(live.n <= all.n);
    for (size_t i = 0; i < live.n && !o.may_wait; i++)
        o.may_wait = may_wait(a, live.v[i]);
    o.live = live.v;
    o.n_live = live.n;
    o.all = all.v;
    o.n = all.n;
    return o;
}

/* S7: what comes back must be reported again before the node gets work. */
static void
mark_unknown(struct apply *a, const struct on_node *o)
{
    for (size_t i = 0; i < o->n_live; i++) {
        struct allocation *old = o->live[i];
        if (str_eq(old->client_status, ALLOC_UNKNOWN))
            continue;
        struct allocation *al = codec_clone(a->ctx, &type_allocation, old);
        al->client_status = ALLOC_UNKNOWN;
        al->client_description = "waiting for the returned client to report";
        if (entry_lost_after(a, al) > 0)
            entry_append_state(a, al, ALLOC_UNKNOWN);
        al->alloc_modify_index = a->index;
        entry_put_alloc(a, al, old, state_alloc_job_index(a->t, al->id));
    }
}

static struct alloc_state *
last_unknown(const struct allocation *al)
{
    size_t i = al->alloc_states.n;

    while (i-- > 0 && !str_eq(al->alloc_states.v[i]->value, ALLOC_UNKNOWN))
        ;
    return al->alloc_states.v[i];
}

/* A fenced allocation that nobody has heard of runs on with each answer that its node gets: its
 * silence begins anew with the last of them (doc/fencing.md, S17). `anew`: the job is looked at
 * now, and what was to look when it ends would be early. True: there is one. */
static bool
renew_silence(struct apply *a, const struct on_node *o, bool anew)
{
    bool any = false;

    for (size_t i = 0; i < o->n; i++) {
        struct allocation *old = o->all[i];
        const struct task_group *tg = job_group(state_alloc_job(a->t, old), old->task_group);
        bool fenced = group_fenced(tg);
        old->job = NULL;
        if (!fenced || !str_eq(old->client_status, ALLOC_UNKNOWN) ||
            alloc_recorded(old, ALLOC_UNKNOWN) == 0)
            continue;
        struct allocation *al = codec_clone(a->ctx, &type_allocation, old);
        last_unknown(al)->time = a->now;
        if (anew)
            entry_settled(a, al, TAKE(al->followup_eval_id));
        entry_put_alloc(a, al, old, state_alloc_job_index(a->t, al->id));
        any = true;
    }
    return any;
}

static void
put_node_eval(struct apply *a, const struct job *j, const char *node_id)
{
    struct evaluation *ev = entry_new_eval(a, j, TRIGGER_NODE_UPDATE);
    ev->node_id = mem_strdup(ev, node_id);
    ev->node_modify_index = a->index;
    entry_put_eval(a, ev);
}

/* Jobs that have their evaluation; HASH_CLEAR ends it. */
struct seen {
    struct place_of *jobs;
    size_t n;
};

/* True for the first time. */
static bool
node_see(struct apply *a, struct seen *s, const char *ns, const char *id)
{
    size_t at = entry_place_of(a, &s->jobs, mem_printf(a->tmp, "%s\n%s", ns, id), s->n);
    bool first = at == s->n;

    s->n += first;
    return first;
}

static bool
wants_node(const struct job *j, const struct node *n)
{
    if (!str_eq(j->node_pool, POOL_ALL) &&
        !str_eq(str_or(j->node_pool, POOL_DEFAULT), str_or(n->node_pool, POOL_DEFAULT)))
        return false;
    for (size_t i = 0; i < j->datacenters.n; i++) {
        if (str_stars(j->datacenters.v[i], n->datacenter))
            return true;
    }
    return j->datacenters.n == 0;
}

/* System jobs look at every node that is theirs, whether they run there or not. */
static void
system_evals(struct apply *a, const char *node_id, struct seen *seen)
{
    const struct node *n = state_node(a->t, a->tmp, node_id);
    if (n == NULL)
        return;
    struct job_list jobs = {NULL, 0};
    struct state_iter *it = state_jobs_by_type(a->t, a->tmp, JOB_SYSTEM);
    for (struct job *j; (j = state_next(it, a->tmp)) != NULL;) {
        if (!j->stop && wants_node(j, n) && node_see(a, seen, j->namespace, j->id))
            list_add(a->tmp, jobs, j);
    }
    for (size_t i = 0; i < jobs.n; i++)
        put_node_eval(a, jobs.v[i], node_id);
}

/* One evaluation per job that has work on the node, or should have (doc/reconnect.md 1.6), and has
 * none yet. */
static void
new_node_evals(struct apply *a, const char *node_id, const struct on_node *o, struct seen *seen)
{
    for (size_t i = 0; i < o->n; i++) {
        const struct allocation *al = o->all[i];
        const struct job *j = state_job(a->t, a->tmp, al->namespace, al->job_id);
        const struct job *of =
            j != NULL ? j : state_alloc_job(a->t, (struct allocation *)(uintptr_t)al);
        ((struct allocation *)(uintptr_t)al)->job = NULL;
        if (of == NULL || str_eq(of->type, JOB_SYSBATCH))
            continue;
        bool batch = str_eq(of->type, JOB_BATCH);
        if (batch ? alloc_client_terminal(al)
                  : alloc_client_terminal(al) && alloc_server_terminal(al))
            continue;
        if (node_see(a, seen, al->namespace, al->job_id))
            put_node_eval(a, of, node_id);
    }
    system_evals(a, node_id, seen);
}

static void
node_evals(struct apply *a, const char *node_id, const struct on_node *o)
{
    struct seen seen = {0};

    new_node_evals(a, node_id, o, &seen);
    HASH_CLEAR(hh, seen.jobs);
}

void
entry_node_evals(struct apply *a, const char *node_id)
{
    struct on_node o = load_node(a, node_id);
    node_evals(a, node_id, &o);
}

/* --- writing a node --- */

void
entry_node_event(struct apply *a, struct node *n, const char *message, const char *subsystem)
{
    struct node_event *e = type_new(n, &type_node_event);
    e->message = message;
    e->subsystem = subsystem;
    e->timestamp = a->now;
    e->create_index = a->index;
    struct node_event_list l = {NULL, 0};
    size_t skip =
        n->events.n >= STATE_NODE_EVENTS_KEPT ? n->events.n - STATE_NODE_EVENTS_KEPT + 1 : 0;
    for (size_t i = skip; i < n->events.n; i++)
        list_add(n, l, n->events.v[i]);
    list_add(n, l, e);
    n->events = l;
}

void
entry_put_node(struct apply *a, struct node *n)
{
    n->modify_index = a->index;
    if (n->create_index == 0)
        n->create_index = a->index;
    state_put(a->t, a->index, NODES, n);
    a->res->node = n;
    a->res->node_modify_index = a->index;
}

static int
no_node(struct apply *a, const char *id)
{
    return entry_refuse(a, -ERR_NOT_FOUND, "node \"%s\" not found", str_or(id, ""));
}

/* Says whether the facts are the same that decide where work may go (doc/reconnect.md 1.5). Driver
 * health counts, its time stamps do not. */
static bool
same_facts(void *tmp, const struct node *x, const struct node *y)
{
    if (!str_eq(x->datacenter, y->datacenter) || !str_eq(x->name, y->name) ||
        !str_eq(x->node_class, y->node_class) || !str_eq(x->node_pool, y->node_pool) ||
        x->drivers.n != y->drivers.n)
        return false;
    for (size_t i = 0; i < x->drivers.n; i++) {
        const struct driver_info *p = x->drivers.v[i].v;
        const struct driver_info *q = y->drivers.v[i].v;
        if (!str_eq(x->drivers.v[i].k, y->drivers.v[i].k) || (p == NULL) != (q == NULL) ||
            (p != NULL && (p->detected != q->detected || p->healthy != q->healthy)))
            return false;
    }
    struct node *s = type_new(tmp, &type_node);
    struct node *t = type_new(tmp, &type_node);
    s->attributes = x->attributes;
    s->meta = x->meta;
    s->node_resources = x->node_resources;
    s->reserved_resources = x->reserved_resources;
    s->host_volumes = x->host_volumes;
    t->attributes = y->attributes;
    t->meta = y->meta;
    t->node_resources = y->node_resources;
    t->reserved_resources = y->reserved_resources;
    t->host_volumes = y->host_volumes;
    return codec_equal(&type_node, s, t, 0);
}

/* Keeps what registering does not touch of a known node. (S2) */
static void
keep_own(struct node *n, const struct node *old)
{
    n->status = old->status;
    n->status_description = old->status_description;
    n->status_updated_at = old->status_updated_at;
    n->scheduling_eligibility = old->scheduling_eligibility;
    n->drain_strategy = old->drain_strategy;
    n->last_drain = old->last_drain;
    n->events = old->events;
    n->last_missed_heartbeat_index = old->last_missed_heartbeat_index;
    n->last_alloc_update_index = old->last_alloc_update_index;
    n->last_heard_index = old->last_heard_index;
    n->last_report = old->last_report;
    n->runs_before = old->runs_before;
    n->runs_refused = old->runs_refused;
    n->create_index = old->create_index;
    n->modify_index = old->modify_index;
}

enum { RUNS_KEPT = 8 };

static void
add_run(struct node *n, struct str_list *l, const char *run)
{
    if (str_empty(run) || str_list_has(l, run))
        return;
    struct str_list kept = {NULL, 0};
    for (size_t i = l->n < RUNS_KEPT ? 0 : 1; i < l->n; i++)
        list_add(n, kept, l->v[i]);
    list_add(n, kept, mem_strdup(n, run));
    *l = kept;
}

static void
drop_run(struct node *n, struct str_list *l, const char *run)
{
    struct str_list kept = {NULL, 0};
    for (size_t i = 0; i < l->n; i++)
        if (!str_eq(l->v[i], run))
            list_add(n, kept, l->v[i]);
    *l = kept;
}

/* Which run of an agent speaks for the node. When an agent or its machine begins again the run is
 * new, and the earlier run is silent from then on. An earlier run that registers although the node
 * is heard lives beside the later, which is of a copy of the machine then, and refused as long as
 * the node is heard (doc/fencing.md A6). */
static int
take_run(struct apply *a, struct node *n, const struct node *old)
{
    bool heard = node_responsive(old);
    const char *run = n->agent_run = str_or(n->agent_run, str_or(old->agent_run, ""));

    if (str_empty(old->agent_run) || str_eq(run, old->agent_run))
        return 0;
    if (heard && str_list_has(&old->runs_refused, run))
        return entry_refuse(
            a, -ERR_CONFLICT,
            "node \"%s\" is heard from another machine, which had the same id and secret before "
            "this copy: stop this agent, and remove client/client-id and client/secret-id of its "
            "data_dir to make it a node of its own",
            n->id);
    bool copied = heard && str_list_has(&old->runs_before, run);
    drop_run(n, &n->runs_before, run);
    drop_run(n, &n->runs_refused, run);
    add_run(n, copied ? &n->runs_refused : &n->runs_before, old->agent_run);
    if (copied)
        entry_node_event(a, n,
                         "Two machines are this node, with one id and secret: the later is refused",
                         "Cluster");
    return 0;
}

/* A miss that comes behind this entry is void (S12). That alone does not move the node's
 * ModifyIndex. */
static void
node_heard(struct apply *a, struct node *n)
{
    n->last_heard_index = a->index;
    state_put(a->t, 0, NODES, n);
}

/* The pool of a node that registers is there from then on, unless another region makes pools: then
 * the node waits for it, and is told once. */
static void
enter_pool(struct apply *a, struct node *n, const struct node *old, bool elsewhere)
{
    if (state_has_pool(a->t, n->node_pool))
        return;
    if (!elsewhere)
        entry_make_pool(a, n->node_pool, NULL);
    else if (old == NULL || !str_eq(old->node_pool, n->node_pool))
        entry_node_event(a, n, "Node registered but waiting for node pool to be created",
                         "Cluster");
}

int
intent_node_register(struct apply *a, const struct intent_node_register *in)
{
    if (in->node == NULL || str_empty(in->node->id))
        return entry_refuse(a, -ERR_INVALID, "register a node: it has no ID");
    struct node *n = codec_clone(a->ctx, &type_node, in->node);
    struct node *old = state_node(a->t, a->ctx, n->id);
    if (old == NULL) {
        n->status = NODE_INIT;
        n->scheduling_eligibility = str_or(n->scheduling_eligibility, NODE_ELIGIBLE);
        n->status_updated_at = a->now / NS_PER_S;
        n->drain_strategy = NULL;
        n->last_missed_heartbeat_index = n->last_alloc_update_index = n->last_heard_index = 0;
        n->last_report = n->create_index = 0;
        n->runs_before = n->runs_refused = (struct str_list){NULL, 0};
        n->events = (struct node_event_list){NULL, 0};
        entry_node_event(a, n, "Node registered", "Cluster");
        enter_pool(a, n, NULL, in->pool_elsewhere);
        entry_put_node(a, n);
        return 0;
    }
    if (!str_eq(old->secret_id, n->secret_id))
        return entry_refuse(a, -ERR_FORBIDDEN,
                            "node \"%s\" is registered with another secret; if the host was "
                            "reinstalled, purge the old node first",
                            n->id);
    keep_own(n, old);
    if (take_run(a, n, old) < 0)
        return a->res->err.code;
    enter_pool(a, n, old, in->pool_elsewhere);
    old->agent_run = n->agent_run; /* does not move the node's ModifyIndex */
    old->runs_before = n->runs_before;
    old->runs_refused = n->runs_refused;
    if (!node_responsive(old)) {
        struct on_node o = load_node(a, n->id);
        (void)renew_silence(a, &o, false);
    }
    bool relevant = !same_facts(a->tmp, old, n);
    if (!relevant && codec_equal(&type_node, old, n, 0)) {
        a->res->node = old;
        a->res->node_modify_index = old->modify_index;
        node_heard(a, old);
        return 0;
    }
    n->last_heard_index = a->index;
    a->eval_ids = &in->eval_ids;
    entry_put_node(a, n);
    if (relevant && str_eq(n->status, NODE_READY))
        entry_node_evals(a, n->id);
    return 0;
}

/* --- status --- */

static void
set_status(struct apply *a, struct node *n, const char *to, const char *why)
{
    bool was_responsive = node_responsive(n);
    bool was_away = node_away(n);
    bool stays = str_eq(n->status, to);
    n->status = to;
    ASSERT(node_responsive(n) || str_eq(to, NODE_DOWN) || str_eq(to, NODE_DISCONNECTED));
    if (!stays)
        n->status_updated_at = a->now / NS_PER_S;
    if (was_responsive && !node_responsive(n)) /* S5 */
        n->last_missed_heartbeat_index = a->index;
    if (!stays && str_eq(to, NODE_READY))
        n->last_missed_heartbeat_index = 0;
    if (why != NULL)
        entry_node_event(a, n, why, "Cluster");
    entry_put_node(a, n);
    if (node_away(n) != was_away)
        entry_services_away(a, n);
}

/* The leader saw no heartbeat. (S9) */
static void
node_missed(struct apply *a, struct node *n, uint64_t seen_index, struct seen *seen)
{
    if (seen_index != 0 && n->last_heard_index > seen_index)
        return; /* it was heard of since its time was over (S12) */
    if (str_eq(n->status, NODE_DOWN))
        return;
    struct on_node o = load_node(a, n->id);
    if (str_eq(n->status, NODE_DISCONNECTED) && o.may_wait) {
        entry_node_event(a, n, "Node heartbeat missed", "Cluster");
        entry_put_node(a, n);
        return;
    }
    if (node_responsive(n) && renew_silence(a, &o, true))
        o = load_node(a, n->id);
    set_status(a, n, o.may_wait ? NODE_DISCONNECTED : NODE_DOWN, "Node heartbeat missed");
    ASSERT(n->last_missed_heartbeat_index != 0); /* the gate is closed (S5) */
    new_node_evals(a, n->id, &o, seen);
}

/* Nodes that went together: each is judged by itself, and a job has one evaluation for all of them.
 */
static int
missed_together(struct apply *a, const struct intent_node_status *in)
{
    struct seen seen = {0};
    bool any = false;

    for (size_t i = 0; i <= in->node_ids.n; i++) {
        struct node *n = state_node(a->t, a->ctx, i == 0 ? in->node_id : in->node_ids.v[i - 1]);
        if (n == NULL)
            continue;
        any = true;
        node_missed(a, n, in->seen_index, &seen);
    }
    HASH_CLEAR(hh, seen.jobs);
    return any ? 0 : no_node(a, in->node_id);
}

/* Evaluations of the job that were made because nobody heard of the node, and what followed from
 * them. */
static bool
cancel_evals_of_job(struct apply *a, const struct node *n, const char *ns, const char *job_id)
{
    struct str_list gone = {NULL, 0};
    struct evaluation_list all = {NULL, 0};
    struct state_iter *it = state_evals_by_job(a->t, a->tmp, ns, job_id);
    for (struct evaluation *ev; (ev = state_next(it, a->tmp)) != NULL;)
        if (str_eq(ev->status, EVAL_PENDING))
            list_add(a->tmp, all, ev);
    for (size_t i = 0; i < all.n; i++)
        if (str_eq(all.v[i]->triggered_by, TRIGGER_NODE_UPDATE) && str_eq(all.v[i]->node_id, n->id))
            list_add(a->tmp, gone, all.v[i]->id);
    for (size_t i = 0; i < all.n; i++)
        if (str_list_has(&gone, str_or(all.v[i]->previous_eval, "")))
            list_add(a->tmp, gone, all.v[i]->id);
    for (size_t i = 0; i < gone.n; i++)
        entry_cancel_eval(a, gone.v[i], "the node heartbeats again");
    return gone.n > 0;
}

struct const_jobs {
    const struct job **v;
    size_t n;
};

/* S12: the miss has come to nothing as far as it was not acted upon. The jobs whose evaluations
 * went. */
static struct const_jobs
cancel_evals_of_miss(struct apply *a, const struct node *n, const struct on_node *o)
{
    struct const_jobs jobs = {NULL, 0}, ret = {NULL, 0};
    struct seen seen = {0};

    for (size_t i = 0; i < o->n; i++) {
        const struct allocation *al = o->all[i];
        if (!node_see(a, &seen, al->namespace, al->job_id))
            continue;
        const struct job *j = state_job(a->t, a->tmp, al->namespace, al->job_id);
        j = j != NULL ? j : state_alloc_job(a->t, o->all[i]);
        o->all[i]->job = NULL;
        if (j != NULL)
            list_add(a->tmp, jobs, j);
    }
    struct state_iter *it = state_jobs_by_type(a->t, a->tmp, JOB_SYSTEM);
    for (struct job *j; (j = state_next(it, a->tmp)) != NULL;)
        if (node_see(a, &seen, j->namespace, j->id))
            list_add(a->tmp, jobs, j);
    HASH_CLEAR(hh, seen.jobs);
    for (size_t i = 0; i < jobs.n; i++)
        if (cancel_evals_of_job(a, n, jobs.v[i]->namespace, jobs.v[i]->id))
            list_add(a->tmp, ret, jobs.v[i]);
    return ret;
}

/* The node heartbeats again: its jobs are looked at, and those whose evaluations were cancelled,
 * which may have been for other nodes as well. */
static void
evals_of_return(struct apply *a, const char *node_id, const struct on_node *o,
                const struct const_jobs *canceled)
{
    struct seen seen = {0};

    new_node_evals(a, node_id, o, &seen);
    for (size_t i = 0; i < canceled->n; i++)
        if (node_see(a, &seen, canceled->v[i]->namespace, canceled->v[i]->id))
            put_node_eval(a, canceled->v[i], node_id);
    HASH_CLEAR(hh, seen.jobs);
}

static bool
gate_is_open(const struct node *n, const struct on_node *o)
{
    return o->n_live == 0 ||
           (n->last_alloc_update_index > n->last_missed_heartbeat_index && !o->unknown);
}

bool
fsm_gate_shut(struct state_txn *t, void *ctx, const char *node_id)
{
    struct apply a = {.ctx = ctx, .tmp = ctx, .t = t};
    const struct node *n = state_node(t, ctx, node_id);
    if (n == NULL || !str_eq(n->status, NODE_INIT))
        return false;
    struct on_node o = load_node(&a, node_id);
    return !gate_is_open(n, &o) || !state_has_pool(t, n->node_pool);
}

/* The client heartbeats and wants to be ready (S6, S7, S10), or not yet; a node whose pool is not
 * there is not ready either. */
static int
node_heartbeat(struct apply *a, struct node *n, bool wants_init)
{
    struct on_node o;
    bool waits = wants_init || !state_has_pool(a->t, n->node_pool);
    if (str_eq(n->status, NODE_READY)) {
        if (wants_init)
            set_status(a, n, NODE_INIT, NULL);
        return 0;
    }
    o = load_node(a, n->id);
    if (str_eq(n->status, NODE_INIT)) {
        if (!gate_is_open(n, &o) || waits)
            return 0;
        set_status(a, n, NODE_READY, "Node is ready");
        node_evals(a, n->id, &o);
        return 0;
    }
    bool down = str_eq(n->status, NODE_DOWN);
    struct const_jobs canceled = cancel_evals_of_miss(a, n, &o);
    if (down && o.n_live == 0 && !waits) {
        set_status(a, n, NODE_READY, "Node re-registered by heartbeat");
        evals_of_return(a, n->id, &o, &canceled);
        return 0;
    }
    set_status(a, n, NODE_INIT, "Node heartbeats again; waiting for its allocations");
    mark_unknown(a, &o);
    if (!down || canceled.n > 0)
        evals_of_return(a, n->id, &o, &canceled);
    return 0;
}

/* A restored state is of another time (S7): a node is given no work, and nothing on it is known,
 * until its client has reported. Silent ones stay so. */
static void
doubt_node(struct apply *a, const char *id)
{
    struct node *n = state_node(a->t, a->ctx, id);
    if (n == NULL || !node_responsive(n))
        return;
    struct on_node o = load_node(a, id);
    n->last_missed_heartbeat_index = a->index - 1; /* whose heartbeat is answered knows this one */
    set_status(a, n, NODE_INIT,
               "The state was restored from a backup; waiting for its allocations");
    mark_unknown(a, &o);
}

void
entry_doubt_nodes(struct apply *a)
{
    struct str_list ids = {NULL, 0};
    struct state_iter *it = state_ids(a->t, a->tmp, STATE_NODES, NULL);

    for (struct node *n; (n = state_next(it, a->tmp)) != NULL;)
        list_add(a->tmp, ids, n->id);
    for (size_t i = 0; i < ids.n; i++)
        doubt_node(a, ids.v[i]);
}

int
intent_node_status(struct apply *a, const struct intent_node_status *in)
{
    a->eval_ids = &in->eval_ids;
    if (str_eq(in->status, NODE_DOWN) || str_eq(in->status, NODE_DISCONNECTED))
        return missed_together(a, in);
    struct node *n = state_node(a->t, a->ctx, in->node_id);
    if (n == NULL)
        return no_node(a, in->node_id);
    a->res->node = n;
    a->res->node_modify_index = n->modify_index;
    if (in->heard && (str_eq(in->status, NODE_READY) || str_eq(in->status, NODE_INIT)))
        node_heard(a, n);
    if (str_eq(in->status, NODE_READY) || str_eq(in->status, NODE_INIT))
        return node_heartbeat(a, n, str_eq(in->status, NODE_INIT));
    return entry_refuse(a, -ERR_INVALID, "node \"%s\": invalid status \"%s\"", n->id,
                        str_or(in->status, ""));
}

int
intent_node_eligibility(struct apply *a, const struct intent_node_eligibility *in)
{
    struct node *n = state_node(a->t, a->ctx, in->node_id);
    if (n == NULL)
        return no_node(a, in->node_id);
    bool eligible = str_eq(in->eligibility, NODE_ELIGIBLE);
    if (!eligible && !str_eq(in->eligibility, NODE_INELIGIBLE))
        return entry_refuse(a, -ERR_INVALID, "invalid scheduling eligibility \"%s\"",
                            str_or(in->eligibility, ""));
    if (eligible && n->drain_strategy != NULL)
        return entry_refuse(
            a, -ERR_CONFLICT,
            "can not set node's scheduling eligibility to eligible while it is draining");
    a->eval_ids = &in->eval_ids;
    bool was = !str_eq(n->scheduling_eligibility, NODE_INELIGIBLE);
    if (was == eligible) {
        a->res->node = n;
        a->res->node_modify_index = n->modify_index;
        return 0;
    }
    n->scheduling_eligibility = eligible ? NODE_ELIGIBLE : NODE_INELIGIBLE;
    n->status_updated_at = a->now / NS_PER_S;
    entry_node_event(a, n,
                     eligible ? "Node marked as eligible for scheduling"
                              : "Node marked as ineligible for scheduling",
                     "Cluster");
    entry_put_node(a, n);
    if (eligible)
        entry_node_evals(a, n->id);
    return 0;
}

static void
remove_node(struct apply *a, const char *id)
{
    struct on_node o = load_node(a, id);
    if (node_responsive(state_node(a->t, a->ctx, id)))
        (void)renew_silence(a, &o, true);
    (void)state_del(a->t, a->index, NODES, id);
    state_end_services(a->t, a->index, STATE_SERVICES_BY_NODE, id);
    node_evals(a, id, &o);
}

int
intent_node_purge(struct apply *a, const struct intent_node_purge *in)
{
    a->eval_ids = &in->eval_ids;
    for (size_t i = 0; i < in->node_ids.n; i++) {
        if (state_node(a->t, a->tmp, in->node_ids.v[i]) == NULL)
            return no_node(a, in->node_ids.v[i]);
    }
    for (size_t i = 0; i < in->node_ids.n; i++)
        remove_node(a, in->node_ids.v[i]);
    return 0;
}

int
intent_node_evaluate(struct apply *a, const struct intent_node_evaluate *in)
{
    struct node *n = state_node(a->t, a->tmp, in->node_id);
    if (n == NULL)
        return no_node(a, in->node_id);
    a->eval_ids = &in->eval_ids;
    a->res->node_modify_index = n->modify_index;
    entry_node_evals(a, in->node_id);
    return 0;
}

void
entry_reap_node(struct apply *a, const char *id, int64_t down_before)
{
    const struct node *n = state_node(a->t, a->tmp, id);
    if (n == NULL || !str_eq(n->status, NODE_DOWN))
        return;
    if (down_before != 0 && n->status_updated_at > down_before)
        return; /* it came back and went down again */
    struct on_node o = load_node(a, id);
    if (o.n_live == 0)
        (void)state_del(a->t, a->index, NODES, id);
}
