/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs while this server leads (see leader.h). The hooks below are called on the core thread, in
 * log order; heartbeats, the alarm and garbage collection live on the loop thread.
 */
#include "server/leader/leader_int.h"

#include <string.h>

#include "api/terms.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "server/leader/gc.h"
#include "server/sched/class.h"

enum { EVALS_PER_ENTRY = 512 };

#define FOLLOW_UP_MIN (60 * NS_PER_S)
#define FOLLOW_UP_SPREAD (300 * NS_PER_S)

static int64_t
mono_ms(void)
{
    return clock_mono_ns() / NS_PER_MS;
}

/* --- writes --- */

struct put {
    struct leader *l;
    struct intent *in;
};

static void
put_loop(void *arg)
{
    struct put *p = arg;

    owed_add(p->l->owed, p->in, NULL, NULL, NULL);
    talloc_free(p);
}

void
leader_put_evals(struct leader *l, struct evaluation **v, size_t n)
{
    for (size_t i = 0; i < n; i += EVALS_PER_ENTRY) {
        struct intent_eval_update up = {
            .evals = {v + i, n - i < EVALS_PER_ENTRY ? n - i : EVALS_PER_ENTRY}};
        struct intent in = {.time = clock_wall_ns(), .eval_update = &up};
        for (size_t k = 0; k < up.evals.n; k++) {
            up.evals.v[k]->modify_time = in.time;
            if (up.evals.v[k]->create_time == 0)
                up.evals.v[k]->create_time = in.time;
        }
        struct put *p = mem_new(NULL, struct put);
        *p = (struct put){l, codec_clone(p, &type_intent, &in)};
        loop_post(server_loop(l->s), put_loop, p);
    }
}

static void
propose(void *arg, struct intent *in, propose_fn *done, void *done_arg)
{
    server_propose(arg, in, done, done_arg);
}

struct eval_batch {
    struct evaluation_list l;
};

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
        struct evaluation *f = codec_clone(tmp, &type_evaluation, e);
        char id[UUID_TEXT];
        f->id = mem_strdup(tmp, uuid_make(id));
        f->status = EVAL_PENDING;
        f->status_description = NULL;
        f->triggered_by = TRIGGER_FAILED_FOLLOW_UP;
        f->wait = 0;
        f->wait_until = clock_wall_ns() + FOLLOW_UP_MIN + (int64_t)(rand_u64() % FOLLOW_UP_SPREAD);
        f->previous_eval = e->id;
        f->create_index = f->modify_index = 0;
        f->create_time = 0;
        e->next_eval = f->id;
        e->status = EVAL_FAILED;
        e->status_description =
            mem_printf(tmp, "evaluation reached delivery limit (%d)", BROKER_DELIVERIES);
        list_add(tmp, *out, e);
        list_add(tmp, *out, f);
    }
}

/* --- the alarm: the core thread has no timers, the loop wakes it --- */

struct alarm_call {
    struct leader *l;
    int64_t at_ms;
};

static void
alarm_core(void *arg)
{
    struct leader *l = arg;

    l->alarm_ms = INT64_MAX;
    leader_work(l);
}

static void
alarm_fired(void *arg)
{
    struct leader *l = arg;

    l->alarm = NULL;
    server_post_core(l->s, alarm_core, l);
}

static void
alarm_loop(void *arg)
{
    struct alarm_call *c = arg;
    struct leader *l = c->l;

    if (!l->stopping) {
        timer_stop(l->alarm);
        l->alarm = timer_start(server_loop(l->s), c->at_ms - mono_ms(), alarm_fired, l);
    }
    talloc_free(c);
}

static void
alarm_set(struct leader *l)
{
    int64_t a = broker_next_ms(l->broker), b = blocked_next_ms(l->blocked);
    int64_t at = a < b ? a : b;

    /* one that fires early finds nothing due and asks again */
    if (at == INT64_MAX || at >= l->alarm_ms)
        return;
    l->alarm_ms = at;
    struct alarm_call *c = mem_new(NULL, struct alarm_call);
    *c = (struct alarm_call){l, at};
    loop_post(server_loop(l->s), alarm_loop, c);
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
    broker_tick(l->broker, mono_ms());
    blocked_tick(l->blocked, mono_ms());
    for (struct evaluation *r; (r = blocked_take_released(l->blocked, tmp)) != NULL;)
        broker_enqueue(l->broker, r, mono_ms(), clock_wall_ns());
    cancel_superfluous(l, tmp, &out);
    fail_undeliverable(l, tmp, &out);
    if (out.n > 0)
        leader_put_evals(l, out.v, out.n);
    while (!atomic_load(&l->retired) && l->n_running < workers_count(l->workers) &&
           (e = broker_dequeue(l->broker, mono_ms(), &token)) != NULL)
        run_start(l, e, token);
    alarm_set(l);
    put_figures(l);
}

/* --- following the log --- */

static void
seen_eval(struct leader *l, const struct evaluation *e)
{
    if (str_eq(e->status, EVAL_PENDING))
        broker_enqueue(l->broker, e, mono_ms(), clock_wall_ns());
    else if (str_eq(e->status, EVAL_BLOCKED))
        blocked_add(l->blocked, e, mono_ms());
    else if (str_eq(e->status, EVAL_COMPLETE) && str_empty(e->blocked_eval))
        blocked_untrack(l->blocked, e->namespace, e->job_id);
}

static void
capacity_of_row(struct leader *l, uint32_t row, uint64_t index)
{
    const struct node_facts *f = l->live->nodes->facts[row];
    char class[CLASS_TEXT];

    if (f->takes_work)
        blocked_capacity(l->blocked, class_name(f->node, class), index);
}

static void
seen_alloc(struct leader *l, const struct allocation *a, uint64_t index)
{
    struct usage u;
    bool held = live_holds(l->live, a->id, a->node_id, &u);

    live_alloc(l->live, a, index);
    if (!held || !alloc_client_terminal(a))
        return;
    uint32_t row = node_table_find(l->live->nodes, a->node_id);
    if (row != NODES_NONE)
        capacity_of_row(l, row, index);
}

/* The node is about to be replaced in the table by `now`, or to go (NULL). */
static void
count_draining(struct leader *l, const char *id, const struct node *now)
{
    uint32_t row = node_table_find(l->live->nodes, id);
    bool was = row != NODES_NONE && l->live->nodes->facts[row]->node->drain_strategy != NULL;
    bool is = now != NULL && now->drain_strategy != NULL;

    l->n_draining = l->n_draining - was + is;
    l->drain_news |= was || is;
}

static void
seen_node(struct leader *l, const struct node *n, uint64_t index)
{
    count_draining(l, n->id, n);
    live_node(l->live, n);
    capacity_of_row(l, node_table_find(l->live->nodes, n->id), index);
}

static void
on_applied(void *arg, uint64_t index, const struct intent *in, const struct fsm_result *res)
{
    struct leader *l = arg;

    if (!res->changed)
        return;
    for (size_t i = 0; i < res->purged_nodes.n; i++) {
        count_draining(l, res->purged_nodes.v[i], NULL);
        live_node_gone(l->live, res->purged_nodes.v[i]);
    }
    l->drain_news |= l->n_draining > 0 && res->allocs.n > 0;
    /* a report of allocations changes nothing of the node that placement looks at */
    if (res->node != NULL && in->alloc_update == NULL && res->purged_nodes.n == 0)
        seen_node(l, res->node, index);
    for (size_t i = 0; i < res->allocs.n; i++)
        seen_alloc(l, res->allocs.v[i], index);
    if (in->reap != NULL)
        for (size_t i = 0; i < in->reap->allocs.n; i++)
            live_alloc_gone(l->live, in->reap->allocs.v[i], index);
    for (size_t i = 0; i < res->evals.n; i++)
        seen_eval(l, res->evals.v[i]);
    gc_seen(l, res);
    if (in->scheduler_config != NULL)
        broker_pause(l->broker, in->scheduler_config->pause_eval_broker);
    if (in->scheduler_cas != NULL && res->changed)
        broker_pause(l->broker, in->scheduler_cas->scheduler_config->pause_eval_broker);
}

static void
drain_loop(void *arg)
{
    struct leader *l = arg;

    if (!l->stopping)
        drainer_kick(l->drainer);
}

static void
on_batch(void *arg)
{
    struct leader *l = arg;

    leader_work(l);
    if (l->drain_news)
        loop_post(server_loop(l->s), drain_loop, l);
    l->drain_news = false;
}

/* --- heartbeats --- */

struct beats_start {
    struct leader *l;
    struct str_list nodes;
    uint64_t gen;
};

static void
beats_loop_on(void *arg)
{
    struct beats_start *b = arg;

    if (!b->l->stopping) {
        b->l->beats_on = true;
        owed_start(b->l->owed);
        heartbeats_clear(b->l->beats);
        for (size_t i = 0; i < b->nodes.n; i++)
            heartbeats_failover(b->l->beats, b->nodes.v[i]);
        gc_arm(b->l);
        drainer_start(b->l->drainer);
    }
    talloc_free(b);
}

static void
beats_loop_off(void *arg)
{
    struct leader *l = arg;

    l->beats_on = false;
    owed_stop(l->owed);
    heartbeats_clear(l->beats);
    timer_stop(TAKE(l->gc_timer));
    drainer_stop(l->drainer);
}

/* A node that is not down has a timer: one that is disconnected, or whose miss came to nothing. */
static void
miss_stored(void *arg, const struct fsm_result *res)
{
    struct leader *l = arg;

    if (res != NULL && res->node != NULL && !str_eq(res->node->status, NODE_DOWN))
        leader_heartbeat(l, res->node->id);
}

static void
beat_missed(void *arg, const char *node_id)
{
    struct leader *l = arg;
    auto_mem void *tmp = mem_ctx("beat_missed");
    char id[UUID_TEXT];
    const char *ids[] = {uuid_make(id)};
    struct state_txn *t = state_read_begin(server_state(l->s), tmp);
    struct intent_node_status st = {.node_id = node_id,
                                    .status = NODE_DOWN,
                                    .reason = "heartbeat missed",
                                    .eval_ids = {ids, 1},
                                    .seen_index = state_applied(t)};
    struct intent in = {.time = clock_wall_ns(), .node_status = &st};

    state_read_end(t);
    log_warn("heartbeat", "node missed its heartbeat", "node_id", node_id, NULL);
    owed_add(l->owed, &in, node_id, miss_stored, l);
}

bool
leader_node_heard(struct leader *l, const char *node_id)
{
    return owed_cancel(l->owed, node_id);
}

int64_t
leader_heartbeat(struct leader *l, const char *node_id)
{
    return l->beats_on ? heartbeats_reset(l->beats, node_id) : 0;
}

void
leader_node_gone(struct leader *l, const char *node_id)
{
    heartbeats_remove(l->beats, node_id);
    owed_cancel(l->owed, node_id);
}

/* --- leadership --- */

static void
load_evals(struct leader *l, struct state_txn *t)
{
    auto_mem void *tmp = mem_ctx("load_evals");
    struct state_iter *it = state_evals(t, tmp, NULL);

    for (struct evaluation *e; (e = state_next(it, tmp)) != NULL; talloc_free(e)) {
        /* what became free between its snapshot and this election is not known: look again */
        if (str_eq(e->status, EVAL_PENDING) || str_eq(e->status, EVAL_BLOCKED))
            broker_enqueue(l->broker, e, mono_ms(), clock_wall_ns());
    }
}

static void
on_leader(void *arg, struct state_txn *t)
{
    struct leader *l = arg;
    struct beats_start *b = mem_new(NULL, struct beats_start);

    l->gen++;
    l->leading = true;
    l->plan_busy = false;
    l->plans = NULL;
    l->n_running = 0;
    live_load(l->live, t);
    broker_clear(l->broker);
    blocked_clear(l->blocked);
    broker_pause(l->broker, state_scheduler_config(t, b)->pause_eval_broker);
    load_evals(l, t);
    b->l = l;
    l->n_draining = 0;
    for (size_t i = 0; i < l->live->nodes->n; i++) {
        const struct node_facts *f = l->live->nodes->facts[i];
        l->n_draining += f != NULL && f->node->drain_strategy != NULL;
        if (f != NULL && !str_eq(f->node->status, NODE_DOWN))
            list_add(b, b->nodes, mem_strdup(b, f->node->id));
    }
    l->drain_news = false;
    loop_post(server_loop(l->s), beats_loop_on, b);
    if (l->n_draining > 0)
        loop_post(server_loop(l->s), drain_loop, l);
    leader_work(l);
}

static void
on_lose(void *arg)
{
    struct leader *l = arg;

    l->leading = false;
    l->gen++;
    while (l->plans != NULL) {
        struct run *r = l->plans;
        l->plans = r->next;
        mem_free(r->ctx);
        talloc_free(r);
    }
    broker_clear(l->broker);
    blocked_clear(l->blocked);
    live_clear(l->live);
    loop_post(server_loop(l->s), beats_loop_off, l);
}

const struct leader_hooks leader_hooks = {
    .on_leader = on_leader,
    .on_lose = on_lose,
    .on_applied = on_applied,
    .on_batch = on_batch,
};

struct leader *
leader_new(struct server *s)
{
    const struct server_config *c = server_cfg(s);
    struct leader *l = mem_new(NULL, struct leader);
    struct heartbeat_config hc = {
        .min_ms = c->heartbeat_min_ms > 0 ? c->heartbeat_min_ms : 10000,
        .grace_ms = c->heartbeat_grace_ms > 0 ? c->heartbeat_grace_ms : 10000,
        .failover_ms = c->failover_ttl_ms > 0 ? c->failover_ttl_ms : 300000,
        .per_second = c->max_heartbeats_per_s > 0 ? c->max_heartbeats_per_s : 50,
    };

    l->s = s;
    l->alarm_ms = INT64_MAX;
    l->broker = broker_new(l);
    broker_nack_after(l->broker, c->eval_nack_ms > 0 ? c->eval_nack_ms : BROKER_NACK_MS);
    l->blocked = blocked_new(l);
    l->live = live_new(l);
    l->drainer = drainer_new(l);
    l->beats = heartbeats_new(l, server_loop(s), &hc, beat_missed, l);
    l->owed = owed_new(l, server_loop(s), propose, s);
    l->workers = workers_start(l, c->workers);
    l->gate = server_gate(s);
    return l;
}

void
leader_retire(struct leader *l)
{
    atomic_store(&l->retired, true);
}

void
leader_stop(struct leader *l)
{
    l->stopping = true;
    l->beats_on = false;
    owed_stop(l->owed);
    heartbeats_clear(l->beats);
    timer_stop(TAKE(l->alarm));
    timer_stop(TAKE(l->gc_timer));
    drainer_stop(l->drainer);
    workers_stop(l->workers);
}

void
leader_free(struct leader *l)
{
    if (l == NULL)
        return;
    workers_free(l->workers);
    while (l->plans != NULL) {
        struct run *r = l->plans;
        l->plans = r->next;
        mem_free(r->ctx);
        talloc_free(r);
    }
    mem_free(l);
}
