/* SPDX-License-Identifier: Apache-2.0
 *
 * Proofs of who calls that are no tokens: certificates of servers and nodes, and what a node knows
 * of itself, which is checked with the snapshot that the method sees.
 */
#include "server/call/call_int.h"

#include <string.h>
#include <strings.h>

#include "api/terms.h"
#include "common/mem.h"

bool
call_is_a_nodes(const struct call *c)
{
    return str_eq(c->method->cap, "client");
}

/* --- certificates --- */

static int
refuse_peer(const struct call *c, const char *whose, const char *name, struct err *e)
{
    return err_set(e, -ERR_FORBIDDEN,
                   "%s is for %s: the certificate of %s is that of \"%.100s\", and not of %s",
                   c->method->name, whose, rpc_call_peer(c->rpc), c->from.name, name);
}

/* `names`: "a,b", of its certificate; NULL: nobody asks. */
static int
check_name(const char *names, const char *node, struct err *e)
{
    size_t n = strlen(str_or(node, ""));

    for (const char *at = names; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (n > 0 && strncasecmp(at, node, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return 0;
    }
    return names == NULL ? 0
                         : err_set(e, -ERR_FORBIDDEN,
                                   "node \"%.100s\": its certificate is for \"%.200s\", and must "
                                   "bear the node's name (tls.bind_node_name): make one with "
                                   "-additional-dnsname",
                                   str_or(node, ""), names);
}

/* Another server has asked already. */
int
authorize_peer(struct call *c, struct err *e)
{
    const struct server_config *cfg = server_cfg(c->s);
    const struct node_register_request *r = c->req;
    bool node = call_is_a_nodes(c);

    c->node_names = NULL;
    if (c->from.kind == PEER_SERVER) {
        c->node_names = c->env->node_names;
        return 0;
    }
    if (!cfg->verify_servers)
        return 0;
    if (str_eq(c->method->cap, "server"))
        return refuse_peer(c, "servers", "server.<region>.nomad", e);
    if (!node)
        return 0;
    if (c->from.kind != PEER_NODE || !str_eq(c->from.region, cfg->region))
        return refuse_peer(c, "clients of this region", "client.<region>.nomad", e);
    if (!cfg->bind_node_name)
        return 0;
    c->node_names = mem_strdup(c, str_or(c->from.names, ""));
    return c->method->id == RPC_NODE_REGISTER && r->node != NULL
               ? check_name(c->node_names, r->node->name, e)
               : 0;
}

/* --- nodes --- */

/* Whoever knows a node's secret speaks for the node, unless another run of an agent registered
 * since: one of the two is of a copy of the machine. */
static int
check_speaker(const struct node *n, const struct call *c, struct err *e)
{
    const struct rpc_envelope *env = c->env;

    if (n == NULL)
        return err_set(e, -ERR_NOT_FOUND, "node not found");
    if (!str_same_secret(n->secret_id, env->node_secret))
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    if (!str_empty(env->agent_run) && !str_empty(n->agent_run) &&
        !str_eq(env->agent_run, n->agent_run))
        return err_set(e, -ERR_FORBIDDEN,
                       "node \"%s\" was registered by another agent since, with the same id and "
                       "secret: register again",
                       n->id);
    return check_name(c->node_names, n->name, e);
}

bool
node_is_proved(const struct call *c)
{
    auto_mem void *tmp = mem_ctx("node");
    struct err e = ERR_INIT;
    struct state_txn *t = server_read_begin(c->s, tmp);
    bool proved = check_speaker(state_node(t, tmp, str_or(c->env->node_id, "")), c, &e) == 0;

    state_read_end(t);
    return proved;
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
                 "ID SecretID Name Status SchedulingEligibility ModifyIndex AgentRun", "");
    *ret = state_get_lean(t, ctx, STATE_NODES, (struct state_key){env->node_id, NULL, 0}, lean);
    return check_speaker(*ret, c, e);
}
