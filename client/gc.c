/* SPDX-License-Identifier: Apache-2.0
 *
 * Collection of terminal allocations: beyond gc_max_allocs, oldest first; or when asked.
 */
#include "client/internal.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

static bool
collectable(const struct alloc_runner *ar)
{
    return alloc_runner_terminal(ar) && !ar->collecting && !ar->doomed && !ar->stopped;
}

void
gc_check(struct client *c)
{
    struct alloc_runner *ar, *tmp, *oldest = NULL;
    int64_t terminal = 0;
    HASH_ITER(hh, c->allocs, ar, tmp)
    {
        if (!collectable(ar))
            continue;
        terminal++;
        /* What the server does not know yet must not be forgotten. */
        if (!ar->dirty && !ar->in_flight && (!oldest || ar->ended_ns < oldest->ended_ns))
            oldest = ar;
    }
    /* Each allocation that ends looks again, so one at a time keeps the bound. */
    if (terminal > c->cfg.gc_max_allocs && oldest)
        alloc_runner_collect(oldest, NULL, NULL);
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
        alloc_runner_collect(ar, gc_one, g);
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
        alloc_runner_collect(ar, done, arg);
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
