/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: what the client role answers: statistics, files and logs of allocations. An allocation
 * of another node is asked for at that node (agent/api/other_node.c).
 */
#include <string.h>

#include <errno.h>

#include "agent/api/api.h"
#include "agent/api/other_node.h"
#include "client/client.h"
#include "common/str.h"

enum { CHUNK = 32 << 10 };

/* Errors of the client role: what is wrong with the request is a 4xx. */
static void
client_error(struct request *a, const struct err *e)
{
    reply_refuse(a, err_http_status(e->code), e);
}

/* --- files --- */

static const char *
path_param(struct request *a)
{
    return str_or(http_query(a->req, "path"), "/");
}

static void
ls_done(void *arg, const struct err *e, const struct alloc_files *files)
{
    struct request *a = arg;
    struct buf b = BUF_INIT(64 << 20);

    if (e) {
        client_error(a, e);
        return;
    }
    json_encode_list(&b, &type_alloc_file_info, (const void *const *)files->files.v, files->files.n,
                     a->pretty ? JSON_PRETTY : 0);
    reply_text(a, &b, "application/json");
}

static void
fs_ls(struct request *a)
{
    if (request_reaches_alloc(a))
        client_fs(a->api->client, a->id, path_param(a), false, ls_done, a);
}

static void
stat_done(void *arg, const struct err *e, const struct alloc_files *files)
{
    struct request *a = arg;

    if (e) {
        client_error(a, e);
        return;
    }
    if (files->files.n == 0)
        reply_fail(a, 404, "file not found");
    else
        reply_json(a, &type_alloc_file_info, files->files.v[0]);
}

/* False: answered. */
static bool
has_path(struct request *a)
{
    if (!str_empty(http_query(a->req, "path")))
        return true;
    reply_fail(a, 400, "must provide a file name");
    return false;
}

static void
fs_stat(struct request *a)
{
    if (request_reaches_alloc(a) && has_path(a))
        client_fs(a->api->client, a->id, path_param(a), true, stat_done, a);
}

/* A body pulled from a client_stream. */
static void
stream_end(struct request *a, bool whole)
{
    client_stream_close(a->user);
    a->user = NULL;
    if (whole)
        http_stream_end(a->req);
    else
        http_stream_cut(a->req);
}

static void stream_pull(void *user);

static void
stream_ready(void *arg)
{
    stream_pull(arg);
}

static void
stream_pull(void *user)
{
    struct request *a = user;
    char block[CHUNK];

    while (a->user && http_stream_queued(a->req) < STREAM_LOW_WATER) {
        ssize_t n = client_stream_read(a->user, block, sizeof(block), stream_ready, a);
        if (n == -EAGAIN)
            return;
        if (n <= 0) { /* an error in the middle can only cut the body short */
            stream_end(a, n == 0);
            return;
        }
        http_stream_write(a->req, block, (size_t)n);
        if (n < CHUNK)
            return; /* the next pull comes when this is written */
    }
}

static void
stream_gone(struct request *a)
{
    if (a->user)
        stream_end(a, false);
}

static void
stream_opened(void *arg, const struct err *e, struct client_stream *s)
{
    struct request *a = arg;

    if (e) {
        client_error(a, e);
        return;
    }
    a->user = s;
    a->gone = stream_gone;
    http_stream_start(a->req, 200, a->stream_type, stream_pull);
    if (http_closed(a->req))
        stream_end(a, false);
}

static bool
routes_client_origin(struct request *a, struct client_stream_request *r)
{
    const char *o = str_or(http_query(a->req, "origin"), "start");

    r->from_end = strcmp(o, "end") == 0;
    if (!r->from_end && strcmp(o, "start") != 0) {
        reply_fail(a, 400, "origin must be start or end");
        return false;
    }
    if (!param_int(a, "offset", &r->offset) || !param_int(a, "limit", &r->limit))
        return false;
    if (r->offset < 0) {
        reply_fail(a, 400, "offset must not be negative");
        return false;
    }
    if (r->limit < 0)
        r->limit = 0; /* no limit */
    return true;
}

static void
open_stream(struct request *a, const struct client_stream_request *r)
{
    bool logs = r->kind == CLIENT_STREAM_LOGS;
    a->stream_type = !logs      ? "text/plain; charset=utf-8"
                     : r->plain ? "text/plain"
                                : "application/json";
    client_stream_open(a->api->client, r, stream_opened, a);
}

static void
fs_cat(struct request *a)
{
    struct client_stream_request r = {.kind = CLIENT_STREAM_FILE, .alloc_id = a->id};
    if (!request_reaches_alloc(a) || !has_path(a))
        return;
    r.path = path_param(a);
    open_stream(a, &r);
}

static void
fs_readat(struct request *a)
{
    struct client_stream_request r = {.kind = CLIENT_STREAM_FILE, .alloc_id = a->id};
    if (!request_reaches_alloc(a) || !has_path(a) || !routes_client_origin(a, &r))
        return;
    r.path = path_param(a);
    if (!http_query(a->req, "offset"))
        reply_fail(a, 400, "must provide offset");
    else
        open_stream(a, &r);
}

static void
fs_stream(struct request *a)
{
    struct client_stream_request r = {
        .kind = CLIENT_STREAM_FRAMES, .alloc_id = a->id, .follow = true};
    if (!request_reaches_alloc(a) || !has_path(a) || !routes_client_origin(a, &r) ||
        !param_bool(a, "follow", &r.follow))
        return;
    r.path = http_query(a->req, "path");
    open_stream(a, &r);
}

static void
fs_logs(struct request *a)
{
    struct client_stream_request r = {.kind = CLIENT_STREAM_LOGS, .alloc_id = a->id};
    if (!request_reaches_alloc(a) || !routes_client_origin(a, &r) ||
        !param_bool(a, "follow", &r.follow) || !param_bool(a, "plain", &r.plain))
        return;
    r.task = http_query(a->req, "task");
    r.log_type = http_query(a->req, "type");
    if (str_empty(r.task))
        reply_fail(a, 400, "must provide task name");
    else if (!str_eq(r.log_type, "stdout") && !str_eq(r.log_type, "stderr"))
        reply_fail(a, 400, "must provide log type (stdout/stderr)");
    else
        open_stream(a, &r);
}

/* --- operations --- */

static void
plain_done(void *arg, const struct err *e)
{
    struct request *a = arg;
    if (e)
        client_error(a, e);
    else
        reply_json(a, &type_empty, NULL);
}

/* Answers a change of a task like a write, without one. */
static void
task_done(void *arg, const struct err *e)
{
    struct request *a = arg;
    if (e)
        client_error(a, e);
    else
        http_reply(a->req, 200, "application/json", "{\"Index\":0}", strlen("{\"Index\":0}"));
}

static void
alloc_restart(struct request *a)
{
    struct alloc_restart_request *r;
    if (!request_reaches_alloc(a) || !(r = request_body(a, &type_alloc_restart_request, true)))
        return;
    if (r->all_tasks && !str_empty(r->task_name))
        reply_fail(a, 400, "TaskName and AllTasks exclude each other");
    else
        client_alloc_restart(a->api->client, a->id, r->task_name, r->all_tasks, task_done, a);
}

static void
alloc_signal(struct request *a)
{
    struct alloc_signal_request *r;
    if (!request_reaches_alloc(a) || !(r = request_body(a, &type_alloc_signal_request, false)))
        return;
    client_alloc_signal(a->api->client, a->id, r->task, str_or(r->signal, "SIGKILL"), task_done, a);
}

static void
alloc_pause(struct request *a)
{
    struct alloc_pause_request *r;
    if (!request_reaches_alloc(a) || !(r = request_body(a, &type_alloc_pause_request, false)))
        return;
    bool on = str_eq(r->schedule_state, "pause");
    if (!on && !str_eq(r->schedule_state, "run"))
        reply_fail(a, 400, "ScheduleState must be \"pause\" or \"run\"");
    else
        client_alloc_pause(a->api->client, a->id, r->task, on, task_done, a);
}

static void
alloc_gc(struct request *a)
{
    if (request_reaches_alloc(a))
        client_alloc_gc(a->api->client, a->id, plain_done, a);
}

static void
client_gc_route(struct request *a)
{
    if (!a->api->client)
        reply_fail(a, 400, "No local Node and node_id not provided");
    else
        client_gc(a->api->client, plain_done, a);
}

static void
alloc_stats(struct request *a)
{
    struct alloc_resource_usage *u;
    struct err e = ERR_INIT;

    if (!request_reaches_alloc(a))
        return;
    if (client_alloc_stats(a->api->client, a, a->id, http_query(a->req, "task"), &u, &e) < 0)
        client_error(a, &e);
    else
        reply_json(a, &type_alloc_resource_usage, u);
}

/* Answers a map by id. */
static void
alloc_checks(struct request *a)
{
    struct buf b = BUF_INIT(64 << 20);

    if (!request_reaches_alloc(a))
        return;
    const struct check_result_list *l = client_alloc_checks(a->api->client, a->id);
    buf_putc(&b, '{');
    for (size_t i = 0; l != NULL && i < l->n; i++) {
        if (i > 0)
            buf_putc(&b, ',');
        json_put_string(&b, l->v[i]->id, strlen(l->v[i]->id));
        buf_putc(&b, ':');
        json_encode(&b, &type_check_result, l->v[i], 0);
    }
    buf_putc(&b, '}');
    reply_text(a, &b, "application/json");
}

/* True: this node is meant. Otherwise the request is forwarded or answered. */
static bool
own_node(struct request *a, const char *node)
{
    bool far = !request_is_for_our_region(a);
    if (!str_empty(node) &&
        (far || !(a->api->client && str_eq(node, client_node_id(a->api->client)))))
        other_node_ask(a, node);
    else if (far)
        reply_fail(a, 500, "No path to region");
    else if (!a->api->client)
        reply_fail(a, 400, "No local Node and node_id not provided");
    else
        return true;
    return false;
}

static void
host_stats(struct request *a)
{
    const char *node = http_query(a->req, "node_id");

    if (own_node(a, node))
        reply_json(a, &type_host_stats, client_host_stats(a->api->client, a));
}

/* --- dynamic metadata --- */

static void
meta_read(struct request *a)
{
    if (!own_node(a, http_query(a->req, "node_id")))
        return;
    reply_json(a, &type_node_meta_response, client_meta(a->api->client, a));
}

static void
meta_applied(void *arg, const struct err *e)
{
    struct request *a = arg;
    if (e)
        client_error(a, e);
    else if (!a->api->client)
        reply_fail(a, 503, "the client role is stopping");
    else
        reply_json(a, &type_node_meta_response, client_meta(a->api->client, a));
}

static void
meta_apply(struct request *a)
{
    struct node_meta_apply_request *r = request_body(a, &type_node_meta_apply_request, false);
    if (!r)
        return;
    if (own_node(a, str_empty(r->node_id) ? http_query(a->req, "node_id") : r->node_id))
        client_meta_apply(a->api->client, r->meta, meta_applied, a);
}

/* --- the identity of the node --- */

static void
identity_told(void *arg, const struct err *e, const struct node_identity *id)
{
    struct request *a = arg;
    if (e)
        client_error(a, e);
    else
        reply_json(a, &type_node_identity, id);
}

static void
identity_read(struct request *a)
{
    if (own_node(a, http_query(a->req, "node_id")))
        client_identity(a->api->client, false, identity_told, a);
}

static void
identity_renewed(void *arg, const struct err *e, const struct node_identity *id)
{
    static const struct empty none;
    struct request *a = arg;
    (void)id;
    if (e)
        client_error(a, e);
    else
        reply_json(a, &type_empty, &none);
}

static void
identity_renew(struct request *a)
{
    struct node_identity_renew_request *r =
        request_body(a, &type_node_identity_renew_request, false);
    if (r && own_node(a, str_empty(r->node_id) ? http_query(a->req, "node_id") : r->node_id))
        client_identity(a->api->client, true, identity_renewed, a);
}

const struct route routes_client[] = {
    {VERB_GET, "/v1/client/identity", NULL, identity_read, 0, "node:read"},
    {VERB_WRITE, "/v1/client/identity/renew", NULL, identity_renew, 0, "node:write"},
    {VERB_GET, "/v1/client/metadata", NULL, meta_read, 0, "node:read"},
    {VERB_WRITE, "/v1/client/metadata", NULL, meta_apply, 0, "node:write"},
    {VERB_ANY, "/v1/client/fs/ls/", "", fs_ls, 0, "read-fs"},
    {VERB_ANY, "/v1/client/fs/stat/", "", fs_stat, 0, "read-fs"},
    {VERB_ANY | VERB_LONG, "/v1/client/fs/cat/", "", fs_cat, 0, "read-fs"},
    {VERB_ANY | VERB_LONG, "/v1/client/fs/readat/", "", fs_readat, 0, "read-fs"},
    {VERB_ANY | VERB_LONG, "/v1/client/fs/stream/", "", fs_stream, 0, "read-fs"},
    {VERB_ANY | VERB_LONG, "/v1/client/fs/logs/", "", fs_logs, 0, "read-logs|read-fs"},
    {VERB_ANY, "/v1/client/stats", NULL, host_stats, 0, "node:read"},
    {VERB_ANY | VERB_UNSAFE | VERB_HERE, "/v1/client/gc", NULL, client_gc_route, 0, "node:write"},
    {VERB_GET | VERB_UNSAFE | VERB_SESSION, "/v1/client/allocation/", "/exec", alloc_exec, 0,
     "alloc-exec"},
    {VERB_ANY, "/v1/client/allocation/", "/stats", alloc_stats, 0, "read-job"},
    {VERB_GET, "/v1/client/allocation/", "/checks", alloc_checks, 0, "read-job"},
    {VERB_GET, "/v1/allocation/", "/checks", alloc_checks, 0, "read-job"},
    {VERB_ANY | VERB_UNSAFE, "/v1/client/allocation/", "/restart", alloc_restart, 0,
     "alloc-lifecycle"},
    {VERB_ANY | VERB_UNSAFE, "/v1/client/allocation/", "/gc", alloc_gc, 0,
     "submit-job|gc-allocation"},
    {VERB_WRITE, "/v1/client/allocation/", "/signal", alloc_signal, 0, "alloc-lifecycle"},
    {VERB_WRITE, "/v1/client/allocation/", "/pause", alloc_pause, 0, "submit-job|pause-allocation"},
    ROUTES_END,
};
