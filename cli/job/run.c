/* SPDX-License-Identifier: Apache-2.0
 *
 * job run, job validate, job init. run: read the file, submit the job, follow its evaluation.
 * validate: the servers check the job; -strict refuses what run does.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "api/terms.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/job/job.h"
#include "cli/jobfile.h"
#include "cli/monitor.h"
#include "common/fd.h"
#include "common/num.h"

/* --- run --- */

struct run_opts {
    struct jobfile_opts file;
    bool detach, verbose, output, policy_override, preserve_counts, preserve_resources, ui;
    const char *check_index, *consul_namespace;
    int64_t eval_priority;
};

static int
print_job(struct cmd *c, const struct job *j)
{
    auto_buf struct buf b = BUF_INIT(64 << 20);
    struct job_register_request req = {.job = (struct job *)(uintptr_t)j};
    /* only what the request body of the API has; Nomad takes "" for said, and refuses it */
    buf_puts(&b, "{\"Job\":");
    json_encode(&b, &type_job, req.job, JSON_UNSAID);
    buf_putc(&b, '}');
    struct value *v = NULL;
    struct err e = ERR_INIT;
    if (buf_error(&b) || json_decode_value(c, SLICE(b.data, b.len), BUDGET(256 << 20), &v, &e))
        return cmd_fail(c, "Error converting job: %s", e.text);
    int code = 0;
    output_value(c, &(struct output){.json = true}, v, &code);
    return code;
}

/* Somebody else's change is not an error of the agent: its words alone, as Nomad. */
static int
submit_failed(struct cmd *c, const struct err *e)
{
    const char *p = strstr(e->text, "(Enforcing job modify index");
    if (!p)
        return cmd_fail(c, "Error submitting job: %s", e->text);
    return cmd_fail(c, "%.*s\nJob not updated", (int)strcspn(p + 1, ")\n"), p + 1);
}

static int
run_submit(struct cmd *c, const struct run_opts *o, struct jobfile *f)
{
    struct job_register_request req = {.job = f->job,
                                       .policy_override = o->policy_override,
                                       .preserve_counts = o->preserve_counts,
                                       .preserve_resources = o->preserve_resources,
                                       .eval_priority = o->eval_priority,
                                       .submission = f->submission};
    struct err e = ERR_INIT;
    void *ret = NULL;
    if (o->check_index) {
        req.enforce_index = true;
        if (num_parse_u64(o->check_index, &req.job_modify_index))
            return cmd_fail(c, "Error parsing check-index value \"%s\": want a number",
                            o->check_index);
    }
    const struct change ch = {.target = api_target(c, "/v1/jobs", NULL),
                              .body_type = &type_job_register_request,
                              .body = &req,
                              .answer = &type_job_register_response};
    if (api_send(c, &ch, &ret, &e))
        return submit_failed(c, &e);
    const struct job_register_response *r = ret;
    if (!r)
        return cmd_fail(c, "Error submitting job: the agent answered null");
    if (!str_empty(r->warnings))
        cmd_say(c, "Job Warnings:\n%s\n", r->warnings);
    if (job_is_parent(f->job)) {
        cmd_say(c, "Job registration successful");
        if (!job_parameterized(f->job))
            job_say_next_launch(c, f->job);
        return 0;
    }
    if (o->detach) {
        cmd_say(c, "Job registration successful\nEvaluation ID: %s", r->eval_id);
        return 0;
    }
    return monitor_run(c, r->eval_id, o->verbose);
}

int
cmd_job_run(struct cmd *c)
{
    struct run_opts o = {.file = JOBFILE_OPTS_INIT};
    const struct opt opts[] = {
        {"check-index", OPT_STRING, &o.check_index, "<index>",
         "Register only if the job's modify index is this one; 0: only if it is new."},
        {"detach", OPT_BOOL, &o.detach, NULL,
         "Return after registration, with the id of the evaluation."},
        {"eval-priority", OPT_INT, &o.eval_priority, "<priority>",
         "Priority of the evaluation, 1 to 100 (default the job's)."},
        {"output", OPT_BOOL, &o.output, NULL,
         "Print the JSON that would be submitted, and submit nothing."},
        {"policy-override", OPT_BOOL, &o.policy_override, NULL, "Sent along; without effect here."},
        {"preserve-counts", OPT_BOOL, &o.preserve_counts, NULL,
         "Keep the counts of groups as they are now."},
        {"preserve-resources", OPT_BOOL, &o.preserve_resources, NULL,
         "Keep the resources of tasks as they are now."},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Show full ids."},
        {"consul-namespace", OPT_STRING, &o.consul_namespace, "<namespace>",
         "Stored with the job; without effect here."},
        {"ui", OPT_BOOL, &o.ui, NULL, "Without effect: the command ui prints the address."},
        JOBFILE_OPTS(o.file),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    struct jobfile f = {NULL, NULL};
    if (jobfile_load(c, &o.file, c->args[0], &f))
        return 1;
    if (o.consul_namespace)
        f.job->consul_namespace = o.consul_namespace;
    if (o.eval_priority < 0 || o.eval_priority > 100)
        return cmd_fail(c, "Error submitting job: -eval-priority must be between 1 and 100");
    if (o.output)
        return print_job(c, f.job);
    struct job_findings found = {.errors = {0}};
    job_check(c, f.job, &found);
    return job_refuse(c, f.job, &found) ? 1 : run_submit(c, &o, &f);
}

/* --- validate --- */

/* The job that is registered under that ID is of another kind: a plan is refused as `run` is. */
static bool
cannot_become(struct cmd *c, const struct job *job)
{
    struct job_register_request req = {.job = codec_clone(c, &type_job, job)};
    const struct change ch = {.target = api_target(c, "/v1/job/%/plan", job->id, NULL),
                              .body_type = &type_job_register_request,
                              .body = &req};
    struct err e = ERR_INIT;
    if (api_send(c, &ch, NULL, &e) >= 0)
        return false;
    cmd_warn(c, "Error validating job: %s", e.text);
    return true;
}

int
cmd_job_validate(struct cmd *c)
{
    struct jobfile_opts o = JOBFILE_OPTS_INIT;
    bool strict = false;
    const struct opt opts[] = {
        JOBFILE_OPTS(o),
        {"strict", OPT_BOOL, &strict, NULL,
         "Fail on whatever job run would refuse, and on a driver that no node can have."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts,
                   &(struct cmd_args){.client = true, .min = 1, .max = 1, .usage_code = 255}, &rc))
        return rc;
    struct jobfile f = {NULL, NULL};
    if (jobfile_load(c, &o, c->args[0], &f))
        return 1;
    struct job_register_request req = {.job = f.job};
    const struct change ch = {.target = api_target(c, "/v1/validate/job", NULL),
                              .body_type = &type_job_register_request,
                              .body = &req,
                              .answer = &type_job_validate_response,
                              .failed = "Error validating job"};
    const struct job_validate_response *r = api_change(c, &ch);
    if (!r)
        return 1;
    struct job_findings found = {.errors = r->validation_errors};
    struct str_list drivers = {0};
    if (found.errors.n == 0 && !str_empty(r->error))
        list_add(c, found.errors, r->error);
    job_check(c, f.job, &found);
    if (!strict) {
        drivers = found.drivers;
        found.drivers = found.later = (struct str_list){0}; /* the servers warn of the latter */
    }
    if (job_refuse(c, NULL, &found) || (strict && cannot_become(c, f.job)))
        return 1;
    for (size_t i = 0; i < drivers.n; i++)
        cmd_say(c, "%s  * %s", i == 0 ? "Job Warnings:\n" : "", drivers.v[i]);
    if (!str_empty(r->warnings))
        cmd_say(c, "Job Warnings:\n%s\n", r->warnings);
    cmd_say(c, "Job validation successful");
    return 0;
}

/* --- init --- */

static const char example_short[] =
    "job \"example\" {\n"
    "  group \"web\" {\n"
    "    network {\n"
    "      port \"http\" {}\n"
    "    }\n"
    "\n"
    "    task \"server\" {\n"
    "      driver = \"exec\"\n"
    "\n"
    "      config {\n"
    "        command = \"/usr/bin/python3\"\n"
    "        args    = [\"-m\", \"http.server\", \"${NOMAD_PORT_http}\"]\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "}\n";

static const char example_long[] =
    "# An example job: a web server in its own sandbox. Try:\n"
    "#   paddock job plan example.nomad.hcl      what would happen\n"
    "#   paddock job run example.nomad.hcl       make it happen\n"
    "#   paddock job status example              see where it runs\n"
    "job \"example\" {\n"
    "  # \"service\" runs for ever, \"batch\" until it is done.\n"
    "  type = \"service\"\n"
    "\n"
    "  # Where it may run. \"*\" matches any datacenter.\n"
    "  datacenters = [\"*\"]\n"
    "\n"
    "  # A group is what is placed on one node together. `count` says how many times.\n"
    "  group \"web\" {\n"
    "    count = 1\n"
    "\n"
    "    # A port of the host, chosen by the scheduler. The task finds its number in\n"
    "    # $NOMAD_PORT_http; add `static = 8080` to ask for a certain one.\n"
    "    network {\n"
    "      port \"http\" {}\n"
    "    }\n"
    "\n"
    "    # What happens on the node when the task ends by itself.\n"
    "    restart {\n"
    "      attempts = 2\n"
    "      interval = \"30m\"\n"
    "      delay    = \"15s\"\n"
    "      mode     = \"fail\"\n"
    "    }\n"
    "\n"
    "    # A task is one program. \"exec\" runs it in its own namespaces, without privileges,\n"
    "    # with a read-only view of the host's programs.\n"
    "    task \"server\" {\n"
    "      driver = \"exec\"\n"
    "\n"
    "      config {\n"
    "        command = \"/usr/bin/python3\"\n"
    "        args    = [\"-m\", \"http.server\", \"${NOMAD_PORT_http}\"]\n"
    "      }\n"
    "\n"
    "      env {\n"
    "        PYTHONUNBUFFERED = \"1\"\n"
    "      }\n"
    "\n"
    "      logs {\n"
    "        max_files     = 3\n"
    "        max_file_size = 5\n"
    "      }\n"
    "\n"
    "      resources {\n"
    "        cpu    = 100 # MHz\n"
    "        memory = 64  # MiB\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "}\n";

int
cmd_job_init(struct cmd *c)
{
    bool brief = false;
    const struct opt opts[] = {
        {"short", OPT_BOOL, &brief, NULL, "Write a minimal file without comments."}, {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.max = 1}, &rc))
        return rc;
    const char *path = c->n_args ? c->args[0] : "example.nomad.hcl";
    const char *text = brief ? example_short : example_long;
    if (jobfile_example(c, "Job file", path, text) < 0)
        return 1;
    cmd_say(c, "Example job file written to %s", path);
    return 0;
}
