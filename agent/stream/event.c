/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: the event stream. This agent asks a server for the next events whenever the reader has
 * taken the last: any server, so a stream outlives leaders and, at an agent that is none, servers.
 * A line has the events of one entry of the log; a heartbeat comes where nothing happens.
 * event_ask() asks, event_come() takes the answer, event_pull() writes it.
 */
#include <string.h>

#include "agent/limits.h"
#include "agent/stream/stream.h"
#include "api/filter/filter.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

enum { PIECE = 1 << 20 }; /* bytes written at once: a line may be larger than is queued */

struct event_stream {
    struct event_read_request req;
    struct buf held;     /* not written yet, */
    size_t written;      /* but for that many bytes of it */
    struct timer *retry; /* no server answered */
    int64_t silent_ms;   /* since then; 0: servers answer */
    int64_t said_ms;     /* the last line */
    bool begun, over;
};

static void event_ask(struct request *a);

static int
event_stream_free(struct event_stream *x)
{
    timer_stop(x->retry);
    buf_done(&x->held);
    return 0;
}

static void
event_end(struct request *a)
{
    struct event_stream *x = a->user;

    timer_stop(TAKE(x->retry));
    http_stream_end(a->req);
}

/* Writes what is held as fast as it is read, then asks for more. */
static void
event_pull(void *user)
{
    struct request *a = user;
    struct event_stream *x = a->user;

    if (a->call || x->retry != NULL)
        return;
    if (http_closed(a->req) || a->req->method == METHOD_HEAD) {
        event_end(a);
        return;
    }
    while (x->written < x->held.len) {
        size_t left = x->held.len - x->written, n = left < PIECE ? left : PIECE;
        if (http_stream_queued(a->req) >= STREAM_LOW_WATER)
            return; /* until it calls */
        http_stream_write(a->req, x->held.data + x->written, n);
        x->written += n;
    }
    buf_done(&x->held);
    buf_init(&x->held, SIZE_MAX);
    x->written = 0;
    if (x->over)
        event_end(a);
    else if (http_stream_queued(a->req) < STREAM_LOW_WATER)
        event_ask(a);
}

/* The last line says why, and where another stream may go on. */
static void
event_over(struct request *a, uint64_t index, const char *why)
{
    struct event_stream *x = a->user;
    const struct event_line line = {.index = index, .error = why};

    json_encode(&x->held, &type_event_line, &line, 0);
    buf_putc(&x->held, '\n');
    x->over = true;
    event_pull(a);
}

static void
event_again(void *arg)
{
    struct request *a = arg;
    struct event_stream *x = a->user;

    x->retry = NULL;
    event_ask(a);
}

/* True: answered, or asked again. */
static bool
event_failed(struct request *a, const struct err *e)
{
    struct event_stream *x = a->user;
    int64_t now = loop_now_ms(a->api->loop);
    bool refused = e->code == -ERR_FORBIDDEN || e->code == -ERR_INVALID || e->code == -ERR_LIMIT ||
                   e->code == -ERR_UNSUPPORTED;

    if (!x->begun)
        return false;
    if (http_closed(a->req)) {
        event_end(a);
        return true;
    }
    if (x->silent_ms == 0)
        x->silent_ms = now;
    if (refused || now - x->silent_ms > API_EVENT_SILENT_MS) {
        event_over(a, 0, str_or(e->text, err_name(e->code)));
        return true;
    }
    x->retry = timer_start(a->api->loop, API_EVENT_RETRY_MS, event_again, a);
    return true;
}

static void
event_come(struct request *a, const void *resp)
{
    const struct event_read_response *r = resp;
    struct event_stream *x = a->user;
    int64_t now = loop_now_ms(a->api->loop);

    if (!x->begun) {
        reply_meta(a, r->meta);
        http_header_add(a->req, "Cache-Control", "no-cache");
        a->req->ends_well = true;
        http_stream_start(a->req, 200, "application/json", event_pull);
        buf_puts(&x->held, "{}\n");
        x->said_ms = now;
    }
    x->begun = true;
    x->silent_ms = 0;
    if (r->gone) {
        unsigned long long had = x->req.index, from = r->index + 1;
        event_over(a, from,
                   mem_printf(a, "events after index %llu are not kept any more: resume at %llu",
                              had, from));
        return;
    }
    x->req.index = r->index;
    x->req.first = false;
    if (r->meta->rows.n > 0)
        buf_put(&x->held, r->meta->rows.v, r->meta->rows.n);
    else if (now - x->said_ms >= API_EVENT_BEAT_MS)
        buf_puts(&x->held, "{}\n");
    if (x->held.len > 0)
        x->said_ms = now;
    event_pull(a);
}

static void
event_ask(struct request *a)
{
    struct event_stream *x = a->user;
    int64_t left = x->said_ms + API_EVENT_BEAT_MS - loop_now_ms(a->api->loop);

    a->env.min_index = x->begun; /* waits, but for the first time */
    a->env.wait = (left > 1 ? left : 1) * NS_PER_MS;
    a->env.stale = true;
    call_server(a, RPC_EVENT_READ, &x->req, event_come);
}

/* --- the request --- */

/* False: answered. */
static bool
take_query(struct request *a, struct event_read_request *req)
{
    for (size_t i = 0; i < a->req->n_query; i++) {
        const struct http_pair *q = &a->req->query[i];
        const char *colon = strchr(q->v, ':');
        if (str_eq(q->k, "topic")) {
            if (colon != NULL && strchr(colon + 1, ':') != NULL) {
                reply_fail(a, 400, "Invalid key value pair for topic, topic: %.200s", q->v);
                return false;
            }
            list_add(a, req->topics, mem_strdup(a, q->v));
        } else if (str_eq(q->k, "type")) {
            list_add(a, req->types, mem_strdup(a, q->v));
        }
    }
    if (req->topics.n == 0)
        list_add(a, req->topics, "*");
    return true;
}

static void
event_stream(struct request *a)
{
    struct event_stream *x = mem_new(a, struct event_stream);
    struct err e = ERR_INIT;

    a->user = x;
    talloc_set_destructor(x, event_stream_free);
    buf_init(&x->held, SIZE_MAX);
    if (!take_query(a, &x->req))
        return;
    x->req.filter = mem_strdup(a, a->list.filter);
    x->req.index = a->env.min_index > 0 ? a->env.min_index - 1 : 0;
    x->req.first = true;
    if (codec_check(&type_event_read_request, &x->req, &e) < 0) {
        reply_fail(a, 400, "%s", e.text);
        return;
    }
    if (!str_empty(x->req.filter) && !filter_compile(a, &type_event_head, x->req.filter, &e)) {
        reply_fail(a, 400, "failed to read filter expression: %s", e.text);
        return;
    }
    a->on_error = event_failed;
    a->gone = event_end;
    event_ask(a);
}

const struct route routes_stream[] = {
    {VERB_GET, "/v1/event/stream", NULL, event_stream, RPC_EVENT_READ, BY_SERVER},
    {VERB_GET | VERB_LONG, "/v1/agent/monitor", NULL, monitor_get, 0, "agent:read"},
    ROUTES_END,
};
