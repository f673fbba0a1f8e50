/* SPDX-License-Identifier: Apache-2.0 */
#include "client/node/node.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "api/device/device.h"
#include "api/terms.h"
#include "client/node/volumes.h"
#include "client/warden_link.h"
#include "common/clock.h"
#include "common/host/path.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "drivers/driver.h"
#include "fingerprint/fingerprint.h"

enum { DISK_GREW_MB = 64 };

/* Is `name` in the comma list, where empty means `dflt`? */
static bool
in_list(const char *list, const char *name, bool dflt)
{
    if (str_empty(list))
        return dflt;
    size_t n = strlen(name);
    for (const char *p = list; *p;) {
        while (*p == ' ' || *p == ',')
            p++;
        const char *end = p + strcspn(p, ", ");
        if ((size_t)(end - p) == n && strncmp(p, name, n) == 0)
            return true;
        p = end;
    }
    return false;
}

static const char *
node_option(const struct ground *g, const char *a, const char *b)
{
    const char *v = str_map_get(&g->cfg.agent->options, a);
    return v ? v : str_map_get(&g->cfg.agent->options, b);
}

static void
add_driver(struct ground *g, const struct driver *d, const struct driver_host *host)
{
    if (!in_list(node_option(g, "driver.allowlist", "driver.whitelist"), d->can->name, true) ||
        in_list(node_option(g, "driver.denylist", "driver.blacklist"), d->can->name, false))
        return;
    struct driver_info *info = mem_new(g->node, struct driver_info);
    struct driver_host here = *host;
    auto_mem void *tmp = mem_ctx("driver");
    here.runtime = fingerprint_runtime(tmp, d->can->name);
    here.engine_on = str_list_has(&g->cfg.engines, d->can->name);
    d->fingerprint(info, &here, info);
    if (g->link->trouble && info->healthy) { /* directories are the warden's, of containers too */
        info->healthy = false;
        info->health_description = g->link->trouble;
    }
    info->health_description = mem_strdup(info, str_or(info->health_description, ""));
    info->update_time = clock_civil_ns();
    char *attr = mem_printf(tmp, "driver.%s", d->can->name);
    for (size_t i = 0; info->healthy && i < info->attributes.n; i++)
        fingerprint_set(g->node, info->attributes.v[i].k, info->attributes.v[i].v);
    if (info->healthy)
        /* the one of the node is "1", as in Nomad */
        str_map_set(info, &info->attributes, attr, "true");
    fingerprint_set(g->node, attr, info->healthy ? "1" : NULL);
    map_put(g->node, g->node->drivers, d->can->name)->v = info;
}

static void
add_drivers(struct ground *g)
{
    const char *cgroup2 = str_map_get(&g->node->attributes, "unique.cgroup.version");
    struct driver_host host = {
        .root = g->link->root,
        .warden = g->warden && g->link->informed,
        .cgroup2 = str_eq(cgroup2, "v2"),
        .raw_exec = g->link->raw_exec,
        .missing = g->link->missing,
        .kvm = str_eq(link_fact(g->link, "kvm"), "true"),
    };
    for (size_t i = 0; i < DRIVERS_N; i++) {
        host.engine = g->engine[i];
        add_driver(g, drivers[i], &host);
    }
    host.engine = g->engine[DRIVERS_N];
    if (driver_extra())
        add_driver(g, driver_extra(), &host);
}

/* Makes the resources that the operator keeps back for the machine itself. Clients of the API
 * follow every pointer. */
static struct node_reserved_resources *
node_reserved(const void *ctx, const struct agent_reserved *from)
{
    struct node_reserved_resources *n = mem_new(ctx, struct node_reserved_resources);

    n->cpu = mem_new(n, struct node_reserved_cpu_resources);
    n->memory = mem_new(n, struct node_reserved_memory_resources);
    n->disk = mem_new(n, struct node_reserved_disk_resources);
    n->networks = mem_new(n, struct node_reserved_network_resources);
    if (from) {
        n->cpu->cpu_shares = from->cpu;
        n->memory->memory_mb = from->memory_mb;
        n->disk->disk_mb = from->disk_mb;
        n->networks->reserved_host_ports = from->reserved_ports;
    }
    return n;
}

/* Adds attributes on what isolation can do here: "true", or the reason why not. */
static void
add_facts(struct ground *g)
{
    auto_mem void *tmp = mem_ctx("facts");
    for (size_t i = 0; g->link->facts && i < g->link->facts->n; i++)
        fingerprint_set(g->node, mem_printf(tmp, "isolation.%s", g->link->facts->v[i].k),
                        g->link->facts->v[i].v);
}

/* Adds the attributes that the scheduler asks for where a group has network mode bridge. */
static void
add_bridge(struct ground *g)
{
    const char *fact = link_fact(g->link, "bridge");
    struct node_resources *res = g->node->node_resources;
    fingerprint_set(g->node, "nomad.bridge.hairpin_mode", str_eq(fact, "true") ? "false" : NULL);
    if (!str_eq(fact, "true") || !g->link->bridge)
        return;
    struct node_network_resource *n = mem_new(res, struct node_network_resource);
    n->mode = "bridge";
    n->device = mem_strdup(n, g->link->bridge);
    list_add(res, res->node_networks, n);
}

/* An instance is healthy while all of its paths are there. */
static void
add_devices(struct ground *g)
{
    const struct agent_device_list *l = &g->cfg.agent->devices;
    struct node_resources *res = g->node->node_resources;
    for (size_t i = 0; i < l->n; i++) {
        struct node_device_resource *group = device_group(res, l->v[i]);
        for (size_t k = 0; k < l->v[i]->ids.n; k++) {
            struct node_device *d = mem_new(group, struct node_device);
            struct str_list paths = {NULL, 0};
            struct stat st;
            d->id = mem_strdup(d, l->v[i]->ids.v[k]);
            d->healthy = true;
            device_paths(d, l->v[i], d->id, &paths);
            for (size_t p = 0; p < paths.n && d->healthy; p++)
                if (stat(paths.v[p], &st) < 0) {
                    d->healthy = false;
                    d->health_description = mem_printf(d, "%s: %s", paths.v[p], strerror(errno));
                }
            list_add(group, group->instances, d);
        }
        list_add(res, res->devices, group);
    }
}

static void
add_volumes(struct ground *g)
{
    const struct agent_host_volume_list *l = &g->cfg.agent->host_volumes;
    for (size_t i = 0; i < l->n; i++) {
        char real[PATH_MAX];
        struct stat st;
        int r = path_real(l->v[i]->path, real);
        if (r == 0)
            r = stat(real, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
        if (r != 0 && r != -EACCES) { /* what only root may look at is for root to mount */
            log_warn("client", "a host volume is not there: the node has it from the next start on",
                     "volume", l->v[i]->name, "path", l->v[i]->path, "error",
                     r == -ELOOP ? "a link on the way is in a directory that others may write"
                                 : strerror(-r),
                     NULL);
            continue;
        }
        struct client_host_volume_config *v = type_new(g->node, &type_client_host_volume_config);
        *v = (struct client_host_volume_config){.name = mem_strdup(v, l->v[i]->name),
                                                .path = mem_strdup(v, l->v[i]->path),
                                                .read_only = l->v[i]->read_only};
        map_put(g->node, g->node->host_volumes, v->name)->v = v;
    }
    volumes_fill(g->volumes, g->node);
}

void
node_build(struct ground *g, const struct meta *meta)
{
    const struct client_config *cfg = &g->cfg;
    mem_free(g->node);
    struct node *n = g->node = mem_new(g, struct node);
    n->id = g->node_id;
    n->datacenter = cfg->datacenter;
    n->name = cfg->name;
    n->node_class = str_or(cfg->agent->node_class, "");
    n->node_pool = cfg->agent->node_pool;
    n->http_addr = cfg->http_addr;
    n->tls_enabled = cfg->http_tls;
    n->status = NODE_INIT;
    n->scheduling_eligibility = cfg->agent->default_ineligible ? NODE_INELIGIBLE : NODE_ELIGIBLE;
    n->node_max_allocs = cfg->agent->node_max_allocs;
    n->cgroup_parent = g->link->cgroup ? mem_strdup(n, g->link->cgroup) : "";
    meta_fill(n, meta, &n->meta);
    n->reserved_resources = node_reserved(n, cfg->agent->reserved);
    n->node_resources = mem_new(n, struct node_resources);
    n->node_resources->min_dynamic_port = cfg->agent->min_dynamic_port;
    n->node_resources->max_dynamic_port = cfg->agent->max_dynamic_port;
    struct fingerprint_config fc = {
        .alloc_dir = cfg->alloc_dir,
        .network_interface = cfg->agent->network_interface,
        .version = cfg->version,
        .http_addr = cfg->http_addr,
        .signals = signal_names(),
        .network_speed = cfg->agent->network_speed,
        .cpu_total_compute = cfg->agent->cpu_compute,
        .memory_total_mb = cfg->agent->memory_mb,
        .disk_total_mb = cfg->agent->disk_total_mb,
        .loopback = cfg->dev,
        .no_services =
            cfg->agent->nomad_service_discovery.set && !cfg->agent->nomad_service_discovery.v,
    };
    fingerprint_run(n, &fc);
    add_volumes(g);
    add_devices(g);
    add_facts(g);
    add_bridge(g);
    add_drivers(g);
}

bool
node_disk_grew(const struct ground *g)
{
    const struct node_resources *r = g->node ? g->node->node_resources : NULL;
    struct statvfs v;
    if (!r || !r->disk || g->cfg.agent->disk_total_mb > 0 || statvfs(g->cfg.alloc_dir, &v) < 0)
        return false;
    int64_t grown = (int64_t)(v.f_bavail * v.f_frsize >> 20) - r->disk->disk_mb;
    return grown > DISK_GREW_MB && grown > r->disk->disk_mb / 10;
}
