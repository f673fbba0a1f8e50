/* SPDX-License-Identifier: Apache-2.0
 *
 * What an allocation has besides its tasks: a name in the list per thing, and its file hook_NAME.c;
 * made in the order of the list before the first task starts (hooks_run.h). All of it can be asked
 * for again, which is how it comes back after a restart of agent or warden: made already is fine.
 * What a hook has to keep for that is in the allocation's record (alloc_runner_persist).
 *
 * There is no undo: when a row fails, what others have made goes as it would after a run: the
 * network by `exited`, which comes however far the tasks got, directories when the allocation is
 * removed, timers by `stop`. Directories and network at once were tried, and no faster.
 */
#ifndef PADDOCK_CLIENT_ALLOC_HOOKS_H
#define PADDOCK_CLIENT_ALLOC_HOOKS_H

#include <stdbool.h>

struct alloc_runner;
struct err;
struct str_map;

/* In the order in which they are made. What a hook keeps is ar->hook.NAME, a struct NAME_hook of
 * its own. */
#define ALLOC_HOOKS(X) X(dirs) X(disk) X(volumes) X(network) X(services) X(health) X(deadline)

struct alloc_hook {
    const char *name;
    bool (*wanted)(const struct alloc_runner *ar); /* NULL: always */
    void (*prestart)(struct alloc_runner *ar);     /* hooks_done() follows; or NULL */
    /* Adds variables of what was made, or restored, to a task's environment; or NULL. Owned by ctx.
     */
    void (*env)(const struct alloc_runner *ar, const void *ctx, struct str_map *ret);
    void (*changed)(struct alloc_runner *ar);      /* a task, or what the servers want; or NULL */
    void (*exited)(
        struct alloc_runner *ar); /* all tasks have ended; comes more than once; or NULL */
    /* All tasks of another one have ended; comes more than once; or NULL. */
    void (*other_ended)(struct alloc_runner *ar, struct alloc_runner *other);
    void (*stop)(struct alloc_runner *ar);         /* no timer is left; or NULL */
};

#define DECLARE(name) extern const struct alloc_hook hook_##name;
ALLOC_HOOKS(DECLARE)
#undef DECLARE

#endif
