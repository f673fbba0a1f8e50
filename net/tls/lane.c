/* SPDX-License-Identifier: Apache-2.0
 *
 * Handshakes of a loop take their steps by turns, TLS_STEPS of them in a turn of the loop: a step
 * takes the processor for most of a millisecond, and a thousand may come at once when a server
 * begins again. A lane knows the open connections of its loop as well, for a renewal that revokes
 * some.
 */
#include "common/mem.h"
#include "net/tls/tls_int.h"

struct tls_lane {
    struct tls_lane *next;
    struct loop *loop;
    size_t refs; /* connections */
    struct tls_queue {
        struct tls_step *first, **last;
    } begun, fresh;
    struct timer *timer;
    struct tls_seat *seats;
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
        a->begun.last = &a->begun.first;
        a->fresh.last = &a->fresh.first;
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

/* Returns whose turn it is: who has begun goes first, else all would end late, and be gone. */
static struct tls_step *
lane_next(const struct tls_lane *a)
{
    return a->begun.first != NULL ? a->begun.first : a->fresh.first;
}

static void
lane_turn(void *arg)
{
    struct tls_lane *a = arg;

    a->timer = NULL;
    for (unsigned i = 0; i < TLS_STEPS && lane_next(a) != NULL; i++) {
        struct tls_step *s = lane_next(a);
        tls_lane_out(s);
        s->run(s->arg);
    }
    if (lane_next(a) != NULL && a->timer == NULL)
        a->timer = timer_start(a->loop, 0, lane_turn, a);
}

void
tls_lane_put(struct tls_lane *a, struct tls_step *s)
{
    if (s->at != NULL)
        return;
    struct tls_queue *q = s->begun ? &a->begun : &a->fresh;
    s->queue = q;
    s->next = NULL;
    s->at = q->last;
    *q->last = s;
    q->last = &s->next;
    if (a->timer == NULL)
        a->timer = timer_start(a->loop, 0, lane_turn, a);
}

void
tls_lane_out(struct tls_step *s)
{
    if (s->at == NULL)
        return;
    *s->at = s->next;
    if (s->next != NULL)
        s->next->at = s->at;
    else
        s->queue->last = s->at;
    s->at = NULL;
}

/* --- seats --- */

static void
seat_link(struct tls_seat *s, struct tls_seat **to)
{
    s->next = *to;
    s->at = to;
    if (s->next != NULL)
        s->next->at = &s->next;
    *to = s;
}

void
tls_lane_seat(struct tls_lane *a, struct tls_seat *s)
{
    seat_link(s, &a->seats);
}

void
tls_lane_unseat(struct tls_seat *s)
{
    if (s->at == NULL)
        return;
    *s->at = s->next;
    if (s->next != NULL)
        s->next->at = s->at;
    s->at = NULL;
}

struct lane_visit {
    struct tls *tls;
    struct loop *loop;
};

/* Goes through all that sit; any of them may get up in the judgment of another. */
static void
lane_judge(void *arg)
{
    struct lane_visit *v = arg;
    bool any = false;

    pthread_mutex_lock(&v->tls->lock);
    for (const struct tls_lane *i = v->tls->lanes; i != NULL; i = i->next)
        any |= i->loop == v->loop;
    pthread_mutex_unlock(&v->tls->lock);
    if (any) { /* and only this thread would end the lane */
        struct tls_lane *a = tls_lane_ref(v->tls, v->loop);
        struct tls_seat *todo = TAKE(a->seats);
        if (todo != NULL)
            todo->at = &todo;
        while (todo != NULL) {
            struct tls_seat *s = todo;
            tls_lane_unseat(s);
            seat_link(s, &a->seats);
            s->judge(s->arg);
        }
        tls_lane_unref(v->tls, a);
    }
    tls_unref(v->tls);
    talloc_free(v);
}

void
tls_lanes_judge(struct tls *t)
{
    pthread_mutex_lock(&t->lock);
    for (const struct tls_lane *a = t->lanes; a != NULL; a = a->next) {
        struct lane_visit *v = mem_new(NULL, struct lane_visit);
        *v = (struct lane_visit){tls_ref(t), a->loop};
        loop_post(a->loop, lane_judge, v);
    }
    pthread_mutex_unlock(&t->lock);
}
