/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /v1/metrics: what the agent knows of itself, its host and its allocations, read when asked
 * for (there is no interval that would wake an idle agent). Names: Nomad's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/api/api.h"
#include "agent/config/config.h"
#include "agent/limits.h"
#include "api/terms.h"
#include "client/client.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/server.h"

struct gauge {
    const char *name; /* "nomad.client.host.memory.total" */
    double value;
    size_t order;
    struct str_map labels;
};

/* Since the start of the agent: how often (a counter), or also how long (a sample, in
 * milliseconds). */
struct sum {
    const char *name;
    bool counter;
    uint64_t n;
    double sum, min, max;
};

struct gauges {
    struct gauge **v;
    size_t n;
    struct str_map base;
    struct sum sums[16];
    size_t n_sums;
    double uptime_s;
};

/* The metrics of each job. There may be very many jobs: their part of the answer is written while
 * they come. */
static const char *const summary_names[] = {
    "nomad.nomad.job_summary.queued",  "nomad.nomad.job_summary.starting",
    "nomad.nomad.job_summary.running", "nomad.nomad.job_summary.complete",
    "nomad.nomad.job_summary.failed",  "nomad.nomad.job_summary.lost",
    "nomad.nomad.job_summary.unknown",
};
static const char *const job_states[] = {JOB_STATUS_PENDING, JOB_STATUS_RUNNING, JOB_STATUS_DEAD};

struct jobs {
    struct request *a;
    struct buf part; /* of the list, as JSON: a worker's while it makes samples of it */
    bool broken;
    struct list_request r;
    struct list_options list;
    const char *host;
    bool prometheus;
    uint64_t states[ARRAY_LEN(job_states)];
    struct buf text[ARRAY_LEN(summary_names)];
};

static bool
is_prometheus(const struct request *a)
{
    return str_eq(http_query(a->req, "format"), "prometheus");
}

static struct gauge *
metrics_add(struct gauges *g, const char *name, double value)
{
    struct gauge *x = mem_new(g, struct gauge);
    x->name = name;
    x->value = value;
    x->order = g->n;
    for (size_t i = 0; i < g->base.n; i++)
        str_map_set(g, &x->labels, g->base.v[i].k, g->base.v[i].v);
    list_add(g, *g, x);
    return x;
}

static void
metrics_label(struct gauges *g, struct gauge *x, const char *k, const char *v)
{
    str_map_set(g, &x->labels, k, str_or(v, ""));
}

static void
add_labelled(struct gauges *g, const struct str_map *labels, const char *name, double value)
{
    struct gauge *x = metrics_add(g, name, value);
    for (size_t i = 0; i < labels->n; i++)
        metrics_label(g, x, labels->v[i].k, labels->v[i].v);
}

static void
add_process(struct gauges *g)
{
    char *text;
    auto_mem void *tmp = mem_ctx("metrics");
    if (file_read(tmp, -1, "/proc/self/status", 65536, &text, NULL) < 0)
        return;
    const char *rss = strstr(text, "\nVmRSS:");
    if (rss) {
        uint64_t kb = 0;
        for (rss += 7; *rss == ' ' || *rss == '\t'; rss++)
            ;
        for (; *rss >= '0' && *rss <= '9'; rss++)
            kb = kb * 10 + (uint64_t)(*rss - '0');
        metrics_add(g, "nomad.runtime.alloc_bytes", (double)kb * 1024);
    }
}

static double
number_of(const struct field *f, const void *p)
{
    switch (f->type) {
    case FT_FLOAT:
        return *(const double *)p;
    case FT_DURATION:
        return (double)*(const int64_t *)p / NS_PER_S;
    case FT_INT:
        return (double)*(const int64_t *)p;
    default:
        ASSERT(f->type == FT_UINT);
        return (double)*(const uint64_t *)p;
    }
}

/* Adds the members that the schema calls metrics, of an object that may not have been measured. */
static void
add_fields(struct gauges *g, const struct str_map *labels, const char *prefix, const struct type *t,
           const void *obj)
{
    const struct str_list *measured = type_member(t, obj, "Measured");
    if (measured && measured->n == 0)
        return;
    for (size_t i = 0; i < api_metrics_n; i++) {
        const struct metric *m = &api_metrics[i];
        const void *p = (const char *)obj + m->field->offset;
        const void *sub = m->type == t && m->field->sub ? *(void *const *)p : NULL;
        if (m->type != t || (m->field->sub && !sub))
            continue;
        const char *name = mem_printf(g, "%s%s", prefix, m->name);
        if (sub)
            add_fields(g, labels, name, m->field->sub, sub);
        else
            add_labelled(g, labels, name, number_of(m->field, p));
    }
}

#define HOST "nomad.client.host."

static void
add_host(struct gauges *g, struct client *c)
{
    struct host_stats *s = client_host_stats(c, g);
    struct str_map l = {0};

    metrics_add(g, "nomad.client.uptime", (double)s->uptime);
    add_fields(g, &l, HOST, &type_host_stats, s);
    for (size_t i = 0; i < s->cpu.n; i++) {
        str_map_set(g, &l, "cpu", str_or(s->cpu.v[i]->cpu, ""));
        add_fields(g, &l, HOST "cpu.", &type_host_cpu_stats, s->cpu.v[i]);
        add_labelled(g, &l, HOST "cpu.total", s->cpu.v[i]->total_percent); /* its older name */
    }
    l.n = 0;
    for (size_t i = 0; i < s->disk_stats.n; i++) {
        str_map_set(g, &l, "disk", str_or(s->disk_stats.v[i]->device, ""));
        add_fields(g, &l, HOST "disk.", &type_host_disk_stats, s->disk_stats.v[i]);
    }
}

#define ALLOCS "nomad.client.allocs."

static void
add_allocated(struct gauges *g, const struct str_map *l, const struct allocation *a,
              const char *task)
{
    const __auto_type row =
        a->allocated_resources ? map_get(a->allocated_resources->tasks, task) : NULL;
    const struct allocated_task_resources *r = row ? row->v : NULL;
    if (r && r->cpu)
        add_labelled(g, l, ALLOCS "cpu.allocated", (double)r->cpu->cpu_shares);
    if (!r || !r->memory)
        return;
    add_labelled(g, l, ALLOCS "memory.allocated", (double)r->memory->memory_mb * 1048576);
    add_labelled(g, l, ALLOCS "memory.max_allocated", (double)r->memory->memory_max_mb * 1048576);
}

static struct str_map
alloc_labels(struct gauges *g, const struct allocation *a)
{
    struct str_map l = {0};
    str_map_set(g, &l, "job", str_or(a->job_id, ""));
    str_map_set(g, &l, "task_group", str_or(a->task_group, ""));
    str_map_set(g, &l, "alloc_id", a->id);
    str_map_set(g, &l, "namespace", str_or(a->namespace, ""));
    return l;
}

/* Adds the kernel's counts of a task, under Nomad's names where Nomad has one. */
static void
add_task(void *arg, const struct allocation *a, const char *task, const struct resource_usage *u)
{
    struct gauges *g = arg;
    struct str_map l = alloc_labels(g, a);
    str_map_set(g, &l, "task", task);
    add_allocated(g, &l, a, task);
    add_fields(g, &l, ALLOCS, &type_resource_usage, u);
}

/* Adds how many services are registered, and of each check whether it passes. */
static void
add_services(void *arg, const struct allocation *a, size_t registered,
             const struct check_result_list *checks)
{
    struct gauges *g = arg;
    struct str_map l = alloc_labels(g, a);
    add_labelled(g, &l, ALLOCS "services.registered", (double)registered);
    for (size_t i = 0; i < checks->n; i++) {
        const struct check_result *r = checks->v[i];
        str_map_set(g, &l, "task", str_or(r->task, ""));
        str_map_set(g, &l, "service", str_or(r->service, ""));
        str_map_set(g, &l, "check", str_or(r->check, ""));
        add_labelled(g, &l, ALLOCS "services.check_passes", str_eq(r->status, "success") ? 1 : 0);
    }
}

/* --- what is given away, and what is left --- */

struct given {
    int64_t cpu, memory, memory_max, disk;
};

static void
sum_given(void *arg, const struct allocation *a)
{
    const struct allocated_resources *r = a->allocated_resources;
    struct given *sum = arg;

    for (size_t i = 0; r && i < r->tasks.n; i++) {
        const struct allocated_task_resources *t = r->tasks.v[i].v;
        sum->cpu += t->cpu ? t->cpu->cpu_shares : 0;
        sum->memory += t->memory ? t->memory->memory_mb : 0;
        sum->memory_max += t->memory && t->memory->memory_max_mb > 0 ? t->memory->memory_max_mb
                           : t->memory                               ? t->memory->memory_mb
                                                                     : 0;
    }
    sum->disk += r && r->shared ? r->shared->disk_mb : 0;
}

static void
add_given(struct gauges *g, struct client *c, const struct node *n)
{
    struct given sum = {0};

    client_each_live(c, sum_given, &sum);
    metrics_add(g, "nomad.client.allocated.cpu", (double)sum.cpu);
    metrics_add(g, "nomad.client.allocated.memory", (double)sum.memory);
    metrics_add(g, "nomad.client.allocated.max_memory", (double)sum.memory_max);
    metrics_add(g, "nomad.client.allocated.disk", (double)sum.disk);
    const struct node_resources *has = n ? n->node_resources : NULL;
    const struct node_reserved_resources *kept = n ? n->reserved_resources : NULL;
    if (!has || !has->cpu || !has->memory || !has->disk)
        return;
    if (kept && kept->cpu && kept->memory && kept->disk) {
        sum.cpu += (int64_t)kept->cpu->cpu_shares;
        sum.memory += (int64_t)kept->memory->memory_mb;
        sum.disk += (int64_t)kept->disk->disk_mb;
    }
    metrics_add(g, "nomad.client.unallocated.cpu", (double)(has->cpu->cpu_shares - sum.cpu));
    metrics_add(g, "nomad.client.unallocated.memory",
                (double)(has->memory->memory_mb - sum.memory));
    metrics_add(g, "nomad.client.unallocated.disk", (double)(has->disk->disk_mb - sum.disk));
}

static void
add_client(struct gauges *g, struct client *c, bool tasks)
{
    const struct node *n = client_node(c);
    struct client_info info;

    client_info(c, &info);
    str_map_set(g, &g->base, "node_id", str_or(info.node_id, ""));
    if (n) {
        str_map_set(g, &g->base, "datacenter", str_or(n->datacenter, ""));
        str_map_set(g, &g->base, "node_class", str_empty(n->node_class) ? "none" : n->node_class);
        str_map_set(g, &g->base, "node_pool", str_or(n->node_pool, ""));
        /* the status it was registered with is "initializing"; the servers make it ready */
        str_map_set(g, &g->base, "node_status",
                    info.registered ? NODE_READY : str_or(n->status, ""));
        str_map_set(g, &g->base, "node_scheduling_eligibility",
                    str_or(n->scheduling_eligibility, ""));
    }
    metrics_add(g, "nomad.client.allocations.running", (double)info.allocs_running);
    metrics_add(g, "nomad.client.allocations.pending", (double)info.allocs_pending);
    metrics_add(g, "nomad.client.allocations.terminal", (double)info.allocs_terminal);
    /* no allocation waits on its node for the end or the data of another */
    metrics_add(g, "nomad.client.allocations.blocked", 0);
    metrics_add(g, "nomad.client.allocations.migrating", 0);
    metrics_add(g, "nomad.client.tasks.running", (double)info.tasks_running);
    metrics_add(g, "nomad.client.tasks.pending", (double)info.tasks_pending);
    metrics_add(g, "nomad.client.tasks.dead", (double)info.tasks_dead);
    add_given(g, c, n);
    add_host(g, c);
    if (tasks) {
        client_each_usage(c, add_task, g);
        client_each_services(c, add_services, g);
    }
    g->base.n = 1; /* the host */
}

static void
add_count(struct gauges *g, const char *name, uint64_t n)
{
    ASSERT(g->n_sums < ARRAY_LEN(g->sums));
    g->sums[g->n_sums++] = (struct sum){name, true, n, (double)n, n > 0, n > 0};
}

static void
add_times(struct gauges *g, const char *name, const struct server_times *t)
{
    ASSERT(g->n_sums < ARRAY_LEN(g->sums));
    g->sums[g->n_sums++] = (struct sum){
        name, false, t->n, (double)t->sum / 1e6, (double)t->min / 1e6, (double)t->max / 1e6};
}

static void
add_raft(struct gauges *g, struct server *s, const struct server_figures *f)
{
    auto_mem void *tmp = mem_ctx("raft");
    struct server_info i;
    server_info(s, tmp, &i);
    metrics_add(g, "nomad.raft.lastIndex", (double)i.last);
    metrics_add(g, "nomad.raft.peers", (double)i.peers);
    if (i.last_contact_ms != INT64_MAX)
        metrics_add(g, "nomad.raft.leader.lastContact", (double)i.last_contact_ms);
    add_count(g, "nomad.raft.apply", f->writes);
    add_count(g, "nomad.raft.state.follower", f->entered[0]);
    add_count(g, "nomad.raft.state.candidate", f->entered[1]);
    add_count(g, "nomad.raft.state.leader", f->entered[2]);
    add_times(g, "nomad.raft.commitTime", &f->commit);
    add_times(g, "nomad.nomad.leader.establish_leadership", &f->establish);
}

static void
add_gossip(struct gauges *g, struct server *s)
{
    struct server_gossip_figures f;
    server_gossip_figures(s, &f);
    metrics_add(g, "nomad.memberlist.health.score", (double)f.health);
    add_count(g, "nomad.memberlist.degraded.stalls", f.stalls);
    add_count(g, "nomad.memberlist.msg.denied", f.denied);
    add_count(g, "nomad.memberlist.udp.sent", f.sent);
    add_count(g, "nomad.memberlist.udp.received", f.received);
    add_count(g, "nomad.memberlist.msg.refused", f.refused);
    add_count(g, "nomad.serf.domain.failed", f.domains);
}

static void
add_server(struct gauges *g, struct server *s)
{
    struct server_figures f;

    server_figures(s, &f);
    metrics_add(g, "nomad.nomad.leader.is_leader", server_is_leader(s) ? 1 : 0);
    metrics_add(g, "nomad.nomad.broker.total_ready", (double)f.evals_ready);
    metrics_add(g, "nomad.nomad.broker.total_unacked", (double)f.evals_unacked);
    metrics_add(g, "nomad.nomad.broker.total_pending", (double)f.evals_pending);
    metrics_add(g, "nomad.nomad.broker.total_waiting", (double)f.evals_waiting);
    metrics_add(g, "nomad.nomad.blocked_evals.total_blocked", (double)f.evals_blocked);
    metrics_add(g, "nomad.nomad.plan.queue_depth", (double)f.plans);
    metrics_add(g, "nomad.nomad.heartbeat.active", (double)f.heartbeats);
    metrics_add(g, "nomad.raft.thread.main.longest_ms", (double)f.raft_turn_ns / 1e6);
    metrics_add(g, "nomad.raft.thread.fsm.longest_ms", (double)f.apply_turn_ns / 1e6);
    metrics_add(g, "nomad.raft.appliedIndex", (double)server_applied(s));
    add_raft(g, s, &f);
    add_gossip(g, s);
}

static struct gauges *
metrics_collect(struct request *a)
{
    struct gauges *g = mem_new(a, struct gauges);
    struct api *api = a->api;

    str_map_set(g, &g->base, "host", str_or(api->name, ""));
    g->uptime_s = (double)(clock_mono_ns() - api->started_ns) / NS_PER_S;
    add_process(g);
    metrics_add(g, "nomad.runtime.loop.longest_ms", (double)loop_longest_turn_ns(api->loop) / 1e6);
    metrics_add(g, "nomad.nomad.agent.http.connections",
                api->http ? (double)http_server_conns(api->http) : 0);
    if (api->tls_end_s > 0)
        metrics_add(g, "nomad.tls.certificate.expires_s",
                    (double)(api->tls_end_s - clock_wall_ns() / NS_PER_S));
    if (api->server)
        add_server(g, api->server);
    if (api->client)
        add_client(g, api->client,
                   api->cfg && api->cfg->telemetry &&
                       api->cfg->telemetry->publish_allocation_metrics);
    return g;
}

static void
send_text(struct request *a, struct buf *b, const char *content_type)
{
    if (buf_error(b) == 0) {
        reply_text(a, b, content_type);
        return;
    }
    buf_done(b);
    reply_fail(a, 413, "the metrics are larger than %d MiB", API_ANSWER_MAX >> 20);
}

static void
put_number(struct buf *b, double v)
{
    if (v >= -9e15 && v <= 9e15 && (double)(int64_t)v <= v && (double)(int64_t)v >= v)
        buf_printf(b, "%" PRId64, (int64_t)v);
    else
        buf_printf(b, "%.6g", v);
}

static void
put_labels_json(struct buf *b, const struct str_map *m)
{
    buf_putc(b, '{');
    for (size_t i = 0; i < m->n; i++) {
        if (i > 0)
            buf_putc(b, ',');
        json_put_string(b, m->v[i].k, strlen(m->v[i].k));
        buf_putc(b, ':');
        json_put_string(b, m->v[i].v, strlen(m->v[i].v));
    }
    buf_putc(b, '}');
}

static void
put_json(struct buf *b, const struct gauge *x, bool comma)
{
    buf_printf(b, "%s{\"Name\":\"%s\",\"Value\":", comma ? "," : "", x->name);
    put_number(b, x->value);
    buf_puts(b, ",\"Labels\":");
    put_labels_json(b, &x->labels);
    buf_putc(b, '}');
}

static void
put_field(struct buf *b, const char *name, double v)
{
    buf_printf(b, ",\"%s\":", name);
    put_number(b, v);
}

static void
put_sums_json(struct buf *b, const struct gauges *g, bool counters)
{
    const char *comma = "";
    for (size_t i = 0; i < g->n_sums; i++) {
        const struct sum *s = &g->sums[i];
        if (s->counter != counters)
            continue;
        buf_printf(b, "%s{\"Name\":\"%s\",\"Count\":%" PRIu64, comma, s->name, s->n);
        put_field(b, "Rate", g->uptime_s > 0 ? s->sum / g->uptime_s : 0);
        put_field(b, "Sum", s->sum);
        put_field(b, "Min", s->min);
        put_field(b, "Max", s->max);
        put_field(b, "Mean", s->n > 0 ? s->sum / (double)s->n : 0);
        buf_puts(b, ",\"Labels\":");
        put_labels_json(b, &g->base);
        buf_putc(b, '}');
        comma = ",";
    }
}

static void
send_json(struct request *a, const struct gauges *g, const struct jobs *jobs)
{
    struct buf b = BUF_INIT(API_ANSWER_MAX);
    time_t now = (time_t)(clock_wall_ns() / NS_PER_S);
    struct tm tm;
    char when[64];

    gmtime_r(&now, &tm);
    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S +0000 UTC", &tm);
    buf_printf(&b, "{\"Timestamp\":\"%s\",\"Gauges\":[", when);
    for (size_t i = 0; i < g->n; i++)
        put_json(&b, g->v[i], i > 0);
    for (size_t i = 0; jobs && i < ARRAY_LEN(jobs->text); i++)
        buf_put(&b, jobs->text[i].data, jobs->text[i].len);
    buf_puts(&b, "],\"Points\":[],\"Counters\":[");
    put_sums_json(&b, g, true);
    buf_puts(&b, "],\"Samples\":[");
    put_sums_json(&b, g, false);
    buf_puts(&b, "]}");
    struct value *v = NULL;
    struct err e = ERR_INIT;
    if (a->pretty && buf_error(&b) == 0 &&
        json_decode_value(a, SLICE(b.data, b.len), BUDGET(8 * API_ANSWER_MAX), &v, &e) == 0) {
        buf_done(&b);
        reply_value(a, v);
        return;
    }
    send_text(a, &b, "application/json");
}

static void
put_prometheus_name(struct buf *b, const char *name)
{
    for (; *name; name++)
        buf_putc(b, *name == '.' || *name == '-' ? '_' : *name);
}

static void
put_prometheus_labels(struct buf *b, const struct str_map *m)
{
    if (m->n == 0)
        return;
    buf_putc(b, '{');
    for (size_t i = 0; i < m->n; i++) {
        buf_printf(b, "%s%s=\"", i ? "," : "", m->v[i].k);
        for (const char *s = m->v[i].v; *s; s++) {
            if (*s == '\\' || *s == '"')
                buf_putc(b, '\\');
            if (*s == '\n')
                buf_puts(b, "\\n");
            else
                buf_putc(b, *s);
        }
        buf_putc(b, '"');
    }
    buf_putc(b, '}');
}

static int
by_name(const void *x, const void *y)
{
    const struct gauge *a = *(struct gauge *const *)x, *b = *(struct gauge *const *)y;
    int r = strcmp(a->name, b->name);
    return r ? r : a->order < b->order ? -1 : 1;
}

/* Sums since the start of a task, of our own names; what has a name of Nomad's has its type there.
 */
static bool
is_counter(const char *name)
{
    static const char *const groups[] = {"block.",    "io.",   "network.",
                                         "pressure.", "runq.", "processes."};

    if (!str_prefix(name, ALLOCS) || strstr(name, "_p50_") || strstr(name, "_p99_"))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        if (str_prefix(name + strlen(ALLOCS), groups[i]))
            return true;
    return false;
}

/* The samples of one name follow its lines HELP and TYPE. */
static void
put_head(struct buf *b, const char *name, const char *type)
{
    buf_puts(b, "# HELP ");
    put_prometheus_name(b, name);
    buf_printf(b, " %s\n# TYPE ", name);
    put_prometheus_name(b, name);
    buf_printf(b, " %s\n", type);
}

static void
put_sum(struct buf *b, const struct sum *s, const struct str_map *labels)
{
    put_head(b, s->name, s->counter ? "counter" : "summary");
    put_prometheus_name(b, s->name);
    if (!s->counter) {
        buf_puts(b, "_sum");
        put_prometheus_labels(b, labels);
        buf_putc(b, ' ');
        put_number(b, s->sum);
        buf_putc(b, '\n');
        put_prometheus_name(b, s->name);
        buf_puts(b, "_count");
    }
    put_prometheus_labels(b, labels);
    buf_printf(b, " %" PRIu64 "\n", s->n);
}

static void
put_sample(struct buf *b, const struct gauge *x)
{
    put_prometheus_name(b, x->name);
    put_prometheus_labels(b, &x->labels);
    buf_putc(b, ' ');
    put_number(b, x->value);
    buf_putc(b, '\n');
}

static void
send_prometheus(struct request *a, struct gauges *g, const struct jobs *jobs)
{
    struct buf b = BUF_INIT(API_ANSWER_MAX);

    if (g->n > 0)
        qsort(g->v, g->n, sizeof(*g->v), by_name);
    for (size_t i = 0; i < g->n; i++) {
        const struct gauge *x = g->v[i];
        if (i == 0 || strcmp(g->v[i - 1]->name, x->name) != 0)
            put_head(&b, x->name, is_counter(x->name) ? "counter" : "gauge");
        put_sample(&b, x);
    }
    for (size_t i = 0; i < g->n_sums; i++)
        put_sum(&b, &g->sums[i], &g->base);
    for (size_t i = 0; jobs && i < ARRAY_LEN(jobs->text); i++) {
        if (jobs->text[i].len > 0)
            put_head(&b, summary_names[i], "gauge");
        buf_put(&b, jobs->text[i].data, jobs->text[i].len);
    }
    send_text(a, &b, "text/plain; version=0.0.4; charset=utf-8");
}

/* --- the jobs, part by part --- */

static void
add_summary(struct jobs *j, const struct job_list_stub *stub, const char *group,
            const struct task_group_summary *s)
{
    const int64_t v[] = {s->queued, s->starting, s->running, s->complete,
                         s->failed, s->lost,     s->unknown};
    auto_mem struct gauges *g = mem_new(NULL, struct gauges);

    str_map_set(g, &g->base, "host", j->host);
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        struct gauge *x = metrics_add(g, summary_names[i], (double)v[i]);
        metrics_label(g, x, "job", stub->id);
        metrics_label(g, x, "namespace", stub->namespace);
        metrics_label(g, x, "task_group", group);
        if (j->prometheus)
            put_sample(&j->text[i], x);
        else
            put_json(&j->text[i], x, true);
    }
}

/* On a worker: seven samples for each group of each job. */
static void
add_part(void *arg)
{
    struct jobs *j = arg;
    auto_mem void *tmp = mem_ctx("jobs");
    struct object_list l;
    struct err e = ERR_INIT;
    size_t budget = API_BODY_FACTOR * j->part.len + API_BODY_EXTRA;

    j->broken = json_decode_list(tmp, &type_job_list_stub, SLICE(buf_str(&j->part), j->part.len),
                                 BUDGET(budget), &l, &e) < 0;
    for (size_t i = 0; !j->broken && i < l.n; i++) {
        const struct job_list_stub *stub = l.v[i];
        for (size_t k = 0; k < ARRAY_LEN(job_states); k++)
            j->states[k] += str_eq(stub->status, job_states[k]);
        for (size_t k = 0; stub->job_summary && k < stub->job_summary->summary.n; k++)
            add_summary(j, stub, stub->job_summary->summary.v[k].k,
                        stub->job_summary->summary.v[k].v);
    }
}

static int
jobs_free(struct jobs *j)
{
    buf_done(&j->part);
    for (size_t i = 0; i < ARRAY_LEN(j->text); i++)
        buf_done(&j->text[i]);
    return 0;
}

static void
metrics_answer(struct request *a, const struct jobs *jobs)
{
    struct gauges *g = metrics_collect(a);

    for (size_t i = 0; jobs && i < ARRAY_LEN(job_states); i++)
        metrics_add(g, mem_printf(g, "nomad.nomad.job_status.%s", job_states[i]),
                    (double)jobs->states[i]);
    if (is_prometheus(a))
        send_prometheus(a, g, jobs);
    else
        send_json(a, g, jobs);
}

/* Half of the jobs is not told as if it were all. What is known here is worth telling without a
 * leader too. */
static bool
jobs_error(struct request *a, const struct err *e)
{
    (void)e;
    metrics_answer(a, NULL);
    return true;
}

static void jobs_part(struct request *a, const void *resp);

static void
part_added(void *arg)
{
    struct jobs *j = arg;

    if (j->broken)
        metrics_answer(j->a, NULL);
    else if (str_empty(j->list.next_token))
        metrics_answer(j->a, j);
    else
        call_server(j->a, RPC_JOB_LIST, &j->r, jobs_part);
}

static void
jobs_part(struct request *a, const void *resp)
{
    const struct query_meta *m = ((const struct job_list_response *)resp)->meta;
    struct jobs *j = a->user;

    j->list.next_token = mem_strdup(j, m->next_token);
    if (m->rows.n == 0) {
        part_added(j);
        return;
    }
    buf_reset(&j->part);
    buf_put(&j->part, m->rows.v, m->rows.n);
    buf_putc(&j->part, ']');
    j->part.data[0] = '['; /* was the comma before the first */
    loop_work(a->api->loop, add_part, part_added, j);
}

void
metrics_get(struct request *a)
{
    const struct agent_config *cfg = a->api->cfg;

    if (is_prometheus(a) && cfg && !cfg->dev_mode &&
        !(cfg->telemetry && cfg->telemetry->prometheus_metrics)) {
        reply_fail(a, 415, "Prometheus is not enabled");
        return;
    }
    if (!a->api->server) {
        metrics_answer(a, NULL);
        return;
    }
    struct jobs *j = mem_new(a, struct jobs);
    j->a = a;
    buf_init(&j->part, SIZE_MAX);
    j->prometheus = is_prometheus(a);
    j->host = str_or(a->api->name, "");
    j->list.part = 1;
    j->r.list = &j->list;
    for (size_t i = 0; i < ARRAY_LEN(j->text); i++)
        buf_init(&j->text[i], API_ANSWER_MAX);
    talloc_set_destructor(j, jobs_free);
    a->user = j;
    a->on_error = jobs_error;
    a->env = (struct rpc_envelope){.region = a->api->region,
                                   .namespace = NS_ALL,
                                   .auth_token = a->env.auth_token,
                                   .stale = true};
    call_server(a, RPC_JOB_LIST, &j->r, jobs_part);
}
