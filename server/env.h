/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment: the only way to time, chance and other threads in server/ (check-style finds
 * direct calls). A server gets it from its loop; a test gives one whose clock stands still and
 * whose functions run when it says so. All but timers and work may be called on any thread.
 */
#ifndef PADDOCK_SERVER_ENV_H
#define PADDOCK_SERVER_ENV_H

#include <stdint.h>

#include "common/duration.h"
#include "common/uuid.h"


struct loop;
struct timer;

typedef void env_fn(void *arg);

struct env {
    int64_t (*mono_ns)(void *arg);
    int64_t (*boot_ns)(void *arg); /* as mono_ns, and goes on while the machine is suspended */
    int64_t (*wall_ns)(void *arg); /* the time of day, without its jumps: common/civil.h */
    uint64_t (*random)(void *arg);
    void (*new_id)(void *arg, char out[UUID_TEXT]);
    /* Do what loop_post, timer_start, timer_stop and loop_work of net/loop.h do. */
    void (*post)(void *arg, env_fn *fn, void *x);
    struct timer *(*timer)(void *arg, int64_t delay_ms, env_fn *fn, void *x);
    void (*timer_end)(void *arg, struct timer *t);
    void (*work)(void *arg, env_fn *work, env_fn *done, void *x);
    void *arg;
};

/* The machine's clocks and chance, the threads of the loop (borrowed). */
void env_of_loop(struct env *ret, struct loop *l);

static inline int64_t
env_mono_ns(const struct env *e)
{
    return e->mono_ns(e->arg);
}

static inline int64_t
env_mono_ms(const struct env *e)
{
    return e->mono_ns(e->arg) / NS_PER_MS;
}

static inline int64_t
env_boot_ms(const struct env *e)
{
    return e->boot_ns(e->arg) / NS_PER_MS;
}

static inline int64_t
env_wall_ns(const struct env *e)
{
    return e->wall_ns(e->arg);
}

static inline uint64_t
env_random(const struct env *e)
{
    return e->random(e->arg);
}

/* A new UUID; returns `out`. */
static inline const char *
env_id(const struct env *e, char out[UUID_TEXT])
{
    e->new_id(e->arg, out);
    return out;
}

static inline void
env_post(const struct env *e, env_fn *fn, void *x)
{
    e->post(e->arg, fn, x);
}

static inline struct timer *
env_timer(const struct env *e, int64_t delay_ms, env_fn *fn, void *x)
{
    return e->timer(e->arg, delay_ms, fn, x);
}

static inline void
env_timer_stop(const struct env *e, struct timer *t)
{
    e->timer_end(e->arg, t);
}

static inline void
env_work(const struct env *e, env_fn *work, env_fn *done, void *x)
{
    e->work(e->arg, work, done, x);
}

#endif
