/* SPDX-License-Identifier: Apache-2.0
 *
 * What one attempt changes: allocations that stop, are marked, updated, placed, or failed to be.
 * Below both schedulers.
 */
#include "server/sched/sched.h"

#include <stdlib.h>
#include <string.h>

#include "api/away.h"
#include "api/eval.h"
#include "api/terms.h"
#include "api/volume/volume.h"
#include "common/mem.h"
#include "common/uuid.h"
#include "server/sched/alloc/reschedule.h"
#include "server/sched/feasible.h"
#include "server/sched/limits.h"
#include "server/sched/resources.h"
#include "server/sched/sched_int.h"

/* A plan carries what changes of an allocation, not the allocation. */
static struct allocation *
stop_row(const void *ctx, const struct allocation *a)
{
    struct allocation *s = mem_new(ctx, struct allocation);

    s->id = a->id;
    s->namespace = a->namespace;
    s->job_id = a->job_id;
    s->node_id = a->node_id;
    return s;
}

/* The client status that the plan is about, and when the last silence that is known began: with
 * another status or a later silence, what follows is void (doc/reconnect.md S13). */
static void
note_seen(const void *ctx, struct allocation *row, const struct allocation *a)
{
    struct alloc_state *seen = mem_new(ctx, struct alloc_state);

    *seen = (struct alloc_state){.field = "ClientStatus",
                                 .value = a->client_status,
                                 .time = alloc_recorded(a, ALLOC_UNKNOWN)};
    row->alloc_states = (struct alloc_state_list){NULL, 0};
    list_add(ctx, row->alloc_states, seen);
}

/* Counts an allocation that holds something into the quota's room, or out of it: this very plan may
 * give what one of its stops frees to somebody else. */
static void
quota_count(struct attempt *t, const struct allocation *a, int64_t sign)
{
    struct usage u = resources_of_alloc(a);
    struct quota_use use = {1, u.cpu, u.mem};

    ASSERT(sign == 1 || sign == -1);
    if (t->room.name != NULL && !alloc_client_terminal(a))
        quota_add(&t->room.used, &use, sign);
}

/* Says why the quota has no room for one more of the group, `instead` of an allocation (or NULL):
 * an empty list, it has. */
static struct str_list
quota_refuses(struct attempt *t, const struct task_group *tg, const struct allocation *instead)
{
    struct ask ask = resources_ask(tg);
    struct quota_use more = {1, ask.u.cpu, ask.u.mem};

    if (t->room.name == NULL)
        return (struct str_list){NULL, 0};
    if (instead != NULL)
        quota_count(t, instead, -1);
    struct str_list why = quota_exceeded(t->out, &t->room, &more);
    if (instead != NULL)
        quota_count(t, instead, 1);
    return why;
}

struct allocation *
attempt_stop(struct attempt *t, const struct allocation *a, const char *desc,
             const char *client_status)
{
    struct allocation *s = stop_row(t->out, a);

    s->desired_status = ALLOC_DESIRED_STOP;
    s->desired_description = desc;
    s->client_status = client_status;
    if (client_status != NULL)
        note_seen(t->out, s, a);
    list_add(t->plan, t->plan->node_update, s);
    quota_count(t, a, -1);
    return s;
}

/* Ends an allocation, which makes room for `by`. */
static void
attempt_preempt(struct attempt *t, const struct allocation *a, const struct allocation *by)
{
    struct allocation *s = stop_row(t->out, a);

    s->desired_status = ALLOC_DESIRED_EVICT;
    s->desired_description = mem_printf(t->out, "Preempted by alloc ID %s", by->id);
    s->preempted_by_allocation = by->id;
    list_add(t->plan, t->plan->node_update, s);
    map_put(t->out, t->preempted, by->task_group)->v++;
    struct alloc_list_stub *stub = mem_new(t->out, struct alloc_list_stub);
    *stub = (struct alloc_list_stub){.id = a->id,
                                     .name = a->name,
                                     .namespace = a->namespace,
                                     .eval_id = a->eval_id,
                                     .node_id = a->node_id,
                                     .node_name = a->node_name,
                                     .job_id = a->job_id,
                                     .task_group = a->task_group,
                                     .desired_status = s->desired_status,
                                     .desired_description = s->desired_description,
                                     .client_status = a->client_status,
                                     .preempted_by_allocation = by->id};
    list_add(t->out, t->preempted_allocs, stub);
}

void
attempt_mark(struct attempt *t, const struct allocation *a, const char *followup,
             const char *client_status)
{
    struct allocation *s = stop_row(t->out, a);

    s->followup_eval_id = followup;
    s->client_status = client_status;
    if (client_status != NULL)
        s->desired_description = DESC_SILENT;
    note_seen(t->out, s, a);
    list_add(t->plan, t->plan->node_update, s);
}

void
attempt_update(struct attempt *t, const struct allocation *a, bool back)
{
    struct allocation *u = mem_new(t->out, struct allocation);

    *u = *a;
    u->job = NULL;
    u->eval_id = t->in->eval->id;
    u->alloc_states = (struct alloc_state_list){NULL, 0};
    if (back)
        note_seen(t->out, u, a);
    const char *of = t->deployment != NULL ? t->deployment->id : NULL;
    if (!str_eq(u->deployment_id, of) &&
        rollout_change(a->job, t->job, job_group(t->job, a->task_group)) != CHANGE_NONE) {
        u->deployment_id = of;
        u->deployment_status = NULL;
    }
    list_add(t->plan, t->plan->node_allocation, u);
}

void
attempt_note(struct attempt *t, const struct task_group *tg, struct alloc_metric *m)
{
    t->metrics_bytes += metric_bytes(m);
    map_put(t->out, t->out->failed, tg->name)->v =
        t->metrics_bytes <= METRICS_BYTES_MAX ? m : metric_numbers(t->out, m);
}

static void
attempt_failed(struct attempt *t, const struct task_group *tg, struct alloc_metric *m)
{
    __auto_type f = map_put(t->out, t->out->failed, tg->name);

    map_put(t->out, t->out->queued, tg->name)->v++;
    t->out->waits = true;
    if (f->v != NULL) {
        f->v->coalesced_failures++;
        return;
    }
    attempt_note(t, tg, m);
    if (!select_classes(t->select, t->out, tg, &t->out->class_eligibility))
        t->out->escaped = true;
}

/* The group waits for the quota, whatever nodes have. */
static void
attempt_over_quota(struct attempt *t, const struct task_group *tg, struct str_list why)
{
    struct alloc_metric *m = mem_new(t->out, struct alloc_metric);

    ASSERT(why.n > 0 && t->room.name != NULL);
    m->quota_exhausted = why;
    map_put(t->out, t->out->queued, tg->name)->v++;
    t->out->waits = true;
    t->out->quota = t->room.name;
    attempt_note(t, tg, m);
}

/* Nodes where `prev`, or what it replaced, failed before. */
static void
attempt_penalties(const void *ctx, const struct allocation *prev, struct select_req *req)
{
    const struct reschedule_tracker *tr = prev->reschedule_tracker;
    size_t n = tr ? tr->events.n : 0;
    const char **v = mem_array(ctx, const char *, n + 1);

    v[0] = prev->node_id;
    for (size_t i = 0; i < n; i++)
        v[i + 1] = tr->events.v[i]->prev_node_id;
    req->penalty = v;
    req->n_penalty = n + 1;
}

/* Says whether an allocation moves because it was told to: then it did not fail, and its attempts
 * start anew. */
static bool
attempt_migrates(const struct allocation *prev)
{
    return prev->desired_transition != NULL && prev->desired_transition->migrate.set &&
           prev->desired_transition->migrate.v;
}

/* Which version: a plan does not carry it whole. */
static struct job *
job_version_of(const void *ctx, const struct job *j)
{
    struct job *v = type_new(ctx, &type_job);

    v->id = j->id;
    v->namespace = j->namespace;
    v->version = j->version;
    v->job_modify_index = j->job_modify_index;
    return v;
}

static struct allocation *
alloc_new(struct attempt *t, const struct recon_place *p, const struct select_got *got)
{
    struct allocation *a = mem_new(t->out, struct allocation);
    char id[UUID_TEXT];

    a->id = mem_strdup(t->out, rng_uuid(t->in->rng, id));
    a->namespace = t->job->namespace;
    a->eval_id = t->in->eval->id;
    a->name = p->name;
    a->node_id = got->node->id;
    a->node_name = got->node->name;
    a->job_id = t->job->id;
    a->task_group = p->tg->name;
    a->allocated_resources = got->resources;
    a->metrics = got->metrics;
    a->desired_status = ALLOC_DESIRED_RUN;
    a->client_status = ALLOC_PENDING;
    a->create_time = a->modify_time = t->in->now;
    if (p->job != NULL) {
        a->job = job_version_of(t->out, p->job);
    } else if (t->deployment != NULL && deployment_active(t->deployment)) {
        a->deployment_id = t->deployment->id;
        if (p->canary) {
            a->deployment_status = mem_new(t->out, struct alloc_deployment_status);
            a->deployment_status->canary = true;
        }
    }
    if (p->prev != NULL) {
        a->previous_allocation = p->prev->id;
        if (p->reschedule)
            a->reschedule_tracker = reschedule_tracker_next(t->out, p->tg->reschedule_policy,
                                                            p->prev, t->in->now);
        else if (p->prev->reschedule_tracker != NULL && !attempt_migrates(p->prev))
            a->reschedule_tracker = p->prev->reschedule_tracker;
    }
    return a;
}

/* Finds the node that allocations of that name come back to, for volumes with `sticky`. Volumes of
 * two nodes are volumes of none. */
static void
attempt_claims(struct attempt *t, const struct recon_place *p, struct select_req *req)
{
    auto_mem void *tmp = mem_ctx("claims");
    struct sched_view *v = t->in->view;

    for (size_t i = 0; i < p->tg->volumes.n; i++) {
        const struct volume_request *want = p->tg->volumes.v[i].v;
        const char *node_id = want->sticky ? v->ops->volume_claim(v, t->job, p->name,
                                                                  volume_source(tmp, want, p->name))
                                           : NULL;
        if (node_id == NULL)
            continue;
        req->only = req->claimed && !str_eq(req->only, node_id) ? "" : node_id;
        req->claimed = true;
    }
}

bool
attempt_place(struct attempt *t, const struct recon_place *p, const char *only_node)
{
    struct select_req req = {.tg = p->tg, .name = p->name, .only = only_node};
    struct select_got got;
    bool staged = p->prev != NULL && p->stop_desc != NULL;
    const struct ephemeral_disk *disk = p->tg->ephemeral_disk;
    __auto_type failed = map_get(t->out->failed, p->tg->name);

    /* a group that did not fit once does not fit again: only the count grows; volumes of one
     * allocation each differ */
    if (failed != NULL && !feasible_by_name(p->tg) &&
        (only_node == NULL || failed->v->quota_exhausted.n > 0)) {
        attempt_failed(t, p->tg, NULL);
        return false;
    }
    struct str_list over = quota_refuses(t, p->tg, staged ? p->prev : NULL);
    if (over.n > 0) {
        attempt_over_quota(t, p->tg, over);
        return false;
    }
    if (only_node == NULL)
        attempt_claims(t, p, &req);
    if (p->prev != NULL && p->reschedule)
        attempt_penalties(t->out, p->prev, &req);
    if (p->prev != NULL && !req.claimed && disk != NULL && (disk->sticky || disk->migrate))
        req.preferred = p->prev->node_id;
    if (staged)
        select_stop(t->select, p->prev);
    select_place(t->select, &req, &got);
    if (got.node == NULL) {
        if (staged)
            select_unstop(t->select, p->prev);
        attempt_failed(t, p->tg, got.metrics);
        return false;
    }
    if (staged)
        (void)attempt_stop(t, p->prev, p->stop_desc, NULL);
    struct allocation *a = alloc_new(t, p, &got);
    for (size_t i = 0; i < got.n_victims; i++) {
        attempt_preempt(t, got.victims[i], a);
        list_add(t->out, a->preempted_allocations, got.victims[i]->id);
    }
    select_book(t->select, a);
    quota_count(t, a, 1);
    list_add(t->plan, t->plan->node_allocation, a);
    return true;
}
