/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc status.
 */
#include "api/terms.h"
#include "cli/alloc.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/monitor.h"
#include "cli/views.h"
#include "common/num.h"

struct status_opts {
    bool brief, verbose, stats, ui;
    struct output out;
};

/* --- finding --- */

static struct allocation *
get(struct cmd *c, const char *id)
{
    void *ret = NULL;
    struct err e = ERR_INIT;
    if (api_get(c, api_target(c, "/v1/allocation/%", id, NULL), &type_allocation, &ret, NULL, &e)) {
        cmd_fail(c, "Error querying allocation: %s", e.text);
        return NULL;
    }
    return ret;
}

struct allocation *
alloc_find(struct cmd *c, const char *prefix)
{
    struct alloc_list_stub_list found;
    switch (api_find(c, "allocation", "/v1/allocations", &type_alloc_list_stub, prefix,
                     (struct object_list *)(void *)&found)) {
    case API_ONE:
        return get(c, found.v[0]->id);
    case API_MANY:
        cmd_say(c, "Prefix matched multiple allocations\n");
        view_allocs(c, &found, true);
        return NULL;
    default:
        return NULL;
    }
}

struct allocation *
alloc_of_job(struct cmd *c, const char *job, const char *group)
{
    struct job_list_stub *stub;
    struct alloc_list_stub_list l;
    struct err e = ERR_INIT;
    const struct alloc_list_stub *best = NULL;
    if (api_find_job(c, job, &stub) != API_ONE)
        return NULL;
    if (api_list(c, api_target(c, "/v1/job/%/allocations", stub->id, NULL), &type_alloc_list_stub,
                 &l, NULL, &e)) {
        cmd_fail(c, "Error querying job allocations: %s", e.text);
        return NULL;
    }
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
    return get(c, best->id);
}

static const struct task_group *
group_of(const struct allocation *a)
{
    for (size_t i = 0; a->job && i < a->job->task_groups.n; i++)
        if (str_eq(a->job->task_groups.v[i]->name, a->task_group))
            return a->job->task_groups.v[i];
    return NULL;
}

const char *
alloc_task(struct cmd *c, const struct allocation *a, const char *name)
{
    const struct task_group *g = group_of(a);
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
    if (!str_empty(a->deployment_id))
        table_row(&t, "Deployment ID", fmt_id(c, a->deployment_id, verbose));
    if (!str_empty(a->previous_allocation))
        table_row(&t, "Replacement Of", fmt_id(c, a->previous_allocation, verbose));
    if (!str_empty(a->next_allocation))
        table_row(&t, "Replacement Alloc ID", fmt_id(c, a->next_allocation, verbose));
    if (!str_empty(a->followup_eval_id))
        table_row(&t, "Reschedule Eval", fmt_id(c, a->followup_eval_id, verbose));
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
    bool own = net && !str_empty(net->mode) && !str_eq(net->mode, "host");
    cmd_heading(c, own ? mem_printf(c, "Allocation Addresses (mode = \"%s\"):", net->mode)
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

/* --- tasks --- */

static const char *
usage_text(struct cmd *c, const struct alloc_resource_usage *u, const char *task, bool memory)
{
    char t[SIZE_TEXT];
    const __auto_type e = u ? map_get(u->tasks, task) : NULL;
    const struct resource_usage *r = e && e->v ? e->v->resource_usage : NULL;
    if (memory && r && r->memory_stats) {
        const struct memory_stats *m = r->memory_stats;
        return mem_printf(c, "%s/", size_format(m->usage ? m->usage : m->rss, t));
    }
    if (!memory && r && r->cpu_stats)
        return mem_printf(c, "%.0f/", r->cpu_stats->total_ticks);
    return "";
}

static void
print_resources(struct cmd *c, const struct allocation *a, const struct alloc_resource_usage *u,
                const char *task)
{
    const struct allocated_resources *r = a->allocated_resources;
    const __auto_type e = r ? map_get(r->tasks, task) : NULL;
    struct table t;
    char m[SIZE_TEXT], d[SIZE_TEXT];
    if (!e || !e->v)
        return;
    int64_t cpu = e->v->cpu ? e->v->cpu->cpu_shares : 0;
    int64_t mem = e->v->memory ? e->v->memory->memory_mb : 0;
    int64_t disk = r->shared ? r->shared->disk_mb : 0;
    cmd_say(c, "Task Resources:");
    table_init(&t, c, 3);
    table_row(&t, "CPU", "Memory", "Disk");
    table_row(&t, mem_printf(c, "%s%lld MHz", usage_text(c, u, task, false), (long long)cpu),
              mem_printf(c, "%s%s", usage_text(c, u, task, true),
                         size_format((uint64_t)mem << 20, m)),
              size_format((uint64_t)disk << 20, d));
    table_print(&t);
}

/* What the kernel counted, and what its policy refused; nothing where nothing counts. */
static void
print_network(struct cmd *c, const struct alloc_resource_usage *u, const char *task)
{
    const __auto_type e = u ? map_get(u->tasks, task) : NULL;
    const struct network_stats *n =
        e && e->v && e->v->resource_usage ? e->v->resource_usage->network_stats : NULL;
    struct table t;
    char rx[SIZE_TEXT], tx[SIZE_TEXT];
    if (!n)
        return;
    cmd_say(c, "\nNetwork Stats:");
    table_init(&t, c, 5);
    table_row(&t, "Received", "Sent", "Denied Packets", "Denied Connects", "Denied Binds");
    table_row(&t,
              mem_printf(c, "%s (%llu packets)", size_format(n->rx_bytes, rx),
                         (unsigned long long)n->rx_packets),
              mem_printf(c, "%s (%llu packets)", size_format(n->tx_bytes, tx),
                         (unsigned long long)n->tx_packets),
              fmt_u64(c, n->denied_packets), fmt_u64(c, n->denied_connects),
              fmt_u64(c, n->denied_binds));
    table_print(&t);
}

static void
print_processes(struct cmd *c, const struct alloc_resource_usage *u, const char *task)
{
    const __auto_type e = u ? map_get(u->tasks, task) : NULL;
    const struct process_stats *p =
        e && e->v && e->v->resource_usage ? e->v->resource_usage->process_stats : NULL;
    struct table t;
    char all[DURATION_TEXT], p50[DURATION_TEXT], p99[DURATION_TEXT];
    if (!p)
        return;
    cmd_say(c, "\nProcess Stats:");
    table_init(&t, c, 6);
    table_row(&t, "Executed", "Ended", "OOM Killed", "CPU Waits", "Waited", "Wait p50/p99");
    table_row(&t, fmt_u64(c, p->execs), fmt_u64(c, p->exits), fmt_u64(c, p->oom_kills),
              fmt_u64(c, p->waits), duration_format(p->wait_time, all),
              mem_printf(c, "<%s/<%s", duration_format(p->wait_p50, p50),
                         duration_format(p->wait_p99, p99)));
    table_print(&t);
}

static void
print_blocks(struct cmd *c, const struct alloc_resource_usage *u, const char *task)
{
    const __auto_type e = u ? map_get(u->tasks, task) : NULL;
    const struct block_stats *b =
        e && e->v && e->v->resource_usage ? e->v->resource_usage->block_stats : NULL;
    struct table t;
    char in[SIZE_TEXT], out[SIZE_TEXT], p50[DURATION_TEXT], p99[DURATION_TEXT];
    if (!b)
        return;
    cmd_say(c, "\nBlock Stats:");
    table_init(&t, c, 4);
    table_row(&t, "Read", "Written", "Errors", "Time p50/p99");
    table_row(&t,
              mem_printf(c, "%s (%llu requests)", size_format(b->read_bytes, in),
                         (unsigned long long)b->read_ops),
              mem_printf(c, "%s (%llu requests)", size_format(b->write_bytes, out),
                         (unsigned long long)b->write_ops),
              fmt_u64(c, b->errors),
              mem_printf(c, "<%s/<%s", duration_format(b->time_p50, p50),
                         duration_format(b->time_p99, p99)));
    table_print(&t);
}

static const char *
pressure_text(struct cmd *c, const struct pressure *p)
{
    char some[DURATION_TEXT], full[DURATION_TEXT];
    if (!p)
        return "-";
    return mem_printf(c, "%.1f%% (%s, all %s)", p->some_avg10, duration_format(p->some_time, some),
                      duration_format(p->full_time, full));
}

/* What held the task up: its limits, others, disks. */
static void
print_waits(struct cmd *c, const struct alloc_resource_usage *u, const char *task)
{
    const __auto_type e = u ? map_get(u->tasks, task) : NULL;
    const struct resource_usage *r = e && e->v ? e->v->resource_usage : NULL;
    struct table t;
    char in[SIZE_TEXT], out[SIZE_TEXT], throttled[DURATION_TEXT];
    if (!r || (!r->pressure_stats && !r->io_stats))
        return;
    cmd_say(c, "\nPressure Stats:");
    table_init(&t, c, 2);
    if (r->cpu_stats && r->cpu_stats->throttled_periods > 0)
        table_row(&t, "CPU Throttled",
                  mem_printf(c, "%llu periods, %s",
                             (unsigned long long)r->cpu_stats->throttled_periods,
                             duration_format((int64_t)r->cpu_stats->throttled_time, throttled)));
    if (r->pressure_stats) {
        table_row(&t, "Waits For CPU", pressure_text(c, r->pressure_stats->cpu));
        table_row(&t, "Waits For Memory", pressure_text(c, r->pressure_stats->memory));
        table_row(&t, "Waits For Disks", pressure_text(c, r->pressure_stats->io));
    }
    if (r->io_stats)
        table_row(&t, "Disks",
                  mem_printf(c, "%s read in %llu, %s written in %llu",
                             size_format(r->io_stats->read_bytes, in),
                             (unsigned long long)r->io_stats->read_ops,
                             size_format(r->io_stats->write_bytes, out),
                             (unsigned long long)r->io_stats->write_ops));
    table_print_kv(&t);
}

static void
print_events(struct cmd *c, const struct task_state *s)
{
    struct table t;
    table_init(&t, c, 2);
    table_row(&t, "Started At", str_or(fmt_time(c, s->started_at), "N/A"));
    table_row(&t, "Finished At", str_or(fmt_time(c, s->finished_at), "N/A"));
    table_row(&t, "Total Restarts", fmt_u64(c, s->restarts));
    table_row(&t, "Last Restart", str_or(fmt_time(c, s->last_restart), "N/A"));
    cmd_say(c, "\nTask Events:");
    table_print_kv(&t);
    cmd_say(c, "\nRecent Events:");
    table_init(&t, c, 3);
    table_row(&t, "Time", "Type", "Description");
    for (size_t i = s->events.n; i > 0; i--) {
        const struct task_event *ev = s->events.v[i - 1];
        table_row(&t, fmt_time(c, ev->time), ev->type,
                  str_or(ev->display_message, str_or(ev->message, "<none>")));
    }
    table_print(&t);
}

static void
print_task(struct cmd *c, const struct allocation *a, const struct alloc_resource_usage *u,
           const char *task, bool stats)
{
    const __auto_type e = map_get(a->task_states, task);
    const struct task_state *s = e ? e->v : NULL;
    cmd_heading(c, mem_printf(c, "Task \"%s\" is \"%s\"%s", task, s ? s->state : "pending",
                              s && str_eq(s->paused, "pause") ? ", paused" : ""));
    print_resources(c, a, u, task);
    if (stats) {
        print_network(c, u, task);
        print_processes(c, u, task);
        print_blocks(c, u, task);
        print_waits(c, u, task);
    }
    if (s)
        print_events(c, s);
}

static void
print_short(struct cmd *c, const struct allocation *a)
{
    struct table t;
    cmd_heading(c, "Tasks");
    table_init(&t, c, 4);
    table_row(&t, "Name", "State", "Last Event", "Time");
    for (size_t i = 0; i < a->task_states.n; i++) {
        const struct task_state *s = a->task_states.v[i].v;
        const struct task_event *last = s->events.n ? s->events.v[s->events.n - 1] : NULL;
        table_row(&t, a->task_states.v[i].k, s->state, last ? last->type : "",
                  last ? fmt_time(c, last->time) : "");
    }
    table_print(&t);
}

/* --- the command --- */

static const struct alloc_resource_usage *
usage(struct cmd *c, const struct allocation *a)
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
    struct err e = ERR_INIT;
    int rc;
    if (api_list(c, api_target(c, "/v1/allocations", NULL), &type_alloc_list_stub, &l, NULL, &e))
        return cmd_fail(c, "Error querying allocations: %s", e.text);
    if (output_list(c, &o->out, &type_alloc_list_stub, &l, &rc))
        return rc;
    return cmd_fail(c, "This command takes one argument: <allocation>, or -json or -t to list all");
}

int
cmd_alloc_status(struct cmd *c)
{
    struct status_opts o = {.brief = false};
    const struct opt opts[] = {
        {"short", OPT_BOOL, &o.brief, NULL, "Only the head and one line per task.", NULL},
        {"stats", OPT_BOOL, &o.stats, NULL, "Show the resources that tasks use.", NULL},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Show full ids and placement metrics.", NULL},
        {"ui", OPT_BOOL, &o.ui, NULL, "Without effect: there is no web interface yet.", NULL},
        OUTPUT_OPTS(o.out),
        {NULL, OPT_BOOL, NULL, NULL, NULL, NULL}};
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
    print_head(c, a, o.verbose);
    if (o.brief) {
        print_short(c, a);
        return 0;
    }
    print_ports(c, a);
    const struct alloc_resource_usage *u = usage(c, a);
    const struct task_group *g = group_of(a);
    for (size_t i = 0; g && i < g->tasks.n; i++)
        print_task(c, a, u, g->tasks.v[i]->name, o.stats);
    for (size_t i = 0; !g && i < a->task_states.n; i++)
        print_task(c, a, u, a->task_states.v[i].k, o.stats);
    if (o.verbose && a->metrics) {
        cmd_heading(c, "Placement Metrics");
        monitor_print_metrics(c, a->metrics, true, "");
    }
    return 0;
}
