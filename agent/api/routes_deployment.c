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

const struct route routes_deployment[] = {
    {VERB_GET, "/v1/job/", "/deployment", latest, 0},
    {0, NULL, NULL, NULL, 0},
};
