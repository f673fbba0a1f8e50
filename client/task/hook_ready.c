/* SPDX-License-Identifier: Apache-2.0
 *
 * A task starts when what it needs of the hooks of its allocation is there.
 */
#include "client/task/handle.h"
#include "client/task/launch.h"
#include "client/warden_link.h"

static bool
hook_ready_prestart(struct task_runner *tr)
{
    struct alloc_core *ar = tr->ar;
    if (!launch_needs_alloc(tr) || ar->dirs == DIRS_READY)
        return true;
    if (ar->dirs == DIRS_FAILED) {
        tr->up->failed(tr, TASK_EVENT_SETUP_FAILURE, ar->dirs_error, ar->dirs_again);
        ar->dirs = DIRS_NONE;
    } else if (ar->dirs == DIRS_NONE && ar->g->link->up) {
        tr->events->need_dirs(ar);
    }
    return false;
}

const struct task_hook task_hook_ready = {.prestart = hook_ready_prestart};
