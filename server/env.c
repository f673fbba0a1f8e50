/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of a server that runs (see env.h).
 */
#include "server/env.h"

#include "common/clock.h"
#include "common/random.h"
#include "common/uuid.h"
#include "net/loop.h"

static int64_t
mono_ns(void *arg)
{
    (void)arg;
    return clock_mono_ns();
}

static int64_t
boot_ns(void *arg)
{
    (void)arg;
    return clock_boot_ns();
}

static int64_t
wall_ns(void *arg)
{
    (void)arg;
    return clock_civil_ns();
}

static uint64_t
random_u64(void *arg)
{
    (void)arg;
    return rand_u64();
}

static void
new_id(void *arg, char out[UUID_TEXT])
{
    (void)arg;
    uuid_make(out);
}

static void
env_on_loop(void *arg, env_fn *fn, void *x)
{
    loop_post(arg, fn, x);
}

static struct timer *
env_timer_loop(void *arg, int64_t delay_ms, env_fn *fn, void *x)
{
    return timer_start(arg, delay_ms, fn, x);
}

static void
timer_end(void *arg, struct timer *t)
{
    (void)arg;
    timer_stop(t);
}

static void
env_work_loop(void *arg, env_fn *fn, env_fn *done, void *x)
{
    loop_work(arg, fn, done, x);
}

void
env_of_loop(struct env *ret, struct loop *l)
{
    *ret = (struct env){mono_ns,     boot_ns,        wall_ns,   random_u64,    new_id,
                        env_on_loop, env_timer_loop, timer_end, env_work_loop, l};
}
