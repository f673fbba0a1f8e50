/* SPDX-License-Identifier: Apache-2.0
 *
 * A gate (see gate.h).
 */
#include "server/gate.h"

#include <pthread.h>

#include "common/mem.h"

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t empty;
    unsigned inside;
    bool closed;
    int refs;
};

struct gate *
gate_new(void)
{
    struct gate *g = mem_new(NULL, struct gate);

    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->empty, NULL);
    g->refs = 1;
    return g;
}

struct gate *
gate_ref(struct gate *g)
{
    __atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
    return g;
}

void
gate_unref(struct gate *g)
{
    if (__atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    pthread_cond_destroy(&g->empty);
    pthread_mutex_destroy(&g->lock);
    talloc_free(g);
}

bool
gate_enter(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    bool in = !g->closed;
    g->inside += in;
    pthread_mutex_unlock(&g->lock);
    return in;
}

void
gate_leave(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    if (--g->inside == 0)
        pthread_cond_broadcast(&g->empty);
    pthread_mutex_unlock(&g->lock);
}

bool
gate_is_closed(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    bool closed = g->closed;
    pthread_mutex_unlock(&g->lock);
    return closed;
}

void
gate_close(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->closed = true;
    while (g->inside > 0)
        pthread_cond_wait(&g->empty, &g->lock);
    pthread_mutex_unlock(&g->lock);
}
