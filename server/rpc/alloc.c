/* SPDX-License-Identifier: Apache-2.0
 *
 * Alloc.* and Eval.*.
 */
#include "api/limits.h"
#include "api/terms.h"
#include "common/mem.h"
#include "server/call/method.h"

enum { GET_ALLOCS_ROOM = 64 << 10 }; /* of a frame, for what is between allocations */

/* --- allocations --- */

static void
list_finish(struct read *r, struct state_txn *t, void *whole, void *row)
{
    const struct list_request *req = r->req;
    struct alloc_list_stub *s = row;

    endpoint_alloc_row(r, t, whole, row);
    if (req->resources) /* the only list that has them */
        s->allocated_resources = ((const struct allocation *)whole)->allocated_resources;
    if (!req->task_states)
        s->task_states = (struct task_state_map){0};
}

static bool
list_whole(const struct read *r)
{
    const struct list_request *req = r->req;
    return req->resources || !req->task_states;
}

const struct read_row read_alloc_list = {.tables = STATE_BIT(STATE_ALLOCS),
                                         .run = read_list,
                                         .order = ORDER_CREATE,
                                         .hex = true,
                                         .by = STATE_ALLOCS_BY_CREATE,
                                         .finish = list_finish,
                                         ALLOC_ROWS_LEAN,
                                         .whole = list_whole};

static void *
alloc_get(struct read *r, struct state_txn *t)
{
    struct allocation *a = state_alloc(t, r->ctx, read_id(r));

    if (a != NULL) {
        state_alloc_job(t, a);
        endpoint_alloc_totals(r->ctx, a);
    }
    return a;
}

const struct read_row read_alloc_get_alloc = {
    .tables = STATE_BIT(STATE_ALLOCS), .about = WATCH_ALLOC, .run = read_one, .get = alloc_get};

static void *
place_get(struct read *r, struct state_txn *t)
{
    const struct allocation *a = state_alloc(t, r->ctx, read_id(r));

    if (a == NULL)
        return NULL;
    return codec_project(r->ctx, projection_new(r->ctx, &type_alloc_place, &type_allocation), a);
}

const struct read_row read_alloc_get_place = {
    .tables = STATE_BIT(STATE_ALLOCS), .about = WATCH_ALLOC, .run = read_one, .get = place_get};

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

/* Allocations by id, each Job once; ids that are gone are left out. It ends where GET_ALLOCS_BYTES
 * are passed: Handled says where to go on. */
static int
get_many_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct alloc_get_allocs_request *req = r->req;
    struct alloc_get_allocs_response *resp = read_resp(r);
    void *ctx = r->ctx;
    size_t bytes = 0;

    if (check_get_many(req, e) < 0)
        return e->code;
    for (; resp->handled < req->alloc_ids.n && bytes < GET_ALLOCS_BYTES; resp->handled++) {
        struct allocation *a = state_alloc(t, ctx, str_or(req->alloc_ids.v[resp->handled], ""));
        struct job *j = a != NULL ? (struct job *)(uintptr_t)state_alloc_job(t, a) : NULL;
        if (j == NULL)
            continue;
        if (!str_eq(a->node_id, r->node->id))
            return err_set(e, -ERR_FORBIDDEN, "allocation %s is not of this node", a->id);
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
        r->index = state_index(t, r->row->tables);
    return 0;
}

const struct read_row read_alloc_get_allocs = {.tables = STATE_BIT(STATE_ALLOCS),
                                               .run = get_many_run};

static void
alloc_stopped(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct alloc_stop_response resp = {.eval_id = w->memo, .index = index};

    (void)res;
    rpc_reply(w->call, &resp);
}

static int
prepare_stop(struct write *w, struct state_txn *t, struct err *e)
{
    const struct alloc_stop_request *req = w->req;
    struct allocation *a = write_object(w, t, ALLOCS, req->alloc_id);
    const struct job *j = a ? state_alloc_job(t, a) : NULL;

    if (j == NULL)
        return err_set(e, -ERR_NOT_FOUND, "alloc not found");
    struct evaluation *ev = eval_of_job(w->ctx, server_env(w->s), j, TRIGGER_ALLOC_STOP);
    struct desired_transition *dt = mem_new(w->ctx, struct desired_transition);
    dt->migrate = (struct opt_bool){true, true};
    if (req->no_shutdown_delay)
        dt->no_shutdown_delay = (struct opt_bool){true, true};
    if (req->reschedule)
        dt->reschedule = (struct opt_bool){true, true};
    struct intent_alloc_transition *at = mem_new(w->ctx, struct intent_alloc_transition);
    at->transition = dt;
    list_add(w->ctx, at->alloc_ids, a->id);
    list_add(w->ctx, at->evals, ev);
    w->in.alloc_transition = at;
    w->memo = ev->id;
    return 0;
}

const struct write_row write_alloc_stop = {prepare_stop, alloc_stopped};

/* --- evaluations --- */

static bool
eval_list_takes(const struct read *r, const void *whole)
{
    const struct list_request *req = r->req;
    const struct evaluation *ev = whole;

    return (str_empty(req->status) || str_eq(req->status, ev->status)) &&
           (str_empty(req->job_id) || str_eq(req->job_id, ev->job_id));
}

static uint64_t
eval_list_key(const struct read *r)
{
    const char *job = ((const struct list_request *)r->req)->job_id;
    bool of_job = !str_empty(job) && !str_eq(read_ns(r), NS_ALL);

    return of_job ? state_watch_key(WATCH_JOB_EVALS, read_ns(r), job) : 0;
}

const struct read_row read_eval_list = {.tables = STATE_BIT(STATE_EVALS),
                                        .key = eval_list_key,
                                        .run = read_list,
                                        .order = ORDER_CREATE,
                                        .hex = true,
                                        .by = STATE_EVALS_BY_CREATE,
                                        .takes = eval_list_takes,
                                        .needs = "Status JobID"};

/* Evaluations linked to `e` in either direction. */
static void
fill_related(struct state_txn *t, void *ctx, struct evaluation *e)
{
    const struct projection *p = projection_new(ctx, &type_evaluation_stub, &type_evaluation);
    struct state_iter *it = state_evals_by_job(t, ctx, e->namespace, e->job_id);

    for (struct evaluation *o; (o = state_next(it, ctx)) != NULL;) {
        bool linked = str_eq(o->id, e->next_eval) || str_eq(o->id, e->previous_eval) ||
                      str_eq(o->id, e->blocked_eval) || str_eq(o->previous_eval, e->id) ||
                      str_eq(o->next_eval, e->id) || str_eq(o->blocked_eval, e->id);
        if (!linked || str_eq(o->id, e->id))
            continue;
        list_add(ctx, e->related_evals, codec_project(ctx, p, o));
    }
}

static void *
eval_get(struct read *r, struct state_txn *t)
{
    struct evaluation *e = read_object(r, t);

    if (e != NULL && ((const struct id_request *)r->req)->related)
        fill_related(t, r->ctx, e);
    return e;
}

static bool
eval_whole(const struct read *r)
{
    return ((const struct id_request *)r->req)->related;
}

const struct read_row read_eval_get_eval = {.tables = STATE_BIT(STATE_EVALS),
                                            .about = WATCH_EVAL,
                                            .run = read_one,
                                            .get = eval_get,
                                            .needs = "",
                                            .whole = eval_whole};

static void
evals_deleted(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct eval_delete_response resp = {.count = (int64_t)FSM_COUNT(res, EVALS, DELETED),
                                        .index = index};

    rpc_reply(w->call, &resp);
}

static int
prepare_delete(struct write *w, struct state_txn *t, struct err *e)
{
    const struct eval_delete_request *req = w->req;
    struct intent_eval_delete *del = mem_new(w->ctx, struct intent_eval_delete);

    (void)t;
    if (!str_empty(req->filter))
        return err_set(e, -ERR_INVALID, "the filter is for the agent to find the evaluations");
    if (req->eval_ids.n == 0 && !req->skip)
        return err_set(e, -ERR_INVALID, "evals must be deleted by either ID or filter");
    if (req->eval_ids.n > EVAL_DELETE_MAX)
        return err_set(e, -ERR_INVALID, "request includes %zu evaluation IDs, must be %d or fewer",
                       req->eval_ids.n, EVAL_DELETE_MAX);
    *del = (struct intent_eval_delete){.eval_ids = req->eval_ids, .skip = req->skip};
    w->in.eval_delete = del;
    return 0;
}

const struct write_row write_eval_delete = {prepare_delete, evals_deleted};

const struct read_row read_eval_allocations = {.tables = STATE_BIT(STATE_ALLOCS),
                                               .about = WATCH_EVAL_ALLOCS,
                                               .run = read_list,
                                               .by = STATE_ALLOCS_BY_EVAL,
                                               .finish = endpoint_alloc_row,
                                               ALLOC_ROWS_LEAN};
