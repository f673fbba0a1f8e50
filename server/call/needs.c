/* SPDX-License-Identifier: Apache-2.0
 *
 * The question who may make a call: asked of each where it is answered, before its method is. Its
 * line of api/schema/rpc.schema says what it needs. Limits per token belong here as well.
 */
#include "acl/caps.h"
#include "api/acl/method.h"
#include "api/terms.h"
#include "api/vars/vars.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/call/call_int.h"

/* --- what is needed --- */

static struct acl_need needs[RPC_ID_MAX + 1];

void
authorize_begin(void)
{
    for (size_t i = 0; i < api_methods_n; i++) {
        struct err e = ERR_INIT;
        int rc = acl_need_parse(api_methods[i].cap, &needs[api_methods[i].id], &e);
        ASSERT(rc == 0);
    }
}

static bool
caller_may(const struct call *c, const struct acl_need *need, const char *name)
{
    return acl_allows(c->caller->rights, need, name, NULL);
}

/* Says whether a task looks for services, as every task may in one namespace. */
static bool
is_of_services(const struct call *c)
{
    return c->caller != NULL && c->caller->workload != NULL && !str_eq(c->ns, NS_ALL) &&
           (c->method->id == RPC_SERVICE_LIST || c->method->id == RPC_SERVICE_GET);
}

bool
call_may(const struct call *c, const char *ns)
{
    static const struct acl_need reads = {.kind = ACL_NAMESPACE, .caps = ACL_CAP(NS_READ_JOB)};
    const struct server_config *cfg = server_cfg(c->s);
    const struct acl_need *need = &needs[c->method->id];

    if (cfg->may != NULL && !cfg->may(c->env, str_or(ns, NS_DEFAULT)))
        return false;
    if (need->kind == ACL_OPEN || need->kind == ACL_CLIENT || need->kind == ACL_SERVER)
        return true;
    if (need->kind == ACL_VARIABLE) /* call_may_path() */
        return true;
    if (is_of_services(c))
        return true;
    if (c->caller == NULL) /* a node may read nodes, and nothing of what runs there */
        return false;
    return caller_may(c, need->kind == ACL_NAMESPACE ? need : &reads, str_or(ns, NS_DEFAULT));
}

bool
call_may_name(const struct call *c, const char *name)
{
    const struct acl_need *need = &needs[c->method->id];
    bool named = need->kind == ACL_NODE_POOL || need->kind == ACL_HOST_VOLUME ||
                 (need->kind == ACL_NAMESPACE && !(c->method->flags & RPC_NS));

    return !named || caller_may(c, need, name);
}

/* Says whether a task reads what is its own, whatever policies it has. */
static bool
is_own_variable(const struct call *c, const char *ns, const char *path)
{
    static const uint64_t reads = ACL_CAP(VAR_LIST) | ACL_CAP(VAR_READ);
    const struct workload *w = c->caller->workload;

    return w != NULL && (needs[c->method->id].caps & ~reads) == 0 && str_eq(ns, w->ns) &&
           vars_is_own(path, w->job, w->group, w->task);
}

bool
call_may_path(const struct call *c, const char *ns, const char *path)
{
    ns = str_or(ns, NS_DEFAULT);
    path = str_or(path, "");
    return c->caller != NULL && (acl_allows(c->caller->rights, &needs[c->method->id], ns, path) ||
                                 is_own_variable(c, ns, path));
}

/* Asks for the variable that a request names; of a list each row is asked for. */
static bool
may_path(const struct call *c)
{
    const char *const *path = type_member(c->method->req, c->req, "Path");

    return path == NULL || call_may_path(c, c->ns, *path);
}

/* Asks for each object that the request names; a list names none, and is asked by row. */
static bool
may_names(const struct call *c)
{
    const struct type *t = c->method->req;
    const char *const *id = type_member(t, c->req, "ID");
    const char *const *pool = type_member(t, c->req, "Pool");
    const struct str_list *names = type_member(t, c->req, "Names");
    const struct field *f = t->n_fields > 0 ? &t->fields[0] : NULL;
    static const struct acl_need pool_read = {.kind = ACL_NODE_POOL, .caps = ACL_CAP(POOL_READ)};

    if (id != NULL)
        return call_may_name(c, str_or(*id, ""));
    if (pool != NULL && !str_empty(*pool))
        return caller_may(c, &pool_read, *pool);
    for (size_t i = 0; names != NULL && i < names->n; i++)
        if (!call_may_name(c, names->v[i]))
            return false;
    if (f == NULL || f->type != FT_STRUCT || f->shape != FS_LIST)
        return true;
    const struct object_list *l = (const void *)((const char *)c->req + f->offset);
    for (size_t i = 0; i < l->n; i++) {
        const char *const *name = type_member(f->sub, l->v[i], "Name");
        if (name != NULL && !call_may_name(c, str_or(*name, "")))
            return false;
    }
    return true;
}

/* --- what a request asks for beside its line --- */

static bool
may_deregister(const struct call *c)
{
    static const struct acl_need kept = {.kind = ACL_NAMESPACE,
                                         .caps = ACL_CAP(NS_SUBMIT_JOB) | ACL_CAP(NS_PURGE_JOB)};
    const struct job_deregister_request *req = c->req;

    return !req->purge || caller_may(c, &kept, c->ns);
}

static bool
may_override(const struct call *c)
{
    static const struct acl_need override = {.kind = ACL_NAMESPACE,
                                             .caps = ACL_CAP(NS_SENTINEL_OVERRIDE)};
    const struct job_register_request *req = c->req;

    return !req->policy_override || caller_may(c, &override, c->ns);
}

static bool
may_register(const struct call *c)
{
    static const struct acl_need reads = {.kind = ACL_HOST_VOLUME,
                                          .caps = ACL_CAP(VOLUME_MOUNT_READONLY) |
                                                  ACL_CAP(VOLUME_MOUNT_READWRITE)},
                                 writes = {.kind = ACL_HOST_VOLUME,
                                           .caps = ACL_CAP(VOLUME_MOUNT_READWRITE)};
    const struct job_register_request *req = c->req;

    if (!may_override(c))
        return false;
    for (size_t g = 0; req->job != NULL && g < req->job->task_groups.n; g++)
        for (size_t i = 0; i < req->job->task_groups.v[g]->volumes.n; i++) {
            const struct volume_request *v = req->job->task_groups.v[g]->volumes.v[i].v;
            if (v != NULL && str_eq(v->type, "host") &&
                !caller_may(c, v->read_only ? &reads : &writes, str_or(v->source, "")))
                return false;
        }
    return true;
}

/* A server that failed may be forgotten by agent:write, as it leaves. */
static bool
may_remove_peer(const struct call *c)
{
    const struct raft_peer_request *req = c->req;

    return !str_empty(req->name) || acl_is_management(c->caller->rights);
}

static bool
may_apply(const struct call *c)
{
    static const struct acl_need write = {.kind = ACL_VARIABLE, .caps = ACL_CAP(VAR_WRITE)},
                                 destroy = {.kind = ACL_VARIABLE,
                                            .caps = ACL_CAP(VAR_DESTROY)};
    const struct variable_apply_request *req = c->req;

    return acl_allows(c->caller->rights, str_eq(req->op, VAR_DELETE) ? &destroy : &write, c->ns,
                      str_or(req->path, ""));
}

static const struct {
    enum rpc_id id;
    bool (*may)(const struct call *c);
} more[] = {
    {RPC_JOB_DEREGISTER, may_deregister}, {RPC_JOB_REGISTER, may_register},
    {RPC_JOB_PLAN, may_register},         {RPC_OPERATOR_REMOVE_PEER, may_remove_peer},
    {RPC_VARIABLES_APPLY, may_apply},
};

static bool
may_more(const struct call *c)
{
    for (size_t i = 0; i < ARRAY_LEN(more); i++)
        if (more[i].id == c->method->id && !more[i].may(c))
            return false;
    return true;
}

/* --- the question --- */

/* Says whether a node may call it beside its own methods: it may read nodes, and drain itself. */
static bool
is_a_nodes_right(const struct call *c)
{
    const struct acl_need *need = &needs[c->method->id];
    const char *const *node = type_member(c->method->req, c->req, "NodeID");
    bool itself = node != NULL && str_eq(*node, c->env->node_id);

    return need->kind == ACL_NODE && (need->level < ACL_LEVEL_WRITE || itself);
}

/* Asks for the namespace that a call names. Where an id names an object, the object's own is asked
 * for, and in a list of all namespaces each row's. */
static bool
may_call(const struct call *c)
{
    const struct acl_need *need = &needs[c->method->id];
    bool named = (c->method->flags & RPC_NS) && !(c->method->flags & RPC_NS_OF_OBJECT);
    bool any = named && str_eq(c->ns, NS_ALL);

    if (need->kind == ACL_NAMESPACE && !named)
        return may_names(c);
    if (need->kind == ACL_VARIABLE)
        return may_path(c) && may_more(c);
    if (need->kind == ACL_ANY)
        return may_more(c); /* its rows are asked for */
    if (named && !any && !call_may(c, c->ns))
        return false;
    if (need->kind == ACL_NAMESPACE)
        return (!any || caller_may(c, need, NS_ALL)) && may_names(c) && may_more(c);
    if (need->kind == ACL_NODE_POOL)
        return may_names(c);
    return caller_may(c, need, NULL) && may_names(c) && may_more(c);
}

int
authorize(struct call *c, struct err *e)
{
    const struct acl_need *need = &needs[c->method->id];

    if (need->kind == ACL_OPEN || need->kind == ACL_CLIENT || need->kind == ACL_SERVER)
        return 0;
    caller_unref(TAKE(c->caller));
    if (server_cfg(c->s)->acl_enabled && !str_empty(c->env->node_secret) && is_a_nodes_right(c) &&
        node_is_proved(c))
        return 0;
    c->caller = caller_of(c->s, c->env->auth_token, e);
    if (c->caller == NULL)
        return e->code;
    return may_call(c) ? 0 : err_set(e, -ERR_FORBIDDEN, "Permission denied");
}

bool
names_global_token(const struct call *c)
{
    auto_mem void *tmp = mem_ctx("global");
    const struct acl_token_upsert *up = c->method->id == RPC_ACL_UPSERT_TOKENS ? c->req : NULL;
    const struct acl_login_request *login = c->method->id == RPC_ACL_LOGIN ? c->req : NULL;
    const struct object_delete *del = up == NULL && login == NULL ? c->req : NULL;
    struct state_txn *t = server_read_begin(c->s, tmp);
    bool global = false;

    for (size_t i = 0; up != NULL && i < up->acl_tokens.n; i++)
        global |= up->acl_tokens.v[i]->global;
    const struct acl_auth_method *m =
        login != NULL ? state_acl_auth_method(t, tmp, str_or(login->auth_method_name, "")) : NULL;
    global |= m != NULL && str_eq(m->token_locality, ACL_METHOD_GLOBAL);
    for (size_t i = 0; del != NULL && i < del->names.n; i++) {
        const struct acl_token *token = state_acl_token(t, tmp, str_or(del->names.v[i], ""));
        global |= token != NULL && token->global;
    }
    state_read_end(t);
    return global;
}
