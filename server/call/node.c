/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that the client role of a node answers: passed on over the way to the node (ways.h), which
 * may be by the leader. They stream: once the node has answered, their bytes go to and fro, and the
 * machine of calls has nothing more to do with them.
 */
#include <utlist.h>

#include "common/mem.h"
#include "net/limits.h"
#include "net/splice.h"
#include "server/call/call_int.h"
#include "server/call/ways.h"

static void
node_opened(void *arg, const struct err *e, const void *resp)
{
    struct relay *r = arg;
    struct call *c = TAKE(r->call);

    if (c == NULL)
        return;
    if (e != NULL)
        call_fail(c, e);
    else
        rpc_reply(call_leave(c), resp);
}

static void
node_ended(void *arg)
{
    struct relay *r = arg;

    if (r->way != NULL) {
        DL_DELETE(r->way->reads, r);
        r->way->n_reads--;
    }
    talloc_free(r);
}

/* Gives up a call whose stream has ended with it, and takes the way to the node along. */
void
node_give_up(struct call *c)
{
    c->relay->call = NULL;
    call_failf(c, -ERR_CANCELED, "canceled");
}

static void
no_way(struct call *c, const char *id)
{
    auto_mem void *ctx = mem_ctx("node");
    struct err e = ERR_INIT;
    struct state_txn *t = server_read_begin(c->s, ctx);

    if (*id != '\0' && state_node(t, ctx, id) != NULL)
        err_set(&e, -ERR_NOT_FOUND, "No path to node");
    else
        err_set(&e, -ERR_NOT_FOUND, "Unknown node \"%.64s\"", id);
    state_read_end(t);
    call_fail(c, &e);
}

void
node_start(struct call *c)
{
    const struct client_http_request *req = c->req;
    const char *id = str_or(req->node_id, "");
    struct way *w = way_find(c->s, id);
    struct rpc_envelope env = *c->env;
    struct err e = ERR_INIT;
    /* a node proves itself to the leader, over the server that it is connected to; the first hop
     * may come from another region */
    struct rpc_link *link = w != NULL ? w->link : env.hops <= 1 ? forward_link(c->s) : NULL;

    if (link == NULL) {
        no_way(c, id);
        return;
    }
    if (req->long_ && w != NULL && w->n_reads >= RPC_LONG_STREAMS_MAX) {
        err_set(&e, -ERR_BUSY, "%d logs and files of node \"%.64s\" are read: close some",
                RPC_LONG_STREAMS_MAX, id);
        call_fail(c, &e);
        return;
    }
    struct relay *r = c->relay = mem_new(NULL, struct relay);
    r->call = c;
    if (req->long_ && w != NULL) {
        r->way = w;
        w->n_reads++;
        DL_APPEND(w->reads, r);
    }
    env.hops++;
    struct rpc_request q = {c->method->id, req, &env, 0};
    call_enter(c, CALL_AT_NODE);
    splice(rpc_call_stream(c->rpc, NULL), rpc_link_open(link, &q, node_opened, r), node_ended, r);
}
