/* SPDX-License-Identifier: Apache-2.0
 *
 * Port bookkeeping and assignment (see ports.h). One bitmap of 65,536 per address; an allocation's
 * ports never repeat on an address, whatever their labels.
 */
#include "server/sched/ports.h"

#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/compare/class.h"
#include "server/sched/resources.h"

#define WORDS ((PORT_MAX + 1) / 64)

struct addr {
    const char *ip;
    const char *alias;
    const char *device;
    uint64_t used[WORDS];
};

struct ports {
    const struct node *node;
    struct addr **v;
    size_t n;
    int64_t lo, hi; /* dynamic range, inclusive */
};

static bool
addr_taken(const struct addr *a, int64_t port)
{
    return (a->used[port / 64] >> (port % 64)) & 1;
}

static void
addr_take(struct addr *a, int64_t port)
{
    a->used[port / 64] |= UINT64_C(1) << (port % 64);
}

static void
take_reserved(void *arg, int64_t port)
{
    addr_take(arg, port);
}

static struct addr *
addr_add(struct ports *p, const char *ip, const char *alias, const char *device)
{
    struct addr *a = mem_new(p, struct addr);

    a->ip = ip;
    a->alias = str_or(alias, "default");
    a->device = device;
    mem_resize(p, p->v, struct addr *, p->n + 1);
    p->v[p->n++] = a;
    return a;
}

static void
addrs_of_node(struct ports *p, const struct node_resources *r)
{
    for (size_t i = 0; i < r->node_networks.n; i++) {
        const struct node_network_resource *nn = r->node_networks.v[i];
        if (!str_empty(nn->mode) && !str_eq(nn->mode, "host"))
            continue;
        for (size_t k = 0; k < nn->addresses.n; k++) {
            const struct node_network_address *na = nn->addresses.v[k];
            if (str_empty(na->address))
                continue;
            struct addr *a = addr_add(p, na->address, na->alias, nn->device);
            resources_ranges(na->reserved_ports, PORT_MAX, take_reserved, a);
        }
    }
    for (size_t i = 0; p->n == 0 && i < r->networks.n; i++) {
        const struct network_resource *nr = r->networks.v[i];
        if (!str_empty(nr->ip) && (str_empty(nr->mode) || str_eq(nr->mode, "host")))
            addr_add(p, nr->ip, NULL, nr->device);
    }
}

struct ports *
ports_new(const void *ctx, const struct node *n)
{
    struct ports *p = mem_new(ctx, struct ports);
    const struct node_resources *r = n->node_resources;
    const struct node_reserved_resources *rr = n->reserved_resources;

    p->node = n;
    p->lo = PORT_DYNAMIC_MIN;
    p->hi = PORT_DYNAMIC_MAX;
    if (r == NULL)
        return p;
    if (r->min_dynamic_port > 0 && r->min_dynamic_port <= PORT_MAX)
        p->lo = r->min_dynamic_port;
    if (r->max_dynamic_port > 0 && r->max_dynamic_port <= PORT_MAX)
        p->hi = r->max_dynamic_port;
    addrs_of_node(p, r);
    if (rr != NULL && rr->networks != NULL)
        for (size_t i = 0; i < p->n; i++)
            resources_ranges(rr->networks->reserved_host_ports, PORT_MAX, take_reserved, p->v[i]);
    return p;
}

static struct addr *
addr_by_ip(const struct ports *p, const char *ip)
{
    for (size_t i = 0; i < p->n; i++)
        if (str_eq(p->v[i]->ip, ip))
            return p->v[i];
    return NULL;
}

/* A port held by an allocation; one of an address the node no longer has is held on all. */
static bool
ports_hold(struct ports *p, const char *ip, int64_t port)
{
    struct addr *a = addr_by_ip(p, ip);
    bool clash = false;

    if (port <= 0 || port > PORT_MAX)
        return true;
    for (size_t i = 0; i < p->n; i++) {
        if (a != NULL && p->v[i] != a)
            continue;
        clash |= addr_taken(p->v[i], port);
        addr_take(p->v[i], port);
    }
    return !clash;
}

static const char *
hold_list(struct ports *p, const void *ctx, const char *ip, const struct port_list *l)
{
    const char *clash = NULL;

    for (size_t i = 0; i < l->n; i++)
        if (!ports_hold(p, ip, l->v[i]->value) && clash == NULL && !l->v[i]->ignore_collision)
            clash = mem_printf(ctx, "%s=%lld", str_or(l->v[i]->label, "?"),
                               (long long)l->v[i]->value);
    return clash;
}

static const char *
hold_networks(struct ports *p, const void *ctx, const struct network_resource_list *l)
{
    const char *clash = NULL;

    for (size_t i = 0; i < l->n; i++) {
        const struct network_resource *nr = l->v[i];
        const char *a = hold_list(p, ctx, nr->ip, &nr->reserved_ports);
        const char *b = hold_list(p, ctx, nr->ip, &nr->dynamic_ports);
        clash = clash ? clash : a ? a : b;
    }
    return clash;
}

const char *
ports_add(struct ports *p, const void *ctx, const struct allocation *a)
{
    const struct allocated_resources *r = a->allocated_resources;
    const char *clash = NULL, *c;

    if (r == NULL)
        return NULL;
    if (r->shared != NULL) {
        const struct allocated_shared_resources *s = r->shared;
        for (size_t i = 0; i < s->ports.n; i++) {
            const struct allocated_port_mapping *m = s->ports.v[i];
            if (!ports_hold(p, m->host_ip, m->value) && clash == NULL && !m->ignore_collision)
                clash = mem_printf(ctx, "%s=%lld", str_or(m->label, "?"), (long long)m->value);
        }
        /* the same ports in the older form */
        if (s->ports.n == 0)
            clash = clash ? clash : hold_networks(p, ctx, &s->networks);
    }
    for (size_t i = 0; i < r->tasks.n; i++) {
        if (r->tasks.v[i].v == NULL)
            continue;
        c = hold_networks(p, ctx, &r->tasks.v[i].v->networks);
        clash = clash ? clash : c;
    }
    return clash;
}

/* The alias a port asks for; ${…} is resolved from the node. NULL: cannot be resolved. */
static const char *
port_alias(const struct node *n, const struct port *port)
{
    const char *alias = str_or(port->host_network, "default");

    return target_resolve(n, alias, &alias) ? alias : NULL;
}

static struct addr *
addr_by_alias(const struct ports *p, const char *alias, size_t *from)
{
    ASSERT(*from <= p->n);
    for (; alias != NULL && *from < p->n; (*from)++)
        if (str_eq(p->v[*from]->alias, alias))
            return p->v[(*from)++];
    return NULL;
}

static bool
mode_exists(const struct node *n, const char *mode)
{
    const struct node_resources *r = n->node_resources;

    if (str_empty(mode) || str_eq(mode, "host") || str_eq(mode, "none"))
        return true;
    for (size_t i = 0; r != NULL && i < r->node_networks.n; i++)
        if (str_eq(r->node_networks.v[i]->mode, mode))
            return true;
    for (size_t i = 0; r != NULL && i < r->networks.n; i++)
        if (str_eq(r->networks.v[i]->mode, mode))
            return true;
    return false;
}

static bool
alias_exists(const struct node *n, const char *alias)
{
    const struct node_resources *r = n->node_resources;
    bool any = false;

    if (r == NULL || alias == NULL)
        return false;
    for (size_t i = 0; i < r->node_networks.n; i++) {
        const struct node_network_resource *nn = r->node_networks.v[i];
        for (size_t k = 0; k < nn->addresses.n; k++) {
            any = true;
            if (str_eq(str_or(nn->addresses.v[k]->alias, "default"), alias))
                return true;
        }
    }
    return !any && r->networks.n > 0 && str_eq(alias, "default");
}

static const char *
list_infeasible(const void *ctx, const struct node *n, const struct port_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (!alias_exists(n, port_alias(n, l->v[i])))
            return mem_printf(ctx, "missing host network \"%s\" for port \"%s\"",
                              str_or(l->v[i]->host_network, "default"),
                              str_or(l->v[i]->label, ""));
    return NULL;
}

const char *
ports_infeasible(const void *ctx, const struct node *n, const struct task_group *tg)
{
    const char *why;

    for (size_t i = 0; i < tg->networks.n; i++) {
        const struct network_resource *nr = tg->networks.v[i];
        if (!mode_exists(n, nr->mode))
            return "missing network";
        if ((why = list_infeasible(ctx, n, &nr->reserved_ports)) != NULL ||
            (why = list_infeasible(ctx, n, &nr->dynamic_ports)) != NULL)
            return why;
    }
    for (size_t t = 0; t < tg->tasks.n; t++) {
        const struct resources *r = tg->tasks.v[t]->resources;
        for (size_t i = 0; r != NULL && i < r->networks.n; i++)
            if ((why = list_infeasible(ctx, n, &r->networks.v[i]->reserved_ports)) != NULL ||
                (why = list_infeasible(ctx, n, &r->networks.v[i]->dynamic_ports)) != NULL)
                return why;
    }
    return NULL;
}

static int64_t
dynamic_port(const struct ports *p, const struct addr *a, struct rng *rng)
{
    int64_t n = p->hi - p->lo + 1, free_n = 0;

    if (n <= 0)
        return -1;
    for (int i = 0; i < PORT_DRAWS; i++) {
        int64_t port = p->lo + (int64_t)rng_below(rng, (uint64_t)n);
        if (!addr_taken(a, port))
            return port;
    }
    for (int64_t port = p->lo; port <= p->hi; port++)
        free_n += !addr_taken(a, port);
    if (free_n == 0)
        return -1;
    int64_t pick = (int64_t)rng_below(rng, (uint64_t)free_n);
    for (int64_t port = p->lo;; port++)
        if (!addr_taken(a, port) && pick-- == 0)
            return port;
}

/* Takes one port; the address it is on, or NULL with *why. */
static struct addr *
assign_one(struct ports *p, const void *ctx, struct port *port, bool dynamic, struct rng *rng,
           const char **why)
{
    const char *alias = port_alias(p->node, port);
    struct addr *a;
    size_t from = 0;

    *why = dynamic ? "dynamic port selection failed"
                   : mem_printf(ctx, "reserved port collision %s=%lld", str_or(port->label, "?"),
                                (long long)port->value);
    while ((a = addr_by_alias(p, alias, &from)) != NULL) {
        if (dynamic)
            port->value = dynamic_port(p, a, rng);
        else if (addr_taken(a, port->value) && !port->ignore_collision)
            continue;
        if (port->value > 0 && port->value <= PORT_MAX) {
            addr_take(a, port->value);
            return a;
        }
    }
    return NULL;
}

static const char *
assign_list(struct ports *p, const void *ctx, struct network_resource *nr, bool dynamic,
            struct rng *rng, struct allocated_shared_resources *shared)
{
    const struct port_list *l = dynamic ? &nr->dynamic_ports : &nr->reserved_ports;
    const char *why = NULL;

    for (size_t i = 0; i < l->n; i++) {
        struct port *port = l->v[i];
        struct addr *a = assign_one(p, ctx, port, dynamic, rng, &why);
        if (a == NULL)
            return why;
        if (port->to == -1)
            port->to = port->value;
        if (str_empty(nr->ip)) {
            nr->ip = mem_strdup(ctx, a->ip);
            nr->device = mem_strdup(ctx, a->device);
        }
        if (shared == NULL)
            continue;
        struct allocated_port_mapping *m = mem_new(ctx, struct allocated_port_mapping);
        m->label = mem_strdup(ctx, port->label);
        m->value = port->value;
        m->to = port->to;
        m->host_ip = mem_strdup(ctx, a->ip);
        m->ignore_collision = port->ignore_collision;
        list_add(ctx, shared->ports, m);
    }
    return NULL;
}

static const char *
assign_network(struct ports *p, const void *ctx, const struct network_resource *ask,
               struct rng *rng, struct network_resource_list *to,
               struct allocated_shared_resources *shared)
{
    struct network_resource *nr = codec_clone(ctx, &type_network_resource, ask);
    const char *why = NULL;

    nr->ip = nr->device = NULL;
    if (!str_eq(nr->mode, "none")) {
        why = assign_list(p, ctx, nr, false, rng, shared);
        if (why == NULL)
            why = assign_list(p, ctx, nr, true, rng, shared);
    }
    if (str_empty(nr->ip) && p->n > 0) {
        nr->ip = mem_strdup(ctx, p->v[0]->ip);
        nr->device = mem_strdup(ctx, p->v[0]->device);
    }
    list_add(ctx, *to, nr);
    return why;
}

const char *
ports_assign(struct ports *p, const void *ctx, const struct task_group *tg, struct rng *rng,
             struct allocated_resources *out)
{
    const char *why;

    for (size_t i = 0; i < tg->networks.n; i++) {
        why = assign_network(p, ctx, tg->networks.v[i], rng, &out->shared->networks, out->shared);
        if (why != NULL)
            return why;
    }
    for (size_t t = 0; t < tg->tasks.n; t++) {
        const struct task *task = tg->tasks.v[t];
        __auto_type atr = map_get(out->tasks, task->name);
        for (size_t i = 0; task->resources && atr && i < task->resources->networks.n; i++) {
            why = assign_network(p, ctx, task->resources->networks.v[i], rng, &atr->v->networks,
                                 NULL);
            if (why != NULL)
                return why;
        }
    }
    return NULL;
}
