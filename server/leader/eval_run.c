/* SPDX-License-Identifier: Apache-2.0
 *
 * One evaluation from the broker to its final status (doc/scheduling.md 1.6, 1.7). Steps run on the
 * core thread except the scheduling itself, which is a worker's; waiting is done by callbacks.
 */
#include <string.h>

#include "api/terms.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "server/eval.h"
#include "server/leader/leader_int.h"

enum {
    RUN_PREEMPTED_MAX = 1000, /* that an evaluation names */
    LENT_HEAVY_BYTES = 64 << 10
};

static void run_attempt(struct run *r);
static void run_finish(struct run *r);
static void run_stored(struct run *r, int code, struct fsm_result *res);
static bool run_propose_part(struct run *r);

static void next_plan(struct leader *l);

static void
attempt_free(void *ctx)
{
    talloc_free(ctx);
}

/* Frees what an attempt read and made. For a large job that takes a while, too: a worker does
 * that. */
static void
run_forget(struct run *r)
{
    void *ctx = TAKE(r->ctx);

    if (ctx != NULL && !(r->heavy && workers_submit(r->l->workers, attempt_free, ctx)))
        talloc_free(ctx);
}

static void
run_free(struct run *r)
{
    test_hook_ran(r->l, r->eval->id);
    moment_end(&r->seen);
    run_forget(r);
    talloc_free(r);
}

/* The leadership it was for is over. */
static bool
run_stale(struct run *r)
{
    if (r->l->leading && r->gen == r->l->gen)
        return false;
    run_free(r);
    return true;
}

static void
run_end(struct run *r, bool ok)
{
    struct leader *l = r->l;

    ASSERT(r->gen == l->gen && r->seen.txn == NULL);
    ASSERT(r->placed || l->n_running > 0);
    l->n_running -= !r->placed;
    if (ok)
        broker_ack(l->broker, r->eval->id, r->token, env_mono_ms(l->env), env_wall_ns(l->env));
    else
        broker_nack(l->broker, r->eval->id, r->token, env_mono_ms(l->env));
    run_free(r);
    leader_work(l);
}

/* Drops a run whose time was over before it came to an end: the evaluation is another run's, and
 * its plan is stale. */
static void
run_drop(struct run *r)
{
    struct leader *l = r->l;

    ASSERT(r->placed || l->n_running > 0);
    log_debug("sched", "a plan came too late", "eval_id", r->eval->id, NULL);
    l->n_running -= !r->placed;
    run_free(r);
    leader_work(l);
}

void
runs_drop(struct leader *l)
{
    while (l->plans != NULL) {
        struct run *r = l->plans;
        l->plans = r->next;
        mem_free(r->ctx);
        talloc_free(r);
    }
}

static void
run_begin(void *arg)
{
    struct run *r = arg;

    if (run_stale(r))
        return;
    r->l->n_running++;
    run_attempt(r);
}

void
run_start(struct leader *l, const struct evaluation *e, uint64_t token)
{
    struct run *r = mem_new(NULL, struct run);
    const struct test_go go = {l->s, true, run_begin, r};

    ASSERT(l->leading && token != 0);
    r->l = l;
    r->gen = l->gen;
    r->eval = codec_clone(r, &type_evaluation, e);
    r->token = token;
    if (!test_hook_hold("eval", "dequeue", &type_evaluation, r->eval, &go))
        run_begin(r);
}

/* --- the log --- */

static void
run_answered(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct run *r = arg;

    (void)index;
    if (e != NULL && e->code == -ERR_CANCELED) /* the server stops */
        run_free(r);
    else
        r->answered(r, e != NULL ? e->code : 0, res);
}

static void
run_propose(struct run *r, struct intent *in, run_answer_fn *answered)
{
    r->answered = answered;
    server_propose(r->l->s, in, HOME_APPLY, run_answered, r);
}

/* --- scheduling --- */

static void
run_plan(struct run *r)
{
    struct leader *l = r->l;

    ASSERT(r->out != NULL && r->next == NULL && r->gen == l->gen);
    if (r->out->plan == NULL) {
        r->conflicts = false;
        run_finish(r);
        return;
    }
    struct run **at = &l->plans;
    while (*at != NULL && (*at)->eval->priority >= r->eval->priority)
        at = &(*at)->next;
    r->next = *at;
    *at = r;
    next_plan(l);
}

static void
run_followed(struct run *r, int code, struct fsm_result *res)
{
    (void)res;
    if (run_stale(r))
        return;
    if (code == 0)
        run_plan(r);
    else
        run_end(r, false);
}

/* Follow-up evaluations come first: an allocation that names a missing one would never be
 * rescheduled. */
static void
run_follow(struct run *r)
{
    struct intent_eval_update up = {.evals = r->out->followups};
    struct intent in = {.time = env_wall_ns(r->l->env), .eval_update = &up};

    for (size_t i = 0; i < up.evals.n; i++)
        up.evals.v[i]->create_time = up.evals.v[i]->modify_time = in.time;
    r->eval->next_eval = mem_strdup(r->eval, up.evals.v[up.evals.n - 1]->id);
    run_propose(r, &in, run_followed);
}

static void
run_scheduled(void *arg)
{
    struct run *r = arg;

    r->l->n_here -= r->here;
    r->here = false;
    if (run_stale(r))
        return;
    ASSERT(r->out != NULL && r->seen.txn == NULL); /* the worker is done with its snapshot */
    /* from here on it waits for the log alone, however long that takes */
    if (!broker_hold(r->l->broker, r->eval->id, r->token))
        run_drop(r);
    else if (r->out->followups.n > 0)
        run_follow(r);
    else
        run_plan(r);
}

/* Worker thread. */
static void
run_work(void *arg)
{
    struct run *r = arg;
    const struct env *env = r->l->env;
    int64_t took;

    r->snapshot_index = r->seen.index;
    r->out = moment_attempt(&r->seen, env, r->ctx, r->eval, env_wall_ns(env), &took);
    r->heavy = took > NS_PER_MS;
    if (!server_post_apply(r->l->s, run_scheduled, r))
        run_free(r);
}

static void
run_here(struct run *r)
{
    struct leader *l = r->l;

    moment_take(&r->seen, l->s, l->live, r->ctx, r->eval);
    r->here = workers_submit(l->workers, run_work, r);
    l->n_here += r->here;
    if (!r->here) {
        /* the server is stopping: whoever leads next finds the evaluation in the state */
        l->n_running--;
        broker_nack(l->broker, r->eval->id, r->token, env_mono_ms(l->env));
        run_free(r);
    }
}

/* --- what another server made of it --- */

static void
run_fell_back(void *arg)
{
    struct run *r = arg;

    if (run_stale(r))
        return;
    if (broker_touch(r->l->broker, r->eval->id, r->token, env_mono_ms(r->l->env)))
        run_here(r);
    else
        run_drop(r);
}

static void
run_not_lent(struct run *r)
{
    if (!server_post_apply(r->l->s, run_fell_back, r))
        run_free(r);
}

static struct sched_out *
outcome_out(void *ctx, const struct sched_outcome *o)
{
    struct sched_out *out = mem_new(ctx, struct sched_out);

    *out = (struct sched_out){.plan = o->plan,
                              .followups = o->followups,
                              .failed = o->failed,
                              .queued = o->queued,
                              .class_eligibility = o->class_eligibility,
                              .escaped = o->escaped,
                              .quota = o->quota,
                              .more = o->more,
                              .waits = o->waits,
                              .annotations = o->annotations,
                              .deployment_id = o->deployment_id};
    return out;
}

/* Worker thread. */
static void
run_read(void *arg)
{
    struct run *r = arg;
    struct sched_outcome *o = NULL;
    struct err e = ERR_INIT;
    void *obj;

    if (mp_decode(r->ctx, &type_sched_outcome, SLICE(r->lent.v, r->lent.n), BUDGET(ROW_BUDGET),
                  &obj, &e) == 0)
        o = obj;
    if (o == NULL || (o->plan != NULL && !str_eq(o->plan->eval_id, r->eval->id))) {
        log_warn("sched", "what another server made of an evaluation cannot be read", "eval_id",
                 r->eval->id, "error", e.text, NULL);
        run_not_lent(r);
        return;
    }
    r->heavy = r->lent.n > LENT_HEAVY_BYTES;
    r->out = outcome_out(r->ctx, o);
    r->snapshot_index = o->index;
    if (o->plan != NULL)
        plan_sort(o->plan);
    if (!server_post_apply(r->l->s, run_scheduled, r))
        run_free(r);
}

static void
run_lent_over(struct run *r, bool came)
{
    if (!came || !workers_submit(r->l->workers, run_read, r))
        run_not_lent(r);
}

static void
run_attempt(struct run *r)
{
    struct leader *l = r->l;

    broker_touch(l->broker, r->eval->id, r->token, env_mono_ms(l->env));
    run_forget(r);
    r->ctx = mem_ctx("evaluation");
    r->out = NULL;
    r->attempt++;
    ASSERT(r->seen.txn == NULL && r->attempt <= sched_attempts(r->eval->type));
    if (l->n_here < server_cfg(l->s)->workers || borrow_room(l) == 0) {
        run_here(r);
        return;
    }
    r->lent_index = l->applied;
    borrow_ask(l, r, run_lent_over);
}

/* --- plans --- */

static void
run_plan_result(struct run *r, bool partial, bool progress)
{
    if (!partial) {
        run_finish(r);
        return;
    }
    r->conflicts = true;
    if (progress)
        r->attempt = 0;
    if (r->attempt >= sched_attempts(r->eval->type))
        run_finish(r);
    else
        run_attempt(r);
}

/* The part is larger than an entry may be: a smaller one is tried, but not of what is done at once
 * or not at all. False: it is given up. */
static bool
run_smaller(struct run *r)
{
    size_t n = r->verdict.result->stopped.n + r->verdict.result->placed.n;

    ASSERT(r->part_max > 0);
    if (r->part_max > 1 && !r->out->plan->all_at_once) {
        r->part_max /= 2;
        return true;
    }
    for (size_t i = 0; i < r->out->plan->node_allocation.n; i++) {
        const struct allocation *a = r->out->plan->node_allocation.v[i];
        if (a->create_index == 0)
            map_put(r->out, r->out->queued, a->task_group)->v++;
    }
    r->failure = mem_printf(r->ctx,
                            "the plan of %zu changes is larger than an entry of the log may be "
                            "(%d MiB)%s",
                            n, SERVER_INTENT_MAX >> 20,
                            r->out->plan->all_at_once ? ": remove all_at_once" : "");
    return false;
}

static void
run_committed(struct run *r, int code, struct fsm_result *res)
{
    struct leader *l = r->l;

    if (run_stale(r))
        return;
    ASSERT(l->plan_busy && r->verdict.result != NULL); /* one plan at a time, and this is it */
    bool too_large = code == -ERR_LIMIT && res == NULL;
    if (code == 0) {
        r->refused |= res->rejected_nodes.n > 0 || res->names_taken > 0;
        r->progress |= FSM_COUNT(res, ALLOCS, STORED) + FSM_COUNT(res, DEPLOYMENTS, STORED) > 0;
        r->at = r->next_at;
    }
    if ((code == 0 || (too_large && run_smaller(r))) && run_propose_part(r))
        return;
    l->plan_busy = false;
    if (too_large) {
        run_finish(r);
    } else if (code != 0 && res == NULL) {
        log_warn("sched", "a plan was not committed", "eval_id", r->eval->id, "error",
                 err_name(code), NULL);
        run_end(r, false);
    } else if (code != 0) {
        run_plan_result(r, true, false);
    } else {
        run_plan_result(r, r->refused || r->conflicts, r->progress);
    }
    next_plan(l);
}

/* Held by a test, it goes on. */
static void
run_propose_again(void *arg)
{
    if (!run_stale(arg))
        (void)run_propose_part(arg);
}

/* The next part of the plan; false when all of it is done. Other writes come between two parts, but
 * no other plan. */
static bool
run_propose_part(struct run *r)
{
    struct plan_result part;
    struct intent in = {.plan_result = &part};
    const struct test_go go = {r->l->s, true, run_propose_again, r};

    ASSERT(r->verdict.result != NULL && r->part_max > 0);
    r->next_at = r->at;
    if (!plan_part(&r->verdict, r->part_max, &r->next_at, &part))
        return false;
    if (!test_hook_hold("plan", "propose", &type_plan_result, &part, &go))
        run_propose(r, &in, run_committed);
    return true;
}

/* A part of the check; then what holds goes into the log. */
static void
run_check(void *arg)
{
    struct run *r = arg;
    struct leader *l = r->l;
    struct plan_verdict v;

    if (run_stale(r))
        return;
    ASSERT(l->plan_busy && r->check != NULL);
    struct state_txn *t = server_read_begin(l->s, r->ctx);
    bool done = plan_check_step(r->check, t, PLAN_STEP, &v);
    state_read_end(t);
    if (!done) {
        if (!server_post_apply(l->s, run_check, r))
            run_free(r);
        return;
    }
    if (v.rejected.n > 0)
        log_debug("sched", "plan rejected in part", "eval_id", r->eval->id, "node_id",
                  v.rejected.v[0], "why", v.why, NULL);
    r->conflicts = v.rejected.n > 0 || r->out->more;
    r->refused = r->progress = false;
    if (v.result == NULL) {
        l->plan_busy = false;
        run_plan_result(r, true, false);
        next_plan(l);
        return;
    }
    r->verdict = v;
    r->at = (struct plan_at){0};
    r->part_max = r->out->plan->all_at_once ? SIZE_MAX : PLAN_PART_MAX;
    l->plan_busy = run_propose_part(r);
}

static void
run_verify(struct run *r)
{
    r->l->plan_busy = true;
    struct state_txn *t = server_read_begin(r->l->s, r->ctx);
    r->check = plan_check_new(
        r->ctx, r->l->live, r->out->plan,
        quota_room_of(r->ctx, t, r->l->live, server_cfg(r->l->s)->region, r->eval->namespace));
    state_read_end(t);
    run_check(r);
}

/* Held by a test, it waits for its turn again. */
static void
run_verify_again(void *arg)
{
    struct run *r = arg;
    struct leader *l = r->l;

    if (run_stale(r))
        return;
    if (!l->plan_busy) {
        run_verify(r);
        return;
    }
    r->next = l->plans;
    l->plans = r;
}

/* Checks the best waiting plan. One at a time: the next plan is checked against what this one
 * leaves. */
static void
next_plan(struct leader *l)
{
    while (!l->plan_busy && l->plans != NULL && !atomic_load(&l->retired)) {
        struct run *r = l->plans;
        const struct test_go go = {l->s, true, run_verify_again, r};
        /* runs_drop() left none of another leadership */
        ASSERT(r->gen == l->gen && r->out->plan != NULL);
        l->plans = TAKE(r->next);
        if (!test_hook_hold("plan", "verify", &type_plan, r->out->plan, &go))
            run_verify(r);
    }
}

/* --- the end --- */

/* Stores that the run's outcome cannot be an entry of the log: that is its outcome. */
static void
run_store_failure(struct run *r)
{
    struct evaluation e = *r->eval, *v = &e;
    struct intent_eval_update up = {.evals = {&v, 1}};
    struct intent in = {.time = env_wall_ns(r->l->env), .eval_update = &up};

    ASSERT(!r->shortened);
    log_error("sched", "the outcome of an evaluation is larger than an entry of the log may be",
              "eval_id", e.id, "job", e.job_id, NULL);
    r->shortened = true;
    e.modify_time = in.time;
    e.status = EVAL_FAILED;
    e.status_description = "its outcome is larger than an entry of the log may be: fewer groups";
    e.failed_tg_allocs.n = e.queued_allocations.n = e.class_eligibility.n = 0;
    e.plan_annotations = NULL;
    run_propose(r, &in, run_stored);
}

static void
run_stored(struct run *r, int code, struct fsm_result *res)
{
    if (run_stale(r))
        return;
    ASSERT(r->placed); /* its room among those that run is another's since it finished */
    if ((code == -ERR_LIMIT || code == -ERR_INVALID) && res == NULL && !r->shortened)
        run_store_failure(r);
    else
        run_end(r, code == 0);
}

static struct evaluation *
blocked_new_eval(struct run *r, const char *trigger, const char *text)
{
    struct evaluation *b = eval_after(r->ctx, r->l->env, r->eval, trigger);

    b->status_description = text;
    return b;
}

static void
fill_blocked(struct run *r, struct evaluation *b)
{
    b->status = EVAL_BLOCKED;
    b->class_eligibility = r->out->class_eligibility;
    b->escaped_computed_class = r->out->escaped;
    b->failed_tg_allocs = r->out->failed;
    b->quota_limit_reached = r->out->quota;
    b->snapshot_index = r->snapshot_index;
    b->modify_time = env_wall_ns(r->l->env);
}

/* Returns what the last attempt made of each group; of very many that were preempted the numbers
 * say how many. */
static struct plan_annotations *
short_annotations(struct run *r)
{
    const struct plan_annotations *all = r->out->annotations;
    struct plan_annotations *some = all != NULL ? mem_new(r->ctx, struct plan_annotations) : NULL;

    if (some != NULL) {
        *some = *all;
        if (some->preempted_allocs.n > RUN_PREEMPTED_MAX)
            some->preempted_allocs.n = RUN_PREEMPTED_MAX;
    }
    return some;
}

static void
run_finish(struct run *r)
{
    struct evaluation e = *r->eval, *v[2] = {&e};
    struct intent_eval_update up = {.evals = {v, 1}};
    struct intent in = {.time = env_wall_ns(r->l->env), .eval_update = &up};
    ASSERT(r->out != NULL && !r->placed);
    bool gave_up = r->conflicts && r->attempt >= sched_attempts(r->eval->type);

    e.modify_time = in.time;
    e.failed_tg_allocs = r->out->failed;
    e.queued_allocations = r->out->queued;
    e.plan_annotations = short_annotations(r);
    e.quota_limit_reached = NULL;
    e.snapshot_index = r->snapshot_index;
    if (!str_empty(r->out->deployment_id))
        e.deployment_id = r->out->deployment_id;
    if (r->failure != NULL) {
        e.status = EVAL_FAILED;
        e.status_description = r->failure;
    } else if (gave_up) {
        e.status = EVAL_FAILED;
        e.status_description =
            mem_printf(r->ctx, "maximum attempts reached (%d)", sched_attempts(r->eval->type));
        v[1] = blocked_new_eval(r, TRIGGER_MAX_PLANS, "created due to placement conflicts");
    } else if (!r->out->waits) {
        e.status = EVAL_COMPLETE;
        e.status_description = NULL;
    } else if (str_eq(r->eval->status, EVAL_BLOCKED)) {
        fill_blocked(r, &e); /* it waits on */
    } else {
        e.status = EVAL_COMPLETE;
        e.status_description = NULL;
        v[1] = blocked_new_eval(r, TRIGGER_QUEUED_ALLOCS, "created to place remaining allocations");
    }
    if (v[1] != NULL) {
        fill_blocked(r, v[1]);
        e.blocked_eval = v[1]->id;
        up.evals.n = 2;
    }
    run_propose(r, &in, run_stored);
    /* while its status is written the next one may be scheduled: this one's plan is in the state */
    r->placed = true;
    r->l->n_running--;
    leader_work(r->l);
}
