/* SPDX-License-Identifier: Apache-2.0
 *
 * What nobody here owns: tasks whose allocation is not in the local state (it was lost, or a crash
 * came between the first request and the write) and directories of such allocations. Looked for
 * each time the warden is there anew: first the tasks, in pages, then, when these have ended, the
 * directories.
 *
 * An allocation is in the client's table before anything of it is asked of the warden, and requests
 * are carried out in order, so what is not in the table when an answer comes may be removed.
 */
#include <string.h>

#include "client/client_int.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

struct sweep {
    struct client *c;
    size_t left; /* requests without an answer */
    bool dirs;   /* tasks are done */
};

static void ask_tasks(struct sweep *s, const char *alloc_id, const char *task);
static void ask_dirs(struct sweep *s, int64_t offset);

static void
asked(struct sweep *s)
{
    s->left++;
    client_hold(s->c);
}

/* After every answer; the last one of the tasks goes on with the directories. */
static void
answered(struct sweep *s, bool broken)
{
    struct client *c = s->c;
    if (--s->left == 0) {
        if (!broken && !s->dirs && c->link_up && !c->stopping) {
            s->dirs = true;
            ask_dirs(s, 0);
        } else {
            c->sweeping = false;
            talloc_free(s);
        }
    }
    client_release(c);
}

static void
on_done(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    answered(arg, e != NULL);
}

static void
on_tasks(void *arg, const struct err *e, struct warden_reply *r)
{
    struct sweep *s = arg;
    size_t n = e || s->c->stopping ? 0 : r->msg->records.n;
    for (size_t i = 0; i < n; i++) {
        const struct task_record *t = r->msg->records.v[i];
        if (alloc_runner_find(s->c, t->alloc_id))
            continue;
        log_warn("client", "a task of an allocation that is not known here is ended", "alloc_id",
                 t->alloc_id, "task", t->task_name, NULL);
        asked(s);
        warden_destroy(s->c->warden, t->alloc_id, t->task_name, on_done, s);
    }
    if (n > 0 && r->msg->next != 0)
        ask_tasks(s, r->msg->records.v[n - 1]->alloc_id, r->msg->records.v[n - 1]->task_name);
    answered(s, e != NULL);
}

static void
ask_tasks(struct sweep *s, const char *alloc_id, const char *task)
{
    asked(s);
    warden_list(s->c->warden, alloc_id, task, on_tasks, s);
}

static void
on_dirs(void *arg, const struct err *e, struct warden_reply *r)
{
    struct sweep *s = arg;
    for (size_t i = 0; !e && !s->c->stopping && i < r->msg->files.n; i++) {
        const char *name = r->msg->files.v[i]->name;
        if (!uuid_valid(name) || alloc_runner_find(s->c, name))
            continue;
        log_info("client", "the directory of an allocation that is not known here is removed",
                 "alloc_id", name, NULL);
        asked(s);
        warden_alloc_remove(s->c->warden, name, on_done, s);
    }
    if (!e && !s->c->stopping && r->msg->next != 0)
        ask_dirs(s, r->msg->next);
    answered(s, e != NULL);
}

static void
ask_dirs(struct sweep *s, int64_t offset)
{
    asked(s);
    warden_readdir(s->c->warden, NULL, NULL, offset, on_dirs, s);
}

void
sweep_start(struct client *c)
{
    if (c->sweeping || c->stopping)
        return;
    c->sweeping = true;
    struct sweep *s = mem_new(NULL, struct sweep);
    s->c = c;
    ask_tasks(s, NULL, NULL);
}
