/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/sweep.h"

#include <string.h>

#include "client/warden_link.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/uuid.h"

struct sweep {
    struct allocs *allocs;
    size_t left; /* requests without an answer */
    bool dirs;   /* tasks are done */
};

static void ask_tasks(struct sweep *s, const char *alloc_id, const char *task);
static void ask_dirs(struct sweep *s, int64_t offset);

static void
sweep_asked(struct sweep *s)
{
    s->left++;
    hold_take(&s->allocs->g->hold);
}

/* After every answer; the last one of the tasks goes on with the directories. */
static void
sweep_answered(struct sweep *s, bool broken)
{
    struct allocs *allocs = s->allocs;
    if (--s->left == 0) {
        if (!broken && !s->dirs && allocs->g->link->up && !allocs->g->stopping) {
            s->dirs = true;
            ask_dirs(s, 0);
        } else {
            allocs->sweeping = false;
            talloc_free(s);
        }
    }
    hold_release(&allocs->g->hold);
}

static void
on_done(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    sweep_answered(arg, e != NULL);
}

static void
on_tasks(void *arg, const struct err *e, struct warden_reply *r)
{
    struct sweep *s = arg;
    size_t n = e || s->allocs->g->stopping ? 0 : r->msg->records.n;
    for (size_t i = 0; i < n; i++) {
        const struct task_record *t = r->msg->records.v[i];
        if (alloc_runner_find(s->allocs, t->alloc_id))
            continue;
        log_warn("client", "a task of an allocation that is not known here is ended", "alloc_id",
                 t->alloc_id, "task", t->task_name, NULL);
        sweep_asked(s);
        warden_destroy(s->allocs->g->warden, t->alloc_id, t->task_name, on_done, s);
    }
    if (n > 0 && r->msg->next != 0)
        ask_tasks(s, r->msg->records.v[n - 1]->alloc_id, r->msg->records.v[n - 1]->task_name);
    sweep_answered(s, e != NULL);
}

static void
ask_tasks(struct sweep *s, const char *alloc_id, const char *task)
{
    sweep_asked(s);
    warden_list(s->allocs->g->warden, alloc_id, task, on_tasks, s);
}

static void
on_dirs(void *arg, const struct err *e, struct warden_reply *r)
{
    struct sweep *s = arg;
    for (size_t i = 0; !e && !s->allocs->g->stopping && i < r->msg->files.n; i++) {
        const char *name = r->msg->files.v[i]->name;
        if (!uuid_valid(name) || alloc_runner_find(s->allocs, name))
            continue;
        log_info("client", "the directory of an allocation that is not known here is removed",
                 "alloc_id", name, NULL);
        sweep_asked(s);
        warden_alloc_remove(s->allocs->g->warden, name, on_done, s);
    }
    if (!e && !s->allocs->g->stopping && r->msg->next != 0)
        ask_dirs(s, r->msg->next);
    sweep_answered(s, e != NULL);
}

static void
ask_dirs(struct sweep *s, int64_t offset)
{
    sweep_asked(s);
    warden_readdir(s->allocs->g->warden, NULL, NULL, offset, on_dirs, s);
}

void
sweep_start(struct allocs *allocs)
{
    if (allocs->sweeping || allocs->g->stopping)
        return;
    allocs->sweeping = true;
    struct sweep *s = mem_new(NULL, struct sweep);
    s->allocs = allocs;
    ask_tasks(s, NULL, NULL);
}
