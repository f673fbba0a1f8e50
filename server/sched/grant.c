/* SPDX-License-Identifier: Apache-2.0
 *
 * What a chosen node gives to an allocation: shares, memory, disk, cores, ports (see select_int.h).
 */
#include "api/terms.h"
#include "api/volume/volume.h"
#include "common/mem.h"
#include "server/sched/device.h"
#include "server/sched/ports.h"
#include "server/sched/select_int.h"

static bool
stopped_on(const struct select *s, uint32_t row, const char *id)
{
    for (int32_t i = s->first[row]; i >= 0; i = s->changes[i].next)
        if (s->changes[i].stop && str_eq(s->changes[i].alloc->id, id))
            return true;
    return false;
}

/* Calls `fn` for every allocation that holds something on the row in the plan's world. */
static void
each_held(struct select *s, uint32_t row, void (*fn)(void *arg, const struct allocation *a),
          void *arg)
{
    auto_mem void *tmp = mem_ctx("held");
    const char *id = s->t->facts[row]->node->id;
    size_t n;
    const struct allocation *const *v = s->view->ops->allocs_by_node(s->view, tmp, id, &n);

    for (size_t i = 0; i < n; i++)
        if (!alloc_client_terminal(v[i]) && !stopped_on(s, row, v[i]->id))
            fn(arg, v[i]);
    for (int32_t i = s->first[row]; i >= 0; i = s->changes[i].next)
        if (!s->changes[i].stop)
            fn(arg, s->changes[i].alloc);
}

struct writers {
    struct select *s;
    const struct group *g;
    bool found;
};

static void
held_volumes(void *arg, const struct allocation *a)
{
    struct writers *w = arg;
    const struct job *j = a->job;

    if (w->found)
        return;
    if (j == NULL || j->task_groups.n == 0) /* one of this plan, or of a version that is gone */
        j = str_eq(a->job_id, w->s->job->id) && str_eq(a->namespace, w->s->job->namespace)
                ? w->s->job
                : w->s->view->ops->job(w->s->view, a->namespace, a->job_id);
    const struct task_group *tg = j != NULL ? job_group(j, a->task_group) : NULL;
    w->found = tg != NULL && volume_clash(w->g->tg, w->g->name, tg, a->name);
}

bool
grant_volumes(struct select *s, const struct group *g, uint32_t row)
{
    struct writers w = {s, g, false};

    if (volume_written(g->tg))
        each_held(s, row, held_volumes, &w);
    return !w.found;
}

static bool
asks_ports(const struct task_group *tg)
{
    for (size_t i = 0; i < tg->tasks.n; i++)
        if (tg->tasks.v[i]->resources != NULL && tg->tasks.v[i]->resources->networks.n > 0)
            return true;
    return tg->networks.n > 0;
}

struct held_arg {
    struct ports *ports;
    const void *ctx;
    uint64_t cores[16]; /* bit per core id below 1024 */
};

static void
held_ports(void *arg, const struct allocation *a)
{
    struct held_arg *h = arg;

    ports_add(h->ports, h->ctx, a);
}

static void
held_cores(void *arg, const struct allocation *a)
{
    struct held_arg *h = arg;
    const struct allocated_resources *r = a->allocated_resources;

    for (size_t i = 0; r != NULL && i < r->tasks.n; i++) {
        const struct allocated_task_resources *t = r->tasks.v[i].v;
        for (size_t k = 0; t && t->cpu && k < t->cpu->reserved_cores.n; k++) {
            uint64_t id = (uint64_t)t->cpu->reserved_cores.v[k];
            if (id < 1024)
                h->cores[id / 64] |= UINT64_C(1) << (id % 64);
        }
    }
}

static bool
grant_cores(struct select *s, const struct group *g, uint32_t row, const void *ctx,
            struct allocated_resources *out)
{
    const struct node_facts *f = s->t->facts[row];
    const struct i64_list *ids = &f->node->node_resources->cpu->reservable_cpu_cores;
    struct held_arg h = {0};
    size_t at = 0;

    each_held(s, row, held_cores, &h);
    for (size_t t = 0; t < g->tg->tasks.n; t++) {
        const struct task *task = g->tg->tasks.v[t];
        struct allocated_cpu_resources *cpu = map_get(out->tasks, task->name)->v->cpu;
        int64_t want = task->resources ? task->resources->cores.v : 0;
        for (; want > 0 && at < ids->n; at++) {
            uint64_t id = (uint64_t)ids->v[at];
            if (id >= 1024 || (h.cores[id / 64] >> (id % 64)) & 1)
                continue;
            list_add(ctx, cpu->reserved_cores, (int64_t)id);
            cpu->cpu_shares += f->core_mhz;
            want--;
        }
        if (want > 0)
            return false;
    }
    return true;
}

struct held_devices {
    const void *ctx;
    struct str_list used;
};

static void
held_devices(void *arg, const struct allocation *a)
{
    struct held_devices *h = arg;

    (void)device_take(h->ctx, &h->used, a);
}

static bool
grant_devices(struct select *s, const struct group *g, uint32_t row, const void *ctx,
              struct allocated_resources *out)
{
    struct held_devices h = {ctx, {NULL, 0}};

    each_held(s, row, held_devices, &h);
    return device_assign(ctx, s->rx, s->t->facts[row]->node, g->tg, &h.used, out);
}

static struct allocated_resources *
resources_new(struct select *s, const struct group *g, const void *ctx)
{
    struct allocated_resources *r = mem_new(ctx, struct allocated_resources);

    r->shared = mem_new(ctx, struct allocated_shared_resources);
    r->shared->disk_mb = g->ask.u.disk;
    for (size_t i = 0; i < g->tg->tasks.n; i++) {
        const struct task *task = g->tg->tasks.v[i];
        const struct resources *tr = task->resources;
        struct allocated_task_resources *a = mem_new(ctx, struct allocated_task_resources);
        a->cpu = mem_new(ctx, struct allocated_cpu_resources);
        a->memory = mem_new(ctx, struct allocated_memory_resources);
        if (tr != NULL) {
            a->cpu->cpu_shares = tr->cores.v > 0 ? 0 : tr->cpu.v;
            a->memory->memory_mb = tr->memory_mb.v + tr->secrets_mb;
            if (s->oversubscribes && tr->memory_max_mb != 0)
                a->memory->memory_max_mb =
                    tr->memory_max_mb < 0 ? -1 : tr->memory_max_mb + tr->secrets_mb;
        }
        map_put(ctx, r->tasks, task->name)->v = a;
        if (task->lifecycle != NULL)
            map_put(ctx, r->task_lifecycles, task->name)->v =
                codec_clone(ctx, &type_task_lifecycle_config, task->lifecycle);
    }
    return r;
}

const char *
grant(struct select *s, const struct group *g, uint32_t row, const void *ctx,
      struct allocated_resources **ret)
{
    const struct node *n = s->t->facts[row]->node;
    struct allocated_resources *r = resources_new(s, g, ctx);
    const char *why = NULL;

    if (g->ask.cores > 0 && !grant_cores(s, g, row, ctx, r))
        why = "cores";
    if (why == NULL && device_wanted(g->tg) && !grant_devices(s, g, row, ctx, r))
        why = "devices";
    if (why == NULL && asks_ports(g->tg)) {
        struct held_arg h = {.ports = ports_new(s, n), .ctx = s};
        each_held(s, row, held_ports, &h);
        why = ports_assign(h.ports, ctx, g->tg, s->rng, r);
        mem_free(h.ports);
    }
    if (why == NULL)
        *ret = r;
    return why;
}
