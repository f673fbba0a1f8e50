/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc status: the tasks, in the order in which they start. Resources and addresses as the job has
 * them; with -stats what the kernel counted, a table for each kind, where the node tells it;
 * events; and a line for each task for -short.
 */
#include <stdlib.h>

#include "api/terms.h"
#include "cli/alloc/alloc.h"
#include "cli/format.h"
#include "common/duration.h"
#include "common/num.h"

/* --- order --- */

struct task_row {
    const char *name;
    const struct task_lifecycle_config *lifecycle; /* NULL: a main task */
};

static int
tasks_rank(const struct task_row *t)
{
    return !t->lifecycle ? 2 : t->lifecycle->sidecar ? 1 : 0;
}

static int
task_cmp(const void *a, const void *b)
{
    const struct task_row *x = a, *y = b;
    return tasks_rank(x) != tasks_rank(y) ? tasks_rank(x) - tasks_rank(y)
                                          : strcmp(x->name, y->name);
}

/* Tasks that run before others, sidecars, main tasks; each by name. */
static size_t
task_rows(struct cmd *c, const struct allocation *a, struct task_row **ret)
{
    const struct task_group *g = job_group(a->job, a->task_group);
    size_t n = g ? g->tasks.n : a->task_states.n;
    struct task_row *rows = mem_array(c, struct task_row, n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct task_lifecycle_config *l = g ? g->tasks.v[i]->lifecycle : NULL;
        rows[i].name = g ? g->tasks.v[i]->name : a->task_states.v[i].k;
        rows[i].lifecycle = l && !str_empty(l->hook) ? l : NULL;
    }
    qsort(rows, n, sizeof(*rows), task_cmp);
    *ret = rows;
    return n;
}

static const char *
lifecycle_text(struct cmd *c, const struct task_row *t)
{
    return !t->lifecycle
               ? "main"
               : mem_printf(c, "%s%s", t->lifecycle->hook, t->lifecycle->sidecar ? " sidecar" : "");
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
        /* RSS first, Nomad's order, and the cgroup's count where nothing measures that */
        return mem_printf(c, "%s/", size_format(m->rss ? m->rss : m->usage, t));
    }
    if (!memory && r && r->cpu_stats)
        return mem_printf(c, "%.0f/", r->cpu_stats->total_ticks);
    return "";
}

/* "label: ip:port" of a task's own ports, as old job files ask for them. */
static const char *
tasks_address(struct cmd *c, const struct allocated_task_resources *r, size_t at)
{
    for (size_t i = 0; i < r->networks.n; i++) {
        const struct network_resource *n = r->networks.v[i];
        const struct port_list *lists[] = {&n->dynamic_ports, &n->reserved_ports};
        for (size_t j = 0; j < ARRAY_LEN(lists); j++) {
            if (at < lists[j]->n)
                return mem_printf(c, "%s: %s:%lld", lists[j]->v[at]->label, str_or(n->ip, ""),
                                  (long long)lists[j]->v[at]->value);
            at -= lists[j]->n;
        }
    }
    return NULL;
}

static void
print_resources(struct cmd *c, const struct allocation *a, const struct alloc_resource_usage *u,
                const char *task)
{
    const struct allocated_resources *r = a->allocated_resources;
    const __auto_type e = r ? map_get(r->tasks, task) : NULL;
    struct table t;
    char m[SIZE_TEXT], d[SIZE_TEXT], x[SIZE_TEXT];
    if (!e || !e->v)
        return;
    const struct allocated_cpu_resources *cpu = e->v->cpu;
    const struct allocated_memory_resources *memory = e->v->memory;
    int64_t mem = memory ? memory->memory_mb : 0, max = memory ? memory->memory_max_mb : 0;
    int64_t disk = r->shared ? r->shared->disk_mb : 0;
    size_t cores = cpu ? cpu->reserved_cores.n : 0;
    cmd_say(c, "Task Resources:");
    table_init(&t, c, 4);
    table_row(&t, cores ? mem_printf(c, "CPU (%zu cores)", cores) : "CPU", "Memory", "Disk",
              "Addresses");
    table_row(
        &t,
        mem_printf(c, "%s%lld MHz", usage_text(c, u, task, false),
                   (long long)(cpu ? cpu->cpu_shares : 0)),
        mem_printf(c, "%s%s", usage_text(c, u, task, true), size_format((uint64_t)mem << 20, m)),
        size_format((uint64_t)disk << 20, d), tasks_address(c, e->v, 0));
    const char *most =
        max > mem ? mem_printf(c, "Max: %s", size_format((uint64_t)max << 20, x)) : NULL;
    const char *more = tasks_address(c, e->v, 1);
    if (most || more)
        table_row(&t, "", most, "", more);
    for (size_t i = 2; (more = tasks_address(c, e->v, i)); i++)
        table_row(&t, "", "", "", more);
    table_print_blank(&t);
    for (size_t i = 0; i < e->v->devices.n; i++) {
        const struct allocated_device_resource *got = e->v->devices.v[i];
        const char *ids = "";
        for (size_t k = 0; k < got->device_ids.n; k++)
            ids = mem_printf(c, "%s%s%s", ids, k > 0 ? ", " : "", got->device_ids.v[k]);
        cmd_say(c, "Device %s/%s/%s: %s", got->vendor, got->type, got->name, ids);
    }
    if (e->v->devices.n > 0)
        cmd_put(c, "\n");
}

/* --- what it used --- */

static const char *
memory_text(struct cmd *c, const struct memory_stats *m, const char *what)
{
    const struct {
        const char *name;
        uint64_t v;
    } all[] = {{"RSS", m->rss},
               {"Cache", m->cache},
               {"Swap", m->swap},
               {"Usage", m->usage},
               {"Max Usage", m->max_usage},
               {"Kernel Usage", m->kernel_usage},
               {"Kernel Max Usage", m->kernel_max_usage}};
    char t[SIZE_TEXT];
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (str_eq(what, all[i].name))
            return mem_strdup(c, size_format(all[i].v, t));
    return NULL;
}

static const char *
cpu_text(struct cmd *c, const struct cpu_stats *s, const char *what)
{
    if (str_eq(what, "Throttled Periods"))
        return fmt_u64(c, s->throttled_periods);
    if (str_eq(what, "Throttled Time"))
        return fmt_u64(c, s->throttled_time);
    return str_eq(what, "Percent")       ? mem_printf(c, "%.2f%%", s->percent)
           : str_eq(what, "System Mode") ? mem_printf(c, "%.2f%%", s->system_mode)
           : str_eq(what, "User Mode")   ? mem_printf(c, "%.2f%%", s->user_mode)
                                         : NULL;
}

/* A column for each that was measured. */
static void
print_measured(struct cmd *c, const char *title, const struct resource_usage *r, bool memory)
{
    const struct str_list *l = memory ? &r->memory_stats->measured : &r->cpu_stats->measured;
    if (l->n == 0)
        return;
    const char **name = mem_array(c, const char *, l->n), **cell = mem_array(c, const char *, l->n);
    struct table t;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (memory ? memory_text(c, r->memory_stats, l->v[i]) : cpu_text(c, r->cpu_stats, l->v[i]))
            name[n++] = l->v[i];
    if (n == 0)
        return;
    qsort(name, n, sizeof(*name), str_cmp_qsort);
    for (size_t i = 0; i < n; i++)
        cell[i] =
            memory ? memory_text(c, r->memory_stats, name[i]) : cpu_text(c, r->cpu_stats, name[i]);
    cmd_say(c, "\n%s", title);
    table_init(&t, c, n);
    table_cells(&t, name);
    table_cells(&t, cell);
    table_print(&t);
}

static void
print_usage(struct cmd *c, const struct alloc_resource_usage *u, const char *task)
{
    const __auto_type e = u ? map_get(u->tasks, task) : NULL;
    const struct resource_usage *r = e && e->v ? e->v->resource_usage : NULL;
    if (r && r->memory_stats)
        print_measured(c, "Memory Stats", r, true);
    if (r && r->cpu_stats)
        print_measured(c, "CPU Stats", r, false);
}

/* Prints what the kernel counted, and what its policy refused; nothing where nothing counts. */
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

/* Prints the waits that held the task up: its limits, others, disks. */
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
           const struct task_row *row, bool stats)
{
    const char *task = row->name;
    const __auto_type e = map_get(a->task_states, task);
    const struct task_state *s = e ? e->v : NULL;
    cmd_heading(c, mem_printf(c, "Task \"%s\"%s is \"%s\"%s", task,
                              row->lifecycle ? mem_printf(c, " (%s)", lifecycle_text(c, row)) : "",
                              s ? s->state : "pending",
                              s && str_eq(s->paused, "pause") ? ", paused" : ""));
    print_resources(c, a, u, task);
    if (stats) {
        print_usage(c, u, task);
        print_network(c, u, task);
        print_processes(c, u, task);
        print_blocks(c, u, task);
        print_waits(c, u, task);
    }
    if (s)
        print_events(c, s);
}

void
alloc_print_tasks(struct cmd *c, const struct allocation *a, const struct alloc_resource_usage *u,
                  bool stats)
{
    struct task_row *rows;
    size_t n = task_rows(c, a, &rows);
    for (size_t i = 0; i < n; i++)
        print_task(c, a, u, &rows[i], stats);
}

void
alloc_print_tasks_short(struct cmd *c, const struct allocation *a)
{
    struct table t;
    struct task_row *rows;
    size_t n = task_rows(c, a, &rows);
    cmd_heading(c, "Tasks");
    table_init(&t, c, 5);
    table_row(&t, "Name", "State", "Last Event", "Time", "Lifecycle");
    for (size_t i = 0; i < n; i++) {
        const __auto_type e = map_get(a->task_states, rows[i].name);
        const struct task_state *s = e ? e->v : NULL;
        const struct task_event *last = s && s->events.n ? s->events.v[s->events.n - 1] : NULL;
        table_row(&t, rows[i].name, s ? s->state : "pending", last ? last->type : "",
                  last ? fmt_time(c, last->time) : "", lifecycle_text(c, &rows[i]));
    }
    table_print(&t);
}
