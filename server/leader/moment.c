/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempts of the scheduler (see moment.h).
 */
#include "server/leader/moment.h"

#include "common/mem.h"
#include "server/host.h"
#include "server/leader/plan.h"

void
moment_take(struct moment *m, const struct server *s, const struct live *live, void *ctx,
            const struct evaluation *e)
{
    ASSERT(m->txn == NULL);
    m->txn = server_read_begin(s, ctx);
    m->nodes = node_table_copy(ctx, live->nodes);
    m->quota = quota_room_of(ctx, m->txn, live, server_cfg(s)->region, e->namespace);
    m->index = state_applied(m->txn);
}

void
moment_end(struct moment *m)
{
    state_read_end(TAKE(m->txn));
}

/* Each placement's share of the time the attempt took. */
static void
note_time(struct sched_out *out, int64_t ns)
{
    size_t n = out->failed.n + (out->plan ? out->plan->node_allocation.n : 0);

    for (size_t i = 0; i < out->failed.n; i++)
        out->failed.v[i].v->allocation_time = ns / (int64_t)n;
    for (size_t i = 0; out->plan != NULL && i < out->plan->node_allocation.n; i++) {
        struct allocation *a = out->plan->node_allocation.v[i];
        if (a->create_index == 0 && a->metrics != NULL)
            a->metrics->allocation_time = ns / (int64_t)n;
    }
}

struct sched_out *
moment_attempt(struct moment *m, const struct env *env, void *ctx, const struct evaluation *e,
               int64_t now, int64_t *ret_ns)
{
    struct sched_view_state v;
    struct rng rng = rng_seed(env_random(env), env_random(env));
    struct sched_in in = {.view = &v.view, .eval = e, .now = now, .rng = &rng};

    ASSERT(m->txn != NULL);
    sched_view_init(&v, ctx, m->txn, m->nodes, m->quota);
    ASSERT(v.view.index == m->index);
    int64_t start = env_mono_ns(env);
    struct sched_out *out = sched_attempt(ctx, &in);
    if (out->plan != NULL)
        plan_sort(out->plan);
    *ret_ns = env_mono_ns(env) - start;
    note_time(out, *ret_ns);
    moment_end(m);
    return out;
}
