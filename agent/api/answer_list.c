/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: answers in parts, and lists. The server makes lists, with filter, order and pages, in
 * parts of JSON that take it a few milliseconds each; here they are put together.
 */
#include "agent/api/api.h"
#include "agent/limits.h"
#include "api/filter/filter.h"
#include "common/mem.h"
#include "common/str.h"

enum { PIECE = 1 << 20 }; /* bytes written at once: a row may be larger than is queued */

struct listing {
    struct parts parts;
    enum rpc_id id;
    const void *req;
    int64_t wanted;         /* rows of the page that are still to come */
    bool rows;
};

static struct listing *
listing_of(struct request *a)
{
    return (struct listing *)(void *)a->parts;
}

/* False: the filter is malformed, which was answered. */
static bool
filter_ok(struct request *a, const struct type *whole)
{
    struct err e = ERR_INIT;

    if (str_empty(a->list.filter) || filter_compile(a, whole, a->list.filter, &e) != NULL)
        return true;
    reply_fail(a, 400, "failed to read filter expression: %s", e.text);
    return false;
}

/* --- parts --- */

/* Writes what is held, as fast as it is read; then asks for more, or ends. */
static void
answer_list_pump(void *user)
{
    struct request *a = user;
    struct parts *p = a->parts;

    if (a->call)
        return;
    if (http_closed(a->req) || a->req->method == METHOD_HEAD) {
        http_stream_end(a->req);
        return;
    }
    while (p->held.len > 0) {
        if (http_stream_queued(a->req) >= STREAM_LOW_WATER)
            return; /* until it calls */
        size_t left = p->held.len - p->written;
        if (p->written == 0 && left <= PIECE) {
            http_stream_write_buf(a->req, &p->held);
            break;
        }
        http_stream_write(a->req, p->held.data + p->written, left < PIECE ? left : PIECE);
        p->written += left < PIECE ? left : PIECE;
        if (p->written < p->held.len)
            continue;
        buf_done(&p->held);
        buf_init(&p->held, SIZE_MAX);
        p->written = 0;
    }
    if (p->complete)
        http_stream_end(a->req);
    else
        p->ask(a);
}

static void
answer_list_gone(struct request *a)
{
    http_stream_end(a->req);
}

/* True: answered. An answer that has begun is cut short, so that its reader knows. */
static bool
on_error(struct request *a, const struct err *e)
{
    (void)e;
    if (!a->parts->streaming)
        return false;
    http_stream_cut(a->req);
    return true;
}

static void
answer_list_stream(struct request *a)
{
    a->parts->streaming = true;
    a->gone = answer_list_gone;
    struct query_meta m = a->parts->meta;
    m.next_token = NULL;
    reply_meta(a, &m);
    http_stream_start(a->req, 200, str_or(a->stream_type, "application/json"), answer_list_pump);
    answer_list_pump(a);
}

static int
parts_free(struct parts *p)
{
    buf_done(&p->held);
    return 0;
}

void
parts_begin(struct request *a, struct parts *p)
{
    buf_init(&p->held, SIZE_MAX);
    talloc_set_destructor(p, parts_free);
    a->parts = p;
    a->on_error = on_error;
    p->ask(a);
}

void
parts_more(struct request *a)
{
    if (a->parts->streaming)
        answer_list_pump(a);
    else if (a->parts->held.len >= API_LIST_WHOLE)
        answer_list_stream(a);
    else
        a->parts->ask(a);
}

void
parts_end(struct request *a)
{
    struct parts *p = a->parts;

    p->complete = true;
    if (p->streaming) {
        answer_list_pump(a);
    } else if (p->held.len > API_ANSWER_MAX) {
        /* one part, which is larger than is queued at once */
        answer_list_stream(a);
    } else {
        reply_meta(a, &p->meta);
        reply_text(a, &p->held, str_or(a->stream_type, "application/json"));
    }
}

/* --- its parts --- */

static void
take_rows(struct listing *g, const struct query_meta *m)
{
    struct buf *held = &g->parts.held;

    if (m->rows.n == 0)
        return;
    size_t at = held->len;
    buf_put(held, m->rows.v, m->rows.n);
    if (!g->rows && !buf_error(held))
        held->data[at] = '['; /* was the comma before the first */
    g->rows = true;
}

static void
answer_list_finish(struct request *a)
{
    struct listing *g = listing_of(a);

    if (!g->rows)
        buf_putc(&g->parts.held, '[');
    else if (a->pretty)
        buf_putc(&g->parts.held, '\n');
    buf_puts(&g->parts.held, a->pretty ? "]\n" : "]");
    parts_end(a);
}

static void
on_part(struct request *a, const void *resp)
{
    struct listing *g = listing_of(a);
    struct parts *p = a->parts;
    const struct query_meta *m =
        *(void *const *)type_member(rpc_method_by_id(g->id)->resp, resp, "Meta");
    bool paged = a->list.per_page > 0;

    if (p->meta.index == 0)
        p->meta = (struct query_meta){
            .index = m->index, .last_contact = m->last_contact, .known_leader = m->known_leader};
    take_rows(g, m);
    p->meta.next_token = mem_strdup(g, m->next_token);
    a->asked.next_token = p->meta.next_token;
    a->env.min_index = 0; /* the other parts are there */
    g->wanted -= (int64_t)m->n;
    a->asked.per_page = !paged ? 0 : g->wanted > 0 ? g->wanted : -1;
    if (str_empty(m->next_token) || (paged && m->full))
        answer_list_finish(a);
    else if (paged && p->held.len > API_ANSWER_MAX)
        reply_fail(a, 413, "the page is larger than %d MiB: ask for smaller ones (per_page)",
                   API_ANSWER_MAX >> 20);
    else if (paged)
        p->ask(a);
    else
        parts_more(a);
}

static void
ask_part(struct request *a)
{
    const struct listing *g = listing_of(a);

    call_server(a, g->id, g->req, on_part);
}

void
reply_list(struct request *a, enum rpc_id id, void *req)
{
    struct listing *g = mem_new(a, struct listing);
    const struct rpc_method *m = rpc_method_by_id(id);

    if (!filter_ok(a, m->of))
        return;
    *g = (struct listing){
        .parts = {.ask = ask_part}, .id = id, .req = req, .wanted = a->list.per_page};
    a->asked = a->list;
    a->asked.part = a->pretty ? 2 : 1;
    *(struct list_options **)type_member(m->req, req, "List") = &a->asked;
    parts_begin(a, &g->parts);
}
