/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: nodes.
 */
#include "agent/api/api.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"

static void
nodes_list(struct ask *a)
{
    struct list_request *r = mem_new(a, struct list_request);
    if (ask_bool(a, "resources", &r->resources) && ask_bool(a, "os", &r->os))
        ask_list(a, RPC_NODE_LIST, r, &type_node);
}

static void
node_done(struct ask *a, const void *resp)
{
    const struct node_response *r = resp;
    const char *drain = r->node && r->node->drain_strategy ? "true" : "false";
    ask_object_more(a, &type_node, r->node, r->meta, "node not found",
                    r->node ? mem_printf(a, a->pretty ? "\"Drain\": %s" : "\"Drain\":%s", drain) : NULL);
}

static void
node_get(struct ask *a)
{
    ask_call(a, RPC_NODE_GET_NODE, ask_by_id(a), node_done);
}

static void
node_allocations(struct ask *a)
{
    struct id_request *r = ask_by_id(a);
    ask_list(a, RPC_NODE_GET_ALLOCS, r, &type_allocation);
}

static void
placement_done(struct ask *a, const void *resp)
{
    const struct node_eligibility_update_response *r = resp;
    ask_index(a, r->index);
    ask_json(a, &type_node_eligibility_update_response, r);
}

static void
node_eligibility(struct ask *a)
{
    struct node_eligibility_request *r = ask_body(a, &type_node_eligibility_request, false);

    if (!r)
        return;
    if (!str_empty(r->node_id) && !str_eq(r->node_id, a->id)) {
        ask_fail(a, 400, "Node ID does not match");
        return;
    }
    if (!str_eq(r->eligibility, "eligible") && !str_eq(r->eligibility, "ineligible")) {
        ask_fail(a, 400, "Invalid scheduling eligibility \"%s\"", str_or(r->eligibility, ""));
        return;
    }
    r->node_id = a->id;
    ask_call(a, RPC_NODE_UPDATE_ELIGIBILITY, r, placement_done);
}

static void
node_drain(struct ask *a)
{
    struct node_drain_request *r = ask_body(a, &type_node_drain_request, false);

    if (!r)
        return;
    if (!str_empty(r->node_id) && !str_eq(r->node_id, a->id)) {
        ask_fail(a, 400, "Node ID does not match");
        return;
    }
    r->node_id = a->id;
    ask_call(a, RPC_NODE_UPDATE_DRAIN, r, placement_done);
}

static void
update_done(struct ask *a, const void *resp)
{
    const struct node_update_response *r = resp;
    ask_index(a, r->index ? r->index : r->node_modify_index);
    ask_json(a, &type_node_update_response, r);
}

static void
node_write(struct ask *a, enum rpc_id rpc)
{
    struct node_write_request *r = mem_new(a, struct node_write_request);
    r->node_id = a->id;
    ask_call(a, rpc, r, update_done);
}

static void
node_purge(struct ask *a)
{
    node_write(a, RPC_NODE_PURGE);
}

static void
node_evaluate(struct ask *a)
{
    node_write(a, RPC_NODE_EVALUATE);
}

const struct route routes_node[] = {
    {VERB_GET, "/v1/nodes", NULL, nodes_list},
    {VERB_GET, "/v1/node/", "/allocations", node_allocations},
    {VERB_WRITE, "/v1/node/", "/drain", node_drain},
    {VERB_WRITE, "/v1/node/", "/eligibility", node_eligibility},
    {VERB_WRITE, "/v1/node/", "/evaluate", node_evaluate},
    {VERB_WRITE, "/v1/node/", "/purge", node_purge},
    {VERB_GET, "/v1/node/", "", node_get},
    {0, NULL, NULL, NULL},
};
