/* SPDX-License-Identifier: Apache-2.0
 *
 * The directories of an allocation and its tasks, made by the warden; they go with the allocation.
 */
#include "client/alloc/hooks_run.h"
#include "client/task/launch.h"
#include "common/mem.h"

static void
on_made(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    struct alloc_runner *ar = arg;
    hooks_done(ar, &hook_dirs, e);
    hold_release(&ar->a.hold);
}

static void
hook_dirs_prestart(struct alloc_runner *ar)
{
    auto_mem void *tmp = mem_ctx("dirs");
    const struct warden_task **v = mem_array(tmp, const struct warden_task *, ar->n);
    for (size_t i = 0; i < ar->n; i++) {
        struct warden_task *t = mem_new(tmp, struct warden_task);
        t->name = ar->tasks[i].sm.t->name;
        t->user = launch_user(tmp, &ar->tasks[i]);
        t->driver = ar->tasks[i].task->driver;
        t->secrets_mb = launch_secrets_mb(&ar->tasks[i]);
        v[i] = t;
    }
    hold_take(&ar->a.hold);
    const struct ephemeral_disk *disk = ar->a.tg->ephemeral_disk; /* the log files are within it */
    struct warden_alloc w = {
        .id = ar->a.id, .tasks = v, .n = ar->n, .disk_mb = disk ? disk->size_mb.v : 0};
    warden_alloc_make(ar->a.g->warden, &w, on_made, ar);
}

const struct alloc_hook hook_dirs = {.name = "directories", .prestart = hook_dirs_prestart};
