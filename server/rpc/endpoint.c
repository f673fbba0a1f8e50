/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of endpoints, what is done for each call before its method, and what they share (see
 * endpoint_int.h).
 */
#include "server/rpc/endpoint_int.h"

#include <string.h>

#include "api/terms.h"
#include "common/mem.h"

/* --- before a method --- */

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

const struct rpc_service *
endpoint_node_services(size_t *ret_n)
{
    static const struct rpc_service node[] = {{RPC_CLIENT_HTTP, endpoint_call}};
    *ret_n = ARRAY_LEN(node);
    return node;
}

bool
endpoint_too_late(struct server *s, const struct rpc_envelope *env)
{
    char addr[256];
    uint64_t now;
    return env->term != 0 && !(server_leader_at(s, addr, sizeof(addr), &now) && now == env->term &&
                               str_eq(addr, server_cfg(s)->rpc_addr));
}

/* Who is to answer: this server, or another, of another region or (`there`) the leader of ours. */
static int
check_place(struct server *s, const struct rpc_method *m, const struct rpc_envelope *env, bool *there,
            struct err *e)
{
    const char *ours = str_or(server_cfg(s)->region, "global");
    bool anybody = (m->flags & (RPC_LOCAL | RPC_CLIENT)) || ((m->flags & RPC_READ) && env->stale);

    *there = !anybody && !server_is_leader(s);
    if (!anybody && endpoint_too_late(s, env))
        return err_set(e, -ERR_NO_LEADER, "No cluster leader");
    if (env->hops > SERVER_HOPS_MAX)
        return err_set(e, -ERR_INVALID, "passed on by more than %d servers", SERVER_HOPS_MAX);
    if (!str_eq(str_or(env->region, ours), ours))
        return err_set(e, -ERR_NO_REGION, "No path to region");
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
    bool there;

    if (check_place(arg, m, env, &there, &e) < 0 || check_allowed(env->auth_token, m->cap, ns, &e) < 0)
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

/* --- what several need --- */

bool
secret_equal(const char *a, const char *b)
{
    size_t an = strlen(str_or(a, "")), bn = strlen(str_or(b, ""));
    unsigned diff = an != bn || an == 0;

    /* every byte is looked at, wherever the first difference is */
    for (size_t i = 0; i < an && i < bn; i++)
        diff |= (unsigned char)a[i] ^ (unsigned char)b[i];
    return diff == 0;
}

void
endpoint_alloc_row(struct read *r, struct state_txn *t, void *whole, void *row)
{
    const struct allocation *a = whole;
    struct alloc_list_stub *s = row;

    (void)r;
    (void)t;
    s->job_type = a->job ? a->job->type : NULL;
    s->job_version = a->job ? a->job->version : 0;
    s->allocated_resources = NULL;
    if (s->desired_transition == NULL)
        s->desired_transition = mem_new(whole, struct desired_transition);
}

/* --- what older clients of the API read --- */

static struct resources *
totals_new(const void *ctx)
{
    struct resources *r = mem_new(ctx, struct resources);
    r->cpu.set = r->memory_mb.set = true;
    return r;
}

void
endpoint_alloc_totals(void *ctx, struct allocation *a)
{
    const struct allocated_resources *from = a->allocated_resources;
    if (from == NULL)
        return;
    struct resources *all = a->resources = totals_new(ctx);
    struct resources *shared = a->shared_resources = totals_new(ctx);
    a->task_resources = (struct resources_map){0};
    for (size_t i = 0; i < from->tasks.n; i++) {
        const struct allocated_task_resources *t = from->tasks.v[i].v;
        struct resources *r = totals_new(ctx);
        r->cpu.v = t->cpu ? t->cpu->cpu_shares : 0;
        r->memory_mb.v = t->memory ? t->memory->memory_mb : 0;
        r->memory_max_mb = t->memory ? t->memory->memory_max_mb : 0;
        r->networks = t->networks;
        all->cpu.v += r->cpu.v;
        all->memory_mb.v += r->memory_mb.v;
        all->memory_max_mb += r->memory_max_mb;
        map_put(ctx, a->task_resources, from->tasks.v[i].k)->v = r;
    }
    if (from->shared != NULL) {
        shared->disk_mb = all->disk_mb = from->shared->disk_mb;
        shared->networks = all->networks = from->shared->networks;
    }
}
