/* SPDX-License-Identifier: Apache-2.0
 *
 * Containers that nobody asks for any more: they are removed, however long their engine is away.
 */
#include <errno.h>
#include <fcntl.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "hand/hand.h"

struct leftover {
    struct hand *h;
    const char *target;
    const char *alloc; /* it goes after this one; NULL: now */
};

bool
leftover_owned(const struct hand *h, const char *alloc)
{
    auto_fd int fd = fd_open_beneath(h->allocs, alloc, O_PATH, 0, false);
    return fd != -ENOENT;
}

static void remove_it(void *arg);

static void
on_removed(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct leftover *o = arg;
    if (!e && status < 500) {
        talloc_free(o);
        return;
    }
    log_warn("hand", "a container is not removed: trying again", "target", o->target, "error",
             e ? e->text : engine_said(doc), NULL);
    (void)timer_start(o->h->loop, HAND_ORPHAN_MS, remove_it, o);
}

static void
remove_it(void *arg)
{
    struct leftover *o = arg;
    if (o->alloc && leftover_owned(o->h, o->alloc))
        (void)timer_start(o->h->loop, HAND_ORPHAN_MS, remove_it, o);
    else
        (void)engine_ask(o->h, &(struct engine_ask){.method = "DELETE",
                                                    .target = o->target,
                                                    .timeout_ms = HAND_ASK_MS,
                                                    .done = on_removed,
                                                    .arg = o});
}

void
leftover_watch(struct hand *h, const char *id, const char *alloc)
{
    struct leftover *o = mem_new(NULL, struct leftover);
    *o = (struct leftover){h, mem_printf(o, "/containers/%s?force=1&v=1", id),
                           alloc ? mem_strdup(o, alloc) : NULL};
    remove_it(o);
}

void
leftover_drop(struct hand *h, const char *id)
{
    leftover_watch(h, id, NULL);
}
