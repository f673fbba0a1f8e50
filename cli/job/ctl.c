/* SPDX-License-Identifier: Apache-2.0
 *
 * job stop, job start, job eval.
 */
#include <unistd.h>

#include "api/terms.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/job/job.h"
#include "cli/monitor.h"

/* --- stop --- */

struct stop_opts {
    struct follow follow;
    bool global, no_shutdown_delay, yes, purge;
    int64_t eval_priority;
};

static int
stop_job(struct cmd *c, const struct stop_opts *o, const char *prefix)
{
    const struct job_list_stub *stub = api_find_job(c, prefix);
    if (!stub)
        return 1;
    bool named = o->yes || str_eq(stub->id, prefix);
    if (!named && c->in == stdin && !isatty(STDIN_FILENO))
        return cmd_fail(c,
                        "\"%s\" is only the beginning of \"%s\", and nobody can be asked without a "
                        "terminal: give the whole id, or -yes",
                        prefix, stub->id);
    if (!named && !cmd_confirm(c, mem_printf(c, "Stop job \"%s\"?", stub->id))) {
        cmd_say(c, "Job \"%s\" was not stopped", stub->id);
        return 0;
    }
    char *target = api_target(c, "/v1/job/%", stub->id, "purge", o->purge ? "true" : NULL, "global",
                              o->global ? "true" : NULL, "eval_priority",
                              o->eval_priority ? fmt_i64(c, o->eval_priority) : NULL,
                              "no_shutdown_delay", o->no_shutdown_delay ? "true" : NULL, NULL);
    const struct change stop = {
        "DELETE", target, .answer = &type_job_deregister_response,
        .failed = mem_printf(c, "Error deregistering job with id \"%s\"", stub->id)};
    return monitor_change(c, &o->follow, &stop, "");
}

int
cmd_job_stop(struct cmd *c)
{
    struct stop_opts o = {.purge = false};
    const struct opt opts[] = {
        {"detach", OPT_BOOL, &o.follow.detach, NULL,
         "Return at once, with the id of the evaluation."},
        {"eval-priority", OPT_INT, &o.eval_priority, "<priority>",
         "Priority of the evaluation, 1 to 100 (default the job's)."},
        {"global", OPT_BOOL, &o.global, NULL, "Stop a multiregion job everywhere."},
        {"no-shutdown-delay", OPT_BOOL, &o.no_shutdown_delay, NULL,
         "Do not wait for the shutdown delay of groups and tasks."},
        {"purge", OPT_BOOL, &o.purge, NULL, "Forget the job too."},
        {"yes", OPT_BOOL, &o.yes, NULL, "Do not ask."},
        VERBOSE_OPT(o.follow),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = SIZE_MAX}, &rc))
        return rc;
    int worst = 0;
    const char *namespace = c->namespace;
    for (size_t i = 0; i < c->n_args; i++) {
        c->namespace = namespace; /* not that of the job before */
        rc = stop_job(c, &o, c->args[i]);
        worst = rc > worst ? rc : worst;
    }
    return worst;
}

/* --- eval --- */

int
cmd_job_eval(struct cmd *c)
{
    struct follow o = {.detach = false};
    bool force = false;
    const struct opt opts[] = {
        FOLLOW_OPTS(o),
        {"force-reschedule", OPT_BOOL, &force, NULL,
         "Place failed allocations again now, whatever their reschedule block says."},
        {0}};
    int rc;
    const char *id = api_job_arg(c, opts, &rc);
    if (!id)
        return rc;
    struct eval_options eo = {.force_reschedule = force};
    struct job_evaluate_request req = {.job_id = id, .eval_options = &eo};
    const struct job_register_response *r = api_change(
        c, &(struct change){NULL, api_target(c, "/v1/job/%/evaluate", id, NULL),
                            &type_job_evaluate_request, &req, &type_job_register_response,
                            "Error evaluating job"});
    if (!r || !o.detach)
        return r ? monitor_eval(c, r->eval_id, o.verbose) : 1;
    cmd_say(c, "Created eval ID: \"%s\"", fmt_id(c, r->eval_id, o.verbose));
    return 0;
}

/* --- start --- */

int
cmd_job_start(struct cmd *c)
{
    struct follow o = {.detach = false};
    const struct opt opts[] = {FOLLOW_OPTS(o), {0}};
    int rc;
    const char *id = api_job_arg(c, opts, &rc);
    if (!id)
        return rc;
    struct job *j =
        api_read(c, api_target(c, "/v1/job/%", id, NULL), &type_job, "Error querying job");
    if (!j)
        return 1;
    if (!j->stop)
        return cmd_fail(c, "Job \"%s\" has not been stopped", j->id);
    j->stop = false;
    struct job_register_request req = {.job = j};
    const struct job_register_response *r = api_change(
        c, &(struct change){NULL, api_target(c, "/v1/jobs", NULL), &type_job_register_request, &req,
                            &type_job_register_response,
                            mem_printf(c, "Error starting job \"%s\"", j->id)});
    if (!r)
        return 1;
    if (!o.detach && !job_is_parent(j))
        return monitor_eval(c, r->eval_id, o.verbose);
    cmd_say(c, "Job start successful");
    if (!job_is_parent(j))
        cmd_say(c, "Evaluation ID: %s", r->eval_id);
    else if (!job_parameterized(j))
        job_say_next_launch(c, j);
    return 0;
}
