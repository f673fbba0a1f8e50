/* SPDX-License-Identifier: Apache-2.0
 *
 * What an allocation has besides its tasks: a row per thing, made in the order of the rows before
 * the first task starts. All of it can be asked for again, which is how it comes back after a
 * restart of agent or warden: made already is fine. What a hook has to keep is in the allocation's
 * record (alloc_runner_persist).
 */
#ifndef PADDOCK_CLIENT_ALLOC_HOOKS_H
#define PADDOCK_CLIENT_ALLOC_HOOKS_H

#include "client/alloc/alloc_int.h"

struct alloc_hook {
    const char *name;
    bool (*wanted)(const struct alloc_runner *ar); /* NULL: always */
    void (*prestart)(struct alloc_runner *ar);     /* hooks_done() follows */
    void (*exited)(struct alloc_runner *ar);       /* all tasks have ended; comes more than once; or NULL */
    void (*stop)(struct alloc_runner *ar);         /* no timer is left; or NULL */
};

#define DECLARE(name) extern const struct alloc_hook hook_##name;
ALLOC_HOOKS(DECLARE)
#undef DECLARE

/* Tasks wait for them: makes what is wanted; task_runner_dirs() follows. */
void hooks_prestart(struct alloc_runner *ar);
/* What `h` was asked for is there (`e` NULL) or not. */
void hooks_done(struct alloc_runner *ar, const struct alloc_hook *h, const struct err *e);
/* A launch waits, and they were not asked for. */
void hooks_resume(struct alloc_runner *ar);
void hooks_exited(struct alloc_runner *ar);
void hooks_stop(struct alloc_runner *ar);

#endif
