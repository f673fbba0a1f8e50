/* SPDX-License-Identifier: Apache-2.0
 *
 * job status, job stop, job inspect.
 */
#include "api/terms.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/monitor.h"
#include "cli/views.h"
#include "common/num.h"

/* --- status --- */

struct status_opts {
    bool brief, evals, all, verbose, ui;
    struct output out;
};

static const char *
status_text(struct cmd *c, const char *status, bool stop)
{
    return stop ? mem_printf(c, "%s (stopped)", status) : str_or(status, "");
}

static int
list_jobs(struct cmd *c, const struct status_opts *o)
{
    struct job_list_stub_list l;
    struct err e = ERR_INIT;
    int rc;
    if (api_list(c, api_target(c, "/v1/jobs", NULL), &type_job_list_stub, &l, NULL, &e))
        return cmd_fail(c, "Error querying jobs: %s", e.text);
    if (output_list(c, &o->out, &type_job_list_stub, &l, &rc))
        return rc;
    if (l.n == 0) {
        cmd_say(c, "No running jobs");
        return 0;
    }
    bool all = str_eq(c->namespace, "*");
    struct table t;
    table_init(&t, c, all ? 6 : 5);
    if (all)
        table_row(&t, "ID", "Namespace", "Type", "Priority", "Status", "Submit Date");
    else
        table_row(&t, "ID", "Type", "Priority", "Status", "Submit Date");
    for (size_t i = 0; i < l.n; i++) {
        const struct job_list_stub *j = l.v[i];
        const char *prio = fmt_i64(c, j->priority), *when = fmt_time(c, j->submit_time);
        const char *status = status_text(c, j->status, j->stop);
        if (all)
            table_row(&t, j->id, j->namespace, j->type, prio, status, when);
        else
            table_row(&t, j->id, j->type, prio, status, when);
    }
    table_print(&t);
    return 0;
}

static void
print_summary(struct cmd *c, const char *id)
{
    void *ret = NULL;
    struct err e = ERR_INIT;
    if (api_get(c, api_target(c, "/v1/job/%/summary", id, NULL), &type_job_summary, &ret, NULL, &e)) {
        cmd_warn(c, "Error querying job summary: %s", e.text);
        return;
    }
    const struct job_summary *s = ret;
    struct table t;
    cmd_heading(c, "Summary");
    table_init(&t, c, 8);
    table_row(&t, "Task Group", "Queued", "Starting", "Running", "Failed", "Complete", "Lost",
              "Unknown");
    for (size_t i = 0; i < s->summary.n; i++) {
        const struct task_group_summary *g = s->summary.v[i].v;
        table_row(&t, s->summary.v[i].k, fmt_i64(c, g->queued), fmt_i64(c, g->starting),
                  fmt_i64(c, g->running), fmt_i64(c, g->failed), fmt_i64(c, g->complete),
                  fmt_i64(c, g->lost), fmt_i64(c, g->unknown));
    }
    table_print(&t);
}

static void
print_evals(struct cmd *c, const struct evaluation_list *l, bool verbose)
{
    struct table t;
    cmd_heading(c, "Evaluations");
    table_init(&t, c, 5);
    table_row(&t, "ID", "Priority", "Triggered By", "Status", "Placement Failures");
    for (size_t i = 0; i < l->n; i++) {
        const struct evaluation *ev = l->v[i];
        table_row(&t, fmt_id(c, ev->id, verbose), fmt_i64(c, ev->priority), ev->triggered_by,
                  ev->status, view_placement(ev));
    }
    table_print(&t);
}

/* While something waits for capacity: why the latest attempt could not place it. */
static void
print_failure(struct cmd *c, const struct evaluation_list *l, bool verbose)
{
    const struct evaluation *last = NULL;
    bool blocked = false;
    for (size_t i = 0; i < l->n; i++) {
        const struct evaluation *ev = l->v[i];
        blocked = blocked || str_eq(ev->status, EVAL_BLOCKED);
        if (ev->failed_tg_allocs.n && (!last || last->create_index < ev->create_index))
            last = ev;
    }
    if (!blocked || !last)
        return;
    cmd_heading(c, "Placement Failure");
    monitor_print_failed(c, &last->failed_tg_allocs, verbose, "");
}

static void
print_job_head(struct cmd *c, const struct job *j)
{
    struct table t;
    table_init(&t, c, 2);
    table_row(&t, "ID", j->id);
    table_row(&t, "Name", j->name);
    table_row(&t, "Submit Date", fmt_time(c, j->submit_time));
    table_row(&t, "Type", j->type);
    table_row(&t, "Priority", fmt_i64(c, j->priority.v));
    table_row(&t, "Datacenters", fmt_join(c, &j->datacenters, ","));
    table_row(&t, "Namespace", j->namespace);
    table_row(&t, "Node Pool", j->node_pool);
    table_row(&t, "Status", status_text(c, j->status, j->stop));
    table_row(&t, "Periodic", fmt_bool(j->periodic != NULL));
    table_row(&t, "Parameterized", fmt_bool(j->parameterized_job != NULL));
    if (!str_empty(j->status_description))
        table_row(&t, "Status Description", j->status_description);
    table_print_kv(&t);
}

static int
show_job(struct cmd *c, const struct status_opts *o, const char *id)
{
    struct evaluation_list evals = {NULL, 0};
    struct alloc_list_stub_list allocs = {NULL, 0};
    struct err e = ERR_INIT;
    void *ret = NULL;
    int rc;
    if (api_get(c, api_target(c, "/v1/job/%", id, NULL), &type_job, &ret, NULL, &e))
        return cmd_fail(c, "Error querying job: %s", e.text);
    const struct job *j = ret;
    if (output_object(c, &o->out, &type_job, j, &rc))
        return rc;
    print_job_head(c, j);
    if (o->brief)
        return 0;
    if (api_list(c, api_target(c, "/v1/job/%/evaluations", id, NULL), &type_evaluation, &evals, NULL,
                 &e))
        return cmd_fail(c, "Error querying job evaluations: %s", e.text);
    if (api_list(c, api_target(c, "/v1/job/%/allocations", id, "all", o->all ? "true" : NULL, NULL),
                 &type_alloc_list_stub, &allocs, NULL, &e))
        return cmd_fail(c, "Error querying job allocations: %s", e.text);
    print_summary(c, id);
    if (o->evals || o->verbose)
        print_evals(c, &evals, o->verbose);
    print_failure(c, &evals, o->verbose);
    cmd_heading(c, "Allocations");
    if (allocs.n == 0)
        cmd_say(c, "No allocations placed");
    else
        view_allocs(c, &allocs, o->verbose);
    return 0;
}

int
cmd_job_status(struct cmd *c)
{
    struct status_opts o = {.brief = false};
    const struct opt opts[] = {
        {"short", OPT_BOOL, &o.brief, NULL, "Only the head, no allocations.", NULL},
        {"evals", OPT_BOOL, &o.evals, NULL, "Show the evaluations.", NULL},
        {"all-allocs", OPT_BOOL, &o.all, NULL,
         "Allocations of an earlier job of this id too.", NULL},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Show full ids and more.", NULL},
        {"ui", OPT_BOOL, &o.ui, NULL, "Without effect: there is no web interface yet.", NULL},
        OUTPUT_OPTS(o.out),
        {NULL, OPT_BOOL, NULL, NULL, NULL, NULL}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (c->n_args == 0)
        return list_jobs(c, &o);
    struct job_list_stub *stub;
    if (api_find_job(c, c->args[0], &stub) != API_ONE)
        return 1;
    if (!str_empty(stub->namespace))
        c->namespace = stub->namespace;
    return show_job(c, &o, stub->id);
}

/* --- stop --- */

struct stop_opts {
    bool detach, verbose, global, no_shutdown_delay, yes, purge;
    int64_t eval_priority;
};

static int
stop_job(struct cmd *c, const struct stop_opts *o, const char *prefix)
{
    struct job_list_stub *stub;
    struct err e = ERR_INIT;
    void *ret = NULL;
    if (api_find_job(c, prefix, &stub) != API_ONE)
        return 1;
    if (!o->yes && !str_eq(stub->id, prefix) &&
        !cmd_confirm(c, mem_printf(c, "Stop job \"%s\"?", stub->id))) {
        cmd_say(c, "Job \"%s\" was not stopped", stub->id);
        return 0;
    }
    if (!str_empty(stub->namespace))
        c->namespace = stub->namespace;
    char *target =
        api_target(c, "/v1/job/%", stub->id, "purge", o->purge ? "true" : NULL, "global",
                   o->global ? "true" : NULL, "eval_priority",
                   o->eval_priority ? fmt_i64(c, o->eval_priority) : NULL, "no_shutdown_delay",
                   o->no_shutdown_delay ? "true" : NULL, NULL);
    if (api_send(c, "DELETE", target, NULL, NULL, &type_job_deregister_response, &ret, &e))
        return cmd_fail(c, "Error deregistering job with id \"%s\": %s", stub->id, e.text);
    const struct job_deregister_response *r = ret;
    if (!r || str_empty(r->eval_id))
        return 0;
    if (o->detach) {
        cmd_say(c, "%s", r->eval_id);
        return 0;
    }
    return monitor_eval(c, r->eval_id, o->verbose);
}

int
cmd_job_stop(struct cmd *c)
{
    struct stop_opts o = {.detach = false};
    const struct opt opts[] = {
        {"detach", OPT_BOOL, &o.detach, NULL, "Return at once, with the id of the evaluation.", NULL},
        {"eval-priority", OPT_INT, &o.eval_priority, "<priority>",
         "Priority of the evaluation, 1 to 100 (default the job's).", NULL},
        {"global", OPT_BOOL, &o.global, NULL, "Stop a multiregion job everywhere.", NULL},
        {"no-shutdown-delay", OPT_BOOL, &o.no_shutdown_delay, NULL,
         "Do not wait for the shutdown delay of groups and tasks.", NULL},
        {"purge", OPT_BOOL, &o.purge, NULL, "Forget the job too.", NULL},
        {"yes", OPT_BOOL, &o.yes, NULL, "Do not ask.", NULL},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Show full ids.", NULL},
        {NULL, OPT_BOOL, NULL, NULL, NULL, NULL}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = SIZE_MAX}, &rc))
        return rc;
    int worst = 0;
    for (size_t i = 0; i < c->n_args; i++) {
        rc = stop_job(c, &o, c->args[i]);
        worst = rc > worst ? rc : worst;
    }
    return worst;
}

/* --- inspect --- */

/* The job of a version; NULL: not found or failed, which was said. */
static struct job *
job_version(struct cmd *c, const char *id, const char *version)
{
    uint64_t want;
    void *ret = NULL;
    struct err e = ERR_INIT;
    if (num_parse_u64(version, &want)) {
        cmd_fail(c, "Error parsing version \"%s\": want a number", version);
        return NULL;
    }
    if (api_get(c, api_target(c, "/v1/job/%/versions", id, NULL), &type_job_versions_response, &ret,
                NULL, &e)) {
        cmd_fail(c, "Error inspecting job: %s", e.text);
        return NULL;
    }
    const struct job_versions_response *r = ret;
    for (size_t i = 0; i < r->versions.n; i++)
        if (r->versions.v[i]->version == want)
            return r->versions.v[i];
    cmd_fail(c, "Error inspecting job: there is no version %s", version);
    return NULL;
}

int
cmd_job_inspect(struct cmd *c)
{
    struct output out = {false, NULL};
    const char *version = NULL;
    const struct opt opts[] = {
        {"version", OPT_STRING, &version, "<version>", "Show this version (default the latest).",
         NULL},
        OUTPUT_OPTS(out),
        {NULL, OPT_BOOL, NULL, NULL, NULL, NULL}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    struct job_list_stub *stub;
    struct err e = ERR_INIT;
    void *ret = NULL;
    if (api_find_job(c, c->args[0], &stub) != API_ONE)
        return 1;
    if (!str_empty(stub->namespace))
        c->namespace = stub->namespace;
    if (version) {
        ret = job_version(c, stub->id, version);
        if (!ret)
            return 1;
    } else if (api_get(c, api_target(c, "/v1/job/%", stub->id, NULL), &type_job, &ret, NULL, &e)) {
        return cmd_fail(c, "Error inspecting job: %s", e.text);
    }
    if (output_object(c, &out, &type_job, ret, &rc))
        return rc;
    auto_buf struct buf b = BUF_INIT(64 << 20);
    buf_puts(&b, "{\"Job\":");
    json_encode(&b, &type_job, ret, 0);
    buf_putc(&b, '}');
    struct value *v = NULL;
    if (json_decode_value(c, buf_str(&b), b.len, BUDGET(256 << 20), &v, &e))
        return cmd_fail(c, "Error converting job: %s", e.text);
    output_value(c, &(struct output){.json = true}, v, &rc);
    return rc;
}
