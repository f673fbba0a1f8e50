/* SPDX-License-Identifier: Apache-2.0
 *
 * Passing requests on to the node they concern.
 */
#include "agent/api/other_node.h"

#include <string.h>

#include "agent/limits.h"
#include "client/client.h"
#include "common/mem.h"
#include "common/str.h"

/* Says whether a header is of a WebSocket's handshake, of either side. */
static bool
ws_header(const char *name)
{
    return strcmp(name, "connection") == 0 || strcmp(name, "upgrade") == 0 ||
           str_prefix(name, "sec-websocket-");
}

struct passed {
    struct request *ask; /* NULL: the asking client has gone and was answered */
    struct http_client *client;
    struct api *api;
    bool started;
    bool reads; /* counts among those that last as long as their reader likes */
    struct err err; /* why there is no way to the node */
};

static void
other_node_pull(void *user)
{
    struct request *a = user;
    struct passed *f = a->user;
    if (f)
        http_client_read(f->client, true);
}

static void
on_head(void *arg, const struct http_resp *r)
{
    struct passed *f = arg;

    if (!f->ask || f->started)
        return;
    f->started = true;
    http_stream_start(f->ask->req, r->status, http_resp_header(r, "content-type"), other_node_pull);
}

/* A WebSocket is passed on byte by byte. */
static void
tunnel_data(void *user, const void *p, size_t n)
{
    struct request *a = user;
    struct passed *f = a->user;
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
    struct passed *f = arg;
    if (f->ask)
        http_tunnel_read(f->ask->req, true);
}

static bool
on_tunnel(void *arg, const struct http_resp *r)
{
    struct passed *f = arg;

    if (!f->ask)
        return false;
    f->started = true;
    for (size_t i = 0; i < r->n_headers; i++)
        if (ws_header(r->headers[i].k))
            http_header_add(f->ask->req, r->headers[i].k, r->headers[i].v);
    http_tunnel_start(f->ask->req, tunnel_data, other_node_pull);
    return true;
}

static bool
on_body(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct passed *f = arg;

    if (!f->ask)
        return false;
    on_head(f, r); /* of a status that is not 200 */
    http_stream_write(f->ask->req, p, n);
    if (http_stream_queued(f->ask->req) >= STREAM_LOW_WATER)
        http_client_read(f->client, false); /* until pull */
    return true;
}

static void
on_done(void *arg, const struct err *e, const struct http_resp *r)
{
    struct passed *f = arg;
    struct request *a = f->ask;
    struct http_client *c = f->client;

    if (a && f->started) {
        a->user = NULL;
        if (e)
            http_stream_cut(a->req);
        else
            http_stream_end(a->req);
    } else if (a && f->err.code) {
        reply_error(a, &f->err);
    } else if (a && e) {
        reply_fail(a, 500, "%s", e->text);
    } else if (a) {
        http_reply(a->req, r->status, http_resp_header(r, "content-type"), r->body, r->body_len);
    }
    f->api->reading -= f->reads;
    talloc_free(f);
    if (a) /* else on_gone is closing it */
        http_client_close(c);
}

static void
on_gone(struct request *a)
{
    struct passed *f = a->user;

    a->user = NULL;
    f->ask = NULL;
    struct http_client *c = f->client;
    if (f->started)
        http_stream_end(a->req);
    else
        reply_fail(a, 499, "client gone");
    http_client_close(c); /* on_done comes with -ERR_CANCELED */
}

/* Says whether a header goes on beside the request itself: who asks, and a WebSocket's handshake if
 * it is one. */
static bool
other_node_passes(const struct http_req *r, const char *name)
{
    return strcmp(name, "x-nomad-token") == 0 || strcmp(name, "authorization") == 0 ||
           (http_header(r, "sec-websocket-key") && ws_header(name));
}

static size_t
pass_headers(struct request *a, struct http_pair **ret)
{
    const struct http_req *r = a->req;
    struct http_pair *v = mem_array(a, struct http_pair, r->n_headers);
    size_t n = 0;

    for (size_t i = 0; i < r->n_headers; i++)
        if (other_node_passes(r, r->headers[i].k))
            v[n++] = r->headers[i];
    *ret = v;
    return n;
}

static void
other_node_opened(void *arg, const struct err *e, const void *resp)
{
    struct passed *f = arg;

    (void)resp;
    if (e)
        f->err = *e;
}

static struct http_client *
connect_node(struct passed *f, const char *node_id)
{
    struct request *a = f->ask;
    struct client_http_request r = {.node_id = node_id, .peer = a->req->peer, .long_ = f->reads};
    struct rpc_envelope env = {.region = a->env.region, .auth_token = a->env.auth_token};
    struct rpc_request q = {RPC_CLIENT_HTTP, &r, &env, API_CALL_MS};

    return http_client_over(
        a->api->loop, rpc_link_open(rpc_client_link(a->api->servers), &q, other_node_opened, f));
}

void
other_node_ask(struct request *a, const char *node_id)
{
    struct http_pair *headers;

    if (a->passed_on || !a->api->servers) {
        reply_fail(a, 404, "Unknown node \"%s\"", node_id);
        return;
    }
    bool reads = (a->route->verbs & VERB_LONG) != 0;
    if (reads && !a->api->server && a->api->reading >= RPC_LONG_STREAMS_MAX) {
        reply_fail(a, 429,
                   "%d logs and files are read through this agent: close some, or ask another",
                   RPC_LONG_STREAMS_MAX);
        return;
    }
    struct passed *f = mem_new(NULL, struct passed);
    f->ask = a;
    f->reads = reads;
    a->api->reading += reads;
    f->api = a->api;
    f->client = connect_node(f, node_id);
    a->user = f;
    a->gone = on_gone;
    size_t n_headers = pass_headers(a, &headers);
    struct http_ask ask = {
        .method = http_method_name(a->req->method),
        .target = a->req->target,
        .headers = headers,
        .n_headers = n_headers,
        .body = a->req->body,
        .body_len = a->req->body_len,
        .on_head = on_head,
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

/* This node is the one, and has it no more. */
static void
ask_gone(struct request *a)
{
    if (a->api->client)
        reply_fail(a, 404, "Unknown allocation \"%s\": %s", a->id,
                   client_gone_words(a->api->client, a, a->id));
    else
        reply_fail(a, 404, "Unknown allocation \"%s\"", a->id);
}

static void
alloc_done(struct request *a, const void *resp)
{
    const struct alloc_place *p = ((const struct alloc_place_response *)resp)->place;
    const struct client *c = a->api->client;

    /* a node that does not know its own allocation says so */
    if (!p)
        reply_fail(a, 404, "Unknown allocation \"%s\"", a->id);
    else if (c && str_eq(p->node_id, client_node_id(c)))
        ask_gone(a);
    else
        other_node_ask(a, mem_strdup(a, p->node_id));
}

static void
other_node_alloc(struct request *a)
{
    if (a->passed_on) {
        ask_gone(a);
        return;
    }
    call_server(a, RPC_ALLOC_GET_PLACE, request_by_id(a), alloc_done);
}

bool
request_reaches_alloc(struct request *a)
{
    if (str_empty(a->id)) {
        reply_fail(a, 400, "must provide a valid alloc id");
        return false;
    }
    if (a->api->client && request_is_for_our_region(a) && client_has_alloc(a->api->client, a->id))
        return request_may(a, client_alloc_namespace(a->api->client, a->id));
    other_node_alloc(a);
    return false;
}
