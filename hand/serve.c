/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's requests, as routes; an engine has the name of its driver:
 *
 *   GET    /v1/ping                            200: this hand does not stand still
 *   GET    /v1/ENGINE/stay                     no answer: the connection is as long as the hand is
 *   GET    /v1/ENGINE/info                     is the engine there, and what is it: HandInfo
 *   PUT    /v1/ENGINE/task/ALLOC/TASK          HandTask: made anew and started -> lines of HandNews
 *   GET    /v1/ENGINE/task/ALLOC/TASK          HandState; 404: there is none
 *   GET    /v1/ENGINE/task/ALLOC/TASK/wait     ... when it has ended and its output is written
 *   POST   /v1/ENGINE/task/ALLOC/TASK/signal   ?signal=N; 0: as its image wants to be stopped
 *   POST   /v1/ENGINE/task/ALLOC/TASK/end      ... which is to end it: what is paused goes on first
 *   POST   /v1/ENGINE/task/ALLOC/TASK/pause    its processes stand still; 404: it does not run
 *   POST   /v1/ENGINE/task/ALLOC/TASK/resume   ... they go on
 *   PUT    /v1/ENGINE/task/ALLOC/TASK/limits   HandTask: its limits, while it runs; 404: it does
 *                                              not
 *   POST   /v1/ENGINE/task/ALLOC/TASK/exec     HandExec: 101, and a command's frames (exec.c)
 *   DELETE /v1/ENGINE/task/ALLOC/TASK          ?started=NS: of that run; running or not, there or
 *                                              not
 *   PUT, DELETE /v1/ENGINE/network/ALLOC       the network of its group (network.c)
 *
 * Starts and removals of a task are carried out one after the other, as they came: a removal that
 * nobody waits for any more would take the next run's container, whose name is the same.
 *
 * Errors are a line of text. 502: the engine does not answer; 503: a moment was bad; 4xx: so it
 * will stay.
 */
#include <string.h>
#include <utlist.h>

#include "api/plain.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/uuid.h"
#include "hand/hand.h"

enum { TRIES_MAX = 4, AGAIN_MS = 200, REQUEST_MAX = 4 << 20 };

struct order { /* a request that is carried out; freed with its answer */
    struct order *prev, *next; /* of starts and removals */
    struct hand *h;
    struct http_req *req;
    struct engine_call *call;
    struct pull *pull;
    struct container_wait *wait;
    struct timer *again;
    const char *alloc, *task, *name;
    char *id, *image; /* of the container */
    char *network;    /* ... of its group's network */
    struct hand_task *spec;
    const struct hand_task *limits; /* that it is to have, in place of a start */
    struct hand_info info;
    int status; /* of its failure, which is told when what was made has gone */
    const char *why;
    int tries;
    int64_t started;  /* of the run that is to be removed; 0: not known */
    int64_t signal;
    const char *kill; /* the request for that signal */
    const char *pause; /* "pause" or "unpause" */
    bool ends;        /* the signal is to end it */
    bool pulled;
    bool swept;   /* what is left under its name was removed */
    bool telling; /* the answer has begun */
    bool gone;    /* nobody waits any more */
    bool stays;   /* it is not answered */
    bool queued;  /* it is one of hand.orders */
    bool begun;   /* ... and no other one of its task is before it */
};

static void serve_create(struct order *j);
static void remove_it(void *arg);
static void serve_begin(struct order *j);

/* --- answers --- */

/* The first start or removal of its task. */
static struct order *
order_first(const struct order *j)
{
    struct order *o;
    DL_FOREACH(j->h->orders, o)
    if (str_eq(o->alloc, j->alloc) && str_eq(o->task, j->task))
        return o;
    return NULL;
}

static void
order_end(struct order *j)
{
    struct order *next = NULL;
    if (j->queued) {
        DL_DELETE(j->h->orders, j);
        next = order_first(j);
    }
    j->req->user = NULL;
    timer_stop(j->again);
    talloc_free(j);
    if (next && !next->begun)
        serve_begin(next);
}

/* A line of the answer to a PUT. */
static void
serve_tell(struct order *j, const struct hand_news *news)
{
    struct buf b = BUF_INIT(1 << 20);
    if (!j->telling)
        http_stream_start(j->req, 200, "application/json", NULL);
    j->telling = true;
    json_encode(&b, &type_hand_news, news, 0);
    buf_putc(&b, '\n');
    http_stream_write_buf(j->req, &b);
}

static void
serve_answer(struct order *j, const struct type *type, const void *obj)
{
    struct buf b = BUF_INIT(1 << 20);
    struct http_req *req = j->req;
    if (obj)
        json_encode(&b, type, obj, JSON_NO_OMIT);
    order_end(j);
    http_reply_buf(req, 200, "application/json", &b);
}

static void
serve_fail(struct order *j, int status, const char *why)
{
    struct http_req *req = j->req;
    auto_mem void *tmp = mem_ctx("why");
    const char *text = mem_strndup(tmp, why, 900);
    bool telling = j->telling;
    if (telling)
        serve_tell(j, &(struct hand_news){.status = status, .error = text});
    order_end(j);
    if (telling)
        http_stream_end(req);
    else
        http_fail(req, status, "%s", text);
}

static void
answer_state(struct order *j, const struct hand_state *s)
{
    struct http_req *req = j->req;
    if (!j->spec) {
        serve_answer(j, &type_hand_state, s);
        return;
    }
    struct hand_state copy = *s;
    serve_tell(j, &(struct hand_news){.state = &copy});
    order_end(j);
    http_stream_end(req);
}

static int
status_of(int code)
{
    return code == -ERR_POLICY ? 403 : code == -ERR_INVALID || code == -ERR_UNSUPPORTED ? 400 : 503;
}

/* The engine's own word: 5xx may be otherwise the next time. */
static void
note_error(struct order *j, const char *what, int status, const struct value *doc,
           const struct err *e)
{
    j->status = e ? 502 : status >= 500 ? 503 : 422;
    j->why = e ? mem_printf(j, "the engine does not answer: %s", e->text)
               : mem_printf(j, "%s: %s", what, engine_said(doc));
}

static void
fail_engine(struct order *j, const char *what, int status, const struct value *doc,
            const struct err *e)
{
    note_error(j, what, status, doc, e);
    serve_fail(j, j->status, j->why);
}

static void
serve_ask(struct order *j, const char *method, const char *target, const struct value *body,
          void (*done)(void *arg, int status, const struct value *doc, const struct err *e))
{
    j->call = engine_ask(j->h, &(struct engine_ask){.method = method,
                                                    .target = target,
                                                    .body = body,
                                                    .timeout_ms = HAND_ASK_MS,
                                                    .done = done,
                                                    .arg = j});
}

/* --- what is it --- */

static void
serve_inspect(struct order *j,
              void (*done)(void *arg, int status, const struct value *doc, const struct err *e))
{
    serve_ask(j, "GET", mem_printf(j, "/containers/%s/json", j->id ? j->id : j->name), NULL, done);
}

static void
serve_follow(struct order *j, const struct hand_state *s, const struct value *doc)
{
    struct log_shape logs;
    document_logs(value_get(value_get(doc, "Config"), "Labels"), &logs);
    if (s->started_at != 0)
        (void)container_follow(j->h, j->alloc, j->task, s->id, &logs);
}

/* The container is there and the task's; else the request is answered. */
static bool
is_there(struct order *j, int status, const struct value *doc, const struct err *e,
         struct hand_state *ret)
{
    j->call = NULL;
    if (e || (status != 200 && status != 404))
        fail_engine(j, "look at the container", status, doc, e);
    else if (status == 404 || !document_state(j, j->h, j->alloc, j->task, doc, ret))
        serve_fail(j, 404, "there is no such container");
    else
        return true;
    return false;
}

static bool
is_running(struct order *j, int status, const struct value *doc, const struct err *e,
           struct hand_state *ret)
{
    if (!is_there(j, status, doc, e, ret))
        return false;
    if (!ret->running)
        serve_fail(j, 404, "the container does not run");
    return ret->running;
}

static void
on_state(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    struct hand_state s;
    if (!is_there(j, status, doc, e, &s))
        return;
    serve_follow(j, &s, doc);
    answer_state(j, &s);
}

/* --- its end --- */

static void
on_ended(void *arg, const struct hand_state *s)
{
    struct order *j = arg;
    j->wait = NULL;
    if (s)
        serve_answer(j, &type_hand_state, s);
    else
        serve_fail(j, 404, "there is no such container any more");
}

static void
await_end(struct order *j)
{
    struct container *c = container_find(j->h, j->alloc, j->task);
    if (c && container_over(c))
        serve_answer(j, &type_hand_state, container_over(c));
    else if (c)
        j->wait = container_wait(c, on_ended, j);
    else
        serve_fail(j, 503, "the container is not followed: look at it first");
}

/* --- its start --- */

static void
on_undone(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    (void)doc;
    j->call = NULL;
    if (e || (status != 204 && status != 404))
        leftover_drop(j->h, j->id);
    serve_fail(j, j->status, j->why);
}

/* A start that failed: its container goes before anybody is told. */
static void
serve_undo(struct order *j)
{
    serve_ask(j, "DELETE", mem_printf(j, "/containers/%s?force=1&v=1", j->id), NULL, on_undone);
}

static void
on_started(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    j->call = NULL;
    if (!e && (status == 204 || status == 304)) {
        serve_inspect(j, on_state);
        return;
    }
    note_error(j, "start the container", status, doc, e);
    if (e) {
        leftover_drop(j->h, j->id); /* as soon as it answers */
        serve_fail(j, j->status, j->why);
    } else {
        serve_undo(j);
    }
}

static void
on_pulled(void *arg, const char *why, bool moment)
{
    struct order *j = arg;
    j->pull = NULL;
    j->pulled = true;
    if (why)
        serve_fail(j, moment ? 503 : 422, why);
    else
        serve_create(j);
}

static void
on_said(void *arg, const char *text)
{
    serve_tell(arg, &(struct hand_news){.said = text});
}

static void
pull_image(struct order *j)
{
    static const struct pull_events events = {on_said, on_pulled};
    on_said(j, str_empty(j->spec->load) ? "Downloading image" : "Loading image");
    j->pull = pull_start(j->h, j->alloc, j->task, j->spec, &events, j);
}

/* Notes where the container's output begins in the files, before there is any. */
static int
note_log(struct order *j, struct err *e)
{
    if (j->spec->logs_off || j->h->engine->no_logs)
        return 0;
    struct hand_log *l = log_open(NULL, j->h, j->alloc, j->task, e);
    if (!l)
        return e->code;
    const struct log_shape shape = {j->spec->log_files, j->spec->log_file_bytes, j->spec->tty};
    log_shape(l, &shape);
    int r = log_of(l, j->id);
    log_close(l);
    return r < 0 ? err_errno(e, -r, "write the notes of the task's log") : 0;
}

static void
on_created(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    struct err own = ERR_INIT;
    const char *id = document_text(doc, "Id");
    j->call = NULL;
    if (!e && status == 409 && j->tries++ < TRIES_MAX) {
        remove_it(j); /* what an earlier start left, or somebody else's: that is found out */
        return;
    }
    if (!e && status == 404 && !j->pulled) {
        pull_image(j);
        return;
    }
    if (e || status != 201 || !*id || strlen(id) >= HAND_ID_MAX || !plain_word(id)) {
        fail_engine(j, "make the container", status, doc, e);
        return;
    }
    j->id = mem_strdup(j, id);
    if (note_log(j, &own) < 0) {
        j->status = 503;
        j->why = mem_strdup(j, own.text);
        serve_undo(j);
        return;
    }
    serve_ask(j, "POST", mem_printf(j, "/containers/%s/start", j->id), NULL, on_started);
}

/* Goes on with the group's network: the agent has made it before; somebody may have removed it
 * since. */
static void
on_network(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    struct hand_network_state s;
    bool running = false;
    j->call = NULL;
    if (e || (status != 200 && status != 404)) {
        fail_engine(j, "look at the network of the group", status, doc, e);
    } else if (status == 404 || !document_network_state(j, j->h, j->alloc, doc, &s, &running) ||
               !running) {
        serve_fail(j, 503, "the network of the group has gone: it is made again");
    } else {
        j->network = mem_printf(j, "container:%s", s.id);
        if (engine_is_podman(j->h)) /* docker's have that name by themselves */
            j->spec->hostname = mem_strndup(
                j->spec, document_text(value_get(doc, "Config"), "Hostname"), HAND_ID_MAX);
        serve_create(j);
    }
}

static void
serve_create(struct order *j)
{
    struct err e = ERR_INIT;
    struct str_list sources;
    if (j->spec->group_network && !j->network) {
        serve_ask(j, "GET", mem_printf(j, "/containers/%s/json", network_name(j, j->alloc)), NULL,
                  on_network);
        return;
    }
    if (j->network)
        j->spec->network_mode = j->network; /* which no task may say itself */
    if (places_find(j, j->h, mem_printf(j, "%s/%s", j->alloc, j->task), j->spec, &sources, &e) <
        0) {
        serve_fail(j, status_of(e.code), e.text);
        return;
    }
    serve_ask(j, "POST", mem_printf(j, "/containers/create?name=%s", j->name),
              document_make(j, j->h, j->alloc, j->task, j->spec, &sources), on_created);
}

/* --- its removal --- */

static void
on_removed(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    j->call = NULL;
    if (!e && status == 409 && j->tries++ < TRIES_MAX) { /* somebody removes it already */
        j->again = timer_start(j->h->loop, AGAIN_MS, remove_it, j);
    } else if (e || (status != 204 && status != 404)) {
        fail_engine(j, "remove the container", status, doc, e);
    } else if (j->spec) {
        j->id = NULL;
        serve_create(j);
    } else {
        struct container *c = container_find(j->h, j->alloc, j->task);
        if (c && (j->id ? container_is(c, j->id) : !j->gone)) /* else it is the next run's */
            container_forget(c);
        images_unused(j->h->images, str_or(j->image, ""));
        serve_answer(j, NULL, NULL);
    }
}

/* Says whether the container is of the next run, which may have been started since the asker of the
 * removal went. It need not run, nor be waited for: it may have ended already, or be about to
 * start. */
static bool
is_next(const struct order *j, const struct hand_state *s)
{
    const struct container *c = container_find(j->h, j->alloc, j->task);
    if (!j->gone)
        return false;
    return j->started != 0 ? s->started_at != j->started : s->running || (c && container_waited(c));
}

static void
on_removable(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    struct hand_state s;
    j->call = NULL;
    if (e || (status != 200 && status != 404)) {
        fail_engine(j, "look at the container", status, doc, e);
    } else if (status == 404 && !j->swept && (!j->spec || j->tries > 0)) {
        /* podman, killed while it made one, has the name and no container: it removes what is there
         */
        j->swept = true;
        serve_ask(j, "DELETE", mem_printf(j, "/containers/%s?force=1&v=1", j->name), NULL,
                  on_removed);
    } else if (status == 404) {
        on_removed(j, 404, NULL, NULL);
    } else if (!document_state(j, j->h, j->alloc, j->task, doc, &s)) {
        serve_fail(j, 422, mem_printf(j, "the container \"%s\" is somebody else's", j->name));
    } else if (!j->spec && is_next(j, &s)) {
        serve_fail(j, 503, "nobody waits");
    } else {
        j->id = mem_strdup(j, s.id);
        j->image = mem_strndup(j, document_text(doc, "Image"), HAND_ID_MAX);
        serve_ask(j, "DELETE", mem_printf(j, "/containers/%s?force=1&v=1", j->id), NULL,
                  on_removed);
    }
}

static void
remove_it(void *arg)
{
    struct order *j = arg;
    j->again = NULL;
    serve_inspect(j, on_removable);
}

/* --- signals --- */

static void
on_signaled(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    j->call = NULL;
    /* 409: it has ended */
    if (e || (status != 204 && status != 304 && status != 404 && status != 409))
        fail_engine(j, "signal the container", status, doc, e);
    else
        serve_answer(j, NULL, NULL);
}

/* Returns the signal by which the image wants to be stopped. */
static const char *
stop_signal(const struct value *doc)
{
    const char *own = document_text(value_get(doc, "Config"), "StopSignal");
    return *own && own[strspn(own, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-")] == 0 ? own
                                                                                   : "SIGTERM";
}

static bool
is_paused(const struct value *doc)
{
    return document_bool(value_get(doc, "State"), "Paused");
}

/* Or it was not paused any more: it is signalled in any case. */
static void
on_woken(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    j->call = NULL;
    if (e)
        fail_engine(j, "resume the container", status, doc, e);
    else
        serve_ask(j, "POST", j->kill, NULL, on_signaled);
}

static void
on_signalable(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    struct hand_state s;
    if (!is_there(j, status, doc, e, &s))
        return;
    const char *sig =
        j->signal == 0 ? stop_signal(doc) : mem_printf(j, "%lld", (long long)j->signal);
    j->kill = mem_printf(j, "/containers/%s/kill?signal=%s", s.id, sig);
    if (j->ends && is_paused(doc))
        serve_ask(j, "POST", mem_printf(j, "/containers/%s/unpause", s.id), NULL, on_woken);
    else
        serve_ask(j, "POST", j->kill, NULL, on_signaled);
}

/* --- pause --- */

static void
on_paused(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    j->call = NULL;
    if (e || (status != 200 && status != 204))
        fail_engine(j, mem_printf(j, "%s the container", j->pause), status, doc, e);
    else
        serve_answer(j, NULL, NULL);
}

static void
on_pausable(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    struct hand_state s;
    if (!is_running(j, status, doc, e, &s))
        return;
    if (is_paused(doc) == str_eq(j->pause, "pause"))
        serve_answer(j, NULL, NULL); /* it is so already */
    else
        serve_ask(j, "POST", mem_printf(j, "/containers/%s/%s", s.id, j->pause), NULL, on_paused);
}

/* --- limits --- */

static void
on_limited(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    j->call = NULL;
    if (e || status != 200)
        fail_engine(j, "change the limits of the container", status, doc, e);
    else
        serve_answer(j, NULL, NULL);
}

static void
on_limitable(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    struct hand_state s;
    if (is_running(j, status, doc, e, &s))
        serve_ask(j, "POST", mem_printf(j, "/containers/%s/update", s.id),
                  document_limits(j, j->h, j->limits), on_limited);
}

/* --- the engine itself --- */

static void
set_attribute(struct order *j, const char *name, const char *value)
{
    str_map_set(j, &j->info.attributes, mem_printf(j, "driver.%s.%s", j->h->engine->name, name),
                value);
}

/* An engine may have none. */
static void
on_bridge(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    const struct value *all = value_get(value_get(doc, "IPAM"), "Config");
    j->call = NULL;
    for (size_t i = 0; !e && status == 200 && all && all->kind == VALUE_LIST && i < all->list.n;
         i++)
        if (*document_text(all->list.v[i], "Gateway")) {
            set_attribute(j, "bridge_ip",
                          mem_strndup(j, document_text(all->list.v[i], "Gateway"), 64));
            break;
        }
    serve_answer(j, &type_hand_info, &j->info);
}

static void
on_info(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    const struct value *runtimes = value_get(doc, "Runtimes");
    const char *all = "";
    j->call = NULL;
    if (e || status != 200) {
        fail_engine(j, "ask the engine", status, doc, e);
        return;
    }
    for (size_t i = 0; runtimes && runtimes->kind == VALUE_MAP && i < runtimes->map.n; i++)
        all = mem_printf(j, "%s%s%s", all, *all ? "," : "", runtimes->map.v[i].k);
    set_attribute(j, "runtimes", all);
    set_attribute(j, "os_type", document_text(doc, "OSType"));
    set_attribute(j, "volumes.enabled", j->h->engine->volumes ? "true" : "false");
    set_attribute(j, "privileged.enabled", j->h->engine->privileged ? "true" : NULL);
    j->info.healthy = true;
    j->info.description = "Healthy";
    if (engine_is_podman(j->h)) /* whose networks have other names */
        serve_answer(j, &type_hand_info, &j->info);
    else
        serve_ask(j, "GET", "/networks/bridge", NULL, on_bridge);
}

static void
on_version(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct order *j = arg;
    j->call = NULL;
    if (e || status != 200) {
        fail_engine(j, "ask the engine", status, doc, e);
        return;
    }
    j->info.version = mem_strndup(j, document_text(doc, "Version"), 60);
    set_attribute(j, "version", j->info.version);
    serve_ask(j, "GET", "/info", NULL, on_info);
}

/* --- requests --- */

static void
on_close(void *user)
{
    struct order *j = user;
    j->gone = true;
    if (j->stays) {
        serve_fail(j, 503, "nobody waits");
    } else if (j->spec && j->queued && !j->begun) {
        serve_fail(j, 503, "nobody waits");
    } else if (j->pull) { /* what is here of the image stays with the engine */
        pull_cancel(TAKE(j->pull));
        serve_fail(j, 503, "nobody waits");
    } else if (j->wait) {
        container_unwait(TAKE(j->wait));
        serve_fail(j, 503, "nobody waits");
    }
}

static void
serve_begin(struct order *j)
{
    j->begun = true;
    if (!j->spec)
        remove_it(j);
    else if (pull_first(j->spec))
        pull_image(j);
    else
        serve_create(j);
}

static void
serve_enqueue(struct order *j)
{
    j->queued = true;
    DL_APPEND(j->h->orders, j);
    if (order_first(j) == j)
        serve_begin(j);
}

static void
route_task(struct order *j, const char *verb)
{
    struct err e = ERR_INIT;
    const struct http_req *req = j->req;
    const char *sig = http_query(req, "signal"), *started = http_query(req, "started");
    if ((!*verb || str_eq(verb, "limits")) && req->method == METHOD_PUT) {
        void *spec = NULL;
        if (json_decode_strict(j, &type_hand_task, SLICE(req->body, req->body_len),
                               BUDGET(REQUEST_MAX), &spec, &e) < 0 ||
            allow_task(j->h, j->alloc, j->task, spec, &e) < 0) {
            serve_fail(j, status_of(e.code), e.text);
            return;
        }
        if (*verb) {
            j->limits = spec;
            serve_inspect(j, on_limitable);
            return;
        }
        j->spec = spec;
        serve_enqueue(j);
    } else if (!*verb && req->method == METHOD_GET) {
        serve_inspect(j, on_state);
    } else if (!*verb && req->method == METHOD_DELETE &&
               (!started || num_parse_i64(started, &j->started) == 0)) {
        serve_enqueue(j);
    } else if (str_eq(verb, "wait") && req->method == METHOD_GET) {
        await_end(j);
    } else if (str_eq(verb, "exec") && req->method == METHOD_POST) {
        exec_serve(j->h, j->req, j->alloc, j->task); /* takes the request over */
    } else if ((str_eq(verb, "pause") || str_eq(verb, "resume")) && req->method == METHOD_POST) {
        j->pause = str_eq(verb, "pause") ? "pause" : "unpause";
        serve_inspect(j, on_pausable);
    } else if ((str_eq(verb, "signal") || str_eq(verb, "end")) && req->method == METHOD_POST &&
               sig && num_parse_i64(sig, &j->signal) == 0 && j->signal >= 0 && j->signal <= 64) {
        j->ends = str_eq(verb, "end");
        serve_inspect(j, on_signalable);
    } else {
        serve_fail(j, 405, "there is no such request");
    }
}

/* NULL: it is off. */
static struct hand *
hand_of(const struct hands *all, const char *engine)
{
    for (size_t i = 0; i < all->n; i++)
        if (str_eq(all->v[i].engine->name, engine))
            return &all->v[i];
    return NULL;
}

void
hand_serve(void *arg, struct http_req *req)
{
    static const char prefix[] = "/v1/";
    if (req->method == METHOD_GET && str_eq(req->path, "/v1/ping")) {
        http_reply(req, 200, "text/plain", "", 0);
        return;
    }
    struct order *j = mem_new(req, struct order);
    char *save = NULL, *rest = strncmp(req->path, prefix, strlen(prefix)) == 0
                                   ? mem_strdup(j, req->path + strlen(prefix))
                                   : mem_strdup(j, "");
    *j = (struct order){.h = hand_of(arg, strtok_r(rest, "/", &save)), .req = req};
    req->user = j;
    req->on_close = on_close;
    const char *what = strtok_r(NULL, "/", &save);
    if (j->h && str_eq(what, "info") && req->method == METHOD_GET) {
        serve_ask(j, "GET", "/version", NULL, on_version);
        return;
    }
    if (j->h && str_eq(what, "stay") && req->method == METHOD_GET) {
        j->stays = true;
        return;
    }
    j->alloc = strtok_r(NULL, "/", &save);
    if (j->h && str_eq(what, "network") && j->alloc && uuid_valid(j->alloc) &&
        !strtok_r(NULL, "/", &save)) {
        network_serve(j->h, req, j->alloc);
        return;
    }
    j->task = strtok_r(NULL, "/", &save);
    const char *verb = strtok_r(NULL, "/", &save);
    if (!j->h || !str_eq(what, "task") || !j->alloc || !j->task || !uuid_valid(j->alloc) ||
        !plain_task_name(j->task)) {
        serve_fail(j, 404, "there is no such request");
        return;
    }
    j->name = document_name(j, j->alloc, j->task);
    route_task(j, str_or(verb, ""));
}
