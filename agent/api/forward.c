/* SPDX-License-Identifier: Apache-2.0
 *
 * Passing requests on to the node they concern.
 */
#include "agent/api/forward.h"

#include <string.h>

#include "client/client.h"
#include "common/mem.h"
#include "common/str.h"

/* Passed on once at most: a node that does not know its own allocation says so. */
static const char hop_header[] = "x-paddock-forwarded";

/* Of both sides of a WebSocket's handshake. */
static bool
ws_header(const char *name)
{
    return strcmp(name, "connection") == 0 || strcmp(name, "upgrade") == 0 ||
           str_prefix(name, "sec-websocket-");
}

struct forward {
    struct ask *ask; /* NULL: the asking client has gone and was answered */
    struct http_client *client;
    bool started;
};

static void
pull(void *user)
{
    struct ask *a = user;
    struct forward *f = a->user;
    if (f)
        http_client_read(f->client, true);
}

static void
start_answer(struct forward *f, const struct http_resp *r)
{
    f->started = true;
    http_stream_start(f->ask->req, r->status, http_resp_header(r, "content-type"), pull);
}

/* A WebSocket is passed on byte by byte. */
static void
tunnel_data(void *user, const void *p, size_t n)
{
    struct ask *a = user;
    struct forward *f = a->user;
    struct buf b = BUF_INIT(SIZE_MAX);

    if (!f)
        return;
    buf_put(&b, p, n);
    http_client_write(f->client, &b);
    if (http_client_queued(f->client) >= STREAM_LOW_WATER)
        http_tunnel_read(a->req, false); /* until tunnel_drain */
}

static void
tunnel_drain(void *arg)
{
    struct forward *f = arg;
    if (f->ask)
        http_tunnel_read(f->ask->req, true);
}

static bool
on_tunnel(void *arg, const struct http_resp *r)
{
    struct forward *f = arg;

    if (!f->ask)
        return false;
    f->started = true;
    for (size_t i = 0; i < r->n_headers; i++)
        if (ws_header(r->headers[i].k))
            http_header_add(f->ask->req, r->headers[i].k, r->headers[i].v);
    http_tunnel_start(f->ask->req, tunnel_data, pull);
    return true;
}

static bool
on_body(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct forward *f = arg;

    if (!f->ask)
        return false;
    if (!f->started)
        start_answer(f, r);
    http_stream_write(f->ask->req, p, n);
    if (http_stream_queued(f->ask->req) >= STREAM_LOW_WATER)
        http_client_read(f->client, false); /* until pull */
    return true;
}

static void
on_done(void *arg, const struct err *e, const struct http_resp *r)
{
    struct forward *f = arg;
    struct ask *a = f->ask;
    struct http_client *c = f->client;

    if (a && f->started) {
        a->user = NULL;
        if (e)
            http_stream_cut(a->req);
        else
            http_stream_end(a->req);
    } else if (a && e) {
        ask_fail(a, 500, "%s", e->text);
    } else if (a) {
        http_reply(a->req, r->status, http_resp_header(r, "content-type"), r->body, r->body_len);
    }
    talloc_free(f);
    if (a) /* else on_gone is closing it */
        http_client_close(c);
}

static void
on_gone(struct ask *a)
{
    struct forward *f = a->user;

    a->user = NULL;
    f->ask = NULL;
    struct http_client *c = f->client;
    if (f->started)
        http_stream_end(a->req);
    else
        ask_fail(a, 499, "client gone");
    http_client_close(c); /* on_done comes with -ERR_CANCELED */
}

/* What goes on beside the request itself: the headers of a WebSocket's handshake, if it is one. */
static size_t
pass_headers(struct ask *a, struct http_pair **ret)
{
    const struct http_req *r = a->req;
    struct http_pair *v = mem_array(a, struct http_pair, r->n_headers + 1);
    size_t n = 0;

    v[n++] = (struct http_pair){hop_header, "1"};
    for (size_t i = 0; i < r->n_headers; i++)
        if (http_header(r, "sec-websocket-key") && ws_header(r->headers[i].k))
            v[n++] = r->headers[i];
    *ret = v;
    return n;
}

static void
pass_on(struct ask *a, const char *addr)
{
    struct err e = ERR_INIT;
    struct forward *f = mem_new(NULL, struct forward);
    struct http_pair *headers;
    size_t n_headers = pass_headers(a, &headers);

    f->ask = a;
    f->client = http_client_new(a->api->loop, addr, &e);
    if (!f->client) {
        talloc_free(f);
        ask_fail(a, 404, "No path to node");
        return;
    }
    a->user = f;
    a->gone = on_gone;
    struct http_ask ask = {
        .method = http_method_name(a->req->method),
        .target = a->req->target,
        .headers = headers,
        .n_headers = n_headers,
        .body = a->req->body,
        .body_len = a->req->body_len,
        .on_body = on_body,
        .on_tunnel = on_tunnel,
        .on_drain = tunnel_drain,
        .done = on_done,
        .arg = f,
    };
    http_send(f->client, &ask);
    if (http_closed(a->req))
        on_gone(a);
}

static void
node_done(struct ask *a, const void *resp)
{
    const struct node_response *r = resp;

    if (!r->node)
        ask_fail(a, 404, "Unknown node \"%s\"", (const char *)a->user);
    else if (str_empty(r->node->http_addr))
        ask_fail(a, 404, "No path to node");
    else if (a->api->client && str_eq(r->node->id, client_node_id(a->api->client)))
        ask_fail(a, 404, "Unknown allocation \"%s\"", str_or(a->id, ""));
    else
        pass_on(a, r->node->http_addr);
}

void
forward_node(struct ask *a, const char *node_id)
{
    struct id_request *r = mem_new(a, struct id_request);

    if (http_header(a->req, hop_header)) {
        ask_fail(a, 404, "Unknown node \"%s\"", node_id);
        return;
    }
    a->user = mem_strdup(a, node_id);
    r->id = node_id;
    ask_call(a, RPC_NODE_GET_NODE, r, node_done);
}

static void
alloc_done(struct ask *a, const void *resp)
{
    const struct alloc_response *r = resp;

    if (!r->alloc)
        ask_fail(a, 404, "Unknown allocation \"%s\"", a->id);
    else
        forward_node(a, mem_strdup(a, r->alloc->node_id));
}

void
forward_alloc(struct ask *a)
{
    if (http_header(a->req, hop_header)) {
        ask_fail(a, 404, "Unknown allocation \"%s\"", a->id);
        return;
    }
    ask_call(a, RPC_ALLOC_GET_ALLOC, ask_by_id(a), alloc_done);
}
