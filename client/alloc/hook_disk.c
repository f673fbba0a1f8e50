/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk of the allocation before (ephemeral_disk { sticky }): when all its tasks have ended, the
 * files of each become this one's, before a task starts. Nothing to take over is an empty disk, and
 * so is a failure, which an event of the tasks tells. The hook settles once, in the allocation's
 * record: files that come later would fall upon a task that runs.
 *
 * An allocation that ends in its wait gets the disk all the same: the next one finds it there.
 */
#include "client/alloc/alloc_runner.h"
#include "client/alloc/hooks_run.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

struct disk_hook {
    bool waits; /* for the end of the one before */
    bool moves;
    struct alloc_runner *from; /* while it moves: stays as it is */
};

static bool
hook_disk_wanted(const struct alloc_runner *ar)
{
    const struct ephemeral_disk *d = ar->a.tg->ephemeral_disk;
    return d && d->sticky && !ar->a.rec->disk_settled &&
           !str_empty(ar->a.rec->alloc->previous_allocation);
}

static void
hook_disk_settled(struct alloc_runner *ar, const struct err *e)
{
    if (e) {
        log_warn("client", "the disk of the allocation before is lost", "alloc_id", ar->a.id,
                 "previous", ar->a.rec->alloc->previous_allocation, "error", e->text, NULL);
        for (size_t i = 0; i < ar->n; i++)
            hooks_blame(&ar->tasks[i], "the disk of the allocation before is lost", e);
    }
    ar->a.rec->disk_settled = true;
    alloc_runner_persist(ar);
    hooks_other_ended(ar); /* perhaps the next one waits for it */
    hooks_done(ar, &hook_disk, NULL);
}

static void
on_moved(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    struct alloc_runner *ar = arg;
    struct alloc_runner *from = TAKE(ar->hook.disk->from);
    ar->hook.disk->moves = false;
    from->lent--;
    if (e && (e->code == -ERR_BUSY || e->code == -ERR_UNAVAILABLE || e->code == -ERR_CLOSED))
        hooks_done(ar, &hook_disk, e); /* it is asked for again */
    else
        hook_disk_settled(ar, e);
    if (from->removed && from->lent == 0)
        from->in->events->ended(from->in->arg, from);
    hold_release(&from->a.hold);
    hold_release(&ar->a.hold);
}

static void
hook_disk_move(struct alloc_runner *ar, struct alloc_runner *from)
{
    auto_mem void *tmp = mem_ctx("disk");
    const struct warden_task **v = mem_array(tmp, const struct warden_task *, ar->n);
    for (size_t i = 0; i < ar->n; i++) {
        struct warden_task *t = mem_new(tmp, struct warden_task);
        t->name = ar->tasks[i].sm.t->name;
        v[i] = t;
    }
    const struct warden_alloc w = {.id = ar->a.id, .tasks = v, .n = ar->n};
    ar->hook.disk->moves = true;
    ar->hook.disk->from = from;
    from->lent++;
    hold_take(&from->a.hold);
    hold_take(&ar->a.hold);
    warden_disk_move(ar->a.g->warden, &w, from->a.id, on_moved, ar);
}

/* Says whether nothing will come to its disk any more. */
static bool
hook_disk_final(const struct alloc_runner *ar)
{
    return alloc_runner_terminal(ar) &&
           (!ar->hook.disk || (!ar->hook.disk->waits && !ar->hook.disk->moves));
}

static void
hook_disk_prestart(struct alloc_runner *ar)
{
    const char *id = ar->a.rec->alloc->previous_allocation;
    struct alloc_runner *from = alloc_runner_find(ar->in, id);
    struct err e = ERR_INIT;
    if (!ar->hook.disk)
        ar->hook.disk = mem_new(ar, struct disk_hook);
    if (!from) {
        hook_disk_settled(ar, NULL); /* it was on another node, or is gone */
    } else if (from->collecting || from->doomed) {
        err_set(&e, -ERR_NOT_FOUND, "allocation \"%s\" is being removed", id);
        hook_disk_settled(ar, &e);
    } else if (hook_disk_final(from)) {
        hook_disk_move(ar, from);
    } else {
        ar->hook.disk->waits = true;
        log_info("client", "allocation waits for the disk of the one before", "alloc_id", ar->a.id,
                 "previous", id, NULL);
    }
}

static void
hook_disk_other_ended(struct alloc_runner *ar, struct alloc_runner *other)
{
    struct disk_hook *h = ar->hook.disk;
    if (!h || !h->waits || ar->a.stopped || ar->collecting ||
        !str_eq(ar->a.rec->alloc->previous_allocation, other->a.id) || !hook_disk_final(other))
        return;
    h->waits = false;
    hook_disk_move(ar, other);
}

const struct alloc_hook hook_disk = {.name = "disk",
                                     .wanted = hook_disk_wanted,
                                     .prestart = hook_disk_prestart,
                                     .other_ended = hook_disk_other_ended};
