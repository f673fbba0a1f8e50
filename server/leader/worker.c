/* SPDX-License-Identifier: Apache-2.0
 *
 * Scheduler workers (see worker.h).
 */
#include "server/leader/worker.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "common/mem.h"

struct job {
    void (*fn)(void *arg);
    void *arg;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct job queue[WORKERS_QUEUE_MAX];
    unsigned head, len;
    bool stopping;
    unsigned n, busy;
    pthread_t threads[WORKERS_MAX];
};

static void *
worker_main(void *arg)
{
    struct workers *w = arg;

    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->len == 0 && !w->stopping)
            pthread_cond_wait(&w->more, &w->lock);
        if (w->len == 0)
            break;
        struct job j = w->queue[w->head];
        w->head = (w->head + 1) % WORKERS_QUEUE_MAX;
        w->len--;
        w->busy++;
        pthread_mutex_unlock(&w->lock);
        j.fn(j.arg);
        pthread_mutex_lock(&w->lock);
        w->busy--;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

unsigned
workers_default(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    return cpus > 2 ? (unsigned)cpus / 2 : 1;
}

struct workers *
workers_start(const void *ctx, unsigned n)
{
    struct workers *w = mem_new(ctx, struct workers);
    sigset_t all, old;

    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    n = n > 0 ? n : 1; /* they do more than to schedule */
    n = n > WORKERS_MAX ? WORKERS_MAX : n;
    /* signals are the loop's */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    while (w->n < n && pthread_create(&w->threads[w->n], NULL, worker_main, w) == 0)
        w->n++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    ASSERT(w->n > 0);
    return w;
}

unsigned
workers_busy(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    unsigned n = w->busy;
    pthread_mutex_unlock(&w->lock);
    return n;
}

bool
workers_submit(struct workers *w, void (*fn)(void *arg), void *arg)
{
    bool ok;

    pthread_mutex_lock(&w->lock);
    ok = !w->stopping && w->len < WORKERS_QUEUE_MAX;
    if (ok) {
        w->queue[(w->head + w->len++) % WORKERS_QUEUE_MAX] = (struct job){fn, arg};
        pthread_cond_signal(&w->more);
    }
    pthread_mutex_unlock(&w->lock);
    return ok;
}

void
workers_stop(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->n; i++)
        pthread_join(w->threads[i], NULL);
}

void
workers_free(struct workers *w)
{
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
    talloc_free(w);
}
