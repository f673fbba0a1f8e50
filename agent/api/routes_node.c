/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: nodes.
 */
#include "agent/api/api.h"
#include "common/str.h"

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
    ask_call(a, RPC_NODE_UPDATE_ELIGIBILITY, r, method_done);
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
    ask_call(a, RPC_NODE_UPDATE_DRAIN, r, method_done);
}

const struct route routes_node[] = {
    {VERB_WRITE, "/v1/node/", "/drain", node_drain, 0},
    {VERB_WRITE, "/v1/node/", "/eligibility", node_eligibility, 0},
    {VERB_GET, "/v1/node/", "", ask_method, RPC_NODE_GET_NODE},
    {0, NULL, NULL, NULL, 0},
};
