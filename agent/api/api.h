/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP API: one table of routes over the RPC methods and the client role. Rules of parameters,
 * headers, blocking and errors are Nomad's; what differs is in paddock-nomad(7).
 *
 * A request becomes a `struct request`, owned by its http_req. A route either answers at once or
 * makes an RPC call (call_server) and answers in its completion; when the client of the request
 * goes away, the call is cancelled and the answer dropped.
 */
#ifndef PADDOCK_AGENT_API_API_H
#define PADDOCK_AGENT_API_API_H

#include <stdbool.h>

#include "acl/acl.h"
#include "agent/audit.h"
#include "agent/guard.h"
#include "agent/rights.h"
#include "api/api.h"
#include "net/http/http.h"
#include "net/loop.h"
#include "net/rpc.h"

struct client;
struct server;

/* The end of a reload, on the loop, once; `resp` NULL: it failed, and nothing was changed. */
typedef void reload_done(void *arg, const struct reload_response *resp, const struct err *e);
/* Asks for the configuration to be read anew; `done` may come from inside. */
typedef void reload_ask_fn(void *arg, reload_done *done, void *done_arg);

/* The means that the routes work with; owned by the agent. NULL where the agent has no such
 * role. */
struct api {
    struct loop *loop;
    struct rpc_client *servers; /* in process or dialled */
    struct client *client;
    struct server *server;
    const struct agent_config *cfg;
    struct http_server *http;
    const char *region, *name, *version;
    struct guard guard;
    struct rights *rights;    /* NULL: there is no access control */
    struct audit *audit;      /* NULL: there is no audit log */
    struct request *open;     /* those that last */
    struct session *sessions; /* commands in tasks (routes_exec.c) */
    reload_ask_fn *reload; /* POST /v1/agent/reload; NULL: this agent cannot */
    void (*reload_forget)(void *arg, void *done_arg);
    void *reload_arg;
    int64_t started_ns;
    int64_t tls_end_s; /* since the epoch: the agent's certificate, or its CA, ends; 0: none */
    unsigned parsing; /* job files, on worker threads */
    unsigned reading; /* logs and files of other nodes (VERB_LONG) */
};

struct request;
typedef void request_done(struct request *a, const void *resp);

struct request {
    struct api *api;
    struct http_req *req;
    const char *id;           /* between prefix and suffix of an item route, decoded */
    struct rpc_envelope env;    /* of its calls */
    struct list_options list;   /* what it says of a list */
    struct list_options asked;  /* what reply_list asks for */
    struct id_request by_id;    /* request_by_id */
    bool pretty;
    bool secrets; /* are shown in the answer */
    bool unsaid; /* what an object was not given is null in its JSON */
    bool passed_on; /* by another agent */
    struct large_body *large; /* NULL: its body is not */
    uint64_t call;            /* the open RPC call, 0: none */
    struct rpc_client *called;
    enum rpc_id method;
    request_done *done;
    bool (*on_error)(struct request *a, const struct err *e); /* true: answered */
    struct acl *acl;        /* rights of who asks, where the route has a need; NULL: everybody's */
    const char *allowed_ns; /* request_may() said yes to; NULL: it was not asked */
    struct request *next_open, **at_open; /* of what lasts, and ends when its right does */
    struct parts *parts; /* parts_begin */
    void (*gone)(struct request *a); /* the client left, for routes without RPC */
    void (*then)(struct request *a); /* task_admit */
    /* Tells a failure otherwise than by the status of the answer; NULL: no. */
    void (*fail)(struct request *a, int status, const char *text);
    const struct route *route;
    /* Returns the route of a path that is not the request's own, as one of `probe` (a zero request
     * of the caller's); NULL: there is none. */
    const struct route *(*route_of)(struct request *probe, enum http_method m, const char *path);
    struct audit_entry *line; /* of the audit log; NULL: there is none to write */
    const char *told_path;    /* for the agent's own log; NULL: nobody reads such lines */
    int64_t began_ns;         /* monotonic, where there is told_path */
    const char *stream_type; /* content type of a body that is streamed */
    void *user;
};

enum {
    VERB_GET = 1,
    VERB_PUT = 2,
    VERB_POST = 4,
    VERB_DELETE = 8,
    VERB_WRITE = VERB_PUT | VERB_POST,
    VERB_ANY = 15,
    VERB_UNSAFE = 16,  /* a GET changes something, or is no mere read */
    VERB_HERE = 32,    /* no server is asked, who would refuse what is meant for another region */
    VERB_LONG = 64,    /* the answer lasts as long as its reader likes */
    VERB_SESSION = 128 /* a WebSocket, whose first message may bear the token: asks itself */
};

struct route {
    unsigned verbs;
    const char *path;   /* "/v1/jobs", or "/v1/job/" for items */
    const char *suffix; /* items: "/plan", "": the rest is the id, NULL: exact path */
    void (*handle)(struct request *a);
    enum rpc_id rpc; /* that the handler calls, the first of several; BY_SERVER has one */
    /* A need (acl/acl.h), asked before the handler; of namespaces in any of them, and by the
     * handler in its own (request_may). Or BY_SERVER. */
    const char *cap;
};
#define BY_SERVER NULL /* the server decides, that the handler asks */
#define ROUTES_END                                                                                 \
    {                                                                                              \
        0, NULL, NULL, NULL, 0, NULL                                                               \
    }

/* The handler of the HTTP server; arg is a struct api. */
void api_handle(void *arg, struct http_req *req);
/* The same, of what another agent passed on to this node (agent/api/other_node.h). */
void api_handle_passed_on(void *arg, struct http_req *req);
/* The same, of a request that came by the socket of a task. */
void api_handle_task(void *arg, struct http_req *req);
size_t api_body_max(void *arg, enum http_method m, const char *path);

/* --- parameters --- */
/* "true"/"false" parameter; false with a 400 sent when malformed. Absent: *ret is untouched. */
bool param_bool(struct request *a, const char *name, bool *ret);
bool param_int(struct request *a, const char *name, int64_t *ret);
/* Decodes the JSON body; NULL with a 400 sent. `optional`: an empty body is an empty object. */
void *request_body(struct request *a, const struct type *t, bool optional);
/* The same for what may be large: a worker decodes the body, since the loop serves heartbeats, and
 * makes the call of it that then() asks for with call_server(). It comes now or later, once, unless
 * a
 * 400 was sent; the body is gone when the call is answered. */
typedef void request_body_fn(struct request *a, void *body);
void request_large_body(struct request *a, const struct type *t, request_body_fn *then);

/* --- calls --- */
struct id_request *request_by_id(struct request *a);
void call_server(struct request *a, enum rpc_id id, const void *req, request_done *done);
/* agent/api/routes_schema.c. Calls the method of the route, with the request that path and query
 * are. */
void route_call(struct request *a);
/* Answers with the server's answer, by the table of its type. */
request_done method_done;

/* --- answers (each ends the request) --- */
void reply_error(struct request *a, const struct err *e);
void reply_refuse(struct request *a, int status, const struct err *e);
void reply_fail(struct request *a, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void reply_json(struct request *a, const struct type *t, const void *obj);
/* Rows of a typed list. */
void reply_rows(struct request *a, const struct type *t, const void *list);
void reply_value(struct request *a, const struct value *v);
void reply_text(struct request *a, struct buf *b, const char *content_type);
/* An object from the server, which made JSON of it where it was asked to; 404 with `missing` when
 * NULL. */
void reply_object(struct request *a, const struct type *t, const void *obj,
                  const struct query_meta *m, const char *missing);

/* An answer that is put together of calls, of any length: a short answer goes out whole, a longer
 * one is streamed, each part asked for when the reader has taken the part before. `ask` makes the
 * next call; its completion adds to `held` and then calls one of the others. */
struct parts {
    struct query_meta meta; /* of the first part, for the headers */
    struct buf held;        /* not written yet, */
    size_t written;         /* but for that many bytes of it */
    void (*ask)(struct request *a);
    bool streaming, complete;
};
/* Owned by `a`; `p` is zero but for `ask`. */
void parts_begin(struct request *a, struct parts *p);
void parts_more(struct request *a);
void parts_end(struct request *a);

/* A list from the server, of any length, as the query wants it (filter, pages, order). `req` is a
 * ListRequest or IdRequest, whose List is filled in, and lives as long as `a`. */
void reply_list(struct request *a, enum rpc_id id, void *req);

void reply_index(struct request *a, uint64_t index); /* X-Nomad-Index */
void reply_meta(struct request *a, const struct query_meta *m);

/* --- the routes --- */
extern const struct route routes_deployment[], routes_job[], routes_node[], routes_alloc[],
    routes_agent[], routes_client[], routes_schema[], routes_object[], routes_acl[],
    routes_service[], routes_vars[], routes_stream[], routes_volume[], routes_backup[],
    routes_servers[], routes_web[];
#ifdef FAULT_INJECTION
extern const struct route routes_test[];
#endif

/* agent/api/routes_later.c: true: it is Nomad's and not ours (yet), and was answered. */
bool route_later(struct request *a, unsigned verb);
/* The same without an answer; `what` is not there, NULL: Enterprise. */
bool route_is_later(const struct request *a, unsigned verb, const char **what);
/* agent/api/record.c. Begins the lines of the request in both logs, if there are to be any. False:
 * answered 503, since the audit log has no room. */
bool record_begin(struct request *a);
void record_target(struct request *a); /* namespace and region, once they are read */
void record_accessor(struct request *a, const char *accessor);
/* Notes the object that a body is about, and its namespace; NULL: that of the request. */
void record_object(struct request *a, const char *name, const char *ns);
/* Writes the line of a command in a task. -ERR_UNAVAILABLE: it must not begin. */
int record_command(struct api *api, const struct audit_entry *line, struct err *e);
/* Calls the handler of the route if who asks may; else the request is answered, now or later. */
void request_admit(struct request *a);
/* agent/api/task.c. Goes on with what bears a good identity or token; else it is answered. */
void task_admit(struct request *a, void (*then)(struct request *a));
const char *request_token(const struct http_req *r); /* NULL or "": it bears none */
/* agent/api/why.c */
void acl_why_get(struct request *a);
/* Says whether who asks may do in the namespace what the route needs; else it was answered. */
bool request_may(struct request *a, const char *ns);
/* Asks again for the rights of all that is open; what has none any more ends. */
void api_rights_changed(struct api *api);

/* Query and headers into a->env and a->list. False: it was answered. */
bool request_parse(struct request *a);
bool request_is_for_our_region(const struct request *a);
/* Says whether the path of the request fits a route, and which part of it is the id. */
bool request_fits(const struct request *a, const char *path, const char *suffix, const char **id);

/* agent/api/metrics.c */
void metrics_get(struct request *a);
/* agent/api/routes_exec.c */
void alloc_exec(struct request *a);
void job_action(struct request *a);
void exec_rights_changed(struct api *api); /* as api_rights_changed() */
/* agent/api/routes_client.c. True: allocation a->id is this node's. Otherwise the request is
 * forwarded or answered. */
bool request_reaches_alloc(struct request *a);

#endif
