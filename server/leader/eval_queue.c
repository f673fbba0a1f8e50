/* SPDX-License-Identifier: Apache-2.0
 *
 * Which evaluation is worked on: the live node table, the broker and the blocked evaluations follow
 * the log here; what is ready goes to the workers (eval_run.c).
 */
#include <string.h>

#include "api/terms.h"
#include "common/duration.h"
#include "common/mem.h"
#include "server/eval.h"
#include "server/leader/leader_int.h"
#include "server/sched/compare/class.h"

enum { EVALS_PER_ENTRY = 512, CLOCK_LOOK_MS = 60000 /* is the wall clock as it was? */ };

#define FOLLOW_UP_MIN (60 * NS_PER_S)
#define FOLLOW_UP_SPREAD (300 * NS_PER_S)

static void
eval_queue_enqueue(struct leader *l, const struct evaluation *e)
{
    broker_enqueue(l->broker, e, env_mono_ms(l->env), env_wall_ns(l->env));
}

/* --- writes --- */

/* Now, or as soon as writes are taken again (debts.h). */
static void
put_evals(struct leader *l, struct evaluation **v, size_t n)
{
    for (size_t i = 0; i < n; i += EVALS_PER_ENTRY) {
        struct intent_eval_update up = {
            .evals = {v + i, n - i < EVALS_PER_ENTRY ? n - i : EVALS_PER_ENTRY}};
        struct intent in = {.time = env_wall_ns(l->env), .eval_update = &up};
        for (size_t k = 0; k < up.evals.n; k++) {
            up.evals.v[k]->modify_time = in.time;
            if (up.evals.v[k]->create_time == 0)
                up.evals.v[k]->create_time = in.time;
        }
        leader_owe(l, &in);
    }
}

static void
cancel_superfluous(struct leader *l, void *tmp, struct evaluation_list *out)
{
    for (struct evaluation *e; (e = broker_take_cancelable(l->broker, tmp)) != NULL;) {
        e->status = EVAL_CANCELED;
        e->status_description = "canceled after more recent eval was processed";
        list_add(tmp, *out, e);
    }
    for (struct evaluation *e; (e = blocked_take_duplicate(l->blocked, tmp)) != NULL;) {
        e->status = EVAL_CANCELED;
        e->status_description = "existing blocked evaluation exists for job";
        list_add(tmp, *out, e);
    }
}

/* Delivered too often: failed, and tried again after a while by another evaluation. */
static void
fail_undeliverable(struct leader *l, void *tmp, struct evaluation_list *out)
{
    for (struct evaluation *e; (e = broker_take_failed(l->broker, tmp)) != NULL;) {
        struct evaluation *f = eval_after(tmp, l->env, e, TRIGGER_FAILED_FOLLOW_UP);
        f->wait_until =
            f->create_time + FOLLOW_UP_MIN + (int64_t)(env_random(l->env) % FOLLOW_UP_SPREAD);
        e->next_eval = f->id;
        e->queued_allocations.n = 0; /* of an earlier run, if any: newer ones may have been told */
        e->status = EVAL_FAILED;
        e->status_description =
            mem_printf(tmp, "evaluation reached delivery limit (%d)", BROKER_DELIVERIES);
        list_add(tmp, *out, e);
        list_add(tmp, *out, f);
    }
}

/* --- work --- */

static void
put_figures(struct leader *l)
{
    struct broker_stats b = broker_stats(l->broker);
    size_t plans = l->plan_busy, f[FIGURES];

    for (const struct run *r = l->plans; r; r = r->next)
        plans++;
    f[FIGURE_READY] = b.ready;
    f[FIGURE_UNACKED] = b.unacked;
    f[FIGURE_PENDING] = b.pending;
    f[FIGURE_WAITING] = b.waiting;
    f[FIGURE_BLOCKED] = blocked_count(l->blocked);
    f[FIGURE_PLANS] = plans;
    for (size_t i = 0; i < FIGURES; i++)
        atomic_store_explicit(&l->figures[i], f[i], memory_order_relaxed);
}

void
leader_figures(struct leader *l, struct server_figures *ret)
{
    size_t f[FIGURES];

    for (size_t i = 0; i < FIGURES; i++)
        f[i] = atomic_load_explicit(&l->figures[i], memory_order_relaxed);
    *ret = (struct server_figures){0};
    if (server_is_leader(l->s))
        *ret = (struct server_figures){.evals_ready = f[FIGURE_READY],
                                       .evals_unacked = f[FIGURE_UNACKED],
                                       .evals_pending = f[FIGURE_PENDING],
                                       .evals_waiting = f[FIGURE_WAITING],
                                       .evals_blocked = f[FIGURE_BLOCKED],
                                       .plans = f[FIGURE_PLANS],
                                       .heartbeats = heartbeats_count(l->beats)};
}

void
leader_work(struct leader *l)
{
    auto_mem void *tmp = mem_ctx("leader_work");
    struct evaluation_list out = {0};
    const struct evaluation *e;
    uint64_t token;

    if (!l->leading)
        return;
    broker_clock(l->broker, env_mono_ms(l->env), env_wall_ns(l->env));
    broker_tick(l->broker, env_mono_ms(l->env));
    blocked_tick(l->blocked, env_mono_ms(l->env));
    for (struct evaluation *r; (r = blocked_take_released(l->blocked, tmp)) != NULL;)
        eval_queue_enqueue(l, r);
    cancel_superfluous(l, tmp, &out);
    fail_undeliverable(l, tmp, &out);
    if (out.n > 0)
        put_evals(l, out.v, out.n);
    while (!atomic_load(&l->retired) && !test_hook_paused() &&
           l->n_running < server_cfg(l->s)->workers + borrow_room(l) &&
           (e = broker_dequeue(l->broker, env_mono_ms(l->env), &token)) != NULL)
        run_start(l, e, token);
    int64_t a = broker_next_ms(l->broker), b = blocked_next_ms(l->blocked);
    int64_t look = env_mono_ms(l->env) + CLOCK_LOOK_MS;
    if (a != INT64_MAX && a > look)
        a = look;
    leader_alarm(l, a < b ? a : b);
    put_figures(l);
}

/* --- following the log --- */

static void
seen_eval(struct leader *l, const struct evaluation *e)
{
    if (str_eq(e->status, EVAL_PENDING))
        eval_queue_enqueue(l, e);
    else if (str_eq(e->status, EVAL_BLOCKED))
        blocked_add(l->blocked, e, env_mono_ms(l->env));
    else if (str_eq(e->status, EVAL_COMPLETE) && str_empty(e->blocked_eval))
        blocked_untrack(l->blocked, e->namespace, e->job_id);
    else if (str_eq(e->status, EVAL_CANCELED))
        broker_forget(l->broker, e->id);
}

static void
capacity_of_row(struct leader *l, uint32_t row, uint64_t index)
{
    const struct node_facts *f = l->live->nodes->facts[row];
    char class[CLASS_TEXT];

    if (l->leading && f->takes_work)
        blocked_capacity(l->blocked, class_name(f->node, class), index);
}

static void
quota_gains(struct leader *l, const char *quota, uint64_t index)
{
    if (l->leading && quota != NULL)
        blocked_quota(l->blocked, quota, index);
}

/* An evaluation does not wait for the quota that the namespace had. */
static void
seen_namespace(struct leader *l, const struct namespace *n, bool gone, uint64_t index)
{
    ASSERT(!str_empty(n->name));
    quota_gains(l, live_quota(l->live, n->name), index);
    if (gone)
        live_namespace_gone(l->live, n->name);
    else
        live_namespace(l->live, n);
    quota_gains(l, live_quota(l->live, n->name), index);
}

static void
seen_alloc(struct leader *l, const struct allocation *a, uint64_t index)
{
    struct usage u;
    bool held = live_holds(l->live, a->id, a->node_id, &u);

    live_alloc(l->live, a, index);
    if (!held || !alloc_client_terminal(a))
        return;
    quota_gains(l, live_quota(l->live, a->namespace), index);
    uint32_t row = node_table_find(l->live->nodes, a->node_id);
    if (row != NODES_NONE)
        capacity_of_row(l, row, index);
}

static void
seen_node(struct leader *l, const struct node *n, uint64_t index)
{
    live_node(l->live, n);
    capacity_of_row(l, node_table_find(l->live->nodes, n->id), index);
}

static void
row_on_entry(struct leader *l, uint64_t index, const struct intent *in,
             const struct fsm_result *res)
{
    (void)in;
    FSM_EACH(res, NODES, DELETED, n)
    live_node_gone(l->live, n->id);
    FSM_EACH(res, NODES, STORED, n)
    seen_node(l, n, index);
    FSM_EACH(res, ALLOCS, STORED, a)
    seen_alloc(l, a, index);
    FSM_EACH(res, ALLOCS, DELETED, a)
    live_alloc_gone(l->live, a->id, index);
    FSM_EACH (res, NAMESPACES, STORED, n)
        seen_namespace(l, n, false, index);
    FSM_EACH (res, NAMESPACES, DELETED, n)
        seen_namespace(l, n, true, index);
    FSM_EACH (res, QUOTAS, STORED, q)
        quota_gains(l, q->name, index);
}

static void
row_on_applied(struct leader *l, uint64_t index, const struct intent *in,
               const struct fsm_result *res)
{
    (void)index;
    FSM_EACH(res, EVALS, STORED, e)
    seen_eval(l, e);
    FSM_EACH(res, EVALS, DELETED, e)
    {
        broker_forget(l->broker, e->id);
        blocked_forget(l->blocked, e);
    }
    const struct scheduler_configuration *c =
        in->scheduler_cas != NULL ? in->scheduler_cas->scheduler_config : in->scheduler_config;
    if (c != NULL && res->changed) /* not what came too late */
        broker_pause(l->broker, c->pause_eval_broker);
}

/* --- the row --- */

static void
row_init(struct leader *l)
{
    int64_t ms = server_cfg(l->s)->eval_nack_ms;

    l->broker = broker_new(l);
    broker_nack_after(l->broker, ms > 0 ? ms : BROKER_NACK_MS);
    l->blocked = blocked_new(l);
    l->live = live_new(l);
}

static void
row_on_open(struct leader *l, struct state_txn *t)
{
    live_load(l->live, t);
}

static void
row_on_leader(struct leader *l, struct state_txn *t)
{
    auto_mem void *tmp = mem_ctx("load evaluations");
    struct state_iter *it = state_evals(t, tmp, NULL);

    broker_pause(l->broker, state_scheduler_config(t, tmp)->pause_eval_broker);
    for (struct evaluation *e; (e = state_next(it, tmp)) != NULL; talloc_free(e)) {
        /* room that became free between its snapshot and this election is not known: look again */
        if (str_eq(e->status, EVAL_PENDING) || str_eq(e->status, EVAL_BLOCKED))
            eval_queue_enqueue(l, e);
    }
}

static void
row_on_lose(struct leader *l)
{
    runs_drop(l);
    l->plan_busy = false;
    l->n_running = 0;
    broker_clear(l->broker);
    blocked_clear(l->blocked);
}

const struct controller evals_row = {
    .init = row_init,
    .on_open = row_on_open,
    .on_entry = row_on_entry,
    .on_leader = row_on_leader,
    .on_applied = row_on_applied,
    .on_batch = leader_work,
    .on_lose = row_on_lose,
};
