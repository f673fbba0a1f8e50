/* SPDX-License-Identifier: Apache-2.0
 *
 * job revert, job tag.
 */
#include "cli/api.h"
#include "cli/format.h"
#include "cli/monitor.h"
#include "common/num.h"

/* A number, or the version that bears the tag. False: said. */
static bool
version_of(struct cmd *c, const char *job, const char *text, uint64_t *ret)
{
    if (!num_parse_u64(text, ret))
        return true;
    const struct job_versions_response *r =
        api_read(c, api_target(c, "/v1/job/%/versions", job, NULL), &type_job_versions_response,
                 "Error retrieving job versions");
    if (!r)
        return false;
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
    struct follow o = {.detach = false};
    const struct opt opts[] = {FOLLOW_OPTS(o), {0}};
    uint64_t version;
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 2, .max = 2}, &rc))
        return rc;
    const struct job_list_stub *stub = api_find_job(c, c->args[0]);
    if (!stub || !version_of(c, stub->id, c->args[1], &version))
        return 1;
    struct job_revert_request req = {.job_id = stub->id, .job_version = version};
    const struct change revert = {NULL, api_target(c, "/v1/job/%/revert", stub->id, NULL),
                                  &type_job_revert_request, &req, &type_job_register_response,
                                  "Error retrieving job versions"};
    return monitor_change(c, &o, &revert, "Evaluation ID: ");
}

/* --- tags --- */

/* The job that a tag command is about, by its whole id as Nomad's takes it, with the target of the
 * tag. NULL: said, *ret_code set. */
static char *
tag_target(struct cmd *c, const struct opt *opts, const char *const *name, int *ret_code)
{
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, ret_code))
        return NULL;
    *ret_code = 1;
    if (str_empty(*name)) {
        cmd_fail(c, "A version tag name must be specified using the '-name' flag");
        return NULL;
    }
    const struct job_list_stub *stub = api_find_job(c, c->args[0]);
    if (!stub)
        return NULL;
    c->args[0] = stub->id;
    return api_target(c, "/v1/job/%/versions/%/tag", stub->id, *name, NULL);
}

int
cmd_job_tag_apply(struct cmd *c)
{
    const char *name = NULL, *text = NULL, *version = NULL;
    const struct opt opts[] = {
        {"name", OPT_STRING, &name, "<tag>", "The name of the tag; required."},
        {"description", OPT_STRING, &text, "<text>", "What people should know of that version."},
        {"version", OPT_STRING, &version, "<version>", "The version; default the latest one."},
        {0}};
    struct tag_version_body body = {.version = 0};
    struct err e = ERR_INIT;
    void *ret = NULL;
    int rc;
    char *target = tag_target(c, opts, &name, &rc);
    if (!target)
        return rc;
    body.description = text;
    if (version && num_parse_u64(version, &body.version))
        return cmd_fail(c, "Error parsing version: \"%s\" is no number", version);
    if (!version &&
        api_get(c, api_target(c, "/v1/job/%", c->args[0], NULL), &type_job, &ret, NULL, &e))
        return cmd_fail(c, "Error retrieving job versions: %s", e.text);
    if (!version) /* so that the version shown to the user is the version tagged */
        body.version = ((const struct job *)ret)->version;
    if (!api_change(c, &(struct change){NULL, target, &type_tag_version_body, &body, NULL,
                                        "Error tagging job version"}))
        return 1;
    cmd_say(c, "Job version %llu tagged with name \"%s\"", (unsigned long long)body.version, name);
    return 0;
}

int
cmd_job_tag_unset(struct cmd *c)
{
    const char *name = NULL;
    const struct opt opts[] = {
        {"name", OPT_STRING, &name, "<tag>", "The name of the tag; required."}, {0}};
    int rc;
    char *target = tag_target(c, opts, &name, &rc);
    if (!target)
        return rc;
    if (!api_change(c, &(struct change){"DELETE", target, .failed = "Error tagging job version"}))
        return 1;
    cmd_say(c, "Tag \"%s\" removed from job \"%s\"", name, c->args[0]);
    return 0;
}
