/* SPDX-License-Identifier: Apache-2.0
 *
 * Locks on variables, while this server leads. A lock that is not renewed for twice its TTL is
 * dead; when its delay has passed as well, an entry releases it. Until then nobody else acquires
 * it.
 *
 * Renewals are counted here, and put into the log together, once a second at most and of each lock
 * once in half its TTL. So a new leader knows how old each lock is, but for renewals that were not
 * in the log: half a TTL and two seconds are added for these, and each holder has one TTL at least
 * to be heard. A lock is never released earlier than by the old leader, as far as the clocks of the
 * servers agree. Loop thread but where it says otherwise.
 */
#include "api/vars/vars.h"
#include "common/duration.h"
#include "common/hash.h"
#include "common/mem.h"
#include "server/leader/heap.h"
#include "server/leader/leader_int.h"

enum { STORE_MS = 1000, STORE_SLACK_MS = 2000 };

struct held {
    const char *key; /* "namespace\npath" */
    const char *ns, *path, *id;
    int64_t ttl_ms, delay_ms;
    int64_t due_ms;    /* it dies, or is released */
    int64_t stored_ms; /* a renewal was put into the log, or acquired it */
    bool renewed;      /* ... since, which the log does not know */
    bool dead;         /* its delay goes on */
    size_t at;
    UT_hash_handle hh;
};

struct lock {
    struct leader *l;
    struct held *by_key;
    struct pheap heap;
    struct timer *timer, *store;
    size_t n_renewed;
};

/* From the apply thread: the lock of a variable is now so. */
struct lock_news {
    struct lock *k;
    struct held *held; /* `id` NULL: there is none */
    int64_t renewed;   /* wall clock, ns; 0: just now */
};

static void lock_tick(void *arg);

static bool
held_before(const void *a, const void *b)
{
    return ((const struct held *)a)->due_ms < ((const struct held *)b)->due_ms;
}

static size_t *
held_slot(void *e)
{
    return &((struct held *)e)->at;
}

static struct held *
held_find(const struct lock *k, const char *key)
{
    struct held *h;

    HASH_FIND_STR(k->by_key, key, h);
    return h;
}

static void
held_del(struct lock *k, struct held *h)
{
    k->n_renewed -= h->renewed;
    pheap_remove(&k->heap, h);
    HASH_DEL(k->by_key, h);
    talloc_free(h);
}

static void
lock_arm(struct lock *k)
{
    const struct held *h = pheap_top(&k->heap);

    env_timer_stop(k->l->env, TAKE(k->timer));
    if (h == NULL)
        return;
    int64_t ms = h->due_ms - env_mono_ms(k->l->env);
    k->timer = env_timer(k->l->env, ms > 0 ? ms : 0, lock_tick, k);
}

/* --- the end of a lock --- */

/* Owes the log the release; the variable is heard of when it has that. */
static void
held_release(struct lock *k, struct held *h)
{
    struct variable_lock lock = {.id = h->id};
    struct sealed_variable v = {.namespace = h->ns, .path = h->path, .lock = &lock};
    struct intent_variable_apply release = {.op = VAR_LOCK_RELEASE, .variable = &v};
    struct intent in = {.variable_apply = &release};

    debts_add(k->l->debts, codec_clone(NULL, &type_intent, &in), NULL, NULL, NULL);
    held_del(k, h);
}

static void
lock_tick(void *arg)
{
    struct lock *k = arg;
    int64_t now = env_mono_ms(k->l->env);

    k->timer = NULL;
    for (struct held *h; (h = pheap_top(&k->heap)) != NULL && h->due_ms <= now;) {
        if (h->dead) {
            held_release(k, h);
            continue;
        }
        k->n_renewed -= h->renewed;
        h->renewed = false;
        h->dead = true;
        h->due_ms = now + h->delay_ms;
        pheap_update(&k->heap, h);
    }
    lock_arm(k);
}

/* --- renewals --- */

static void
store_add(struct intent_locks_renewed *in, const struct held *h)
{
    struct lock_renewal *r = type_new(in, &type_lock_renewal);

    r->namespace = mem_strdup(r, h->ns);
    r->path = mem_strdup(r, h->path);
    r->lock_id = mem_strdup(r, h->id);
    r->age = 0;
    list_add(in, in->locks, r);
}

static void
lock_store(void *arg)
{
    struct lock *k = arg;
    struct intent in = {.time = 0};
    auto_mem void *tmp = mem_ctx("renewed");
    int64_t now = env_mono_ms(k->l->env);
    struct held *h, *next;

    k->store = NULL;
    in.locks_renewed = mem_new(tmp, struct intent_locks_renewed);
    HASH_ITER (hh, k->by_key, h, next) {
        if (!h->renewed || now - h->stored_ms < h->ttl_ms / 2)
            continue;
        store_add(in.locks_renewed, h);
        in.locks_renewed->locks.v[in.locks_renewed->locks.n - 1]->age =
            (now - (h->due_ms - 2 * h->ttl_ms)) * NS_PER_MS;
        h->renewed = false;
        h->stored_ms = now;
        k->n_renewed--;
    }
    if (in.locks_renewed->locks.n > 0)
        debts_add(k->l->debts, codec_clone(NULL, &type_intent, &in), NULL, NULL, NULL);
    if (k->n_renewed > 0)
        k->store = env_timer(k->l->env, STORE_MS, lock_store, k);
}

static const char *
lock_key(const void *ctx, const char *ns, const char *path)
{
    return mem_printf(ctx, "%s\n%s", str_or(ns, ""), str_or(path, ""));
}

int
leader_lock_renew(struct leader *l, const struct sealed_variable *v)
{
    auto_mem void *tmp = mem_ctx("renew");
    struct lock *k = l->lock;
    struct held *h = l->on ? held_find(k, lock_key(tmp, v->namespace, v->path)) : NULL;

    ASSERT(v->lock != NULL);
    if (h == NULL || h->dead || !str_same_secret(h->id, v->lock->id))
        return -ERR_CONFLICT;
    h->due_ms = env_mono_ms(l->env) + 2 * h->ttl_ms;
    pheap_update(&k->heap, h);
    k->n_renewed += !h->renewed;
    h->renewed = true;
    if (k->store == NULL)
        k->store = env_timer(l->env, STORE_MS, lock_store, k);
    return 0;
}

/* --- what is locked --- */

/* Returns the time that is left to a lock, whose last renewal may not be in the log. */
static int64_t
lock_left_ms(const struct held *h, int64_t age_ms)
{
    int64_t left = 2 * h->ttl_ms + h->ttl_ms / 2 + STORE_SLACK_MS - age_ms;

    return left < h->ttl_ms ? h->ttl_ms : left > 2 * h->ttl_ms ? 2 * h->ttl_ms : left;
}

static void
lock_told(void *arg)
{
    struct lock_news *n = arg;
    struct lock *k = n->k;
    struct held *h = n->held, *old = held_find(k, h->key);

    if (k->l->on) { /* an older leadership's comes before its end */
        if (old != NULL)
            held_del(k, old);
        if (h->id != NULL) {
            int64_t age = n->renewed == 0 ? 0 : env_wall_ns(k->l->env) - n->renewed;
            h = talloc_steal(k, h);
            h->stored_ms = env_mono_ms(k->l->env);
            h->due_ms = h->stored_ms +
                        (n->renewed == 0 ? 2 * h->ttl_ms : lock_left_ms(h, age / NS_PER_MS));
            HASH_ADD_KEYPTR(hh, k->by_key, h->key, strlen(h->key), h);
            pheap_push(&k->heap, h);
        }
        lock_arm(k);
    }
    talloc_free(n);
}

/* --- the row; apply thread --- */

static void
lock_tell(struct leader *l, const struct sealed_variable *v, const struct variable_lock *lock,
          int64_t renewed)
{
    struct lock_news *n = mem_new(NULL, struct lock_news);
    struct held *h = mem_new(n, struct held);

    *n = (struct lock_news){l->lock, h, renewed};
    h->key = lock_key(h, v->namespace, v->path);
    h->ns = mem_strdup(h, v->namespace);
    h->path = mem_strdup(h, v->path);
    if (lock != NULL) {
        h->id = mem_strdup(h, str_or(lock->id, ""));
        h->ttl_ms = vars_lock_ttl(lock) / NS_PER_MS;
        h->delay_ms = vars_lock_delay(lock) / NS_PER_MS;
    }
    env_post(l->env, lock_told, n);
}

static void
row_on_leader(struct leader *l, struct state_txn *t)
{
    auto_mem void *tmp = mem_ctx("locks");
    struct state_iter *it = state_by_rows(t, tmp, STATE_LOCKED_VARIABLES, NULL, 0);

    for (struct sealed_variable *v; (v = state_next(it, tmp)) != NULL; talloc_free(v))
        lock_tell(l, v, v->lock, v->lock_renewed != 0 ? v->lock_renewed : v->modify_time);
}

/* Writes by who holds a lock leave its time as it is. */
static void
row_on_applied(struct leader *l, uint64_t index, const struct intent *in,
               const struct fsm_result *res)
{
    const char *op = in->variable_apply != NULL ? in->variable_apply->op : NULL;

    (void)index;
    if (str_eq(op, VAR_LOCK_ACQUIRE) || str_eq(op, VAR_LOCK_RELEASE))
        FSM_EACH(res, VARIABLES, STORED, v)
            lock_tell(l, v, v->lock, 0);
    FSM_EACH(res, VARIABLES, DELETED, v)
        if (v->lock != NULL)
            lock_tell(l, v, NULL, 0);
}

static void
row_init(struct leader *l)
{
    l->lock = mem_new(l, struct lock);
    l->lock->l = l;
    l->lock->heap = (struct pheap){.ctx = l->lock, .before = held_before, .slot = held_slot};
}

static void
row_end(struct leader *l)
{
    struct lock *k = l->lock;
    struct held *h, *next;

    env_timer_stop(l->env, TAKE(k->timer));
    env_timer_stop(l->env, TAKE(k->store));
    HASH_ITER (hh, k->by_key, h, next)
        held_del(k, h);
}

const struct controller lock_row = {
    .init = row_init, .on_leader = row_on_leader, .on_applied = row_on_applied, .end = row_end};
