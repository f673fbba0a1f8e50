/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to net/: the timers of a loop (timer_start of loop.h) behind one handle of libuv for all of
 * them. A connection and each query that waits have some, so they are small and cheap to stop.
 */
#ifndef PADDOCK_NET_TIMERS_H
#define PADDOCK_NET_TIMERS_H

#include <uv.h>

#include "net/loop.h"

struct timers {
    uv_timer_t clock; /* armed for the first of the heap */
    uv_idle_t soon;   /* active while some have no delay: those fire in the next turn, in order */
    struct timer *first, *last;
    struct timer **heap;
    size_t n, cap;
    size_t live; /* of both */
    uint64_t next_seq;
};

void timers_init(struct timers *t, uv_loop_t *uv);
void timers_close(struct timers *t); /* both handles; none is live */
void timers_done(struct timers *t);  /* after they were closed */

#endif
