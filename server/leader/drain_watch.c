/* SPDX-License-Identifier: Apache-2.0
 *
 * The drainer: carries out what drain_step() says, while this server leads and some node drains. A
 * pass reads a snapshot on a worker thread of the loop and proposes entries; what follows in the
 * log asks for the next pass. Loop thread but where it says otherwise. Without a draining node
 * there is no timer and no work.
 */
#include "api/terms.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "server/eval.h"
#include "server/leader/drain_step.h"
#include "server/leader/leader_int.h"

enum {
    DRAINER_PAUSE_MS = 100,      /* between two passes: what happens meanwhile is seen together */
    DRAINER_SLEEP_MAX_MS = 60000 /* deadlines are by the wall clock, which may be set */
};

struct drainer {
    struct leader *l;
    /* apply thread */
    size_t draining; /* nodes, as of the last entry */
    bool news;       /* of them, or of allocations while there are some */
    /* loop thread */
    bool on;
    uint64_t gen;          /* counts leaderships: what an older one found is dropped */
    bool busy;             /* a pass is under way */
    bool again;            /* news since it began */
    int64_t not_before_ms; /* the next pass, by the loop's clock */
    struct timer *timer;
};

/* One pass; a talloc context. `d` is not touched once the gate is closed. */
struct pass {
    struct drainer *d;
    uint64_t gen;
    struct gate *gate;
    struct state_txn *txn;
    struct drain_out *out;
    size_t waits; /* proposals without an answer, plus one while they are made */
};

static void drainer_kick(void *arg);

/* --- the view of a pass: rows are read once and live as long as it --- */

static const struct allocation *const *
drain_watch_collect(struct pass *p, struct state_iter *it, size_t *ret_n)
{
    struct allocation_list l = {0};

    for (struct allocation *a; (a = state_next_with_job(it, p)) != NULL;)
        list_add(p, l, a);
    *ret_n = l.n;
    return (const struct allocation *const *)l.v;
}

static const struct allocation *const *
by_node(void *arg, const char *node_id, size_t *ret_n)
{
    struct pass *p = arg;

    return drain_watch_collect(p, state_allocs_by_node(p->txn, p, node_id), ret_n);
}

static const struct allocation *const *
by_job(void *arg, const char *ns, const char *id, size_t *ret_n)
{
    struct pass *p = arg;

    return drain_watch_collect(p, state_allocs_by_job(p->txn, p, ns, id), ret_n);
}

static const struct job *
drain_watch_job(void *arg, const char *ns, const char *id)
{
    struct pass *p = arg;

    return state_job(p->txn, p, ns, id);
}

/* Worker thread. */
static void
pass_work(void *arg)
{
    struct pass *p = arg;
    struct {
        const struct node **v;
        size_t n;
    } nodes = {0};

    if (!gate_enter(p->gate))
        return;
    p->txn = server_read_begin(p->d->l->s, p);
    struct state_iter *it = state_nodes(p->txn, p, NULL);
    for (struct node *n; (n = state_next(it, p)) != NULL;) {
        if (n->drain_strategy != NULL)
            list_add(p, nodes, n);
        else
            talloc_free(n);
    }
    const struct drain_in in = {
        .nodes = nodes.v,
        .n_nodes = nodes.n,
        .now = env_wall_ns(p->d->l->env),
        .allocs_by_node = by_node,
        .allocs_by_job = by_job,
        .job = drain_watch_job,
        .arg = p,
    };
    p->out = drain_step(p, &in);
    state_read_end(TAKE(p->txn));
    gate_leave(p->gate);
}

/* --- what it found goes into the log --- */

static void
timer_fired(void *arg)
{
    struct drainer *d = arg;

    d->timer = NULL;
    drainer_kick(d);
}

static void
sleep_ms(struct drainer *d, int64_t ms)
{
    env_timer_stop(d->l->env, d->timer);
    d->timer =
        env_timer(d->l->env, ms < DRAINER_SLEEP_MAX_MS ? ms : DRAINER_SLEEP_MAX_MS, timer_fired, d);
}

static void
pass_end(struct pass *p)
{
    struct drainer *d = p->d;

    if (!gate_is_closed(p->gate)) {
        d->busy = false;
        d->not_before_ms = env_mono_ms(d->l->env) + DRAINER_PAUSE_MS;
        if (!d->on) {
            /* whoever leads now does the rest */
        } else if (d->again) {
            drainer_kick(d);
        } else if (p->out != NULL && p->out->look_again != INT64_MAX) {
            int64_t ms = (p->out->look_again - env_wall_ns(d->l->env)) / NS_PER_MS + 1;
            sleep_ms(d, ms);
        }
    }
    gate_unref(p->gate);
    talloc_free(p);
}

static void
pass_stored(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct pass *p = arg;

    (void)index;
    (void)res;
    if (e != NULL) {
        log_warn("drain", "a step of draining was not stored", "error", e->text, NULL);
        if (!gate_is_closed(p->gate))
            p->d->again = true;
    }
    ASSERT(p->waits > 0);
    if (--p->waits == 0)
        pass_end(p);
}

static void
drain_watch_propose(struct pass *p, struct intent *in)
{
    p->waits++;
    server_propose(p->d->l->s, in, HOME_LOOP, pass_stored, p);
}

/* Flags and the evaluations that act on them are one entry: neither is without the other. */
static void
propose_move(struct pass *p, struct drain_move *m, bool replace)
{
    struct desired_transition dt = {.migrate = {true, true}};
    struct intent_alloc_transition at = {
        .alloc_ids = m->allocs, .transition = &dt, .draining = true};

    if (m->allocs.n == 0)
        return;
    if (!replace)
        dt.migrate_disable_placement = (struct opt_bool){true, true};
    for (size_t i = 0; i < m->n_jobs; i++) {
        struct evaluation *e = eval_of_job(p, p->d->l->env, m->jobs[i], TRIGGER_NODE_DRAIN);
        list_add(p, at.evals, e);
    }
    drain_watch_propose(p, &(struct intent){.alloc_transition = &at});
}

static void
pass_found(void *arg)
{
    struct pass *p = arg;

    p->waits = 1;
    if (!gate_is_closed(p->gate) && p->d->on && p->gen == p->d->gen && p->out != NULL) {
        propose_move(p, &p->out->move, true);
        propose_move(p, &p->out->end, false);
        for (size_t i = 0; i < p->out->done.n; i++) {
            struct intent_node_drained nd = {.node_id = p->out->done.v[i]};
            drain_watch_propose(p, &(struct intent){.node_drained = &nd});
        }
    }
    if (--p->waits == 0)
        pass_end(p);
}

/* Something that draining depends on has changed. */
static void
drainer_kick(void *arg)
{
    struct drainer *d = arg;

    d->again = true;
    if (!d->on || d->busy)
        return;
    int64_t wait_ms = d->not_before_ms - env_mono_ms(d->l->env);
    if (wait_ms > 0) {
        sleep_ms(d, wait_ms);
        return;
    }
    env_timer_stop(d->l->env, TAKE(d->timer));
    d->busy = true;
    d->again = false;
    struct pass *p = mem_new(NULL, struct pass);
    p->d = d;
    p->gen = d->gen;
    p->gate = gate_ref(d->l->gate);
    env_work(d->l->env, pass_work, pass_found, p);
}

/* --- the row --- */

static void
row_init(struct leader *l)
{
    l->drainer = mem_new(l, struct drainer);
    l->drainer->l = l;
}

static void
row_on_leader(struct leader *l, struct state_txn *t)
{
    (void)t;
    l->drainer->draining = l->live->n_draining;
    l->drainer->news = l->live->n_draining > 0;
}

/* Behind the live table, which has seen the entry. */
static void
row_on_applied(struct leader *l, uint64_t index, const struct intent *in,
               const struct fsm_result *res)
{
    struct drainer *d = l->drainer;

    (void)index;
    (void)in;
    d->news |= d->draining != l->live->n_draining ||
               (l->live->n_draining > 0 && FSM_COUNT(res, ALLOCS, STORED) > 0);
    FSM_EACH(res, NODES, STORED, n)
    d->news |= n->drain_strategy != NULL;
    d->draining = l->live->n_draining;
}

static void
row_on_batch(struct leader *l)
{
    if (l->drainer->news)
        env_post(l->env, drainer_kick, l->drainer);
    l->drainer->news = false;
}

static void
row_begin(struct leader *l)
{
    l->drainer->on = true;
    l->drainer->gen++;
}

static void
row_end(struct leader *l)
{
    struct drainer *d = l->drainer;

    d->on = false;
    env_timer_stop(l->env, TAKE(d->timer));
}

const struct controller drainer_row = {
    .init = row_init,
    .on_leader = row_on_leader,
    .on_applied = row_on_applied,
    .on_batch = row_on_batch,
    .begin = row_begin,
    .end = row_end,
};
