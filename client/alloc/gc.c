/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/gc.h"

#include <sys/statvfs.h>

#include "client/limits.h"
#include "client/warden_link.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"

enum { RETRY_MS = 2000 /* an allocation's directory was not removed */ };

struct gc {
    struct ground *g;
    struct allocs *allocs;
    struct alloc_runner *first, **last; /* waiting to be destroyed */
    size_t waiting;                     /* length of that queue */
    int64_t running;
    struct timer *timer;
    struct timer *retry_timer;
    bool looking; /* a worker measures the disk */
    bool full;    /* it was too full: measure again after the next one is gone */
    const char *why_many, *why_full;
};

struct gc *
gc_new(struct allocs *allocs)
{
    struct gc *gc = mem_new(allocs->g, struct gc);
    gc->g = allocs->g;
    gc->allocs = allocs;
    gc->why_many =
        mem_printf(gc, "client gc_max_allocs = %lld", (long long)gc->g->cfg.agent->gc_max_allocs);
    gc->why_full = mem_printf(
        gc, "the disk was full: client gc_disk_usage_threshold = %g, gc_inode_usage_threshold = %g",
        gc->g->cfg.agent->gc_disk_usage_threshold, gc->g->cfg.agent->gc_inode_usage_threshold);
    return gc;
}

static bool
gc_collectable(const struct alloc_runner *ar)
{
    return alloc_runner_terminal(ar) && !ar->collecting && !ar->doomed && !ar->a.stopped &&
           ar->lent == 0;
}

/* Finds the allocation that may go first; an end that the server does not know yet must not be
 * forgotten. *ret_tracked: how many there are of all kinds. */
static struct alloc_runner *
gc_oldest(const struct gc *gc, int64_t *ret_tracked)
{
    struct alloc_runner *best = NULL;
    int64_t n = 0;
    ALLOCS_EACH(gc->allocs, ar) {
        n += !ar->collecting && !ar->doomed;
        if (gc_collectable(ar) && !ar->report.dirty && !ar->report.in_flight &&
            (!best || ar->ended_ns < best->ended_ns))
            best = ar;
    }
    *ret_tracked = n;
    return best;
}

static void gc_look(struct gc *gc);

/* --- destroying, some at a time --- */

static struct alloc_runner *
gc_dequeue(struct gc *gc)
{
    struct alloc_runner *ar = gc->first;
    if (!ar)
        return NULL;
    gc->first = ar->gc.next;
    gc->waiting--;
    return ar;
}

static void
catch_up(struct gc *gc)
{
    if (!gc->allocs->crowded || gc->waiting > CLIENT_REMOVALS_MAX / 2)
        return;
    gc->allocs->crowded = false;
    if (gc->g->link->up) /* else that comes */
        allocs_link_up(gc->allocs);
}

static void
gc_pump(struct gc *gc)
{
    struct alloc_runner *ar;
    while (gc->running < gc->g->cfg.agent->gc_parallel_destroys && (ar = gc_dequeue(gc))) {
        gc->running++;
        alloc_runner_destroy(ar);
    }
}

bool
gc_collect(struct gc *gc, struct alloc_runner *ar, const char *why, client_done *done, void *arg)
{
    if (!gc_collectable(ar))
        return false;
    ar->collecting = true;
    ar->gc.why = why;
    ar->gc.done = done;
    ar->gc.arg = arg;
    ar->gc.next = NULL;
    if (!gc->first)
        gc->last = &gc->first;
    *gc->last = ar;
    gc->last = &ar->gc.next;
    gc->waiting++;
    gc_pump(gc);
    gc->allocs->crowded = gc->allocs->crowded || gc->waiting > CLIENT_REMOVALS_MAX;
    return true;
}

static void
gc_tell(struct alloc_runner *ar, const struct err *e)
{
    client_done *done = ar->gc.done;
    ar->gc.done = NULL;
    if (done)
        done(ar->gc.arg, e);
}

static void
on_retry(void *arg)
{
    struct gc *gc = arg;
    gc->retry_timer = NULL;
    ALLOCS_EACH(gc->allocs, ar)
        if (ar->removed)
            gc_collect(gc, ar, GC_FORGOTTEN, NULL, NULL);
}

void
gc_ended(struct gc *gc, struct alloc_runner *ar, const struct err *e)
{
    gc->running--;
    gc_tell(ar, e);
    gc_pump(gc);
    if (gc->g->stopping)
        return;
    catch_up(gc);
    if (e && ar->removed && !gc->retry_timer) /* what the servers forgot: soon again */
        gc->retry_timer = timer_start(gc->g->loop, RETRY_MS, on_retry, gc);
    if (!e && gc->full)
        gc_look(gc);
    else
        gc_wake(gc); /* after an error: not at once */
}

void
gc_stop(struct gc *gc)
{
    timer_stop(TAKE(gc->timer));
    timer_stop(TAKE(gc->retry_timer));
    struct err e = ERR_INIT;
    err_set(&e, -ERR_CANCELED, "the agent goes down");
    struct alloc_runner *ar;
    while ((ar = gc_dequeue(gc))) {
        ar->collecting = false;
        gc_tell(ar, &e);
    }
}

/* --- looking --- */

struct look {
    struct gc *gc;
    double disk_pct, inode_pct;
};

static void
on_timer(void *arg)
{
    struct gc *gc = arg;
    gc->timer = NULL;
    gc_look(gc);
}

void
gc_make_room(struct gc *gc)
{
    struct alloc_runner *ar;
    int64_t n;
    while (!gc->g->stopping && (ar = gc_oldest(gc, &n)) && n > gc->g->cfg.agent->gc_max_allocs)
        gc_collect(gc, ar, gc->why_many, NULL, NULL);
}

void
gc_wake(struct gc *gc)
{
    int64_t n;
    if (!gc->timer && !gc->looking && !gc->g->stopping && gc_oldest(gc, &n))
        gc->timer =
            timer_start(gc->g->loop, gc->g->cfg.agent->gc_interval / NS_PER_MS, on_timer, gc);
}

static void
gc_measure(void *arg)
{
    struct look *l = arg;
    struct statvfs v;
    if (statvfs(l->gc->g->cfg.alloc_dir, &v) < 0)
        return;
    uint64_t used = v.f_blocks - v.f_bfree; /* as df: of what the unprivileged may use */
    if (used + v.f_bavail > 0)
        l->disk_pct = (double)used * 100 / (double)(used + v.f_bavail);
    if (v.f_files > 0)
        l->inode_pct = (double)(v.f_files - v.f_ffree) * 100 / (double)v.f_files;
}

/* One goes, then it is measured again (gc_ended). */
static void
gc_measured(void *arg)
{
    struct look *l = arg;
    struct gc *gc = l->gc;
    int64_t n;
    gc->looking = false;
    gc_make_room(gc);
    struct alloc_runner *ar = gc_oldest(gc, &n);
    bool full = l->disk_pct > gc->g->cfg.agent->gc_disk_usage_threshold ||
                l->inode_pct > gc->g->cfg.agent->gc_inode_usage_threshold;
    gc->full = !gc->g->stopping && full && ar;
    if (gc->full) {
        log_info("client",
                 "the disk of the allocations is filling: collecting the oldest that ended",
                 "alloc_id", ar->a.id, "disk_percent", LOG_U64((uint64_t)l->disk_pct),
                 "inode_percent", LOG_U64((uint64_t)l->inode_pct), NULL);
        gc_collect(gc, ar, gc->why_full, NULL, NULL);
    } else {
        gc_wake(gc);
    }
    talloc_free(l);
    hold_release(&gc->g->hold);
}

static void
gc_look(struct gc *gc)
{
    if (gc->looking || gc->g->stopping)
        return;
    struct look *l = mem_new(NULL, struct look);
    l->gc = gc;
    gc->looking = true;
    hold_take(&gc->g->hold);
    loop_work(gc->g->loop, gc_measure, gc_measured, l);
}
