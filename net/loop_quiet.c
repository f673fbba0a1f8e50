/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory given back after a burst. The allocator keeps what a storm of requests took; nobody but us
 * knows that it is over. Turns of the loop and closed connections are counted, which costs an idle
 * loop nothing, since it has none; after QUIET_WORK of them a timer is armed that looks whether the
 * storm has passed, and goes away when it has.
 */
#include <malloc.h>

#include "common/mem.h"
#include "net/loop_int.h"

enum {
    QUIET_WORK = 32,   /* since the last trim: a few heartbeats, or one big answer and its tail */
    QUIET_CALM = 64,   /* calm: fewer than so many within QUIET_MS */
    QUIET_MS = 1000,
    QUIET_LOOKS = 30 /* a load without a pause: trim all the same after so many looks */
};

struct quiet {
    uv_check_t h; /* first: closed_cb frees it */
    struct loop *loop;
    struct timer *timer;
    unsigned work, seen, looks;
};

static void
loop_quiet_trim(void *arg)
{
    (void)arg;
    malloc_trim(0);
}

static void
loop_quiet_look(void *arg)
{
    struct quiet *q = arg;

    q->timer = NULL;
    if (q->work - q->seen >= QUIET_CALM && ++q->looks < QUIET_LOOKS) {
        q->seen = q->work;
        q->timer = timer_start(q->loop, QUIET_MS, loop_quiet_look, q);
        return;
    }
    q->work = q->looks = 0;
    loop_work(q->loop, loop_quiet_trim, NULL,
              NULL); /* milliseconds for a big heap: not on the loop */
}

void
quiet_count(struct quiet *q)
{
    if (q == NULL || ++q->work < QUIET_WORK || q->timer != NULL)
        return;
    q->seen = q->work;
    q->timer = timer_start(q->loop, QUIET_MS, loop_quiet_look, q);
}

static void
loop_quiet_turn(uv_check_t *h)
{
    quiet_count((struct quiet *)h);
}

struct quiet *
quiet_start(struct loop *l)
{
    struct quiet *q = mem_new(NULL, struct quiet);
    q->loop = l;
    ASSERT(uv_check_init(loop_uv(l), &q->h) == 0);
    ASSERT(uv_check_start(&q->h, loop_quiet_turn) == 0);
    return q;
}

static void
loop_quiet_closed(uv_handle_t *h)
{
    talloc_free(h);
}

void
quiet_stop(struct quiet *q)
{
    if (q == NULL)
        return;
    timer_stop(q->timer);
    uv_close((uv_handle_t *)&q->h, loop_quiet_closed);
}
