/* SPDX-License-Identifier: Apache-2.0
 *
 * Client.*: what the client role of a node answers, asked over the connection that the node made. Any
 * server passes it on; the way to a node is the connection over which it last proved itself.
 */
#include <string.h>
#include <utlist.h>

#include "common/hash.h"

#include "common/mem.h"
#include "net/limits.h"
#include "net/splice.h"
#include "server/rpc/endpoint_int.h"

/* --- ways --- */

struct way { /* of the link's memory, and gone with it */
    struct ways *ways;
    struct rpc_link *link;
    char *node_id;
    struct relay *reads; /* those that last as long as their reader likes, */
    unsigned n_reads;    /* of which there are so many */
    UT_hash_handle hh;
};

struct relay {
    struct rpc_call *call; /* NULL: answered */
    struct way *way;       /* among whose reads it is; NULL: of none */
    struct relay *prev, *next;
};

struct ways {
    struct way *by_node;
};

struct ways *
ways_new(const void *ctx)
{
    return mem_new(ctx, struct ways);
}

static struct way *
way_find(struct server *s, const char *node_id)
{
    struct way *w = NULL;
    HASH_FIND_STR(server_ways(s)->by_node, node_id, w);
    return w;
}

static int
way_gone(struct way *w)
{
    struct relay *r;

    DL_FOREACH(w->reads, r)
        r->way = NULL;
    HASH_DEL(w->ways->by_node, w);
    return 0;
}

void
way_note(struct server *s, struct rpc_call *call, const char *node_id)
{
    struct rpc_link *link = rpc_call_link(call);
    struct way *w = way_find(s, node_id);

    if (link == NULL || (w != NULL && w->link == link))
        return;
    talloc_free(w);
    w = mem_new(rpc_link_ctx(link), struct way);
    w->ways = server_ways(s);
    w->link = link;
    w->node_id = mem_strdup(w, node_id);
    HASH_ADD_KEYPTR(hh, w->ways->by_node, w->node_id, strlen(w->node_id), w);
    talloc_set_destructor(w, way_gone);
}

/* --- passing on --- */

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
    /* a node proves itself to the leader, over the server that it is connected to */
    struct rpc_link *link = w != NULL ? w->link : env.hops == 0 ? forward_link(s) : NULL;

    if (link == NULL) {
        auto_mem void *ctx = mem_ctx("node");
        struct state_txn *t = state_read_begin(server_state(s), ctx);
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
