/* SPDX-License-Identifier: Apache-2.0
 *
 * Event.Read: the events after an index, as lines of JSON. A reader follows the log by asking again
 * and again, and waits as any blocking query does: a slow one costs nothing here, and rights are
 * asked for each time.
 */
#include "acl/acl.h"
#include "api/filter/filter.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/call/caller.h"
#include "server/call/method.h"
#include "server/events/ring.h"

struct event_reading {
    struct read *r;
    const struct event_read_request *req;
    const struct filter *filter; /* NULL: none */
    struct buf *out;
    void *tmp;
    size_t lines;
};

/* --- rights --- */

static bool
event_allowed(const struct read *r, const struct event_topic *t, const char *ns, const char *path)
{
    const struct caller *c = read_caller(r);
    struct acl_need need;
    struct err e = ERR_INIT;
    int rc = acl_need_parse(t->need, &need, &e);

    ASSERT(rc == 0);
    bool of_ns = need.kind == ACL_NAMESPACE || need.kind == ACL_VARIABLE;
    return c == NULL || acl_allows(c->rights, &need, of_ns ? ns : NULL, path);
}

static int
may_read(const struct read *r, const struct event_read_request *req, struct err *e)
{
    static const struct event_topic any = {"*", "management"};

    for (size_t i = 0; i < req->topics.n; i++) {
        const char *name = mem_strndup(r->ctx, req->topics.v[i], strcspn(req->topics.v[i], ":"));
        const struct event_topic *t = event_topic(name);
        if (!event_allowed(r, t != NULL ? t : &any, read_ns(r), NULL))
            return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    }
    return 0;
}

/* --- reading --- */

static bool
event_takes(const struct event_reading *x, const struct event_topic *t, const struct event_head *h)
{
    const char *ns = read_ns(x->r), *path = str_eq(t->need, "variable:list") ? h->key : NULL;
    bool wanted = false;

    if (!str_empty(h->namespace) && !str_eq(ns, NS_ALL) && !str_eq(ns, h->namespace))
        return false;
    for (size_t i = 0; i < x->req->topics.n && !wanted; i++)
        wanted = event_matches(h, x->req->topics.v[i]);
    if (!wanted || (x->req->types.n > 0 && !str_list_has(&x->req->types, h->type)))
        return false;
    if (x->filter != NULL && !filter_match(x->filter, h))
        return false;
    return event_allowed(x->r, t, str_or(h->namespace, NS_DEFAULT), path);
}

/* The line of an entry; without payloads it always fits. */
static void
write_line(struct event_reading *x, struct event_batch *b, bool whole)
{
    size_t began = x->out->len, n = 0;

    for (size_t i = 0; i < b->rows->n; i++) {
        struct event_head h;
        const struct event_topic *t = event_head(x->tmp, b, i, &h);
        if (t == NULL || !event_takes(x, t, &h))
            continue;
        if (n++ == 0)
            buf_printf(x->out, "{\"Index\":%llu,\"Events\":[", (unsigned long long)b->index);
        else
            buf_putc(x->out, ',');
        event_write(x->out, b, i, &h, whole);
        if (whole && x->out->len - began > EVENTS_LINE_MAX) {
            x->out->len = began;
            write_line(x, b, false);
            return;
        }
    }
    if (n == 0)
        return;
    buf_puts(x->out, "]}\n");
    x->lines++;
}

/* Returns the index of the last entry that was looked at. */
static uint64_t
write_lines(struct event_reading *x, const struct events_part *p)
{
    for (size_t i = 0; i < p->n; i++) {
        auto_mem void *tmp = mem_ctx("events");
        x->tmp = tmp;
        write_line(x, p->v[i], true);
        if (x->out->len >= EVENTS_PART_BYTES && i + 1 < p->n)
            return p->v[i]->index;
    }
    bool more = p->n == EVENTS_PART_ENTRIES;
    return more ? p->v[p->n - 1]->index : p->last;
}

static int
event_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct event_read_request *req = r->req;
    struct event_reading x = {.r = r, .req = req};
    struct event_read_response *resp;
    struct events_part p;

    (void)t;
    if (may_read(r, req, e) < 0)
        return e->code;
    if (!server_cfg(r->s)->agent->enable_event_broker.v)
        return err_set(e, -ERR_UNAVAILABLE,
                       "this server keeps no events: its configuration has "
                       "server.enable_event_broker = false");
    if (!str_empty(req->filter)) {
        x.filter = filter_compile(r->ctx, &type_event_head, req->filter, e);
        if (x.filter == NULL)
            return err_prefix(e, "failed to read filter expression");
    }
    x.out = read_buf(r, RPC_FRAME_MAX - EVENTS_PART_BYTES, 0);
    events_after(server_events(r->s), req->index, &p);
    resp = read_resp(r);
    resp->gone = req->index < p.base && !req->first;
    resp->index = resp->gone ? p.base : p.last;
    if (!resp->gone)
        resp->index = write_lines(&x, &p);
    if (resp->index < req->index) /* another server was ahead of this one */
        resp->index = req->index;
    events_part_done(&p);
    if (buf_error(x.out) != 0)
        return err_set(e, -ERR_LIMIT, "the events of an entry of the log are too large");
    r->meta->rows = (struct bytes){x.out->data, x.out->len};
    r->meta->n = x.lines;
    r->seen = p.last; /* the state may be ahead */
    r->news = resp->gone || x.lines > 0 || resp->index < p.last ||
              resp->index - req->index > EVENTS_PART_ENTRIES;
    return 0;
}

const struct read_row read_event_read = {.tables = STATE_BIT(STATE_TABLES) - 1, .run = event_run};
