/* SPDX-License-Identifier: Apache-2.0
 *
 * The event loop over libuv: timers, the loop, watches and workers. See loop.h for the rules.
 *
 * Timers are ours, a heap behind a single handle of libuv, and those without delay a list, since a
 * loop has tens of thousands of them and most are stopped before they fire. Then the loop itself:
 * waiting, posts of other threads, the longest turn, the end with its count of what was left open;
 * watches of descriptors; work for other threads; signals.
 */
#include "net/loop.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "net/limits.h"
#include "net/loop_int.h"

struct post {
    loop_fn *fn;
    void *arg;
};

struct sig {
    uv_signal_t h;
    signal_fn *fn;
    void *arg;
    struct sig *next;
};

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

/* A connection and each query that waits have some, so they are small and cheap to stop. */
struct timers {
    uv_timer_t clock; /* armed for the first of the heap */
    uv_idle_t soon;   /* active while some have no delay: those fire in the next turn, in order */
    struct timer *first, *last;
    struct timer **heap;
    size_t n, cap;
    size_t live; /* of both */
    uint64_t next_seq;
};

struct loop {
    uv_loop_t uv;
    uv_async_t async;
    uv_prepare_t before_wait;
    struct wait *wait; /* of loop_run_until() */
    pthread_mutex_t lock; /* guards posts, n_posts, cap_posts */
    struct post *posts;
    size_t n_posts, cap_posts;
    struct post *running; /* spare array, swapped with posts */
    size_t cap_running;
    atomic_bool stop;
    size_t works;
    struct sig *signals;
    char *read_buffer;
    struct quiet *quiet;
    struct timers timers;
    struct turns { /* of loop_run() */
        uv_prepare_t end;
        int64_t end_ns;
        uint64_t idle_ns; /* of all time, at that moment */
        atomic_int_fast64_t longest_ns;
    } turns;
};

struct watch {
    uv_poll_t h;
    int fd;
    watch_fn *fn;
    void *arg;
};

struct work {
    uv_work_t req;
    struct loop *loop;
    loop_fn *work, *done;
    void *arg;
};

/* --- timers: a binary heap by time and order of their making, behind one handle of libuv --- */

static bool
loop_before(const struct timer *a, const struct timer *b)
{
    return a->due_ms < b->due_ms || (a->due_ms == b->due_ms && a->seq < b->seq);
}

static void
loop_put(struct timers *t, size_t at, struct timer *x)
{
    t->heap[at] = x;
    x->at = at;
}

/* Finds the place of `x`, which may be at `at` or anywhere above or below it. */
static void
loop_settle(struct timers *t, size_t at, struct timer *x)
{
    for (; at > 0 && loop_before(x, t->heap[(at - 1) / 2]); at = (at - 1) / 2)
        loop_put(t, at, t->heap[(at - 1) / 2]);
    for (size_t low; (low = 2 * at + 1) < t->n; at = low) {
        if (low + 1 < t->n && loop_before(t->heap[low + 1], t->heap[low]))
            low++;
        if (!loop_before(t->heap[low], x))
            break;
        loop_put(t, at, t->heap[low]);
    }
    loop_put(t, at, x);
}

static void
heap_remove(struct timers *t, struct timer *x)
{
    struct timer *last = t->heap[--t->n];
    if (last != x)
        loop_settle(t, x->at, last);
}

static void clock_cb(uv_timer_t *h);

/* The first of the heap has changed. */
static void
loop_arm(struct timers *t)
{
    if (t->n == 0) {
        uv_timer_stop(&t->clock);
        return;
    }
    int64_t left = t->heap[0]->due_ms - (int64_t)uv_now(t->clock.loop);
    ASSERT(uv_timer_start(&t->clock, clock_cb, left > 0 ? (uint64_t)left : 0, 0) == 0);
}

static void
loop_fire(struct timer *x)
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
        loop_fire(x);
    }
    loop_arm(t);
}

/* --- timers without delay --- */

/* Runs what is to run soon. Timers that are started meanwhile come in the next turn: a chain
 * of them keeps nobody waiting. */
static void
soon_cb(uv_idle_t *h)
{
    struct timers *t = h->data;
    struct timer *x = TAKE(t->first);

    t->last = NULL;
    while (x != NULL) {
        struct timer *next = x->next;
        if (x->fn != NULL)
            loop_fire(x);
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

/* --- timers of both kinds --- */

struct timer *
timer_start(struct loop *l, int64_t delay_ms, loop_fn *fn, void *arg)
{
    struct timers *t = &l->timers;
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
    /* The loop's time was cached before its callbacks ran, and has no part of a millisecond: by it
     * the timer would fire early. */
    uv_update_time(t->clock.loop);
    x->due_ms = (clock_mono_ns() + NS_PER_MS - 1) / NS_PER_MS + delay_ms;
    if (t->n == t->cap) {
        t->cap = t->cap > 0 ? t->cap * 2 : 16;
        t->heap = realloc(t->heap, t->cap * sizeof(*t->heap));
        ASSERT(t->heap != NULL);
    }
    loop_settle(t, t->n++, x);
    if (t->heap[0] == x)
        loop_arm(t);
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
        loop_arm(t);
}

static void
timers_init(struct timers *t, uv_loop_t *uv)
{
    ASSERT(uv_timer_init(uv, &t->clock) == 0 && uv_idle_init(uv, &t->soon) == 0);
    t->clock.data = t->soon.data = t;
}

static void
timers_close(struct timers *t)
{
    if (t->first != NULL)
        soon_cb(&t->soon); /* frees what was stopped */
    uv_close((uv_handle_t *)&t->clock, NULL);
    uv_close((uv_handle_t *)&t->soon, NULL);
}

static void
timers_done(struct timers *t)
{
    free(t->heap);
}

/* --- the loop --- */

struct wait {
    const bool *flag;
    bool over;
};

static bool
wait_over(const struct wait *w)
{
    return *(const volatile bool *)w->flag || *(const volatile bool *)&w->over;
}

/* Ends the wait at once if the awaited event came with a timer of this turn: libuv would wait for
 * the next event all the same. */
static void
before_wait_cb(uv_prepare_t *h)
{
    const struct loop *l = h->data;

    if (wait_over(l->wait))
        uv_stop(h->loop);
}

/* Every libuv handle here is the first member of a talloc'ed object. */
static void
closed_cb(uv_handle_t *h)
{
    talloc_free(h);
}

static void
async_cb(uv_async_t *h)
{
    struct loop *l = h->data;

    pthread_mutex_lock(&l->lock);
    struct post *run = l->posts;
    size_t n = l->n_posts, cap = l->cap_posts;
    l->posts = l->running;
    l->cap_posts = l->cap_running;
    l->n_posts = 0;
    l->running = NULL;
    l->cap_running = 0;
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < n; i++)
        run[i].fn(run[i].arg);
    if (!l->running) {
        l->running = run;
        l->cap_running = cap;
    } else {
        free(run);
    }
    if (atomic_load(&l->stop))
        uv_stop(&l->uv);
}

/* A turn is what lies between two waits; libuv counts how long it waits. */
static void
turn_cb(uv_prepare_t *h)
{
    struct turns *t = &((struct loop *)h->data)->turns;
    int64_t now = clock_mono_ns();
    uint64_t idle = uv_metrics_idle_time(h->loop);
    int64_t took = now - t->end_ns - (int64_t)(idle - t->idle_ns);

    if (t->end_ns != 0 && took > atomic_load_explicit(&t->longest_ns, memory_order_relaxed))
        atomic_store_explicit(&t->longest_ns, took, memory_order_relaxed);
    t->end_ns = now;
    t->idle_ns = idle;
}

int64_t
loop_longest_turn_ns(struct loop *l)
{
    return atomic_exchange_explicit(&l->turns.longest_ns, 0, memory_order_relaxed);
}

struct loop *
loop_new(void)
{
    struct loop *l = mem_new(NULL, struct loop);
    ASSERT(uv_loop_init(&l->uv) == 0);
    ASSERT(uv_async_init(&l->uv, &l->async, async_cb) == 0);
    ASSERT(pthread_mutex_init(&l->lock, NULL) == 0);
    ASSERT(uv_prepare_init(&l->uv, &l->before_wait) == 0);
    ASSERT(uv_loop_configure(&l->uv, UV_METRICS_IDLE_TIME) == 0);
    ASSERT(uv_prepare_init(&l->uv, &l->turns.end) == 0);
    l->async.data = l->before_wait.data = l->turns.end.data = l;
    timers_init(&l->timers, &l->uv);
    signal(SIGPIPE, SIG_IGN);
    return l;
}

uv_loop_t *
loop_uv(struct loop *l)
{
    return &l->uv;
}

char *
loop_read_buffer(struct loop *l)
{
    if (!l->read_buffer)
        l->read_buffer = mem_array(l, char, STREAM_READ_SIZE);
    return l->read_buffer;
}

void
loop_run(struct loop *l)
{
    ASSERT(uv_prepare_start(&l->turns.end, turn_cb) == 0);
    while (!atomic_load(&l->stop))
        uv_run(&l->uv, UV_RUN_DEFAULT);
    uv_prepare_stop(&l->turns.end);
    atomic_store(&l->stop, false);
}

void
loop_stop(struct loop *l)
{
    atomic_store(&l->stop, true);
    uv_async_send(&l->async);
}

static void
flag_set(void *arg)
{
    *(bool *)arg = true;
}

bool
loop_run_until(struct loop *l, const bool *flag, int64_t timeout_ms)
{
    struct wait w = {.flag = flag};
    struct timer *t = timeout_ms >= 0 ? timer_start(l, timeout_ms, flag_set, &w.over) : NULL;

    ASSERT(l->wait == NULL);
    l->wait = &w;
    ASSERT(uv_prepare_start(&l->before_wait, before_wait_cb) == 0);
    while (!wait_over(&w))
        uv_run(&l->uv, UV_RUN_ONCE);
    uv_prepare_stop(&l->before_wait);
    l->wait = NULL;
    if (!w.over)
        timer_stop(t);
    return *flag;
}

static bool
posts_pending(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    bool some = l->n_posts > 0;
    pthread_mutex_unlock(&l->lock);
    return some;
}

struct walk {
    struct loop *l;
    unsigned closing, open;
    bool tell;
};

static bool
is_ours(const struct loop *l, const uv_handle_t *h)
{
    return h == (const uv_handle_t *)&l->async || h == (const uv_handle_t *)&l->before_wait ||
           h == (const uv_handle_t *)&l->turns.end || h == (const uv_handle_t *)&l->timers.clock ||
           h == (const uv_handle_t *)&l->timers.soon;
}

static void
walk_cb(uv_handle_t *h, void *arg)
{
    struct walk *w = arg;

    if (uv_is_closing(h)) {
        w->closing++;
    } else if (!is_ours(w->l, h) && h->type != UV_SIGNAL) {
        w->open++;
        if (w->tell)
            fprintf(stderr, "loop_free: a %s handle was left open\n",
                    uv_handle_type_name(h->type));
    }
}

void
loop_free(struct loop *l)
{
    if (!l)
        return;
    quiet_stop(TAKE(l->quiet));
    struct walk w;
    do { /* what a closing handle tells its owner may close more */
        while (posts_pending(l) || l->works > 0)
            uv_run(&l->uv, UV_RUN_ONCE);
        w = (struct walk){.l = l};
        uv_walk(&l->uv, walk_cb, &w);
        if (w.closing)
            uv_run(&l->uv, UV_RUN_NOWAIT);
    } while (w.closing);
    if (w.open) {
        w.tell = true;
        uv_walk(&l->uv, walk_cb, &w);
    }
    if (l->timers.live > 0)
        fprintf(stderr, "loop_free: %zu timers were left\n", l->timers.live);
    ASSERT(w.open == 0 && l->timers.live == 0);
    while (l->signals) {
        struct sig *s = l->signals;
        l->signals = s->next;
        uv_close((uv_handle_t *)&s->h, closed_cb);
    }
    uv_close((uv_handle_t *)&l->async, NULL);
    uv_close((uv_handle_t *)&l->before_wait, NULL);
    uv_close((uv_handle_t *)&l->turns.end, NULL);
    timers_close(&l->timers);
    atomic_store(&l->stop, false);
    uv_run(&l->uv, UV_RUN_DEFAULT);
    ASSERT(!posts_pending(l)); /* a closing handle posted: nobody would run it */
    ASSERT(uv_loop_close(&l->uv) == 0);
    pthread_mutex_destroy(&l->lock);
    timers_done(&l->timers);
    free(l->posts);
    free(l->running);
    talloc_free(l);
}

int64_t
loop_now_ms(const struct loop *l)
{
    return (int64_t)uv_now(&l->uv);
}

void
loop_post(struct loop *l, loop_fn *fn, void *arg)
{
    pthread_mutex_lock(&l->lock);
    if (l->n_posts == l->cap_posts) {
        size_t cap = l->cap_posts ? l->cap_posts * 2 : 16;
        struct post *p = realloc(l->posts, cap * sizeof(*p));
        ASSERT(p != NULL);
        l->posts = p;
        l->cap_posts = cap;
    }
    l->posts[l->n_posts++] = (struct post){fn, arg};
    pthread_mutex_unlock(&l->lock);
    uv_async_send(&l->async);
}

static void
watch_cb(uv_poll_t *h, int status, int events)
{
    struct watch *w = (struct watch *)h;
    unsigned ev = 0;

    if (events & UV_READABLE)
        ev |= WATCH_READ;
    if (events & UV_WRITABLE)
        ev |= WATCH_WRITE;
    if (events & UV_PRIORITIZED)
        ev |= WATCH_PRIORITY;
    if (status < 0)
        ev |= WATCH_ERROR;
    w->fn(w->arg, w->fd, ev);
}

static int
watch_start(struct watch *w, unsigned events)
{
    int ev = (events & WATCH_READ ? UV_READABLE : 0) | (events & WATCH_WRITE ? UV_WRITABLE : 0) |
             (events & WATCH_PRIORITY ? UV_PRIORITIZED : 0);
    return uv_poll_start(&w->h, ev, watch_cb);
}

struct watch *
watch_fd(struct loop *l, int fd, unsigned events, watch_fn *fn, void *arg)
{
    struct watch *w = mem_new(NULL, struct watch);
    w->fd = fd;
    w->fn = fn;
    w->arg = arg;
    if (uv_poll_init(&l->uv, &w->h, fd) != 0) {
        talloc_free(w);
        return NULL;
    }
    if (watch_start(w, events) != 0) {
        watch_stop(w);
        return NULL;
    }
    return w;
}

void
watch_set(struct watch *w, unsigned events)
{
    if (events == 0)
        ASSERT(uv_poll_stop(&w->h) == 0);
    else
        ASSERT(watch_start(w, events) == 0);
}

void
watch_stop(struct watch *w)
{
    if (w)
        uv_close((uv_handle_t *)&w->h, closed_cb);
}

static void
work_cb(uv_work_t *req)
{
    struct work *w = (struct work *)req;
    w->work(w->arg);
}

static void
work_done_cb(uv_work_t *req, int status)
{
    struct work *w = (struct work *)req;
    (void)status; /* never cancelled */
    w->loop->works--;
    loop_fn *done = w->done;
    void *arg = w->arg;
    talloc_free(w);
    if (done)
        done(arg);
}

void
loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *arg)
{
    struct work *w = mem_new(NULL, struct work);
    w->loop = l;
    w->work = work;
    w->done = done;
    w->arg = arg;
    l->works++;
    ASSERT(uv_queue_work(&l->uv, &w->req, work_cb, work_done_cb) == 0);
}

void
loop_note_close(struct loop *l)
{
    quiet_count(l->quiet);
}

void
loop_give_back(struct loop *l)
{
    if (l->quiet == NULL)
        l->quiet = quiet_start(l);
}

static void
signal_cb(uv_signal_t *h, int sig)
{
    struct sig *s = (struct sig *)h;
    s->fn(s->arg, sig);
}

void
loop_on_signal(struct loop *l, int sig, signal_fn *fn, void *arg)
{
    struct sig *s = mem_new(NULL, struct sig);
    s->fn = fn;
    s->arg = arg;
    ASSERT(uv_signal_init(&l->uv, &s->h) == 0);
    ASSERT(uv_signal_start(&s->h, signal_cb, sig) == 0);
    s->next = l->signals;
    l->signals = s;
}
