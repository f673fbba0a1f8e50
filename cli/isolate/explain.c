/* SPDX-License-Identifier: Apache-2.0
 *
 * isolate probe: what this kernel offers. isolate explain: what the tasks of a job file may do, in
 * words, from the launch spec that their driver makes of them.
 */
#include <errno.h>
#include <fcntl.h>

#include "api/canonical.h"
#include "api/isolation.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/isolate/explain_engine.h"
#include "cli/jobfile.h"
#include "common/fd.h"
#include "common/num.h"
#include "drivers/caps_text.h"
#include "drivers/driver.h"
#include "fingerprint/links.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/confine/caps.h"
#include "isolation/probe.h"
#include "isolation/root/quota.h"
#include "isolation/root/verity.h"

#define NO_ALLOC "00000000-0000-0000-0000-000000000000"

/* Prints what depends on the file system of the allocations. */
static void
probe_disk(struct cmd *c, struct table *t, bool root)
{
    const struct {
        const char *name;
        int (*probe)(int dir, struct err *e);
    } rows[] = {{"disk_quota", quota_probe}, {"verity", verity_probe}};
    const char *path = c->n_args > 0 ? c->args[0] : NULL;
    auto_fd int dir = path && root ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int error = errno;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = ERR_INIT;
        if (!path || !root)
            err_set(&e, -ERR_INVALID, "%s", root ? "not tried: name the alloc_dir" : "not root");
        else if (dir < 0)
            err_errno(&e, error, "open \"%s\"", path);
        else
            (void)rows[i].probe(dir, &e);
        table_row(t, rows[i].name, e.code == 0 ? "yes" : "no",
                  e.code == 0 ? "-" : mem_strdup(c, e.text));
    }
}

static const char *
neighbour_of(struct cmd *c, const struct links *l, const char *gateway)
{
    for (size_t i = 0; i < l->n_neighbours; i++)
        if (str_eq(l->neighbours[i].text, gateway))
            return mem_printf(c, ", %s at %s", l->neighbours[i].state,
                              str_or(l->neighbours[i].mac, "-"));
    return ", not a neighbour yet";
}

/* Prints what tasks in the host's network, and bridges, meet. */
static void
probe_network(struct cmd *c)
{
    struct links l;
    struct err e = ERR_INIT;
    if (links_read(c, LINKS_LINKS | LINKS_ADDRESSES | LINKS_ROUTE | LINKS_NEIGHBOURS, &l, &e) < 0) {
        cmd_say(c, "Network: %s", e.text);
        return;
    }
    for (size_t i = 0; i < l.n_links; i++) {
        const char *all = "";
        for (size_t k = 0; k < l.n_addresses; k++)
            if (l.addresses[k].index == l.links[i].index)
                all = mem_printf(c, "%s %s/%d", all, l.addresses[k].text, l.addresses[k].prefix);
        cmd_say(c, "Link %s: %s%s%s", l.links[i].name, l.links[i].up ? "up" : "down",
                *all ? "," : "", all);
    }
    const struct link *by = l.route.index ? links_by_index(&l, l.route.index) : NULL;
    if (!by)
        cmd_say(c, "Default route: none");
    else if (!l.route.gateway[0])
        cmd_say(c, "Default route: %s", by->name);
    else
        cmd_say(c, "Default route: %s by %s%s", by->name, l.route.gateway,
                neighbour_of(c, &l, l.route.gateway));
}

int
cmd_isolate_probe(struct cmd *c)
{
    const struct opt opts[] = {{0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.max = 1}, &rc))
        return rc;
    struct probe p;
    probe_run(&p, NULL);
    struct table t;
    table_init(&t, c, 3);
    table_row(&t, "Feature", "Here", "Why not");
    for (int i = 0; i < PROBE_N; i++)
        table_row(&t, probe_name((enum probe_id)i), p.facts[i].ok ? "yes" : "no",
                  p.facts[i].ok ? "-" : p.facts[i].why);
    probe_disk(c, &t, p.root);
    table_print(&t);
    cmd_put(c, "\n");
    cmd_say(c, "Landlock version %d%s", p.landlock_abi,
            p.landlock_abi >= 6   ? ": files, abstract sockets and signals"
            : p.landlock_abi >= 2 ? ": files"
                                  : ": not used");
    cmd_say(c, "cgroup v2 controllers: %s", cgroup_controllers_text(c, p.controllers));
    probe_network(c);
    if (!p.root)
        cmd_say(c, "Not root: what needs root was not tried.");
    return 0;
}

static const char *
explain_join(struct cmd *c, const struct str_list *l)
{
    const char *out = "";
    for (size_t i = 0; i < l->n; i++)
        out = mem_printf(c, "%s%s%s", out, i ? ", " : "", l->v[i]);
    return out;
}

static void
explain_net(struct cmd *c, const char *what, const struct net_policy *p)
{
    if (!p)
        return;
    cmd_say(c, "    %s: allowed %s; denied %s; else %s", what,
            p->allow.n ? explain_join(c, &p->allow) : "nothing named",
            p->deny.n ? explain_join(c, &p->deny) : "nothing named",
            str_or(p->default_, "allowed"));
}

static void
explain_ports(struct cmd *c, const char *what, const struct i64_list *l)
{
    const char *out = "";
    for (size_t i = 0; i < l->n; i++)
        out = mem_printf(c, "%s%s%lld", out, i ? ", " : "", (long long)l->v[i]);
    if (l->n > 0)
        cmd_say(c, "    %s no TCP ports but %s", what, out);
}

static void
explain_calls(struct cmd *c, const struct task_seccomp *t)
{
    if (!t)
        return;
    if (t->allow.n > 0)
        cmd_say(c, "    makes the system calls %s too, if the client allows it",
                explain_join(c, &t->allow));
    if (t->deny.n > 0)
        cmd_say(c, "    cannot make the system calls %s", explain_join(c, &t->deny));
    if (str_eq(t->mode, "log"))
        cmd_say(c, "    is denied no system call: they are logged, if the client allows that");
    if (str_eq(t->mode, "audit"))
        cmd_say(c, "    is denied them as ever, and events of the task tell which and how often");
}

static void
explain_exec(struct cmd *c, const struct launch_spec *s)
{
    const struct task_isolation *iso = isolation_of(s->isolation);
    cmd_say(c, "    sees only its own processes, host name, System V IPC and cgroup");
    cmd_say(c,
            "    writes in its own directory (/, /local, /secrets, /tmp) and in /alloc; /usr, /etc "
            "and the like are the host's, read-only");
    static const char *const all[] = {"all"};
    uint64_t caps = 0;
    struct err e = ERR_INIT;
    bool host =
        str_eq(iso->userns, "host") ||
        (caps_plan(s->cap_add.v, s->cap_add.n, all, 1, &caps, &e) == 0 && caps_need_host(caps));
    cmd_say(
        c, "    runs as %s%s", str_or(s->user, "nobody"),
        str_eq(iso->userns, "host") ? ", an id of the host"
        : host
            ? ", an id of the host: a capability that it keeps is about the machine or its network"
            : " in a user namespace of its allocation, where the client has them");
    if (s->devices.n > 0)
        cmd_say(c, "    has the device %s, if the client allows it", explain_join(c, &s->devices));
    if (s->cap_add.n == 0)
        cmd_say(c, "    has no capability and can gain none");
    else
        cmd_say(c, "    keeps the capabilities %s, if the client allows them",
                str_or(caps_text_of(c, &s->cap_add), explain_join(c, &s->cap_add)));
    cmd_say(
        c,
        "    makes the system calls of the profile \"%s\" only: no namespaces, mounts, modules, "
        "keyrings, tracing of others, raw or packet sockets, bpf, io_uring, aio",
        str_or(s->seccomp, "default"));
    explain_calls(c, iso->seccomp);
    if (iso->landlock) {
        explain_ports(c, "binds to", &iso->landlock->bind);
        explain_ports(c, "connects to", &iso->landlock->connect);
    }
    if (str_eq(iso->proc, "pid"))
        cmd_say(c, "    finds its processes in /proc, and nothing of the machine");
    if (!str_empty(iso->apparmor))
        cmd_say(c,
                "    runs under the AppArmor profile \"%s\", if the client allows it, or does not "
                "start",
                iso->apparmor);
    else
        cmd_say(c, "    runs under the client's AppArmor profile, where the client names one");
    for (size_t i = 0; i < iso->verity.n; i++)
        cmd_say(c, "    has %s sealed, which nobody can write any more%s, or does not start",
                iso->verity.v[i]->path,
                str_empty(iso->verity.v[i]->digest) ? "" : ", with the digest that the job gives");
    if (iso->core_sched)
        cmd_say(
            c,
            "    shares no processor core with another task at the same time, or does not start");
}

static void
explain_network(struct cmd *c, const struct task_group *g)
{
    const char *mode = g->networks.n > 0 ? g->networks.v[0]->mode : "host";
    if (str_eq(mode, "none"))
        cmd_say(c, "    has no network but a loopback, which the tasks of the group share");
    else if (str_eq(mode, "bridge"))
        cmd_say(c,
                "    shares a network with the tasks of the group alone: it reaches what the host "
                "reaches, others reach its mapped ports");
    else
        cmd_say(
            c,
            "    shares the network of the host: it reaches what the host reaches, loopback too");
}

static const char *
explain_mib(struct cmd *c, int64_t mib)
{
    char t[SIZE_TEXT];
    return mem_strdup(c, size_format((uint64_t)mib << 20, t));
}

static void
explain_io(struct cmd *c, const struct task_io *o)
{
    const struct {
        const char *what;
        int64_t v;
    } rows[] = {{"bytes read", o->read_bps},
                {"bytes written", o->write_bps},
                {"reads", o->read_iops},
                {"writes", o->write_iops}};
    const char *out = "";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].v > 0)
            out = mem_printf(c, "%s%s%lld %s", out, *out ? ", " : "", (long long)rows[i].v,
                             rows[i].what);
    cmd_say(c, "    on %s: at most %s per second",
            str_or(o->device, "the disk of the client's allocations"), out);
}

/* Beyond resources: what the isolation block asks of the kernel's control groups. */
static void
explain_limits(struct cmd *c, const struct launch_limits *l, const struct task_isolation *iso)
{
    if (iso->memory_high > 0)
        cmd_say(c, "    is slowed down above %s of memory", explain_mib(c, iso->memory_high));
    if (l->memory_low > 0)
        cmd_say(c, "    keeps %s of memory as long as others have more to give",
                explain_mib(c, l->memory_low >> 20));
    if (iso->memory_min > 0)
        cmd_say(c, "    keeps %s of memory in any case, if the client allows it",
                explain_mib(c, iso->memory_min));
    if (iso->swap > 0)
        cmd_say(c, "    may have %s in swap, if the client allows it", explain_mib(c, iso->swap));
    cmd_say(c,
            iso->hugetlb > 0 ? "    may have %s of huge pages of each size, if the client allows it"
                             : "    has no huge pages%.0s",
            explain_mib(c, iso->hugetlb));
    if (iso->pids_max > 0)
        cmd_say(c, "    has %lld processes and threads at most", (long long)iso->pids_max);
    if (l->cpu_max > 0)
        cmd_say(c, "    never gets more of the processor than that%s",
                iso->cpu_burst > 0 ? ", but what it saved up" : "");
    if (iso->cpu_idle)
        cmd_say(c, "    runs only when no other task wants the processor");
    for (size_t i = 0; i < iso->io.n; i++)
        explain_io(c, iso->io.v[i]);
    if (iso->io_weight > 0)
        cmd_say(c, "    has a share of %lld of busy disks, where others have 100",
                (long long)iso->io_weight);
}

/* Whether that holds, on a client like this machine. */
static void
explain_here(struct cmd *c)
{
    struct cgroup_info info = {0};
    struct err e = ERR_INIT;
    uint32_t need = CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS;
    uint32_t absent = cgroup_find(c, &info, &e) < 0 ? need : need & ~info.controllers;
    if (absent != 0)
        cmd_say(c, "    is NOT held to limits of %s on this machine, whose cgroup v2 has no such "
                   "controllers: an event of the task says so, or the client refuses it "
                   "(isolation.limits = \"required\")",
                cgroup_controllers_text(c, absent));
    else
        cmd_say(c, "    is held to these limits on this machine; on a client without cgroup v2's "
                   "controllers an event of the task says what it is not held to, or the client "
                   "refuses it");
}

static void
explain_task(struct cmd *c, const struct task_group *g, const struct task *t)
{
    const struct driver *d = driver_find(t->driver);
    cmd_say(c, "  task \"%s\" of group \"%s\", driver %s", t->name, g->name, t->driver);
    struct str_list env = {0};
    const struct resources *r = t->resources;
    struct allocated_cpu_resources cpu = {.cpu_shares = r ? r->cpu.v : 0};
    struct allocated_memory_resources memory = {.memory_mb = r ? r->memory_mb.v : 0,
                                                .memory_max_mb = r ? r->memory_max_mb : 0};
    struct allocated_task_resources granted = {.cpu = &cpu, .memory = &memory};
    struct driver_input in = {.alloc_id = NO_ALLOC,
                              .task = t,
                              .config = t->config,
                              .user = t->user,
                              .env = &env,
                              .resources = &granted,
                              .core_mhz =
                                  1000, /* of no client in particular: nothing of it is said */
                              .egress = t->network ? t->network->egress : NULL,
                              .bind = t->network ? t->network->bind : NULL};
    struct launch_spec *s = NULL;
    struct err e = ERR_INIT;
    if (d == NULL) {
        cmd_say(c, "    cannot be explained: no such driver here");
        return;
    }
    if (d->engine) {
        explain_engine(c, g, t);
        return;
    }
    if (d->spec(c, &in, &s, &e) < 0) {
        cmd_say(c, "    cannot be explained: %s", e.text);
        return;
    }
    if (s->isolated)
        explain_exec(c, s);
    else
        cmd_say(c,
                "    is not isolated: it is a process of the host as %s, and does what that user "
                "may do; only its cgroup is its own",
                str_or(s->user, "nobody"));
    const struct task_isolation *iso = isolation_of(s->isolation);
    explain_network(c, g);
    explain_net(c, "may send to", s->egress);
    explain_net(c, "may bind to", s->bind);
    if (r && r->cores.v > 0)
        cmd_say(c, "    gets %lld processors for itself, and %lld MiB of memory%s",
                (long long)r->cores.v, (long long)r->memory_mb.v,
                iso->swap > 0 ? "" : ", without swap");
    else if (r)
        cmd_say(c, "    gets %lld MHz and %lld MiB of memory%s", (long long)r->cpu.v,
                (long long)r->memory_mb.v, iso->swap > 0 ? "" : ", without swap");
    explain_limits(c, s->limits, iso);
    explain_here(c);
}

int
cmd_isolate_explain(struct cmd *c)
{
    struct jobfile_opts o = JOBFILE_OPTS_INIT;
    const struct opt opts[] = {JOBFILE_OPTS(o), {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.min = 1, .max = 1}, &rc))
        return rc;
    struct jobfile f = {0};
    if (jobfile_load(c, &o, c->args[0], &f) < 0)
        return 1;
    job_canonicalize(c, f.job); /* what is not given has a default */
    cmd_say(c, "job \"%s\"", f.job->id);
    for (size_t i = 0; i < f.job->task_groups.n; i++)
        for (size_t k = 0; k < f.job->task_groups.v[i]->tasks.n; k++)
            explain_task(c, f.job->task_groups.v[i], f.job->task_groups.v[i]->tasks.v[k]);
    cmd_put(c, "\n");
    cmd_say(c, "paddock-isolation(7) says what of this is a boundary.");
    return 0;
}
