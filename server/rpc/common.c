/* SPDX-License-Identifier: Apache-2.0
 *
 * What several endpoints need (see method.h).
 */
#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "server/call/method.h"

void
endpoint_alloc_row(struct read *r, struct state_txn *t, void *whole, void *row)
{
    const struct allocation *a = whole;
    struct alloc_list_stub *s = row;

    (void)r;
    (void)t;
    s->job_type = a->job ? a->job->type : NULL;
    s->job_version = a->job ? a->job->version : 0;
    s->allocated_resources = NULL;
    if (s->desired_transition == NULL)
        s->desired_transition = mem_new(whole, struct desired_transition);
}

/* --- what older clients of the API read --- */

static struct resources *
totals_new(const void *ctx)
{
    struct resources *r = mem_new(ctx, struct resources);
    r->cpu.set = r->memory_mb.set = true;
    return r;
}

void
endpoint_alloc_totals(void *ctx, struct allocation *a)
{
    const struct allocated_resources *from = a->allocated_resources;
    if (from == NULL)
        return;
    struct resources *all = a->resources = totals_new(ctx);
    struct resources *shared = a->shared_resources = totals_new(ctx);
    a->task_resources = (struct resources_map){0};
    for (size_t i = 0; i < from->tasks.n; i++) {
        const struct allocated_task_resources *t = from->tasks.v[i].v;
        struct resources *r = totals_new(ctx);
        r->cpu.v = t->cpu ? t->cpu->cpu_shares : 0;
        r->memory_mb.v = t->memory ? t->memory->memory_mb : 0;
        r->memory_max_mb = t->memory ? t->memory->memory_max_mb : 0;
        r->networks = t->networks;
        all->cpu.v += r->cpu.v;
        all->memory_mb.v += r->memory_mb.v;
        all->memory_max_mb += r->memory_max_mb;
        map_put(ctx, a->task_resources, from->tasks.v[i].k)->v = r;
    }
    if (from->shared != NULL) {
        shared->disk_mb = all->disk_mb = from->shared->disk_mb;
        shared->networks = all->networks = from->shared->networks;
    }
}
