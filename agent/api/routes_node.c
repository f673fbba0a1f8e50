/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: nodes, where path and query are not all.
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

const struct route routes_node[] = {
    {VERB_WRITE, "/v1/node/", "/eligibility", node_eligibility, RPC_NODE_UPDATE_ELIGIBILITY,
     BY_SERVER},
    {VERB_GET, "/v1/node/", "", route_call, RPC_NODE_GET_NODE, BY_SERVER},
    ROUTES_END,
};
