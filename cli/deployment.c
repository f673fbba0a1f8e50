/* SPDX-License-Identifier: Apache-2.0
 *
 * deployment list, status, pause, resume, promote, fail, unblock.
 */
#include "cli/api.h"
#include "cli/deployments.h"
#include "cli/format.h"
#include "cli/monitor.h"
#include "common/duration.h"
#include "common/uuid.h"

/* By its id or a prefix of it; NULL: said. */
static struct deployment *
deployment_find(struct cmd *c, const char *prefix, bool verbose)
{
    struct deployment_list l;
    struct err e = ERR_INIT;
    size_t n = strlen(prefix), digits = 0;
    for (size_t i = 0; i < n; i++)
        digits += prefix[i] != '-';
    if (digits < 2) {
        cmd_fail(c,
                 "Error retrieving deployment: Identifier must contain at least two characters.");
        return NULL;
    }
    if (n + 1 == UUID_TEXT)
        return api_read(c, api_target(c, "/v1/deployment/%", prefix, NULL), &type_deployment,
                        "Error retrieving deployment");
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
        {"ui", OPT_BOOL, &ui, NULL, "Without effect: the command ui prints the address."},
        OUTPUT_OPTS(out),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (monitor && (out.json || out.tmpl))
        return cmd_fail(c, "The monitor flag cannot be used with the '-json' or '-t' flags");
    if (c->n_args == 0)
        return list_all(c, &out, NULL, verbose);
    const struct deployment *d = deployment_find(c, c->args[0], verbose);
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

#define PROMOTE_OPTS(groups, follow)                                                               \
    {"group", OPT_LIST, &(groups), "<group>",                                                      \
     "Promote this group only; may be given more than once."},                                     \
        FOLLOW_OPTS(follow), {0}

/* The commands that change one deployment. Each has the options of promote, but for the first ones.
 */
static const struct verb {
    const char *command, *path, *doing, *done; /* NULL: nothing is said */
    const struct type *body;                   /* NULL: there is none */
    size_t skip;
    bool follows;
} verbs[] = {
    {"fail", "fail", "failing", "failed", NULL, 1, true},
    {"pause", "pause", "pausing", "paused", &type_deployment_pause_request, 2, false},
    {"promote", "promote", "promoting", NULL, &type_deployment_promote_request, 0, true},
    {"resume", "pause", "resuming", "resumed", &type_deployment_pause_request, 1, true},
    {"unblock", "unblock", "unblocking", "unblocked", &type_deployment_unblock_request, 1, true},
};

static const struct deployment_update_response *
deployment_change(struct cmd *c, const struct verb *v, const char *id,
                  const struct opt_list *groups, const char *failed)
{
    struct deployment_pause_request pause = {.deployment_id = id, .pause = !v->follows};
    struct deployment_promote_request promote = {
        .deployment_id = id, .all = groups->n == 0, .groups = {groups->v, groups->n}};
    struct deployment_unblock_request unblock = {.deployment_id = id};
    const void *body = v->body == &type_deployment_pause_request     ? (const void *)&pause
                       : v->body == &type_deployment_promote_request ? (const void *)&promote
                                                                     : &unblock;
    return api_change(c, &(struct change){
                             NULL, api_target(c, "/v1/deployment/%/%", v->path, id, NULL), v->body,
                             body, &type_deployment_update_response, failed});
}

int
cmd_deployment_change(struct cmd *c)
{
    struct follow o = {.detach = false};
    struct opt_list groups = {NULL, 0};
    const struct opt opts[] = {PROMOTE_OPTS(groups, o)};
    const struct verb *v = verbs;
    int rc;
    while (!str_suffix(c->command->name, v->command))
        v++;
    if (!cmd_parse(c, opts + v->skip, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const struct deployment *d = deployment_find(c, c->args[0], o.verbose);
    if (!d)
        return 1;
    c->namespace = str_or(d->namespace, c->namespace);
    const struct deployment_update_response *u =
        deployment_change(c, v, d->id, &groups, mem_printf(c, "Error %s deployment", v->doing));
    if (!u)
        return 1;
    if (v->done && u->reverted_job_version.set)
        cmd_say(c, "Deployment \"%s\" %s. Auto-reverted to job version %lld.", d->id, v->done,
                (long long)u->reverted_job_version.v);
    else if (v->done)
        cmd_say(c, "Deployment \"%s\" %s", d->id, v->done);
    if (!v->follows)
        return 0;
    if (v->done && !o.detach && !str_empty(u->eval_id))
        cmd_say(c, "%s", "");
    return monitor_follow(c, &o, u->eval_id, "Evaluation ID: ");
}

/* --- of a job --- */

int
cmd_job_promote(struct cmd *c)
{
    struct follow o = {.detach = false};
    struct opt_list groups = {NULL, 0};
    const struct opt opts[] = {PROMOTE_OPTS(groups, o)};
    struct deployment *d = NULL;
    struct err e = ERR_INIT;
    int rc;
    const char *id = api_job_arg(c, opts, &rc);
    if (!id)
        return rc;
    if (deployments_latest(c, id, &d, &e))
        return cmd_fail(c, "Error retrieving deployment: %s", e.text);
    if (!d)
        return cmd_fail(c, "Job \"%s\" has no deployment to promote", id);
    const struct deployment_update_response *u = deployment_change(
        c, &verbs[2], d->id, &groups,
        mem_printf(c, "Error promoting deployment \"%s\" for job \"%s\"", d->id, id));
    return u ? monitor_follow(c, &o, u->eval_id, "Evaluation ID: ") : 1;
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
    struct deployment_list l;
    struct deployment *d = NULL;
    struct err e = ERR_INIT;
    int rc;
    const char *id = api_job_arg(c, opts, &rc);
    if (!id)
        return rc;
    if (latest) {
        if (deployments_latest(c, id, &d, &e))
            return cmd_fail(c, "Error retrieving deployments: %s", e.text);
        if (d && output_object(c, &out, &type_deployment, d, &rc))
            return rc;
        if (!d && output_value(c, &out, value_null(c), &rc))
            return rc;
        deployments_show(c, d, verbose, false);
        return 0;
    }
    char *target = api_target(c, "/v1/job/%/deployments", id, "all", all ? "true" : NULL, NULL);
    if (deployments_get(c, target, &l, &e))
        return cmd_fail(c, "Error retrieving deployments: %s", e.text);
    if (output_list(c, &out, &type_deployment, &l, &rc))
        return rc;
    deployments_list(c, &l, verbose);
    return 0;
}
