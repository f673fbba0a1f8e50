/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers: a binary heap by time and order of their making.
 */
#include "net/timers.h"

#include <stdlib.h>

#include "common/mem.h"
#include "net/loop_uv.h"

struct timer {
    loop_fn *fn; /* NULL: without delay, and stopped */
    void *arg;
    struct timers *timers;
    int64_t due_ms; /* 0: without delay */
    uint64_t seq;
    union {
        size_t at;          /* in the heap */
        struct timer *next; /* of those without delay */
    };
};

/* --- the heap --- */

static bool
before(const struct timer *a, const struct timer *b)
{
    return a->due_ms < b->due_ms || (a->due_ms == b->due_ms && a->seq < b->seq);
}

static void
put(struct timers *t, size_t at, struct timer *x)
{
    t->heap[at] = x;
    x->at = at;
}

/* Finds the place of `x`, which may be at `at` or anywhere above or below it. */
static void
settle(struct timers *t, size_t at, struct timer *x)
{
    for (; at > 0 && before(x, t->heap[(at - 1) / 2]); at = (at - 1) / 2)
        put(t, at, t->heap[(at - 1) / 2]);
    for (size_t low; (low = 2 * at + 1) < t->n; at = low) {
        if (low + 1 < t->n && before(t->heap[low + 1], t->heap[low]))
            low++;
        if (!before(t->heap[low], x))
            break;
        put(t, at, t->heap[low]);
    }
    put(t, at, x);
}

static void
heap_remove(struct timers *t, struct timer *x)
{
    struct timer *last = t->heap[--t->n];
    if (last != x)
        settle(t, x->at, last);
}

static void clock_cb(uv_timer_t *h);

/* The first of the heap has changed. */
static void
arm(struct timers *t)
{
    if (t->n == 0) {
        uv_timer_stop(&t->clock);
        return;
    }
    int64_t left = t->heap[0]->due_ms - (int64_t)uv_now(t->clock.loop);
    ASSERT(uv_timer_start(&t->clock, clock_cb, left > 0 ? (uint64_t)left : 0, 0) == 0);
}

static void
fire(struct timer *x)
{
    loop_fn *fn = x->fn;
    void *arg = x->arg;

    x->timers->live--;
    free(x);
    fn(arg);
}

static void
clock_cb(uv_timer_t *h)
{
    struct timers *t = h->data;
    int64_t now = (int64_t)uv_now(h->loop);

    while (t->n > 0 && t->heap[0]->due_ms <= now) {
        struct timer *x = t->heap[0];
        heap_remove(t, x);
        fire(x);
    }
    arm(t);
}

/* --- without delay --- */

/* Those that are started meanwhile come in the next turn: a chain of them keeps nobody waiting. */
static void
soon_cb(uv_idle_t *h)
{
    struct timers *t = h->data;
    struct timer *x = TAKE(t->first);

    t->last = NULL;
    while (x != NULL) {
        struct timer *next = x->next;
        if (x->fn != NULL)
            fire(x);
        else
            free(x);
        x = next;
    }
    if (t->first == NULL)
        uv_idle_stop(h);
}

static void
soon_add(struct timers *t, struct timer *x)
{
    if (t->last != NULL)
        t->last->next = x;
    else
        t->first = x;
    t->last = x;
    if (!uv_is_active((uv_handle_t *)&t->soon))
        ASSERT(uv_idle_start(&t->soon, soon_cb) == 0);
}

/* --- for all --- */

struct timer *
timer_start(struct loop *l, int64_t delay_ms, loop_fn *fn, void *arg)
{
    struct timers *t = loop_timers(l);
    struct timer *x = calloc(1, sizeof(*x));

    ASSERT(x != NULL && fn != NULL);
    x->fn = fn;
    x->arg = arg;
    x->timers = t;
    x->seq = t->next_seq++;
    t->live++;
    if (delay_ms <= 0) {
        soon_add(t, x);
        return x;
    }
    /* the cached time may be old when a callback ran long: the timer would fire early */
    uv_update_time(t->clock.loop);
    x->due_ms = (int64_t)uv_now(t->clock.loop) + delay_ms;
    if (t->n == t->cap) {
        t->cap = t->cap > 0 ? t->cap * 2 : 16;
        t->heap = realloc(t->heap, t->cap * sizeof(*t->heap));
        ASSERT(t->heap != NULL);
    }
    settle(t, t->n++, x);
    if (t->heap[0] == x)
        arm(t);
    return x;
}

void
timer_stop(struct timer *x)
{
    if (x == NULL)
        return;
    struct timers *t = x->timers;
    t->live--;
    if (x->due_ms == 0) {
        x->fn = NULL; /* soon_cb frees it */
        return;
    }
    bool first = x->at == 0;
    heap_remove(t, x);
    free(x);
    if (first)
        arm(t);
}

void
timers_init(struct timers *t, uv_loop_t *uv)
{
    ASSERT(uv_timer_init(uv, &t->clock) == 0 && uv_idle_init(uv, &t->soon) == 0);
    t->clock.data = t->soon.data = t;
}

void
timers_close(struct timers *t)
{
    if (t->first != NULL)
        soon_cb(&t->soon); /* frees what was stopped */
    uv_close((uv_handle_t *)&t->clock, NULL);
    uv_close((uv_handle_t *)&t->soon, NULL);
}

void
timers_done(struct timers *t)
{
    free(t->heap);
}
