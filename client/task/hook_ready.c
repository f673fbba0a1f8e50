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
    if (!launch_needs_alloc(tr) || ar->ready == READY_YES)
        return true;
    if (ar->ready == READY_FAILED) {
        tr->up->failed(tr, TASK_EVENT_SETUP_FAILURE, ar->ready_error, ar->ready_again);
        ar->ready = READY_NONE;
    } else if (ar->ready == READY_NONE && ar->g->link->up) {
        tr->events->need_ready(ar);
    }
    return false;
}

const struct task_hook task_hook_ready = {.prestart = hook_ready_prestart};
