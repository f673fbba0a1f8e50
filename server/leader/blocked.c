/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocked evaluations (see blocked.h).
 */
#include "server/leader/blocked.h"

#include <string.h>
#include "common/hash.h"

#include "api/terms.h"
#include "common/mem.h"

struct entry {
    char *key; /* "namespace\njob" */
    struct evaluation *e;
    int64_t retry_ms; /* INT64_MAX: only capacity wakes it */
    UT_hash_handle hh;
};

/* When a class, or QUOTA_MARK and the name of a quota, last gained capacity. */
#define QUOTA_MARK "\n" /* no class begins so */
struct gain {
    char *class;
    uint64_t index;
    UT_hash_handle hh;
};

struct eval_queue {
    struct evaluation **v;
    size_t n;
};

struct blocked {
    struct entry *entries;
    struct gain *gains;
    uint64_t last_gain;
    size_t n_retry; /* entries with a retry time */
    struct eval_queue released, duplicates;
};

static int
blocked_done(struct blocked *b)
{
    blocked_clear(b);
    return 0;
}

struct blocked *
blocked_new(const void *ctx)
{
    struct blocked *b = mem_new(ctx, struct blocked);

    talloc_set_destructor(b, blocked_done);
    return b;
}

static void
queue_push(struct blocked *b, struct eval_queue *q, struct evaluation *e)
{
    ASSERT(!str_empty(e->id));
    mem_resize(b, q->v, struct evaluation *, q->n + 1);
    q->v[q->n++] = talloc_steal(b, e);
}

static struct evaluation *
queue_take(struct eval_queue *q, const void *ctx)
{
    return q->n > 0 ? talloc_steal(ctx, q->v[--q->n]) : NULL;
}

static void
entry_del(struct blocked *b, struct entry *x)
{
    ASSERT(x->retry_ms == INT64_MAX || b->n_retry > 0);
    HASH_DEL(b->entries, x);
    b->n_retry -= x->retry_ms != INT64_MAX;
    talloc_free(x);
}

void
blocked_clear(struct blocked *b)
{
    struct entry *x, *nx;
    struct gain *g, *ng;

    HASH_ITER(hh, b->entries, x, nx)
        entry_del(b, x);
    HASH_ITER(hh, b->gains, g, ng) {
        HASH_DEL(b->gains, g);
        talloc_free(g);
    }
    while (b->released.n > 0)
        talloc_free(b->released.v[--b->released.n]);
    while (b->duplicates.n > 0)
        talloc_free(b->duplicates.v[--b->duplicates.n]);
    b->last_gain = 0;
    ASSERT(b->entries == NULL && b->n_retry == 0);
}

/* A class the evaluation never saw may fit. */
static bool
may_use(const struct evaluation *e, const char *class)
{
    if (class[0] == QUOTA_MARK[0])
        return str_eq(e->quota_limit_reached, class + 1);
    if (e->escaped_computed_class)
        return true;
    if (!str_empty(e->quota_limit_reached) && e->class_eligibility.n == 0)
        return false;
    __auto_type c = map_get(e->class_eligibility, class);
    return c == NULL || c->v;
}

static bool
blocked_missed(const struct blocked *b, const struct evaluation *e)
{
    if (b->last_gain <= e->snapshot_index)
        return false;
    for (const struct gain *g = b->gains; g != NULL; g = g->hh.next)
        if (g->index > e->snapshot_index && may_use(e, g->class))
            return true;
    return false;
}

static uint64_t
blocked_newest(const struct evaluation *e)
{
    return e->create_index > e->snapshot_index ? e->create_index : e->snapshot_index;
}

static struct entry *
entry_find(struct blocked *b, const char *ns, const char *job_id)
{
    char *key = mem_printf(b, "%s\n%s", str_or(ns, NS_DEFAULT), str_or(job_id, ""));
    struct entry *x;

    HASH_FIND_STR(b->entries, key, x);
    talloc_free(key);
    return x;
}

void
blocked_add(struct blocked *b, const struct evaluation *e, int64_t now_ms)
{
    struct entry *x = entry_find(b, e->namespace, e->job_id);
    struct evaluation slim = *e;

    slim.failed_tg_allocs.v = NULL;
    slim.failed_tg_allocs.n = 0;
    struct evaluation *own = codec_clone(b, &type_evaluation, &slim);
    if (x != NULL && !str_eq(x->e->id, e->id)) {
        if (blocked_newest(x->e) > blocked_newest(e)) {
            queue_push(b, &b->duplicates, own);
            return;
        }
        queue_push(b, &b->duplicates, x->e);
    }
    if (x != NULL)
        entry_del(b, x);
    if (blocked_missed(b, own)) {
        queue_push(b, &b->released, own);
        return;
    }
    x = mem_new(b, struct entry);
    x->e = talloc_steal(x, own);
    x->key = mem_printf(x, "%s\n%s", str_or(e->namespace, NS_DEFAULT), str_or(e->job_id, ""));
    x->retry_ms = INT64_MAX;
    if (str_eq(e->triggered_by, TRIGGER_MAX_PLANS)) {
        x->retry_ms = now_ms + BLOCKED_RETRY_MS;
        b->n_retry++;
    }
    ASSERT(x->retry_ms > now_ms);
    HASH_ADD_KEYPTR(hh, b->entries, x->key, strlen(x->key), x);
    ASSERT(b->n_retry <= HASH_COUNT(b->entries));
}

static void
blocked_release(struct blocked *b, struct entry *x)
{
    ASSERT(talloc_parent(x->e) == x); /* else it would go with another, or leak */
    queue_push(b, &b->released, x->e);
    entry_del(b, x);
}

void
blocked_capacity(struct blocked *b, const char *class, uint64_t index)
{
    struct gain *g;
    struct entry *x, *nx;

    class = str_or(class, "");
    ASSERT(index >= b->last_gain); /* as they are applied, else a gain would be forgotten */
    HASH_FIND_STR(b->gains, class, g);
    if (g == NULL) {
        g = mem_new(b, struct gain);
        g->class = mem_strdup(g, class);
        HASH_ADD_KEYPTR(hh, b->gains, g->class, strlen(g->class), g);
    }
    ASSERT(g->index <= index);
    g->index = index;
    b->last_gain = index;
    HASH_ITER(hh, b->entries, x, nx)
        if (may_use(x->e, class))
            blocked_release(b, x);
}

void
blocked_quota(struct blocked *b, const char *quota, uint64_t index)
{
    char *mark = mem_printf(b, QUOTA_MARK "%s", quota);

    blocked_capacity(b, mark, index);
    talloc_free(mark);
}

void
blocked_untrack(struct blocked *b, const char *ns, const char *job_id)
{
    struct entry *x = entry_find(b, ns, job_id);

    if (x != NULL)
        entry_del(b, x);
}

void
blocked_forget(struct blocked *b, const struct evaluation *e)
{
    struct entry *x = entry_find(b, e->namespace, e->job_id);

    if (x != NULL && str_eq(x->e->id, e->id))
        entry_del(b, x);
}

void
blocked_tick(struct blocked *b, int64_t now_ms)
{
    struct entry *x, *nx;

    if (b->n_retry == 0)
        return;
    HASH_ITER(hh, b->entries, x, nx)
        if (x->retry_ms <= now_ms)
            blocked_release(b, x);
}

int64_t
blocked_next_ms(const struct blocked *b)
{
    int64_t next = INT64_MAX;

    for (const struct entry *x = b->n_retry ? b->entries : NULL; x != NULL; x = x->hh.next)
        if (x->retry_ms < next)
            next = x->retry_ms;
    ASSERT((next == INT64_MAX) == (b->n_retry == 0));
    return next;
}

struct evaluation *
blocked_take_released(struct blocked *b, const void *ctx)
{
    return queue_take(&b->released, ctx);
}

struct evaluation *
blocked_take_duplicate(struct blocked *b, const void *ctx)
{
    return queue_take(&b->duplicates, ctx);
}

size_t
blocked_count(const struct blocked *b)
{
    return HASH_COUNT(b->entries);
}

#ifdef FAULT_INJECTION

void
test_hook_blocked(const struct blocked *b, void *ctx, struct str_list *ret)
{
    for (const struct entry *x = b->entries; x != NULL; x = x->hh.next)
        list_add(ctx, *ret, mem_strdup(ctx, x->e->id));
}

#endif
