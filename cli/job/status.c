/* SPDX-License-Identifier: Apache-2.0
 *
 * job status: the list, or one job. With -json and -t the answers of several requests are put
 * together as Nomad's command does it, at the top. show_job() asks for all that is shown of a job
 * and prints it part by part; a periodic or parameterized job shows its children instead
 * (show_parent).
 */
#include <stdlib.h>

#include "api/terms.h"
#include "cli/api.h"
#include "cli/death.h"
#include "cli/deployments.h"
#include "cli/format.h"
#include "cli/job/job.h"
#include "cli/monitor.h"
#include "cli/views.h"

struct status_opts {
    bool brief, evals, all, verbose, ui;
    struct output out;
};

/* --- -json --- */

/* An answer of the API as it is; null where there is none. */
static struct value *
status_answer(struct cmd *c, char *target, struct err *e)
{
    struct value *v = NULL;
    return api_get_value(c, target, &v, e) ? NULL : v;
}

/* Makes the value that Nomad's command puts together of a job; NULL: said. */
static struct value *
job_value(struct cmd *c, const struct status_opts *o, const char *id, const char *namespace)
{
    const char *before = c->namespace;
    struct err e = ERR_INIT;
    c->namespace = str_or(namespace, before);
    const struct {
        const char *key;
        struct value *v;
    } parts[] = {
        {"Allocations",
         status_answer(
             c, api_target(c, "/v1/job/%/allocations", id, "all", o->all ? "true" : NULL, NULL),
             &e)},
        {"Evaluations", status_answer(c, api_target(c, "/v1/job/%/evaluations", id, NULL), &e)},
        {"LatestDeployment", status_answer(c, api_target(c, "/v1/job/%/deployment", id, NULL), &e)},
        {"Summary", status_answer(c, api_target(c, "/v1/job/%/summary", id, NULL), &e)},
    };
    struct value *m = value_map(c);
    c->namespace = before;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (!parts[i].v) {
            cmd_fail(c, "Error querying job \"%s\": %s", id, e.text);
            return NULL;
        }
        value_map_set(m, parts[i].key, parts[i].v);
    }
    return m;
}

/* A list also of one, as Nomad's. True: it was asked for. */
static bool
output_jobs(struct cmd *c, const struct status_opts *o, struct job_list_stub *const *jobs, size_t n,
            int *ret_code)
{
    struct value *l = value_list(c);
    *ret_code = 1;
    if (!o->out.json && !o->out.tmpl)
        return false;
    for (size_t i = 0; i < n; i++) {
        struct value *v = job_value(c, o, jobs[i]->id, jobs[i]->namespace);
        if (!v)
            return true;
        value_list_add(l, v);
    }
    return output_value(c, &o->out, l, ret_code);
}

/* --- the list --- */

static int
list_jobs(struct cmd *c, const struct status_opts *o)
{
    struct job_list_stub_list l;
    int rc;
    if (!api_read_list(c, api_target(c, "/v1/jobs", NULL), &type_job_list_stub, &l,
                       "Error querying jobs"))
        return 1;
    if (output_jobs(c, o, l.v, l.n, &rc))
        return rc;
    if (l.n == 0) {
        cmd_say(c, "No running jobs");
        return 0;
    }
    view_jobs(c, &l);
    return 0;
}

/* --- one --- */

static void
print_children_summary(struct cmd *c, const struct job *j, const struct job_children_summary *s)
{
    struct table t;
    if (!s || !job_is_parent(j))
        return;
    cmd_heading(c, job_parameterized(j) ? "Parameterized Job Summary" : "Children Job Summary");
    table_init(&t, c, 3);
    table_row(&t, "Pending", "Running", "Dead");
    table_row(&t, fmt_i64(c, s->pending), fmt_i64(c, s->running), fmt_i64(c, s->dead));
    table_print(&t);
}

static void
print_summary(struct cmd *c, const struct job *j)
{
    const char *id = j->id;
    void *ret = NULL;
    struct err e = ERR_INIT;
    if (api_get(c, api_target(c, "/v1/job/%/summary", id, NULL), &type_job_summary, &ret, NULL,
                &e)) {
        cmd_warn(c, "Error querying job summary: %s", e.text);
        return;
    }
    const struct job_summary *s = ret;
    print_children_summary(c, j, s->children);
    if (job_is_parent(j))
        return;
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
    if (l->n)
        qsort(l->v, l->n, sizeof(*l->v), view_eval_cmp);
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
print_failure(struct cmd *c, const struct evaluation_list *l)
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
    for (size_t i = 0; i < last->failed_tg_allocs.n; i++) {
        cmd_say(c, "%sTask Group \"%s\":", i ? "\n" : "", last->failed_tg_allocs.v[i].k);
        monitor_print_metrics(c, last->failed_tg_allocs.v[i].v, false, "");
    }
}

/* A group whose newest allocation failed and waits for its next place: without this it looks dead.
 */
static void
print_reschedules(struct cmd *c, const struct alloc_list_stub_list *l, bool verbose)
{
    struct {
        const struct alloc_list_stub **v;
        size_t n;
    } newest = {mem_array(c, const struct alloc_list_stub *, l->n + 1), 0};
    struct table t;
    table_init(&t, c, 3);
    table_row(&t, "Task Group", "Eval ID", "Eval Time");
    for (size_t i = 0; i < l->n; i++) {
        size_t k = 0;
        while (k < newest.n && !str_eq(newest.v[k]->task_group, l->v[i]->task_group))
            k++;
        if (k == newest.n)
            newest.v[newest.n++] = l->v[i];
        else if (newest.v[k]->modify_time < l->v[i]->modify_time)
            newest.v[k] = l->v[i];
    }
    for (size_t k = 0; k < newest.n; k++) {
        void *ret = NULL;
        struct err e = ERR_INIT;
        const char *id = newest.v[k]->followup_eval_id;
        if (str_empty(id) || api_get(c, api_target(c, "/v1/evaluation/%", id, NULL),
                                     &type_evaluation, &ret, NULL, &e))
            continue;
        const struct evaluation *ev = ret;
        if (ev->wait_until > cmd_now(c))
            table_row(&t, newest.v[k]->task_group, fmt_id(c, id, verbose),
                      fmt_ago(c, ev->wait_until));
    }
    if (t.rows == 1)
        return;
    cmd_heading(c, "Future Rescheduling Attempts");
    table_print(&t);
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
    table_row(&t, "Status", view_job_status(c, j->status, j->stop));
    table_row(&t, "Periodic", fmt_bool(j->periodic != NULL));
    table_row(&t, "Parameterized", fmt_bool(job_parameterized(j)));
    if (!str_empty(j->dispatch_idempotency_token))
        table_row(&t, "Idempotency Token", j->dispatch_idempotency_token);
    if (j->periodic && !job_parameterized(j)) {
        struct err e = ERR_INIT;
        const char *next = "none (job stopped)";
        if (j->stop || job_next_launch(c, j, &next, &e) == 0)
            table_row(&t, "Next Periodic Launch", next);
    }
    if (!str_empty(j->status_description))
        table_row(&t, "Status Description", j->status_description);
    table_print_kv(&t);
}

static int
show_parent(struct cmd *c, const struct job *j)
{
    bool dispatched = job_parameterized(j);
    const struct parameterized_job_config *p = j->parameterized_job;
    struct job_list_stub_list l;
    struct table t;
    if (dispatched) {
        cmd_heading(c, "Parameterized Job");
        table_init(&t, c, 2);
        table_row(&t, "Payload", p->payload);
        table_row(&t, "Required Metadata", fmt_join(c, &p->meta_required, ", "));
        table_row(&t, "Optional Metadata", fmt_join(c, &p->meta_optional, ", "));
        table_print_kv(&t);
    }
    print_summary(c, j);
    const char *prefix = mem_printf(c, "%s%s", j->id, dispatched ? DISPATCH_INFIX : PERIODIC_INFIX);
    if (!api_read_list(c, api_target(c, "/v1/jobs", "prefix", prefix, NULL), &type_job_list_stub,
                       &l, "Error querying job"))
        return 1;
    if (l.n == 0) {
        cmd_say(c, "\nNo %s found",
                dispatched ? "dispatched instances of parameterized job"
                           : "instances of periodic job");
        return 0;
    }
    cmd_heading(c, dispatched ? "Dispatched Jobs" : "Previously Launched Jobs");
    table_init(&t, c, 2);
    table_row(&t, "ID", "Status");
    for (size_t i = 0; i < l.n; i++)
        if (str_eq(l.v[i]->parent_id, j->id))
            table_row(&t, l.v[i]->id, l.v[i]->status);
    table_print(&t);
    return 0;
}

static int
show_job(struct cmd *c, const struct status_opts *o, struct job_list_stub *stub)
{
    struct evaluation_list evals = {NULL, 0};
    struct alloc_list_stub_list allocs = {NULL, 0};
    struct deployment *latest = NULL;
    struct err e = ERR_INIT;
    const char *id = stub->id;
    int rc;
    if (output_jobs(c, o, &stub, 1, &rc))
        return rc;
    const struct job *j =
        api_read(c, api_target(c, "/v1/job/%", id, NULL), &type_job, "Error querying job");
    if (!j)
        return 1;
    print_job_head(c, j);
    if (o->brief)
        return 0;
    if (job_is_parent(j))
        return show_parent(c, j);
    if (!api_read_list(c, api_target(c, "/v1/job/%/evaluations", id, NULL), &type_evaluation,
                       &evals, "Error querying job evaluations"))
        return 1;
    if (!api_read_list(
            c, api_target(c, "/v1/job/%/allocations", id, "all", o->all ? "true" : NULL, NULL),
            &type_alloc_list_stub, &allocs, "Error querying job allocations"))
        return 1;
    if (deployments_latest(c, id, &latest, &e))
        return cmd_fail(c, "Error querying latest job deployment: %s", e.text);
    print_summary(c, j);
    if (o->evals || o->verbose)
        print_evals(c, &evals, o->verbose);
    print_failure(c, &evals);
    print_reschedules(c, &allocs, o->verbose);
    if (latest) {
        cmd_heading(c, "Latest Deployment");
        deployments_show(c, latest, o->verbose, true);
        deployments_waits(c, latest);
    }
    cmd_heading(c, "Allocations");
    if (allocs.n == 0)
        cmd_say(c, "No allocations placed");
    else
        view_allocs(c, &allocs, o->verbose);
    (void)death_report(c, &allocs, NULL, "Failures", o->verbose);
    return 0;
}

int
cmd_job_status(struct cmd *c)
{
    struct status_opts o = {.brief = false};
    const struct opt opts[] = {
        {"short", OPT_BOOL, &o.brief, NULL, "Only the head, no allocations."},
        {"evals", OPT_BOOL, &o.evals, NULL, "Show the evaluations."},
        {"all-allocs", OPT_BOOL, &o.all, NULL, "Allocations of an earlier job of this id too."},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Show full ids and more."},
        {"ui", OPT_BOOL, &o.ui, NULL, "Without effect: the command ui prints the address."},
        OUTPUT_OPTS(o.out),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (c->n_args == 0)
        return list_jobs(c, &o);
    struct job_list_stub *stub = api_find_job(c, c->args[0]);
    return stub ? show_job(c, &o, stub) : 1;
}
