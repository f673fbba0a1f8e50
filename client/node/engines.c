/* SPDX-License-Identifier: Apache-2.0 */
#include "client/node/engines.h"

#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "drivers/driver.h"

struct one { /* of an engine that is on */
    struct engines *all;
    const struct driver *driver;
    struct engine_watch *watch;
    struct hand_info **info; /* of g->engine */
};

struct engines {
    struct ground *g;
    void (*changed)(void *arg);
    void *arg;
    struct one one[DRIVERS_N + 1];
    size_t n;
};

static void
on_told(void *arg, const struct hand_info *info)
{
    struct one *o = arg;
    struct hand_info *was = *o->info;
    if (was && codec_equal(&type_hand_info, was, info, 0))
        return;
    if (!was || was->healthy != info->healthy)
        log_info("client", info->healthy ? "the engine answers" : "the engine does not answer",
                 "driver", o->driver->can->name, "description", str_or(info->description, ""),
                 NULL);
    *o->info = codec_clone(o->all, &type_hand_info, info);
    mem_free(was);
    o->all->changed(o->all->arg);
}

struct engines *
engines_new(struct ground *g, void (*changed)(void *arg), void *arg)
{
    struct engines *n = mem_new(g, struct engines);
    *n = (struct engines){.g = g, .changed = changed, .arg = arg};
    return n;
}

static void
start_one(struct engines *n, const struct driver *d, struct hand_info **info)
{
    const struct ground *g = n->g;
    if (!d || !d->engine || !d->engine->watch ||
        (d->engine->hand && !str_list_has(&g->cfg.engines, d->can->name)))
        return;
    const struct engine_place p = {.loop = g->loop, .hand = g->cfg.hand, .driver = d->can->name};
    struct one *o = &n->one[n->n++];
    *o = (struct one){.all = n, .driver = d, .info = info};
    o->watch = d->engine->watch(&p, on_told, o);
}

void
engines_start(struct engines *n)
{
    for (size_t i = 0; i < DRIVERS_N; i++)
        start_one(n, drivers[i], &n->g->engine[i]);
    start_one(n, driver_extra(), &n->g->engine[DRIVERS_N]);
}

void
engines_stop(struct engines *n)
{
    while (n->n > 0) {
        const struct one *o = &n->one[--n->n];
        o->driver->engine->unwatch(o->watch);
    }
}
