/* SPDX-License-Identifier: Apache-2.0
 *
 * The alarm: the apply thread has no timers, the loop wakes it. One that fires early finds nothing
 * due and is set again.
 */
#include "common/mem.h"
#include "server/leader/leader_int.h"

struct alarm {
    int64_t at_ms; /* apply thread: when the loop wakes us; INT64_MAX: never */
    struct timer *timer;
};

struct alarm_call {
    struct leader *l;
    int64_t at_ms;
};

static void
alarm_core(void *arg)
{
    struct leader *l = arg;

    l->alarm->at_ms = INT64_MAX;
    l->on_alarm(l);
}

static void
alarm_fired(void *arg)
{
    struct leader *l = arg;

    l->alarm->timer = NULL;
    server_post_apply(l->s, alarm_core, l);
}

static void
alarm_loop(void *arg)
{
    struct alarm_call *c = arg;
    struct leader *l = c->l;

    if (l->on) {
        env_timer_stop(l->env, l->alarm->timer);
        l->alarm->timer = env_timer(l->env, c->at_ms - env_mono_ms(l->env), alarm_fired, l);
    }
    talloc_free(c);
}

void
leader_alarm(struct leader *l, int64_t at_ms)
{
    if (at_ms >= l->alarm->at_ms)
        return;
    l->alarm->at_ms = at_ms;
    struct alarm_call *c = mem_new(NULL, struct alarm_call);
    *c = (struct alarm_call){l, at_ms};
    env_post(l->env, alarm_loop, c);
}

static void
row_init(struct leader *l)
{
    l->alarm = mem_new(l, struct alarm);
    l->alarm->at_ms = INT64_MAX;
}

static void
row_on_lose(struct leader *l)
{
    l->alarm->at_ms = INT64_MAX;
}

static void
row_end(struct leader *l)
{
    env_timer_stop(l->env, TAKE(l->alarm->timer));
}

const struct controller alarm_row = {.init = row_init, .on_lose = row_on_lose, .end = row_end};

#ifdef FAULT_INJECTION

void
test_hook_alarm(struct leader *l)
{
    l->alarm->at_ms = INT64_MAX; /* the clock has moved: the timer is of another time */
    l->on_alarm(l);
}

#endif
