/* SPDX-License-Identifier: Apache-2.0
 *
 * The evaluation broker: broker.h has the invariants. In this order: the orders of its heaps; an
 * evaluation's way (enqueued, ready or delayed, delivered, acked or nacked, forgotten); time, which
 * comes in by broker_tick(); and the lists of what is to be cancelled or has failed, which their
 * owner fetches.
 *
 * An entry is in one place at a time (enum where), and a job_slot says which evaluation of a job is
 * under way and which wait behind it.
 */
#include "server/leader/broker.h"

#include <string.h>
#include "common/duration.h"
#include "common/hash.h"

#include "api/terms.h"
#include "common/mem.h"
#include "server/leader/heap.h"

/* Never, and room for arithmetic. */
#define HELD_MS (INT64_MAX / 2)

enum where { W_READY, W_PENDING, W_DELAYED, W_OUT };

struct job_slot;

/* One known evaluation. */
struct entry {
    struct evaluation *e; /* owned by the entry */
    struct job_slot *job;
    enum where where;
    size_t at;       /* position in the heap it is in */
    int deliveries;
    uint64_t token;  /* while outstanding */
    int64_t due_ms;  /* delayed: when; outstanding: when it is nacked */
    struct evaluation *requeue; /* came while it was outstanding */
    UT_hash_handle hh;
};

/* The evaluations of one (namespace, job). */
struct job_slot {
    char *key;
    struct entry *busy;   /* ready or outstanding, or waiting for a retry; at most one */
    struct pheap pending; /* the others: newest first */
    size_t n;
    UT_hash_handle hh;
};

struct broker {
    struct entry *entries;
    struct job_slot *jobs;
    struct pheap ready;
    struct pheap timed; /* delayed and outstanding, by due_ms */
    struct entry **cancelable, **failed;
    size_t n_cancelable, n_failed;
    uint64_t next_token;
    int64_t awake_ms; /* when it was last asked for anything */
    int64_t ahead_ms; /* by so much the wall clock is ahead of the other; 0: not known yet */
    int64_t nack_ms;
    size_t n_pending, n_out;
    bool paused;
};

static size_t *
entry_slot(void *e)
{
    return &((struct entry *)e)->at;
}

static bool
ready_before(const void *pa, const void *pb)
{
    const struct evaluation *a = ((const struct entry *)pa)->e, *b = ((const struct entry *)pb)->e;

    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->create_index != b->create_index)
        return a->create_index < b->create_index;
    return strcmp(a->id, b->id) < 0;
}

/* The newest sees everything the others were made for. */
static bool
pending_before(const void *pa, const void *pb)
{
    const struct evaluation *a = ((const struct entry *)pa)->e, *b = ((const struct entry *)pb)->e;

    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->modify_index != b->modify_index)
        return a->modify_index > b->modify_index;
    return strcmp(a->id, b->id) < 0;
}

static bool
due_before(const void *pa, const void *pb)
{
    return ((const struct entry *)pa)->due_ms < ((const struct entry *)pb)->due_ms;
}

static void
heaps_init(struct broker *b)
{
    b->ready = (struct pheap){.ctx = b, .before = ready_before, .slot = entry_slot};
    b->timed = (struct pheap){.ctx = b, .before = due_before, .slot = entry_slot};
}

static int
broker_done(struct broker *b)
{
    broker_clear(b);
    return 0;
}

struct broker *
broker_new(const void *ctx)
{
    struct broker *b = mem_new(ctx, struct broker);

    heaps_init(b);
    b->next_token = 1;
    b->nack_ms = BROKER_NACK_MS;
    talloc_set_destructor(b, broker_done);
    return b;
}

void
broker_clear(struct broker *b)
{
    struct entry *x, *nx;
    struct job_slot *j, *nj;

    HASH_ITER(hh, b->entries, x, nx) {
        HASH_DEL(b->entries, x);
        talloc_free(x);
    }
    HASH_ITER(hh, b->jobs, j, nj) {
        HASH_DEL(b->jobs, j);
        talloc_free(j);
    }
    for (size_t i = 0; i < b->n_cancelable; i++)
        talloc_free(b->cancelable[i]);
    for (size_t i = 0; i < b->n_failed; i++)
        talloc_free(b->failed[i]);
    b->n_cancelable = b->n_failed = b->n_pending = b->n_out = 0;
    mem_free(b->ready.v);
    mem_free(b->timed.v);
    heaps_init(b);
}

void
broker_nack_after(struct broker *b, int64_t ms)
{
    ASSERT(ms > 0);
    b->nack_ms = ms;
}

void
broker_pause(struct broker *b, bool paused)
{
    b->paused = paused;
}

/* Without what only readers of the API want. */
static struct evaluation *
eval_keep(const void *ctx, const struct evaluation *e)
{
    struct evaluation slim = *e;

    slim.failed_tg_allocs.v = NULL;
    slim.failed_tg_allocs.n = 0;
    slim.plan_annotations = NULL;
    slim.related_evals.v = NULL;
    slim.related_evals.n = 0;
    return codec_clone(ctx, &type_evaluation, &slim);
}

static struct job_slot *
job_slot_get(struct broker *b, const struct evaluation *e)
{
    struct job_slot *j;
    char *key = mem_printf(b, "%s\n%s", str_or(e->namespace, NS_DEFAULT), str_or(e->job_id, ""));

    HASH_FIND_STR(b->jobs, key, j);
    if (j == NULL) {
        j = mem_new(b, struct job_slot);
        j->key = talloc_steal(j, key);
        j->pending = (struct pheap){.ctx = j, .before = pending_before, .slot = entry_slot};
        HASH_ADD_KEYPTR(hh, b->jobs, j->key, strlen(j->key), j);
    } else {
        talloc_free(key);
    }
    return j;
}

static void
entry_ready(struct broker *b, struct entry *x)
{
    ASSERT(x->job->busy != x && x->where != W_OUT);
    if (x->job->busy == NULL) {
        x->job->busy = x;
        x->where = W_READY;
        pheap_push(&b->ready, x);
    } else {
        x->where = W_PENDING;
        b->n_pending++;
        pheap_push(&x->job->pending, x);
    }
}

static void
entry_delay(struct broker *b, struct entry *x, int64_t due_ms)
{
    ASSERT(due_ms < HELD_MS);
    x->where = W_DELAYED;
    x->due_ms = due_ms;
    pheap_push(&b->timed, x);
}

static void
job_release(struct broker *b, struct job_slot *j)
{
    ASSERT(j->n > 0);
    if (--j->n > 0)
        return;
    ASSERT(j->busy == NULL && j->pending.n == 0);
    HASH_DEL(b->jobs, j);
    talloc_free(j);
}

/* Not known any more. The caller holds its job. */
static void
entry_drop(struct broker *b, struct entry *x)
{
    ASSERT(x->job->n > 1);
    HASH_DEL(b->entries, x);
    x->job->n--;
}

void
broker_enqueue(struct broker *b, const struct evaluation *e, int64_t now_ms, int64_t wall_ns)
{
    struct entry *x;

    ASSERT(!str_empty(e->id));
    HASH_FIND_STR(b->entries, e->id, x);
    if (x != NULL) {
        if (x->where != W_OUT)
            return;
        mem_free(x->requeue);
        x->requeue = eval_keep(x, e);
        return;
    }
    x = mem_new(b, struct entry);
    x->e = eval_keep(x, e);
    x->job = job_slot_get(b, e);
    x->job->n++;
    HASH_ADD_KEYPTR(hh, b->entries, x->e->id, strlen(x->e->id), x);
    if (e->wait > 0)
        entry_delay(b, x, now_ms + e->wait / NS_PER_MS);
    else if (e->wait_until > wall_ns)
        entry_delay(b, x, now_ms + (e->wait_until - wall_ns + NS_PER_MS - 1) / NS_PER_MS);
    else
        entry_ready(b, x);
}

static const struct evaluation *
broker_deliver(struct broker *b, struct entry *x, int64_t now_ms, uint64_t *ret_token)
{
    ASSERT(x->where == W_READY && x->job->busy == x);
    ASSERT(x->deliveries < BROKER_DELIVERIES);
    pheap_remove(&b->ready, x);
    b->awake_ms = now_ms;
    x->where = W_OUT;
    x->deliveries++;
    x->token = b->next_token++;
    x->due_ms = now_ms + b->nack_ms;
    pheap_push(&b->timed, x);
    b->n_out++;
    ASSERT(x->token != 0);
    *ret_token = x->token;
    return x->e;
}

const struct evaluation *
broker_dequeue(struct broker *b, int64_t now_ms, uint64_t *ret_token)
{
    struct entry *x = b->paused ? NULL : pheap_top(&b->ready);

    return x != NULL ? broker_deliver(b, x, now_ms, ret_token) : NULL;
}

static struct entry *
broker_outstanding(struct broker *b, const char *id, uint64_t token)
{
    struct entry *x;

    HASH_FIND_STR(b->entries, id, x);
    return x != NULL && x->where == W_OUT && x->token == token ? x : NULL;
}

static void
list_push(struct broker *b, struct entry ***list, size_t *n, struct entry *x)
{
    mem_resize(b, *list, struct entry *, *n + 1);
    (*list)[(*n)++] = x;
}

/* The job is free: its newest waiting evaluation is next, the others are not needed any more. */
static void
job_next(struct broker *b, struct job_slot *j)
{
    struct entry *x = pheap_top(&j->pending);

    j->busy = NULL;
    if (x == NULL)
        return;
    ASSERT(x->where == W_PENDING && b->n_pending >= j->pending.n);
    pheap_remove(&j->pending, x);
    b->n_pending--;
    j->n++; /* held while the others go */
    for (struct entry *y; (y = pheap_top(&j->pending)) != NULL;) {
        pheap_remove(&j->pending, y);
        b->n_pending--;
        entry_drop(b, y);
        list_push(b, &b->cancelable, &b->n_cancelable, y);
    }
    j->n--;
    entry_ready(b, x);
}

bool
broker_ack(struct broker *b, const char *id, uint64_t token, int64_t now_ms, int64_t wall_ns)
{
    struct entry *x = broker_outstanding(b, id, token);

    if (x == NULL)
        return false;
    struct job_slot *j = x->job;
    struct evaluation *again = x->requeue;
    ASSERT(j->busy == x && b->n_out > 0);
    pheap_remove(&b->timed, x);
    b->n_out--;
    j->n++;
    entry_drop(b, x);
    job_next(b, j);
    job_release(b, j);
    if (again != NULL)
        broker_enqueue(b, again, now_ms, wall_ns);
    talloc_free(x);
    return true;
}

static void
entry_nack(struct broker *b, struct entry *x, int64_t now_ms)
{
    struct job_slot *j = x->job;

    ASSERT(x->where == W_OUT && j->busy == x && b->n_out > 0);
    pheap_remove(&b->timed, x);
    b->n_out--;
    mem_free(x->requeue);
    if (x->deliveries >= BROKER_DELIVERIES) {
        j->n++;
        entry_drop(b, x);
        list_push(b, &b->failed, &b->n_failed, x);
        job_next(b, j);
        job_release(b, j);
        return;
    }
    /* the job stays its own: nothing overtakes it while it waits */
    entry_delay(b, x, now_ms + (x->deliveries == 1 ? BROKER_RETRY_FIRST_MS
                                                   : (x->deliveries - 1) * BROKER_RETRY_MS));
}

bool
broker_nack(struct broker *b, const char *id, uint64_t token, int64_t now_ms)
{
    struct entry *x = broker_outstanding(b, id, token);

    if (x == NULL)
        return false;
    entry_nack(b, x, now_ms);
    return true;
}

void
broker_forget(struct broker *b, const char *id)
{
    struct entry *x;

    HASH_FIND_STR(b->entries, id, x);
    if (x == NULL)
        return;
    struct job_slot *j = x->job;
    mem_free(x->requeue);
    if (x->where == W_OUT)
        return;
    j->n++;
    if (x->where == W_PENDING) {
        pheap_remove(&j->pending, x);
        b->n_pending--;
    } else {
        pheap_remove(x->where == W_READY ? &b->ready : &b->timed, x);
    }
    bool busy = j->busy == x;
    entry_drop(b, x);
    if (busy)
        job_next(b, j);
    job_release(b, j);
    talloc_free(x);
}

static bool
set_due(struct broker *b, const char *id, uint64_t token, int64_t due_ms)
{
    struct entry *x = broker_outstanding(b, id, token);

    if (x == NULL)
        return false;
    x->due_ms = due_ms;
    pheap_update(&b->timed, x);
    return true;
}

bool
broker_touch(struct broker *b, const char *id, uint64_t token, int64_t now_ms)
{
    return set_due(b, id, token, now_ms + b->nack_ms);
}

bool
broker_hold(struct broker *b, const char *id, uint64_t token)
{
    return set_due(b, id, token, HELD_MS);
}

/* A tick so late says that this server stood still, and with it all who work: the time does not
 * count against them. */
static void
stood_still(struct broker *b, int64_t now_ms)
{
    const struct entry *first = pheap_top(&b->timed);
    int64_t gap_ms = now_ms - b->awake_ms;
    struct entry *x, *nx;

    b->awake_ms = now_ms;
    if (first == NULL || now_ms - first->due_ms <= BROKER_LATE_MS)
        return;
    HASH_ITER(hh, b->entries, x, nx)
    {
        if (x->where != W_OUT)
            continue;
        x->due_ms += gap_ms;
        pheap_update(&b->timed, x);
    }
}

void
broker_tick(struct broker *b, int64_t now_ms)
{
    stood_still(b, now_ms);
    for (struct entry *x; (x = pheap_top(&b->timed)) != NULL && x->due_ms <= now_ms;) {
        if (x->where == W_OUT) {
            entry_nack(b, x, now_ms);
            continue;
        }
        ASSERT(x->where == W_DELAYED);
        pheap_remove(&b->timed, x);
        if (x->job->busy == x)
            x->job->busy = NULL;
        entry_ready(b, x);
    }
}

void
broker_clock(struct broker *b, int64_t now_ms, int64_t wall_ns)
{
    int64_t ahead_ms = wall_ns / NS_PER_MS - now_ms, by_ms = ahead_ms - b->ahead_ms;
    bool known = b->ahead_ms != 0;
    struct entry *x, *nx;

    if (known && by_ms < BROKER_LATE_MS && by_ms > -BROKER_LATE_MS)
        return;
    b->ahead_ms = ahead_ms;
    if (!known || by_ms < 0)
        return;
    HASH_ITER(hh, b->entries, x, nx)
    {
        int64_t due_ms = x->e->wait_until / NS_PER_MS + 1 - ahead_ms;
        if (x->where != W_DELAYED || x->deliveries > 0 || x->e->wait > 0 || x->due_ms <= due_ms)
            continue;
        x->due_ms = due_ms > now_ms ? due_ms : now_ms;
        pheap_update(&b->timed, x);
    }
}

int64_t
broker_next_ms(const struct broker *b)
{
    const struct entry *x = pheap_top(&b->timed);

    return x && x->due_ms < HELD_MS ? x->due_ms : INT64_MAX;
}

static struct evaluation *
broker_take(struct entry **list, size_t *n, const void *ctx)
{
    if (*n == 0)
        return NULL;
    struct entry *x = list[--*n];
    struct evaluation *e = talloc_steal(ctx, x->e);
    talloc_free(x);
    return e;
}

struct evaluation *
broker_take_cancelable(struct broker *b, const void *ctx)
{
    return broker_take(b->cancelable, &b->n_cancelable, ctx);
}

struct evaluation *
broker_take_failed(struct broker *b, const void *ctx)
{
    return broker_take(b->failed, &b->n_failed, ctx);
}

struct broker_stats
broker_stats(const struct broker *b)
{
    ASSERT(b->timed.n >= b->n_out); /* what is outstanding has its time */
    return (struct broker_stats){
        .ready = b->ready.n,
        .unacked = b->n_out,
        .pending = b->n_pending,
        .waiting = b->timed.n - b->n_out,
        .failed = b->n_failed,
    };
}

#ifdef FAULT_INJECTION

const struct evaluation *
test_hook_dequeue(struct broker *b, const char *job_id, int64_t now_ms, uint64_t *ret_token)
{
    for (struct entry *x = b->entries; x != NULL; x = x->hh.next)
        if (x->where == W_READY && (str_empty(job_id) || str_eq(x->e->job_id, job_id)))
            return broker_deliver(b, x, now_ms, ret_token);
    return NULL;
}

void
test_hook_list(const struct broker *b, void *ctx, struct str_list lists[4])
{
    for (const struct entry *x = b->entries; x != NULL; x = x->hh.next)
        list_add(ctx, lists[x->where], mem_strdup(ctx, x->e->id));
}

#endif
