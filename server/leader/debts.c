/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes that nobody waits for (see debts.h).
 */
#include "server/leader/debts.h"

#include <string.h>

#include "common/hash.h"
#include "common/log.h"
#include "common/mem.h"

/* A node of a debt that may be called back. */
struct mark {
    struct debt *d;
    char *key;
    bool cancelled;
    UT_hash_handle hh;
};

struct debt {
    struct debts *o;
    struct intent *in;
    struct mark *marks;
    size_t n_marks; /* 0: it cannot be called back */
    debts_stored_fn *stored;
    void *arg;
    uint64_t gen;
    bool sent;
    struct debt *next; /* among those that wait */
};

struct debts {
    const struct env *env;
    debts_propose_fn *propose;
    void *arg;
    bool on;
    uint64_t gen; /* counts leaderships */
    struct debt *waiting, **last;
    struct mark *by_key;
    struct timer *retry;
    int64_t backoff_ms; /* 0: nothing was refused lately */
};

struct debts *
debts_new(const void *ctx, const struct env *env, debts_propose_fn *propose, void *arg)
{
    struct debts *o = mem_new(ctx, struct debts);

    o->env = env;
    o->propose = propose;
    o->arg = arg;
    o->last = &o->waiting;
    return o;
}

static void
debt_free(struct debt *d)
{
    for (size_t i = 0; i < d->n_marks; i++) {
        struct mark *known;
        HASH_FIND_STR(d->o->by_key, d->marks[i].key, known);
        if (known == &d->marks[i])
            HASH_DEL(d->o->by_key, known);
    }
    talloc_free(d);
}

/* Only the nodes that were not called back are missed. False: there are none. */
static bool
debts_strip(struct debt *d)
{
    struct intent_node_status *st = d->in->node_status;
    struct str_list left = {0};

    ASSERT(!d->sent);
    for (size_t i = 0; i < d->n_marks; i++)
        if (!d->marks[i].cancelled)
            list_add(d, left, d->marks[i].key);
    if (left.n > 0) {
        ASSERT(st != NULL);
        st->node_id = left.v[0];
        st->node_ids = (struct str_list){left.v + 1, left.n - 1};
    }
    return left.n > 0 || d->n_marks == 0;
}

/* --- waiting --- */

static void
wait_last(struct debts *o, struct debt *d)
{
    d->next = NULL;
    *o->last = d;
    o->last = &d->next;
}

static struct debt *
take_first(struct debts *o)
{
    struct debt *d = o->waiting;

    if (d != NULL && (o->waiting = d->next) == NULL)
        o->last = &o->waiting;
    return d;
}

static void debts_answered(void *arg, const struct err *e, uint64_t index, struct fsm_result *res);

static void
debt_send(struct debt *d)
{
    d->sent = true;
    d->o->propose(d->o->arg, d->in, debts_answered, d);
}

/* One of them tries whether writes are taken again. */
static void
retry_one(void *arg)
{
    struct debts *o = arg;
    struct debt *d = take_first(o);

    o->retry = NULL;
    if (d != NULL)
        debt_send(d);
}

static void
debts_refused(struct debts *o, struct debt *d, const struct err *e)
{
    d->sent = false;
    if (!debts_strip(d)) {
        debt_free(d);
        return;
    }
    wait_last(o, d);
    if (o->retry != NULL)
        return;
    if (o->backoff_ms == 0)
        log_warn("leader", "a write of the leader was refused: it is tried again", "error", e->text,
                 NULL);
    int64_t ms = o->backoff_ms > 0 ? o->backoff_ms * 2 : OWED_RETRY_MIN_MS;
    o->backoff_ms = ms < OWED_RETRY_MAX_MS ? ms : OWED_RETRY_MAX_MS;
    o->retry = env_timer(o->env, o->backoff_ms, retry_one, o);
}

static void
send_all(struct debts *o)
{
    o->backoff_ms = 0;
    env_timer_stop(o->env, TAKE(o->retry));
    for (struct debt *d; (d = take_first(o)) != NULL;)
        debt_send(d);
}

/* --- answers --- */

/* Larger than an entry may be: in two parts. */
static bool
debts_halve(struct debt *d)
{
    struct intent_eval_update *up = d->in->eval_update;

    if (up == NULL || up->evals.n < 2)
        return false;
    struct intent_eval_update rest = {
        .evals = {up->evals.v + up->evals.n / 2, up->evals.n - up->evals.n / 2}};
    struct intent in = {.time = d->in->time, .eval_update = &rest};
    debts_add(d->o, codec_clone(NULL, &type_intent, &in), NULL, d->stored, d->arg);
    up->evals.n /= 2;
    debt_send(d);
    return true;
}

static void
debts_answered(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct debt *d = arg;
    struct debts *o = d->o;
    bool ours = o->on && d->gen == o->gen;

    if (ours && (e == NULL || index > 0)) {
        if (d->stored != NULL)
            d->stored(d->arg, res);
        send_all(o);
    } else if (ours && (e->code == -ERR_LIMIT || e->code == -ERR_INVALID)) {
        if (e->code == -ERR_LIMIT && debts_halve(d))
            return;
        log_error("leader", "a write of the leader cannot be an entry of the log", "error", e->text,
                  NULL);
    } else if (ours && e->code != -ERR_NOT_LEADER && e->code != -ERR_CANCELED) {
        debts_refused(o, d, e);
        return;
    }
    debt_free(d);
}

/* --- from outside --- */

void
debts_start(struct debts *o)
{
    debts_stop(o);
    o->on = true;
}

void
debts_stop(struct debts *o)
{
    o->on = false;
    o->gen++;
    o->backoff_ms = 0;
    env_timer_stop(o->env, TAKE(o->retry));
    HASH_CLEAR(hh, o->by_key); /* what is sent is freed by its answer */
    for (struct debt *d; (d = take_first(o)) != NULL;)
        talloc_free(d);
}

static void
debts_mark(struct debts *o, struct debt *d, const struct str_list *keys)
{
    d->n_marks = keys->n;
    d->marks = mem_array(d, struct mark, keys->n);
    for (size_t i = 0; i < keys->n; i++) {
        struct mark *m = &d->marks[i], *old;
        *m = (struct mark){.d = d, .key = mem_strdup(d, keys->v[i])};
        (void)debts_cancel(o, m->key);
        HASH_FIND_STR(o->by_key, m->key, old);
        if (old != NULL) /* sent: its answer frees it */
            HASH_DEL(o->by_key, old);
        HASH_ADD_KEYPTR(hh, o->by_key, m->key, strlen(m->key), m);
    }
}

void
debts_add(struct debts *o, struct intent *in, const struct str_list *keys, debts_stored_fn *stored,
          void *arg)
{
    if (!o->on) {
        talloc_free(in);
        return;
    }
    struct debt *d = mem_new(NULL, struct debt);
    *d = (struct debt){.o = o, .stored = stored, .arg = arg, .gen = o->gen};
    d->in = talloc_steal(d, in);
    if (keys != NULL)
        debts_mark(o, d, keys);
    if (o->backoff_ms > 0)
        wait_last(o, d);
    else
        debt_send(d);
}

bool
debts_cancel(struct debts *o, const char *key)
{
    struct debt **at = &o->waiting;
    struct mark *m;

    HASH_FIND_STR(o->by_key, key, m);
    if (m == NULL)
        return true;
    struct debt *d = m->d;
    m->cancelled = true;
    if (d->sent)
        return false;
    HASH_DEL(o->by_key, m);
    if (debts_strip(d))
        return true;
    while (*at != d)
        at = &(*at)->next;
    if ((*at = d->next) == NULL)
        o->last = at;
    debt_free(d);
    return true;
}
