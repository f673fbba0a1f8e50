/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of endpoints, and what is done for each call before its method (see endpoint_int.h).
 */
#include "server/rpc/endpoint_int.h"

#include "api/terms.h"
#include "common/mem.h"

#define SERVICE(id, name) {id, endpoint_call},
static const struct rpc_service services[] = {RPC_METHODS(SERVICE, SERVICE, SERVICE)};

#define READ(id, name) [id] = {.read = &read_##name},
#define WRITE(id, name) [id] = {.write = &write_##name},
#define CALL(id, name) [id] = {.call = call_##name},
static const struct {
    const struct read_row *read;
    const struct write_row *write;
    rpc_handler *call;
} methods[] = {RPC_METHODS(READ, WRITE, CALL)};

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

/* Who is to answer: this server, or (`there`) the leader. */
static int
check_place(struct server *s, const struct rpc_method *m, const struct rpc_envelope *env, bool *there,
            struct err *e)
{
    bool anybody = (m->flags & (RPC_LOCAL | RPC_CLIENT)) || ((m->flags & RPC_READ) && env->stale);

    *there = !anybody && !server_is_leader(s);
    if (!anybody && forward_too_late(s, env))
        return err_set(e, -ERR_NO_LEADER, "No cluster leader");
    if (env->hops > SERVER_HOPS_MAX)
        return err_set(e, -ERR_INVALID, "passed on by more than %d servers", SERVER_HOPS_MAX);
    if (*there && env->hops == SERVER_HOPS_MAX)
        return err_set(e, -ERR_NO_LEADER, "No cluster leader");
    return 0;
}

/* Where authorisation will ask whether the bearer of `token` has the capability `cap`, in a namespace unless
 * that is NULL. There are no tokens yet: everybody may do everything. */
static int
check_allowed(const char *token, const char *cap, const char *ns, struct err *e)
{
    (void)token;
    (void)cap;
    (void)ns;
    (void)e;
    return 0;
}

void
endpoint_call(void *arg, struct rpc_call *call, const void *req)
{
    const struct rpc_method *m = rpc_call_method(call);
    const struct rpc_envelope *env = rpc_call_envelope(call);
    const char *ns = m->flags & RPC_NS ? str_or(env->namespace, NS_DEFAULT) : NULL;
    struct err e = ERR_INIT;
    const char *ours = server_cfg(arg)->region;
    bool there;

    if (!str_eq(str_or(env->region, ours), ours))
        region_start(arg, call, req);
    else if (check_place(arg, m, env, &there, &e) < 0 || check_allowed(env->auth_token, m->cap, ns, &e) < 0)
        rpc_fail(call, &e);
    else if (there)
        forward_start(arg, call, req);
    else if (methods[m->id].read != NULL)
        read_start(arg, call, req, methods[m->id].read);
    else if (methods[m->id].write != NULL)
        write_start(arg, call, req, methods[m->id].write);
    else
        methods[m->id].call(arg, call, req);
}
