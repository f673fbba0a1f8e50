/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: deployments, where path and query are not all.
 */
#include <string.h>

#include "agent/api/api.h"
#include "common/str.h"

/* A job without one has null. */
static void
latest_done(struct ask *a, const void *resp)
{
    const struct deployment_response *r = resp;

    ask_meta(a, r->meta);
    ask_json(a, &type_deployment, r->deployment);
}

static void
latest(struct ask *a)
{
    struct id_request *r = ask_by_id(a);

    if (ask_bool(a, "all", &r->all))
        ask_call(a, RPC_JOB_LATEST_DEPLOYMENT, r, latest_done);
}

/* The body, whose DeploymentID is that of the path. NULL: answered. */
static void *
body(struct ask *a, const struct type *t)
{
    void *r = ask_body(a, t, false);
    const char *const *id = r != NULL ? type_member(t, r, "DeploymentID") : NULL;

    if (r == NULL)
        return NULL;
    if (str_empty(*id))
        ask_fail(a, 400, "DeploymentID must be specified");
    else if (!str_eq(*id, a->id))
        ask_fail(a, 400, "Deployment ID does not match");
    else
        return r;
    return NULL;
}

static void
change(struct ask *a)
{
    const struct rpc_method *m = rpc_method_by_id(a->route->rpc);
    void *r = body(a, m->req);

    if (r != NULL)
        ask_call(a, a->route->rpc, r, method_done);
}

const struct route routes_deployment[] = {
    {VERB_GET, "/v1/job/", "/deployment", latest, 0},
    {VERB_WRITE, "/v1/deployment/pause/", "", change, RPC_DEPLOYMENT_PAUSE},
    {VERB_WRITE, "/v1/deployment/promote/", "", change, RPC_DEPLOYMENT_PROMOTE},
    {VERB_WRITE, "/v1/deployment/unblock/", "", change, RPC_DEPLOYMENT_UNBLOCK},
    {VERB_WRITE, "/v1/deployment/allocation-health/", "", change, RPC_DEPLOYMENT_SET_ALLOC_HEALTH},
    {0, NULL, NULL, NULL, 0},
};
