/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of routes, and which handler a request is for.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/api/api.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"

static const struct route *const tables[] = {
    routes_schema, routes_object, routes_acl,   routes_service, routes_deployment, routes_job,
    routes_node,   routes_alloc,  routes_agent, routes_client,  routes_vars,       routes_stream,
    routes_volume, routes_backup, routes_web,   routes_servers,
#ifdef FAULT_INJECTION
    routes_test,
#endif
};

static unsigned
verb_of(enum http_method m)
{
    switch (m) {
    case METHOD_GET:
    case METHOD_HEAD: return VERB_GET;
    case METHOD_PUT: return VERB_PUT;
    case METHOD_POST: return VERB_POST;
    case METHOD_DELETE: return VERB_DELETE;
    default: return 0;
    }
}

/* For what no server is asked: those refuse themselves what is meant for another region. */
static bool
region_ours(struct request *a)
{
    if (str_eq(a->env.region, a->api->region))
        return true;
    reply_fail(a, 500, "No path to region");
    return false;
}

static void
not_found(struct request *a)
{
    http_fail(a->req, 404, "there is no endpoint \"%s\"", a->req->path);
}

/* Doubled slashes are cleaned by a redirect, as Go's mux does; with 307, so that a PUT stays one.
 */
static bool
router_redirect(struct request *a)
{
    const char *t = a->req->target, *authority = strstr(t, "://");
    if (*t != '/' && authority) /* the absolute form (RFC 9112, 3.2.2) */
        t = authority + 3 + strcspn(authority + 3, "/");
    size_t path = strcspn(t, "?"), n = 0;
    char *clean = mem_array(a, char, strlen(t) + 1);
    bool changed = false;

    for (size_t i = 0; t[i]; i++) {
        if (i > 0 && i < path && t[i] == '/' && t[i - 1] == '/') {
            changed = true;
            continue;
        }
        clean[n++] = t[i];
    }
    if (!changed)
        return false;
    http_header_add(a->req, "Location", clean);
    http_reply(a->req, 307, NULL, "", 0);
    return true;
}

/* Finds the longest prefix of an item that fits, which is meant: a node pool may be called
 * "drain". */
static size_t
longest_prefix(const struct request *a)
{
    size_t most = 0;

    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (const struct route *r = tables[t]; r->path; r++)
            if (r->suffix && strlen(r->path) > most && str_prefix(a->req->path, r->path))
                most = strlen(r->path);
    return most;
}

/* The route of the request. Plain ids come last, since they may hold slashes; but "/plan" is no job
 * of that name. */
static const struct route *
router_find(struct request *a, unsigned verb, bool *wrong_method)
{
    size_t prefix = longest_prefix(a);
    bool suffixed = false; /* a path with a suffix of its own is no id */

    for (int plain = 0; plain < 2 && !suffixed; plain++)
        for (size_t t = 0; t < ARRAY_LEN(tables); t++)
            for (const struct route *r = tables[t]; r->path; r++) {
                bool is_plain = r->suffix && !*r->suffix;
                if (is_plain != plain || (r->suffix && strlen(r->path) < prefix) ||
                    !request_fits(a, r->path, r->suffix, &a->id))
                    continue;
                if (r->verbs & verb)
                    return r;
                *wrong_method = true;
                suffixed |= r->suffix && *r->suffix;
            }
    return NULL;
}

static const struct route *
route_of(struct request *probe, enum http_method m, const char *path)
{
    struct http_req *req = mem_new(probe, struct http_req);
    bool wrong_method = false;

    req->path = path;
    probe->req = req;
    return router_find(probe, verb_of(m), &wrong_method);
}

static void
on_close(void *user)
{
    struct request *a = user;

    if (a->call)
        rpc_cancel(a->called, a->call);
    else if (a->gone)
        a->gone(a);
}

/* Goes on behind the first questions to a request. */
static void
router_go_on(struct request *a)
{
    unsigned verb = verb_of(a->req->method);
    bool wrong_method = false;

    if (router_redirect(a) || route_later(a, verb))
        return;
    const struct route *r = router_find(a, verb, &wrong_method);
    if (r != NULL) {
        a->route = r;
        bool changes = verb != VERB_GET || (r->verbs & VERB_UNSAFE);
        if ((!changes || guard_origin(&a->api->guard, a->req)) && request_parse(a) &&
            (!(r->verbs & VERB_HERE) || region_ours(a)))
            request_admit(a);
        return;
    }
    if (wrong_method)
        http_fail(a->req, 405, "Invalid method");
    else
        not_found(a);
}

static struct request *
router_begin(struct api *api, struct http_req *req)
{
    struct request *a = mem_new(req, struct request);

    a->api = api;
    a->req = req;
    a->route_of = route_of;
    req->user = a;
    req->on_close = on_close;
    return a;
}

static void
router_handle(struct api *api, struct http_req *req, bool passed_on)
{
    struct request *a = router_begin(api, req);

    a->passed_on = passed_on;
    if (record_begin(a) && guard_host(&a->api->guard, req))
        router_go_on(a);
}

void
api_handle(void *arg, struct http_req *req)
{
    router_handle(arg, req, false);
}

void
api_handle_passed_on(void *arg, struct http_req *req)
{
    router_handle(arg, req, true);
}

void
api_handle_task(void *arg, struct http_req *req)
{
    struct request *a = router_begin(arg, req);

    if (record_begin(a)) /* no browser comes this way: any Host is good */
        task_admit(a, router_go_on);
}

size_t
api_body_max(void *arg, enum http_method m, const char *path)
{
    (void)arg;
    (void)m;
    bool job = str_prefix(path, "/v1/job") || str_prefix(path, "/v1/validate/");
    return job || str_eq(path, "/v1/operator/snapshot") ? HTTP_BODY_MAX : HTTP_SMALL_BODY_MAX;
}
