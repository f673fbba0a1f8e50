/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: lists. The server makes them, with filter, order and pages, in parts of JSON that take it a
 * few milliseconds each; here they are put together. A short list is answered whole; a longer one is
 * streamed, each part asked for when the reader has taken the one before.
 */
#include "agent/api/api.h"
#include "agent/limits.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/rpc/filter.h"

struct listing {
    enum rpc_id id;
    const void *req;
    struct query_meta meta; /* of the first part; NextToken of the last */
    struct buf held;        /* not written yet */
    int64_t wanted;         /* rows of the page that are still to come */
    bool rows, streaming, complete;
};

static int
listing_free(struct listing *g)
{
    buf_done(&g->held);
    return 0;
}

/* False: the filter is malformed, which was answered. */
static bool
filter_ok(struct ask *a, const struct type *whole)
{
    struct err e = ERR_INIT;

    if (str_empty(a->list.filter) || filter_compile(a, whole, a->list.filter, &e) != NULL)
        return true;
    ask_fail(a, 400, "failed to read filter expression: %s", e.text);
    return false;
}

static void on_part(struct ask *a, const void *resp);

static void
ask_part(struct ask *a)
{
    ask_call(a, a->listing->id, a->listing->req, on_part);
}

static void
put_end(struct listing *g, bool pretty)
{
    if (!g->rows)
        buf_putc(&g->held, '[');
    else if (pretty)
        buf_putc(&g->held, '\n');
    buf_puts(&g->held, pretty ? "]\n" : "]");
    g->complete = true;
}

/* --- a list that is streamed --- */

/* Writes what is held, as fast as it is read; then asks for more, or ends. */
static void
pump(void *user)
{
    struct ask *a = user;
    struct listing *g = a->listing;

    if (a->call)
        return;
    if (http_closed(a->req) || a->req->method == METHOD_HEAD) {
        http_stream_end(a->req);
        return;
    }
    if (g->held.len > 0 && http_stream_queued(a->req) >= STREAM_LOW_WATER)
        return; /* until it calls */
    http_stream_write_buf(a->req, &g->held);
    if (g->complete)
        http_stream_end(a->req);
    else
        ask_part(a);
}

static void
gone(struct ask *a)
{
    http_stream_end(a->req);
}

/* True: answered. A list that has begun is cut short, so that its reader knows. */
static bool
on_error(struct ask *a, const struct err *e)
{
    (void)e;
    if (!a->listing->streaming)
        return false;
    http_stream_cut(a->req);
    return true;
}

static void
stream(struct ask *a)
{
    a->listing->streaming = true;
    a->gone = gone;
    struct query_meta m = a->listing->meta;
    m.next_token = NULL;
    ask_meta(a, &m);
    http_stream_start(a->req, 200, "application/json", pump);
    pump(a);
}

/* --- its parts --- */

static void
take_rows(struct listing *g, const struct query_meta *m)
{
    if (m->rows.n == 0)
        return;
    size_t at = g->held.len;
    buf_put(&g->held, m->rows.v, m->rows.n);
    if (!g->rows && !buf_error(&g->held))
        g->held.data[at] = '['; /* was the comma before the first */
    g->rows = true;
}

static void
finish(struct ask *a)
{
    struct listing *g = a->listing;

    put_end(g, a->pretty);
    if (g->streaming) {
        pump(a);
        return;
    }
    ask_meta(a, &g->meta);
    ask_text(a, &g->held, "application/json");
}

static void
on_part(struct ask *a, const void *resp)
{
    struct listing *g = a->listing;
    const struct query_meta *m = *(void *const *)type_member(rpc_method_by_id(g->id)->resp, resp, "Meta");
    bool paged = a->list.per_page > 0;

    if (g->meta.index == 0)
        g->meta = (struct query_meta){
            .index = m->index, .last_contact = m->last_contact, .known_leader = m->known_leader};
    take_rows(g, m);
    g->meta.next_token = mem_strdup(g, m->next_token);
    a->asked.next_token = g->meta.next_token;
    a->env.min_index = 0; /* the other parts are there */
    g->wanted -= (int64_t)m->n;
    a->asked.per_page = !paged ? 0 : g->wanted > 0 ? g->wanted : -1;
    if (str_empty(m->next_token) || (paged && m->full))
        finish(a);
    else if (paged && g->held.len > API_ANSWER_MAX)
        ask_fail(a, 413, "the page is larger than %d MiB: ask for smaller ones (per_page)",
                 API_ANSWER_MAX >> 20);
    else if (g->streaming)
        pump(a);
    else if (!paged && g->held.len >= API_LIST_WHOLE)
        stream(a);
    else
        ask_part(a);
}

void
ask_list(struct ask *a, enum rpc_id id, void *req)
{
    struct listing *g = mem_new(a, struct listing);
    const struct rpc_method *m = rpc_method_by_id(id);

    if (!filter_ok(a, m->of))
        return;
    *g = (struct listing){.id = id, .req = req, .wanted = a->list.per_page};
    buf_init(&g->held, SIZE_MAX);
    talloc_set_destructor(g, listing_free);
    a->listing = g;
    a->on_error = on_error;
    a->asked = a->list;
    a->asked.part = a->pretty ? 2 : 1;
    *(struct list_options **)type_member(m->req, req, "List") = &a->asked;
    ask_part(a);
}
