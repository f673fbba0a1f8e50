/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs while this server leads (see leader.h): the loop over its controllers.
 */
#include "api/terms.h"
#include "common/mem.h"
#include "server/leader/leader_int.h"

#define ROW(n) &n##_row,
static const struct controller *const rows[] = {CONTROLLERS(ROW)};

#define EACH_ROW(c, member)                                                            \
    for (size_t _i = 0; _i < ARRAY_LEN(rows); _i++)                                    \
        for (const struct controller *c = rows[_i]; c != NULL && c->member != NULL; c = NULL)

/* --- on the loop thread --- */

static void
leader_begin(void *arg)
{
    struct leader *l = arg;

    if (l->stopping)
        return;
    l->on = true;
    EACH_ROW(c, begin)
        c->begin(l);
}

static void
leader_end(void *arg)
{
    struct leader *l = arg;

    l->on = false;
    EACH_ROW(c, end)
        c->end(l);
}

/* --- what the apply thread tells, in log order --- */

static void
leader_batch(void *arg)
{
    struct leader *l = arg;

    if (!l->leading)
        return;
    EACH_ROW(c, on_batch)
        c->on_batch(l);
}

static void
on_open(void *arg, struct state_txn *t)
{
    struct leader *l = arg;

    l->applied = state_applied(t);
    EACH_ROW(c, on_open)
        c->on_open(l, t);
}

static void
on_leader(void *arg, struct state_txn *t)
{
    struct leader *l = arg;

    l->gen++;
    l->leading = true;
    env_post(l->env, leader_begin, l);
    EACH_ROW(c, on_leader)
        c->on_leader(l, t);
    leader_batch(l);
}

static void
on_applied(void *arg, uint64_t index, const struct intent *in, const struct fsm_result *res)
{
    struct leader *l = arg;

    l->applied = index;
    lend_applied(l);
    if (!res->changed)
        return;
    EACH_ROW(c, on_entry)
        c->on_entry(l, index, in, res);
    if (!l->leading)
        return;
    EACH_ROW(c, on_applied)
        c->on_applied(l, index, in, res);
}

static void
on_lose(void *arg)
{
    struct leader *l = arg;

    l->leading = false;
    l->gen++;
    EACH_ROW(c, on_lose)
        c->on_lose(l);
    env_post(l->env, leader_end, l);
}

const struct log_listener leader_listener = {
    .on_open = on_open,
    .on_leader = on_leader,
    .on_lose = on_lose,
    .on_applied = on_applied,
    .on_batch = leader_batch,
};

/* --- life --- */

struct scheduler_workers_response *
leader_workers(struct leader *l, const void *ctx)
{
    static const char *const kinds[] = {JOB_BATCH, JOB_SYSTEM, JOB_SYSBATCH, JOB_SERVICE, "_core"};
    const struct server_config *cfg = server_cfg(l->s);
    struct scheduler_workers_response *r = mem_new(ctx, struct scheduler_workers_response);
    unsigned busy = workers_busy(l->workers);

    r->server_id = mem_strdup(r, cfg->node_id);
    for (unsigned i = 0; i < cfg->workers; i++) {
        struct scheduler_worker *w = mem_new(r, struct scheduler_worker);
        *w = (struct scheduler_worker){.id = mem_printf(w, "%s/%u", cfg->node_id, i),
                                       .started = l->started_ns,
                                       .status = "Started",
                                       .workload_status =
                                           i < busy ? "Scheduling" : "WaitingToDequeue"};
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
            list_add(w, w->enabled_schedulers, kinds[k]);
        list_add(r, r->schedulers, w);
    }
    return r;
}

unsigned
leader_workers_default(void)
{
    return workers_default();
}

struct leader *
leader_new(struct server *s)
{
    struct leader *l = mem_new(NULL, struct leader);

    l->s = s;
    l->clock = *server_env(s);
    test_hook_env(&l->clock, true);
    l->env = &l->clock;
    l->gate = server_gate(s);
    l->on_alarm = leader_batch;
    EACH_ROW(c, init)
        c->init(l);
    l->workers = workers_start(l, server_cfg(s)->workers);
    l->started_ns = env_wall_ns(l->env);
    return l;
}

void
leader_retire(struct leader *l)
{
    atomic_store(&l->retired, true);
}

void
leader_stop(struct leader *l)
{
    l->stopping = true;
    leader_end(l);
    workers_stop(l->workers);
}

void
leader_free(struct leader *l)
{
    if (l == NULL)
        return;
    workers_free(l->workers);
    lend_free(l);
    runs_drop(l);
    mem_free(l);
}
