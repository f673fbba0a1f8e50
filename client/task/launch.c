/* SPDX-License-Identifier: Apache-2.0
 *
 * From a task of an allocation to what its driver needs: environment, interpolated config, limits.
 *
 * First the parts, each a find_ or put_ of its own: the host's variables, directories, policies,
 * ports, names; then launch_prepare(), which puts them together, and what is asked for: the input
 * of a driver, and the launch spec that its driver makes of one.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "api/artifact/artifact.h"
#include "api/away.h"
#include "api/device/device.h"
#include "api/volume/volume.h"
#include "client/task/env.h"
#include "client/task/launch.h"
#include "client/task/resolv.h"
#include "client/warden_link.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/confine/users.h"

/* The variables of the agent's environment that a task must not see (client.options
 * "env.denylist"). */
static const char *const host_deny_default[] = {
    "CONSUL_TOKEN",
    "CONSUL_HTTP_TOKEN",
    "CONSUL_HTTP_TOKEN_FILE",
    "NOMAD_TOKEN",
    "VAULT_TOKEN",
    "CONSUL_LICENSE",
    "NOMAD_LICENSE",
    "VAULT_LICENSE",
    "CONSUL_LICENSE_PATH",
    "NOMAD_LICENSE_PATH",
    "VAULT_LICENSE_PATH",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_METADATA_URL",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_OAUTH_ACCESS_TOKEN",
    "NOTIFY_SOCKET",
    NULL,
};

static const char *const *
host_deny(const void *ctx, const struct ground *g)
{
    const char *list = str_map_get(&g->cfg.agent->options, "env.denylist");
    if (!list)
        list = str_map_get(&g->cfg.agent->options, "env.blacklist");
    if (!list)
        return host_deny_default;
    const char **names = NULL;
    size_t n = 0;
    char *save = NULL;
    for (char *w = strtok_r(mem_strdup(ctx, list), ", ", &save); w;
         w = strtok_r(NULL, ", ", &save)) {
        mem_resize(ctx, names, const char *, n + 2);
        names[n++] = w;
        names[n] = NULL;
    }
    return names;
}

/* Returns the user of a raw_exec task that names nobody: the warden's policy says. NULL: we
 * ourselves. */
static const char *
raw_user(const struct ground *g)
{
    return link_fact(g->link, "raw_exec_user");
}

static const struct allocated_task_resources *
resources_of(const struct task_runner *tr)
{
    const struct allocated_resources *ar = tr->ar->rec->alloc->allocated_resources;
    if (!ar)
        return NULL;
    __auto_type row = map_get(ar->tasks, tr->sm.t->name);
    return row ? row->v : NULL;
}

struct prepared {
    struct env_input ei;
    struct str_map names;
    struct str_map hooks;
    struct env *env;
    struct str_list list;
    struct driver_input in;
};

static void
prepare_dirs(const void *ctx, const struct task_runner *tr, struct env_input *ei)
{
    const char *base = tr->ar->g->cfg.alloc_dir;
    if (tr->driver->can->isolation) {
        ei->alloc_dir = "/alloc";
        ei->task_dir = "/local";
        ei->secrets_dir = "/secrets";
        return;
    }
    ei->alloc_dir = mem_printf(ctx, "%s/%s/alloc", base, tr->ar->id);
    ei->task_dir = mem_printf(ctx, "%s/%s/%s/local", base, tr->ar->id, tr->sm.t->name);
    ei->secrets_dir = mem_printf(ctx, "%s/%s/%s/secrets", base, tr->ar->id, tr->sm.t->name);
}

/* The task's own in place of its group's, each for itself. */
static void
find_policies(const struct task_runner *tr, struct driver_input *in)
{
    const struct task_network *own = tr->task->network;
    const struct network_resource *group =
        tr->ar->tg && tr->ar->tg->networks.n > 0 ? tr->ar->tg->networks.v[0] : NULL;
    in->egress = own && own->egress ? own->egress : group ? group->egress : NULL;
    in->bind = own && own->bind ? own->bind : group ? group->bind : NULL;
}

static void
put_port(const void *ctx, struct driver_input *in, size_t *room, const struct driver_port *p)
{
    struct driver_port *all = (struct driver_port *)in->ports;
    if (in->n_ports == *room) {
        *room = *room ? 2 * *room : 8;
        mem_resize(ctx, all, struct driver_port, *room);
        in->ports = all;
    }
    all[in->n_ports++] = *p;
}

/* Read-only where anybody says so: the client, the group, or the task. */
static int
find_volumes(const void *ctx, const struct task_runner *tr, struct env *env,
             struct driver_input *in, struct err *e)
{
    const struct volume_mount_list *l = &tr->task->volume_mounts;
    struct driver_volume *v = mem_array(ctx, struct driver_volume, l->n + 1);
    for (size_t i = 0; i < l->n; i++) {
        const struct volume_mount *m = l->v[i];
        __auto_type of = map_get(tr->ar->tg->volumes, str_or(m->volume, ""));
        const char *source = of ? volume_source(ctx, of->v, tr->ar->rec->alloc->name) : "";
        __auto_type here = map_get(tr->ar->g->node->host_volumes, source);
        if (!of || !here)
            return err_set(e, -ERR_NOT_FOUND, "this client has no host volume \"%.128s\"", source);
        /* by its id; a path that was registered is mounted as one of the job's is */
        const char *id = str_or(here->v->id, "");
        bool made = *id != '\0' && str_suffix(here->v->path, id);
        v[i] = (struct driver_volume){.name = *id == '\0' ? here->v->name
                                              : made      ? id
                                                          : NULL,
                                      .source = here->v->path,
                                      .target = env_interpolate(ctx, env, m->destination),
                                      .read_only = here->v->read_only || of->v->read_only ||
                                                   (m->read_only.set && m->read_only.v)};
    }
    in->volumes = v;
    in->n_volumes = l->n;
    return 0;
}

/* Finds the paths of the instances that servers gave to the task, and variables with their ids. */
static int
find_devices(const void *ctx, const struct task_runner *tr, struct str_map *vars,
             struct str_list *ret, struct err *e)
{
    const struct agent_device_list *known = &tr->ar->g->cfg.agent->devices;
    const struct allocated_task_resources *res = resources_of(tr);
    for (size_t i = 0; res && i < res->devices.n; i++) {
        const struct allocated_device_resource *r = res->devices.v[i];
        const struct agent_device *d = device_find(known, r);
        const char *ids = "";
        if (!d)
            return err_set(e, -ERR_NOT_FOUND, "this client has no device \"%s/%s/%s\"",
                           str_or(r->vendor, ""), str_or(r->type, ""), str_or(r->name, ""));
        for (size_t k = 0; k < r->device_ids.n; k++) {
            const char *id = r->device_ids.v[k];
            if (!str_list_has(&d->ids, id))
                return err_set(e, -ERR_NOT_FOUND, "device \"%s\" of this client has no id \"%s\"",
                               d->name, id);
            device_paths(ctx, d, id, ret);
            ids = mem_printf(ctx, "%s%s%s", ids, k > 0 ? "," : "", id);
        }
        const char *was = str_empty(d->env) ? NULL : str_map_get(vars, d->env);
        if (!str_empty(d->env)) /* one of several groups */
            str_map_set(ctx, vars, d->env, was ? mem_printf(ctx, "%s,%s", was, ids) : ids);
    }
    return 0;
}

/* The group's, and those of the task's own network. */
static void
find_ports(const void *ctx, const struct task_runner *tr, struct driver_input *in)
{
    const struct allocated_resources *ar = tr->ar->rec->alloc->allocated_resources;
    size_t room = 0;
    for (size_t i = 0; ar && ar->shared && i < ar->shared->ports.n; i++) {
        const struct allocated_port_mapping *p = ar->shared->ports.v[i];
        put_port(
            ctx, in, &room,
            &(struct driver_port){p->label, str_or(p->host_ip, ""), (int)p->value, (int)p->to});
    }
    for (size_t i = 0; in->resources && i < in->resources->networks.n; i++) {
        const struct network_resource *n = in->resources->networks.v[i];
        const struct port_list *lists[] = {&n->reserved_ports, &n->dynamic_ports};
        for (size_t k = 0; k < ARRAY_LEN(lists); k++)
            for (size_t j = 0; j < lists[k]->n; j++) {
                const struct port *p = lists[k]->v[j];
                put_port(
                    ctx, in, &room,
                    &(struct driver_port){
                        p->label, str_or(n->ip, ""), (int)p->value, (int)p->to, .own = true});
            }
    }
}

/* Finds the names that the group's network block sets; a file of the host's is small. */
static int
find_names(const void *ctx, const struct task_runner *tr, struct env *env,
           struct driver_input *in, struct err *e)
{
    const struct network_resource *n =
        tr->ar->tg && tr->ar->tg->networks.n > 0 ? tr->ar->tg->networks.v[0] : NULL;
    if (!n || !tr->driver->can->isolation) /* the others have the host's */
        return 0;
    in->hostname = env_interpolate(ctx, env, str_or(n->hostname, ""));
    if (!n->dns)
        return 0;
    auto_mem void *tmp = mem_ctx("resolv");
    char *host = NULL;
    (void)file_read(tmp, AT_FDCWD, "/etc/resolv.conf", RESOLV_MAX, &host, NULL);
    in->resolv = resolv_text(ctx, env, n->dns, host, e);
    return in->resolv ? 0 : e->code;
}

/* The facts of a task that an operator's labels may name. */
static void
put_names(const void *ctx, const struct task_runner *tr, struct str_map *ret)
{
    const struct allocation *a = tr->ar->rec->alloc;
    const struct node *n = tr->ar->g->node;
    str_map_set(ctx, ret, "job_id", a->job->id);
    str_map_set(ctx, ret, "job_name", str_or(a->job->name, a->job->id));
    str_map_set(ctx, ret, "task_group_name", tr->ar->tg->name);
    str_map_set(ctx, ret, "task_name", tr->task->name);
    str_map_set(ctx, ret, "namespace", str_or(a->namespace, "default"));
    str_map_set(ctx, ret, "node_name", str_or(n->name, ""));
    str_map_set(ctx, ret, "node_id", n->id);
}

/* The client's plugin block of the driver; as a list of maps too (HCL1 habits). */
static const struct value *
plugin_of(const struct ground *g, const char *driver)
{
    const struct agent_config *c = g->cfg.plugins;
    for (size_t i = 0; c && i < c->plugins.n; i++) {
        const struct value *v = c->plugins.v[i]->config;
        if (str_eq(c->plugins.v[i]->name, driver))
            return v && v->kind == VALUE_LIST && v->list.n > 0 ? v->list.v[0] : v;
    }
    return NULL;
}

static double
core_mhz(const struct node *n)
{
    const struct node_cpu_resources *c = n->node_resources ? n->node_resources->cpu : NULL;
    return c && c->total_cpu_cores > 0 ? (double)c->cpu_shares / (double)c->total_cpu_cores : 0;
}

/* `whole`: with what the task's own hooks add. */
static int
launch_prepare(const void *ctx, struct task_runner *tr, bool whole, struct prepared *p,
               struct err *e)
{
    struct ground *g = tr->ar->g;
    *p = (struct prepared){0};
    p->ei = (struct env_input){
        .node = g->node,
        .region = g->cfg.region,
        .alloc = tr->ar->rec->alloc,
        .group = tr->ar->tg,
        .task = tr->task,
        .resources = resources_of(tr),
        .parent_cgroup = g->link->cgroup,
        .host_env =
            tr->driver->can->launch ? (const char *const *)environ : NULL, /* not an image's */
        .host_deny = host_deny(ctx, g),
    };
    prepare_dirs(ctx, tr, &p->ei);
    tr->events->env(tr->ar, ctx, &p->hooks);
    identity_env(ctx, tr, p->ei.secrets_dir, &p->hooks);
    struct str_list devices = {NULL, 0};
    int r = find_devices(ctx, tr, &p->hooks, &devices, e);
    if (r < 0)
        return r;
    p->ei.hooks = &p->hooks;
    p->ei.secrets = secrets_values(tr);
    if (whole)
        p->ei.last = tr->vars;
    const char *user = str_or(tr->task->user, tr->driver->can->isolation ? "nobody" : raw_user(g));
    if (user && tr->driver->can->launch) { /* else it is the image's */
        p->ei.user = user;
        struct user account;
        if (users_resolve(user, NULL, 0, NULL, &account, NULL) == 0)
            p->ei.home = mem_strdup(ctx, account.home);
        if (!p->ei.home && !tr->driver->can->isolation)
            p->ei.home = "/nonexistent"; /* not that of who started the agent */
    }
    p->env = env_build(ctx, &p->ei);
    struct value *config = env_interpolate_value(ctx, p->env, tr->task->config);
    env_map_ports(p->env, driver_map(config, "port_map")); /* the config has those of the host */
    env_list(ctx, p->env, &p->list);
    p->in = (struct driver_input){
        .alloc_id = tr->ar->id,
        .task = tr->task,
        .config = config,
        .user = env_interpolate(ctx, p->env, str_or(tr->task->user, "")),
        .env = &p->list,
        .resources = p->ei.resources,
        .core_mhz = core_mhz(g->node),
        .kvm = str_map_get(&g->node->attributes, "driver.qemu.kvm") != NULL,
        .names = &p->names,
        .plugin = plugin_of(g, tr->driver->can->name),
    };
    put_names(ctx, tr, &p->names);
    p->in.own_network = alloc_network(tr->ar);
    find_policies(tr, &p->in);
    find_ports(ctx, tr, &p->in);
    p->in.devices = devices;
    r = find_names(ctx, tr, p->env, &p->in, e);
    r = r < 0 ? r : find_volumes(ctx, tr, p->env, &p->in, e);
    r = r < 0 ? r : env_check(p->env, e);
    return r < 0 ? r : driver_check(tr->driver, p->in.config, e);
}

const char *
launch_user(const void *ctx, struct task_runner *tr)
{
    const char *user = str_or(tr->task->user, "");
    if (!strstr(user, "${") || !tr->driver)
        return user;
    struct prepared *p = mem_new(ctx, struct prepared);
    struct err e = ERR_INIT; /* a bad config fails the launch itself */
    (void)launch_prepare(p, tr, true, p, &e);
    return p->in.user;
}

void
launch_owner(const void *ctx, struct task_runner *tr, bool writes, struct warden_put *ret)
{
    struct user account;
    ret->mode = 0600;
    if (tr->driver->can->launch)
        return;
    char *user = mem_strdup(ctx, launch_user(ctx, tr));
    user[strcspn(user, ":")] = '\0';
    if (*user != '\0' && users_resolve(user, NULL, 0, NULL, &account, NULL) == 0)
        ret->owner = user;
    else
        ret->mode = writes ? 0666 : 0644;
}

struct env *
launch_env(const void *ctx, struct task_runner *tr, struct artifact_dirs *dirs, struct err *e)
{
    struct prepared *p = mem_new(ctx, struct prepared);
    if (launch_prepare(p, tr, false, p, e) < 0)
        return NULL;
    *dirs = (struct artifact_dirs){
        .alloc = p->ei.alloc_dir, .task = p->ei.task_dir, .secrets = p->ei.secrets_dir};
    return p->env;
}

/* The disks of its limits, by number: "/dev/sda" is the agent's, not the warden's, to look at. */
static int
find_disks(const struct ground *g, struct task_isolation *iso, struct err *e)
{
    for (size_t i = 0; iso && i < iso->io.n; i++) {
        struct task_io *io = iso->io.v[i];
        const char *path = str_or(io->device, g->cfg.alloc_dir);
        unsigned major, minor;
        int r = cgroup_disk(path, &major, &minor);
        if (r < 0)
            return err_set(e, -ERR_INVALID,
                           "isolation: io: \"%.200s\" is on no disk of this node: %s", path,
                           err_name(r));
        io->device = mem_printf(iso, "%u:%u", major, minor);
    }
    return 0;
}

const struct driver_input *
launch_input(const void *ctx, struct task_runner *tr, struct err *e)
{
    struct prepared *p = mem_new(ctx, struct prepared);
    return launch_prepare(p, tr, true, p, e) < 0 ? NULL : &p->in;
}

/* Is for what files are put into; others have the memory of their sandbox. An engine may not see
 * what is mounted after its start. */
int64_t
launch_secrets_mb(const struct task_runner *tr)
{
    enum { DEFAULT_MB = 1 };
    const struct resources *r = tr->task->resources;
    bool files = tr->task->templates.n > 0 || identity_has_file(tr->task);
    if (!files || driver_engine(tr->task->driver))
        return 0;
    return r && r->secrets_mb > 0 ? r->secrets_mb : DEFAULT_MB;
}

struct launch_spec *
launch_spec_build(const void *ctx, struct task_runner *tr, struct err *e)
{
    const struct driver_input *in = launch_input(ctx, tr, e);
    struct launch_spec *spec = NULL;
    if (!in || tr->driver->spec(ctx, in, &spec, e) < 0 ||
        find_disks(tr->ar->g, spec->isolation, e) < 0)
        return NULL;
    for (size_t i = 0; i < in->n_volumes; i++) {
        struct launch_mount *m = mem_new(spec, struct launch_mount);
        *m = (struct launch_mount){.source = in->volumes[i].source,
                                   .target = in->volumes[i].target,
                                   .volume = in->volumes[i].name,
                                   .read_only = in->volumes[i].read_only};
        list_add(spec, spec->mounts, m);
    }
    for (size_t i = 0; spec->isolated && i < in->devices.n; i++)
        list_add(spec, spec->devices, in->devices.v[i]);
    spec->secrets_kept = launch_secrets_mb(tr) > 0;
    if (group_fenced(tr->ar->tg)) /* where no server was heard in this boot: it has no time left */
        spec->until = (tr->ar->g->heard_ns + tr->ar->tg->disconnect->lost_after.v) / NS_PER_MS;
    if (group_fenced(tr->ar->tg) && tr->ar->g->heard_ns == 0)
        spec->until = 1;
    return spec;
}

bool
launch_needs_alloc(const struct task_runner *tr)
{
    const struct driver *d = tr->driver;
    return d->can->launch || d->can->isolation || (alloc_network(tr->ar) && d->engine->net_make);
}
