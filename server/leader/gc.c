/* SPDX-License-Identifier: Apache-2.0
 *
 * Garbage collection (see gc.h). First the search, a pure walk over a snapshot: which evaluations
 * with their allocations, jobs, deployments and nodes are old enough, and when the next one will
 * be. Then the leader's pass, which searches on a worker and writes, entry by entry, until nothing
 * more is found. Last the controller, which arms the next pass when something ends.
 */
#include "server/leader/gc.h"

#include "api/terms.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "server/leader/leader_int.h"

struct find {
    const void *ctx;
    void *tmp;
    struct state_txn *t;
    const struct gc_ages *ages;
    int64_t now, due;
    struct intent_reap *out;
};

/* Says whether it is old enough; if not, notes when it will be. */
static bool
gc_older(struct find *f, int64_t ns, int64_t age_s)
{
    int64_t due = ns + age_s * NS_PER_S;

    if (age_s == 0 || due <= f->now)
        return true;
    if (due < f->due)
        f->due = due;
    return false;
}

static bool
gc_full(const struct intent_reap *r)
{
    return r->evals.n + r->allocs.n + r->jobs.n + r->deployments.n >= GC_BATCH;
}

/* Finished evaluations go with their allocations, or stay with them. */
static void
find_eval(struct find *f, const struct evaluation *e)
{
    bool batch = str_eq(e->type, JOB_BATCH) || str_eq(e->type, JOB_SYSBATCH);
    struct str_list allocs = {0};
    bool may = true;

    if (str_eq(e->status, EVAL_PENDING) || str_eq(e->status, EVAL_BLOCKED) ||
        !gc_older(f, e->modify_time, batch ? f->ages->batch_eval_s : f->ages->eval_s))
        return;
    auto_mem struct job *j = state_job(f->t, NULL, e->namespace, e->job_id);
    if (!fsm_eval_may_go(e, j))
        return;
    struct state_iter *it = state_allocs_by_eval(f->t, f->tmp, e->id);
    for (struct allocation *a; (a = state_next(it, f->tmp)) != NULL; talloc_free(a)) {
        if (fsm_alloc_may_go(f->t, a, j))
            list_add(f->ctx, allocs, mem_strdup(f->ctx, a->id));
        else
            may = false;
    }
    for (size_t i = 0; i < allocs.n; i++)
        list_add(f->ctx, f->out->allocs, allocs.v[i]);
    if (may)
        list_add(f->ctx, f->out->evals, mem_strdup(f->ctx, e->id));
}

static void
find_evals(struct find *f)
{
    struct state_iter *it = state_evals(f->t, f->tmp, NULL);

    for (struct evaluation *e; !gc_full(f->out) && (e = state_next(it, f->tmp)) != NULL;
         talloc_free(e))
        find_eval(f, e);
    if (gc_full(f->out))
        state_iter_end(it);
}

/* Nothing has happened to the job for as long as jobs are kept. */
static bool
job_is_old(struct find *f, const struct job *j)
{
    struct state_iter *it = state_allocs_by_job(f->t, f->tmp, j->namespace, j->id);
    bool old = gc_older(f, j->submit_time, f->ages->job_s);

    for (struct allocation *a; (a = state_next(it, f->tmp)) != NULL; talloc_free(a))
        old &= gc_older(f, a->modify_time, f->ages->job_s);
    it = state_evals_by_job(f->t, f->tmp, j->namespace, j->id);
    for (struct evaluation *e; (e = state_next(it, f->tmp)) != NULL; talloc_free(e))
        old &= gc_older(f, e->modify_time, f->ages->job_s);
    return old;
}

static void
find_jobs(struct find *f)
{
    struct state_iter *it = state_jobs(f->t, f->tmp, NS_ALL, NULL);

    for (struct job *j; !gc_full(f->out) && (j = state_next(it, f->tmp)) != NULL; talloc_free(j)) {
        if (!fsm_job_may_go(f->t, j) || !job_is_old(f, j))
            continue;
        struct job_ref *r = mem_new(f->ctx, struct job_ref);
        r->namespace = mem_strdup(f->ctx, j->namespace);
        r->id = mem_strdup(f->ctx, j->id);
        list_add(f->ctx, f->out->jobs, r);
    }
    if (gc_full(f->out))
        state_iter_end(it);
}

/* Over, and none of its allocations lives. */
static void
find_deployments(struct find *f)
{
    struct state_iter *it = state_deployments(f->t, f->tmp, NULL);

    for (struct deployment *d; !gc_full(f->out) && (d = state_next(it, f->tmp)) != NULL;
         talloc_free(d)) {
        if (fsm_deployment_may_go(f->t, d) && gc_older(f, d->modify_time, f->ages->deployment_s))
            list_add(f->ctx, f->out->deployments, mem_strdup(f->ctx, d->id));
    }
    if (gc_full(f->out))
        state_iter_end(it);
}

static void
find_nodes(struct find *f)
{
    struct state_iter *it = state_nodes(f->t, f->tmp, NULL);

    for (struct node *n; (n = state_next(it, f->tmp)) != NULL; talloc_free(n))
        if (str_eq(n->status, NODE_DOWN) &&
            gc_older(f, n->status_updated_at * NS_PER_S, f->ages->node_s))
            list_add(f->ctx, f->out->nodes, mem_strdup(f->ctx, n->id));
}

/* Says whether a token ended long enough ago. */
static bool
find_ended(struct find *f, int64_t ends)
{
    int64_t due = ends + f->ages->token_s * NS_PER_S;

    if (ends <= f->now)
        return gc_older(f, ends, f->ages->token_s);
    if (due < f->due)
        f->due = due;
    return false;
}

static void
find_tokens(struct find *f)
{
    struct state_iter *it = state_ids(f->t, f->tmp, STATE_ACL_TOKENS, NULL);

    for (struct acl_token *t; (t = state_next(it, f->tmp)) != NULL; talloc_free(t))
        if (t->expiration_time != 0 && f->out->tokens.n < GC_BATCH &&
            find_ended(f, t->expiration_time))
            list_add(f->ctx, f->out->tokens, mem_strdup(f->ctx, t->accessor_id));
    it = state_ids(f->t, f->tmp, STATE_ACL_ONE_TIME_TOKENS, NULL);
    for (struct acl_one_time_token *o; (o = state_next(it, f->tmp)) != NULL; talloc_free(o))
        if (f->out->one_time_tokens.n < GC_BATCH && find_ended(f, o->expires_at))
            list_add(f->ctx, f->out->one_time_tokens, mem_strdup(f->ctx, o->accessor_id));
}

struct intent_reap *
gc_find(const void *ctx, struct state_txn *t, const struct gc_ages *ages, int64_t now_ns,
        int64_t *ret_due_ns)
{
    auto_mem void *tmp = mem_ctx("gc");
    struct find f = {.ctx = ctx, .tmp = tmp, .t = t, .ages = ages, .now = now_ns, .due = INT64_MAX};

    f.out = mem_new(ctx, struct intent_reap);
    if (ages->node_s > 0)
        f.out->down_before = now_ns / NS_PER_S - ages->node_s; /* judged again at apply */
    find_evals(&f);
    find_jobs(&f);
    find_deployments(&f);
    find_nodes(&f);
    find_tokens(&f);
    ASSERT(f.due > now_ns); /* what is due is taken */
    *ret_due_ns = f.due;
    return f.out->evals.n + f.out->allocs.n + f.out->jobs.n + f.out->nodes.n +
                       f.out->deployments.n + f.out->tokens.n + f.out->one_time_tokens.n >
                   0
               ? f.out
               : NULL;
}

/* --- the leader's pass: entry by entry, until nothing more may go --- */

struct gc {
    struct timer *timer;
    int64_t at_ns;     /* when it fires, monotonic */
    atomic_bool noted; /* any thread: something has ended since the last look */
};

struct gc_pass {
    struct leader *l;
    struct gate *gate;
    struct gc_ages ages;
    void *ctx; /* of one entry: owns reap */
    struct intent_reap *reap;
    int64_t due_ns;
    unsigned rounds;
    void (*done)(void *arg, uint64_t index);
    void *arg;
};

static void pass_begin(struct gc_pass *p);
static void gc_run(struct leader *l, bool force, void (*done)(void *arg, uint64_t index),
                   void *arg);

static void
gc_due(void *arg)
{
    struct leader *l = arg;

    l->gc->timer = NULL;
    gc_run(l, false, NULL, NULL);
}

static void
arm_in(struct leader *l, int64_t delay_ns)
{
    struct gc *g = l->gc;
    int64_t at = env_mono_ns(l->env) + delay_ns;

    if (!l->on || (g->timer != NULL && g->at_ns <= at))
        return;
    env_timer_stop(l->env, g->timer);
    g->at_ns = at;
    g->timer = env_timer(l->env, delay_ns / NS_PER_MS + 1, gc_due, l);
}

static void
pass_end(struct gc_pass *p, bool closed)
{
    if (!closed && p->due_ns != INT64_MAX) {
        int64_t wait = p->due_ns - env_wall_ns(p->l->env),
                least = server_cfg(p->l->s)->agent->job_gc_interval;
        arm_in(p->l, wait > least ? wait : least);
    }
    if (p->done != NULL)
        p->done(p->arg, closed ? 0 : server_applied(p->l->s));
    gate_unref(p->gate);
    mem_free(p->ctx);
    talloc_free(p);
}

static void
pass_stored(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct gc_pass *p = arg;

    (void)index;
    if (e != NULL) {
        log_warn("gc", "garbage was not collected", "error", e->text, NULL);
        p->due_ns = 0; /* it is still there */
    }
    bool more = e == NULL && res->changed && gc_full(p->reap) && ++p->rounds < GC_ROUNDS;
    if (more && !gate_is_closed(p->gate))
        pass_begin(p);
    else
        pass_end(p, gate_is_closed(p->gate));
}

static void
pass_work(void *arg)
{
    struct gc_pass *p = arg;

    if (!gate_enter(p->gate))
        return;
    struct state_txn *t = server_read_begin(p->l->s, p->ctx);
    p->reap = gc_find(p->ctx, t, &p->ages, env_wall_ns(p->l->env), &p->due_ns);
    state_read_end(t);
    gate_leave(p->gate);
}

static void
pass_found(void *arg)
{
    struct gc_pass *p = arg;
    bool closed = gate_is_closed(p->gate);

    if (closed || p->reap == NULL || !server_is_leader(p->l->s)) {
        pass_end(p, closed);
        return;
    }
    struct intent in = {.reap = p->reap};
    server_propose(p->l->s, &in, HOME_LOOP, pass_stored, p);
}

static void
pass_begin(struct gc_pass *p)
{
    mem_free(p->ctx);
    p->ctx = mem_ctx("gc pass");
    p->reap = NULL;
    p->due_ns = INT64_MAX;
    env_work(p->l->env, pass_work, pass_found, p);
}

/* Loop thread: one pass; `done` (may be NULL) on the loop when it is in the log. */
static void
gc_run(struct leader *l, bool force, void (*done)(void *arg, uint64_t index), void *arg)
{
    const struct agent_server *a = server_cfg(l->s)->agent;
    struct gc_pass *p = mem_new(NULL, struct gc_pass);

    *p = (struct gc_pass){.l = l, .gate = gate_ref(l->gate), .done = done, .arg = arg};
    if (!force)
        p->ages = (struct gc_ages){.eval_s = a->eval_gc_threshold / NS_PER_S,
                                   .batch_eval_s = a->batch_eval_gc_threshold / NS_PER_S,
                                   .job_s = a->job_gc_threshold / NS_PER_S,
                                   .node_s = a->node_gc_threshold / NS_PER_S,
                                   .deployment_s = a->deployment_gc_threshold / NS_PER_S,
                                   .token_s = a->acl_token_gc_threshold / NS_PER_S};
    atomic_store(&l->gc->noted, false); /* what ends from here on is not in the snapshot */
    pass_begin(p);
}

void
leader_gc(struct leader *l, void (*done)(void *arg, uint64_t index), void *arg)
{
    gc_run(l, true, done, arg);
}

/* Loop thread: a look in an interval from now, or sooner when one is due sooner. */
static void
gc_arm(struct leader *l)
{
    arm_in(l, server_cfg(l->s)->agent->job_gc_interval);
}

/* --- what ends --- */

static void
gc_noted(void *arg)
{
    gc_arm(arg);
}

static bool
ends_something(const struct fsm_result *res)
{
    bool any = false;
    FSM_EACH(res, NODES, STORED, n)
        any |= str_eq(n->status, NODE_DOWN);
    FSM_EACH(res, ALLOCS, STORED, a)
        any |= alloc_client_terminal(a);
    FSM_EACH(res, EVALS, STORED, e)
        any |= !str_eq(e->status, EVAL_PENDING) && !str_eq(e->status, EVAL_BLOCKED);
    FSM_EACH(res, DEPLOYMENTS, STORED, d)
        any |= !deployment_active(d);
    FSM_EACH (res, ACL_TOKENS, STORED, t)
        any |= t->expiration_time != 0;
    FSM_EACH (res, ACL_ONE_TIME_TOKENS, STORED, o)
        any |= o->expires_at != 0;
    return any;
}

static void
row_on_applied(struct leader *l, uint64_t index, const struct intent *in,
               const struct fsm_result *res)
{
    (void)index;
    (void)in;
    if (!atomic_load(&l->gc->noted) && ends_something(res) && !atomic_exchange(&l->gc->noted, true))
        env_post(l->env, gc_noted, l);
}

static void
row_init(struct leader *l)
{
    l->gc = mem_new(l, struct gc);
}

static void
row_end(struct leader *l)
{
    env_timer_stop(l->env, TAKE(l->gc->timer));
}

const struct controller gc_row = {
    .init = row_init,
    .on_applied = row_on_applied,
    .begin = gc_arm,
    .end = row_end,
};
