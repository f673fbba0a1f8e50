/* SPDX-License-Identifier: Apache-2.0
 *
 * Job.*: reads.
 */
#include <inttypes.h>
#include <string.h>

#include "api/jobdiff.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "server/call/method.h"
#include "server/leader/live.h"
#include "server/sched/query/explain.h"

const struct read_row read_job_get_job = {
    .tables = STATE_BIT(STATE_JOBS), .about = WATCH_JOB, .run = read_one, .needs = ""};

static struct state_iter *
list_rows(struct read *r, struct state_txn *t)
{
    return state_jobs(t, r->ctx, read_ns(r), r->list->prefix);
}

static void
list_finish(struct read *r, struct state_txn *t, void *whole, void *row)
{
    const struct job *j = whole;
    struct job_list_stub *s = row;

    s->parameterized_job = job_parameterized(j);
    s->job_summary = state_summary(t, whole, j->namespace, j->id);
    if (s->job_summary != NULL)
        read_saw(r, j->namespace, s->job_summary->modify_index);
    if (!((const struct list_request *)r->req)->meta)
        s->meta = (struct str_map){0};
}

static bool
list_whole(const struct read *r)
{
    return ((const struct list_request *)r->req)->meta;
}

const struct read_row read_job_list = {.tables = STATE_BIT(STATE_JOBS) | STATE_BIT(STATE_SUMMARIES),
                                       .run = read_list,
                                       .order = ORDER_NS,
                                       .rows = list_rows,
                                       .finish = list_finish,
                                       .needs = "ParameterizedJob Dispatched",
                                       .makes = "JobSummary Meta ParameterizedJob",
                                       .whole = list_whole};

static struct state_iter *
pool_rows(struct read *r, struct state_txn *t)
{
    return state_jobs(t, r->ctx, read_ns(r), NULL);
}

static bool
pool_takes(const struct read *r, const void *whole)
{
    const struct list_request *req = r->req;

    return str_eq(((const struct job *)whole)->node_pool, req->pool);
}

const struct read_row read_node_pool_list_jobs = {.tables = STATE_BIT(STATE_JOBS) |
                                                            STATE_BIT(STATE_SUMMARIES),
                                                  .run = read_list,
                                                  .order = ORDER_NS,
                                                  .no_prefix = true,
                                                  .rows = pool_rows,
                                                  .takes = pool_takes,
                                                  .finish = list_finish,
                                                  .needs = "ParameterizedJob Dispatched NodePool",
                                                  .makes = "JobSummary Meta ParameterizedJob",
                                                  .whole = list_whole};

static struct state_iter *
allocs_rows(struct read *r, struct state_txn *t)
{
    r->job = state_job(t, r->ctx, read_ns(r), read_id(r));
    return state_allocs_by_job(t, r->ctx, read_ns(r), read_id(r));
}

/* Not those of an older job of that id that was purged, unless all are asked for. */
static bool
allocs_takes(const struct read *r, const void *whole)
{
    const struct allocation *a = whole;
    bool other = r->job != NULL && a->job != NULL && a->job->create_index != r->job->create_index;

    return ((const struct id_request *)r->req)->all || !other;
}

const struct read_row read_job_allocations = {.tables = STATE_BIT(STATE_ALLOCS),
                                              .about = WATCH_JOB_ALLOCS,
                                              .run = read_list,
                                              .rows = allocs_rows,
                                              .takes = allocs_takes,
                                              .finish = endpoint_alloc_row,
                                              ALLOC_ROWS_LEAN};

const struct read_row read_job_evaluations = {.tables = STATE_BIT(STATE_EVALS),
                                              .about = WATCH_JOB_EVALS,
                                              .run = read_list,
                                              .by = STATE_EVALS_BY_JOB,
                                              .needs = ""};

const struct read_row read_job_summary = {.tables = STATE_BIT(STATE_SUMMARIES),
                                          .about = WATCH_JOB,
                                          .run = read_one,
                                          .needs = ""};

/* Returns the index of the first answer: the others do not wait. */
static uint64_t
versions_index(const struct read *r, struct state_txn *t)
{
    auto_mem void *tmp = mem_ctx("versions");
    struct lean *lean = state_version_lean(tmp);
    struct state_iter *it = state_job_versions(t, tmp, read_ns(r), read_id(r));
    uint64_t index = 0;

    for (struct job *j; (j = state_next_lean(it, tmp, lean)) != NULL; talloc_free(j))
        index = j->modify_index > index ? j->modify_index : index;
    return index > 0 ? index : state_index(t, r->row->tables);
}

/* A version in each answer, or the difference to the version before: together they may be larger
 * than an answer may. NextToken: the JobModifyIndex of what comes; with ".diff" behind it the
 * difference is asked for. */
static int
versions_run(struct read *r, struct state_txn *t, struct err *e)
{
    struct job_versions_response *resp = read_resp(r);
    void *ctx = r->ctx;
    struct state_iter *it = state_job_versions(t, ctx, read_ns(r), read_id(r));
    const char *token = str_or(r->list->next_token, ""), *dot = strchr(token, '.');
    struct lean *lean = dot == NULL ? state_version_lean(ctx) : NULL;
    uint64_t from = UINT64_MAX;

    if (*token && num_parse_u64(mem_strndup(ctx, token, strcspn(token, ".")), &from) < 0)
        return err_set(e, -ERR_INVALID, "next_token '%.64s' is not of this list", token);
    if (*token)
        state_job_versions_seek(it, from);
    struct job *this = state_next(it, ctx);
    struct job *older = this != NULL ? state_next_lean(it, ctx, lean) : NULL;
    if (older != NULL)
        state_iter_end(it);
    if (dot == NULL && this != NULL)
        list_add(ctx, resp->versions, this);
    else if (older != NULL)
        list_add(ctx, resp->diffs, job_diff(ctx, older, this, true));
    if (older != NULL)
        resp->next_token = mem_printf(ctx, "%" PRIu64, older->job_modify_index);
    r->index = *token ? state_index(t, r->row->tables) : versions_index(r, t);
    resp->index = r->index;
    resp->known_leader = true;
    return 0;
}

const struct read_row read_job_versions = {
    .tables = STATE_BIT(STATE_JOBS), .about = WATCH_JOB, .run = versions_run};

/* Explains what would become of one more allocation. */
static int
explain_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct job_explain_request *req = r->req;
    struct job_explain_response *resp = read_resp(r);
    const struct env *env = server_env(r->s);
    struct rng rng = rng_seed(env_random(env), env_random(env));
    struct sched_view_state v;

    if (req->nodes < 0 || req->nodes > EXPLAIN_NODES_MAX)
        return err_set(e, -ERR_INVALID, "nodes must be 0 to %d", EXPLAIN_NODES_MAX);
    struct job *j = state_job(t, r->ctx, read_ns(r), req->job_id);
    r->index = state_index(t, r->row->tables);
    if (j == NULL)
        return 0;
    sched_view_init(&v, r->ctx, t, sched_view_table(r->ctx, t), NULL);
    struct explain_in in = {.view = &v.view,
                            .job = j,
                            .rng = &rng,
                            .group = req->group,
                            .node = req->node,
                            .n_named = req->nodes > 0 ? (size_t)req->nodes : EXPLAIN_NODES};
    return sched_explain(r->ctx, &in, &resp->explanation, e);
}

const struct read_row read_job_explain = {
    .tables = STATE_BIT(STATE_JOBS) | STATE_BIT(STATE_NODES) | STATE_BIT(STATE_ALLOCS),
    .run = explain_run,
    .query = true};
