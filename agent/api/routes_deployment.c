/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: deployments, where path and query are not all.
 */
#include <string.h>

#include "agent/api/api.h"
#include "common/str.h"

/* A job without one has null. */
static void
latest_done(struct request *a, const void *resp)
{
    const struct deployment_response *r = resp;

    reply_meta(a, r->meta);
    reply_json(a, &type_deployment, r->deployment);
}

static void
routes_deployment_latest(struct request *a)
{
    struct id_request *r = request_by_id(a);

    if (param_bool(a, "all", &r->all))
        call_server(a, RPC_JOB_LATEST_DEPLOYMENT, r, latest_done);
}

const struct route routes_deployment[] = {
    {VERB_GET, "/v1/job/", "/deployment", routes_deployment_latest, RPC_JOB_LATEST_DEPLOYMENT,
     BY_SERVER},
    ROUTES_END,
};
