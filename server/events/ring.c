/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring of events: see ring.h.
 */
#include "server/events/ring.h"

#include <pthread.h>

#include "common/mem.h"

struct events {
    pthread_mutex_t lock;
    size_t kept, bytes_max;
    struct event_batch **v; /* `kept` of them */
    size_t first, n, bytes;
    uint64_t base, last;
};

static void
ring_drop(struct events *r)
{
    struct event_batch *b = TAKE(r->v[r->first]);

    ASSERT(r->n > 0 && b->index > r->base && r->bytes >= b->bytes);
    r->base = b->index;
    r->bytes -= b->bytes;
    r->first = (r->first + 1) % r->kept;
    r->n--;
    event_batch_unref(b);
}

static int
events_end(struct events *r)
{
    while (r->n > 0)
        ring_drop(r);
    pthread_mutex_destroy(&r->lock);
    return 0;
}

struct events *
events_new(const void *ctx, size_t kept, size_t bytes)
{
    struct events *r = mem_new(ctx, struct events);

    r->kept = kept > 0 ? kept : EVENTS_KEPT_MAX;
    r->bytes_max = bytes > 0 ? bytes : EVENTS_KEPT_BYTES;
    r->v = mem_array(r, struct event_batch *, r->kept);
    pthread_mutex_init(&r->lock, NULL);
    talloc_set_destructor(r, events_end);
    return r;
}

/* The state is one whose entries were not heard: readers are told. */
static void
on_open(void *arg, struct state_txn *t)
{
    struct events *r = arg;

    pthread_mutex_lock(&r->lock);
    while (r->n > 0)
        ring_drop(r);
    r->base = r->last = state_applied(t);
    pthread_mutex_unlock(&r->lock);
}

static void
on_committed(void *arg, uint64_t index, const struct intent *in, const struct fsm_result *res)
{
    struct events *r = arg;
    struct event_batch *b = event_any(res->events) ? event_batch_new(index, in, res) : NULL;

    pthread_mutex_lock(&r->lock);
    ASSERT(index > r->last);
    r->last = index;
    bool huge = b != NULL && b->bytes > r->bytes_max; /* a gap */
    while (b != NULL && r->n > 0 && (r->n == r->kept || r->bytes + b->bytes > r->bytes_max))
        ring_drop(r);
    if (huge) {
        r->base = index;
    } else if (b != NULL) {
        r->v[(r->first + r->n++) % r->kept] = b;
        r->bytes += b->bytes;
    }
    pthread_mutex_unlock(&r->lock);
    if (huge)
        event_batch_unref(b);
}

const struct log_listener events_listener = {.on_open = on_open, .on_committed = on_committed};

/* Returns how many of those kept are not after the index. */
static size_t
ring_find(const struct events *r, uint64_t after)
{
    size_t low = 0, high = r->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (r->v[(r->first + mid) % r->kept]->index <= after)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void
events_after(struct events *r, uint64_t after, struct events_part *ret)
{
    ret->n = 0;
    pthread_mutex_lock(&r->lock);
    for (size_t i = ring_find(r, after); i < r->n && ret->n < EVENTS_PART_ENTRIES; i++)
        ret->v[ret->n++] = event_batch_ref(r->v[(r->first + i) % r->kept]);
    ret->base = r->base;
    ret->last = r->last;
    pthread_mutex_unlock(&r->lock);
}

void
events_part_done(struct events_part *p)
{
    for (size_t i = 0; i < p->n; i++)
        event_batch_unref(p->v[i]);
    p->n = 0;
}
