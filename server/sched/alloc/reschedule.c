/* SPDX-License-Identifier: Apache-2.0
 *
 * Reschedule policy arithmetic (see reschedule.h).
 */
#include "server/sched/alloc/reschedule.h"

#include "api/terms.h"
#include "common/mem.h"

/* The latest finish of its tasks, else its last change. */
static int64_t
fail_time(const struct allocation *a)
{
    int64_t t = 0;

    for (size_t i = 0; i < a->task_states.n; i++) {
        const struct task_state *s = a->task_states.v[i].v;
        if (s != NULL && s->finished_at > t)
            t = s->finished_at;
    }
    return t > 0 ? t : a->modify_time;
}

static const struct reschedule_event *
reschedule_event_back(const struct allocation *a, size_t back)
{
    const struct reschedule_tracker *t = a->reschedule_tracker;

    return t != NULL && t->events.n > back ? t->events.v[t->events.n - 1 - back] : NULL;
}

static int64_t
add_capped(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static int64_t
grown_delay(const struct reschedule_policy *p, const struct allocation *a)
{
    const struct reschedule_event *last = reschedule_event_back(a, 0),
                                  *before = reschedule_event_back(a, 1);
    int64_t base = p->delay.v;

    if (str_eq(p->delay_function, "exponential"))
        return last == NULL ? base : add_capped(last->delay, last->delay);
    if (!str_eq(p->delay_function, "fibonacci") || last == NULL || before == NULL)
        return base;
    /* the one before was at the cap and the last one had been reset: the series starts again */
    if (before->delay == p->max_delay.v && last->delay == base)
        return base;
    return add_capped(last->delay, before->delay);
}

int64_t
reschedule_delay(const struct reschedule_policy *p, const struct allocation *a)
{
    const struct reschedule_event *last = reschedule_event_back(a, 0);
    int64_t d = grown_delay(p, a);

    if (p->max_delay.v <= 0 || d <= p->max_delay.v || str_eq(p->delay_function, "constant"))
        return d;
    /* it ran well for longer than the cap since the last attempt: forgiven */
    if (last != NULL && fail_time(a) - last->reschedule_time > p->max_delay.v)
        return p->delay.v;
    return p->max_delay.v;
}

static size_t
events_within(const struct allocation *a, int64_t since)
{
    size_t n = 0;

    for (size_t i = 0; a->reschedule_tracker && i < a->reschedule_tracker->events.n; i++)
        n += a->reschedule_tracker->events.v[i]->reschedule_time > since;
    return n;
}

bool
reschedule_allowed(const struct reschedule_policy *p, const struct allocation *a, int64_t *ret_at)
{
    if (p == NULL || (!p->unlimited.v && p->attempts.v <= 0))
        return false;
    int64_t fail = fail_time(a), delay = reschedule_delay(p, a);
    if (!p->unlimited.v) {
        if (delay >= p->interval.v)
            return false;
        if (events_within(a, fail - p->interval.v) >= (uint64_t)p->attempts.v)
            return false;
    }
    *ret_at = add_capped(fail, delay);
    return true;
}

bool
reschedule_awaits(const struct evaluation *e, const char *trigger, int64_t at)
{
    int64_t off = e->wait_until > at ? e->wait_until - at : at - e->wait_until;

    return str_eq(e->status, EVAL_PENDING) && str_eq(e->triggered_by, trigger) &&
           e->wait_until > 0 && off <= RESCHEDULE_BATCH_WINDOW;
}

struct reschedule_tracker *
reschedule_tracker_next(const void *ctx, const struct reschedule_policy *p,
                        const struct allocation *prev, int64_t now)
{
    struct reschedule_tracker *t = mem_new(ctx, struct reschedule_tracker);
    struct reschedule_event *e = mem_new(ctx, struct reschedule_event);
    size_t n = prev->reschedule_tracker ? prev->reschedule_tracker->events.n : 0, from = 0;
    bool unlimited = p == NULL || p->unlimited.v;

    if (unlimited && n > RESCHEDULE_EVENTS_KEPT)
        from = n - RESCHEDULE_EVENTS_KEPT;
    for (size_t i = from; i < n; i++) {
        struct reschedule_event *old = prev->reschedule_tracker->events.v[i];
        if (!unlimited && now - old->reschedule_time > p->interval.v)
            continue;
        struct reschedule_event *copy = codec_clone(ctx, &type_reschedule_event, old);
        list_add(ctx, t->events, copy);
    }
    e->reschedule_time = now;
    e->prev_alloc_id = mem_strdup(ctx, prev->id);
    e->prev_node_id = mem_strdup(ctx, prev->node_id);
    e->delay = p ? reschedule_delay(p, prev) : 0;
    list_add(ctx, t->events, e);
    t->last_reschedule = mem_strdup(ctx, "ok");
    return t;
}
