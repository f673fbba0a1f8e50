/* SPDX-License-Identifier: Apache-2.0
 *
 * Client.*: what the client role of a node answers, asked over the connection that the node made.
 * Any server passes it on; the way to a node is the connection over which it last proved itself.
 */
#include <utlist.h>

#include "common/mem.h"
#include "net/limits.h"
#include "net/splice.h"
#include "server/call/method.h"
#include "server/rpc/ways.h"

static void
relay_opened(void *arg, const struct err *e, const void *resp)
{
    struct relay *r = arg;
    struct rpc_call *call = TAKE(r->call);

    if (call == NULL)
        return;
    rpc_call_on_cancel(call, NULL, NULL);
    if (e != NULL)
        rpc_fail(call, e);
    else
        rpc_reply(call, resp);
}

/* Its stream has ended with it, and takes the way to the node along. */
static void
relay_cancelled(void *arg)
{
    struct relay *r = arg;
    rpc_failf(TAKE(r->call), -ERR_CANCELED, "canceled");
}

static void
relay_ended(void *arg)
{
    struct relay *r = arg;

    if (r->way != NULL) {
        DL_DELETE(r->way->reads, r);
        r->way->n_reads--;
    }
    talloc_free(r);
}

void
call_client_http(void *arg, struct rpc_call *call, const void *p)
{
    const struct client_http_request *req = p;
    struct server *s = arg;
    const char *id = str_or(req->node_id, "");
    struct way *w = way_find(s, id);
    struct rpc_envelope env = *rpc_call_envelope(call);
    /* a node proves itself to the leader, over the server that it is connected to; the
     * first hop may come from another region */
    struct rpc_link *link = w != NULL ? w->link : env.hops <= 1 ? forward_link(s) : NULL;

    if (link == NULL) {
        auto_mem void *ctx = mem_ctx("node");
        struct state_txn *t = server_read_begin(s, ctx);
        bool known = *id != '\0' && state_node(t, ctx, id) != NULL;
        state_read_end(t);
        if (known)
            rpc_failf(call, -ERR_NOT_FOUND, "No path to node");
        else
            rpc_failf(call, -ERR_NOT_FOUND, "Unknown node \"%.64s\"", id);
        return;
    }
    if (req->long_ && w != NULL && w->n_reads >= RPC_LONG_STREAMS_MAX) {
        rpc_failf(call, -ERR_BUSY, "%d logs and files of node \"%.64s\" are read: close some",
                  RPC_LONG_STREAMS_MAX, id);
        return;
    }
    struct relay *r = mem_new(NULL, struct relay);
    env.hops++;
    r->call = call;
    if (req->long_ && w != NULL) {
        r->way = w;
        w->n_reads++;
        DL_APPEND(w->reads, r);
    }
    rpc_call_on_cancel(call, relay_cancelled, r);
    struct rpc_request q = {RPC_CLIENT_HTTP, req, &env, 0};
    splice(rpc_call_stream(call, NULL), rpc_link_open(link, &q, relay_opened, r), relay_ended, r);
}
