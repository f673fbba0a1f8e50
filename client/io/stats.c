/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of the host and of tasks, when somebody asks: see stats.h. In this order: processes,
 * from /proc; rates, of processor time between two questions; tasks, from their cgroup and from the
 * rows of the BPF programs, where something that is not counted stays absent and is not 0; and the
 * host.
 */
#include "client/io/stats.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "client/alloc/alloc_runner.h"
#include "client/limits.h"
#include "client/warden_link.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "fingerprint/fingerprint.h"
#include "isolation/bpf/read.h"
#include "isolation/cgroup/cgroup.h"

#define RATE_MIN_NS (NS_PER_S / 2) /* shorter intervals give the last rate again */

/* --- processes --- */

struct proc_stats {
    int64_t user_us;
    int64_t system_us;
    int64_t rss; /* bytes */
};

/* utime, stime, rss of /proc/PID/stat: fields 14, 15 and 24; the name in field 2 may hold anything,
 * so the count starts behind its last ')'. */
static bool
parse_proc_stat(const char *text, struct proc_stats *ret)
{
    const char *p = strrchr(text, ')');
    if (!p)
        return false;
    unsigned long long utime, stime;
    long long rss;
    int n = sscanf(p + 1,
                   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d "
                   "%*u %*u %lld",
                   &utime, &stime, &rss);
    long tick = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    if (n != 3 || tick <= 0 || page <= 0 || rss < 0)
        return false;
    ret->user_us = (int64_t)utime * 1000000 / tick;
    ret->system_us = (int64_t)stime * 1000000 / tick;
    ret->rss = rss * page;
    return true;
}

static bool
read_proc(int64_t pid, struct proc_stats *ret)
{
    auto_mem void *tmp = mem_ctx("proc");
    char *text = NULL;
    char *path = mem_printf(tmp, "/proc/%lld/stat", (long long)pid);
    return file_read(tmp, AT_FDCWD, path, 4096, &text, NULL) == 0 && parse_proc_stat(text, ret);
}

static struct memory_stats *
new_memory(const void *ctx)
{
    return mem_new(ctx, struct memory_stats);
}

static void
stats_measured(const void *ctx, struct str_list *l, const char *name)
{
    list_add(ctx, *l, name);
}

struct pid_sums {
    struct proc_stats total;
    size_t n;
};

static void
add_pid(const void *ctx, struct task_resource_usage *u, int64_t pid, struct pid_sums *sums)
{
    struct proc_stats s;
    if (!read_proc(pid, &s))
        return;
    sums->total.user_us += s.user_us;
    sums->total.system_us += s.system_us;
    sums->total.rss += s.rss;
    sums->n++;
    struct resource_usage *r = mem_new(ctx, struct resource_usage);
    r->memory_stats = new_memory(r);
    r->memory_stats->rss = (uint64_t)s.rss;
    stats_measured(r, &r->memory_stats->measured, "RSS");
    r->cpu_stats = mem_new(r, struct cpu_stats);
    map_put(ctx, u->pids, mem_printf(ctx, "%lld", (long long)pid))->v = r;
}

/* Calls add_pid for every number in `text`. */
static void
add_listed(const void *ctx, char *text, struct task_resource_usage *u, struct pid_sums *sums)
{
    char *save = NULL;
    for (char *w = strtok_r(text, "\n ", &save); w && sums->n < STATS_PIDS_MAX;
         w = strtok_r(NULL, "\n ", &save)) {
        int64_t pid;
        if (num_parse_i64(w, &pid) == 0 && pid > 0)
            add_pid(ctx, u, pid, sums);
    }
}

/* Without a cgroup: the children of `root`, and theirs. */
static void
add_children(const void *ctx, int64_t root, struct task_resource_usage *u, struct pid_sums *sums)
{
    auto_mem void *tmp = mem_ctx("children");
    const char *pids[STATS_PIDS_MAX] = {mem_printf(tmp, "%lld", (long long)root)};
    size_t n = 1;
    for (size_t i = 0; i < n; i++) {
        char *text = NULL, *save = NULL;
        if (file_read(tmp, AT_FDCWD, mem_printf(tmp, "/proc/%s/task/%s/children", pids[i], pids[i]),
                      64 << 10, &text, NULL) < 0)
            continue;
        for (char *w = strtok_r(text, " \n", &save); w && n < ARRAY_LEN(pids);
             w = strtok_r(NULL, " \n", &save)) {
            pids[n++] = w;
            add_listed(ctx, mem_strdup(tmp, w), u, sums);
        }
    }
}

static void
add_pids(const void *ctx, const struct task_reading *rd, struct task_resource_usage *u,
         struct pid_sums *sums)
{
    auto_mem void *tmp = mem_ctx("pids");
    char *text = NULL;
    if (rd->cgroup >= 0 && file_read(tmp, rd->cgroup, "cgroup.procs", 1 << 20, &text, NULL) == 0)
        add_listed(ctx, text, u, sums);
    else if (rd->root > 0)
        add_children(ctx, rd->root, u, sums);
}

/* --- rates --- */

void
cpu_sample_add(struct cpu_sample *s, int64_t now_ns, int64_t start_ns, int64_t user_us,
               int64_t system_us)
{
    int64_t from = s->wall_ns ? s->wall_ns : start_ns;
    int64_t span = now_ns - from;
    if (s->wall_ns && span >= 0 && span < RATE_MIN_NS)
        return;
    if (span >= 0) { /* else the clock was set back: no rate, the next sample counts from here */
        double us = (double)(span < NS_PER_MS ? NS_PER_MS : span) / 1000.0;
        s->user_pct = user_us > s->user_us ? (double)(user_us - s->user_us) / us * 100.0 : 0;
        s->system_pct =
            system_us > s->system_us ? (double)(system_us - s->system_us) / us * 100.0 : 0;
    }
    s->wall_ns = now_ns;
    s->user_us = user_us;
    s->system_us = system_us;
}

static double
core_mhz(const struct ground *g)
{
    const struct node_resources *r = g->node->node_resources;
    if (!r || !r->cpu || r->cpu->total_cpu_cores <= 0)
        return 0;
    return (double)r->cpu->cpu_shares / (double)r->cpu->total_cpu_cores;
}

/* --- tasks --- */

static void
fill_memory(const void *ctx, struct memory_stats *m, const struct cgroup_stats *cg,
            const struct pid_sums *sums)
{
    int64_t rss = cg->memory_rss >= 0 ? cg->memory_rss : sums->n > 0 ? sums->total.rss : -1;
    const struct {
        int64_t value;
        uint64_t *dst;
        const char *name;
    } rows[] = {
        {rss, &m->rss, "RSS"},
        {cg->memory_cache, &m->cache, "Cache"},
        {cg->memory_swap, &m->swap, "Swap"},
        {cg->memory_mapped, &m->mapped_file, "Mapped File"},
        {cg->memory_current, &m->usage, "Usage"},
        {cg->memory_peak, &m->max_usage, "Max Usage"},
};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].value < 0)
            continue;
        *rows[i].dst = (uint64_t)rows[i].value;
        stats_measured(ctx, &m->measured, rows[i].name);
    }
}

static void
fill_cpu(const void *ctx, struct task_runner *tr, struct cpu_stats *cpu,
         const struct cgroup_stats *cg, const struct pid_sums *sums)
{
    int64_t user = cg->user_us >= 0 ? cg->user_us : sums->total.user_us;
    int64_t system = cg->system_us >= 0 ? cg->system_us : sums->total.system_us;
    if (cg->user_us < 0 && sums->n == 0)
        return;
    cpu_sample_add(&tr->cpu, clock_civil_ns(), tr->sm.t->state->started_at, user, system);
    cpu->user_mode = tr->cpu.user_pct;
    cpu->system_mode = tr->cpu.system_pct;
    cpu->percent = tr->cpu.user_pct + tr->cpu.system_pct;
    cpu->total_ticks = cpu->percent / 100.0 * core_mhz(tr->ar->g);
    stats_measured(ctx, &cpu->measured, "System Mode");
    stats_measured(ctx, &cpu->measured, "User Mode");
    stats_measured(ctx, &cpu->measured, "Percent");
    if (cg->nr_throttled >= 0) {
        cpu->throttled_periods = (uint64_t)cg->nr_throttled;
        cpu->throttled_time = cg->throttled_us > 0 ? (uint64_t)cg->throttled_us * 1000 : 0;
        stats_measured(ctx, &cpu->measured, "Throttled Periods");
        stats_measured(ctx, &cpu->measured, "Throttled Time");
    }
}

/* Absent where nothing counts. */
static void
fill_network(struct task_runner *tr, uint64_t id, struct resource_usage *u)
{
    struct bpf_net_counts n;
    if (!bpf_read_net(&tr->ar->g->link->counters, id, &tr->counters_at, &n))
        return;
    struct network_stats *s = u->network_stats = mem_new(u, struct network_stats);
    s->rx_bytes = n.rx_bytes;
    s->rx_packets = n.rx_packets;
    s->tx_bytes = n.tx_bytes;
    s->tx_packets = n.tx_packets;
    s->denied_packets = n.tx_denied;
    s->denied_connects = n.connect_denied;
    s->denied_binds = n.bind_denied;
}

/* The bound of a histogram below which `part` of all times were. */
static int64_t
time_bound(const uint64_t *buckets, size_t n, double part)
{
    uint64_t all = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        all += buckets[i];
    for (size_t i = 0; all > 0 && i < n; i++) {
        sum += buckets[i];
        if ((double)sum >= (double)all * part)
            return NS_PER_US << i;
    }
    return 0;
}

static void
fill_processes(struct task_runner *tr, uint64_t id, struct resource_usage *u)
{
    struct bpf_run_counts n;
    if (!bpf_read_run(&tr->ar->g->link->counters, id, &tr->runs_at, &n))
        return;
    struct process_stats *s = u->process_stats = mem_new(u, struct process_stats);
    s->execs = n.execs;
    s->exits = n.exits;
    s->oom_kills = n.ooms;
    s->wait_time = (int64_t)n.wait_ns;
    for (size_t i = 0; i < BPF_WAIT_BUCKETS; i++) {
        s->waits += n.waits[i];
        list_add(s, s->wait_histogram, (int64_t)n.waits[i]);
    }
    s->wait_p50 = time_bound(n.waits, BPF_WAIT_BUCKETS, 0.5);
    s->wait_p99 = time_bound(n.waits, BPF_WAIT_BUCKETS, 0.99);
}

static void
fill_blocks(struct task_runner *tr, uint64_t id, struct resource_usage *u)
{
    struct bpf_block_counts n;
    if (!bpf_read_block(&tr->ar->g->link->counters, id, &tr->blocks_at, &n))
        return;
    struct block_stats *s = u->block_stats = mem_new(u, struct block_stats);
    s->read_ops = n.reads;
    s->write_ops = n.writes;
    s->read_bytes = n.read_bytes;
    s->write_bytes = n.write_bytes;
    s->errors = n.errors;
    s->time = (int64_t)n.time_ns;
    for (size_t i = 0; i < BPF_TIME_BUCKETS; i++)
        list_add(s, s->time_histogram, (int64_t)n.times[i]);
    s->time_p50 = time_bound(n.times, BPF_TIME_BUCKETS, 0.5);
    s->time_p99 = time_bound(n.times, BPF_TIME_BUCKETS, 0.99);
}

static struct pressure *
stats_pressure(const void *ctx, const struct cgroup_psi *p)
{
    if (!p->present)
        return NULL;
    struct pressure *r = mem_new(ctx, struct pressure);
    r->some_avg10 = p->some_avg10;
    r->full_avg10 = p->full_avg10;
    r->some_time = (int64_t)p->some_total_us * NS_PER_US;
    r->full_time = (int64_t)p->full_total_us * NS_PER_US;
    return r;
}

static void
fill_waits(struct resource_usage *u, const struct cgroup_stats *cg)
{
    if (cg->cpu.present || cg->memory.present || cg->io.present) {
        struct pressure_stats *p = u->pressure_stats = mem_new(u, struct pressure_stats);
        p->cpu = stats_pressure(p, &cg->cpu);
        p->memory = stats_pressure(p, &cg->memory);
        p->io = stats_pressure(p, &cg->io);
    }
    if (cg->io_rbytes >= 0) {
        struct io_stats *s = u->io_stats = mem_new(u, struct io_stats);
        s->read_bytes = (uint64_t)cg->io_rbytes;
        s->write_bytes = (uint64_t)cg->io_wbytes;
        s->read_ops = (uint64_t)cg->io_rios;
        s->write_ops = (uint64_t)cg->io_wios;
    }
}

/* `pids`: each process too. */
static struct task_resource_usage *
task_usage(const void *ctx, struct task_runner *tr, bool pids)
{
    struct task_resource_usage *u = mem_new(ctx, struct task_resource_usage);
    u->timestamp = clock_civil_ns();
    u->resource_usage = mem_new(u, struct resource_usage);
    u->resource_usage->memory_stats = new_memory(u);
    u->resource_usage->cpu_stats = mem_new(u, struct cpu_stats);
    struct task_reading rd = {.cgroup = -1};
    memset(&rd.cg, 0xff, sizeof(rd.cg)); /* -1: not known */
    rd.cg.cpu = rd.cg.memory = rd.cg.io = (struct cgroup_psi){0};
    bool counted = tr->handle->stats(tr, &rd);
    struct pid_sums sums = {0};
    if (pids || !counted || rd.cg.memory_rss < 0)
        add_pids(u, &rd, u, &sums);
    if (rd.opened)
        fd_close(&rd.cgroup);
    fill_memory(u, u->resource_usage->memory_stats, &rd.cg, &sums);
    fill_cpu(u, tr, u->resource_usage->cpu_stats, &rd.cg, &sums);
    fill_network(tr, rd.id, u->resource_usage);
    fill_processes(tr, rd.id, u->resource_usage);
    fill_blocks(tr, rd.id, u->resource_usage);
    fill_waits(u->resource_usage, &rd.cg);
    return u;
}

static void
add_network(struct resource_usage *sum, const struct network_stats *a)
{
    if (!sum->network_stats)
        sum->network_stats = mem_new(sum, struct network_stats);
    struct network_stats *s = sum->network_stats;
    s->rx_bytes += a->rx_bytes;
    s->rx_packets += a->rx_packets;
    s->tx_bytes += a->tx_bytes;
    s->tx_packets += a->tx_packets;
    s->denied_packets += a->denied_packets;
    s->denied_connects += a->denied_connects;
    s->denied_binds += a->denied_binds;
}

static void
add_usage(struct resource_usage *sum, const struct resource_usage *r)
{
    struct memory_stats *m = sum->memory_stats;
    const struct memory_stats *a = r->memory_stats;
    m->rss += a->rss;
    m->cache += a->cache;
    m->swap += a->swap;
    m->mapped_file += a->mapped_file;
    m->usage += a->usage;
    m->max_usage += a->max_usage;
    if (a->measured.n > m->measured.n)
        m->measured = a->measured;
    struct cpu_stats *c = sum->cpu_stats;
    const struct cpu_stats *b = r->cpu_stats;
    c->system_mode += b->system_mode;
    c->user_mode += b->user_mode;
    c->percent += b->percent;
    c->total_ticks += b->total_ticks;
    c->throttled_periods += b->throttled_periods;
    c->throttled_time += b->throttled_time;
    if (b->measured.n > c->measured.n)
        c->measured = b->measured;
    if (r->network_stats)
        add_network(sum, r->network_stats);
    if (r->io_stats) {
        struct io_stats *s = sum->io_stats;
        s = sum->io_stats = s ? s : mem_new(sum, struct io_stats);
        s->read_bytes += r->io_stats->read_bytes;
        s->write_bytes += r->io_stats->write_bytes;
        s->read_ops += r->io_stats->read_ops;
        s->write_ops += r->io_stats->write_ops;
    }
}

int
stats_alloc(struct allocs *allocs, const void *ctx, const char *alloc_id, const char *task,
            struct alloc_resource_usage **ret, struct err *e)
{
    struct alloc_runner *ar = alloc_runner_find(allocs, alloc_id);
    if (!ar)
        return err_set(e, -ERR_NOT_FOUND, "allocation \"%.40s\" is not on this node", alloc_id);
    if (!str_empty(task) && !alloc_runner_task(ar, task))
        return err_set(e, -ERR_NOT_FOUND, "allocation \"%s\" has no task \"%.100s\"", ar->a.id,
                       task);
    struct alloc_resource_usage *u = mem_new(ctx, struct alloc_resource_usage);
    u->timestamp = clock_civil_ns();
    u->resource_usage = mem_new(u, struct resource_usage);
    u->resource_usage->memory_stats = new_memory(u);
    u->resource_usage->cpu_stats = mem_new(u, struct cpu_stats);
    for (size_t i = 0; i < ar->n; i++) {
        struct task_runner *tr = &ar->tasks[i];
        if (!task_sm_process(tr->sm.t) || (!str_empty(task) && !str_eq(task, tr->sm.t->name)))
            continue;
        struct task_resource_usage *tu = task_usage(u, tr, true);
        map_put(u, u->tasks, tr->sm.t->name)->v = tu;
        add_usage(u->resource_usage, tu->resource_usage);
    }
    *ret = u;
    return 0;
}

void
stats_each_usage(struct allocs *allocs, client_usage_fn *fn, void *arg)
{
    ALLOCS_EACH(allocs, ar)
        for (size_t i = 0; i < ar->n; i++) {
            struct task_runner *tr = &ar->tasks[i];
            if (!task_sm_process(tr->sm.t))
                continue;
            auto_mem void *tmp = mem_ctx("usage");
            fn(arg, ar->a.rec->alloc, tr->sm.t->name, task_usage(tmp, tr, false)->resource_usage);
            }
    }

    /* --- host --- */

    static void
    host_memory(const void *ctx, struct host_stats *h)
    {
        char *text = NULL;
    h->memory = mem_new(h, struct host_memory_stats);
    if (file_read(ctx, AT_FDCWD, "/proc/meminfo", 64 << 10, &text, NULL) < 0)
        return;
    int64_t total = fingerprint_parse_meminfo(text, "MemTotal");
    int64_t avail = fingerprint_parse_meminfo(text, "MemAvailable");
    h->memory->total = (uint64_t)total;
    h->memory->available = (uint64_t)avail;
    h->memory->free = (uint64_t)fingerprint_parse_meminfo(text, "MemFree");
    h->memory->used = total > avail ? (uint64_t)(total - avail) : 0;
}

struct cpu_times {
    double user, system, idle, total;
};

/* One "cpuN ..." line. */
static bool
parse_cpu_line(const char *line, char name[16], struct cpu_times *t)
{
    unsigned long long v[8] = {0};
    if (sscanf(line, "%15s %llu %llu %llu %llu %llu %llu %llu %llu", name, &v[0], &v[1], &v[2],
               &v[3], &v[4], &v[5], &v[6], &v[7]) < 5 ||
        strncmp(name, "cpu", 3) != 0)
        return false;
    t->user = (double)v[0] + (double)v[1];
    t->system = (double)v[2] + (double)v[5] + (double)v[6];
    t->idle = (double)v[3] + (double)v[4];
    t->total = t->user + t->system + t->idle + (double)v[7];
    return true;
}

/* Cumulative times of the last question, by cpu. */
struct host_cpus {
    struct cpu_times *v;
    size_t n;
};

static void
host_cpu(const struct ground *g, struct host_cpus *last, const void *ctx, struct host_stats *h)
{
    char *text = NULL, *save = NULL;
    if (file_read(ctx, AT_FDCWD, "/proc/stat", 4 << 20, &text, NULL) < 0)
        return;
    size_t i = 0;
    for (char *l = strtok_r(text, "\n", &save); l && i < STATS_CPUS_MAX;
         l = strtok_r(NULL, "\n", &save)) {
        char name[16];
        struct cpu_times t;
        if (strncmp(l, "cpu ", 4) == 0 || !parse_cpu_line(l, name, &t))
            continue;
        if (i >= last->n) {
            mem_resize(last, last->v, struct cpu_times, i + 1);
            last->v[i] = (struct cpu_times){0};
            last->n = i + 1;
        }
        struct cpu_times d = {t.user - last->v[i].user, t.system - last->v[i].system,
                              t.idle - last->v[i].idle, t.total - last->v[i].total};
        last->v[i++] = t;
        struct host_cpu_stats *s = mem_new(h, struct host_cpu_stats);
        double total = d.total > 0 ? d.total : 1;
        s->cpu = mem_strdup(s, name);
        s->user = d.user / total * 100;
        s->system = d.system / total * 100;
        s->idle = d.idle / total * 100;
        s->total_percent = s->user + s->system;
        s->total_ticks = s->total_percent / 100 * core_mhz(g);
        h->cpu_ticks_consumed += s->total_ticks;
        list_add(h, h->cpu, s);
    }
}

static struct host_disk_stats *
host_disk(const void *ctx, const char *device, const char *mountpoint, const char *path)
{
    struct host_disk_stats *d = mem_new(ctx, struct host_disk_stats);
    d->device = mem_strdup(d, device);
    d->mountpoint = mem_strdup(d, mountpoint);
    struct statvfs v;
    if (statvfs(path, &v) < 0)
        return d;
    d->size = (uint64_t)v.f_blocks * v.f_frsize;
    d->available = (uint64_t)v.f_bavail * v.f_frsize;
    d->used = (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
    if (d->size > 0)
        d->used_percent = (double)d->used * 100 / (double)d->size;
    if (v.f_files > 0)
        d->inodes_used_percent = (double)(v.f_files - v.f_ffree) * 100 / (double)v.f_files;
    return d;
}

struct host_stats *
stats_host(struct ground *g, struct host_cpus **last, const void *ctx)
{
    auto_mem void *tmp = mem_ctx("host stats");
    struct host_stats *h = mem_new(ctx, struct host_stats);
    h->timestamp = clock_civil_ns();
    host_memory(tmp, h);
    if (!*last)
        *last = mem_new(g, struct host_cpus);
    host_cpu(g, *last, tmp, h);
    const char *volume = str_map_get(&g->node->attributes, "unique.storage.volume");
    h->alloc_dir_stats = host_disk(h, str_or(volume, ""), g->cfg.alloc_dir, g->cfg.alloc_dir);
    list_add(h, h->disk_stats, h->alloc_dir_stats);
    char *text = NULL;
    if (file_read(tmp, AT_FDCWD, "/proc/uptime", 128, &text, NULL) == 0) {
        text[strcspn(text, ".")] = 0;
        (void)num_parse_u64(text, &h->uptime);
    }
    return h;
}
