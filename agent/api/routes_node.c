/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: nodes and node pools, where path and query are not all.
 */
#include "agent/api/api.h"
#include "common/str.h"

static void
node_eligibility(struct request *a)
{
    struct node_eligibility_request *r = request_body(a, &type_node_eligibility_request, false);

    if (!r)
        return;
    if (!str_empty(r->node_id) && !str_eq(r->node_id, a->id)) {
        reply_fail(a, 400, "Node ID does not match");
        return;
    }
    if (!str_eq(r->eligibility, "eligible") && !str_eq(r->eligibility, "ineligible")) {
        reply_fail(a, 400, "Invalid scheduling eligibility \"%s\"", str_or(r->eligibility, ""));
        return;
    }
    r->node_id = a->id;
    call_server(a, RPC_NODE_UPDATE_ELIGIBILITY, r, method_done);
}

/* --- node pools --- */

/* What is wrong with one is said with 400. */
static bool
pool_refused(struct request *a, const struct err *e)
{
    if (e->code != -ERR_INVALID)
        return false;
    reply_refuse(a, 400, e);
    return true;
}

static void
pool_written(struct request *a, const void *resp)
{
    reply_index(a, ((const struct write_response *)resp)->index);
    http_reply(a->req, 200, NULL, "", 0);
}

static void
pool_upsert(struct request *a)
{
    struct node_pool_upsert_request *r = mem_new(a, struct node_pool_upsert_request);
    struct node_pool *p = request_body(a, &type_node_pool, false);

    if (!p)
        return;
    if (a->id != NULL && !str_eq(p->name, a->id)) {
        reply_fail(a, 400, "Node pool name does not match request path");
        return;
    }
    list_add(r, r->node_pools, p);
    a->on_error = pool_refused;
    call_server(a, RPC_NODE_POOL_UPSERT_NODE_POOLS, r, pool_written);
}

static void
pool_delete(struct request *a)
{
    struct node_pool_delete_request *r = mem_new(a, struct node_pool_delete_request);

    list_add(r, r->names, a->id);
    a->on_error = pool_refused;
    call_server(a, RPC_NODE_POOL_DELETE_NODE_POOLS, r, pool_written);
}

const struct route routes_node[] = {
    {VERB_WRITE, "/v1/node/pools", NULL, pool_upsert, 0},
    {VERB_WRITE, "/v1/node/pool/", "", pool_upsert, 0},
    {VERB_DELETE, "/v1/node/pool/", "", pool_delete, 0},
    {VERB_WRITE, "/v1/node/", "/eligibility", node_eligibility, 0},
    {VERB_GET, "/v1/node/", "", route_call, RPC_NODE_GET_NODE},
    {0, NULL, NULL, NULL, 0},
};
