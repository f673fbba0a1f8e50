/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's API at a socket of the task's, secrets/api.sock, for its user alone. The warden makes
 * the socket before each start, and again when a task is adopted: clients connect again. A task
 * starts without where it cannot be made.
 */
#include "client/task/handle.h"
#include "client/task/launch.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"

enum { API_AGAIN_MS = 30000 };

/* A request to the warden. */
struct api_make {
    struct api_hook *h; /* NULL: it has gone */
    struct alloc_core *ar;
};

struct api_hook { /* a talloc context */
    struct task_runner *tr;
    struct api_make *make; /* under way */
    struct timer *timer;   /* until it is tried again */
    void *door;            /* NULL: nobody listens */
    bool ready;            /* the start at hand has it, or goes without */
};

static void api_make(struct api_hook *h);

static void
api_on_timer(void *arg)
{
    struct api_hook *h = arg;
    h->timer = NULL;
    if (!h->tr->ar->stopped)
        api_make(h);
}

static void
api_on_made(void *arg, const struct err *e, struct warden_reply *r)
{
    struct api_make *m = arg;
    struct api_hook *h = m->h;
    struct alloc_core *ar = m->ar;
    talloc_free(m);
    if (h != NULL && !ar->stopped) {
        const struct client_config *cfg = &ar->g->cfg;
        struct task_runner *tr = h->tr;
        h->make = NULL;
        if (e == NULL && r->file >= 0) {
            h->door = cfg->door_open(cfg->door_arg, TAKE_FD(r->file), ar->id, tr->sm.t->name);
        } else {
            log_warn("client", "a task has no socket of the API", "alloc_id", ar->id, "task",
                     tr->sm.t->name, "error", e != NULL ? e->text : "there is none", NULL);
            h->timer = timer_start(ar->g->loop, API_AGAIN_MS, api_on_timer, h);
        }
        if (tr->launching && !h->ready) {
            h->ready = true;
            tr->up->go_on(tr);
        }
    }
    hold_release(&ar->hold);
}

/* The memory of a sandbox is not reached from outside: there a link leads to the task's root. */
static void
api_make(struct api_hook *h)
{
    struct task_runner *tr = h->tr;
    const struct driver_can *can = tr->driver->can;
    const char *task = tr->sm.t->name;
    bool link = can->launch && can->isolation && launch_secrets_mb(tr) == 0;
    struct api_make *m = mem_new(NULL, struct api_make);
    *m = (struct api_make){h, tr->ar};
    struct warden_put put = {
        .alloc_id = tr->ar->id,
        .task = task,
        .path = mem_printf(m, "%s/%s/api.sock", task, link ? "private" : "secrets")};
    launch_owner(m, tr, true, &put);
    h->make = m;
    hold_take(&tr->ar->hold);
    warden_socket(tr->ar->g->warden, &put, api_on_made, m);
}

static struct api_hook *
api_hook_of(struct task_runner *tr)
{
    if (tr->hook.api == NULL) {
        tr->hook.api = mem_new(tr->ar, struct api_hook);
        tr->hook.api->tr = tr;
    }
    return tr->hook.api;
}

/* Says whether the task has directories, and somebody to make a socket in them. */
static bool
api_can(const struct task_runner *tr)
{
    const struct ground *g = tr->ar->g;
    return g->warden != NULL && g->cfg.door_open != NULL && tr->driver != NULL &&
           (tr->driver->can->launch || tr->driver->can->isolation);
}

static bool
hook_api_prestart(struct task_runner *tr)
{
    if (!api_can(tr))
        return true;
    struct api_hook *h = api_hook_of(tr);
    if (!h->ready && h->make == NULL)
        api_make(h);
    return h->ready;
}

static void
hook_api_poststart(struct task_runner *tr)
{
    if (tr->sm.t->phase != TASK_RUNNING || !api_can(tr))
        return;
    struct api_hook *h = api_hook_of(tr);
    h->ready = true;
    if (h->door == NULL && h->make == NULL && h->timer == NULL)
        api_make(h);
}

static void
hook_api_stop(struct task_runner *tr)
{
    struct api_hook *h = tr->hook.api;
    if (h == NULL)
        return;
    if (h->make != NULL)
        h->make->h = NULL;
    timer_stop(TAKE(h->timer));
    if (h->door != NULL)
        tr->ar->g->cfg.door_close(h->door);
    tr->hook.api = NULL;
    talloc_free(h);
}

const struct task_hook task_hook_api = {
    .prestart = hook_api_prestart, .poststart = hook_api_poststart, .stop = hook_api_stop};
