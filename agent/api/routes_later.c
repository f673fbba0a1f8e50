/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: what Nomad's has and ours has not: features to come, by the name under which they are
 * refused (501), and what Nomad Enterprise alone has. With the other tables of routes this is all
 * of Nomad's API: a path in none of them is none.
 */
#include "agent/api/api.h"
#include "common/mem.h"

/* Searched first, so that "/scale" is no part of a job's name. A route that is built leaves this
 * table. */
static const struct {
    unsigned verbs;
    const char *path, *suffix; /* as in struct route */
    const char *what; /* NULL: Enterprise */
} rows[] = {
    /* allocations, evaluations, deployments */
    {VERB_ANY, "/v1/client/allocation/", "/snapshot", "migrating an ephemeral disk"},
    {VERB_GET, "/v1/client/allocation/", "/pause", "the schedule of a task"},
    /* the agent */
    {VERB_WRITE, "/v1/agent/schedulers/config", NULL,
     "setting the workers of a server at run time"},
    {VERB_ANY, "/v1/agent/host", NULL, "a report on the host"},
    {VERB_ANY, "/v1/agent/monitor/", "", "the log of an agent, from a file"},
    {VERB_ANY, "/v1/agent/pprof/", "", "profiling an agent"},
    {VERB_ANY, "/debug/pprof/", "", "profiling an agent"},
    /* operators */
    {VERB_ANY, "/v1/operator/upgrade-check/", "", "a check before an upgrade"},
    {VERB_ANY, "/v1/system/reconcile/summaries", NULL, "reconciling the summaries of jobs"},
    /* the routes of jobs' later blocks */
    {VERB_WRITE, "/v1/volumes", NULL, "a CSI volume"},
    {VERB_ANY, "/v1/volumes/", "", "a CSI volume, or claims of volumes"},
    {VERB_ANY, "/v1/volume/csi/", "", "a CSI volume"},
    {VERB_ANY, "/v1/plugin", "", "a plugin for volumes"},
    {VERB_ANY, "/v1/acl/oidc/", "", "logging in by OIDC (a method of type JWT takes its tokens)"},
    /* Enterprise */
    {VERB_ANY, "/v1/sentinel/", "", NULL},
    {VERB_ANY, "/v1/recommendation", "", NULL},
    {VERB_ANY, "/v1/operator/license", NULL, NULL},
    {VERB_ANY, "/v1/operator/utilization", NULL, NULL},
};

bool
route_is_later(const struct request *a, unsigned verb, const char **what)
{
    const char *id;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if ((rows[i].verbs & verb) && request_fits(a, rows[i].path, rows[i].suffix, &id)) {
            *what = rows[i].what;
            return true;
        }
    return false;
}

bool
route_later(struct request *a, unsigned verb)
{
    const char *what;

    if (!route_is_later(a, verb, &what))
        return false;
    if (what)
        reply_fail(a, 501, "%s is not in Paddock %s", what, a->api->version);
    else
        reply_fail(a, 501, "Nomad Enterprise only endpoint");
    return true;
}
