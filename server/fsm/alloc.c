/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: allocations. Plans write the desired half, clients the other.
 *
 * First the result of a plan: what may still be written to a node, by rule S13 and the rule of a
 * single holder of a name (doc/fencing.md), and what falls with the refused; then its stops,
 * updates, placements and the evaluations that follow. Then what clients report, judged by who owns
 * the allocation and by the order of reports. Last the desired transitions (drain, restart,
 * migrate). All of this decides on the state at its entry, never on what the proposer saw.
 */
#include "api/away.h"
#include "server/fsm/fsm_int.h"

/* --- plan results --- */

/* Rule S13 at apply: may this be written to its node? */
static bool
may_write(const struct node *n, const struct allocation *al, const struct allocation *old)
{
    if (n == NULL)
        return false;
    bool update = old != NULL && !alloc_terminal(old) && str_eq(old->node_id, al->node_id);
    if (str_eq(n->status, NODE_READY))
        return node_takes_work(n) || update;
    if (str_eq(n->status, NODE_INIT))
        return update;
    const char *is = update ? old->client_status : al->client_status;
    if (str_eq(n->status, NODE_DISCONNECTED))
        return str_eq(is, ALLOC_UNKNOWN);
    return str_eq(is, ALLOC_UNKNOWN) || str_eq(is, ALLOC_LOST);
}

/* The parts of a plan that are not done, by id. */
struct judged {
    struct place_of *nodes; /* nothing of the plan is written to them */
    struct place_of *spared; /* allocations that are neither stopped nor marked */
    struct place_of
        *staying; /* allocations that the plan stops, but whose node is among the above */
    struct place_of *preempted; /* those that were */
};

static bool
alloc_has(const struct place_of *set, const char *key)
{
    const struct place_of *p;
    if (str_empty(key))
        return false;
    HASH_FIND_STR(set, key, p);
    return p != NULL;
}

static void
find_rejected(struct apply *a, const struct plan_result *in, struct judged *d)
{
    const struct node *n = NULL;
    for (size_t i = 0; i < in->placed.n; i++) {
        const struct allocation *al = in->placed.v[i];
        if (alloc_has(d->nodes, al->node_id))
            continue;
        if (n == NULL || !str_eq(n->id, al->node_id))
            n = state_node(a->t, a->tmp, al->node_id);
        const struct allocation *old = state_alloc(a->t, a->tmp, al->id);
        if (may_write(n, al, old))
            continue;
        list_add(a->ctx, a->res->rejected_nodes, mem_strdup(a->ctx, al->node_id));
        entry_place_of(a, &d->nodes, str_or(al->node_id, ""), 0);
    }
}

bool
entry_may_run(struct apply *a, struct allocation *al)
{
    const struct task_group *tg = job_group(state_alloc_job(a->t, al), al->task_group);
    al->job = NULL;
    if (!group_fenced(tg) || alloc_client_terminal(al))
        return false;
    const struct node *n = state_node(a->t, a->tmp, al->node_id);
    return !alloc_expired(al, tg, n != NULL ? n->status : NULL, a->now);
}

/* At most one (doc/fencing.md): another allocation of the name may run, or its client has not said
 * that it does not. What the plan stops as lost is lost by now. */
static bool
name_may_run(struct apply *a, const struct allocation *in, const struct job *j)
{
    const struct task_group *tg = job_group(j, in->task_group);
    if (!group_fenced(tg))
        return false;
    struct state_iter *it = state_allocs_by_job(a->t, a->tmp, in->namespace, in->job_id);
    for (struct allocation *o; (o = state_next(it, a->tmp)) != NULL;) {
        if (!str_eq(o->name, in->name) || str_eq(o->id, in->id) || alloc_client_terminal(o))
            continue;
        state_iter_end(it);
        return true;
    }
    return false;
}

/* Written since the state that the plan was made of, and not by the plan's own entry. */
static bool
is_newer(const struct apply *a, const struct plan_result *in, uint64_t modify_index)
{
    ASSERT(in->snapshot_index < a->index && modify_index <= a->index);
    return in->snapshot_index != 0 && modify_index > in->snapshot_index && modify_index < a->index;
}

/* The evaluation that was to follow is not needed any more, by what came since. */
static bool
followup_gone(struct apply *a, const char *id)
{
    const struct evaluation *ev = str_empty(id) ? NULL : state_eval(a->t, a->tmp, id);
    return ev != NULL && !str_eq(ev->status, EVAL_PENDING);
}

/* Says whether a row of a plan comes too late. It speaks of the allocation as it was: who runs may
 * have been away and back since, which the status does not tell. What was unknown already does not
 * change when its node is heard; so a node that did anything since voids what its silence was to
 * bring. */
static bool
is_stale(struct apply *a, const struct plan_result *in, const struct allocation *row,
         struct allocation *old)
{
    bool lost = str_eq(row->client_status, ALLOC_LOST);

    if (!str_eq(old->client_status, row->alloc_states.v[0]->value) ||
        is_newer(a, in, old->modify_index) || followup_gone(a, row->followup_eval_id))
        return true;
    if (!lost && !str_eq(row->client_status, ALLOC_UNKNOWN))
        return false;
    const struct node *n = state_node(a->t, a->tmp, old->node_id);
    return (n != NULL && is_newer(a, in, n->modify_index)) || (lost && entry_may_run(a, old));
}

/* Tells whether the one that was to stay is not known to run any more (S15). */
static bool
is_alone(struct apply *a, const struct allocation *row)
{
    if (str_empty(row->next_allocation))
        return false;
    const struct allocation *stays = state_alloc(a->t, a->tmp, row->next_allocation);
    const struct node *n = stays != NULL ? state_node(a->t, a->tmp, stays->node_id) : NULL;
    return n == NULL || !node_responsive(n) || !alloc_live(stays) ||
           !str_eq(stays->client_status, ALLOC_RUNNING);
}

/* Finds rows of which nothing is done, nor the placement of their replacements (S13). */
static void
find_stale(struct apply *a, const struct plan_result *in, struct judged *d)
{
    for (size_t i = 0; i < in->stopped.n; i++) {
        const struct allocation *row = in->stopped.v[i];
        bool alone = is_alone(a, row);
        if (!alone && row->alloc_states.n != 1)
            continue;
        struct allocation *old = state_alloc(a->t, a->tmp, row->id);
        if (!alone && old != NULL && !is_stale(a, in, row, old))
            continue;
        if (old != NULL && !str_empty(row->followup_eval_id))
            entry_settled(a, old, row->followup_eval_id);
        entry_place_of(a, &d->spared, row->id, 0);
        entry_place_of(a, &d->staying, row->id, 0);
        a->res->names_taken++;
    }
}

/* A refused replacement takes along what was done to its original (S13): the original is neither
 * stopped nor marked without it. What is not stopped is not replaced either. */
static void
find_tied(struct apply *a, const struct plan_result *in, struct judged *d)
{
    ASSERT(d->nodes != NULL && a->res->rejected_nodes.n > 0);
    for (size_t i = 0; i < in->placed.n; i++) {
        const struct allocation *al = in->placed.v[i];
        if (!str_empty(al->previous_allocation) && alloc_has(d->nodes, al->node_id))
            entry_place_of(a, &d->spared, al->previous_allocation, 0);
    }
    for (size_t i = 0; i < in->stopped.n; i++) {
        const struct allocation *al = in->stopped.v[i];
        if (!str_empty(al->desired_status) && alloc_has(d->nodes, al->node_id))
            entry_place_of(a, &d->staying, al->id, 0);
    }
}

static void
stop_alloc(struct apply *a, const struct plan_result *plan, const struct allocation *in)
{
    const struct allocation *old = state_alloc(a->t, a->ctx, in->id);
    if (old == NULL)
        return;
    /* nothing marks what has changed since the plan's snapshot */
    ASSERT(in->alloc_states.n != 1 || !is_newer(a, plan, old->modify_index));
    struct allocation *al = codec_clone(a->ctx, &type_allocation, old);
    if (!str_empty(in->desired_status))
        al->desired_status = mem_strdup(al, in->desired_status);
    if (!str_empty(in->desired_description))
        al->desired_description = mem_strdup(al, in->desired_description);
    if (!str_empty(in->preempted_by_allocation))
        al->preempted_by_allocation = mem_strdup(al, in->preempted_by_allocation);
    if (!str_empty(in->followup_eval_id))
        al->followup_eval_id = mem_strdup(al, in->followup_eval_id);
    /* The client may have spoken since the plan was made. */
    if (!str_empty(in->client_status) && !str_eq(in->client_status, old->client_status) &&
        !alloc_client_terminal(old)) {
        al->client_status = mem_strdup(al, in->client_status);
        al->client_description = mem_strdup(al, in->client_description);
        if (str_eq(in->client_status, ALLOC_UNKNOWN) || str_eq(in->client_status, ALLOC_LOST))
            entry_append_state(a, al, al->client_status);
    }
    al->alloc_modify_index = a->index;
    entry_put_alloc(a, al, old, state_alloc_job_index(a->t, al->id));
}

/* An update by a plan changes what the plan is about, and nothing that was written since its
 * snapshot: neither what the client owns nor what other entries want of the allocation. */
static struct allocation *
update_alloc(struct apply *a, const struct allocation *in, const struct allocation *old)
{
    struct allocation *al = codec_clone(a->ctx, &type_allocation, old);
    struct allocation *up = codec_clone(al, &type_allocation, in);
    const struct alloc_state *seen = up->alloc_states.n == 1 ? up->alloc_states.v[0] : NULL;
    al->eval_id = up->eval_id;
    al->allocated_resources = up->allocated_resources;
    al->metrics = up->metrics;
    if (!str_eq(up->deployment_id, old->deployment_id)) {
        al->deployment_id = up->deployment_id;
        al->deployment_status = up->deployment_status;
    }
    if (seen == NULL || !alloc_was_unknown(old))
        return al;
    /* it came back and is kept, if it did not go away again since; its client may report on */
    if (str_eq(seen->value, old->client_status) &&
        (seen->time == 0 || seen->time == alloc_recorded(old, ALLOC_UNKNOWN)))
        entry_append_state(a, al, old->client_status);
    else
        a->res->names_taken++;
    return al;
}

static void
link_previous(struct apply *a, const struct allocation *al)
{
    if (str_empty(al->previous_allocation))
        return;
    const struct allocation *old = state_alloc(a->t, a->ctx, al->previous_allocation);
    if (old == NULL || str_eq(old->next_allocation, al->id))
        return;
    struct allocation *prev = codec_clone(a->ctx, &type_allocation, old);
    prev->next_allocation = mem_strdup(prev, al->id);
    entry_put_alloc(a, prev, old, state_alloc_job_index(a->t, prev->id));
}

/* Another allocation of that version of the job has the place of the new one: the plan was made
 * before it was placed. An allocation of which nobody hears, or which the new one replaces, does
 * not count. */
static bool
name_taken(struct apply *a, const struct allocation *in, const struct job *j, uint64_t jmi)
{
    ASSERT(jmi != 0 && str_eq(j->id, in->job_id)); /* the version that is stored */
    bool per_node = str_eq(j->type, JOB_SYSTEM) || str_eq(j->type, JOB_SYSBATCH);
    struct state_iter *it = state_live_named(a->t, a->tmp, in, per_node ? in->node_id : NULL);
    for (struct allocation *o; (o = state_next(it, a->tmp)) != NULL;) {
        if (str_eq(o->id, in->previous_allocation) || str_eq(o->client_status, ALLOC_UNKNOWN) ||
            state_alloc_job_index(a->t, o->id) != jmi)
            continue;
        state_iter_end(it);
        return true;
    }
    return false;
}

/* Nobody has stopped the silent allocation that is to be replaced, and it changed, or its node is
 * heard again, since the plan was made: nothing is decided before its client has spoken, and then
 * anew (S8, S13). */
static bool
came_back(struct apply *a, const struct plan_result *plan, const struct allocation *in)
{
    const struct allocation *prev = state_alloc(a->t, a->tmp, in->previous_allocation);

    if (prev == NULL || !alloc_live(prev))
        return false;
    if (is_newer(a, plan, prev->modify_index))
        return true;
    if (!alloc_was_unknown(prev))
        return false;
    const struct node *n = state_node(a->t, a->tmp, prev->node_id);
    return n != NULL && node_responsive(n);
}

static struct allocation *
new_alloc(struct apply *a, const struct allocation *in)
{
    struct allocation *al = codec_clone(a->ctx, &type_allocation, in);
    al->job = NULL;
    al->desired_status = str_or(al->desired_status, ALLOC_DESIRED_RUN);
    al->client_status = str_or(al->client_status, ALLOC_PENDING);
    if (al->create_time == 0)
        al->create_time = a->now;
    return al;
}

static void
place_alloc(struct apply *a, const struct plan_result *plan, const struct allocation *in)
{
    const struct job *plan_job = plan->job;
    const struct allocation *old = state_alloc(a->t, a->ctx, in->id);
    uint64_t jmi = old != NULL ? state_alloc_job_index(a->t, in->id) : 0;
    if (plan_job != NULL && str_eq(plan_job->id, in->job_id) &&
        str_eq(plan_job->namespace, in->namespace))
        jmi = old == NULL && in->job != NULL ? in->job->job_modify_index /* an older version */
                                             : plan_job->job_modify_index;
    const struct job *j = entry_job(a, in->namespace, in->job_id);
    if (old == NULL && (j == NULL || j->stop))
        return;
    /* The version must be stored: an allocation without its job can be shown to nobody. */
    if (jmi == 0 || !state_has_job_at(a->t, in->namespace, in->job_id, jmi))
        return;
    if (old == NULL &&
        (name_taken(a, in, j, jmi) || name_may_run(a, in, j) || came_back(a, plan, in))) {
        a->res->names_taken++;
        return;
    }
    struct allocation *al = old != NULL ? update_alloc(a, in, old) : new_alloc(a, in);
    al->alloc_modify_index = a->index;
    entry_put_alloc(a, al, old, jmi);
    entry_claim_volumes(a, j, al);
    link_previous(a, al);
}

static bool
is_void(const struct judged *d, const struct allocation *al)
{
    return alloc_has(d->nodes, al->node_id) || alloc_has(d->spared, al->id);
}

/* Victims go when the allocation was placed for which they make room. */
static void
entry_judged(struct apply *a, const struct plan_result *in, struct judged *d)
{
    for (size_t i = 0; i < in->stopped.n; i++) {
        const struct allocation *al = in->stopped.v[i];
        if (!is_void(d, al) && str_empty(al->preempted_by_allocation))
            stop_alloc(a, in, al);
    }
    for (size_t i = 0; i < in->placed.n; i++) {
        const struct allocation *al = in->placed.v[i];
        if (alloc_has(d->staying, al->previous_allocation))
            a->res->names_taken++;
        else if (!is_void(d, al))
            place_alloc(a, in, al);
    }
    for (size_t i = 0; i < in->stopped.n; i++) {
        const struct allocation *al = in->stopped.v[i];
        if (is_void(d, al) || str_empty(al->preempted_by_allocation) ||
            state_alloc(a->t, a->tmp, al->preempted_by_allocation) == NULL)
            continue; /* for nothing */
        stop_alloc(a, in, al);
        entry_place_of(a, &d->preempted, al->id, i);
    }
}

/* The jobs of what was preempted are looked at again, each once. Their ids are derived from the
 * plan's. */
static void
preemption_evals(struct apply *a, const struct plan_result *in, const struct judged *d)
{
    const char *plan_eval = str_or(in->eval_id, "");
    const struct str_list base = {&plan_eval, 1};
    struct place_of *jobs = NULL;

    ASSERT(a->eval_ids == NULL && d->preempted != NULL); /* else two would derive the same ids */
    a->eval_ids = &base;
    a->n_eval_ids = 1; /* the first is the plan's own */
    for (size_t i = 0; i < in->stopped.n; i++) {
        const struct allocation *al = in->stopped.v[i];
        if (!alloc_has(d->preempted, al->id))
            continue;
        const struct job *j = entry_job(a, al->namespace, al->job_id);
        const char *key = mem_printf(a->tmp, "%s/%s", str_or(al->namespace, ""), al->job_id);
        if (j == NULL || j->stop || alloc_has(jobs, key))
            continue;
        entry_place_of(a, &jobs, key, 0);
        entry_put_eval(a, entry_new_eval(a, j, TRIGGER_PREEMPTION));
    }
    HASH_CLEAR(hh, jobs);
    a->eval_ids = NULL;
}

int
intent_plan_result(struct apply *a, const struct plan_result *in)
{
    struct judged d = {0};
    struct evaluation *ev = state_eval(a->t, a->tmp, in->eval_id);
    if (ev != NULL && str_eq(ev->status, EVAL_CANCELED))
        return 0; /* nobody wants it any more (S12) */
    a->plan_eval = in->eval_id;
    entry_plan_deployments(a, in);
    find_stale(a, in, &d);
    find_rejected(a, in, &d);
    if (d.nodes != NULL)
        find_tied(a, in, &d);
    entry_judged(a, in, &d);
    if (d.preempted != NULL)
        preemption_evals(a, in, &d);
    HASH_CLEAR(hh, d.preempted);
    HASH_CLEAR(hh, d.nodes);
    HASH_CLEAR(hh, d.spared);
    HASH_CLEAR(hh, d.staying);
    ev = state_eval(a->t, a->ctx, in->eval_id);
    if (ev != NULL) {
        ev->modify_index = a->index;
        ev->modify_time = a->now;
        state_put(a->t, a->index, EVALS, ev);
        entry_stamped(a);
        entry_touch_job(a, ev->namespace, ev->job_id);
    }
    return 0;
}

/* --- what clients report --- */

static bool
may_reschedule(struct apply *a, struct allocation *al)
{
    const struct task_group *tg = job_group(state_alloc_job(a->t, al), al->task_group);
    /* system jobs have no policy: what fails there waits for the next change of its node or job */
    const struct reschedule_policy *p = tg != NULL ? tg->reschedule_policy : NULL;
    al->job = NULL;
    return p != NULL &&
           ((p->unlimited.set && p->unlimited.v) || (p->attempts.set && p->attempts.v > 0));
}

static bool
stops_alone(struct apply *a, struct allocation *al)
{
    const struct task_group *tg = job_group(state_alloc_job(a->t, al), al->task_group);
    al->job = NULL;
    return group_holds_back(tg) > 0 || group_fenced(tg);
}

/* Says whether an allocation that was stopped has ended, and its name may be placed again. */
static bool
frees_name(struct apply *a, struct allocation *al)
{
    const struct task_group *tg = job_group(state_alloc_job(a->t, al), al->task_group);
    al->job = NULL;
    return group_fenced(tg) && alloc_server_terminal(al) && alloc_client_terminal(al);
}

/* Why a report calls for an evaluation of the job; NULL: it does not. */
static const char *
wants_eval(struct apply *a, struct allocation *al, const struct allocation *old,
           const struct job *j)
{
    if (j == NULL)
        return TRIGGER_JOB_DEREGISTER;
    if (str_eq(old->client_status, ALLOC_UNKNOWN) && !str_eq(al->client_status, ALLOC_UNKNOWN))
        return TRIGGER_RECONNECT;
    bool newly = !str_eq(old->client_status, ALLOC_FAILED);
    if (str_eq(al->client_status, ALLOC_FAILED) && newly && !alloc_server_terminal(al) &&
        str_empty(al->followup_eval_id) && may_reschedule(a, al))
        return TRIGGER_ALLOC_FAILURE;
    if (!alloc_client_terminal(old) && frees_name(a, al))
        return TRIGGER_ALLOC_STOP;
    /* a service that ended by itself (its node was alone for too long) is to run elsewhere */
    if (str_eq(j->type, JOB_SERVICE) && alloc_live(old) &&
        str_eq(al->client_status, ALLOC_COMPLETE) && stops_alone(a, al))
        return TRIGGER_ALLOC_STOP;
    return NULL;
}

/* Takes the client's word on health: whether and when. Its word on an earlier deployment is none on
 * this one. */
static void
merge_health(struct apply *a, struct allocation *al, const struct allocation *rep)
{
    const struct alloc_deployment_status *in = rep->deployment_status;
    if (in == NULL || !in->healthy.set || !str_eq(rep->deployment_id, al->deployment_id))
        return;
    if (al->deployment_status == NULL)
        al->deployment_status = type_new(al, &type_alloc_deployment_status);
    struct alloc_deployment_status *d = al->deployment_status;
    if (d->healthy.set && d->healthy.v == in->healthy.v)
        return;
    d->healthy = in->healthy;
    d->timestamp = in->timestamp;
    d->modify_index = a->index;
}

static struct allocation *
merge_report(struct apply *a, const struct allocation *old, const struct allocation *in)
{
    struct allocation *al = codec_clone(a->ctx, &type_allocation, old);
    struct allocation *rep = codec_clone(al, &type_allocation, in);
    al->client_status = str_or(rep->client_status, old->client_status);
    al->client_description = rep->client_description;
    if (rep->task_states.v != NULL)
        al->task_states = rep->task_states;
    if (rep->network_status != NULL)
        al->network_status = rep->network_status;
    merge_health(a, al, rep);
    if (str_eq(old->client_status, ALLOC_UNKNOWN) && !str_eq(al->client_status, ALLOC_UNKNOWN)) {
        /* the scheduler settles what runs again; anything else is by itself */
        if (al->alloc_states.n > 0 && !str_eq(al->client_status, ALLOC_RUNNING))
            entry_append_state(a, al, al->client_status);
    }
    return al;
}

struct eval_job {
    const struct job *job;
    const char *trigger;
};

static void
want_eval_for(struct apply *a, struct eval_job **v, size_t *n, struct eval_job ej)
{
    for (size_t i = 0; i < *n; i++) {
        if (str_eq((*v)[i].job->id, ej.job->id) &&
            str_eq((*v)[i].job->namespace, ej.job->namespace))
            return;
    }
    mem_resize(a->tmp, *v, struct eval_job, *n + 1);
    (*v)[(*n)++] = ej;
}

/* All reported allocations belong to the node, judged by our copy. (S18) */
static int
check_owner(struct apply *a, const struct intent_alloc_update *in, size_t *ret_known)
{
    *ret_known = 0;
    for (size_t i = 0; i < in->allocs.n; i++) {
        const struct allocation *old = state_alloc(a->t, a->tmp, in->allocs.v[i]->id);
        if (old == NULL)
            continue;
        if (!str_eq(old->node_id, in->node_id))
            return entry_refuse(a, -ERR_FORBIDDEN,
                                "allocation \"%s\" does not belong to node \"%s\"", old->id,
                                in->node_id);
        ++*ret_known;
    }
    return 0;
}

/* A report may lie in a connection that was cut, and come when newer ones were taken, or when its
 * node was missed since: what it says is not so any more. Of a client that does not count its
 * reports nobody knows. */
static int
check_order(struct apply *a, const struct node *n, const struct intent_alloc_update *in)
{
    uint64_t missed = n->last_missed_heartbeat_index;

    if (in->report != 0 && in->report <= n->last_report)
        return entry_refuse(a, -ERR_CONFLICT, "node \"%s\": a newer report than this one was taken",
                            n->id);
    if (in->report != 0 && in->node_index == 0)
        return entry_refuse(
            a, -ERR_CONFLICT,
            "node \"%s\": the report is of a client to which no heartbeat was answered yet: it "
            "must be made anew when one was",
            n->id);
    if (in->report != 0 && in->node_index <= missed)
        return entry_refuse(
            a, -ERR_CONFLICT,
            "node \"%s\": the report is from before it was missed: it must be made anew "
            "when a heartbeat was answered",
            n->id);
    return 0;
}

/* Says whether the report is of an allocation that has ended: it does not run again, whoever says
 * so late. */
static bool
is_over(const struct allocation *old, const struct allocation *rep)
{
    return (str_eq(old->client_status, ALLOC_COMPLETE) ||
            str_eq(old->client_status, ALLOC_FAILED)) &&
           !str_empty(rep->client_status) && !alloc_client_terminal(rep);
}

int
intent_alloc_update(struct apply *a, const struct intent_alloc_update *in)
{
    struct node *n = state_node(a->t, a->ctx, in->node_id);
    if (n == NULL)
        return entry_refuse(a, -ERR_NOT_FOUND, "node \"%s\" not found", str_or(in->node_id, ""));
    if (!node_responsive(n)) /* S4 */
        return entry_refuse(a, -ERR_CONFLICT,
                            "node \"%s\" is %s: it must heartbeat before it may report", n->id,
                            n->status);
    size_t known = 0;
    int rc = check_owner(a, in, &known);
    if (rc == 0)
        rc = check_order(a, n, in);
    if (rc < 0)
        return rc;
    a->eval_ids = &in->eval_ids;
    struct eval_job *evals = NULL;
    size_t n_evals = 0;
    for (size_t i = 0; i < in->allocs.n; i++) {
        const struct allocation *old = state_alloc(a->t, a->ctx, in->allocs.v[i]->id);
        if (old == NULL || is_over(old, in->allocs.v[i]))
            continue;
        struct allocation *al = merge_report(a, old, in->allocs.v[i]);
        if (codec_equal(&type_allocation, al, old, 0))
            continue;
        const struct job *j = entry_job(a, al->namespace, al->job_id);
        const char *why = wants_eval(a, al, old, j);
        const struct job *of = j != NULL ? j : state_alloc_job(a->t, al);
        al->job = NULL;
        if (why != NULL && of != NULL)
            want_eval_for(a, &evals, &n_evals, (struct eval_job){of, why});
        entry_put_alloc(a, al, old, state_alloc_job_index(a->t, al->id));
    }
    for (size_t i = 0; i < n_evals; i++)
        entry_put_eval(a, entry_new_eval(a, evals[i].job, evals[i].trigger));
    if (known > 0) { /* S5; does not move the node's ModifyIndex nor the table's */
        n->last_alloc_update_index = a->index;
        n->last_report = in->report != 0 ? in->report : n->last_report;
        state_put(a->t, 0, NODES, n);
    }
    return 0;
}

static bool
alloc_drains(struct apply *a, const char *node_id)
{
    const struct node *n = state_node(a->t, a->tmp, node_id);
    return n != NULL && n->drain_strategy != NULL;
}

void
entry_transition(struct apply *a, const struct allocation *old, const struct desired_transition *s)
{
    struct allocation *al = codec_clone(a->ctx, &type_allocation, old);
    struct desired_transition *d = al->desired_transition;

    if (d == NULL)
        d = al->desired_transition = type_new(al, &type_desired_transition);
    if (s->migrate.set)
        d->migrate = s->migrate;
    if (s->reschedule.set)
        d->reschedule = s->reschedule;
    if (s->force_reschedule.set)
        d->force_reschedule = s->force_reschedule;
    if (s->no_shutdown_delay.set)
        d->no_shutdown_delay = s->no_shutdown_delay;
    if (s->migrate_disable_placement.set)
        d->migrate_disable_placement = s->migrate_disable_placement;
    entry_put_alloc(a, al, old, state_alloc_job_index(a->t, al->id));
}

int
intent_alloc_transition(struct apply *a, const struct intent_alloc_transition *in)
{
    for (size_t i = 0; i < in->alloc_ids.n; i++) {
        const struct allocation *old = state_alloc(a->t, a->ctx, in->alloc_ids.v[i]);
        if (old == NULL || in->transition == NULL ||
            (in->draining && !alloc_drains(a, old->node_id)))
            continue;
        entry_transition(a, old, in->transition);
    }
    for (size_t i = 0; i < in->evals.n; i++)
        entry_put_eval(a, in->evals.v[i]);
    return 0;
}
