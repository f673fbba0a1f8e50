/* SPDX-License-Identifier: Apache-2.0
 *
 * Collection of terminal allocations, oldest first: while there are more than gc_max_allocs, while
 * the disk is too full, or when asked. Looked at when an allocation comes, and gc_interval after one
 * has ended; while none has ended there is no timer.
 */
#include <sys/statvfs.h>

#include "client/client_int.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

static bool
collectable(const struct alloc_runner *ar)
{
    return alloc_runner_terminal(ar) && !ar->collecting && !ar->doomed && !ar->stopped;
}

/* What may go first: what the server does not know yet must not be forgotten. *ret_tracked: how many
 * there are of all kinds. */
static struct alloc_runner *
oldest(const struct client *c, int64_t *ret_tracked)
{
    struct alloc_runner *ar, *tmp, *best = NULL;
    int64_t n = 0;
    HASH_ITER(hh, c->allocs, ar, tmp)
    {
        n += !ar->collecting && !ar->doomed;
        if (collectable(ar) && !ar->dirty && !ar->in_flight &&
            (!best || ar->ended_ns < best->ended_ns))
            best = ar;
    }
    *ret_tracked = n;
    return best;
}

static void look(struct client *c);

/* ---- destroying, some at a time ---------------------------------------------------------------- */

void
gc_dequeue(struct alloc_runner *ar)
{
    struct client *c = ar->c;
    if (!ar->gc_queued)
        return;
    struct alloc_runner **at = &c->gc_first;
    while (*at != ar)
        at = &(*at)->gc_next;
    *at = ar->gc_next;
    if (c->gc_last == &ar->gc_next)
        c->gc_last = at;
    ar->gc_queued = false;
    c->gc_waiting--;
}

bool
gc_behind(struct client *c)
{
    c->gc_behind = c->gc_behind || c->gc_waiting > CLIENT_REMOVALS_MAX;
    return c->gc_behind;
}

static void
catch_up(struct client *c)
{
    if (!c->gc_behind || c->gc_waiting > CLIENT_REMOVALS_MAX / 2)
        return;
    c->gc_behind = false;
    if (!c->link_up) /* that asks as well */
        return;
    struct alloc_runner *ar, *tmp;
    HASH_ITER(hh, c->allocs, ar, tmp)
    {
        alloc_runner_link_up(ar);
    }
}

static void
pump(struct client *c)
{
    while (c->gc_running < c->cfg.gc_parallel_destroys && c->gc_first) {
        struct alloc_runner *ar = c->gc_first;
        gc_dequeue(ar);
        c->gc_running++;
        alloc_runner_destroy(ar);
    }
}

void
gc_collect(struct alloc_runner *ar, client_done *done, void *arg)
{
    struct client *c = ar->c;
    ASSERT(alloc_runner_terminal(ar));
    if (ar->collecting || ar->doomed)
        return;
    ar->collecting = true;
    ar->gc_done = done;
    ar->gc_arg = arg;
    ar->gc_next = NULL;
    ar->gc_queued = true;
    if (!c->gc_first)
        c->gc_last = &c->gc_first;
    *c->gc_last = ar;
    c->gc_last = &ar->gc_next;
    c->gc_waiting++;
    pump(c);
}

static void
tell(struct alloc_runner *ar, const struct err *e)
{
    client_done *done = ar->gc_done;
    ar->gc_done = NULL;
    if (done)
        done(ar->gc_arg, e);
}

void
gc_ended(struct alloc_runner *ar, const struct err *e)
{
    struct client *c = ar->c;
    c->gc_running--;
    tell(ar, e);
    pump(c);
    if (!c->stopping)
        catch_up(c);
    if (!e && c->gc_full)
        look(c);
    else
        gc_wake(c); /* after an error: not at once */
}

void
gc_stop(struct client *c)
{
    timer_stop(TAKE(c->gc_timer));
    timer_stop(TAKE(c->gc_retry_timer));
    struct err e = ERR_INIT;
    err_set(&e, -ERR_CANCELED, "the agent goes down");
    while (c->gc_first) {
        struct alloc_runner *ar = c->gc_first;
        gc_dequeue(ar);
        ar->collecting = false;
        tell(ar, &e);
    }
}

/* ---- looking ----------------------------------------------------------------------------------- */

struct look {
    struct client *c;
    double disk_pct, inode_pct;
};

static void
on_timer(void *arg)
{
    struct client *c = arg;
    c->gc_timer = NULL;
    look(c);
}

void
gc_make_room(struct client *c)
{
    struct alloc_runner *ar;
    int64_t n;
    while (!c->stopping && (ar = oldest(c, &n)) && n > c->cfg.gc_max_allocs)
        gc_collect(ar, NULL, NULL);
}

void
gc_wake(struct client *c)
{
    int64_t n;
    if (!c->gc_timer && !c->gc_looking && !c->stopping && oldest(c, &n))
        c->gc_timer = timer_start(c->loop, c->cfg.gc_interval_ns / NS_PER_MS, on_timer, c);
}

static void
measure(void *arg)
{
    struct look *l = arg;
    struct statvfs v;
    if (statvfs(l->c->cfg.alloc_dir, &v) < 0)
        return;
    uint64_t used = v.f_blocks - v.f_bfree; /* as df: of what the unprivileged may use */
    if (used + v.f_bavail > 0)
        l->disk_pct = (double)used * 100 / (double)(used + v.f_bavail);
    if (v.f_files > 0)
        l->inode_pct = (double)(v.f_files - v.f_ffree) * 100 / (double)v.f_files;
}

/* One goes, then it is measured again (gc_ended). */
static void
measured(void *arg)
{
    struct look *l = arg;
    struct client *c = l->c;
    int64_t n;
    c->gc_looking = false;
    gc_make_room(c);
    struct alloc_runner *ar = oldest(c, &n);
    bool full = l->disk_pct > c->cfg.gc_disk_usage_threshold ||
                l->inode_pct > c->cfg.gc_inode_usage_threshold;
    c->gc_full = !c->stopping && full && ar;
    if (c->gc_full) {
        log_info("client", "the disk of the allocations is filling: collecting the oldest that ended",
                 "alloc_id", ar->id, "disk_percent", LOG_U64((uint64_t)l->disk_pct), "inode_percent",
                 LOG_U64((uint64_t)l->inode_pct), NULL);
        gc_collect(ar, NULL, NULL);
    } else {
        gc_wake(c);
    }
    talloc_free(l);
    client_release(c);
}

static void
look(struct client *c)
{
    if (c->gc_looking || c->stopping)
        return;
    struct look *l = mem_new(NULL, struct look);
    l->c = c;
    c->gc_looking = true;
    client_hold(c);
    loop_work(c->loop, measure, measured, l);
}

static void
on_retry(void *arg)
{
    struct client *c = arg;
    struct alloc_runner *ar, *tmp;
    c->gc_retry_timer = NULL;
    HASH_ITER(hh, c->allocs, ar, tmp)
    {
        if (ar->removed && collectable(ar))
            gc_collect(ar, NULL, NULL);
    }
}

void
gc_retry(struct client *c)
{
    if (!c->gc_retry_timer && !c->stopping)
        c->gc_retry_timer = timer_start(c->loop, CLIENT_GC_RETRY_MS, on_retry, c);
}

bool
gc_is_gone(const struct client *c, const char *id, uint64_t index)
{
    struct gone *g = NULL;
    HASH_FIND_STR(c->gone, id, g);
    return g && index <= g->index;
}

void
gc_note_gone(struct client *c, const char *id, uint64_t index)
{
    struct gone *g = mem_new(NULL, struct gone);
    str_copy(g->id, sizeof(g->id), id);
    g->index = index;
    gc_forget(c, id);
    HASH_ADD_STR(c->gone, id, g);
}

void
gc_forget(struct client *c, const char *id)
{
    struct gone *g = NULL;
    HASH_FIND_STR(c->gone, id, g);
    if (!g)
        return;
    HASH_DEL(c->gone, g);
    talloc_free(g);
}

/* ---- when asked ------------------------------------------------------------------------------- */

struct gc_all {
    struct client *c;
    client_done *done;
    void *arg;
    size_t left;
    struct err first;
};

static void
gc_finish(struct gc_all *g)
{
    if (--g->left > 0)
        return;
    g->done(g->arg, g->first.code ? &g->first : NULL);
    client_release(g->c);
    talloc_free(g);
}

static void
gc_one(void *arg, const struct err *e)
{
    struct gc_all *g = arg;
    if (e)
        err_set(&g->first, e->code, "%s", e->text);
    gc_finish(g);
}

static void
gc_posted(void *arg)
{
    gc_finish(arg);
}

void
client_gc(struct client *c, client_done *done, void *arg)
{
    struct gc_all *g = mem_new(NULL, struct gc_all);
    *g = (struct gc_all){.c = c, .done = done, .arg = arg, .left = 1};
    client_hold(c);
    struct alloc_runner *ar, *tmp;
    HASH_ITER(hh, c->allocs, ar, tmp)
    {
        if (!collectable(ar))
            continue;
        g->left++;
        gc_collect(ar, gc_one, g);
    }
    loop_post(c->loop, gc_posted, g);
}

struct gc_fail {
    struct client *c;
    client_done *done;
    void *arg;
    struct err e;
};

static void
gc_failed(void *arg)
{
    struct gc_fail *f = arg;
    f->done(f->arg, &f->e);
    client_release(f->c);
    talloc_free(f);
}

void
client_alloc_gc(struct client *c, const char *alloc_id, client_done *done, void *arg)
{
    struct alloc_runner *ar = alloc_runner_find(c, alloc_id);
    if (ar && collectable(ar)) {
        gc_collect(ar, done, arg);
        return;
    }
    struct gc_fail *f = mem_new(NULL, struct gc_fail);
    *f = (struct gc_fail){.c = c, .done = done, .arg = arg};
    if (!ar)
        err_set(&f->e, -ERR_NOT_FOUND, "allocation \"%.40s\" is not on this node", alloc_id);
    else
        err_set(&f->e, -ERR_CONFLICT, "allocation \"%s\" is not terminal: stop it first", ar->id);
    client_hold(c);
    loop_post(c->loop, gc_failed, f);
}
