/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers use of a request: its parameters, its body, the call that answers it.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/api/api.h"
#include "agent/limits.h"
#include "api/terms.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/random.h"
#include "common/str.h"

enum { WAIT_DEFAULT_S = 300 };

bool
request_fits(const struct request *a, const char *path, const char *suffix, const char **id)
{
    const char *asked = a->req->path;

    if (!suffix)
        return strcmp(asked, path) == 0;
    if (!str_prefix(asked, path) || !str_suffix(asked, suffix))
        return false;
    size_t pre = strlen(path), suf = strlen(suffix), n = strlen(asked);
    if (n < pre + suf)
        return false;
    *id = mem_strndup(a, asked + pre, n - pre - suf);
    return true;
}

/* --- parameters --- */

bool
param_bool(struct request *a, const char *name, bool *ret)
{
    const char *v = http_query(a->req, name);
    if (!v)
        return true;
    if (num_parse_bool(v, ret) == 0)
        return true;
    reply_fail(a, 400, "Failed to parse value of \"%s\" (\"%s\") as a bool", name, v);
    return false;
}

bool
param_int(struct request *a, const char *name, int64_t *ret)
{
    const char *v = http_query(a->req, name);
    if (str_empty(v))
        return true;
    if (num_parse_i64(v, ret) == 0)
        return true;
    reply_fail(a, 400, "Failed to parse value of \"%s\" (\"%s\") as an integer", name, v);
    return false;
}

static bool
parse_blocking(struct request *a)
{
    const char *v = http_query(a->req, "index");
    int64_t wait = WAIT_DEFAULT_S * NS_PER_S;

    if (!str_empty(v) && num_parse_u64(v, &a->env.min_index) < 0) {
        reply_fail(a, 400, "Invalid index");
        return false;
    }
    v = http_query(a->req, "wait");
    if (!str_empty(v) && (duration_parse(v, &wait) < 0 || wait < 0)) {
        reply_fail(a, 400, "Invalid wait time");
        return false;
    }
    if (wait == 0 || wait > WAIT_DEFAULT_S * NS_PER_S)
        wait = WAIT_DEFAULT_S * NS_PER_S;
    /* waiters that came together do not leave together */
    if (a->env.min_index > 0)
        a->env.wait = wait + (int64_t)(rand_u64() % (uint64_t)(wait / 16 + 1));
    return true;
}

/* X-Nomad-Token, or Authorization with the scheme Bearer (schemes have no case: RFC 9110, 11.1). */
const char *
request_token(const struct http_req *r)
{
    static const char scheme[] = "Bearer ";
    const char *token = http_header(r, "x-nomad-token"), *auth = http_header(r, "authorization");

    if (str_empty(token) && auth && strncasecmp(auth, scheme, strlen(scheme)) == 0)
        return auth + strlen(scheme) + strspn(auth + strlen(scheme), " ");
    return token;
}

bool
request_parse(struct request *a)
{
    struct rpc_envelope *env = &a->env;
    struct list_options *l = &a->list;

    /* an agent's words on itself are the same whoever asks */
    const char *region =
        str_prefix(a->req->path, "/v1/agent/") ? NULL : http_query(a->req, "region");
    env->region = str_or(region, a->api->region);
    env->namespace = str_or(http_query(a->req, "namespace"), NS_DEFAULT);
    env->auth_token = request_token(a->req);
    const char *stale = http_query(a->req, "stale");
    if (stale && !*stale)
        env->stale = true;
    else if (!param_bool(a, "stale", &env->stale))
        return false;
    l->prefix = http_query(a->req, "prefix");
    l->filter = http_query(a->req, "filter");
    l->next_token = http_query(a->req, "next_token");
    if (!param_bool(a, "reverse", &l->reverse) || !param_int(a, "per_page", &l->per_page))
        return false;
    if (l->per_page < 0 || l->per_page > INT32_MAX) {
        reply_fail(a, 400, "Invalid per_page");
        return false;
    }
    const char *pretty = http_query(a->req, "pretty");
    a->pretty = pretty && strcmp(pretty, "0") != 0;
    return parse_blocking(a);
}

/* A body as an object of ctx; any thread. */
static int
decode_body(const void *ctx, const struct http_req *r, const struct type *t, void **ret,
            struct err *e)
{
    size_t memory = r->body_len * API_BODY_FACTOR + API_BODY_EXTRA;
    struct budget b = {.left = memory < API_BODY_MEMORY_MAX ? memory : API_BODY_MEMORY_MAX};
    void *obj = NULL;

    if (json_decode(ctx, t, SLICE(r->body, r->body_len), &b, &obj, e) < 0)
        return e->code;
    if (!obj)
        obj = type_new(ctx, t); /* "null" */
    *ret = obj;
    /* a member without effect yet is judged by the server, on the canonical job */
    return codec_check(t, obj, e);
}

void *
request_body(struct request *a, const struct type *t, bool optional)
{
    struct err e = ERR_INIT;
    void *obj = NULL;

    if (a->req->body_len == 0 && optional)
        return type_new(a, t);
    if (a->req->body_len == 0)
        reply_fail(a, 400, "Request body is empty");
    else if (decode_body(a, a->req, t, &obj, &e) < 0)
        reply_fail(a, 400, "%s", e.text);
    else
        return obj;
    return NULL;
}

/* The work on a large body that is a worker's: decoding and freeing it, and encoding the call of
 * it. */
struct large_body {
    struct request *a;
    const struct type *t;
    request_body_fn *then;
    void *ctx; /* of the body: `a` has it, or a worker */
    void *obj;
    struct err err;
    struct rpc_request call;
    struct rpc_envelope env;
    struct buf encoded;
};

static void
large_work(void *arg)
{
    struct large_body *l = arg;
    (void)decode_body(l->ctx, l->a->req, l->t, &l->obj, &l->err);
}

static void
large_done(void *arg)
{
    struct large_body *l = arg;
    talloc_reparent(NULL, l->a, l->ctx);
    if (l->err.code != 0)
        reply_fail(l->a, 400, "%s", l->err.text);
    else
        l->then(l->a, l->obj);
}

void
request_large_body(struct request *a, const struct type *t, request_body_fn *then)
{
    if (a->req->body_len < API_BODY_LARGE) {
        void *obj = request_body(a, t, false);
        if (obj != NULL)
            then(a, obj);
        return;
    }
    struct large_body *l = a->large = mem_new(a, struct large_body);
    *l = (struct large_body){.a = a, .t = t, .then = then, .ctx = mem_ctx("body"), .err = ERR_INIT};
    loop_work(a->api->loop, large_work, large_done, l);
}

/* --- calls --- */

struct id_request *
request_by_id(struct request *a)
{
    struct id_request *r = &a->by_id;
    r->id = a->id;
    return r;
}

static void
call_done(void *arg, const struct err *e, const void *resp)
{
    struct request *a = arg;

    a->call = 0;
    if (!e)
        a->done(a, resp);
    else if (!a->on_error || !a->on_error(a, e))
        reply_error(a, e);
}

static void
send_call(struct request *a, const struct rpc_request *r)
{
    if (!a->api->servers) {
        reply_fail(a, 500, "No cluster leader");
        return;
    }
    a->called = a->api->servers;
    a->call = rpc_send(a->called, r, call_done, a);
    if (http_closed(a->req))
        rpc_cancel(a->called, a->call);
}

static void
large_encode(void *arg)
{
    struct large_body *l = arg;
    rpc_encode(&l->encoded, l->call.id, l->call.req);
    talloc_free(l->ctx);
}

static void
large_encoded(void *arg)
{
    struct large_body *l = arg;
    struct buf encoded = l->encoded; /* `l` goes with what cannot be sent */
    l->call.req = NULL;
    l->call.encoded = &encoded;
    send_call(l->a, &l->call);
    buf_done(&encoded);
}

void
call_server(struct request *a, enum rpc_id id, const void *req, request_done *done)
{
    struct rpc_envelope env = a->env;
    struct rpc_request r = {id, req, &env, API_CALL_MS + a->env.wait / NS_PER_MS, NULL};
    struct large_body *l = TAKE(a->large);

    if (!(rpc_method_by_id(id)->flags & RPC_NS))
        env.namespace = NULL;
    if (a->api->server != NULL) {
        /* in process: what it takes for granted is not kept by who parks */
        env.namespace = str_eq(env.namespace, NS_DEFAULT) ? NULL : env.namespace;
        env.region = str_eq(env.region, a->api->region) ? NULL : env.region;
    }
    a->done = done;
    a->method = id;
    if (l == NULL) {
        send_call(a, &r);
        return;
    }
    l->call = r;
    l->env = env;
    l->call.env = &l->env;
    talloc_reparent(a, NULL, l->ctx);
    loop_work(a->api->loop, large_encode, large_encoded, l);
}

bool
request_is_for_our_region(const struct request *a)
{
    return str_eq(a->env.region, a->api->region);
}
