/* SPDX-License-Identifier: Apache-2.0
 *
 * The network of an allocation, where its group asks for one of its own (mode none or bridge): made
 * before the first task starts, removed when the last one has ended, since then the servers give
 * its ports to others. By the warden; or, for a group with containers, by their engine, which alone
 * can put them into it: tasks of the warden's join that one.
 */
#include <arpa/inet.h>
#include <string.h>

#include "client/alloc/alloc_runner.h"
#include "client/alloc/hooks_run.h"
#include "client/task/handle.h"
#include "client/task/launch.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

struct network_hook {
    bool making;  /* it was asked for, and is not there yet: nothing is to be removed by then */
    bool waiting; /* for ports that another allocation has, which is about to end */
    bool removing;
    bool gone;
    struct timer *timer;
    /* For tasks of the warden's that join a container: */
    char *address;
    int64_t joining, pid; /* whose namespace is asked for; and is theirs, 0: not known */
};

static void network_make(struct alloc_runner *ar);
static void network_remove(struct alloc_runner *ar);

static struct network_hook *
network_of(struct alloc_runner *ar)
{
    if (!ar->hook.network)
        ar->hook.network = mem_new(ar, struct network_hook);
    return ar->hook.network;
}

static void
network_begins(struct alloc_runner *ar)
{
    network_of(ar)->gone = false;
    network_of(ar)->making = true;
    hold_take(&ar->a.hold);
}

static int
fill_ports(struct net_request *q, const struct allocation *a, struct err *e)
{
    const struct allocated_resources *r = a->allocated_resources;
    for (size_t i = 0; r && r->shared && i < r->shared->ports.n; i++) {
        const struct allocated_port_mapping *m = r->shared->ports.v[i];
        struct in_addr in;
        if (inet_pton(AF_INET, str_or(m->host_ip, ""), &in) != 1)
            return err_set(
                e, -ERR_UNSUPPORTED,
                "port \"%s\": network mode bridge maps ports of IPv4 addresses only, and "
                "this one's is \"%s\"",
                str_or(m->label, ""), str_or(m->host_ip, ""));
        struct net_request_port *p = mem_new(q, struct net_request_port);
        p->host_ip = m->host_ip;
        p->host_port = m->value;
        p->to = m->to > 0 ? m->to : m->value;
        list_add(q, q->ports, p);
    }
    return 0;
}

/* Another one is about to give its ports back. The servers give them away as soon as it is to stop.
 */
static bool
somebody_leaves(struct alloc_runner *ar)
{
    ALLOCS_EACH (ar->in, other)
        if (other != ar && alloc_network(&other->a) && !network_of(other)->gone &&
            (other->a.rec->stopping || alloc_runner_terminal(other)))
            return true;
    return false;
}

static void
wake_waiting(struct allocs *allocs)
{
    ALLOCS_EACH (allocs, ar) {
        if (!network_of(ar)->waiting)
            continue;
        network_of(ar)->waiting = false;
        if (!ar->a.stopped && !alloc_runner_terminal(ar))
            network_make(ar);
    }
}

/* `s` NULL: it has no address. */
static void
hook_network_made(struct alloc_runner *ar, const struct err *e,
                  const struct alloc_network_status *s)
{
    network_of(ar)->making = false;
    bool ends = ar->a.stopped || alloc_runner_terminal(ar);
    if (e && e->code == -ERR_CONFLICT && !ends && somebody_leaves(ar)) {
        log_info("client", "network waits for another allocation to end", "alloc_id", ar->a.id,
                 "reason", e->text, NULL);
        network_of(ar)->waiting = true;
        hold_release(&ar->a.hold);
        return;
    }
    struct allocation *a = ar->a.rec->alloc;
    if (s && !ar->a.stopped && !str_empty(s->address) &&
        (!a->network_status || !str_eq(a->network_status->address, s->address))) {
        a->network_status = codec_clone(a, &type_alloc_network_status, s);
        const struct dns_config *dns = alloc_network(&ar->a)->dns;
        a->network_status->dns = dns ? codec_clone(a->network_status, &type_dns_config, dns) : NULL;
        alloc_runner_persist(ar);
    }
    hooks_done(ar, &hook_network, e);
    if (alloc_runner_terminal(ar)) /* it comes too late */
        network_remove(ar);
    hold_release(&ar->a.hold);
}

static void
on_made(void *arg, const struct err *e, struct warden_reply *r)
{
    hook_network_made(arg, e, e ? NULL : r->msg->network);
}

/* --- of containers --- */

static const struct engine *
engine_of(const struct task_runner *tr)
{
    const struct engine *g = tr->driver ? tr->driver->engine : NULL;
    return g && g->net_make ? g : NULL;
}

/* Finds a task of the group that is a container: its engine makes the network. NULL: none, or *e:
 * they are of several engines, which no registration lets pass. */
static struct task_runner *
container_of_group(struct alloc_runner *ar, struct err *e)
{
    struct task_runner *first = NULL;
    for (size_t i = 0; i < ar->n; i++) {
        struct task_runner *tr = &ar->tasks[i];
        if (engine_of(tr) && first && tr->driver != first->driver)
            err_set(e, -ERR_INVALID,
                    "the containers of a group with a network of its own are of one engine: "
                    "\"%s\" is of driver %s, \"%s\" of %s",
                    first->sm.t->name, first->task->driver, tr->sm.t->name, tr->task->driver);
        first = first ? first : engine_of(tr) ? tr : NULL;
    }
    return e->code < 0 ? NULL : first;
}

/* Tasks that the warden starts, in the network of the group's containers. */
static bool
is_joined(const struct alloc_runner *ar)
{
    bool any = false;
    for (size_t i = 0; i < ar->n; i++)
        any = any || (ar->tasks[i].driver && ar->tasks[i].driver->can->launch);
    return any;
}

/* The engine has made another one: what runs in the old one speaks to nobody any more. */
static void
hook_network_follow(struct alloc_runner *ar)
{
    for (size_t i = 0; i < ar->n; i++) {
        struct task_runner *tr = &ar->tasks[i];
        if (tr->driver && tr->driver->can->launch)
            tr->act(tr, task_sm_restart(&tr->sm, clock_civil_ns(),
                                        "the network of the group was made again"));
    }
}

static void
on_joined(void *arg, const struct err *e, struct warden_reply *r)
{
    struct alloc_runner *ar = arg;
    struct network_hook *h = network_of(ar);
    const struct alloc_network_status s = {.interface_name = "eth0", .address = h->address};
    (void)r;
    if (!e && h->pid != 0 && h->pid != h->joining && !ar->a.stopped)
        hook_network_follow(ar);
    h->pid = e ? h->pid : h->joining;
    hook_network_made(ar, e, &s);
}

static void
on_engine_made(void *arg, const struct err *e, const struct hand_network_state *state)
{
    struct alloc_runner *ar = arg;
    struct network_hook *h = network_of(ar);
    const struct alloc_network_status s = {.interface_name = "eth0",
                                           .address = state ? state->address : NULL};
    auto_mem void *tmp = mem_ctx("network");
    if (e || !is_joined(ar) || ar->a.stopped) {
        hook_network_made(ar, e, &s);
        return;
    }
    struct net_request *q = mem_new(tmp, struct net_request);
    mem_free(h->address);
    h->address = mem_strdup(h, state->address);
    h->joining = q->pid = state->pid;
    q->mode = alloc_network(&ar->a)->mode;
    warden_net_make(ar->a.g->warden, ar->a.id, q, on_joined, ar);
}

static void
engine_make(struct alloc_runner *ar, struct task_runner *tr)
{
    const struct network_resource *n = alloc_network(&ar->a);
    const struct allocated_resources *r = ar->a.rec->alloc->allocated_resources;
    const struct engine_place p = engine_place(tr);
    auto_mem void *tmp = mem_ctx("network");
    struct hand_network *q = mem_new(tmp, struct hand_network);
    struct err e = ERR_INIT;
    if (engine_off(tr))
        err_set(&e, -ERR_INVALID, "the driver %s is off on this node", p.driver);
    const struct driver_input *in = e.code ? NULL : launch_input(tmp, tr, &e);
    if (!in) {
        hooks_done(ar, &hook_network, &e);
        return;
    }
    q->mode = n->mode;
    q->joined = is_joined(ar);
    q->hostname = in->hostname; /* in which variables have their values */
    for (size_t i = 0; str_eq(n->mode, "bridge") && r && r->shared && i < r->shared->ports.n; i++) {
        const struct allocated_port_mapping *m = r->shared->ports.v[i];
        struct hand_port *to = mem_new(q, struct hand_port);
        *to = (struct hand_port){m->host_ip, m->value, m->to > 0 ? m->to : m->value};
        list_add(q, q->ports, to);
    }
    if (n->dns) {
        q->dns_servers = n->dns->servers;
        q->dns_search = n->dns->searches;
        q->dns_options = n->dns->options;
    }
    network_begins(ar);
    tr->driver->engine->net_make(&p, q, on_engine_made, ar);
}

static void
network_make(struct alloc_runner *ar)
{
    const struct network_resource *n = alloc_network(&ar->a);
    struct err e = ERR_INIT;
    auto_mem void *tmp = mem_ctx("network");
    struct task_runner *tr = container_of_group(ar, &e);
    if (tr) {
        engine_make(ar, tr);
        return;
    }
    struct net_request *q = mem_new(tmp, struct net_request);
    q->mode = n->mode;
    if (e.code < 0 || (str_eq(n->mode, "bridge") && fill_ports(q, ar->a.rec->alloc, &e) < 0)) {
        hooks_done(ar, &hook_network, &e);
        return;
    }
    network_begins(ar);
    warden_net_make(ar->a.g->warden, ar->a.id, q, on_made, ar);
}

static void
on_again(void *arg)
{
    struct alloc_runner *ar = arg;
    network_of(ar)->timer = NULL;
    network_remove(ar);
}

static void
on_engine_removed(void *arg, const struct err *e)
{
    struct alloc_runner *ar = arg;
    network_of(ar)->removing = false;
    if (ar->a.stopped) {
        /* the next agent does it */
    } else if (!e) {
        network_of(ar)->gone = true;
        wake_waiting(ar->in);
    } else if (e->code == -ERR_BUSY) {
        /* the warden does not know yet that the last task has ended, or the engine is away */
        network_of(ar)->timer = timer_start(ar->a.g->loop, CLIENT_AGAIN_MS, on_again, ar);
    } else if (e->code != -ERR_UNAVAILABLE && e->code != -ERR_CLOSED) { /* else link_up comes */
        log_warn("client", "network was not removed: it goes with the allocation's directory",
                 "alloc_id", ar->a.id, "error", e->text, NULL);
        network_of(ar)->gone = true;
        wake_waiting(ar->in);
    }
    hold_release(&ar->a.hold);
}

static void
on_removed(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    on_engine_removed(arg, e);
}

static void
remove_container(struct alloc_runner *ar, const struct task_runner *tr)
{
    const struct engine_place p = engine_place(tr);
    tr->driver->engine->net_remove(&p, on_engine_removed, ar);
}

/* The warden's tasks have left it. */
static void
on_left(void *arg, const struct err *e, struct warden_reply *r)
{
    struct alloc_runner *ar = arg;
    struct err none = ERR_INIT;
    const struct task_runner *tr = container_of_group(ar, &none);
    (void)r;
    if (e || !tr || ar->a.stopped)
        on_engine_removed(ar, e);
    else
        remove_container(ar, tr);
}

static void
network_remove(struct alloc_runner *ar)
{
    struct err none = ERR_INIT;
    const struct task_runner *tr = container_of_group(ar, &none);
    const struct network_hook *h = network_of(ar);
    if (h->making || h->gone || h->removing || h->timer ||
        ar->a.stopped || !ar->a.g->warden || !alloc_runner_terminal(ar) ||
        (tr && engine_off(tr)))
        return;
    network_of(ar)->removing = true;
    ar->a.ready = READY_NONE;
    hold_take(&ar->a.hold);
    if (tr && !is_joined(ar))
        remove_container(ar, tr);
    else
        warden_net_remove(ar->a.g->warden, ar->a.id, tr ? on_left : on_removed, ar);
}

static void
network_stop(struct alloc_runner *ar)
{
    timer_stop(TAKE(network_of(ar)->timer));
}

static bool
has_own(const struct alloc_runner *ar)
{
    return alloc_network(&ar->a) != NULL;
}

/* Inside of it the allocation has an address, where ports have other numbers than on the host. */
static void
network_env(const struct alloc_runner *ar, const void *ctx, struct str_map *ret)
{
    const struct allocation *a = ar->a.rec->alloc;
    const struct alloc_network_status *s = a->network_status;
    const struct allocated_resources *r = a->allocated_resources;
    for (size_t i = 0; s && !str_empty(s->address) && r && r->shared && i < r->shared->ports.n;
         i++) {
        const struct allocated_port_mapping *p = r->shared->ports.v[i];
        long long port = (long long)(p->to > 0 ? p->to : p->value);
        if (s->interface_name)
            str_map_set(ctx, ret, mem_printf(ctx, "NOMAD_ALLOC_INTERFACE_%s", p->label),
                        s->interface_name);
        str_map_set(ctx, ret, mem_printf(ctx, "NOMAD_ALLOC_IP_%s", p->label), s->address);
        str_map_set(ctx, ret, mem_printf(ctx, "NOMAD_ALLOC_ADDR_%s", p->label),
                    mem_printf(ctx, "%s:%lld", s->address, port));
    }
}

const struct alloc_hook hook_network = {.name = "network",
                                        .wanted = has_own,
                                        .env = network_env,
                                        .prestart = network_make,
                                        .exited = network_remove,
                                        .stop = network_stop};
