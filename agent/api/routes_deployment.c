/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: deployments. They have an issue of their own: there is none yet, which is answered as if
 * there might be one soon: who waits for one waits.
 */
#include "agent/api/api.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

static const struct query_meta nothing_yet = {.index = 1, .known_leader = true};

static void
none(struct ask *a)
{
    bool list = str_suffix(a->req->path, "/deployments");

    if (list && !ask_filter_ok(a, &type_deployment))
        return;
    ask_meta(a, &nothing_yet);
    if (list)
        http_reply(a->req, 200, "application/json", "[]", 2);
    else if (a->id && str_suffix(a->req->path, "/deployment"))
        ask_json(a, &type_deployment, NULL);
    else
        ask_fail(a, 404, "deployment not found");
}

static void
waited(void *arg)
{
    struct ask *a = arg;
    a->user = NULL;
    none(a);
}

static void
gone(struct ask *a)
{
    timer_stop(TAKE(a->user));
    none(a);
}

static void
deployments(struct ask *a)
{
    if (a->env.min_index == 0) {
        none(a);
        return;
    }
    a->gone = gone;
    a->user = timer_start(a->api->loop, a->env.wait / NS_PER_MS, waited, a);
}

const struct route routes_deployment[] = {
    {VERB_GET | VERB_HERE, "/v1/deployments", NULL, deployments, 0},
    {VERB_GET | VERB_HERE, "/v1/deployment/", "", deployments, 0},
    {VERB_GET | VERB_HERE, "/v1/job/", "/deployments", deployments, 0},
    {VERB_GET | VERB_HERE, "/v1/job/", "/deployment", deployments, 0},
    {0, NULL, NULL, NULL, 0},
};
