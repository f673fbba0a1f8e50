/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: commands in running tasks, over a WebSocket. A request that is malformed is answered by
 * its HTTP status; a failure of the rest, as in Nomad, by a close frame: 1011 for what would be a
 * 5xx, 1008 otherwise.
 *
 * A session reads from its task no faster than its peer reads, and from its peer no faster than the
 * task; it ends with the WebSocket, and costs no timer.
 */
#include <errno.h>
#include <string.h>

#include "acl/caps.h"
#include "agent/api/api.h"
#include "agent/limits.h"
#include "api/drivers.h"
#include "client/client.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/http/ws.h"
#include "net/http/ws_frame.h"

enum { HANDSHAKE_VERSION = 1, STDOUT = 1, STDERR = 2 };

struct session { /* a talloc context, gone when the WebSocket is */
    struct api *api;
    struct ws *ws;
    struct client_exec *exec; /* NULL: the handshake is awaited */
    const char *alloc_id, *peer;
    char *token;          /* of who asks; NULL: none */
    const char *accessor; /* ... as the audit log says it */
    bool passed_on;
    struct session *next, **at; /* of the api's */
    struct client_exec_request req;
    bool paused; /* the task's output */
};

/* --- to the client --- */

static void
send_output(struct session *s, const struct exec_output *o)
{
    struct buf b = BUF_INIT(HTTP_STREAM_MAX);
    json_encode(&b, &type_exec_output, o, 0);
    ws_send(s->ws, b.data, b.len);
    buf_done(&b);
    if (ws_queued(s->ws) >= STREAM_LOW_WATER && !s->paused) {
        s->paused = true;
        client_exec_pause(s->exec, true);
    }
}

static void
send_stream(struct session *s, int stream, struct exec_stream *x)
{
    struct exec_output o = {NULL};
    if (stream == STDOUT)
        o.stdout = x;
    else
        o.stderr = x;
    send_output(s, &o);
}

static void
session_free(struct session *s)
{
    if (s->exec)
        client_exec_free(s->exec);
    if (s->at != NULL) {
        *s->at = s->next;
        if (s->next != NULL)
            s->next->at = s->at;
    }
    if (s->api->rights != NULL)
        rights_forget(s->api->rights, s);
    if (s->token != NULL)
        explicit_bzero(s->token, strlen(s->token));
    talloc_free(s);
}

/* The session is over, from our side. */
static void
routes_exec_finish(struct session *s, unsigned code, const char *why)
{
    ws_close(s->ws, code, why);
    session_free(s);
}

/* --- what the task does --- */

static void
on_output(void *arg, int stream, const void *data, size_t n)
{
    send_stream(arg, stream, &(struct exec_stream){.data = {data, n}});
}

static void
on_closed(void *arg, int stream)
{
    send_stream(arg, stream, &(struct exec_stream){.close = true});
}

static void
on_writable(void *arg)
{
    struct session *s = arg;
    ws_read(s->ws, true);
}

static void
on_exited(void *arg, int code, int signal)
{
    struct session *s = arg;
    struct exec_result r = {.exit_code = signal ? 128 + signal : code};
    send_output(s, &(struct exec_output){.exited = true, .result = &r});
    routes_exec_finish(s, WS_NORMAL, "");
}

static void
routes_exec_fail(struct session *s, int status, const char *why)
{
    size_t n = strlen(why);
    if (n > WS_REASON_MAX) { /* in full as what the command says; the frame has its beginning and
                                its cause */
        send_stream(s, STDERR, &(struct exec_stream){.data = {(const uint8_t *)why, n}});
        send_stream(s, STDERR, &(struct exec_stream){.data = {(const uint8_t *)"\n", 1}});
        why = mem_printf(s, "%.*s ... %s", WS_REASON_MAX / 2 - 5, why, why + n - WS_REASON_MAX / 2);
    }
    routes_exec_finish(s, status >= 500 ? WS_INTERNAL : WS_POLICY, why);
}

static void
on_failed(void *arg, const struct err *e)
{
    routes_exec_fail(arg, err_http_status(e->code), str_or(e->text, err_name(e->code)));
}

static const struct client_exec_events task_events = {.output = on_output,
                                                      .closed = on_closed,
                                                      .writable = on_writable,
                                                      .exited = on_exited,
                                                      .failed = on_failed};

/* --- what the client says --- */

static void
exec_begin(struct session *s)
{
    if (!s->api->client) {
        routes_exec_finish(s, WS_INTERNAL, "the client role is stopping");
        return;
    }
    /* for whoever asks later who was in a task; not the arguments, which may hold secrets */
    log_info("http", "command in a task", "alloc_id", s->alloc_id, "task", s->req.task, "program",
             s->req.command.v[0], "peer", s->peer, NULL);
    struct audit_entry line = {.accessor = s->accessor,
                               .namespace = client_alloc_namespace(s->api->client, s->alloc_id),
                               .object = s->alloc_id,
                               .status = 101,
                               .peer = s->peer,
                               .passed_on = s->passed_on,
                               .task = s->req.task,
                               .program = s->req.command.v[0]};
    struct err e = ERR_INIT;
    if (record_command(s->api, &line, &e) < 0) {
        routes_exec_fail(s, err_http_status(e.code), e.text);
        return;
    }
    s->exec = client_exec_open(s->api->client, s->alloc_id, &s->req, &task_events, s);
}

/* A driver that does not isolate needs the right to the node as well. */
static bool
exec_allowed(const struct session *s, const struct acl *acl)
{
    static const struct acl_need exec = {.kind = ACL_NAMESPACE, .caps = ACL_CAP(NS_ALLOC_EXEC)};
    static const struct acl_need node = {.kind = ACL_NAMESPACE,
                                         .caps = ACL_CAP(NS_ALLOC_NODE_EXEC)};
    const struct client *c = s->api->client;
    const char *ns = c != NULL ? client_alloc_namespace(c, s->alloc_id) : NULL;
    const char *driver = c != NULL ? client_task_driver(c, s->alloc_id, s->req.task) : NULL;
    const struct driver_can *can = driver != NULL ? driver_can(driver) : NULL;

    return ns != NULL && acl_allows(acl, &exec, ns, NULL) &&
           ((can != NULL && can->isolation) || acl_allows(acl, &node, ns, NULL));
}

/* At the start, and again whenever rights may have changed. */
static void
exec_answered(void *arg, const struct err *e, const struct acl *acl, const char *accessor)
{
    struct session *s = arg;
    bool refused = e != NULL ? e->code == -ERR_FORBIDDEN : !exec_allowed(s, acl);

    if (s->exec == NULL)
        s->accessor = mem_strdup(s, str_or(accessor, ""));
    if (refused)
        routes_exec_finish(s, WS_POLICY, "Permission denied");
    else if (e != NULL && s->exec == NULL)
        routes_exec_fail(s, err_http_status(e->code), e->text);
    else if (s->exec == NULL)
        exec_begin(s);
}

static void
routes_exec_start(struct session *s)
{
    if (s->api->rights != NULL)
        rights_ask(s->api->rights, s->token, exec_answered, s);
    else
        exec_begin(s);
}

void
exec_rights_changed(struct api *api)
{
    for (struct session *s = api->sessions, *next; s != NULL; s = next) {
        next = s->next;
        if (s->exec != NULL)
            rights_ask(api->rights, s->token, exec_answered, s);
    }
}

static void
on_handshake(struct session *s, const struct exec_handshake *h)
{
    if (h->version != HANDSHAKE_VERSION) {
        routes_exec_finish(s, WS_POLICY, "unsupported version of the WebSocket handshake");
        return;
    }
    if (!str_empty(h->auth_token) && s->token == NULL)
        s->token = mem_strdup(s, h->auth_token);
    routes_exec_start(s);
}

/* False: the session is over. */
static bool
routes_exec_input(struct session *s, const struct exec_stream *in)
{
    int rc = in->data.n > 0 ? client_exec_write(s->exec, in->data.v, in->data.n) : 0;

    if (rc == -EAGAIN) {
        ws_read(s->ws, false);
    } else if (rc < 0) {
        routes_exec_finish(s, WS_POLICY, "more input than the command reads");
        return false;
    }
    if (in->close)
        client_exec_close_input(s->exec);
    return true;
}

static void
on_input(struct session *s, const struct exec_input *in)
{
    const struct exec_terminal *t = in->tty_size;

    if (in->stdin && !routes_exec_input(s, in->stdin))
        return;
    if (t && s->req.tty && t->height > 0 && t->height <= UINT16_MAX && t->width > 0 &&
        t->width <= UINT16_MAX)
        client_exec_resize(s->exec, t->height, t->width);
}

static void
on_message(void *arg, const void *p, size_t n)
{
    struct session *s = arg;
    auto_mem void *ctx = mem_ctx("exec message");
    const struct type *t = s->exec ? &type_exec_input : &type_exec_handshake;
    struct err e = ERR_INIT;
    void *obj = NULL;

    if (json_decode(ctx, t, SLICE(p, n), BUDGET(2 * n + API_BODY_EXTRA), &obj, &e) < 0 ||
        (obj && codec_check(t, obj, &e) < 0))
        routes_exec_finish(s, WS_POLICY, e.text);
    else if (!obj)
        routes_exec_finish(s, WS_POLICY, "a message must be a JSON object");
    else if (s->exec)
        on_input(s, obj);
    else
        on_handshake(s, obj);
}

static void
on_drain(void *arg)
{
    struct session *s = arg;
    if (s->paused) {
        s->paused = false;
        client_exec_pause(s->exec, false);
    }
}

static void
on_close(void *arg, unsigned code, const char *why)
{
    (void)code, (void)why;
    session_free(arg);
}

static const struct ws_ops session_ops = {
    .on_message = on_message, .on_drain = on_drain, .on_close = on_close};

/* --- the request --- */

/* The parameter "command", a JSON list of strings. False: answered. */
static bool
command_param(struct request *a, struct str_list *ret)
{
    const char *text = str_or(http_query(a->req, "command"), "");
    struct err e = ERR_INIT;
    struct value *v;

    if (!*text) {
        reply_fail(a, 400, "must provide command, a JSON list of strings");
        return false;
    }
    if (json_decode_value(a, SLICE(text, strlen(text)), BUDGET(API_BODY_EXTRA), &v, &e) < 0) {
        reply_fail(a, 400, "Failed to unmarshal command: %s", e.text);
        return false;
    }
    bool ok = v->kind == VALUE_LIST && v->list.n > 0;
    for (size_t i = 0; ok && i < v->list.n; i++) {
        const struct value *w = v->list.v[i];
        ok = w->kind == VALUE_STRING && strlen(w->str.s) == w->str.n;
        if (ok)
            list_add(a, *ret, w->str.s);
    }
    if (!ok || str_empty(ret->v[0])) {
        reply_fail(a, 400, "command must be a JSON list of strings that begins with a program");
        return false;
    }
    return true;
}

/* Opens the session for nothing but to say why there is none. */
static void
fail_in_session(struct request *a, int status, const char *text)
{
    struct session *s = mem_new(NULL, struct session);
    char *why = mem_strdup(s, text); /* the request's memory goes with the WebSocket */

    s->api = a->api;
    s->ws = ws_accept(a->api->loop, a->req, &session_ops, s);
    if (s->ws)
        routes_exec_fail(s, status, why);
    else
        talloc_free(s);
}

static struct session *
session_new(struct request *a, const struct client_exec_request *r)
{
    struct session *s = mem_new(NULL, struct session);

    s->api = a->api;
    s->alloc_id = mem_strdup(s, a->id);
    s->peer = mem_strdup(s, a->req->peer);
    s->accessor = "acls-disabled";
    s->passed_on = a->passed_on;
    s->token = str_empty(a->env.auth_token) ? NULL : mem_strdup(s, a->env.auth_token);
    s->next = s->api->sessions;
    s->at = &s->api->sessions;
    if (s->next != NULL)
        s->next->at = &s->next;
    s->api->sessions = s;
    s->req.task = mem_strdup(s, r->task);
    s->req.tty = r->tty;
    for (size_t i = 0; i < r->command.n; i++)
        list_add(s, s->req.command, mem_strdup(s, r->command.v[i]));
    return s;
}

/* Returns whether a command may run in a task of a->id here; false: answered. */
static bool
exec_is_here(struct request *a, const char *task)
{
    a->fail = fail_in_session;
    if (!request_reaches_alloc(a))
        return false;
    const struct agent_config *cfg = a->api->cfg;
    if (cfg && cfg->client && cfg->client->disable_remote_exec) {
        log_warn("http", "a command in a task was refused: client.disable_remote_exec is set",
                 "alloc_id", a->id, "peer", a->req->peer, NULL);
        reply_fail(a, 403, "Permission denied"); /* as Nomad says */
        return false;
    }
    if (!client_has_task(a->api->client, a->id, task)) {
        reply_fail(a, 404, "Unknown task name \"%s\"", task);
        return false;
    }
    return true;
}

static void
exec_open(struct request *a, const struct client_exec_request *r, bool handshake)
{
    struct session *s = session_new(a, r);

    s->ws = ws_accept(a->api->loop, a->req, &session_ops, s);
    if (!s->ws)
        session_free(s);
    else if (!handshake)
        routes_exec_start(s);
}

void
alloc_exec(struct request *a)
{
    struct client_exec_request r = {.task = http_query(a->req, "task")};
    bool handshake = false;

    if (!command_param(a, &r.command) || !param_bool(a, "tty", &r.tty) ||
        !param_bool(a, "ws_handshake", &handshake))
        return;
    if (str_empty(r.task))
        reply_fail(a, 400, "must provide task name");
    else if (ws_check(a->req) && exec_is_here(a, r.task))
        exec_open(a, &r, handshake);
}

/* --- actions: commands that a job names --- */

/* The node that has the allocation knows the action: of the job's version that it runs. */
void
job_action(struct request *a)
{
    struct client_exec_request r = {.task = http_query(a->req, "task")};
    const char *job = a->id, *name = http_query(a->req, "action");
    bool handshake = false;

    if (!param_bool(a, "tty", &r.tty) || !param_bool(a, "ws_handshake", &handshake))
        return;
    a->id = str_or(http_query(a->req, "allocID"), "");
    if (str_empty(name) || str_empty(r.task) || str_empty(a->id)) {
        reply_fail(a, 400, "must provide action, task and allocID");
        return;
    }
    if (!ws_check(a->req) || !exec_is_here(a, r.task))
        return;
    const struct action *x = client_task_action(a->api->client, a->id, job, r.task, name);
    if (x == NULL) {
        reply_fail(a, 404, "task \"%s\" of job \"%s\" has no action \"%s\" in this allocation",
                   r.task, job, name);
        return;
    }
    list_add(a, r.command, x->command);
    for (size_t i = 0; i < x->args.n; i++)
        list_add(a, r.command, x->args.v[i]);
    exec_open(a, &r, handshake);
}
