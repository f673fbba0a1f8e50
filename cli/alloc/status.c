/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc status.
 */
#include "api/terms.h"
#include "cli/alloc/alloc.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/monitor.h"
#include "cli/views.h"
#include "common/duration.h"

struct status_opts {
    bool brief, verbose, stats, ui;
    struct output out;
};

/* --- finding --- */

static struct allocation *
status_get(struct cmd *c, const char *id)
{
    return api_read(c, api_target(c, "/v1/allocation/%", id, NULL), &type_allocation,
                    "Error querying allocation");
}

static void
show_matches(struct cmd *c, const struct object_list *l)
{
    view_allocs(c, (const struct alloc_list_stub_list *)(const void *)l, true);
}

static const struct api_kind allocation = {"allocation", "/v1/allocations", &type_alloc_list_stub,
                                           show_matches};

struct allocation *
alloc_find(struct cmd *c, const char *prefix)
{
    const char *id = api_find(c, &allocation, prefix);
    return id ? status_get(c, id) : NULL;
}

struct allocation *
alloc_of_job(struct cmd *c, const char *job, const char *group)
{
    struct alloc_list_stub_list l;
    const struct alloc_list_stub *best = NULL;
    const struct job_list_stub *stub = api_find_job(c, job);
    if (!stub)
        return NULL;
    if (!api_read_list(c, api_target(c, "/v1/job/%/allocations", stub->id, NULL),
                       &type_alloc_list_stub, &l, "Error querying job allocations"))
        return NULL;
    for (size_t i = 0; i < l.n; i++) {
        const struct alloc_list_stub *a = l.v[i];
        bool runs = str_eq(a->client_status, ALLOC_RUNNING);
        if (group && !str_eq(a->task_group, group))
            continue;
        if (!best || (runs && !str_eq(best->client_status, ALLOC_RUNNING)))
            best = a;
    }
    if (!best) {
        cmd_fail(c, "No allocations found for job \"%s\"%s%s", stub->id, group ? " and group " : "",
                 group ? group : "");
        return NULL;
    }
    return status_get(c, best->id);
}

const char *
alloc_task(struct cmd *c, const struct allocation *a, const char *name)
{
    const struct task_group *g = job_group(a->job, a->task_group);
    if (!g || g->tasks.n == 0) {
        cmd_fail(c, "Could not find allocation task: the allocation does not name its group");
        return NULL;
    }
    auto_buf struct buf b = BUF_INIT(1 << 20);
    for (size_t i = 0; i < g->tasks.n; i++) {
        if (str_eq(name, g->tasks.v[i]->name) || (str_empty(name) && g->tasks.n == 1))
            return g->tasks.v[i]->name;
        buf_printf(&b, "\n  * %s", g->tasks.v[i]->name);
    }
    if (str_empty(name))
        cmd_fail(c, "Allocation \"%s\" is running the following tasks, name one of them:%s",
                 fmt_id(c, a->id, false), buf_str(&b));
    else
        cmd_fail(c, "Could not find task \"%s\" in allocation \"%s\"; it has:%s", name,
                 fmt_id(c, a->id, false), buf_str(&b));
    return NULL;
}

/* --- head --- */

const char *
alloc_next_place(struct cmd *c, const struct allocation *a)
{
    void *ret = NULL;
    struct err e = ERR_INIT;
    if (str_empty(a->followup_eval_id) ||
        api_get(c, api_target(c, "/v1/evaluation/%", a->followup_eval_id, NULL), &type_evaluation,
                &ret, NULL, &e))
        return NULL;
    const struct evaluation *ev = ret;
    return ev->wait_until > cmd_now(c) ? fmt_ago(c, ev->wait_until) : NULL;
}

static void
row_reschedules(struct cmd *c, struct table *t, const struct allocation *a)
{
    const struct task_group *g = job_group(a->job, a->task_group);
    const struct reschedule_policy *p = g ? g->reschedule_policy : NULL;
    const struct reschedule_tracker *r = a->reschedule_tracker;
    long long n = 0;
    if (!p || !r || r->events.n == 0 || p->unlimited.v || p->attempts.v == 0)
        return;
    for (size_t i = 0; i < r->events.n; i++)
        n += a->modify_time - r->events.v[i]->reschedule_time < p->interval.v;
    table_row(t, "Reschedule Attempts", mem_printf(c, "%lld/%lld", n, (long long)p->attempts.v));
}

/* How long the allocation of a batch job may exist. */
static void
row_deadline(struct cmd *c, struct table *t, const struct allocation *a, bool verbose)
{
    const struct task_group *g = job_group(a->job, a->task_group);
    if (g == NULL || !g->max_run_duration.set || a->create_time <= 0)
        return;
    int64_t at = a->create_time + g->max_run_duration.v;
    table_row(t, "Max Run Deadline", verbose ? fmt_time(c, at) : fmt_ago(c, at));
}

static void
print_short_head(struct cmd *c, const struct allocation *a)
{
    struct table t;
    table_init(&t, c, 2);
    table_row(&t, "ID", a->id);
    table_row(&t, "Name", a->name);
    table_row(&t, "Created", fmt_ago(c, a->create_time));
    table_row(&t, "Modified", fmt_ago(c, a->modify_time));
    row_deadline(c, &t, a, false);
    table_print_kv(&t);
}

static void
row_metrics(struct cmd *c, struct table *t, const struct alloc_metric *m)
{
    char took[DURATION_TEXT];
    table_row(t, "Evaluated Nodes", fmt_i64(c, m->nodes_evaluated));
    table_row(t, "Filtered Nodes", fmt_i64(c, m->nodes_filtered));
    table_row(t, "Exhausted Nodes", fmt_i64(c, m->nodes_exhausted));
    table_row(t, "Allocation Time", duration_format(m->allocation_time, took));
    table_row(t, "Failures", fmt_i64(c, m->coalesced_failures));
}

static void
row_deployment(struct cmd *c, struct table *t, const struct allocation *a, bool verbose)
{
    const struct alloc_deployment_status *d = a->deployment_status;
    if (str_empty(a->deployment_id))
        return;
    table_row(t, "Deployment ID", fmt_id(c, a->deployment_id, verbose));
    table_row(t, "Deployment Health",
              !d || !d->healthy.set ? "unset"
              : d->healthy.v        ? "healthy"
                                    : "unhealthy");
    if (d && d->canary)
        table_row(t, "Canary", "true");
}

static void
print_head(struct cmd *c, const struct allocation *a, bool verbose)
{
    struct table t;
    table_init(&t, c, 2);
    table_row(&t, "ID", a->id);
    table_row(&t, "Eval ID", fmt_id(c, a->eval_id, verbose));
    table_row(&t, "Name", a->name);
    table_row(&t, "Node ID", fmt_id(c, a->node_id, verbose));
    table_row(&t, "Node Name", a->node_name);
    table_row(&t, "Job ID", a->job_id);
    table_row(&t, "Job Version", fmt_u64(c, a->job ? a->job->version : 0));
    table_row(&t, "Client Status", a->client_status);
    table_row(&t, "Client Description", str_or(a->client_description, "<none>"));
    table_row(&t, "Desired Status", a->desired_status);
    table_row(&t, "Desired Description", str_or(a->desired_description, "<none>"));
    table_row(&t, "Created", verbose ? fmt_time(c, a->create_time) : fmt_ago(c, a->create_time));
    table_row(&t, "Modified", verbose ? fmt_time(c, a->modify_time) : fmt_ago(c, a->modify_time));
    row_deadline(c, &t, a, verbose);
    row_deployment(c, &t, a, verbose);
    row_reschedules(c, &t, a);
    if (!str_empty(a->previous_allocation))
        table_row(&t, "Replacement Of", fmt_id(c, a->previous_allocation, verbose));
    if (!str_empty(a->next_allocation))
        table_row(&t, "Replacement Alloc ID", fmt_id(c, a->next_allocation, verbose));
    const char *when = alloc_next_place(c, a);
    if (when)
        table_row(&t, "Reschedule Eligibility", when);
    if (verbose && a->metrics)
        row_metrics(c, &t, a->metrics);
    if (a->network_status && !str_empty(a->network_status->address))
        table_row(&t, "Network Address",
                  mem_printf(c, "%s (%s)", a->network_status->address,
                             str_or(a->network_status->interface_name, "")));
    table_print_kv(&t);
}

static void
print_ports(struct cmd *c, const struct allocation *a)
{
    const struct allocated_resources *r = a->allocated_resources;
    struct table t;
    if (!r || !r->shared || r->shared->ports.n == 0)
        return;
    const struct network_resource *net = r->shared->networks.n ? r->shared->networks.v[0] : NULL;
    cmd_heading(c, net && !str_empty(net->mode)
                       ? mem_printf(c, "Allocation Addresses (mode = \"%s\"):", net->mode)
                       : "Allocation Addresses:");
    table_init(&t, c, 3);
    table_row(&t, "Label", "Dynamic", "Address");
    for (size_t i = 0; i < r->shared->ports.n; i++) {
        const struct allocated_port_mapping *p = r->shared->ports.v[i];
        bool dynamic = false;
        for (size_t j = 0; net && j < net->dynamic_ports.n; j++)
            dynamic = dynamic || str_eq(net->dynamic_ports.v[j]->label, p->label);
        const char *to = p->to > 0 ? mem_printf(c, " -> %lld", (long long)p->to) : "";
        table_row(&t, mem_printf(c, "*%s", p->label), dynamic ? "yes" : "no",
                  mem_printf(c, "%s:%lld%s", str_or(p->host_ip, ""), (long long)p->value, to));
    }
    table_print(&t);
}

/* --- the command --- */

static const struct alloc_resource_usage *
status_usage(struct cmd *c, const struct allocation *a)
{
    void *ret = NULL;
    struct err e = ERR_INIT;
    if (!str_eq(a->client_status, ALLOC_RUNNING) ||
        api_get(c, api_target(c, "/v1/client/allocation/%/stats", a->id, NULL),
                &type_alloc_resource_usage, &ret, NULL, &e))
        return NULL;
    return ret;
}

static int
list_all(struct cmd *c, const struct status_opts *o)
{
    struct alloc_list_stub_list l;
    int rc;
    if (!api_read_list(c, api_target(c, "/v1/allocations", NULL), &type_alloc_list_stub, &l,
                       "Error querying allocations"))
        return 1;
    if (output_list(c, &o->out, &type_alloc_list_stub, &l, &rc))
        return rc;
    return cmd_fail(c, "This command takes one argument: <allocation>, or -json or -t to list all");
}

int
cmd_alloc_status(struct cmd *c)
{
    struct status_opts o = {.brief = false};
    const struct opt opts[] = {
        {"short", OPT_BOOL, &o.brief, NULL, "Only the name and one line per task."},
        {"stats", OPT_BOOL, &o.stats, NULL, "Show the resources that tasks use."},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Show full ids and placement metrics."},
        {"ui", OPT_BOOL, &o.ui, NULL, "Without effect: the command ui prints the address."},
        OUTPUT_OPTS(o.out),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (c->n_args == 0)
        return list_all(c, &o);
    const struct allocation *a = alloc_find(c, c->args[0]);
    if (!a)
        return 1;
    if (output_object(c, &o.out, &type_allocation, a, &rc))
        return rc;
    if (o.brief) {
        print_short_head(c, a);
        alloc_print_tasks_short(c, a);
        return 0;
    }
    print_head(c, a, o.verbose);
    print_ports(c, a);
    alloc_print_tasks(c, a, status_usage(c, a), o.stats);
    if (o.verbose && a->metrics) {
        cmd_heading(c, "Placement Metrics");
        monitor_print_metrics(c, a->metrics, true, "");
    }
    return 0;
}
