/* SPDX-License-Identifier: Apache-2.0
 *
 * node status, node eligibility, node config; and by which words a node is found. First the list of
 * nodes. Then a node: head, drivers, events, what is allocated, what the host uses, allocations, a
 * function for each, and show_node(), which asks for all and puts them in order. At the end
 * node_find(), for all commands that take a node, and the commands.
 */
#include <stdlib.h>

#include "api/terms.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/node.h"
#include "cli/views.h"
#include "common/duration.h"
#include "common/num.h"
#include "common/uuid.h"

struct node_opts {
    bool brief, verbose, allocs, self, stats, quiet, os, ui, map;
    const char *filter, *page_token;
    int64_t per_page;
    struct output out;
};

/* --- this node --- */

/* Id of the node that the addressed agent is; NULL when it is none, which was said. */
static const char *
node_self(struct cmd *c)
{
    struct value *v = NULL;
    struct err e = ERR_INIT;
    if (api_get_value(c, api_target(c, "/v1/agent/self", NULL), &v, &e)) {
        cmd_fail(c, "Error querying agent info: %s", e.text);
        return NULL;
    }
    const struct value *id = value_get(value_get(value_get(v, "stats"), "client"), "node_id");
    if (!id || id->kind != VALUE_STRING || !id->str.n) {
        cmd_fail(c, "The agent at %s has no client role: name a node", c->address);
        return NULL;
    }
    return id->str.s;
}

/* --- list --- */

static int64_t
running_allocs(struct cmd *c, const char *node)
{
    struct allocation_list l;
    struct err e = ERR_INIT;
    int64_t n = 0;
    if (api_list(c, api_target(c, "/v1/node/%/allocations", node, NULL), &type_allocation, &l, NULL,
                 &e))
        return -1;
    for (size_t i = 0; i < l.n; i++)
        n += str_eq(l.v[i]->client_status, ALLOC_RUNNING);
    return n;
}

void
node_table(struct cmd *c, const struct node_list_stub_list *l, const struct node_columns *o)
{
    struct table t;
    table_init(&t, c, 8 + (o->verbose ? 2 : 0) + (o->allocs ? 1 : 0) + (o->os ? 1 : 0));
    for (size_t i = 0; i <= l->n; i++) {
        const struct node_list_stub *n = i ? l->v[i - 1] : NULL;
        const char *cell[13];
        size_t k = 0;
        cell[k++] = n ? fmt_id(c, n->id, o->verbose) : "ID";
        cell[k++] = n ? n->node_pool : "Node Pool";
        cell[k++] = n ? n->datacenter : "DC";
        cell[k++] = n ? n->name : "Name";
        cell[k++] = n ? n->node_class : "Class";
        if (o->os)
            cell[k++] = n ? str_map_get(&n->attributes, "os.name") : "OS";
        if (o->verbose) {
            cell[k++] = n ? n->address : "Address";
            cell[k++] = n ? n->version : "Version";
        }
        cell[k++] = n ? fmt_bool(n->drain) : "Drain";
        cell[k++] = n ? n->scheduling_eligibility : "Eligibility";
        cell[k++] = n ? n->status : "Status";
        if (o->allocs)
            cell[k++] = n ? fmt_i64(c, running_allocs(c, n->id)) : "Running Allocs";
        table_cells(&t, cell);
    }
    if (l->n)
        table_print(&t);
}

static int
list_nodes(struct cmd *c, const struct node_opts *o)
{
    struct node_list_stub_list l;
    struct api_meta meta = {0};
    struct err e = ERR_INIT;
    int rc;
    char *target = api_target(c, "/v1/nodes", "filter", o->filter, "per_page",
                              o->per_page ? fmt_i64(c, o->per_page) : NULL, "next_token",
                              o->page_token, "os", o->os ? "true" : NULL, NULL);
    if (api_list(c, target, &type_node_list_stub, &l, &meta, &e))
        return cmd_fail(c, "Error querying node status: %s", e.text);
    if (output_list(c, &o->out, &type_node_list_stub, &l, &rc))
        return rc;
    if (o->quiet) {
        for (size_t i = 0; i < l.n; i++)
            cmd_say(c, "%s", l.v[i]->id);
        return 0;
    }
    node_table(c, &l, &(struct node_columns){o->verbose, o->allocs, o->os});
    view_next_page(c, meta.next_token);
    return 0;
}

/* --- one --- */

static const char *
driver_text(struct cmd *c, const struct node *n)
{
    auto_buf struct buf b = BUF_INIT(1 << 20);
    for (size_t i = 0; i < n->drivers.n; i++) {
        const struct driver_info *d = n->drivers.v[i].v;
        if (!d->detected)
            continue;
        buf_printf(&b, "%s%s%s", b.len ? "," : "", n->drivers.v[i].k,
                   d->healthy ? "" : "(unhealthy)");
    }
    return mem_strdup(c, buf_str(&b));
}

static const char *
volumes_text(struct cmd *c, const struct node *n)
{
    const char *text = "";
    for (size_t i = 0; i < n->host_volumes.n; i++)
        text = mem_printf(c, "%s%s%s", text, i > 0 ? "," : "", n->host_volumes.v[i].k);
    return text;
}

static void
print_head(struct cmd *c, const struct node *n, const struct host_stats *s)
{
    struct table t;
    char up[DURATION_TEXT];
    table_init(&t, c, 2);
    table_row(&t, "ID", n->id);
    table_row(&t, "Name", n->name);
    table_row(&t, "Node Pool", n->node_pool);
    table_row(&t, "Class", str_or(n->node_class, "<none>"));
    table_row(&t, "DC", n->datacenter);
    table_row(&t, "Drain", fmt_bool(n->drain_strategy != NULL));
    table_row(&t, "Eligibility", n->scheduling_eligibility);
    table_row(&t, "Status", n->status);
    if (!str_empty(n->status_description))
        table_row(&t, "Status Description", n->status_description);
    if (s)
        table_row(&t, "Uptime", duration_format((int64_t)s->uptime * NS_PER_S, up));
    if (n->host_volumes.n > 0)
        table_row(&t, "Host Volumes", volumes_text(c, n));
    table_row(&t, "Driver Status", str_or(driver_text(c, n), "<none>"));
    table_print_kv(&t);
}

static void
print_events(struct cmd *c, const struct node *n)
{
    struct table t;
    cmd_heading(c, "Node Events");
    table_init(&t, c, 3);
    table_row(&t, "Time", "Subsystem", "Message");
    for (size_t i = n->events.n; i > 0; i--) {
        const struct node_event *ev = n->events.v[i - 1];
        table_row(&t, fmt_time(c, ev->timestamp), ev->subsystem, ev->message);
    }
    table_print(&t);
}

static void
print_drivers(struct cmd *c, const struct node *n)
{
    struct table t;
    cmd_heading(c, "Drivers");
    table_init(&t, c, 5);
    table_row(&t, "Driver", "Detected", "Healthy", "Message", "Time");
    for (size_t i = 0; i < n->drivers.n; i++) {
        const struct driver_info *d = n->drivers.v[i].v;
        table_row(&t, n->drivers.v[i].k, fmt_bool(d->detected), fmt_bool(d->healthy),
                  d->health_description, fmt_time(c, d->update_time));
    }
    table_print(&t);
}

/* With -verbose. */
static void
print_volumes(struct cmd *c, const struct node *n)
{
    struct table t;
    if (n->host_volumes.n == 0)
        return;
    cmd_heading(c, "Host Volumes");
    table_init(&t, c, 4);
    table_row(&t, "Name", "Read Only", "ID", "Path");
    for (size_t i = 0; i < n->host_volumes.n; i++) {
        const struct client_host_volume_config *v = n->host_volumes.v[i].v;
        table_row(&t, v->name, fmt_bool(v->read_only), str_or(v->id, "<none>"), v->path);
    }
    table_print(&t);
}

static bool
has_device(const struct allocation *a, const struct node_device_resource *g, const char *id)
{
    const struct allocated_resources *r = a->allocated_resources;
    for (size_t i = 0; r && i < r->tasks.n; i++) {
        const struct allocated_device_resource_list *l = &r->tasks.v[i].v->devices;
        for (size_t k = 0; k < l->n; k++)
            if (str_eq(l->v[k]->vendor, g->vendor) && str_eq(l->v[k]->type, g->type) &&
                str_eq(l->v[k]->name, g->name) && str_list_has(&l->v[k]->device_ids, id))
                return true;
    }
    return false;
}

/* With -verbose: each instance, and whose it is. */
static void
print_devices(struct cmd *c, const struct node *n, const struct allocation_list *l)
{
    const struct node_device_resource_list *groups = &n->node_resources->devices;
    struct table t;
    if (groups->n == 0)
        return;
    cmd_heading(c, "Devices");
    table_init(&t, c, 5);
    table_row(&t, "Device", "Instance", "Healthy", "Allocation", "Description");
    for (size_t i = 0; i < groups->n; i++)
        for (size_t k = 0; k < groups->v[i]->instances.n; k++) {
            const struct node_device *d = groups->v[i]->instances.v[k];
            const char *owner = "<none>";
            for (size_t j = 0; j < l->n; j++)
                if (!alloc_terminal(l->v[j]) && has_device(l->v[j], groups->v[i], d->id))
                    owner = l->v[j]->id;
            table_row(&t,
                      mem_printf(c, "%s/%s/%s", groups->v[i]->vendor, groups->v[i]->type,
                                 groups->v[i]->name),
                      d->id, fmt_bool(d->healthy), owner, str_or(d->health_description, ""));
        }
    table_print(&t);
}

static const char *
node_mib(struct cmd *c, int64_t mb)
{
    char t[SIZE_TEXT];
    return mem_strdup(c, size_format((uint64_t)(mb < 0 ? 0 : mb) << 20, t));
}

struct sums {
    int64_t cpu, memory, disk;
};

static void
add_alloc(struct sums *s, const struct allocation *a)
{
    const struct allocated_resources *r = a->allocated_resources;
    for (size_t i = 0; r && i < r->tasks.n; i++) {
        const struct allocated_task_resources *t = r->tasks.v[i].v;
        s->cpu += t->cpu ? t->cpu->cpu_shares : 0;
        s->memory += t->memory ? t->memory->memory_mb : 0;
    }
    if (r && r->shared)
        s->disk += r->shared->disk_mb;
}

static void
print_allocated(struct cmd *c, const struct node *n, const struct allocation_list *l)
{
    const struct node_resources *r = n->node_resources;
    const struct node_reserved_resources *res = n->reserved_resources;
    struct sums used = {0, 0, 0}, all = {0, 0, 0};
    size_t count = 0;
    for (size_t i = 0; i < l->n; i++)
        if (!alloc_terminal(l->v[i])) {
            add_alloc(&used, l->v[i]);
            count++;
        }
    if (r && r->cpu)
        all.cpu = r->cpu->cpu_shares - (res && res->cpu ? res->cpu->cpu_shares : 0);
    if (r && r->memory)
        all.memory = r->memory->memory_mb - (res && res->memory ? res->memory->memory_mb : 0);
    if (r && r->disk)
        all.disk = r->disk->disk_mb - (res && res->disk ? res->disk->disk_mb : 0);
    struct table t;
    cmd_heading(c, "Allocated Resources");
    table_init(&t, c, 4);
    table_row(&t, "CPU", "Memory", "Disk", "Alloc Count");
    table_row(&t, mem_printf(c, "%lld/%lld MHz", (long long)used.cpu, (long long)all.cpu),
              mem_printf(c, "%s/%s", node_mib(c, used.memory), node_mib(c, all.memory)),
              mem_printf(c, "%s/%s", node_mib(c, used.disk), node_mib(c, all.disk)),
              mem_printf(c, "%zu", count));
    table_print(&t);
}

/* NULL where the client does not answer: the rest of the page is still worth showing. */
static const struct host_stats *
host_stats(struct cmd *c, const struct node *n)
{
    void *ret = NULL;
    struct err e = ERR_INIT;
    if (!str_eq(n->status, NODE_READY) ||
        api_get(c, api_target(c, "/v1/client/stats", "node_id", n->id, NULL), &type_host_stats,
                &ret, NULL, &e))
        return NULL;
    return ret;
}

static const char *
node_percent(struct cmd *c, double v)
{
    return mem_printf(c, "%.2f%%", v);
}

/* With -stats. */
static void
print_stats(struct cmd *c, const struct host_stats *s)
{
    struct table t;
    char a[SIZE_TEXT];
    cmd_heading(c, "CPU Stats");
    for (size_t i = 0; i < s->cpu.n; i++) {
        const struct host_cpu_stats *p = s->cpu.v[i];
        table_init(&t, c, 2);
        table_row(&t, "CPU", p->cpu);
        table_row(&t, "User", node_percent(c, p->user));
        table_row(&t, "System", node_percent(c, p->system));
        table_row(&t, "Idle", node_percent(c, p->idle));
        cmd_put(c, "%s", i ? "\n" : "");
        table_print_kv(&t);
    }
    if (s->memory) {
        cmd_heading(c, "Memory Stats");
        table_init(&t, c, 2);
        table_row(&t, "Total", size_format(s->memory->total, a));
        table_row(&t, "Available", size_format(s->memory->available, a));
        table_row(&t, "Used", size_format(s->memory->used, a));
        table_row(&t, "Free", size_format(s->memory->free, a));
        table_print_kv(&t);
    }
    if (s->disk_stats.n)
        cmd_heading(c, "Disk Stats");
    for (size_t i = 0; i < s->disk_stats.n; i++) {
        const struct host_disk_stats *d = s->disk_stats.v[i];
        table_init(&t, c, 2);
        table_row(&t, "Device", d->device);
        table_row(&t, "MountPoint", d->mountpoint);
        table_row(&t, "Size", size_format(d->size, a));
        table_row(&t, "Used", size_format(d->used, a));
        table_row(&t, "Available", size_format(d->available, a));
        table_row(&t, "Used Percent", node_percent(c, d->used_percent));
        table_row(&t, "Inodes Percent", node_percent(c, d->inodes_used_percent));
        cmd_put(c, "%s", i ? "\n" : "");
        table_print_kv(&t);
    }
}

static void
print_host(struct cmd *c, const struct node *n, const struct host_stats *s)
{
    char a[SIZE_TEXT], b[SIZE_TEXT];
    struct table t;
    cmd_heading(c, "Host Resource Utilization");
    table_init(&t, c, 3);
    table_row(&t, "CPU", "Memory", "Disk");
    int64_t mhz =
        n->node_resources && n->node_resources->cpu ? n->node_resources->cpu->cpu_shares : 0;
    const char *mem = s->memory ? mem_printf(c, "%s/%s", size_format(s->memory->used, a),
                                             size_format(s->memory->total, b))
                                : NULL;
    const char *disk = s->alloc_dir_stats
                           ? mem_printf(c, "%s/%s", size_format(s->alloc_dir_stats->used, a),
                                        size_format(s->alloc_dir_stats->size, b))
                           : NULL;
    table_row(&t, mem_printf(c, "%.0f/%lld MHz", s->cpu_ticks_consumed, (long long)mhz), mem, disk);
    table_print(&t);
}

static int
alloc_cmp(const void *a, const void *b)
{
    const struct allocation *const *x = a, *const *y = b;
    if ((*x)->create_index != (*y)->create_index)
        return (*x)->create_index < (*y)->create_index ? 1 : -1;
    return strcmp(str_or((*x)->name, ""), str_or((*y)->name, ""));
}

static void
print_allocs(struct cmd *c, struct allocation_list *l, bool verbose)
{
    struct table t;
    cmd_heading(c, "Allocations");
    if (l->n == 0) {
        cmd_say(c, "No allocations placed");
        return;
    }
    qsort(l->v, l->n, sizeof(*l->v), alloc_cmp);
    table_init(&t, c, 9);
    table_row(&t, "ID", "Node ID", "Job ID", "Task Group", "Version", "Desired", "Status",
              "Created", "Modified");
    for (size_t i = 0; i < l->n; i++) {
        const struct allocation *a = l->v[i];
        table_row(&t, fmt_id(c, a->id, verbose), fmt_id(c, a->node_id, verbose), a->job_id,
                  a->task_group, fmt_u64(c, a->job ? a->job->version : 0), a->desired_status,
                  a->client_status, fmt_ago(c, a->create_time), fmt_ago(c, a->modify_time));
    }
    table_print(&t);
}

static int
show_node(struct cmd *c, const struct node_opts *o, const char *id)
{
    struct allocation_list l = {NULL, 0};
    int rc;
    const struct node *n =
        api_read(c, api_target(c, "/v1/node/%", id, NULL), &type_node, "Error querying node info");
    if (!n)
        return 1;
    if (output_object(c, &o->out, &type_node, n, &rc))
        return rc;
    if (!api_read_list(c, api_target(c, "/v1/node/%/allocations", id, NULL), &type_allocation, &l,
                       "Error querying node allocations"))
        return 1;
    const struct host_stats *s = o->brief ? NULL : host_stats(c, n);
    print_head(c, n, s);
    if (!o->brief) {
        if (o->verbose)
            print_drivers(c, n);
        print_events(c, n);
        print_allocated(c, n, &l);
        if (s)
            print_host(c, n, s);
        if (s && o->stats)
            print_stats(c, s);
        if (o->verbose) {
            print_volumes(c, n);
            if (n->node_resources)
                print_devices(c, n, &l);
        }
    }
    print_allocs(c, &l, o->verbose);
    if (o->verbose) {
        print_titled_map(c, "Attributes", &n->attributes);
        print_titled_map(c, "Meta", &n->meta);
    }
    return 0;
}

static void
show_matches(struct cmd *c, const struct object_list *l)
{
    struct table t;
    table_init(&t, c, 4);
    table_row(&t, "ID", "DC", "Name", "Status");
    for (size_t i = 0; i < l->n; i++) {
        const struct node_list_stub *n = l->v[i];
        table_row(&t, n->id, n->datacenter, n->name, n->status);
    }
    table_print(&t);
}

/* Nodes of that name; an id is asked about as one. */
static void
by_name(struct cmd *c, const char *name, struct object_list *ret)
{
    struct err e = ERR_INIT;
    size_t n = 0;
    ret->n = 0;
    if (strlen(name) + 1 == UUID_TEXT || str_empty(name) || strpbrk(name, "\"\\"))
        return;
    const char *filter = mem_printf(c, "Name == \"%s\"", name);
    if (api_list(c, api_target(c, "/v1/nodes", "filter", filter, NULL), &type_node_list_stub, ret,
                 NULL, &e))
        return;
    for (size_t i = 0; i < ret->n; i++)
        if (str_eq(((struct node_list_stub *)ret->v[i])->name, name))
            ret->v[n++] = ret->v[i];
    ret->n = n;
}

const char *
node_find(struct cmd *c, const char *prefix, int *ret_code)
{
    static const struct api_kind node = {"node", "/v1/nodes", &type_node_list_stub, show_matches};
    struct object_list named;
    *ret_code = 1;
    by_name(c, prefix, &named);
    if (named.n == 0) /* whose words say what it was not found by */
        return api_find(c, &node, prefix);
    if (named.n == 1)
        return ((struct node_list_stub *)named.v[0])->id;
    cmd_say(c, "Prefix matched multiple nodes\n");
    show_matches(c, &named);
    return NULL;
}

const char *
node_arg(struct cmd *c, bool self, int *ret_code)
{
    *ret_code = 1;
    if (self == (c->n_args == 1)) {
        cmd_fail(c, "Name a node, or give -self");
        return NULL;
    }
    return self ? node_self(c) : node_find(c, c->args[0], ret_code);
}

int
cmd_node_status(struct cmd *c)
{
    struct node_opts o = {.brief = false};
    const struct opt opts[] = {
        {"short", OPT_BOOL, &o.brief, NULL, "Only the head and the allocations."},
        {"verbose", OPT_BOOL, &o.verbose, NULL,
         "Show full ids, attributes, volumes, devices and more."},
        {"allocs", OPT_BOOL, &o.allocs, NULL, "Count running allocations in the list."},
        {"self", OPT_BOOL, &o.self, NULL, "Show the node that the agent is."},
        {"stats", OPT_BOOL, &o.stats, NULL, "Show CPU, memory and disks of the host."},
        {"quiet", OPT_BOOL, &o.quiet, NULL, "List ids only, in full."},
        {"os", OPT_BOOL, &o.os, NULL, "Show the operating system in the list."},
        {"filter", OPT_STRING, &o.filter, "<expression>", "List only nodes that match."},
        {"per-page", OPT_INT, &o.per_page, "<n>", "List so many per page."},
        {"page-token", OPT_STRING, &o.page_token, "<token>", "Where the page starts."},
        {"map", OPT_BOOL, &o.map, NULL, "Show a character for each node, by its memory."},
        {"ui", OPT_BOOL, &o.ui, NULL, "Without effect: the command ui prints the address."},
        OUTPUT_OPTS(o.out),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (!o.self && c->n_args == 0)
        return o.map ? node_map(c, o.filter) : list_nodes(c, &o);
    const char *id = o.self ? node_self(c) : node_find(c, c->args[0], &rc);
    return id ? show_node(c, &o, id) : 1;
}

int
cmd_node_eligibility(struct cmd *c)
{
    bool enable = false, disable = false, self = false;
    const struct opt opts[] = {
        {"enable", OPT_BOOL, &enable, NULL, "The node takes new allocations."},
        {"disable", OPT_BOOL, &disable, NULL, "The node takes no new allocations."},
        {"self", OPT_BOOL, &self, NULL, "The node that the agent is."},
        {0}};
    int rc = 1;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (enable == disable)
        return cmd_fail(c, "Either the -enable or -disable flag must be set");
    const char *id = node_arg(c, self, &rc);
    if (!id)
        return rc;
    const char *word = enable ? NODE_ELIGIBLE : NODE_INELIGIBLE;
    struct node_eligibility_request req = {.node_id = id, .eligibility = word};
    if (!api_change(c, &(struct change){NULL, api_target(c, "/v1/node/%/eligibility", id, NULL),
                                        &type_node_eligibility_request, &req, NULL,
                                        "Error updating scheduling eligibility"}))
        return 1;
    cmd_say(c, "Node \"%s\" scheduling eligibility set: %s for scheduling", id, word);
    return 0;
}

/* In place of those that the client knows, until its servers tell it others. */
static int
update_servers(struct cmd *c)
{
    auto_buf struct buf b = BUF_INIT(64 << 10);

    if (c->n_args == 0)
        return cmd_fail(c, "-update-servers needs at least one address of a server");
    for (size_t i = 0; i < c->n_args; i++) {
        buf_puts(&b, i == 0 ? "/v1/agent/servers?address=" : "&address=");
        http_escape(&b, c->args[i], false);
    }
    if (!api_change(c, &(struct change){.target = api_raw_target(c, buf_str(&b), NULL),
                                        .failed = "Error updating server list"}))
        return 1;
    cmd_say(c, "Updated server list");
    return 0;
}

int
cmd_node_config(struct cmd *c)
{
    bool servers = false, update = false;
    const struct opt opts[] = {{"servers", OPT_BOOL, &servers, NULL, "List the servers."},
                               {"update-servers", OPT_BOOL, &update, NULL,
                                "Set the servers to the arguments, \"ip:port\" each."},
                               {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = SIZE_MAX}, &rc))
        return rc;
    if (update)
        return update_servers(c);
    if (!servers)
        return cmd_fail(c, "Either the -servers or -update-servers flag must be set");
    struct err e = ERR_INIT;
    struct value *v = NULL;
    if (api_get_value(c, api_target(c, "/v1/agent/servers", NULL), &v, &e))
        return cmd_fail(c, "Error querying server list: %s", e.text);
    for (size_t i = 0; v->kind == VALUE_LIST && i < v->list.n; i++)
        if (v->list.v[i]->kind == VALUE_STRING)
            cmd_say(c, "%s", v->list.v[i]->str.s);
    return 0;
}
