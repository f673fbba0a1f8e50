/* SPDX-License-Identifier: Apache-2.0
 *
 * Alloc.* and Eval.*.
 */
#include "api/terms.h"
#include "common/mem.h"
#include "common/num.h"
#include "server/rpc/endpoint_int.h"

enum { GET_ALLOCS_ROOM = 64 << 10 }; /* of a frame, for what is between allocations */

/* --- allocations --- */

static const struct row_types alloc_rows = {&type_allocation, &type_alloc_list_stub};

static int
alloc_list_run(struct read *r, struct state_txn *t, void *ctx, struct err *e)
{
    const struct list_request *req = r->req;
    struct alloc_list_response *resp = mem_new(ctx, struct alloc_list_response);
    bool by_id = !str_empty(r->q->prefix);
    struct rows l;

    if (endpoint_check_prefix(r->q->prefix, e) < 0 || rows_begin(&l, r, ctx, &alloc_rows, e) < 0)
        return e->code;
    struct state_iter *it =
        by_id ? state_allocs(t, ctx, r->q->prefix) : state_allocs_by_create(t, ctx);
    rows_seek(&l, it);
    for (struct allocation *a; (a = state_next_with_job(it, rows_ctx(&l))) != NULL;) {
        if (!rows_see(&l, (struct row_key){.id = a->id, .create_index = by_id ? 0 : a->create_index}))
            break;
        if (!query_ns_matches(r->q, a->namespace) || !rows_take(&l, a))
            continue;
        struct alloc_list_stub *stub = endpoint_alloc_stub(a, a);
        if (req->resources) /* the only list that has them */
            stub->allocated_resources = a->allocated_resources;
        if (!req->task_states)
            stub->task_states = (struct task_state_map){0};
        rows_add(&l, stub, a->modify_index);
    }
    resp->meta = r->meta;
    int rc = ROWS_END(&l, t, resp->allocations, e);
    r->resp = resp;
    return rc;
}

void
alloc_list(void *arg, struct rpc_call *call, const void *p)
{
    const struct list_request *req = p;

    endpoint_read(arg, call, req, req->query, STATE_BIT(STATE_ALLOCS), 0, alloc_list_run);
}

static int
alloc_get_run(struct read *r, struct state_txn *t, void *ctx, struct err *e)
{
    const struct id_request *req = r->req;
    struct alloc_response *resp = mem_new(ctx, struct alloc_response);

    (void)e;
    resp->alloc = state_alloc(t, ctx, str_or(req->id, ""));
    if (resp->alloc != NULL) {
        state_alloc_job(t, resp->alloc);
        endpoint_alloc_totals(ctx, resp->alloc);
    }
    r->index = resp->alloc ? resp->alloc->modify_index : state_index(t, r->tables);
    resp->meta = r->meta;
    r->resp = resp;
    return 0;
}

void
alloc_get(void *arg, struct rpc_call *call, const void *p)
{
    const struct id_request *req = p;

    endpoint_read(arg, call, req, req->query, STATE_BIT(STATE_ALLOCS),
                  state_key_alloc(str_or(req->id, "")), alloc_get_run);
}

/* --- what a client fetches --- */

static bool
same_job(const struct known_job *k, const struct job *j)
{
    return k->job_modify_index == j->job_modify_index && str_eq(k->id, j->id) &&
           str_eq(str_or(k->namespace, NS_DEFAULT), str_or(j->namespace, NS_DEFAULT));
}

static bool
has_job(const struct alloc_get_allocs_request *req, const struct alloc_get_allocs_response *resp,
        const struct job *j)
{
    for (size_t i = resp->jobs.n; i-- > 0;)
        if (resp->jobs.v[i] == j) /* the snapshot has one of each */
            return true;
    for (size_t i = 0; i < req->known.n; i++)
        if (same_job(req->known.v[i], j))
            return true;
    return false;
}

/* Bytes on the wire; more than a frame counts as that. */
static size_t
wire_size(const struct type *t, const void *obj)
{
    auto_buf struct buf b = BUF_INIT(RPC_FRAME_MAX);
    mp_encode(&b, t, obj);
    return buf_error(&b) ? RPC_FRAME_MAX : b.len;
}

static int
check_get_many(const struct alloc_get_allocs_request *req, struct err *e)
{
    if (req->alloc_ids.n > GET_ALLOCS_MAX)
        return err_set(e, -ERR_LIMIT, "%zu allocations asked for at once: at most %d",
                       req->alloc_ids.n, GET_ALLOCS_MAX);
    if (req->known.n > GET_ALLOCS_KNOWN_MAX)
        return err_set(e, -ERR_LIMIT, "%zu jobs are said to be known: at most %d", req->known.n,
                       GET_ALLOCS_KNOWN_MAX);
    return 0;
}

/* Allocations by id, each Job once; ids that are gone are left out. It ends where GET_ALLOCS_BYTES are
 * passed: Handled says where to go on. */
static int
alloc_get_many_run(struct read *r, struct state_txn *t, void *ctx, struct err *e)
{
    const struct alloc_get_allocs_request *req = r->req;
    struct alloc_get_allocs_response *resp = mem_new(ctx, struct alloc_get_allocs_response);
    size_t bytes = 0;

    if (check_get_many(req, e) < 0)
        return e->code;
    for (; resp->handled < req->alloc_ids.n && bytes < GET_ALLOCS_BYTES; resp->handled++) {
        struct allocation *a = state_alloc(t, ctx, str_or(req->alloc_ids.v[resp->handled], ""));
        struct job *j = a != NULL ? (struct job *)(uintptr_t)state_alloc_job(t, a) : NULL;
        if (j == NULL)
            continue;
        bool known = has_job(req, resp, j);
        a->job = NULL;
        size_t size = wire_size(&type_allocation, a) + (known ? 0 : wire_size(&type_job, j));
        if (bytes + size > RPC_FRAME_MAX - GET_ALLOCS_ROOM) {
            if (bytes > 0)
                break;
            return err_set(e, -ERR_LIMIT, "allocation %s and its job take more than an answer may",
                           a->id);
        }
        bytes += size;
        if (!known)
            list_add(ctx, resp->jobs, j);
        struct sent_alloc *sent = mem_new(ctx, struct sent_alloc);
        *sent = (struct sent_alloc){.alloc = a, .job_modify_index = j->job_modify_index};
        list_add(ctx, resp->allocs, sent);
        r->index = a->modify_index > r->index ? a->modify_index : r->index;
    }
    if (r->index == 0)
        r->index = state_index(t, r->tables);
    resp->meta = r->meta;
    r->resp = resp;
    return 0;
}

void
alloc_get_many(void *arg, struct rpc_call *call, const void *p)
{
    const struct alloc_get_allocs_request *req = p;

    endpoint_read(arg, call, req, req->query, STATE_BIT(STATE_ALLOCS), 0, alloc_get_many_run);
}

static void
alloc_stopped(struct server *s, struct rpc_call *call, void *arg, uint64_t index,
              struct fsm_result *res)
{
    struct alloc_stop_response resp = {.eval_id = arg, .index = index};

    (void)s;
    (void)res;
    rpc_reply(call, &resp);
}

void
alloc_stop(void *arg, struct rpc_call *call, const void *p)
{
    const struct alloc_stop_request *req = p;
    struct server *s = arg;
    void *ctx = rpc_call_ctx(call);

    if (!endpoint_leads(s, call))
        return;
    struct state_txn *t = state_read_begin(server_state(s), ctx);
    struct allocation *a = state_alloc(t, ctx, str_or(req->alloc_id, ""));
    const struct job *j = a ? state_alloc_job(t, a) : NULL;
    state_read_end(t);
    if (j == NULL) {
        rpc_failf(call, -ERR_NOT_FOUND, "alloc not found");
        return;
    }
    struct evaluation *e = eval_of_job(ctx, server_env(s), j, TRIGGER_ALLOC_STOP);
    struct desired_transition dt = {.migrate = {true, true}};
    if (req->no_shutdown_delay)
        dt.no_shutdown_delay = (struct opt_bool){true, true};
    if (req->reschedule)
        dt.reschedule = (struct opt_bool){true, true};
    struct intent_alloc_transition at = {
        .alloc_ids = {&a->id, 1}, .transition = &dt, .evals = {&e, 1}};
    struct intent in = {.time = clock_wall_ns(), .alloc_transition = &at};
    endpoint_write(s, call, &in, alloc_stopped, (void *)(uintptr_t)e->id);
}

/* --- evaluations --- */

static const struct row_types eval_rows = {&type_evaluation, &type_evaluation};

static int
eval_list_run(struct read *r, struct state_txn *t, void *ctx, struct err *e)
{
    const struct list_request *req = r->req;
    struct eval_list_response *resp = mem_new(ctx, struct eval_list_response);
    bool by_id = !str_empty(r->q->prefix);
    struct rows l;

    if (endpoint_check_prefix(r->q->prefix, e) < 0 || rows_begin(&l, r, ctx, &eval_rows, e) < 0)
        return e->code;
    struct state_iter *it = by_id ? state_evals(t, ctx, r->q->prefix) : state_evals_by_create(t, ctx);
    rows_seek(&l, it);
    for (struct evaluation *ev; (ev = state_next(it, rows_ctx(&l))) != NULL;) {
        if (!rows_see(&l, (struct row_key){.id = ev->id, .create_index = by_id ? 0 : ev->create_index}))
            break;
        if (query_ns_matches(r->q, ev->namespace) &&
            (str_empty(req->status) || str_eq(req->status, ev->status)) &&
            (str_empty(req->job_id) || str_eq(req->job_id, ev->job_id)) && rows_take(&l, ev))
            rows_add(&l, ev, ev->modify_index);
    }
    resp->meta = r->meta;
    int rc = ROWS_END(&l, t, resp->evaluations, e);
    r->resp = resp;
    return rc;
}

void
eval_list(void *arg, struct rpc_call *call, const void *p)
{
    const struct list_request *req = p;
    const char *ns = query_ns(req->query);
    bool of_job = !str_empty(req->job_id) && !str_eq(ns, NS_ALL);

    endpoint_read(arg, call, req, req->query, STATE_BIT(STATE_EVALS),
                  of_job ? state_key_job_evals(ns, req->job_id) : 0, eval_list_run);
}

static struct evaluation_stub *
eval_stub(const void *ctx, const struct evaluation *e)
{
    struct evaluation_stub *s = mem_new(ctx, struct evaluation_stub);

    s->id = e->id;
    s->namespace = e->namespace;
    s->priority = e->priority;
    s->type = e->type;
    s->triggered_by = e->triggered_by;
    s->job_id = e->job_id;
    s->node_id = e->node_id;
    s->deployment_id = e->deployment_id;
    s->status = e->status;
    s->status_description = e->status_description;
    s->wait_until = e->wait_until;
    s->next_eval = e->next_eval;
    s->previous_eval = e->previous_eval;
    s->blocked_eval = e->blocked_eval;
    s->create_index = e->create_index;
    s->modify_index = e->modify_index;
    s->create_time = e->create_time;
    s->modify_time = e->modify_time;
    return s;
}

/* Evaluations linked to `e` in either direction. */
static void
fill_related(struct state_txn *t, void *ctx, struct evaluation *e)
{
    struct state_iter *it = state_evals_by_job(t, ctx, e->namespace, e->job_id);

    for (struct evaluation *o; (o = state_next(it, ctx)) != NULL;) {
        bool linked = str_eq(o->id, e->next_eval) || str_eq(o->id, e->previous_eval) ||
                      str_eq(o->id, e->blocked_eval) || str_eq(o->previous_eval, e->id) ||
                      str_eq(o->next_eval, e->id) || str_eq(o->blocked_eval, e->id);
        if (!linked || str_eq(o->id, e->id))
            continue;
        struct evaluation_stub *stub = eval_stub(ctx, o);
        list_add(ctx, e->related_evals, stub);
    }
}

static int
eval_get_run(struct read *r, struct state_txn *t, void *ctx, struct err *e)
{
    const struct id_request *req = r->req;
    struct eval_response *resp = mem_new(ctx, struct eval_response);

    (void)e;
    resp->eval = state_eval(t, ctx, str_or(req->id, ""));
    if (resp->eval != NULL && req->related)
        fill_related(t, ctx, resp->eval);
    r->index = resp->eval ? resp->eval->modify_index : state_index(t, r->tables);
    resp->meta = r->meta;
    r->resp = resp;
    return 0;
}

void
eval_get(void *arg, struct rpc_call *call, const void *p)
{
    const struct id_request *req = p;

    endpoint_read(arg, call, req, req->query, STATE_BIT(STATE_EVALS),
                  state_key_eval(str_or(req->id, "")), eval_get_run);
}

static int
eval_allocations_run(struct read *r, struct state_txn *t, void *ctx, struct err *e)
{
    const struct id_request *req = r->req;
    struct alloc_list_response *resp = mem_new(ctx, struct alloc_list_response);
    struct rows l;

    if (rows_begin(&l, r, ctx, &alloc_rows, e) < 0)
        return e->code;
    struct state_iter *it = state_allocs_by_eval(t, ctx, str_or(req->id, ""));
    rows_seek(&l, it);
    for (struct allocation *a; (a = state_next_with_job(it, rows_ctx(&l))) != NULL;) {
        if (!rows_see(&l, (struct row_key){.id = a->id}))
            break;
        if (rows_take(&l, a))
            rows_add(&l, endpoint_alloc_stub(a, a), a->modify_index);
    }
    resp->meta = r->meta;
    int rc = ROWS_END(&l, t, resp->allocations, e);
    r->resp = resp;
    return rc;
}

void
eval_allocations(void *arg, struct rpc_call *call, const void *p)
{
    const struct id_request *req = p;

    endpoint_read(arg, call, req, req->query, STATE_BIT(STATE_ALLOCS),
                  state_key_eval_allocs(str_or(req->id, "")), eval_allocations_run);
}
