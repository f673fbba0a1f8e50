/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of endpoints and what they share (see endpoint_int.h).
 */
#include "server/rpc/endpoint_int.h"

#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "common/num.h"

static const struct rpc_service services[] = {
    {RPC_STATUS_LEADER, status_leader},
    {RPC_STATUS_MEMBERS, status_members},
    {RPC_JOB_REGISTER, job_register},
    {RPC_JOB_DEREGISTER, job_deregister},
    {RPC_JOB_PLAN, job_plan},
    {RPC_JOB_VALIDATE, job_validate_rpc},
    {RPC_JOB_GET_JOB, job_get},
    {RPC_JOB_LIST, job_list},
    {RPC_JOB_ALLOCATIONS, job_allocations},
    {RPC_JOB_EVALUATIONS, job_evaluations},
    {RPC_JOB_SUMMARY, job_summary_rpc},
    {RPC_JOB_EVALUATE, job_evaluate},
    {RPC_JOB_VERSIONS, job_versions},
    {RPC_NODE_REGISTER, node_register},
    {RPC_NODE_UPDATE_STATUS, node_update_status},
    {RPC_NODE_UPDATE_ELIGIBILITY, node_update_eligibility},
    {RPC_NODE_UPDATE_DRAIN, node_update_drain},
    {RPC_NODE_PURGE, node_purge},
    {RPC_NODE_EVALUATE, node_evaluate},
    {RPC_NODE_GET_NODE, node_get},
    {RPC_NODE_LIST, node_list},
    {RPC_NODE_GET_ALLOCS, node_allocs},
    {RPC_NODE_GET_CLIENT_ALLOCS, node_client_allocs},
    {RPC_NODE_UPDATE_ALLOC, node_update_alloc},
    {RPC_ALLOC_LIST, alloc_list},
    {RPC_ALLOC_GET_ALLOC, alloc_get},
    {RPC_ALLOC_GET_ALLOCS, alloc_get_many},
    {RPC_ALLOC_STOP, alloc_stop},
    {RPC_EVAL_LIST, eval_list},
    {RPC_EVAL_GET_EVAL, eval_get},
    {RPC_EVAL_ALLOCATIONS, eval_allocations},
    {RPC_SYSTEM_GC, system_gc},
    {RPC_OPERATOR_SCHEDULER_GET, operator_scheduler_get},
    {RPC_OPERATOR_SCHEDULER_SET, operator_scheduler_set},
};

const struct rpc_service *
endpoint_services(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(services);
    return services;
}

/* --- reads --- */

static const struct query_options no_query;

static void read_start(struct read *r);

/* Under the context of this try, if there is one: a worker must not touch that of the call. */
static void
read_fail(struct read *r, int code, const char *why)
{
    r->err = mem_new(r->ctx != NULL ? r->ctx : (void *)r, struct err);
    err_set(r->err, code, "%s", why);
}

static void
read_answer(struct read *r)
{
    struct rpc_call *call = r->call;
    void *ctx = TAKE(r->ctx);

    gate_unref(r->gate);
    rpc_call_on_cancel(call, NULL, NULL);
    /* `r` is memory of the call and goes with the answer */
    if (r->cancelled)
        rpc_failf(call, -ERR_CANCELED, "canceled");
    else if (r->err != NULL)
        rpc_fail(call, r->err);
    else
        rpc_reply(call, r->resp);
    talloc_free(ctx);
}

static void
read_woken(void *arg, enum wake_reason why)
{
    struct read *r = arg;

    r->watch = NULL;
    if (why == WAKE_SHUTDOWN) {
        read_fail(r, -ERR_UNAVAILABLE, "the server is stopping");
        read_answer(r);
        return;
    }
    r->last = why == WAKE_TIMEOUT;
    read_start(r);
}

static void
read_cancelled(void *arg)
{
    struct read *r = arg;

    r->cancelled = true;
    if (r->watch == NULL)
        return; /* a worker has it */
    server_watch_cancel(TAKE(r->watch));
    read_answer(r);
}

void
read_saw(struct read *r, const char *id, uint64_t modify_index)
{
    uint64_t h = r->print != 0 ? r->print : 0xcbf29ce484222325; /* FNV-1a */

    for (const char *c = id; *c != '\0'; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001b3;
    r->print = ((h ^ modify_index) * 0x100000001b3) | 1;
}

void
read_list(struct read *r, struct state_txn *t)
{
    r->index = state_index(t, r->tables);
    if (!str_empty(r->meta->next_token))
        r->print = 0; /* there is more than was seen */
    else if (r->print == 0)
        r->print = 1;
}

static bool
read_has_news(const struct read *r)
{
    bool same = r->waits_for != 0 && r->print == r->waits_for;

    return r->news || (r->index > r->q->min_query_index && !same);
}

static bool
read_parks(struct read *r)
{
    if (r->err != NULL || r->cancelled || r->last || r->q->min_query_index == 0 ||
        read_has_news(r) || gate_is_closed(r->gate))
        return false;
    int64_t left = r->deadline_ms - loop_now_ms(server_loop(r->s));
    if (left <= 0)
        return false;
    mem_free(r->ctx);
    r->resp = NULL;
    r->waits_for = r->print;
    r->watch = server_watch(r->s, r->tables, r->key, r->seen, left, read_woken, r);
    if (r->watch == NULL) {
        read_fail(r, -ERR_BUSY, "too many blocking queries: retry later");
        return false;
    }
    return true;
}

static void
read_done(void *arg)
{
    struct read *r = arg;

    if (!read_parks(r))
        read_answer(r);
}

static void
read_work(void *arg)
{
    struct read *r = arg;
    struct err e = ERR_INIT;

    if (!gate_enter(r->gate)) {
        read_fail(r, -ERR_UNAVAILABLE, "the server is stopping");
        return;
    }
    struct state_txn *t = state_read_begin(server_state(r->s), r->ctx);
    r->seen = state_applied(t);
    r->meta = mem_new(r->ctx, struct query_meta);
    r->meta->known_leader = true;
    if (r->fn(r, t, r->ctx, &e) < 0)
        r->err = mem_dup(r->ctx, &e, sizeof(e));
    r->index = r->index > 0 ? r->index : 1; /* who waits for what comes after it must not get it at once */
    r->meta->index = r->index;
    state_read_end(t);
    gate_leave(r->gate);
}

static void
read_start(struct read *r)
{
    r->ctx = mem_ctx("read");
    r->index = r->print = 0;
    loop_work(server_loop(r->s), read_work, read_done, r);
}

static int64_t
query_time_ms(const struct query_options *q)
{
    int64_t ms = q->max_query_time / NS_PER_MS;

    if (ms <= 0)
        ms = QUERY_TIME_DEFAULT_MS;
    if (ms > QUERY_TIME_MAX_MS)
        ms = QUERY_TIME_MAX_MS;
    return ms + (int64_t)(rand_u64() % (uint64_t)(ms / 16 + 1));
}

void
endpoint_read(struct server *s, struct rpc_call *call, const void *req,
              const struct query_options *q, unsigned tables, uint64_t key, read_fn *fn)
{
    struct read *r = mem_new(rpc_call_ctx(call), struct read);

    r->s = s;
    r->call = call;
    r->req = req;
    r->q = q ? q : &no_query;
    r->tables = tables;
    r->key = key;
    r->fn = fn;
    if (!r->q->allow_stale && !endpoint_leads(s, call))
        return;
    r->gate = gate_ref(server_gate(s));
    r->deadline_ms = loop_now_ms(server_loop(s)) + query_time_ms(r->q);
    rpc_call_on_cancel(call, read_cancelled, r);
    read_start(r);
}

const char *
query_ns(const struct query_options *q)
{
    return q != NULL ? str_or(q->namespace, NS_DEFAULT) : NS_DEFAULT;
}

bool
query_ns_matches(const struct query_options *q, const char *ns)
{
    return str_eq(query_ns(q), NS_ALL) || str_eq(query_ns(q), str_or(ns, NS_DEFAULT));
}

/* --- writes --- */

struct write {
    struct server *s;
    struct rpc_call *call;
    written_fn *fn;
    void *arg;
};

static void
write_done(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct write w = *(struct write *)arg;

    if (e != NULL)
        rpc_fail(w.call, e);
    else
        w.fn(w.s, w.call, w.arg, index, res);
}

void
endpoint_write(struct server *s, struct rpc_call *call, struct intent *in, written_fn *fn, void *arg)
{
    struct write *w = mem_new(rpc_call_ctx(call), struct write);

    *w = (struct write){s, call, fn, arg};
    server_propose(s, in, write_done, w);
}

/* --- checks and makers --- */

bool
endpoint_leads(struct server *s, struct rpc_call *call)
{
    if (server_is_leader(s))
        return true;
    rpc_failf(call, -ERR_NO_LEADER, "No cluster leader");
    return false;
}

int
endpoint_check_prefix(const char *prefix, struct err *e)
{
    size_t n = 0;

    for (const char *s = str_or(prefix, ""); *s != '\0'; s++) {
        if (*s == '-')
            continue;
        if (strchr("0123456789abcdefABCDEF", *s) == NULL)
            return err_set(e, -ERR_INVALID, "prefix '%.64s' is not part of an id", prefix);
        n++;
    }
    if (n % 2 != 0)
        return err_set(e, -ERR_INVALID, "Input (without hyphens) must be even length");
    return 0;
}

bool
secret_equal(const char *a, const char *b)
{
    size_t an = strlen(str_or(a, "")), bn = strlen(str_or(b, ""));
    unsigned diff = an != bn || an == 0;

    /* every byte is looked at, wherever the first difference is */
    for (size_t i = 0; i < an && i < bn; i++)
        diff |= (unsigned char)a[i] ^ (unsigned char)b[i];
    return diff == 0;
}

struct alloc_list_stub *
endpoint_alloc_stub(const void *ctx, const struct allocation *a)
{
    struct alloc_list_stub *s = mem_new(ctx, struct alloc_list_stub);

    s->id = a->id;
    s->eval_id = a->eval_id;
    s->name = a->name;
    s->namespace = a->namespace;
    s->node_id = a->node_id;
    s->node_name = a->node_name;
    s->job_id = a->job_id;
    s->job_type = a->job ? a->job->type : NULL;
    s->job_version = a->job ? a->job->version : 0;
    s->task_group = a->task_group;
    s->desired_status = a->desired_status;
    s->desired_description = a->desired_description;
    s->client_status = a->client_status;
    s->client_description = a->client_description;
    s->desired_transition =
        a->desired_transition ? a->desired_transition : mem_new(ctx, struct desired_transition);
    s->task_states = a->task_states;
    s->deployment_status = a->deployment_status;
    s->followup_eval_id = a->followup_eval_id;
    s->next_allocation = a->next_allocation;
    s->reschedule_tracker = a->reschedule_tracker;
    s->preempted_allocations = a->preempted_allocations;
    s->preempted_by_allocation = a->preempted_by_allocation;
    s->create_index = a->create_index;
    s->modify_index = a->modify_index;
    s->create_time = a->create_time;
    s->modify_time = a->modify_time;
    return s;
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
