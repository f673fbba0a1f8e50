/* SPDX-License-Identifier: Apache-2.0
 *
 * deployment list, status, pause, resume, promote, fail, unblock.
 */
#include "cli/api.h"
#include "cli/deployments.h"
#include "cli/format.h"
#include "cli/monitor.h"
#include "common/num.h"

/* By its id or a prefix of it; NULL: said. */
static struct deployment *
find(struct cmd *c, const char *prefix, bool verbose)
{
    struct deployment_list l;
    struct err e = ERR_INIT;
    size_t n = strlen(prefix), digits = 0;
    void *ret = NULL;
    for (size_t i = 0; i < n; i++)
        digits += prefix[i] != '-';
    if (digits < 2) {
        cmd_fail(c,
                 "Error retrieving deployment: Identifier must contain at least two characters.");
        return NULL;
    }
    if (n + 1 == UUID_TEXT) {
        if (api_get(c, api_target(c, "/v1/deployment/%", prefix, NULL), &type_deployment, &ret,
                    NULL, &e))
            cmd_fail(c, "Error retrieving deployment: %s", e.text);
        return ret;
    }
    if (digits % 2)
        prefix = mem_strndup(c, prefix, n - 1);
    if (deployments_get(c, api_target(c, "/v1/deployments", "prefix", prefix, NULL), &l, &e)) {
        cmd_fail(c, "Error retrieving deployment: %s", e.text);
        return NULL;
    }
    if (l.n == 1)
        return l.v[0];
    if (l.n == 0) {
        cmd_fail(c, "Error retrieving deployment: Deployment ID \"%s\" matched no deployments",
                 prefix);
        return NULL;
    }
    FILE *out = c->out;
    cmd_warn(c, "Prefix matched multiple deployments\n");
    c->out = c->err;
    deployments_list(c, &l, verbose);
    c->out = out;
    return NULL;
}

/* --- list, status --- */

static int
list_all(struct cmd *c, const struct output *o, const char *filter, bool verbose)
{
    struct deployment_list l;
    struct err e = ERR_INIT;
    int rc;
    if (deployments_get(c, api_target(c, "/v1/deployments", "filter", filter, NULL), &l, &e))
        return cmd_fail(c, "Error retrieving deployments: %s", e.text);
    if (output_list(c, o, &type_deployment, &l, &rc))
        return rc;
    deployments_list(c, &l, verbose);
    return 0;
}

int
cmd_deployment_list(struct cmd *c)
{
    bool verbose = false;
    const char *filter = NULL;
    struct output out = {false, NULL};
    const struct opt opts[] = {
        {"filter", OPT_STRING, &filter, "<expression>", "List only deployments that match."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids."},
        OUTPUT_OPTS(out),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    return list_all(c, &out, filter, verbose);
}

int
cmd_deployment_status(struct cmd *c)
{
    bool verbose = false, monitor = false, ui = false;
    int64_t wait = 2 * NS_PER_S;
    struct output out = {false, NULL};
    const struct opt opts[] = {
        {"monitor", OPT_BOOL, &monitor, NULL, "Watch the deployment until it ends."},
        {"wait", OPT_DURATION, &wait, "<duration>",
         "With -monitor: ask again after so long at the latest (default 2s)."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids and more."},
        {"ui", OPT_BOOL, &ui, NULL, "Without effect: there is no web interface yet."},
        OUTPUT_OPTS(out),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (monitor && (out.json || out.tmpl))
        return cmd_fail(c, "The monitor flag cannot be used with the '-json' or '-t' flags");
    if (c->n_args == 0)
        return list_all(c, &out, NULL, verbose);
    const struct deployment *d = find(c, c->args[0], verbose);
    if (!d)
        return 1;
    c->namespace = str_or(d->namespace, c->namespace);
    if (output_object(c, &out, &type_deployment, d, &rc))
        return rc;
    if (monitor) {
        cmd_say(c, "%s: Monitoring deployment \"%s\"", fmt_time(c, cmd_now(c)),
                fmt_id(c, d->id, verbose));
        deployments_watch(c, d->id, wait, verbose, "");
    } else {
        deployments_show(c, d, verbose, false);
        deployments_troubles(c, d, &(struct death_told){NULL, 0}, verbose);
    }
    return 0;
}

/* --- changes --- */

static int
follow(struct cmd *c, const struct follow *o, const struct deployment_update_response *u,
       bool apart)
{
    if (!u || str_empty(u->eval_id))
        return 0;
    if (o->detach) {
        cmd_say(c, "Evaluation ID: %s", u->eval_id);
        return 0;
    }
    if (apart)
        cmd_say(c, "%s", "");
    return monitor_eval(c, u->eval_id, o->verbose);
}

/* The deployment that the command is about; NULL: *ret_code, all is said. */
static const struct deployment *
subject(struct cmd *c, const struct opt *opts, const struct follow *o, int *ret_code)
{
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, ret_code))
        return NULL;
    const struct deployment *d = find(c, c->args[0], o->verbose);
    *ret_code = 1;
    if (d)
        c->namespace = str_or(d->namespace, c->namespace);
    return d;
}

/* Pause or resume; NULL and an error's text, or what the servers did. */
static int
set_paused(struct cmd *c, const char *id, bool pause, void **ret, struct err *e)
{
    struct deployment_pause_request req = {.deployment_id = id, .pause = pause};
    return api_send(c, "PUT", api_target(c, "/v1/deployment/pause/%", id, NULL),
                    &type_deployment_pause_request, &req, &type_deployment_update_response, ret, e);
}

int
cmd_deployment_pause(struct cmd *c)
{
    struct follow o = {.detach = false};
    const struct opt opts[] = {VERBOSE_OPT(o), {0}};
    struct err e = ERR_INIT;
    void *u = NULL;
    int rc;
    const struct deployment *d = subject(c, opts, &o, &rc);
    if (!d)
        return rc;
    if (set_paused(c, d->id, true, &u, &e))
        return cmd_fail(c, "Error pausing deployment: %s", e.text);
    cmd_say(c, "Deployment \"%s\" paused", d->id);
    return 0;
}

int
cmd_deployment_resume(struct cmd *c)
{
    struct follow o = {.detach = false};
    const struct opt opts[] = {FOLLOW_OPTS(o), {0}};
    struct err e = ERR_INIT;
    void *u = NULL;
    int rc;
    const struct deployment *d = subject(c, opts, &o, &rc);
    if (!d)
        return rc;
    if (set_paused(c, d->id, false, &u, &e))
        return cmd_fail(c, "Error resuming deployment: %s", e.text);
    cmd_say(c, "Deployment \"%s\" resumed", d->id);
    return follow(c, &o, u, true);
}

int
cmd_deployment_unblock(struct cmd *c)
{
    struct follow o = {.detach = false};
    const struct opt opts[] = {FOLLOW_OPTS(o), {0}};
    struct err e = ERR_INIT;
    void *u = NULL;
    int rc;
    const struct deployment *d = subject(c, opts, &o, &rc);
    if (!d)
        return rc;
    struct deployment_unblock_request req = {.deployment_id = d->id};
    if (api_send(c, "PUT", api_target(c, "/v1/deployment/unblock/%", d->id, NULL),
                 &type_deployment_unblock_request, &req, &type_deployment_update_response, &u, &e))
        return cmd_fail(c, "Error unblocking deployment: %s", e.text);
    cmd_say(c, "Deployment \"%s\" unblocked", d->id);
    return follow(c, &o, u, true);
}

int
cmd_deployment_fail(struct cmd *c)
{
    struct follow o = {.detach = false};
    const struct opt opts[] = {FOLLOW_OPTS(o), {0}};
    struct err e = ERR_INIT;
    void *ret = NULL;
    int rc;
    const struct deployment *d = subject(c, opts, &o, &rc);
    if (!d)
        return rc;
    if (api_send(c, "PUT", api_target(c, "/v1/deployment/fail/%", d->id, NULL), NULL, NULL,
                 &type_deployment_update_response, &ret, &e))
        return cmd_fail(c, "Error failing deployment: %s", e.text);
    const struct deployment_update_response *u = ret;
    if (u && u->reverted_job_version.set)
        cmd_say(c, "Deployment \"%s\" failed. Auto-reverted to job version %lld.", d->id,
                (long long)u->reverted_job_version.v);
    else
        cmd_say(c, "Deployment \"%s\" failed", d->id);
    return follow(c, &o, u, true);
}

static int
promote(struct cmd *c, const char *id, const struct opt_list *groups, void **ret, struct err *e)
{
    struct deployment_promote_request req = {
        .deployment_id = id, .all = groups->n == 0, .groups = {groups->v, groups->n}};
    return api_send(c, "PUT", api_target(c, "/v1/deployment/promote/%", id, NULL),
                    &type_deployment_promote_request, &req, &type_deployment_update_response, ret,
                    e);
}

#define GROUP_OPT(g)                                                                               \
    {                                                                                              \
        "group", OPT_LIST, &(g), "<group>",                                                        \
            "Promote this group only; may be given more than once."                                \
    }

int
cmd_deployment_promote(struct cmd *c)
{
    struct follow o = {.detach = false};
    struct opt_list groups = {NULL, 0};
    const struct opt opts[] = {GROUP_OPT(groups), FOLLOW_OPTS(o), {0}};
    struct err e = ERR_INIT;
    void *u = NULL;
    int rc;
    const struct deployment *d = subject(c, opts, &o, &rc);
    if (!d)
        return rc;
    if (promote(c, d->id, &groups, &u, &e))
        return cmd_fail(c, "Error promoting deployment: %s", e.text);
    return follow(c, &o, u, false);
}

/* --- of a job --- */

int
cmd_job_promote(struct cmd *c)
{
    struct follow o = {.detach = false};
    struct opt_list groups = {NULL, 0};
    const struct opt opts[] = {GROUP_OPT(groups), FOLLOW_OPTS(o), {0}};
    struct job_list_stub *stub;
    struct deployment *d = NULL;
    struct err e = ERR_INIT;
    void *u = NULL;
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (api_find_job(c, c->args[0], &stub) != API_ONE)
        return 1;
    if (deployments_latest(c, stub->id, &d, &e))
        return cmd_fail(c, "Error retrieving deployment: %s", e.text);
    if (!d)
        return cmd_fail(c, "Job \"%s\" has no deployment to promote", stub->id);
    if (promote(c, d->id, &groups, &u, &e))
        return cmd_fail(c, "Error promoting deployment \"%s\" for job \"%s\": %s", d->id, stub->id,
                        e.text);
    return follow(c, &o, u, false);
}

int
cmd_job_deployments(struct cmd *c)
{
    bool latest = false, all = false, verbose = false;
    struct output out = {false, NULL};
    const struct opt opts[] = {
        {"latest", OPT_BOOL, &latest, NULL, "Show the latest deployment alone."},
        {"all", OPT_BOOL, &all, NULL, "Deployments of an earlier job of this id too."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids."},
        OUTPUT_OPTS(out),
        {0}};
    struct job_list_stub *stub;
    struct deployment_list l;
    struct deployment *d = NULL;
    struct err e = ERR_INIT;
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (api_find_job(c, c->args[0], &stub) != API_ONE)
        return 1;
    if (latest) {
        if (deployments_latest(c, stub->id, &d, &e))
            return cmd_fail(c, "Error retrieving deployments: %s", e.text);
        if (d && output_object(c, &out, &type_deployment, d, &rc))
            return rc;
        if (!d && output_value(c, &out, value_null(c), &rc))
            return rc;
        deployments_show(c, d, verbose, false);
        return 0;
    }
    char *target =
        api_target(c, "/v1/job/%/deployments", stub->id, "all", all ? "true" : NULL, NULL);
    if (deployments_get(c, target, &l, &e))
        return cmd_fail(c, "Error retrieving deployments: %s", e.text);
    if (output_list(c, &out, &type_deployment, &l, &rc))
        return rc;
    deployments_list(c, &l, verbose);
    return 0;
}
