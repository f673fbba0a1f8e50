/* SPDX-License-Identifier: Apache-2.0
 *
 * The mock driver. When a run starts, how long it lives and how it ends follow from the seed, the
 * name of the allocation (and the node, of system jobs), and how many runs of that name there were.
 * A job for mock_driver says it itself: run_for, start_block_for, exit_code, start_error.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/fleet/fleet.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/hash.h"
#include "common/mem.h"

struct run_count { /* of one name */
    uint64_t name;
    uint64_t n;
    UT_hash_handle hh;
};

static struct run_count *
count_run(struct fleet *f, uint64_t name)
{
    struct run_count *c = NULL;

    HASH_FIND(hh, f->runs, &name, sizeof(name), c);
    if (c == NULL) {
        c = calloc(1, sizeof(*c));
        ASSERT(c != NULL);
        c->name = name;
        HASH_ADD(hh, f->runs, name, sizeof(c->name), c);
    }
    c->n++;
    return c;
}

static void step(void *arg);

static void
next_in(struct sim_alloc *a, int64_t ms)
{
    timer_stop(a->timer);
    a->timer = timer_start(a->node->fleet->loop, ms, step, a);
}

static void
over(struct sim_alloc *a, enum run_state state)
{
    struct fleet *f = a->node->fleet;

    timer_stop(TAKE(a->timer));
    if (a->state == RUN_RUNNING || a->state == RUN_KILLING)
        f->n_running--;
    f->stats.ended++;
    f->stats.failed += state == RUN_FAILED;
    a->state = state;
    a->finished_ns = clock_wall_ns();
    if (state == RUN_FAILED && a->deployment && !a->healthy)
        a->unhealthy = true;
    sync_dirty(a);
}

/* When something happens to a running one: it becomes healthy, or ends. */
void
driver_look(struct sim_alloc *a)
{
    int64_t now = loop_now_ms(a->node->fleet->loop);
    int64_t at = a->ends_ms;

    if (a->state != RUN_RUNNING)
        return;
    if (a->deployment && !a->healthy && !a->unhealthy) {
        int64_t left = a->group->min_healthy_ms - (clock_wall_ns() - a->started_ns) / NS_PER_MS;
        at = at == 0 || now + left < at ? now + left : at;
    }
    timer_stop(TAKE(a->timer));
    if (at != 0)
        next_in(a, at - now);
}

static void
started(struct sim_alloc *a)
{
    a->state = RUN_RUNNING;
    a->started_ns = clock_wall_ns();
    a->node->fleet->n_running++;
    if (a->life_ms > 0)
        a->ends_ms = loop_now_ms(a->node->fleet->loop) + a->life_ms;
    driver_look(a);
    sync_dirty(a);
}

static void
step(void *arg)
{
    struct sim_alloc *a = arg;

    a->timer = NULL;
    if (a->state == RUN_PENDING && a->start_fails) {
        over(a, RUN_FAILED);
    } else if (a->state == RUN_PENDING) {
        started(a);
    } else if (a->state == RUN_KILLING) {
        over(a, RUN_COMPLETE);
    } else if (a->ends_ms != 0 && loop_now_ms(a->node->fleet->loop) >= a->ends_ms) {
        over(a, a->exit_code != 0 ? RUN_FAILED : RUN_COMPLETE);
    } else {
        a->healthy = a->deployment && !a->unhealthy;
        sync_dirty(a);
        driver_look(a);
    }
}

void
driver_start(struct sim_alloc *a, const char *name)
{
    struct fleet *f = a->node->fleet;
    const struct options *o = &f->opt;
    const struct spec_group *g = a->group;
    uint64_t h = hash_item(hash_item(hash_item(HASH_START, a->spec->ns), a->spec->id), name);

    h = a->spec->per_node ? mix(h, a->node->number) : h;
    uint64_t n = count_run(f, h)->n, chance = mix(mix((uint64_t)o->seed, h), n);
    int64_t start_ms = g->block_ms >= 0 ? g->block_ms : pick(&o->start_ms, mix(chance, 1));
    a->life_ms = g->run_ms >= 0 ? (g->run_ms > 0 ? g->run_ms : 1)
                 : g->mock      ? 1
                                : pick(&o->life_ms, mix(chance, 2));
    a->start_fails = g->start_error != NULL || (int64_t)(mix(chance, 3) % 100) < o->start_fail;
    a->exit_code = g->mock ? (uint8_t)g->exit_code : (int64_t)(mix(chance, 4) % 100) < o->fail;
    a->stop_ms = pick(&o->stop_ms, mix(chance, 5));
    char node[16] = "";
    if (a->spec->per_node)
        snprintf(node, sizeof(node), " on %05u", a->node->number);
    events_add(f, "run %s %s%s %llu: %s after %lld ms, ends after %lld ms with %u", a->spec->ns,
               name, node, (unsigned long long)n, a->start_fails ? "fails" : "starts",
               (long long)start_ms, (long long)a->life_ms, a->exit_code);
    f->stats.runs++;
    a->state = RUN_PENDING;
    if (start_ms > 0 || a->start_fails)
        next_in(a, start_ms);
    else
        started(a);
}

void
driver_kill(struct sim_alloc *a)
{
    if (a->state == RUN_PENDING)
        over(a, RUN_COMPLETE);
    if (a->state != RUN_RUNNING)
        return;
    if (a->stop_ms <= 0) {
        over(a, RUN_COMPLETE);
        return;
    }
    a->state = RUN_KILLING;
    next_in(a, a->stop_ms);
}

void
driver_drop(struct sim_alloc *a)
{
    timer_stop(TAKE(a->timer));
    if (a->state == RUN_RUNNING || a->state == RUN_KILLING)
        a->node->fleet->n_running--;
}

void
driver_done(struct fleet *f)
{
    struct run_count *c, *next;

    HASH_ITER(hh, f->runs, c, next)
    {
        HASH_DEL(f->runs, c);
        free(c);
    }
}
