/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of endpoints, and where a call begins: who is to answer, who may, and what happens when
 * nobody waits for the answer any more (see call_int.h).
 */
#include "server/call/call_int.h"
#include "server/call/endpoint.h"

#include "api/terms.h"
#include "common/mem.h"

#define SERVICE(id, name) {id, endpoint_call},
static const struct rpc_service services[] = {RPC_METHODS(SERVICE, SERVICE, SERVICE, SERVICE)};

#define READ(id, name) [id] = {.read = &read_##name},
#define WRITE(id, name) [id] = {.write = &write_##name},
#define CALL(id, name) [id] = {.call = call_##name},
#define NODE(id, name) [id] = {.node = true},
static const struct {
    const struct read_row *read;
    const struct write_row *write;
    rpc_handler *call;
    bool node;
} methods[] = {RPC_METHODS(READ, WRITE, CALL, NODE)};

const struct rpc_service *
endpoint_services(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(services);
    return services;
}

const struct rpc_service *
endpoint_join_services(size_t *ret_n)
{
    static const struct rpc_service join[] = {{RPC_SERVER_HELLO, endpoint_call},
                                              {RPC_SERVER_CONSENT, endpoint_call},
                                              {RPC_SERVER_SYNC, endpoint_call}};
    *ret_n = ARRAY_LEN(join);
    return join;
}

/* Decides who is to answer: this server, or (`there`) the leader. */
static int
check_place(const struct call *c, bool *there, struct err *e)
{
    unsigned flags = c->method->flags;
    uint64_t hops = c->env->hops;
    bool anybody = (flags & (RPC_LOCAL | RPC_CLIENT)) || ((flags & RPC_READ) && c->env->stale);

    *there = !anybody && !server_is_leader(c->s);
    if (!anybody && forward_too_late(c))
        return err_set(e, -ERR_NO_LEADER, "No cluster leader");
    if (hops > SERVER_HOPS_MAX)
        return err_set(e, -ERR_INVALID, "passed on by more than %d servers", SERVER_HOPS_MAX);
    if (*there && hops == SERVER_HOPS_MAX)
        return err_set(e, -ERR_NO_LEADER, "No cluster leader");
    return 0;
}

/* A method of its own: the machine has nothing more to do with it. */
static void
hand_over(struct call *c)
{
    rpc_handler *handle = methods[c->method->id].call;
    struct server *s = c->s;
    const void *req = c->req;

    handle(s, call_leave(c), req);
}

static void
endpoint_place(void *arg, struct rpc_call *rpc, const void *req)
{
    struct call *c = arg;
    const struct server_config *cfg = server_cfg(c->s);
    const char *region = str_or(c->env->region, cfg->region);
    struct err e = ERR_INIT;
    bool there;

    (void)rpc;
    (void)req;
    bool shared = (c->method->flags & RPC_REPLICATED) ||
                  ((c->method->flags & RPC_GLOBAL) && names_global_token(c));
    if (shared && str_eq(region, cfg->region))
        region = cfg->authoritative_region;
    if (authorize_peer(c, &e) < 0)
        call_fail(c, &e);
    else if (!str_eq(region, cfg->region))
        region_start(c, region);
    else if (check_place(c, &there, &e) < 0 || (!there && authorize(c, &e) < 0))
        call_fail(c, &e);
    else if (there)
        forward_start(c);
    else if (methods[c->method->id].read != NULL)
        read_start(c, methods[c->method->id].read);
    else if (methods[c->method->id].write != NULL)
        write_start(c, methods[c->method->id].write);
    else if (methods[c->method->id].node)
        node_start(c);
    else
        hand_over(c);
}

/* Gives a call up. One that a worker or the log has is not called back: it is not begun, or
 * answered to nobody. */
static void
given_up(void *arg)
{
    static void (*const give_up[CALL_STATES])(struct call *c) = {
        [CALL_WAITING] = forward_give_up, [CALL_FORWARDED] = forward_give_up,
        [CALL_ABROAD] = region_give_up,   [CALL_AT_NODE] = node_give_up,
        [CALL_PARKED] = read_give_up,     [CALL_HELD] = write_give_up};
    struct call *c = arg;

    atomic_store(&c->cancelled, true);
    if (give_up[c->state] != NULL)
        give_up[c->state](c);
}

void
endpoint_call(void *arg, struct rpc_call *rpc, const void *req)
{
    struct call *c = mem_new(rpc_call_ctx(rpc), struct call);

    c->s = arg;
    c->rpc = rpc;
    c->method = rpc_call_method(rpc);
    c->env = rpc_call_envelope(rpc);
    c->req = req;
    c->from = rpc_call_identity(rpc);
    c->ns = str_or(c->env->namespace, NS_DEFAULT);
    c->place = endpoint_place;
    c->gate = gate_ref(server_gate(c->s));
    rpc_call_on_cancel(rpc, given_up, c);
    endpoint_place(c, rpc, req);
}
