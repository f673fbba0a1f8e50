/* SPDX-License-Identifier: Apache-2.0
 *
 * The one writer of a volume (access mode single-node-single-writer). Two allocations of this node
 * that write to a volume, either of them alone, never have tasks at the same time: the second waits
 * before its first task, whatever the servers believed when they placed both.
 */
#include "api/terms.h"
#include "api/volume/volume.h"
#include "client/alloc/alloc_runner.h"
#include "client/alloc/hooks_run.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

struct volumes_hook {
    bool waits;
    bool has; /* it may write */
};

static bool
hook_volumes_wanted(const struct alloc_runner *ar)
{
    return volume_written(ar->a.tg);
}

/* Says whether a task of it may have the volume mounted. */
static bool
hook_volumes_holds(const struct alloc_runner *other)
{
    if (alloc_runner_terminal(other))
        return false;
    bool has = other->hook.volumes && other->hook.volumes->has;
    for (size_t i = 0; i < other->n && !has; i++)
        has = other->tasks[i].sm.t->state->started_at > 0;
    return has || (!hook_volumes_wanted(other) && other->a.ready != READY_NONE);
}

static const struct alloc_runner *
hook_volumes_writer(const struct alloc_runner *ar)
{
    const struct alloc_runner *found = NULL;
    ALLOCS_EACH (ar->in, other)
        if (!found && other != ar && hook_volumes_holds(other) &&
            volume_clash(ar->a.tg, ar->a.rec->alloc->name, other->a.tg, other->a.rec->alloc->name))
            found = other;
    return found;
}

static void
hook_volumes_prestart(struct alloc_runner *ar)
{
    if (!ar->hook.volumes)
        ar->hook.volumes = mem_new(ar, struct volumes_hook);
    const struct alloc_runner *writer = hook_volumes_writer(ar);
    ar->hook.volumes->waits = writer != NULL;
    ar->hook.volumes->has = writer == NULL;
    if (writer)
        log_info("client", "allocation waits for the writer of its volume", "alloc_id", ar->a.id,
                 "writer", writer->a.id, NULL);
    else
        hooks_done(ar, &hook_volumes, NULL);
}

static void
hook_volumes_other_ended(struct alloc_runner *ar, struct alloc_runner *other)
{
    (void)other;
    if (!ar->hook.volumes || !ar->hook.volumes->waits || ar->a.stopped ||
        alloc_runner_terminal(ar) || hook_volumes_writer(ar))
        return;
    ar->hook.volumes->waits = false;
    ar->hook.volumes->has = true;
    hooks_done(ar, &hook_volumes, NULL);
}

const struct alloc_hook hook_volumes = {.name = "volumes",
                                        .wanted = hook_volumes_wanted,
                                        .prestart = hook_volumes_prestart,
                                        .other_ended = hook_volumes_other_ended};
