/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine, on top: the status of what an entry touched, the small intents, dispatch.
 */
#include "server/fsm/fsm.h"

#include "api/vars/vars.h"
#include "server/fsm/fsm_int.h"

/* --- the end of an entry --- */

/* Before the status of jobs is looked at. */
static void
store_deployments(struct apply *a)
{
    for (size_t i = 0; i < a->n_deployments; i++) {
        struct deployment *d = a->deployments[i].d;
        if (!a->deployments[i].changed)
            continue;
        d->modify_index = a->index;
        d->modify_time = a->now;
        state_put(a->t, a->index, DEPLOYMENTS, d);
        entry_touch_job(a, d->namespace, d->job_id);
    }
}

static const char *
job_status(struct apply *a, const struct job *j)
{
    if (str_eq(j->type, JOB_SYSTEM) || job_is_parent(j))
        return j->stop ? JOB_STATUS_DEAD : JOB_STATUS_RUNNING;
    if (state_has_live_allocs(a->t, j->namespace, j->id) ||
        state_has_active_deployment(a->t, j->namespace, j->id))
        return JOB_STATUS_RUNNING;
    if (!j->stop && state_has_open_evals(a->t, j->namespace, j->id))
        return JOB_STATUS_PENDING;
    bool over = j->stop || state_has_evals(a->t, j->namespace, j->id) ||
                state_has_allocs(a->t, j->namespace, j->id);
    return over ? JOB_STATUS_DEAD : JOB_STATUS_PENDING;
}

/* Status and summaries of everything touched; last. */
static void
fsm_finish(struct apply *a)
{
    store_deployments(a);
    for (size_t i = 0; i < a->n_jobs; i++) {
        struct touched_job done = a->jobs[i]; /* the list grows by what is cancelled */
        if (done.settled)
            entry_drop_followups(a, &done);
    }
    for (size_t i = 0; i < a->n_jobs; i++) {
        struct job *j = state_job(a->t, a->ctx, a->jobs[i].ns, a->jobs[i].id);
        if (j == NULL)
            continue;
        struct touched_job *tj = &a->jobs[i];
        ASSERT(j->modify_index <= a->index &&
               (tj->summary == NULL || tj->summary->modify_index <= a->index));
        if (tj->summary != NULL && tj->summary_changed) {
            tj->summary->modify_index = a->index;
            state_put(a->t, a->index, SUMMARIES, tj->summary);
        }
        const char *status = job_status(a, j);
        entry_count_child(a, j, j->create_index == a->index ? NULL : j->status, status);
        if (!str_eq(j->status, status)) {
            j->status = status;
            j->modify_index = a->index;
            entry_store_job(a, j);
            if (a->res->job != NULL && str_eq(a->res->job->id, j->id))
                a->res->job = j;
        }
    }
}

/* --- the small intents --- */

/* An evaluation that became superfluous while under way stays so, and nothing follows from it (S12,
 * S19). */
static bool
is_canceled(struct apply *a, const char *id)
{
    const struct evaluation *ev = str_empty(id) ? NULL : state_eval(a->t, a->tmp, id);
    return ev != NULL && str_eq(ev->status, EVAL_CANCELED);
}

int
intent_eval_update(struct apply *a, const struct intent_eval_update *in)
{
    for (size_t i = 0; i < in->evals.n; i++)
        if (!is_canceled(a, in->evals.v[i]->id) && !is_canceled(a, in->evals.v[i]->previous_eval))
            entry_put_eval(a, in->evals.v[i]);
    return 0;
}

int
intent_scheduler_config(struct apply *a, const struct scheduler_configuration *in)
{
    struct scheduler_configuration *c = codec_clone(a->ctx, &type_scheduler_configuration, in);
    const struct scheduler_configuration *old = state_scheduler_config(a->t, a->tmp);
    c->create_index = old->create_index != 0 ? old->create_index : a->index;
    c->modify_index = a->index;
    state_put(a->t, a->index, SCHEDULER_CONFIG, c);
    return 0;
}

int
intent_scheduler_cas(struct apply *a, const struct intent_scheduler_cas *in)
{
    const struct scheduler_configuration *old = state_scheduler_config(a->t, a->tmp);
    return in->scheduler_config == NULL || old->modify_index != in->modify_index
               ? 0
               : intent_scheduler_config(a, in->scheduler_config);
}

int
intent_autopilot_set(struct apply *a, const struct intent_autopilot_set *in)
{
    const struct autopilot_configuration *old = state_autopilot(a->t, a->tmp);

    if (in->config == NULL ||
        (in->cas && (old != NULL ? old->modify_index : 0) != in->modify_index))
        return 0;
    struct autopilot_configuration *c =
        codec_clone(a->ctx, &type_autopilot_configuration, in->config);
    c->create_index = old != NULL ? old->create_index : a->index;
    c->modify_index = a->index;
    state_put(a->t, a->index, AUTOPILOT, c);
    return 0;
}

int
intent_cluster_metadata(struct apply *a, const struct cluster_metadata *in)
{
    if (state_cluster(a->t, a->tmp) != NULL)
        return 0;
    struct cluster_metadata *m = codec_clone(a->ctx, &type_cluster_metadata, in);
    m->create_time = a->now;
    m->create_index = m->modify_index = a->index;
    state_put(a->t, a->index, CLUSTER, m);
    return 0;
}

int
intent_server_gone(struct apply *a, const struct server_gone *in)
{
    struct cluster_metadata *m = state_cluster(a->t, a->ctx);
    if (m == NULL)
        return 0; /* one alone */
    __typeof__(m->gone) kept = {0};
    for (size_t i = m->gone.n < SERVERS_GONE_MAX ? 0 : 1; i < m->gone.n; i++)
        if (m->gone.v[i]->id != in->id)
            list_add(m, kept, m->gone.v[i]);
    list_add(m, kept, codec_clone(m, &type_server_gone, in));
    m->gone = kept;
    m->modify_index = a->index;
    state_put(a->t, a->index, CLUSTER, m);
    return 0;
}

int
intent_noop(struct apply *a, const struct empty *in)
{
    (void)a;
    (void)in;
    return 0;
}

static int
fsm_dispatch(struct apply *a, const struct intent *in)
{
    switch ((enum intent_member)codec_member(&type_intent, in)) {
#define CASE(id, member)                                                                           \
    case id:                                                                                       \
        return intent_##member(a, in->member);
        INTENT_MEMBERS(CASE)
#undef CASE
    }
    ASSERT(false); /* who decodes an entry refuses it, in words */
}

static enum intent_room
intent_room_job_deregister(const struct intent_job_deregister *in)
{
    return in->purge ? ROOM_MAKES : ROOM_STOPS;
}

static enum intent_room
intent_room_variable_apply(const struct intent_variable_apply *in)
{
    return str_eq(in->op, VAR_DELETE) || str_eq(in->op, VAR_LOCK_RELEASE) ? ROOM_MAKES : ROOM_ADDS;
}

static enum intent_room
intent_room_plan_result(const struct plan_result *in)
{
    return in->placed.n == 0 ? ROOM_STOPS : ROOM_CHANGES;
}

enum intent_room
fsm_room(const struct intent *in)
{
    unsigned member = codec_member(&type_intent, in);

    ASSERT(member != 0); /* whoever proposes sets one */
    switch ((enum intent_member)member) {
#define IS(id, member, ROOM)                                                                       \
    case id:                                                                                       \
        return ROOM;
#define ASKS(id, member)                                                                           \
    case id:                                                                                       \
        return intent_room_##member(in->member);
        INTENT_ROOMS(IS, ASKS)
#undef IS
#undef ASKS
    }
    return ROOM_CHANGES;
}

static int
result_drop(struct fsm_result *r)
{
    fsm_events_unref(r->events);
    return 0;
}

static struct fsm_result *
result_new(const void *ctx, uint64_t index)
{
    struct fsm_result *res = mem_new(ctx, struct fsm_result);

    res->index = index;
    res->events = mem_new(NULL, struct fsm_events);
    atomic_init(&res->events->refs, 1);
    talloc_set_destructor(res, result_drop);
    return res;
}

struct fsm_result *
fsm_refused(const void *ctx, uint64_t index, const struct err *why)
{
    struct fsm_result *res = result_new(ctx, index);
    ASSERT(why->code < 0 && index > 0);
    res->err = *why;
    return res;
}

void
fsm_restored(struct state_txn *t, uint64_t index, int64_t now, struct fsm_result *res)
{
    auto_mem void *tmp = mem_ctx("restored");
    struct apply a = {
        .ctx = res->events, .tmp = tmp, .t = t, .index = index, .now = now, .res = res};

    entry_doubt_nodes(&a);
    fsm_finish(&a);
    HASH_CLEAR(hh, a.at_jobs);
}

struct fsm_result *
fsm_apply(const void *ctx, struct state_txn *t, uint64_t index, const struct intent *in)
{
    auto_mem void *tmp = mem_ctx("apply");
    struct fsm_result *res = result_new(ctx, index);
    struct apply a = {
        .ctx = res->events, .tmp = tmp, .t = t, .index = index, .now = in->time, .res = res};
    struct state_follower events = entry_follower(&a);
    state_follow(t, &events);
    ASSERT(index > state_applied(t)); /* each entry once, in their order */
    int rc = fsm_dispatch(&a, in);
    ASSERT((rc == 0) == (res->err.code == 0));
    ASSERT(rc == 0 || !res->changed); /* what is refused has no effect */
    if (rc == 0)
        fsm_finish(&a);
    state_follow(t, NULL);
    HASH_CLEAR(hh, a.at_jobs);
    for (size_t i = 0; i < STATE_TABLES; i++)
        HASH_CLEAR(hh, a.at_rows[i]);
    return res;
}
