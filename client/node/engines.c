/* SPDX-License-Identifier: Apache-2.0 */
#include "client/node/engines.h"

#include <fcntl.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "drivers/driver.h"

enum { INFO_MAX = 1 << 20 }; /* bytes of what an engine says */

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

/* A file of the client's state: the last word of an engine, for the next start. */
static const char *
file_of(const void *ctx, const struct ground *g, const struct driver *d)
{
    return mem_printf(ctx, "%s/engine-%s", g->cfg.state_dir, d->can->name);
}

static void
engines_note(const struct one *o)
{
    auto_mem void *tmp = mem_ctx("engine");
    auto_buf struct buf b = BUF_INIT(INFO_MAX);
    json_encode(&b, &type_hand_info, *o->info, 0);
    int r = buf_error(&b);
    r = r < 0
            ? r
            : file_write_atomic(AT_FDCWD, file_of(tmp, o->all->g, o->driver), b.data, b.len, 0600);
    if (r < 0) /* it is asked again */
        log_debug("client", "what an engine said is not noted", "driver", o->driver->can->name,
                  "error", err_name(r), NULL);
}

static void
recall_one(struct engines *n, const struct driver *d, struct hand_info **info)
{
    auto_mem void *tmp = mem_ctx("engine");
    struct err e = ERR_INIT;
    char *text = NULL;
    size_t len = 0;
    void *said = NULL;
    if (d->engine && d->engine->hand && str_list_has(&n->g->cfg.engines, d->can->name) &&
        file_read(tmp, AT_FDCWD, file_of(tmp, n->g, d), INFO_MAX, &text, &len) == 0 &&
        json_decode(n, &type_hand_info, SLICE(text, len), BUDGET(INFO_MAX), &said, &e) == 0)
        *info = said;
}

void
engines_recall(struct engines *n)
{
    for (size_t i = 0; i < DRIVERS_N; i++)
        recall_one(n, drivers[i], &n->g->engine[i]);
}

static void
on_told(void *arg, const struct hand_info *told)
{
    struct one *o = arg;
    struct hand_info *was = *o->info, copy = *told;
    const struct hand_info *info = &copy;
    if (was && !copy.healthy && str_empty(copy.version)) /* there was no answer */
        copy.version = was->version;
    if (was && codec_equal(&type_hand_info, was, info, 0))
        return;
    if (!was || was->healthy != info->healthy)
        log_info("client", info->healthy ? "the engine answers" : "the engine does not answer",
                 "driver", o->driver->can->name, "description", str_or(info->description, ""),
                 NULL);
    *o->info = codec_clone(o->all, &type_hand_info, info);
    mem_free(was);
    if (o->driver->engine->hand)
        engines_note(o);
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
