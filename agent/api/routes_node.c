/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: nodes.
 */
#include "agent/api/api.h"
#include "common/mem.h"
#include "common/str.h"

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
    ask_call(a, RPC_NODE_UPDATE_ELIGIBILITY, r, NULL);
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
    ask_call(a, RPC_NODE_UPDATE_DRAIN, r, NULL);
}

const struct route routes_node[] = {
    {VERB_WRITE, "/v1/node/", "/drain", node_drain, 0},
    {VERB_WRITE, "/v1/node/", "/eligibility", node_eligibility, 0},
    {VERB_GET, "/v1/node/", "", node_get, 0},
    {0, NULL, NULL, NULL, 0},
};
