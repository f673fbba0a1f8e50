/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/admit.h"

#include <string.h>

#include "api/isolation.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"
#include "drivers/driver.h"
#include "hand/allow.h"
#include "isolation/launch/policy.h"

#define ALLOC "00000000-0000-0000-0000-000000000000"
enum { PORT = 20000 }; /* any */

struct trial {
    const void *ctx;
    const struct task_group *group;
    const struct task *task;
    struct driver_input in;
    struct allocated_task_resources res;
    struct allocated_cpu_resources cpu;
    struct allocated_memory_resources memory;
    struct driver_port *ports;
    struct str_list env;
};

/* --- what a client would know of it --- */

static void
put_ports(struct trial *t, const struct network_resource *n, bool own)
{
    const struct port_list *lists[] = {&n->reserved_ports, &n->dynamic_ports};
    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        for (size_t i = 0; i < lists[k]->n; i++) {
            const struct port *p = lists[k]->v[i];
            mem_resize(t->ctx, t->ports, struct driver_port, t->in.n_ports + 1);
            t->ports[t->in.n_ports++] = (struct driver_port){
                str_or(p->label, ""), "", p->value > 0 ? (int)p->value : PORT, (int)p->to, own};
        }
}

static void
put_resources(struct trial *t)
{
    const struct resources *r = t->task->resources;
    if (!r)
        return;
    t->cpu.cpu_shares = r->cpu.v;
    for (int64_t i = 0; i < r->cores.v; i++)
        list_add(t->ctx, t->cpu.reserved_cores, i);
    t->memory = (struct allocated_memory_resources){.memory_mb = r->memory_mb.v,
                                                    .memory_max_mb = r->memory_max_mb};
    t->res = (struct allocated_task_resources){.cpu = &t->cpu, .memory = &t->memory};
    t->in.resources = &t->res;
}

static void
admit_prepare(struct trial *t)
{
    const struct network_resource *n = t->group->networks.n > 0 ? t->group->networks.v[0] : NULL;
    const struct task_network *own = t->task->network;
    const struct resources *r = t->task->resources;
    t->in =
        (struct driver_input){.alloc_id = ALLOC,
                              .task = t->task,
                              .config = t->task->config,
                              .user = strstr(str_or(t->task->user, ""), "${") ? "" : t->task->user,
                              .env = &t->env,
                              .own_network = n && !str_eq(n->mode, "host"),
                              .core_mhz = 1}; /* no limit of time is too low */
    for (size_t i = 0; i < t->task->env.n; i++)
        list_add(t->ctx, t->env,
                 mem_printf(t->ctx, "%s=%s", t->task->env.v[i].k, str_or(t->task->env.v[i].v, "")));
    t->in.egress = own && own->egress ? own->egress : n ? n->egress : NULL;
    t->in.bind = own && own->bind ? own->bind : n ? n->bind : NULL;
    if (n)
        put_ports(t, n, false);
    for (size_t i = 0; r && i < r->networks.n; i++)
        put_ports(t, r->networks.v[i], true);
    t->in.ports = t->ports;
    put_resources(t);
}

/* --- with everything allowed that a client may allow --- */

static int
check_launch(const void *ctx, const struct launch_spec *s, struct err *e)
{
    const struct task_isolation *iso = isolation_of(s->isolation);
    struct policy p = {.raw_exec = true,
                       .seccomp = true,
                       .seccomp_log = true,
                       .userns_host = true,
                       .swap_max = INT64_MAX,
                       .hugetlb_max = INT64_MAX,
                       .memory_min_max = INT64_MAX};
    uint64_t caps;
    list_add(ctx, p.drivers, s->driver);
    list_add(ctx, p.allowed_caps, "all");
    list_add(ctx, p.allowed_devices, POLICY_KVM);
    if (!str_empty(iso->apparmor))
        list_add(ctx, p.apparmor_allowed, iso->apparmor);
    for (size_t i = 0; iso->seccomp && i < iso->seccomp->allow.n; i++)
        list_add(ctx, p.seccomp_allowed, iso->seccomp->allow.v[i]);
    for (size_t i = 0; i < s->mounts.n; i++)
        list_add(ctx, p.bind_allowed, s->mounts.v[i]->source);
    int r = policy_check_launch(&p, s, e);
    p.raw_exec = false; /* where it is on, less is allowed */
    return r < 0 ? r : policy_caps(&p, s, &caps, e);
}

static int
try_it(const void *ctx, const struct driver *d, const struct driver_input *in, struct err *e)
{
    struct launch_spec *s = NULL;
    struct hand_task *t = NULL;
    const char *sig = str_or(in->task->kill_signal, "");
    int r = driver_check(d, in->config, e);
    if (r == 0 && *sig && signal_parse(sig) < 0)
        r = err_set(e, -ERR_INVALID, "kill_signal \"%.32s\" is not a signal", sig);
    if (r == 0 && d->spec)
        r = d->spec(ctx, in, &s, e) < 0 ? e->code : check_launch(ctx, s, e);
    else if (r == 0 && d->ask)
        r = d->ask(ctx, in, &t, e) < 0 ? e->code : allow_ever(t, e);
    return r;
}

/* --- references, which only a client resolves --- */

static const struct driver_option *
option_of(const struct driver *d, const char *name)
{
    for (size_t i = 0; i < d->n_options; i++)
        if (str_eq(d->options[i].name, name))
            return &d->options[i];
    return NULL;
}

/* Without the options that hold some; what must be there, or with `texts` each text, is one. */
static struct value *
admit_literal(const void *ctx, const struct driver *d, const struct value *config, bool texts)
{
    struct value *m = value_map(ctx);
    for (size_t i = 0; i < config->map.n; i++) {
        const char *name = config->map.v[i].k;
        const struct value *v = config->map.v[i].v;
        const struct driver_option *o = option_of(d, name);
        if (!driver_refers(v))
            value_map_set(m, name, config->map.v[i].v);
        else if (v->kind == VALUE_STRING && (texts || (o && o->required)))
            value_map_set(m, name, value_str(ctx, "x"));
    }
    return m;
}

/* Tries a config without the options that hold references, and with texts in their place: what both
 * refuse is wrong whatever these are. */
static int
try_both(struct trial *t, const struct driver *d, struct err *e)
{
    const struct value *config = t->task->config;
    struct err with = ERR_INIT;
    if (!driver_refers(config) || config->kind != VALUE_MAP)
        return try_it(t->ctx, d, &t->in, e);
    t->in.config = admit_literal(t->ctx, d, config, true);
    if (try_it(t->ctx, d, &t->in, &with) == 0)
        return 0;
    t->in.config = admit_literal(t->ctx, d, config, false);
    return try_it(t->ctx, d, &t->in, e);
}

static void
check_task(const void *ctx, const struct task_group *g, const struct task *task,
           struct str_list *errors)
{
    auto_mem void *tmp = mem_ctx("trial");
    struct trial t = {.ctx = tmp, .group = g, .task = task};
    const struct driver *d = driver_find(str_or(task->driver, ""));
    struct err e = ERR_INIT;
    admit_prepare(&t);
    if (d && try_both(&t, d, &e) < 0)
        list_add(ctx, *errors,
                 mem_printf(ctx, "task group \"%s\": task \"%s\": %s", str_or(g->name, ""),
                            str_or(task->name, ""), e.text));
}

void
admit_job(const void *ctx, const struct job *job, struct str_list *errors)
{
    for (size_t g = 0; g < job->task_groups.n; g++)
        for (size_t i = 0; i < job->task_groups.v[g]->tasks.n; i++)
            check_task(ctx, job->task_groups.v[g], job->task_groups.v[g]->tasks.v[i], errors);
}
