/* SPDX-License-Identifier: Apache-2.0
 *
 * The watcher of deployments: for each active deployment that changed, or whose time is over,
 * deploy_step() is asked on a worker thread of the loop, and its answer is owed to the log
 * (debts.h). All else is on the apply thread. Without an active deployment there is no alarm and no
 * work.
 */
#include <string.h>

#include "api/terms.h"
#include "common/duration.h"
#include "common/hash.h"
#include "common/mem.h"
#include "common/uuid.h"
#include "server/leader/deploy_step.h"
#include "server/leader/leader_int.h"
#include "server/leader/rollback.h"

enum {
    DEPLOY_PAUSE_MS = 250,      /* between two passes: what happens meanwhile is seen together */
    DEPLOY_PASS_MAX = 64,       /* deployments of a pass */
    DEPLOY_SLEEP_MAX_MS = 60000 /* deadlines are by the wall clock, which may be set */
};

/* The active deployment of a job. */
struct watched {
    const char *key; /* "namespace\njob" */
    char id[UUID_TEXT];
    uint64_t seen; /* an evaluation has seen the job up to there */
    bool news;
    int64_t due; /* wall ns; INT64_MAX: never */
    UT_hash_handle hh;
};

struct deploy {
    struct watched *all; /* by key */
    size_t n_news;
    int64_t due; /* the first of theirs, or earlier */
    bool busy;
    int64_t not_before_ms;
};

struct look {
    char *key;
    char id[UUID_TEXT];
    uint64_t seen;
    struct deploy_out out;
    struct intent intents[2];
    size_t n_intents;
};

/* One pass; a talloc context. */
struct pass {
    struct leader *l;
    uint64_t gen;
    struct gate *gate;
    size_t n;
    struct look v[DEPLOY_PASS_MAX];
};

static const char *
key_of(const void *ctx, const char *ns, const char *job)
{
    return mem_printf(ctx, "%s\n%s", str_or(ns, ""), str_or(job, ""));
}

static struct watched *
deploy_watch_find(struct deploy *p, const char *key)
{
    struct watched *w;

    HASH_FIND_STR(p->all, key, w);
    return w;
}

static void
deploy_watch_news(struct deploy *p, struct watched *w)
{
    p->n_news += !w->news;
    w->news = true;
}

static void
deploy_watch_forget(struct deploy *p, struct watched *w)
{
    p->n_news -= w->news;
    HASH_DEL(p->all, w);
    talloc_free(w);
}

static void
seen_deployment(struct deploy *p, const struct deployment *d)
{
    auto_mem void *tmp = mem_ctx("deployment");
    const char *key = key_of(tmp, d->namespace, d->job_id);
    struct watched *w = deploy_watch_find(p, key);

    if (!deployment_active(d)) {
        if (w != NULL && str_eq(w->id, d->id))
            deploy_watch_forget(p, w);
        return;
    }
    if (w == NULL) {
        w = mem_new(p, struct watched);
        w->key = mem_strdup(w, key);
        w->due = INT64_MAX;
        HASH_ADD_KEYPTR(hh, p->all, w->key, strlen(w->key), w);
    }
    str_copy(w->id, sizeof(w->id), d->id);
    deploy_watch_news(p, w);
}

/* With its job, whatever its status was. */
static void
gone_deployment(struct deploy *p, const struct deployment *d)
{
    auto_mem void *tmp = mem_ctx("deployment");
    struct watched *w = deploy_watch_find(p, key_of(tmp, d->namespace, d->job_id));

    if (w != NULL && str_eq(w->id, d->id))
        deploy_watch_forget(p, w);
}

/* --- a pass --- */

static const struct allocation *const *
allocs_of(struct state_txn *t, const void *ctx, const char *id, size_t *ret_n)
{
    struct state_iter *it = state_allocs_by_deployment(t, ctx, id);
    struct allocation_list l = {0};

    for (struct allocation *a; (a = state_next(it, ctx)) != NULL;)
        list_add(ctx, l, a);
    *ret_n = l.n;
    return (const struct allocation *const *)l.v;
}

/* Makes entries of the step's decisions. */
static void
deploy_watch_decide(struct pass *p, struct look *k, struct state_txn *t, const struct deployment *d)
{
    struct evaluation *e = rollback_eval(p, p->l->env, t, d);
    struct intent *in = k->intents;

    ASSERT(k->n_intents < ARRAY_LEN(k->intents));
    if (k->out.fails != NULL) {
        struct intent_deployment_update *up = mem_new(p, struct intent_deployment_update);
        up->update = mem_new(p, struct deployment_status_update);
        up->job = rollback_job(p, t, d, k->out.fails, k->out.revert, up->update);
        up->eval = e;
        in[k->n_intents++].deployment_update = up;
        return;
    }
    if (k->out.promote) {
        struct intent_deployment_promote *pr = mem_new(p, struct intent_deployment_promote);
        *pr = (struct intent_deployment_promote){.deployment_id = d->id, .all = true, .eval = e};
        in[k->n_intents++].deployment_promote = pr;
        return;
    }
    if (k->out.replace.n == 0 && !k->out.evaluate)
        return;
    struct intent_alloc_transition *tr = mem_new(p, struct intent_alloc_transition);
    tr->alloc_ids = k->out.replace;
    tr->transition = mem_new(p, struct desired_transition);
    tr->transition->reschedule = (struct opt_bool){true, true};
    if (e != NULL)
        list_add(p, tr->evals, e);
    in[k->n_intents++].alloc_transition = tr;
}

/* Worker thread. */
static void
pass_work(void *arg)
{
    struct pass *p = arg;

    if (!gate_enter(p->gate))
        return;
    struct state_txn *t = server_read_begin(p->l->s, p);
    for (size_t i = 0; i < p->n; i++) {
        struct look *k = &p->v[i];
        struct deploy_in in = {.seen = k->seen, .now = env_wall_ns(p->l->env)};
        k->out.deadline = INT64_MAX;
        in.d = state_deployment(t, p, k->id);
        if (in.d == NULL || !deployment_active(in.d))
            continue;
        in.job = state_job(t, p, in.d->namespace, in.d->job_id);
        if (in.job == NULL || in.job->stop)
            continue; /* its evaluation cancels the deployment */
        in.allocs = allocs_of(t, p, k->id, &in.n_allocs);
        k->out = deploy_step(p, &in);
        deploy_watch_decide(p, k, t, in.d);
    }
    state_read_end(t);
    gate_leave(p->gate);
}

/* Apply thread. */
static void
pass_over(void *arg)
{
    struct pass *p = arg;
    struct leader *l = p->l;

    if (l->leading && p->gen == l->gen) {
        l->deploy->busy = false;
        l->deploy->not_before_ms = env_mono_ms(l->env) + DEPLOY_PAUSE_MS;
        for (size_t i = 0; i < p->n; i++) {
            struct watched *w = deploy_watch_find(l->deploy, p->v[i].key);
            if (w != NULL && str_eq(w->id, p->v[i].id))
                w->due = p->v[i].out.deadline;
            if (p->v[i].out.deadline < l->deploy->due)
                l->deploy->due = p->v[i].out.deadline;
            for (size_t k = 0; k < p->v[i].n_intents; k++)
                leader_owe(l, &p->v[i].intents[k]);
        }
        leader_alarm(l, l->deploy->not_before_ms);
    }
    gate_unref(p->gate);
    talloc_free(p);
}

static void
pass_done(void *arg)
{
    struct pass *p = arg;

    if (gate_is_closed(p->gate) || !server_post_apply(p->l->s, pass_over, p)) {
        gate_unref(p->gate);
        talloc_free(p);
    }
}

static void
pass_begin(void *arg)
{
    struct pass *p = arg;

    if (gate_is_closed(p->gate))
        pass_done(p);
    else
        env_work(p->l->env, pass_work, pass_done, p);
}

/* Takes what has news or is due, as much as a pass may have. */
static void
pass_start(struct leader *l, int64_t now)
{
    struct deploy *d = l->deploy;
    struct pass *p = mem_new(NULL, struct pass);
    struct watched *w, *next;

    p->l = l;
    p->gen = l->gen;
    p->gate = gate_ref(l->gate);
    d->due = INT64_MAX;
    HASH_ITER(hh, d->all, w, next)
    {
        if (p->n < DEPLOY_PASS_MAX && (w->news || w->due <= now)) {
            struct look *k = &p->v[p->n++];
            k->key = mem_strdup(p, w->key);
            str_copy(k->id, sizeof(k->id), w->id);
            k->seen = w->seen;
            d->n_news -= w->news;
            w->news = false;
            w->due = INT64_MAX;
        } else if (w->due < d->due) {
            d->due = w->due;
        }
    }
    d->busy = true;
    env_post(l->env, pass_begin, p);
}

/* --- the row --- */

static int
deploy_done(struct deploy *d)
{
    HASH_CLEAR(hh, d->all);
    return 0;
}

static void
row_init(struct leader *l)
{
    l->deploy = mem_new(l, struct deploy);
    talloc_set_destructor(l->deploy, deploy_done);
    l->deploy->due = INT64_MAX;
}

static void
row_on_leader(struct leader *l, struct state_txn *t)
{
    auto_mem void *tmp = mem_ctx("load deployments");
    struct state_iter *it = state_deployments(t, tmp, NULL);

    for (struct deployment *d; (d = state_next(it, tmp)) != NULL; talloc_free(d))
        seen_deployment(l->deploy, d);
}

static void
row_on_applied(struct leader *l, uint64_t index, const struct intent *in,
               const struct fsm_result *res)
{
    struct deploy *d = l->deploy;

    (void)index;
    (void)in;
    FSM_EACH(res, DEPLOYMENTS, STORED, x)
    seen_deployment(d, x);
    FSM_EACH(res, DEPLOYMENTS, DELETED, x)
    gone_deployment(d, x);
    if (d->all == NULL)
        return;
    auto_mem void *tmp = mem_ctx("deployment");
    FSM_EACH(res, EVALS, STORED, e)
    {
        struct watched *w = deploy_watch_find(d, key_of(tmp, e->namespace, e->job_id));
        uint64_t at = e->snapshot_index != 0 ? e->snapshot_index : e->create_index;
        if (w != NULL && !str_eq(e->status, EVAL_CANCELED) && at > w->seen)
            w->seen = at;
    }
    FSM_EACH(res, ALLOCS, STORED, a)
    {
        struct watched *w = str_empty(a->deployment_id)
                                ? NULL
                                : deploy_watch_find(d, key_of(tmp, a->namespace, a->job_id));
        if (w != NULL && str_eq(w->id, a->deployment_id))
            deploy_watch_news(d, w);
    }
}

static void
row_on_batch(struct leader *l)
{
    struct deploy *d = l->deploy;
    int64_t now_ms = env_mono_ms(l->env), now = env_wall_ns(l->env);

    if (d->busy || (d->n_news == 0 && d->due == INT64_MAX))
        return;
    if (d->n_news == 0 && d->due > now) {
        int64_t ms = (d->due - now) / NS_PER_MS + 1;
        leader_alarm(l, now_ms + (ms < DEPLOY_SLEEP_MAX_MS ? ms : DEPLOY_SLEEP_MAX_MS));
    } else if (now_ms < d->not_before_ms) {
        leader_alarm(l, d->not_before_ms);
    } else {
        pass_start(l, now);
    }
}

static void
row_on_lose(struct leader *l)
{
    struct watched *w, *next;

    HASH_ITER(hh, l->deploy->all, w, next)
    deploy_watch_forget(l->deploy, w);
    l->deploy->busy = false;
    l->deploy->due = INT64_MAX;
}

const struct controller deploy_row = {
    .init = row_init,
    .on_leader = row_on_leader,
    .on_applied = row_on_applied,
    .on_batch = row_on_batch,
    .on_lose = row_on_lose,
};
