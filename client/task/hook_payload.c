/* SPDX-License-Identifier: Apache-2.0
 *
 * The payload of a dispatch, in a file of the task's. Once: what the task makes
 * of it stays.
 */
#include "api/children.h"
#include "client/task/handle.h"
#include "common/mem.h"
#include "common/str.h"

struct payload_hook {
    struct task_runner *tr;
    bool asked;
};

static void
on_put(void *arg, const struct err *e)
{
    struct payload_hook *h = arg;
    struct task_runner *tr = h->tr;

    h->asked = false;
    if (!e)
        tr->sm.t->payload = true; /* durable with the next change; until then it is put again */
    if (!tr->ar->stopped && tr->launching) {
        auto_mem void *tmp = mem_ctx("payload");
        if (e)
            tr->up->failed(tr, TASK_EVENT_SETUP_FAILURE,
                           mem_printf(tmp, "dispatch_payload: %s", e->text), true);
        else
            tr->up->go_on(tr);
    }
    hold_release(&tr->ar->hold);
}

static bool
hook_payload_prestart(struct task_runner *tr)
{
    const struct dispatch_payload_config *c = tr->task->dispatch_payload;
    const struct job *j = tr->ar->rec->alloc->job;
    auto_mem void *tmp = mem_ctx("payload");
    struct warden_put put = {.alloc_id = tr->ar->id, .task = tr->sm.t->name, .mode = 0777};

    if (c == NULL || str_empty(c->file) || j->payload.n == 0 || tr->sm.t->payload)
        return true;
    if (tr->hook.payload == NULL) {
        tr->hook.payload = mem_new(tr->ar->rec, struct payload_hook);
        tr->hook.payload->tr = tr;
    }
    if (tr->hook.payload->asked)
        return false;
    put.path = children_payload_path(tmp, put.task, c->file);
    if (put.path == NULL || j->payload.n > WARDEN_PUT_MAX) {
        tr->up->failed(tr, TASK_EVENT_SETUP_FAILURE,
                       "dispatch_payload: destination escapes allocation directory", false);
        return false;
    }
    put.data = j->payload.v;
    put.n = j->payload.n;
    tr->hook.payload->asked = true;
    hold_take(&tr->ar->hold);
    tr->handle->put(tr, &put, on_put, tr->hook.payload);
    return false;
}

const struct task_hook task_hook_payload = {.prestart = hook_payload_prestart};
