/* SPDX-License-Identifier: Apache-2.0
 *
 * Registrations of an allocation, see services.h: first where a service or a check is reached, by
 * mode; then the resolving of blocks; then the registrations. Pure.
 */
#include "client/alloc/services.h"

#include <string.h>

#include "api/service/service.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"

#define PORT_MOST 65535

/* --- addresses --- */

static const struct allocated_port_mapping *
services_mapping(const struct allocation *a, const char *label)
{
    const struct allocated_resources *r = a->allocated_resources;
    for (size_t i = 0; r && r->shared && i < r->shared->ports.n; i++)
        if (str_eq(r->shared->ports.v[i]->label, label))
            return r->shared->ports.v[i];
    return NULL;
}

/* The networks of the task, or of the group. */
static const struct network_resource_list *
services_networks(const struct services_in *in)
{
    static const struct network_resource_list none;
    const struct allocated_resources *r = in->alloc->allocated_resources;
    if (in->task && r) {
        for (size_t i = 0; i < r->tasks.n; i++)
            if (str_eq(r->tasks.v[i].k, in->task->name) && r->tasks.v[i].v)
                return &r->tasks.v[i].v->networks;
    }
    return r && r->shared ? &r->shared->networks : &none;
}

/* Finds a port of the networks; 0: there is none of that label. */
static int64_t
services_network_port(const struct network_resource_list *l, const char *label, const char **ret_ip)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct port_list *lists[] = {&l->v[i]->reserved_ports, &l->v[i]->dynamic_ports};
        for (size_t k = 0; k < ARRAY_LEN(lists); k++)
            for (size_t j = 0; j < lists[k]->n; j++)
                if (str_eq(lists[k]->v[j]->label, label)) {
                    *ret_ip = l->v[i]->ip;
                    return lists[k]->v[j]->value;
                }
    }
    return 0;
}

/* Reads a number in place of a label. False: it is none. */
static bool
services_number(const char *label, int64_t *ret)
{
    const char *digits = label[0] == '-' ? label + 1 : label;
    size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > 9 || digits[n] != 0)
        return false;
    int64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v * 10 + (digits[i] - '0');
    *ret = label[0] == '-' ? -v : v;
    return true;
}

/* Reads a port's number. `unknown` says what a text is that is no number. */
static int
services_numeric(const char *label, const char *unknown, int64_t *ret, struct err *e)
{
    int64_t v = 0;
    if (!services_number(label, &v))
        return err_set(e, -ERR_INVALID, "invalid port \"%.100s\": %s", label, unknown);
    if (v <= 0)
        return err_set(e, -ERR_INVALID, "invalid port \"%.100s\": port must be >0", label);
    if (v > PORT_MOST)
        return err_set(e, -ERR_INVALID, "invalid port \"%.100s\": port must be at most %d", label,
                       PORT_MOST);
    *ret = v;
    return 0;
}

static int
services_custom(const struct services_in *in, const struct services_place *p, int64_t *ret_port,
                struct err *e)
{
    if (str_empty(p->label))
        return 0;
    const struct allocated_port_mapping *m = services_mapping(in->alloc, p->label);
    const char *ip = NULL;
    *ret_port = m ? m->value : services_network_port(services_networks(in), p->label, &ip);
    if (*ret_port > 0)
        return 0;
    return services_numeric(p->label, "not a valid port mapping or numeric port", ret_port, e);
}

/* The address under which others reach the node. */
static const char *
services_node_address(const struct services_in *in)
{
    return str_or(str_map_get(&in->node->attributes, "unique.network.ip-address"), "");
}

static int
services_host(const struct services_in *in, const struct services_place *p,
              const char **ret_address, int64_t *ret_port, struct err *e)
{
    const struct network_resource_list *l = services_networks(in);
    const char *ip = NULL;
    if (str_empty(p->label)) {
        ip = l->n == 1 ? l->v[0]->ip : NULL;
        *ret_address = str_or(ip, services_node_address(in));
        return 0;
    }
    const struct allocated_port_mapping *m = services_mapping(in->alloc, p->label);
    if (m)
        ip = m->host_ip;
    *ret_port = m ? m->value : services_network_port(l, p->label, &ip);
    *ret_address = str_or(ip, services_node_address(in));
    if (*ret_port > 0)
        return 0;
    return services_numeric(p->label, "port label not found", ret_port, e);
}

static int
services_alloc(const struct services_in *in, const struct services_place *p,
               const char **ret_address, int64_t *ret_port, struct err *e)
{
    const struct alloc_network_status *s = in->alloc->network_status;
    const char *ip = !s                              ? NULL
                     : str_eq(p->mode, "alloc_ipv6") ? s->address_ipv6
                                                     : s->address;
    if (str_empty(ip))
        return err_set(e, -ERR_INVALID,
                       "cannot use address_mode=\"%s\": no allocation network status reported",
                       p->mode);
    *ret_address = ip;
    if (str_empty(p->label))
        return 0;
    const struct allocated_port_mapping *m = services_mapping(in->alloc, p->label);
    if (m) {
        *ret_port = m->to > 0 ? m->to : m->value;
        return 0;
    }
    return services_numeric(p->label, "port label not found", ret_port, e);
}

int
services_place(const void *ctx, const struct services_in *in, const struct services_place *p,
               const char **ret_address, int64_t *ret_port, struct err *e)
{
    const char *address = "";
    int64_t port = 0;
    int r = 0;
    bool is_auto = str_empty(p->mode) || str_eq(p->mode, "auto");
    if (is_auto && !str_empty(p->custom)) {
        address = p->custom;
        r = services_custom(in, p, &port, e);
    } else if (is_auto || str_eq(p->mode, "host")) {
        if (!str_empty(p->custom))
            return err_set(e, -ERR_INVALID,
                           "cannot use custom advertise address with \"host\" address mode");
        r = services_host(in, p, &address, &port, e);
    } else if (str_eq(p->mode, "alloc") || str_eq(p->mode, "alloc_ipv6")) {
        r = services_alloc(in, p, &address, &port, e);
    } else if (str_eq(p->mode, "driver")) {
        return err_set(e, -ERR_INVALID,
                       "cannot use address_mode=\"driver\": no driver network exists");
    } else {
        return err_set(e, -ERR_INVALID, "invalid address mode \"%.32s\"", p->mode);
    }
    if (r < 0)
        return r;
    *ret_address = mem_strdup(ctx, address);
    *ret_port = port;
    return 0;
}

/* --- blocks --- */

static void
services_text(void *ctx, struct env *env, const char **s)
{
    *s = env_interpolate(ctx, env, *s);
}

static void
services_texts(void *ctx, struct env *env, struct str_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        services_text(ctx, env, &l->v[i]);
}

static void
services_resolve_map(void *ctx, struct env *env, struct str_map *m)
{
    struct str_map out = {0};
    for (size_t i = 0; i < m->n; i++)
        str_map_set(ctx, &out, env_interpolate(ctx, env, m->v[i].k),
                    str_or(env_interpolate(ctx, env, m->v[i].v), ""));
    *m = out;
}

static void
services_resolve_check(void *ctx, struct env *env, struct service_check *c)
{
    const char **const texts[] = {
        &c->name, &c->type, &c->command, &c->path, &c->protocol, &c->port_label, &c->initial_status,
        &c->notes, &c->method, &c->grpc_service, &c->task_name};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        services_text(ctx, env, texts[i]);
    services_texts(ctx, env, &c->args);
    struct strs_map out = {0};
    for (size_t i = 0; i < c->header.n; i++) {
        struct str_list values = c->header.v[i].v;
        services_texts(ctx, env, &values);
        map_put(ctx, out, env_interpolate(ctx, env, c->header.v[i].k))->v = values;
    }
    c->header = out;
}

bool
services_is_ours(const struct service *s)
{
    return str_eq(s->provider, "nomad");
}

/* Clones the block with its references resolved; owned by ctx. */
static struct service *
services_resolve(const void *ctx, const struct services_in *in, const struct service *s)
{
    struct service *r = codec_clone(ctx, &type_service, s);
    services_text(r, in->env, &r->name);
    services_text(r, in->env, &r->port_label);
    services_text(r, in->env, &r->address);
    services_texts(r, in->env, &r->tags);
    services_texts(r, in->env, &r->canary_tags);
    services_resolve_map(r, in->env, &r->meta);
    services_resolve_map(r, in->env, &r->canary_meta);
    services_resolve_map(r, in->env, &r->tagged_addresses);
    for (size_t i = 0; i < r->checks.n; i++)
        services_resolve_check(r, in->env, r->checks.v[i]);
    return r;
}

/* --- registrations --- */

static bool
services_is_canary(const struct allocation *a)
{
    return a->deployment_status && a->deployment_status->canary;
}

static int
services_one(const void *ctx, const struct services_in *in, const struct service *block,
             struct service_made *ret, struct err *e)
{
    const struct allocation *a = in->alloc;
    struct service *s = services_resolve(ctx, in, block);
    const char *name = str_or(s->name, "");
    if (!service_name_valid(name))
        return err_set(e, -ERR_INVALID,
                       "the name of service \"%.100s\" is \"%.100s\" here: it must be of letters, "
                       "digits and dashes between them, %d at most",
                       str_or(block->name, ""), name, SERVICE_NAME_MAX);
    struct service_registration *r = mem_new(ctx, struct service_registration);
    struct err why = ERR_INIT;
    if (services_place(r, in, &(struct services_place){s->address_mode, s->port_label, s->address},
                       &r->address, &r->port, &why) < 0)
        return err_set(e, -ERR_INVALID, "unable to get address for service \"%s\": %s", name,
                       why.text);
    r->id = mem_printf(r, SERVICE_ID_PREFIX "%s-%s%s-%s-%s", a->id, in->task ? "" : "group-",
                       in->task ? in->task->name : in->group->name, name,
                       str_or(s->port_label, ""));
    r->service_name = mem_strdup(r, name);
    r->namespace = mem_strdup(r, str_or(a->namespace, NS_DEFAULT));
    r->node_id = mem_strdup(r, in->node->id);
    r->datacenter = mem_strdup(r, in->node->datacenter);
    r->job_id = mem_strdup(r, a->job_id);
    r->alloc_id = mem_strdup(r, a->id);
    const struct str_list *tags =
        services_is_canary(a) && s->canary_tags.n > 0 ? &s->canary_tags : &s->tags;
    for (size_t i = 0; i < tags->n; i++)
        list_add(r, r->tags, mem_strdup(r, tags->v[i]));
    *ret = (struct service_made){r, s};
    return 0;
}

int
services_make(const void *ctx, const struct services_in *in, struct services_made *ret,
              struct err *e)
{
    const struct service_list *l = in->task ? &in->task->services : &in->group->services;
    for (size_t i = 0; i < l->n; i++) {
        struct service_made r;
        if (!services_is_ours(l->v[i]))
            continue;
        int code = services_one(ctx, in, l->v[i], &r, e);
        if (code < 0)
            return code;
        for (size_t k = 0; k < ret->n; k++)
            if (str_eq(ret->v[k].registration->id, r.registration->id))
                return err_set(e, -ERR_INVALID,
                               "service \"%s\" with port \"%.100s\" is there twice: give one of "
                               "them another name",
                               r.registration->service_name, str_or(l->v[i]->port_label, ""));
        list_add(ctx, *ret, r);
    }
    int bad = env_check(in->env, e);
    return bad < 0 ? bad : 0;
}
