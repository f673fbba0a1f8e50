/* SPDX-License-Identifier: Apache-2.0
 *
 * The network of an allocation, where its group asks for one of its own (mode none or bridge): made
 * by the warden before the first task starts, removed when the last one has ended, since then the
 * servers give its ports to others.
 */
#include <arpa/inet.h>
#include <string.h>

#include "client/client_int.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

/* NULL: the host's. */
static const struct network_resource *
own(const struct alloc_runner *ar)
{
    const struct network_resource *n = ar->tg->networks.n > 0 ? ar->tg->networks.v[0] : NULL;
    return n && !str_empty(n->mode) && !str_eq(n->mode, "host") ? n : NULL;
}

bool
network_own(const struct alloc_runner *ar)
{
    return own(ar) != NULL;
}

static int
fill_ports(struct net_request *q, const struct allocation *a, struct err *e)
{
    const struct allocated_resources *r = a->allocated_resources;
    for (size_t i = 0; r && r->shared && i < r->shared->ports.n; i++) {
        const struct allocated_port_mapping *m = r->shared->ports.v[i];
        struct in_addr in;
        if (inet_pton(AF_INET, str_or(m->host_ip, ""), &in) != 1)
            return err_set(e, -ERR_UNSUPPORTED,
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

/* Another one is about to give its ports back. The servers give them away as soon as it is to stop. */
static bool
somebody_leaves(const struct alloc_runner *ar)
{
    struct alloc_runner *other, *next;
    HASH_ITER (hh, ar->c->allocs, other, next)
        if (other != ar && own(other) && !other->network_gone &&
            (other->rec->stopping || alloc_runner_terminal(other)))
            return true;
    return false;
}

static void
wake_waiting(struct client *c)
{
    struct alloc_runner *ar, *next;
    HASH_ITER (hh, c->allocs, ar, next) {
        if (!ar->network_waiting)
            continue;
        ar->network_waiting = false;
        if (!ar->stopped && !alloc_runner_terminal(ar))
            network_make(ar);
    }
}

static void
on_made(void *arg, const struct err *e, struct warden_reply *r)
{
    struct alloc_runner *ar = arg;
    if (e && e->code == -ERR_CONFLICT && !ar->stopped && somebody_leaves(ar)) {
        log_info("client", "network waits for another allocation to end", "alloc_id", ar->id, "reason",
                 e->text, NULL);
        ar->network_waiting = true;
        alloc_runner_release(ar);
        return;
    }
    const struct alloc_network_status *s = e ? NULL : r->msg->network;
    struct allocation *a = ar->rec->alloc;
    if (s && !ar->stopped && !str_empty(s->address) &&
        (!a->network_status || !str_eq(a->network_status->address, s->address))) {
        a->network_status = codec_clone(a, &type_alloc_network_status, s);
        const struct dns_config *dns = own(ar)->dns;
        a->network_status->dns =
            dns ? codec_clone(a->network_status, &type_dns_config, dns) : NULL;
        local_put_alloc(ar->c->state, ar->rec);
        sync_dirty(ar->c, ar);
    }
    alloc_runner_dirs_done(ar, e);
    alloc_runner_release(ar);
}

void
network_make(struct alloc_runner *ar)
{
    const struct network_resource *n = own(ar);
    struct err e = ERR_INIT;
    auto_mem void *tmp = mem_ctx("network");
    struct net_request *q = mem_new(tmp, struct net_request);
    q->mode = n->mode;
    if (str_eq(n->mode, "bridge") && fill_ports(q, ar->rec->alloc, &e) < 0) {
        alloc_runner_dirs_done(ar, &e);
        return;
    }
    ar->network_gone = false;
    alloc_runner_hold(ar);
    warden_net_make(ar->c->warden, ar->id, q, on_made, ar);
}

static void
on_again(void *arg)
{
    struct alloc_runner *ar = arg;
    ar->network_timer = NULL;
    network_remove(ar);
}

static void
on_removed(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    struct alloc_runner *ar = arg;
    ar->network_removing = false;
    if (ar->stopped) {
        /* the next agent does it */
    } else if (!e) {
        ar->network_gone = true;
        wake_waiting(ar->c);
    } else if (e->code == -ERR_BUSY) { /* the warden does not know yet that the last task has ended */
        ar->network_timer = timer_start(ar->c->loop, CLIENT_AGAIN_MS, on_again, ar);
    } else if (e->code != -ERR_UNAVAILABLE && e->code != -ERR_CLOSED) { /* else link_up comes */
        log_warn("client", "network was not removed: it goes with the allocation's directory",
                 "alloc_id", ar->id, "error", e->text, NULL);
        ar->network_gone = true;
        wake_waiting(ar->c);
    }
    alloc_runner_release(ar);
}

void
network_remove(struct alloc_runner *ar)
{
    if (!own(ar) || ar->network_gone || ar->network_removing || ar->network_timer || ar->stopped ||
        !ar->c->warden || !alloc_runner_terminal(ar))
        return;
    ar->network_removing = true;
    ar->dirs = DIRS_NONE;
    alloc_runner_hold(ar);
    warden_net_remove(ar->c->warden, ar->id, on_removed, ar);
}

void
network_stop(struct alloc_runner *ar)
{
    timer_stop(ar->network_timer);
    ar->network_timer = NULL;
}
