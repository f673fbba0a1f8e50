/* SPDX-License-Identifier: Apache-2.0
 *
 * Garbage collection (see gc.h).
 */
#include "server/gc.h"

#include "api/terms.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "server/leader_int.h"

const struct gc_ages gc_ages_default = {
    .eval_s = 3600, .batch_eval_s = 86400, .job_s = 4 * 3600, .node_s = 86400};

struct find {
    const void *ctx;
    void *tmp;
    struct state_txn *t;
    const struct gc_ages *ages;
    int64_t now;
    struct intent_reap *out;
};

static bool
older(const struct find *f, int64_t ns, int64_t age_s)
{
    return f->now - ns >= age_s * NS_PER_S;
}

static bool
full(const struct find *f)
{
    return f->out->evals.n + f->out->allocs.n >= GC_BATCH;
}

/* An allocation that nobody needs: over on both sides, or on the client's with the server agreeing
 * that it is not to be placed again. */
static bool
alloc_may_go(struct find *f, struct allocation *a)
{
    if (!alloc_client_terminal(a))
        return false;
    if (alloc_server_terminal(a))
        return true;
    const struct job *j = state_job(f->t, f->tmp, a->namespace, a->job_id);
    return j == NULL || j->stop || str_eq(j->status, JOB_STATUS_DEAD);
}

/* Finished evaluations go with their allocations, or stay with them. */
static void
find_evals(struct find *f)
{
    struct state_iter *it = state_evals(f->t, f->tmp, NULL);

    for (struct evaluation *e; !full(f) && (e = state_next(it, f->tmp)) != NULL; talloc_free(e)) {
        bool batch = str_eq(e->type, JOB_BATCH) || str_eq(e->type, JOB_SYSBATCH);
        struct str_list allocs = {0};
        bool may = true;
        if (str_eq(e->status, EVAL_PENDING) || str_eq(e->status, EVAL_BLOCKED) ||
            !older(f, e->modify_time, batch ? f->ages->batch_eval_s : f->ages->eval_s))
            continue;
        struct state_iter *ai = state_allocs_by_eval(f->t, f->tmp, e->id);
        for (struct allocation *a; (a = state_next(ai, f->tmp)) != NULL;) {
            if (alloc_may_go(f, a))
                list_add(f->ctx, allocs, mem_strdup(f->ctx, a->id));
            else
                may = false;
        }
        /* a finished batch job keeps its allocations: they say that its work is done */
        const struct job *j = batch ? state_job(f->t, f->tmp, e->namespace, e->job_id) : NULL;
        if (j != NULL && !j->stop && !str_eq(j->status, JOB_STATUS_DEAD))
            continue;
        for (size_t i = 0; i < allocs.n; i++)
            list_add(f->ctx, f->out->allocs, allocs.v[i]);
        if (may)
            list_add(f->ctx, f->out->evals, mem_strdup(f->ctx, e->id));
    }
    if (full(f))
        state_iter_end(it);
}

static bool
job_is_free(struct find *f, const struct job *j)
{
    struct state_iter *it = state_allocs_by_job(f->t, f->tmp, j->namespace, j->id);
    bool any = false;

    for (struct allocation *a; (a = state_next(it, f->tmp)) != NULL;)
        any |= !alloc_may_go(f, a);
    it = state_evals_by_job(f->t, f->tmp, j->namespace, j->id);
    for (struct evaluation *e; (e = state_next(it, f->tmp)) != NULL;)
        any |= str_eq(e->status, EVAL_PENDING) || str_eq(e->status, EVAL_BLOCKED);
    return !any;
}

static void
find_jobs(struct find *f)
{
    struct state_iter *it = state_jobs(f->t, f->tmp, NS_ALL, NULL);

    for (struct job *j; (j = state_next(it, f->tmp)) != NULL;) {
        if (!str_eq(j->status, JOB_STATUS_DEAD) || !older(f, j->submit_time, f->ages->job_s) ||
            j->parameterized_job != NULL || j->periodic != NULL || !job_is_free(f, j))
            continue;
        struct job_ref *r = mem_new(f->ctx, struct job_ref);
        r->namespace = mem_strdup(f->ctx, j->namespace);
        r->id = mem_strdup(f->ctx, j->id);
        list_add(f->ctx, f->out->jobs, r);
    }
}

static void
find_nodes(struct find *f)
{
    struct state_iter *it = state_nodes(f->t, f->tmp, NULL);

    for (struct node *n; (n = state_next(it, f->tmp)) != NULL; talloc_free(n))
        if (str_eq(n->status, NODE_DOWN) &&
            older(f, n->status_updated_at * NS_PER_S, f->ages->node_s))
            list_add(f->ctx, f->out->nodes, mem_strdup(f->ctx, n->id));
}

struct intent_reap *
gc_find(const void *ctx, struct state_txn *t, const struct gc_ages *ages, int64_t now_ns)
{
    auto_mem void *tmp = mem_ctx("gc");
    struct find f = {.ctx = ctx, .tmp = tmp, .t = t, .ages = ages, .now = now_ns};

    f.out = mem_new(ctx, struct intent_reap);
    f.out->down_before = now_ns / NS_PER_S - ages->node_s; /* judged again at apply */
    find_evals(&f);
    find_jobs(&f);
    find_nodes(&f);
    return f.out->evals.n + f.out->allocs.n + f.out->jobs.n + f.out->nodes.n > 0 ? f.out : NULL;
}

/* --- the leader's pass --- */

struct gc_pass {
    struct leader *l;
    struct gate *gate;
    bool force;
    struct intent_reap *reap;
    void (*done)(void *arg);
    void *arg;
};

static void
pass_end(struct gc_pass *p)
{
    if (p->done != NULL)
        p->done(p->arg);
    talloc_free(p);
}

static void
pass_stored(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    (void)index;
    (void)res;
    if (e != NULL)
        log_warn("gc", "garbage was not collected", "error", e->text, NULL);
    pass_end(arg);
}

static void
pass_work(void *arg)
{
    static const struct gc_ages none = {0};
    struct gc_pass *p = arg;

    if (!gate_enter(p->gate))
        return;
    struct state_txn *t = state_read_begin(server_state(p->l->s), p);
    p->reap = gc_find(p, t, p->force ? &none : &gc_ages_default, clock_wall_ns());
    state_read_end(t);
    gate_leave(p->gate);
}

static void
pass_found(void *arg)
{
    struct gc_pass *p = arg;

    bool closed = gate_is_closed(p->gate);
    gate_unref(p->gate);
    if (closed || p->reap == NULL || !server_is_leader(p->l->s)) {
        pass_end(p);
        return;
    }
    struct intent in = {.time = clock_wall_ns(), .reap = p->reap};
    server_propose(p->l->s, &in, pass_stored, p);
}

void
gc_run(struct leader *l, bool force, void (*done)(void *arg), void *arg)
{
    struct gc_pass *p = mem_new(NULL, struct gc_pass);

    *p = (struct gc_pass){
        .l = l, .gate = gate_ref(l->gate), .force = force, .done = done, .arg = arg};
    loop_work(server_loop(l->s), pass_work, pass_found, p);
}

void
leader_gc(struct leader *l, void (*done)(void *arg), void *arg)
{
    gc_run(l, true, done, arg);
}

static void
gc_due(void *arg)
{
    struct leader *l = arg;

    l->gc_timer = NULL;
    gc_run(l, false, NULL, NULL);
    gc_arm(l);
}

void
gc_arm(struct leader *l)
{
    timer_stop(l->gc_timer);
    l->gc_timer = timer_start(server_loop(l->s), GC_INTERVAL_MS, gc_due, l);
}
