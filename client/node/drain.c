/* SPDX-License-Identifier: Apache-2.0 */
#include "client/node/drain.h"

#include "api/terms.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

enum {
    ASK_MS = 30 * 1000,  /* servers that cannot be reached so long are not waited for */
    OVER_MS = 10 * 1000, /* beyond deadline and kill timeout: reports and their way */
    WATCH_S = 60
};

struct node_drain {
    struct ground *g; /* NULL: it is over */
    struct node_drain **slot;
    struct drain_spec spec;
    client_done *done;
    void *arg;
    bool asked; /* a server agreed */
    uint64_t index;
    uint64_t call;
    int64_t backoff_ms;
    struct timer *retry;
    struct timer *limit;
};

static void drain_send(struct node_drain *d);

static void
drain_end(struct node_drain *d, const struct err *e)
{
    struct ground *g = d->g;

    timer_stop(TAKE(d->retry));
    timer_stop(TAKE(d->limit));
    if (d->call != 0)
        rpc_cancel(g->rpc, d->call);
    *d->slot = NULL;
    d->done(d->arg, e);
    d->g = NULL;
    if (d->call == 0) /* else its completion frees it */
        talloc_free(d);
    hold_release(&g->hold);
}

static void
drain_fail(struct node_drain *d, int code, const char *why)
{
    struct err e = ERR_INIT;

    err_set(&e, code, "%s", why);
    drain_end(d, &e);
}

static void
on_limit(void *arg)
{
    struct node_drain *d = arg;

    d->limit = NULL;
    drain_fail(d, -ERR_TIMEOUT,
               d->asked ? "the drain takes longer than its deadline"
                        : "no server could be asked to drain this node");
}

static void
limit_in(struct node_drain *d, int64_t ms)
{
    timer_stop(d->limit);
    d->limit = timer_start(d->g->loop, ms, on_limit, d);
}

static void
on_retry(void *arg)
{
    struct node_drain *d = arg;

    d->retry = NULL;
    drain_send(d);
}

static void
drain_agreed(struct node_drain *d)
{
    int64_t ns = d->spec.deadline > 0 ? d->spec.deadline : 0;

    d->asked = true;
    log_info("client", "node is draining", "deadline",
             d->spec.deadline > 0   ? LOG_DUR(ns)
             : d->spec.deadline < 0 ? "now"
                                    : "none",
             NULL);
    timer_stop(TAKE(d->limit));
    if (d->spec.deadline == 0)
        return;
    int64_t ms = d->g->cfg.agent->max_kill_timeout / NS_PER_MS + OVER_MS;
    limit_in(d, ns / NS_PER_MS + ms);
}

static void
drain_seen(struct node_drain *d, const struct node_response *r)
{
    const struct node *n = r->node;

    if (n != NULL && n->drain_strategy != NULL) {
        uint64_t index = r->meta != NULL ? r->meta->index : 0;
        d->index = index > d->index ? index : d->index;
        drain_send(d);
        return;
    }
    if (n == NULL || n->last_drain == NULL || !str_eq(n->last_drain->status, DRAIN_COMPLETE))
        log_warn("client", "the drain was ended by someone else", NULL);
    else
        log_info("client", "node drain complete", NULL);
    drain_end(d, NULL);
}

static void
on_answer(void *arg, const struct err *e, const void *resp)
{
    struct node_drain *d = arg;

    d->call = 0;
    if (d->g == NULL) {
        talloc_free(d);
        return;
    }
    if (e != NULL && !d->asked && (e->code == -ERR_INVALID || e->code == -ERR_FORBIDDEN)) {
        drain_end(d, e);
    } else if (e != NULL) {
        int64_t ms = backoff_next(&d->backoff_ms);
        log_warn("client", "draining: a server did not answer", "error", e->text, "retry_in",
                 LOG_DUR(ms * NS_PER_MS), NULL);
        d->retry = timer_start(d->g->loop, ms, on_retry, d);
    } else if (!d->asked) {
        d->backoff_ms = 0;
        drain_agreed(d);
        drain_send(d);
    } else {
        d->backoff_ms = 0;
        drain_seen(d, resp);
    }
}

static void
drain_send(struct node_drain *d)
{
    struct ground *g = d->g;

    struct rpc_envelope env = ground_proof(g);
    if (d->asked) {
        env.min_index = d->index;
        env.wait = WATCH_S * NS_PER_S;
        struct id_request req = {.id = g->node_id};
        struct rpc_request r = {RPC_NODE_GET_NODE, &req, &env, 2 * WATCH_S * 1000};
        d->call = rpc_send(g->rpc, &r, on_answer, d);
        return;
    }
    struct node_drain_request req = {.node_id = g->node_id, .drain_spec = &d->spec};
    struct rpc_request r = {RPC_NODE_UPDATE_DRAIN, &req, &env, 0};
    auto_mem void *tmp = mem_ctx("drain");
    str_map_set(tmp, &req.meta, "message", "the agent is shutting down");
    d->call = rpc_send(g->rpc, &r, on_answer, d);
}

void
drain_start(struct node_drain **slot, struct ground *g, const struct drain_spec *spec,
            client_done *done, void *arg)
{
    struct node_drain *d = mem_new(NULL, struct node_drain);

    ASSERT(!*slot);
    *d = (struct node_drain){.g = g, .slot = slot, .spec = *spec, .done = done, .arg = arg};
    *slot = d;
    hold_take(&g->hold);
    limit_in(d, ASK_MS);
    drain_send(d);
}

void
drain_stop(struct node_drain *d)
{
    if (d)
        drain_fail(d, -ERR_CANCELED, "the client is stopped");
}
