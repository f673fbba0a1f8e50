/* SPDX-License-Identifier: Apache-2.0
 *
 * The question who may make a call: asked once for each, before its method is, and of a node with
 * the snapshot that the method sees. Limits per token belong here as well.
 */
#include "server/call/call_int.h"

#include <string.h>

#include "api/terms.h"
#include "common/mem.h"

/* There are no tokens yet, so everybody may do everything. To be asked: whether the bearer of
 * env->auth_token has the capability of the method there. */
bool
call_may(const struct server *s, const struct rpc_envelope *env, const char *ns)
{
    const struct server_config *cfg = server_cfg(s);

    return cfg->may == NULL || cfg->may(env, str_or(ns, NS_DEFAULT));
}

/* Asks for the namespace that a call names. Where an id names an object, the object's own is asked
 * for, and in a list of all namespaces each row's. */
int
authorize(const struct call *c, struct err *e)
{
    bool named = (c->method->flags & RPC_NS) && !(c->method->flags & RPC_NS_OF_OBJECT);

    if (named && !str_eq(c->ns, NS_ALL) && !call_may(c->s, c->env, c->ns))
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    return 0;
}

int
authorize_server(const struct call *c, struct err *e)
{
    if (!server_cfg(c->s)->verify_servers || !str_eq(c->method->cap, "server") ||
        c->from.kind == PEER_SERVER)
        return 0;
    return err_set(e, -ERR_FORBIDDEN,
                   "%s is for servers: the certificate of %s is that of \"%.100s\", and not of "
                   "server.<region>.nomad",
                   c->method->name, rpc_call_peer(c->rpc), c->from.name);
}

bool
call_is_a_nodes(const struct call *c)
{
    return str_eq(c->method->cap, "client");
}

static bool
secret_equal(const char *a, const char *b)
{
    size_t an = strlen(str_or(a, "")), bn = strlen(str_or(b, ""));
    unsigned diff = an != bn || an == 0;

    /* every byte is looked at, wherever the first difference is */
    for (size_t i = 0; i < an && i < bn; i++)
        diff |= (unsigned char)a[i] ^ (unsigned char)b[i];
    return diff == 0;
}

/* Whoever knows a node's secret speaks for the node, unless another run of an agent registered
 * since: one of the two is of a copy of the machine. */
static int
check_speaker(const struct node *n, const struct rpc_envelope *env, struct err *e)
{
    if (n == NULL)
        return err_set(e, -ERR_NOT_FOUND, "node not found");
    if (!secret_equal(n->secret_id, env->node_secret))
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    if (!str_empty(env->agent_run) && !str_empty(n->agent_run) &&
        !str_eq(env->agent_run, n->agent_run))
        return err_set(e, -ERR_FORBIDDEN,
                       "node \"%s\" was registered by another agent since, with the same id and "
                       "secret: register again",
                       n->id);
    return 0;
}

int
prove_node(const struct call *c, struct state_txn *t, const void *ctx, const struct node **ret,
           struct err *e)
{
    const struct rpc_envelope *env = c->env;

    *ret = NULL;
    if (!call_is_a_nodes(c))
        return 0;
    if (str_empty(env->node_id) || str_empty(env->node_secret))
        return err_set(e, -ERR_FORBIDDEN, "%s is for nodes, which prove who they are",
                       c->method->name);
    if (c->method->id == RPC_NODE_REGISTER) /* decided when the entry is applied */
        return 0;
    struct lean *lean =
        lean_new(ctx, &type_node, &type_node,
                 "ID SecretID Status SchedulingEligibility ModifyIndex AgentRun", "");
    *ret = state_get_lean(t, ctx, STATE_NODES, (struct state_key){env->node_id, NULL, 0}, lean);
    return check_speaker(*ret, env, e);
}
