/* SPDX-License-Identifier: Apache-2.0
 *
 * Handshakes of a loop take their steps by turns, TLS_STEPS of them in a turn of the loop: a step
 * takes the processor for most of a millisecond, and a thousand may come at once when a server
 * begins again.
 */
#include "common/mem.h"
#include "net/tls/tls_int.h"

struct tls_lane {
    struct tls_lane *next;
    struct loop *loop;
    size_t refs; /* connections */
    struct tls_step *first, **last;
    struct timer *timer;
};

struct tls_lane *
tls_lane_ref(struct tls *t, struct loop *l)
{
    pthread_mutex_lock(&t->lock);
    struct tls_lane *a = t->lanes;
    while (a != NULL && a->loop != l)
        a = a->next;
    if (a == NULL) {
        a = mem_new(NULL, struct tls_lane);
        a->loop = l;
        a->last = &a->first;
        a->next = t->lanes;
        t->lanes = a;
    }
    a->refs++;
    pthread_mutex_unlock(&t->lock);
    return a;
}

void
tls_lane_unref(struct tls *t, struct tls_lane *a)
{
    pthread_mutex_lock(&t->lock);
    bool last = --a->refs == 0;
    struct tls_lane **at = &t->lanes;
    while (last && *at != a)
        at = &(*at)->next;
    if (last)
        *at = a->next;
    pthread_mutex_unlock(&t->lock);
    if (!last)
        return;
    timer_stop(a->timer);
    talloc_free(a);
}

static void
lane_turn(void *arg)
{
    struct tls_lane *a = arg;

    a->timer = NULL;
    for (unsigned i = 0; i < TLS_STEPS && a->first != NULL; i++) {
        struct tls_step *s = a->first;
        tls_lane_out(a, s);
        s->run(s->arg);
    }
    if (a->first != NULL && a->timer == NULL)
        a->timer = timer_start(a->loop, 0, lane_turn, a);
}

void
tls_lane_put(struct tls_lane *a, struct tls_step *s)
{
    if (s->at != NULL)
        return;
    s->next = NULL;
    s->at = a->last;
    *a->last = s;
    a->last = &s->next;
    if (a->timer == NULL)
        a->timer = timer_start(a->loop, 0, lane_turn, a);
}

void
tls_lane_out(struct tls_lane *a, struct tls_step *s)
{
    if (s->at == NULL)
        return;
    *s->at = s->next;
    if (s->next != NULL)
        s->next->at = s->at;
    else
        a->last = s->at;
    s->at = NULL;
}
