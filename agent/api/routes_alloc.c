/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: allocations and evaluations.
 */
#include <string.h>

#include "agent/api/api.h"
#include "common/mem.h"
#include "common/str.h"

static void
allocs_list(struct ask *a)
{
    struct list_request *r = mem_new(a, struct list_request);
    r->task_states = true;
    if (ask_bool(a, "resources", &r->resources) && ask_bool(a, "task_states", &r->task_states))
        ask_list(a, RPC_ALLOC_LIST, r, &type_allocation);
}

static void
alloc_done(struct ask *a, const void *resp)
{
    const struct alloc_response *r = resp;
    ask_object(a, &type_allocation, r->alloc, r->meta, "alloc not found");
}

static void
alloc_get(struct ask *a)
{
    if (strchr(a->id, '/'))
        ask_fail(a, 404, "resource not found"); /* of an allocation */
    else
        ask_call(a, RPC_ALLOC_GET_ALLOC, ask_by_id(a), alloc_done);
}

static void
stop_done(struct ask *a, const void *resp)
{
    const struct alloc_stop_response *r = resp;
    ask_index(a, r->index);
    ask_json(a, &type_alloc_stop_response, r);
}

static void
alloc_stop(struct ask *a)
{
    struct alloc_stop_request *r = mem_new(a, struct alloc_stop_request);
    r->alloc_id = a->id;
    if (ask_bool(a, "no_shutdown_delay", &r->no_shutdown_delay) &&
        ask_bool(a, "reschedule", &r->reschedule))
        ask_call(a, RPC_ALLOC_STOP, r, stop_done);
}

static void
evals_list(struct ask *a)
{
    struct list_request *r = mem_new(a, struct list_request);
    r->status = http_query(a->req, "status");
    r->job_id = http_query(a->req, "job");
    if (!str_empty(a->list.filter) && (!str_empty(r->status) || !str_empty(r->job_id)))
        ask_fail(a, 400, "filter cannot be combined with status or job");
    else
        ask_list(a, RPC_EVAL_LIST, r, &type_evaluation);
}

static void
eval_done(struct ask *a, const void *resp)
{
    const struct eval_response *r = resp;
    ask_object(a, &type_evaluation, r->eval, r->meta, "eval not found");
}

static void
eval_get(struct ask *a)
{
    struct id_request *r = ask_by_id(a);
    if (ask_bool(a, "related", &r->related))
        ask_call(a, RPC_EVAL_GET_EVAL, r, eval_done);
}

static void
eval_allocations(struct ask *a)
{
    ask_list(a, RPC_EVAL_ALLOCATIONS, ask_by_id(a), &type_allocation);
}

const struct route routes_alloc[] = {
    {VERB_GET, "/v1/allocations", NULL, allocs_list},
    {VERB_WRITE, "/v1/allocation/", "/stop", alloc_stop},
    {VERB_GET, "/v1/allocation/", "", alloc_get},
    {VERB_GET, "/v1/evaluations", NULL, evals_list},
    {VERB_GET, "/v1/evaluation/", "/allocations", eval_allocations},
    {VERB_GET, "/v1/evaluation/", "", eval_get},
    {0, NULL, NULL, NULL},
};
