/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: jobs, where a line of the schema is not all. Versions come one by one from the servers
 * and are put together while they are sent; a body with a job is decoded on a worker when it is
 * large, and a job file is parsed there; tags have a path that only its own function can read. The
 * table of routes is at the end.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/api/api.h"
#include "agent/limits.h"
#include "api/canonical.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/random.h"
#include "common/str.h"
#include "jobspec/jobspec.h"

/* --- versions --- */

/* The versions of a job, then the differences between them: put together of one answer for each. */
struct versions {
    struct parts parts;
    struct id_request *req;
    uint64_t newest;
    bool diffs; /* they are asked for */
    bool begun, in_diffs;
};

static void
end_versions(struct request *a, struct versions *v)
{
    const struct query_meta *m = &v->parts.meta;

    buf_printf(&v->parts.held,
               "%s,\"Index\":%" PRIu64 ",\"LastContact\":%" PRId64
               ",\"KnownLeader\":%s,\"NextToken\":\"\"}%s",
               !v->in_diffs ? ",\"Diffs\":null"
               : v->begun   ? "]"
                            : "null",
               m->index, m->last_contact, m->known_leader ? "true" : "false",
               a->pretty ? "\n" : "");
    parts_end(a);
}

/* After the comma that the encoder puts before a row. */
static void
put_row(struct request *a, struct versions *v, const struct type *t, const void *obj)
{
    struct buf *b = &v->parts.held;
    size_t at = b->len;

    json_encode_row(b, t, obj, JSON_HIDE_SECRETS | (a->pretty ? JSON_PRETTY : 0));
    if (!v->begun && !buf_error(b))
        b->data[at] = '[';
    v->begun = true;
}

static void
versions_part(struct request *a, const void *resp)
{
    const struct job_versions_response *r = resp;
    struct versions *v = (struct versions *)(void *)a->parts;

    if (v->parts.meta.index == 0) {
        v->parts.meta = (struct query_meta){
            .index = r->index, .last_contact = r->last_contact, .known_leader = r->known_leader};
        if (r->versions.n == 0) {
            reply_meta(a, &v->parts.meta);
            reply_fail(a, 404, "job versions not found");
            return;
        }
        v->newest = r->versions.v[0]->job_modify_index;
        buf_puts(&v->parts.held, "{\"Versions\":");
    }
    for (size_t i = 0; i < r->versions.n; i++)
        put_row(a, v, &type_job, r->versions.v[i]);
    for (size_t i = 0; i < r->diffs.n; i++)
        put_row(a, v, &type_job_diff, r->diffs.v[i]);
    a->env.min_index = 0; /* the other parts are there */
    bool last = str_empty(r->next_token);
    if (!last)
        a->asked.next_token = mem_printf(v, "%s%s", r->next_token, v->in_diffs ? ".diff" : "");
    if (last && !v->in_diffs)
        buf_putc(&v->parts.held, ']');
    if (last && !v->in_diffs && v->diffs) {
        buf_puts(&v->parts.held, ",\"Diffs\":");
        a->asked.next_token = mem_printf(v, "%" PRIu64 ".diff", v->newest);
        v->in_diffs = true;
        v->begun = last = false;
    }
    if (last)
        end_versions(a, v);
    else
        parts_more(a);
}

static void
ask_version(struct request *a)
{
    call_server(a, RPC_JOB_VERSIONS, ((struct versions *)(void *)a->parts)->req, versions_part);
}

static void
job_versions(struct request *a)
{
    struct id_request *r = request_by_id(a);
    struct versions *v = mem_new(a, struct versions);

    if (!param_bool(a, "diffs", &v->diffs))
        return;
    if (v->diffs && (http_query(a->req, "diff_tag") || http_query(a->req, "diff_version"))) {
        reply_fail(a, 501,
                   "versions are compared with the one before them only: ask without diff_tag "
                   "and diff_version");
        return;
    }
    r->list = &a->asked;
    v->req = r;
    v->parts.ask = ask_version;
    parts_begin(a, &v->parts);
}

/* --- writes --- */

/* Namespace: query, then the job's; region: query, then the job's, where "global" means ours. */
static bool
any_job(struct request *a, struct job_register_request *r)
{
    if (!r->job) {
        reply_fail(a, 400, "Job must be specified");
        return false;
    }
    const char *ns = http_query(a->req, "namespace");
    if (!str_empty(ns))
        r->job->namespace = ns;
    else if (!str_empty(r->job->namespace))
        a->env.namespace = r->job->namespace;
    if (!str_empty(http_query(a->req, "region")) || str_empty(r->job->region) ||
        str_eq(r->job->region, "global"))
        r->job->region = a->env.region;
    a->env.region = r->job->region;
    return true;
}

static bool
priority_ok(struct request *a, int64_t eval_priority)
{
    if (eval_priority >= 0 && eval_priority <= 100)
        return true;
    reply_fail(a, 400, "Eval priority must be between 1 and 100 inclusively");
    return false;
}

/* Registered, planned or validated; the last without an ID, too: that is an error to tell. */
static void
take_job(struct request *a, void *body)
{
    struct job_register_request *r = body;
    enum rpc_id rpc = a->route->rpc;
    if (!any_job(a, r))
        return;
    record_object(a, r->job->id, a->env.namespace);
    if (rpc == RPC_JOB_VALIDATE)
        call_server(a, rpc, r, method_done);
    else if (str_empty(r->job->id))
        reply_fail(a, 400, "Job ID hasn't been provided");
    else if (!priority_ok(a, r->eval_priority))
        return;
    else if (a->route->suffix && !str_eq(r->job->id, a->id))
        reply_fail(a, 400, "Job ID does not match%s", rpc == RPC_JOB_PLAN ? "" : " name");
    else
        call_server(a, rpc, r, method_done);
}

static void
with_job(struct request *a)
{
    request_large_body(a, &type_job_register_request, take_job);
}

static void
job_delete(struct request *a)
{
    int64_t priority = 0;

    if (param_int(a, "eval_priority", &priority) && priority_ok(a, priority))
        route_call(a);
}

static void
job_evaluate(struct request *a)
{
    struct job_evaluate_request *r = request_body(a, &type_job_evaluate_request, true);
    if (!r)
        return;
    if (!str_empty(r->job_id) && !str_eq(r->job_id, a->id)) {
        reply_fail(a, 400, "JobID not same as job name");
        return;
    }
    r->job_id = a->id;
    call_server(a, RPC_JOB_EVALUATE, r, method_done);
}

/* The body is the payload. */
static void
job_dispatch_payload(struct request *a)
{
    struct job_dispatch_request r = {
        .job_id = a->id,
        .payload = {(uint8_t *)(uintptr_t)a->req->body, a->req->body_len},
        .idempotency_token = http_query(a->req, "idempotency_token"),
    };
    call_server(a, RPC_JOB_DISPATCH, &r, method_done);
}

/* A file may take HCL_STEPS_MAX steps: not on the loop thread, and not on all of the others. */
struct parse {
    struct request *a;
    struct job_parse_request *r;
    void *ctx; /* of the worker */
    struct job *job;
    char *errors;
};

/* Fills in a job as a client of Nomad's does: the update block in full, of which a server keeps the
 * pace, and no datacenters, which are the server's to fill in. */
static void
parse_canonicalize(void *ctx, struct job *job)
{
    struct update_strategy *u = job->update ? codec_clone(ctx, &type_update_strategy, job->update)
                                            : mem_new(ctx, struct update_strategy);
    bool anywhere = job->datacenters.n == 0;

    job_canonicalize(ctx, job);
    if (anywhere)
        job->datacenters = (struct str_list){0};
    if (str_eq(job->type, JOB_SERVICE) || str_eq(job->type, JOB_SYSTEM)) {
        codec_defaults(ctx, &type_update_strategy, u);
        job->update = u;
    }
}

static void
parse_work(void *arg)
{
    struct parse *p = arg;
    const struct job_parse_request *r = p->r;
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct jobspec_file vars = {.name = "variables.hcl", .s = r->variables};
    struct jobspec_input in = {.name = "input.hcl",
                               .s = r->job_hcl,
                               .n = strlen(r->job_hcl),
                               .lenient = true,
                               .random = rand_bytes};
    if (!str_empty(r->variables)) {
        vars.n = strlen(r->variables);
        in.var_files = &vars;
        in.n_var_files = 1;
    }
    p->ctx = mem_ctx("parse");
    if (jobspec_parse(p->ctx, &in, &p->job, &d) < 0)
        p->errors = hcl_diags_text(p->ctx, &d, false);
    else if (r->canonicalize)
        parse_canonicalize(p->ctx, p->job);
}

static void
parse_done(void *arg)
{
    struct parse *p = arg;
    void *ctx = p->ctx;
    p->a->api->parsing--;
    p->a->unsaid = !p->r->canonicalize;
    if (p->errors)
        reply_fail(p->a, 400, "Failed to parse job: %s", p->errors);
    else
        reply_json(p->a, &type_job, p->job);
    talloc_free(ctx); /* `p` went with the answer */
}

static void
jobs_parse(struct request *a)
{
    struct job_parse_request *r = request_body(a, &type_job_parse_request, false);

    if (!r || !request_may(a, a->env.namespace))
        return;
    if (str_empty(r->job_hcl)) {
        reply_fail(a, 400, "Job spec is empty");
        return;
    }
    if (a->api->parsing == API_PARSES_MAX) {
        struct err e = ERR_INIT;
        err_set(&e, -ERR_BUSY, "more than %d job files are being parsed: try again",
                API_PARSES_MAX);
        reply_error(a, &e);
        return;
    }
    struct parse *p = mem_new(a, struct parse);
    p->a = a;
    p->r = r;
    a->api->parsing++;
    loop_work(a->api->loop, parse_work, parse_done, p);
}

/* --- one version --- */

/* "/v1/job/ID/versions/NAME/tag" */
static struct job_apply_tag_request *
tag_request(struct request *a, struct job_apply_tag_request *r)
{
    const char *at = NULL;

    for (const char *p = strstr(a->id, "/versions/"); p != NULL; p = strstr(p + 1, "/versions/"))
        at = p;
    if (at == NULL || at == a->id || at[strlen("/versions/")] == '\0') {
        reply_fail(a, 404, "invalid job tag endpoint");
        return NULL;
    }
    r->job_id = mem_strndup(a, a->id, (size_t)(at - a->id));
    r->name = at + strlen("/versions/");
    return r;
}

static void
job_tag(struct request *a)
{
    struct job_apply_tag_request *r = mem_new(a, struct job_apply_tag_request);

    if (tag_request(a, r) == NULL)
        return;
    if (a->req->method == METHOD_DELETE) {
        call_server(a, RPC_JOB_TAG_VERSION, r, method_done);
        return;
    }
    const struct tag_version_body *body = request_body(a, &type_tag_version_body, false);
    if (body == NULL)
        return;
    r->version = body->version;
    r->latest = body->latest;
    r->tag = mem_new(r, struct job_version_tag);
    r->tag->name = r->name;
    r->tag->description = body->description;
    call_server(a, RPC_JOB_TAG_VERSION, r, method_done);
}

static void
submission_done(struct request *a, const void *resp)
{
    const struct job_submission_response *r = resp;

    reply_object(a, &type_job_submission, r->submission, r->meta, "job source not found");
}

static void
job_submission(struct request *a)
{
    struct job_submission_request *r = mem_new(a, struct job_submission_request);
    const char *version = http_query(a->req, "version");

    r->job_id = a->id;
    if (str_empty(version) || num_parse_u64(version, &r->version) < 0)
        reply_fail(a, 400, "Unable to parse job submission version parameter");
    else
        call_server(a, RPC_JOB_SUBMISSION, r, submission_done);
}

static void
actions_done(struct request *a, const void *resp)
{
    const struct job_response *r = resp;
    struct object_list l = {NULL, 0};

    reply_meta(a, r->meta);
    if (r->job == NULL) {
        reply_fail(a, 404, "job not found");
        return;
    }
    for (size_t g = 0; g < r->job->task_groups.n; g++) {
        const struct task_group *tg = r->job->task_groups.v[g];
        for (size_t t = 0; t < tg->tasks.n; t++)
            for (size_t i = 0; i < tg->tasks.v[t]->actions.n; i++) {
                const struct action *x = tg->tasks.v[t]->actions.v[i];
                struct job_action *to = mem_new(a, struct job_action);
                *to = (struct job_action){x->name, x->command, x->args, tg->tasks.v[t]->name,
                                          tg->name};
                list_add(a, l, to);
            }
    }
    reply_rows(a, &type_job_action, &l);
}

static void
job_actions(struct request *a)
{
    call_server(a, RPC_JOB_GET_JOB, request_by_id(a), actions_done);
}

static void
statuses_done(struct request *a, const void *resp)
{
    const struct job_statuses_response *r = resp;

    reply_meta(a, r->meta);
    reply_rows(a, &type_job_statuses_job, &r->jobs);
}

/* Takes the namespace of the jobs in the body, where they are of the same. */
static void
jobs_statuses(struct request *a)
{
    bool body = a->req->method != METHOD_GET && a->req->method != METHOD_HEAD;
    struct job_statuses_request *r = body ? request_body(a, &type_job_statuses_request, true)
                                          : mem_new(a, struct job_statuses_request);

    if (r == NULL || !param_bool(a, "include_children", &r->include_children))
        return;
    r->list = &a->list;
    bool same = r->jobs.n > 0;
    for (size_t i = 1; i < r->jobs.n; i++)
        same &= str_eq(str_or(r->jobs.v[i]->namespace, ""), str_or(r->jobs.v[0]->namespace, ""));
    if (same && !str_empty(r->jobs.v[0]->namespace))
        a->env.namespace = r->jobs.v[0]->namespace;
    call_server(a, RPC_JOB_STATUSES, r, statuses_done);
}

const struct route routes_job[] = {
    {VERB_GET | VERB_WRITE, "/v1/jobs/statuses", NULL, jobs_statuses, RPC_JOB_STATUSES, BY_SERVER},
    {VERB_WRITE | VERB_DELETE, "/v1/job/", "/tag", job_tag, RPC_JOB_TAG_VERSION, BY_SERVER},
    {VERB_GET, "/v1/job/", "/actions", job_actions, RPC_JOB_GET_JOB, BY_SERVER},
    {VERB_GET | VERB_UNSAFE | VERB_SESSION, "/v1/job/", "/action", job_action, 0, "alloc-exec"},
    {VERB_GET, "/v1/job/", "/submission", job_submission, RPC_JOB_SUBMISSION, BY_SERVER},
    {VERB_WRITE, "/v1/jobs", NULL, with_job, RPC_JOB_REGISTER, BY_SERVER},
    {VERB_WRITE, "/v1/jobs/parse", NULL, jobs_parse, 0, "parse-job|submit-job"},
    {VERB_WRITE, "/v1/validate/job", NULL, with_job, RPC_JOB_VALIDATE, BY_SERVER},
    {VERB_WRITE, "/v1/job/", "/plan", with_job, RPC_JOB_PLAN, BY_SERVER},
    {VERB_WRITE, "/v1/job/", "/evaluate", job_evaluate, RPC_JOB_EVALUATE, BY_SERVER},
    {VERB_WRITE, "/v1/job/", "/dispatch/payload", job_dispatch_payload, RPC_JOB_DISPATCH,
     BY_SERVER},
    {VERB_GET, "/v1/job/", "/versions", job_versions, RPC_JOB_VERSIONS, BY_SERVER},
    {VERB_WRITE, "/v1/job/", "", with_job, RPC_JOB_REGISTER, BY_SERVER},
    {VERB_DELETE, "/v1/job/", "", job_delete, RPC_JOB_DEREGISTER, BY_SERVER},
    ROUTES_END,
};
