/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes that nobody waits for (see owed.h).
 */
#include "server/leader/owed.h"

#include <string.h>

#include "common/hash.h"
#include "common/log.h"
#include "common/mem.h"

struct debt {
    struct owed *o;
    struct intent *in;
    char *key; /* NULL: cannot be cancelled */
    owed_stored_fn *stored;
    void *arg;
    uint64_t gen;
    bool sent;
    bool cancelled; /* while it was sent */
    struct debt *next; /* among those that wait */
    UT_hash_handle hh;
};

struct owed {
    const struct env *env;
    owed_propose_fn *propose;
    void *arg;
    bool on;
    uint64_t gen; /* counts leaderships */
    struct debt *waiting, **last;
    struct debt *by_key;
    struct timer *retry;
    int64_t backoff_ms; /* 0: nothing was refused lately */
};

struct owed *
owed_new(const void *ctx, const struct env *env, owed_propose_fn *propose, void *arg)
{
    struct owed *o = mem_new(ctx, struct owed);

    o->env = env;
    o->propose = propose;
    o->arg = arg;
    o->last = &o->waiting;
    return o;
}

static void
debt_free(struct debt *d)
{
    struct debt *known = NULL;

    if (d->key != NULL)
        HASH_FIND_STR(d->o->by_key, d->key, known);
    if (known == d)
        HASH_DEL(d->o->by_key, d);
    talloc_free(d);
}

/* --- waiting --- */

static void
wait_last(struct owed *o, struct debt *d)
{
    d->next = NULL;
    *o->last = d;
    o->last = &d->next;
}

static struct debt *
take_first(struct owed *o)
{
    struct debt *d = o->waiting;

    if (d != NULL && (o->waiting = d->next) == NULL)
        o->last = &o->waiting;
    return d;
}

static void answered(void *arg, const struct err *e, uint64_t index, struct fsm_result *res);

static void
debt_send(struct debt *d)
{
    d->sent = true;
    d->o->propose(d->o->arg, d->in, answered, d);
}

/* One of them tries whether writes are taken again. */
static void
retry_one(void *arg)
{
    struct owed *o = arg;
    struct debt *d = take_first(o);

    o->retry = NULL;
    if (d != NULL)
        debt_send(d);
}

static void
refused(struct owed *o, struct debt *d, const struct err *e)
{
    d->sent = false;
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
send_all(struct owed *o)
{
    o->backoff_ms = 0;
    env_timer_stop(o->env, TAKE(o->retry));
    for (struct debt *d; (d = take_first(o)) != NULL;)
        debt_send(d);
}

/* --- answers --- */

/* Larger than an entry may be: in two parts. */
static bool
halve(struct debt *d)
{
    struct intent_eval_update *up = d->in->eval_update;

    if (up == NULL || up->evals.n < 2)
        return false;
    struct intent_eval_update rest = {
        .evals = {up->evals.v + up->evals.n / 2, up->evals.n - up->evals.n / 2}};
    struct intent in = {.time = d->in->time, .eval_update = &rest};
    owed_add(d->o, codec_clone(NULL, &type_intent, &in), NULL, d->stored, d->arg);
    up->evals.n /= 2;
    debt_send(d);
    return true;
}

static void
answered(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct debt *d = arg;
    struct owed *o = d->o;
    bool ours = o->on && d->gen == o->gen;

    if (ours && (e == NULL || index > 0)) {
        if (d->stored != NULL)
            d->stored(d->arg, res);
        send_all(o);
    } else if (ours && !d->cancelled && (e->code == -ERR_LIMIT || e->code == -ERR_INVALID)) {
        if (e->code == -ERR_LIMIT && halve(d))
            return;
        log_error("leader", "a write of the leader cannot be an entry of the log", "error", e->text,
                  NULL);
    } else if (ours && !d->cancelled && e->code != -ERR_NOT_LEADER && e->code != -ERR_CANCELED) {
        refused(o, d, e);
        return;
    }
    debt_free(d);
}

/* --- from outside --- */

void
owed_start(struct owed *o)
{
    owed_stop(o);
    o->on = true;
}

void
owed_stop(struct owed *o)
{
    o->on = false;
    o->gen++;
    o->backoff_ms = 0;
    env_timer_stop(o->env, TAKE(o->retry));
    HASH_CLEAR(hh, o->by_key); /* what is sent is freed by its answer */
    for (struct debt *d; (d = take_first(o)) != NULL;)
        talloc_free(d);
}

void
owed_add(struct owed *o, struct intent *in, const char *key, owed_stored_fn *stored, void *arg)
{
    if (!o->on) {
        talloc_free(in);
        return;
    }
    struct debt *d = mem_new(NULL, struct debt);
    *d = (struct debt){.o = o, .stored = stored, .arg = arg, .gen = o->gen};
    d->in = talloc_steal(d, in);
    if (key != NULL) {
        owed_cancel(o, key);
        struct debt *old;
        d->key = mem_strdup(d, key);
        HASH_FIND_STR(o->by_key, key, old);
        if (old != NULL) /* sent: its answer frees it */
            HASH_DEL(o->by_key, old);
        HASH_ADD_KEYPTR(hh, o->by_key, d->key, strlen(d->key), d);
    }
    if (o->backoff_ms > 0)
        wait_last(o, d);
    else
        debt_send(d);
}

bool
owed_cancel(struct owed *o, const char *key)
{
    struct debt *d, **at = &o->waiting;

    HASH_FIND_STR(o->by_key, key, d);
    if (d == NULL)
        return true;
    if (d->sent) {
        d->cancelled = true;
        return false;
    }
    while (*at != d)
        at = &(*at)->next;
    if ((*at = d->next) == NULL)
        o->last = at;
    debt_free(d);
    return true;
}
