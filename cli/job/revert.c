/* SPDX-License-Identifier: Apache-2.0
 *
 * job revert.
 */
#include "cli/api.h"
#include "cli/format.h"
#include "cli/monitor.h"
#include "common/num.h"

/* A number, or the version that bears the tag. False: said. */
static bool
version_of(struct cmd *c, const char *job, const char *text, uint64_t *ret)
{
    void *resp = NULL;
    struct err e = ERR_INIT;
    if (!num_parse_u64(text, ret))
        return true;
    if (api_get(c, api_target(c, "/v1/job/%/versions", job, NULL), &type_job_versions_response,
                &resp, NULL, &e)) {
        cmd_fail(c, "Error retrieving job versions: %s", e.text);
        return false;
    }
    const struct job_versions_response *r = resp;
    for (size_t i = 0; i < r->versions.n; i++) {
        const struct job *j = r->versions.v[i];
        if (j->version_tag && str_eq(j->version_tag->name, text)) {
            *ret = j->version;
            return true;
        }
    }
    cmd_fail(c, "Error retrieving job versions: version tag %s not found for job %s", text, job);
    return false;
}

int
cmd_job_revert(struct cmd *c)
{
    bool detach = false, verbose = false;
    const struct opt opts[] = {
        {"detach", OPT_BOOL, &detach, NULL, "Return at once, with the id of the evaluation."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids."},
        {0}};
    struct job_list_stub *stub;
    struct err e = ERR_INIT;
    void *ret = NULL;
    uint64_t version;
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 2, .max = 2}, &rc))
        return rc;
    if (api_find_job(c, c->args[0], &stub) != API_ONE)
        return 1;
    c->namespace = str_or(stub->namespace, c->namespace);
    if (!version_of(c, stub->id, c->args[1], &version))
        return 1;
    struct job_revert_request req = {.job_id = stub->id, .job_version = version};
    if (api_send(c, "PUT", api_target(c, "/v1/job/%/revert", stub->id, NULL),
                 &type_job_revert_request, &req, &type_job_register_response, &ret, &e))
        return cmd_fail(c, "Error retrieving job versions: %s", e.text);
    const struct job_register_response *r = ret;
    if (!r || str_empty(r->eval_id))
        return 0;
    if (!detach)
        return monitor_eval(c, r->eval_id, verbose);
    cmd_say(c, "Evaluation ID: %s", r->eval_id);
    return 0;
}
