/* SPDX-License-Identifier: Apache-2.0
 *
 * Under which names the allocation is to be found, from the state of its tasks alone, so that an
 * agent that was killed tells the same again:
 *
 *   the group's    from before its tasks start, until one of them is killed for good, begins anew,
 *                  or all have ended but for poststop tasks
 *   a task's       while it runs, and is not to end: they go before the kill signal does
 *
 * When the allocation has ended nothing is told any more: the servers end its names with it.
 */
#include "client/alloc/check_watch.h"
#include "client/alloc/hooks_run.h"
#include "client/alloc/services.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

struct services_hook {
    bool prepared;                   /* the network of the group is there */
    uint64_t hash;                   /* of the set that was told last; 0: none */
    struct service_set_request *set; /* ... and the set */
};

static struct services_hook *
hook_services_of(struct alloc_runner *ar)
{
    if (!ar->hook.services)
        ar->hook.services = mem_new(ar, struct services_hook);
    return ar->hook.services;
}

static bool
hook_services_any(const struct service_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (services_is_ours(l->v[i]))
            return true;
    return false;
}

/* Says whether there is a set to tell, that an update has emptied as well. */
static bool
hook_services_wanted(const struct alloc_runner *ar)
{
    bool any = ar->hook.services || hook_services_any(&ar->a.tg->services);
    for (size_t i = 0; i < ar->n && !any; i++)
        any = hook_services_any(&ar->tasks[i].task->services);
    return any;
}

/* --- when --- */

static bool
hook_services_group_on(const struct alloc_runner *ar)
{
    bool begun = ar->hook.services->prepared, over = true;
    for (size_t i = 0; i < ar->n; i++) {
        const struct task_sm *m = &ar->tasks[i].sm;
        if (m->cfg.role == ROLE_POSTSTOP)
            continue;
        if (m->t->kill || m->t->rewind)
            return false;
        begun = begun || task_sm_started_once(m->t);
        over = over && !task_sm_live(m->t);
    }
    return begun && !over && !ar->a.rec->stopping;
}

static bool
hook_services_task_on(const struct task_runner *tr)
{
    return tr->sm.t->phase == TASK_RUNNING && !task_sm_unwanted(tr->sm.t);
}

/* --- the set --- */

static const struct allocated_task_resources *
hook_services_resources(const struct allocation *a, const char *task)
{
    const struct allocated_resources *r = a->allocated_resources;
    for (size_t i = 0; r && i < r->tasks.n; i++)
        if (str_eq(r->tasks.v[i].k, task))
            return r->tasks.v[i].v;
    return NULL;
}

/* The services to be told, and the checks to be looked at; a context of its own. */
struct services_found {
    struct services_made made;
    struct check_plans plans;
};

/* Adds the services of a task, or with NULL of the group. */
static int
hook_services_add(struct alloc_runner *ar, struct task_runner *tr, struct services_found *f,
                  struct err *e)
{
    auto_mem void *tmp = mem_ctx("services");
    const struct allocation *a = ar->a.rec->alloc;
    struct str_map hooks = {0};
    const struct opt_bool on = ar->a.g->cfg.agent->nomad_service_discovery;
    if (on.set && !on.v && hook_services_any(tr ? &tr->task->services : &ar->a.tg->services))
        return err_set(e, -ERR_INVALID, "service registration provider \"nomad\" not enabled");
    hooks_env(&ar->a, tmp, &hooks);
    struct env_input ei = {.node = ar->a.g->node,
                           .region = ar->a.g->cfg.region,
                           .alloc = a,
                           .group = ar->a.tg,
                           .task = tr ? tr->task : NULL,
                           .resources = tr ? hook_services_resources(a, tr->task->name) : NULL,
                           .hooks = &hooks};
    struct services_in in = {.alloc = a,
                             .group = ar->a.tg,
                             .task = ei.task,
                             .node = ei.node,
                             .env = env_build(tmp, &ei)};
    size_t was = f->made.n;
    int r = services_make(f, &in, &f->made, e);
    if (r < 0)
        f->made.n = was;
    for (size_t i = was; i < f->made.n; i++)
        checks_add(f, &in, &f->made.v[i], &f->plans);
    return r;
}

static struct services_found *
hook_services_find(const void *ctx, struct alloc_runner *ar)
{
    struct services_found *f = mem_new(ctx, struct services_found);
    struct err e = ERR_INIT;
    if (hook_services_group_on(ar) && hook_services_add(ar, NULL, f, &e) < 0)
        hooks_blame(&ar->tasks[0], "services", &e);
    for (size_t i = 0; i < ar->n; i++) {
        struct err why = ERR_INIT;
        struct task_runner *tr = &ar->tasks[i];
        if (hook_services_task_on(tr) && hook_services_any(&tr->task->services) &&
            hook_services_add(ar, tr, f, &why) < 0)
            hooks_blame(tr, "services", &why);
    }
    return f;
}

/* Tells the set, if it is another one. */
static void
hook_services_tell(struct alloc_runner *ar, const struct services_found *f)
{
    struct services_hook *h = ar->hook.services;
    auto_mem void *tmp = mem_ctx("set");
    struct service_set_request set = {.alloc_id = ar->a.id};
    for (size_t i = 0; i < f->made.n; i++) {
        struct service_registration *r = f->made.v[i].registration;
        r->health = check_watch_health(ar, r->id);
        list_add(tmp, set.services, r);
    }
    uint64_t hash = codec_hash(&type_service_set_request, &set, 0);
    if (hash == h->hash || (h->hash == 0 && set.services.n == 0))
        return;
    mem_free(h->set);
    ar->names.set = h->set = codec_clone(h, &type_service_set_request, &set);
    h->hash = hash;
    ar->in->events->named(ar->in->arg, ar);
}

static void
hook_services_look(struct alloc_runner *ar)
{
    struct services_hook *h = hook_services_of(ar);
    if (ar->a.stopped)
        return;
    if (alloc_runner_terminal(ar)) {
        h->prepared = false;
        check_watch_set(ar, &(struct check_plans){0});
        return;
    }
    auto_mem void *tmp = mem_ctx("services");
    struct services_found *f = hook_services_find(tmp, ar);
    check_watch_set(ar, &f->plans);
    hook_services_tell(ar, f);
}

static void
hook_services_prestart(struct alloc_runner *ar)
{
    auto_mem void *tmp = mem_ctx("services");
    struct services_found *f = mem_new(tmp, struct services_found);
    struct err e = ERR_INIT;
    if (hook_services_add(ar, NULL, f, &e) < 0) {
        hooks_done(ar, &hook_services, &e);
        return;
    }
    hook_services_of(ar)->prepared = true;
    hook_services_look(ar);
    hooks_done(ar, &hook_services, NULL);
}

const struct alloc_hook hook_services = {.name = "services",
                                         .wanted = hook_services_wanted,
                                         .prestart = hook_services_prestart,
                                         .changed = hook_services_look,
                                         .stop = check_watch_stop};
