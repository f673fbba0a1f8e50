/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node registers: all of it follows from the seed and its number.
 */
#include <stdio.h>
#include <string.h>

#include "api/terms.h"
#include "bench/fleet/fleet.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"

enum { FACTS_CORE_MHZ = 2500 };

/* splitmix64 of both. */
uint64_t
mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * UINT64_C(0x9e3779b97f4a7c15) + b + UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t
pick(const struct range *r, uint64_t chance)
{
    return r->max > r->min ? r->min + (int64_t)(chance % (uint64_t)(r->max - r->min + 1)) : r->min;
}

static uint64_t
seeded(const struct sim *s, uint64_t what)
{
    return mix(mix((uint64_t)s->fleet->opt.seed, what), s->number);
}

static void
uuid_of(uint64_t a, uint64_t b, char out[UUID_TEXT])
{
    snprintf(out, UUID_TEXT, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
             (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
             (unsigned)(0x8000 | (b >> 48 & 0x3fff)),
             (unsigned long long)(b & UINT64_C(0xffffffffffff)));
}

void
sim_id(const struct sim *s, char out[UUID_TEXT])
{
    uuid_of(seeded(s, 1), seeded(s, 2), out);
}

void
sim_secret(const struct sim *s, char out[UUID_TEXT])
{
    uuid_of(seeded(s, 3), seeded(s, 4), out);
}

/* 127.16.0.1 and on: none that ends with 0 or 255, nor 127.0.0.1. */
void
sim_address(const struct sim *s, char out[16])
{
    uint32_t n = s->number;
    snprintf(out, 16, "127.%u.%u.%u", (16 + n / (256 * 254)) % 256, n / 254 % 256, 1 + n % 254);
}

static const char *
one_of(char letter, uint32_t number, int64_t of, char out[32])
{
    out[0] = '\0';
    if (of > 0)
        snprintf(out, 32, "%c%lld", letter, (long long)(number % of));
    return out;
}

const char *
sim_rack(const struct sim *s, char out[32])
{
    return one_of('r', s->number, s->fleet->opt.racks, out);
}

const char *
sim_class(const struct sim *s, char out[32])
{
    return one_of('c', s->number, s->fleet->opt.classes, out);
}

const char *
sim_datacenter(const struct sim *s, char out[32])
{
    snprintf(out, 32, "dc%lld",
             (long long)(1 + s->number %
                                 (s->fleet->opt.datacenters > 0 ? s->fleet->opt.datacenters : 1)));
    return out;
}

/* --- resources --- */

static int64_t
varied(const struct sim *s, int64_t base, uint64_t what)
{
    int64_t by = s->fleet->opt.vary * base / 100;
    return pick(&(struct range){base - by, base + by}, seeded(s, what));
}

static struct value *
topology(const void *ctx, const struct options *o)
{
    struct value *t = value_map(ctx), *ids = value_list(ctx), *cores = value_list(ctx);

    for (int64_t i = 0; i < o->numa; i++)
        value_list_add(ids, value_int(ctx, i));
    for (int64_t i = 0; i < o->cores; i++) {
        struct value *c = value_map(ctx);
        value_map_set(c, "SocketID", value_int(ctx, i * o->numa / o->cores));
        value_map_set(c, "NodeID", value_int(ctx, i * o->numa / o->cores));
        value_map_set(c, "ID", value_int(ctx, i));
        value_map_set(c, "Grade", value_bool(ctx, true));
        value_map_set(c, "Disable", value_bool(ctx, false));
        value_map_set(c, "BaseSpeed", value_int(ctx, FACTS_CORE_MHZ));
        value_map_set(c, "MaxSpeed", value_int(ctx, 0));
        value_map_set(c, "GuessSpeed", value_int(ctx, 0));
        value_list_add(cores, c);
    }
    value_map_set(t, "NodeIDs", ids);
    value_map_set(t, "Cores", cores);
    value_map_set(t, "OverrideTotalCompute", value_int(ctx, 0));
    return t;
}

static void
add_devices(const void *ctx, const struct sim *s, struct node_resources *r)
{
    struct node_device_resource *d = mem_new(ctx, struct node_device_resource);
    char id[UUID_TEXT];

    d->vendor = "sim";
    d->type = "gpu";
    d->name = s->number % 2 ? "large" : "small";
    for (int64_t i = 0; i < s->fleet->opt.devices; i++) {
        uuid_of(mix(seeded(s, 5), (uint64_t)i), seeded(s, 6), id);
        struct node_device *in = mem_new(ctx, struct node_device);
        *in = (struct node_device){.id = mem_strdup(ctx, id), .healthy = true};
        list_add(ctx, d->instances, in);
    }
    list_add(ctx, r->devices, d);
}

static struct node_resources *
resources(const void *ctx, const struct sim *s)
{
    const struct options *o = &s->fleet->opt;
    struct node_resources *r = mem_new(ctx, struct node_resources);
    struct node_network_resource *nn = mem_new(ctx, struct node_network_resource);
    struct node_network_address *na = mem_new(ctx, struct node_network_address);
    char address[16];

    sim_address(s, address);
    r->cpu = mem_new(ctx, struct node_cpu_resources);
    r->cpu->cpu_shares = o->cores > 0 ? o->cores * FACTS_CORE_MHZ : varied(s, o->cpu, 7);
    r->cpu->total_cpu_cores = o->cores > 0 ? o->cores : 8;
    for (int64_t i = 0; i < o->cores; i++)
        list_add(ctx, r->cpu->reservable_cpu_cores, i);
    if (o->cores > 0) {
        r->processors = mem_new(ctx, struct node_processor_resources);
        r->processors->topology = topology(ctx, o);
    }
    r->memory = mem_new(ctx, struct node_memory_resources);
    r->memory->memory_mb = varied(s, o->memory, 8);
    r->disk = mem_new(ctx, struct node_disk_resources);
    r->disk->disk_mb = o->disk;
    if (o->devices > 0)
        add_devices(ctx, s, r);
    nn->mode = "host";
    nn->device = "lo";
    nn->speed = 1000;
    na->family = "ipv4";
    na->alias = "default";
    na->address = mem_strdup(ctx, address);
    list_add(ctx, nn->addresses, na);
    list_add(ctx, r->node_networks, nn);
    r->min_dynamic_port = 20000;
    r->max_dynamic_port = 32000;
    return r;
}

/* --- the node --- */

static void
add_drivers(const void *ctx, struct node *n, const char *names)
{
    char *list = mem_strdup(ctx, names), *save = NULL;

    for (char *d = strtok_r(list, ",", &save); d != NULL; d = strtok_r(NULL, ",", &save)) {
        struct driver_info *i = mem_new(ctx, struct driver_info);
        i->detected = i->healthy = true;
        i->health_description = "Healthy";
        i->update_time = clock_wall_ns();
        map_put(ctx, n->drivers, d)->v = i;
        str_map_set(ctx, &n->attributes, mem_printf(ctx, "driver.%s", d), "1");
    }
}

static void
add_attributes(const void *ctx, const struct sim *s, struct node *n)
{
    static const char *const facts[][2] = {
        {"kernel.name", "linux"},
        {"kernel.arch", "x86_64"},
        {"kernel.version", "6.1.0"},
        {"cpu.arch", "amd64"},
        {"cpu.modelname", "simulated"},
        {"cpu.numcores", "8"},
        {"cpu.frequency", "2500"},
        {"os.name", "debian"},
        {"os.version", "12"},
        {"os.signals", "SIGHUP,SIGINT,SIGKILL,SIGTERM,SIGUSR1,SIGUSR2"},
        {"nomad.version", "2.0.0"},
        {"nomad.revision", "simulated"},
        {"unique.cgroup.version", "v2"},
    };
    char address[16];

    for (size_t i = 0; i < ARRAY_LEN(facts); i++)
        str_map_set(ctx, &n->attributes, facts[i][0], facts[i][1]);
    sim_address(s, address);
    str_map_set(ctx, &n->attributes, "unique.hostname", n->name);
    str_map_set(ctx, &n->attributes, "unique.network.ip-address", address);
    str_map_set(ctx, &n->attributes, "numa.node.count",
                mem_printf(ctx, "%lld", (long long)s->fleet->opt.numa));
}

struct node *
facts_of(const void *ctx, const struct sim *s)
{
    struct node *n = mem_new(ctx, struct node);
    char text[UUID_TEXT], address[16];

    sim_address(s, address);
    sim_id(s, text);
    n->id = mem_strdup(ctx, text);
    n->name = mem_printf(ctx, "sim-%05u", s->number);
    n->datacenter = mem_strdup(ctx, sim_datacenter(s, (char[32]){0}));
    n->node_class = mem_strdup(ctx, sim_class(s, (char[32]){0}));
    n->node_pool = s->fleet->opt.pool;
    n->http_addr = mem_printf(ctx, "%s:4646", address);
    n->status = NODE_INIT;
    n->scheduling_eligibility = NODE_ELIGIBLE;
    n->node_resources = resources(ctx, s);
    n->reserved_resources = mem_new(ctx, struct node_reserved_resources);
    n->reserved_resources->cpu = mem_new(ctx, struct node_reserved_cpu_resources);
    n->reserved_resources->memory = mem_new(ctx, struct node_reserved_memory_resources);
    n->reserved_resources->disk = mem_new(ctx, struct node_reserved_disk_resources);
    n->reserved_resources->networks = mem_new(ctx, struct node_reserved_network_resources);
    add_attributes(ctx, s, n);
    add_drivers(ctx, n, s->fleet->opt.drivers);
    if (s->fleet->opt.racks > 0)
        str_map_set(ctx, &n->meta, "rack", sim_rack(s, (char[32]){0}));
    return n;
}

void
facts_tell(const struct sim *s)
{
    auto_mem void *ctx = mem_ctx("facts");
    const struct node *n = facts_of(ctx, s);

    events_add(s->fleet, "node %05u %s %s dc=%s class=%s rack=%s cpu=%lld memory=%lld", s->number,
               n->id, n->node_resources->node_networks.v[0]->addresses.v[0]->address, n->datacenter,
               n->node_class, str_or(str_map_get(&n->meta, "rack"), ""),
               (long long)n->node_resources->cpu->cpu_shares,
               (long long)n->node_resources->memory->memory_mb);
}
