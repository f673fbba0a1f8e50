/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker lent to the leader: an attempt (Sched.Attempt) is made of this server's state, once
 * the entry is there which the leader names, and goes back as made. Nothing is kept here, and
 * nothing is decided here: a leader that is gone meanwhile asks for no answer, and who leads says
 * what becomes of a plan.
 *
 * An attempt's way: it comes (loop), waits for its entry (apply thread), is made (worker), is
 * answered (loop). Its caller may give up in between; it goes on to its end then.
 */
#include "api/terms.h"
#include "common/mem.h"
#include "net/rpc.h"
#include "server/leader/leader_int.h"

enum { LENT_PER_WORKER = 4 }; /* attempts here at one time */

struct lent {
    struct lent *next, **at; /* in the list of all */
    struct leader *l;
    struct rpc_call *call; /* loop thread; NULL: it was answered */
    atomic_bool dropped;   /* nobody waits for it */
    struct lent *behind;   /* waits as well */
    uint64_t index;
    int64_t now;
    struct evaluation *eval;
    struct moment seen;
    struct buf out; /* encoded */
    struct err e;   /* why there is none */
};

struct lend {
    /* loop thread */
    struct lent *all;
    size_t n;
    /* apply thread */
    struct lent *waiting;
    bool looking; /* a look is posted */
};

/* --- the end; loop thread --- */

static void
lent_free(struct lent *x)
{
    struct lend *d = x->l->lend;

    ASSERT(x->call == NULL && d->n > 0);
    *x->at = x->next;
    if (x->next != NULL)
        x->next->at = x->at;
    d->n--;
    moment_end(&x->seen);
    buf_done(&x->out);
    talloc_free(x);
}

static struct rpc_call *
lent_leave(struct lent *x)
{
    rpc_call_on_cancel(x->call, NULL, NULL);
    return TAKE(x->call);
}

static void
lent_done(void *arg)
{
    struct lent *x = arg;
    const struct sched_attempt_response resp = {{x->out.data, x->out.len}};

    if (x->call != NULL && x->e.code != 0)
        rpc_fail(lent_leave(x), &x->e);
    else if (x->call != NULL)
        rpc_reply(lent_leave(x), &resp);
    lent_free(x);
}

static void
lent_cancelled(void *arg)
{
    struct lent *x = arg;

    atomic_store(&x->dropped, true);
    rpc_failf(TAKE(x->call), -ERR_CANCELED, "canceled");
}

/* --- the attempt; worker thread --- */

static void
lent_encode(struct lent *x, const struct sched_out *out)
{
    struct job ref = {0};
    struct plan p = {0};
    struct sched_outcome o = {.followups = out->followups,
                              .failed = out->failed,
                              .queued = out->queued,
                              .class_eligibility = out->class_eligibility,
                              .escaped = out->escaped,
                              .quota = out->quota,
                              .more = out->more,
                              .waits = out->waits,
                              .annotations = out->annotations,
                              .deployment_id = out->deployment_id,
                              .index = x->seen.index};

    if (out->plan != NULL) {
        p = *out->plan;
        if (p.job != NULL) {
            ref.id = p.job->id;
            ref.namespace = p.job->namespace;
            ref.version = p.job->version;
            ref.job_modify_index = p.job->job_modify_index;
            p.job = &ref;
        }
        o.plan = &p;
    }
    mp_encode(&x->out, &type_sched_outcome, &o);
    int rc = buf_error(&x->out);
    if (rc < 0)
        err_set(&x->e, rc, "what came of the evaluation is too large to be sent");
}

static void
lent_work(void *arg)
{
    struct lent *x = arg;
    auto_mem void *tmp = mem_ctx("lent");
    int64_t took;

    if (!atomic_load(&x->dropped))
        lent_encode(x, moment_attempt(&x->seen, x->l->env, tmp, x->eval, x->now, &took));
    moment_end(&x->seen);
    env_post(x->l->env, lent_done, x);
}

/* --- waiting for its entry; apply thread --- */

/* The evaluation is one that waits in the state: no stranger's. */
static bool
eval_is_known(struct lent *x)
{
    const struct evaluation *e = state_eval(x->seen.txn, x, x->eval->id);

    return e != NULL && str_eq(e->job_id, x->eval->job_id) && str_eq(e->type, x->eval->type) &&
           str_eq(e->namespace, x->eval->namespace) &&
           (str_eq(e->status, EVAL_PENDING) || str_eq(e->status, EVAL_BLOCKED));
}

static void
lent_begin(struct lent *x)
{
    if (!atomic_load(&x->dropped)) {
        moment_take(&x->seen, x->l->s, x->l->live, x, x->eval);
        if (!eval_is_known(x))
            err_set(&x->e, -ERR_NOT_FOUND, "the evaluation does not wait here");
        else if (workers_submit(x->l->workers, lent_work, x))
            return;
        else
            err_set(&x->e, -ERR_UNAVAILABLE, "this server stops");
        moment_end(&x->seen);
    }
    env_post(x->l->env, lent_done, x);
}

/* Returns the last entry that the state has. */
static uint64_t
lend_there(struct leader *l)
{
    auto_mem void *tmp = mem_ctx("applied");
    struct state_txn *t = server_read_begin(l->s, tmp);
    uint64_t index = state_applied(t);

    state_read_end(t);
    return index > l->applied ? index : l->applied;
}

static void
lend_look(void *arg)
{
    struct leader *l = arg;
    struct lent **at = &l->lend->waiting;
    uint64_t applied = lend_there(l);

    l->lend->looking = false;
    while (*at != NULL) {
        struct lent *x = *at;
        if (x->index > applied && !atomic_load(&x->dropped)) {
            at = &x->behind;
            continue;
        }
        *at = x->behind;
        lent_begin(x);
    }
}

void
lend_applied(struct leader *l)
{
    struct lend *d = l->lend;

    /* between two batches: so state and node table are of one moment */
    if (d->waiting != NULL && !d->looking)
        d->looking = server_post_apply(l->s, lend_look, l);
}

static void
lent_wait(void *arg)
{
    struct lent *x = arg;
    struct lend *d = x->l->lend;

    x->behind = d->waiting;
    d->waiting = x;
    lend_look(x->l);
}

/* --- it comes; loop thread --- */

void
leader_lend(struct leader *l, struct rpc_call *call, const struct sched_attempt_request *r)
{
    struct lend *d = l->lend;
    size_t max = (size_t)server_cfg(l->s)->workers * LENT_PER_WORKER;

    if (l->stopping || atomic_load(&l->retired)) {
        rpc_failf(call, -ERR_UNAVAILABLE, "this server stops");
        return;
    }
    if (d->n >= max) {
        rpc_failf(call, -ERR_BUSY, "%zu evaluations are scheduled here", d->n);
        return;
    }
    if (r->eval == NULL || str_empty(r->eval->id)) {
        rpc_failf(call, -ERR_INVALID, "no evaluation is named");
        return;
    }
    struct lent *x = mem_new(NULL, struct lent);
    *x = (struct lent){.l = l,
                       .call = call,
                       .index = r->index,
                       .now = r->now,
                       .eval = codec_clone(x, &type_evaluation, r->eval),
                       .out = BUF_INIT(RPC_FRAME_MAX - (64 << 10)),
                       .e = ERR_INIT,
                       .next = d->all,
                       .at = &d->all};
    if (x->next != NULL)
        x->next->at = &x->next;
    d->all = x;
    d->n++;
    rpc_call_on_cancel(call, lent_cancelled, x);
    if (server_post_apply(l->s, lent_wait, x))
        return;
    err_set(&x->e, -ERR_UNAVAILABLE, "this server stops");
    lent_done(x);
}

/* --- the row --- */

static void
row_init(struct leader *l)
{
    l->lend = mem_new(l, struct lend);
}

static void
row_on_open(struct leader *l, struct state_txn *t)
{
    (void)t;
    lend_applied(l);
}

/* The server stops: nobody waits any more. */
static void
row_end(struct leader *l)
{
    if (!l->stopping)
        return;
    for (struct lent *x = l->lend->all; x != NULL; x = x->next) {
        atomic_store(&x->dropped, true);
        if (x->call != NULL)
            rpc_failf(lent_leave(x), -ERR_UNAVAILABLE, "this server stops");
    }
}

void
lend_free(struct leader *l)
{
    while (l->lend->all != NULL)
        lent_free(l->lend->all);
}

const struct controller lend_row = {.init = row_init, .on_open = row_on_open, .end = row_end};
