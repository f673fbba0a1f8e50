/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: allocations and evaluations, where path and query are not all.
 */
#include <string.h>

#include "agent/api/api.h"
#include "common/str.h"

static void
alloc_get(struct ask *a)
{
    if (strchr(a->id, '/'))
        ask_fail(a, 404, "resource not found"); /* of an allocation */
    else
        ask_method(a);
}

static void
evals_list(struct ask *a)
{
    bool narrowed = !str_empty(http_query(a->req, "status")) || !str_empty(http_query(a->req, "job"));

    if (!str_empty(a->list.filter) && narrowed)
        ask_fail(a, 400, "filter cannot be combined with status or job");
    else
        ask_method(a);
}

const struct route routes_alloc[] = {
    {VERB_GET, "/v1/allocation/", "", alloc_get, RPC_ALLOC_GET_ALLOC},
    {VERB_GET, "/v1/evaluations", NULL, evals_list, RPC_EVAL_LIST},
    {0, NULL, NULL, NULL, 0},
};
