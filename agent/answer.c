/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: answers: JSON, errors, the index headers; lists with filter and pages.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <errno.h>
#include <string.h>

#include "agent/api.h"
#include "server/filter.h"
#include "agent/limits.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

static const char json_type[] = "application/json";

void
ask_fail(struct ask *a, int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = mem_vprintf(a, fmt, ap);
    va_end(ap);
    http_fail(a->req, status, "%s", text);
}

/* The status that answers an error of an RPC method: 500 unless it is coded (paddock-api(7)). */
static int
status_of(const struct err *e)
{
    switch (-e->code) {
    case ERR_NOT_FOUND: return 404;
    case ERR_FORBIDDEN:
    case ERR_POLICY: return 403;
    case ERR_LIMIT: return 413;
    case ERR_BUSY: return 429;
    case ERR_UNAVAILABLE: return 503;
    case ERR_UNSUPPORTED: return 400;
    case ERR_TIMEOUT: return 504;
    case ENOSPC: return 507;
    default: return 500;
    }
}

void
ask_error(struct ask *a, const struct err *e)
{
    int status = status_of(e);

    if (e->code == -ERR_NO_LEADER || e->code == -ERR_NOT_LEADER) {
        http_fail(a->req, 500, "No cluster leader");
        return;
    }
    if (status == 429 || status == 503)
        http_header_add(a->req, "Retry-After", "1");
    http_fail(a->req, status, "%s", str_or(e->text, err_name(e->code)));
}

void
ask_no_region(struct ask *a)
{
    ask_fail(a, 500, "No path to region");
}

static unsigned
flags_of(const struct ask *a)
{
    return JSON_HIDE_SECRETS | (a->pretty ? JSON_PRETTY : 0);
}

void
ask_text(struct ask *a, struct buf *b, const char *content_type)
{
    http_reply_buf(a->req, 200, content_type, b);
}

static void
send_json(struct ask *a, struct buf *b)
{
    if (buf_error(b) != 0) {
        buf_done(b);
        ask_fail(a, 413, "the answer is larger than %d MiB: ask for pages (per_page) or less (prefix)",
                 API_ANSWER_MAX >> 20);
        return;
    }
    if (a->pretty)
        buf_putc(b, '\n');
    ask_text(a, b, json_type);
}

void
ask_json(struct ask *a, const struct type *t, const void *obj)
{
    struct buf b = BUF_INIT(API_ANSWER_MAX);
    if (obj)
        json_encode(&b, t, obj, flags_of(a));
    else
        buf_puts(&b, "null");
    send_json(a, &b);
}

void
ask_value(struct ask *a, const struct value *v)
{
    struct buf b = BUF_INIT(API_ANSWER_MAX);
    json_encode_value(&b, v, a->pretty ? JSON_PRETTY : 0);
    send_json(a, &b);
}

void
ask_index(struct ask *a, uint64_t index)
{
    char t[24];
    snprintf(t, sizeof(t), "%" PRIu64, index);
    http_header_add(a->req, "X-Nomad-Index", t);
}

void
ask_meta(struct ask *a, const struct query_meta *m)
{
    char t[24];

    ask_index(a, m ? m->index : 0);
    snprintf(t, sizeof(t), "%" PRId64, m ? m->last_contact / NS_PER_MS : 0);
    http_header_add(a->req, "X-Nomad-LastContact", t);
    http_header_add(a->req, "X-Nomad-KnownLeader", m && m->known_leader ? "true" : "false");
    if (m && !str_empty(m->next_token))
        http_header_add(a->req, "X-Nomad-NextToken", m->next_token);
}

void
ask_object(struct ask *a, const struct type *t, const void *obj, const struct query_meta *m,
           const char *missing)
{
    ask_object_more(a, t, obj, m, missing, NULL);
}

void
ask_object_more(struct ask *a, const struct type *t, const void *obj, const struct query_meta *m,
                const char *missing, const char *more)
{
    struct buf b = BUF_INIT(API_ANSWER_MAX);

    ask_meta(a, m);
    if (!obj) {
        ask_fail(a, 404, "%s", missing);
        return;
    }
    json_encode(&b, t, obj, flags_of(a));
    if (more && !buf_error(&b)) { /* before the last brace; no object of ours is empty */
        b.len--;
        if (b.data[b.len - 1] == '\n')
            b.len--;
        buf_printf(&b, a->pretty ? ",\n    %s\n}" : ",%s}", more);
    }
    send_json(a, &b);
}

/* --- lists --- */

struct keys {
    const struct field *id, *ns, *create;
    enum list_order order;
};

static const char *
str_at(const struct field *f, const void *obj)
{
    return f ? str_or(*(const char *const *)((const char *)obj + f->offset), "") : "";
}

static uint64_t
u64_at(const struct field *f, const void *obj)
{
    return f ? *(const uint64_t *)((const char *)obj + f->offset) : 0;
}

static int
compare(const void *x, const void *y, void *arg)
{
    const void *a = *(void *const *)x, *b = *(void *const *)y;
    const struct keys *k = arg;
    int r = 0;

    if (k->order == LIST_BY_CREATE) {
        uint64_t ca = u64_at(k->create, a), cb = u64_at(k->create, b);
        r = ca < cb ? -1 : ca > cb;
    } else if (k->order == LIST_BY_NAMESPACE_ID) {
        r = strcmp(str_at(k->ns, a), str_at(k->ns, b));
    }
    return r ? r : strcmp(str_at(k->id, a), str_at(k->id, b));
}

static char *
token_of(const void *ctx, const struct keys *k, const void *obj)
{
    if (k->order == LIST_BY_CREATE)
        return mem_printf(ctx, "%" PRIu64 ".%s", u64_at(k->create, obj), str_at(k->id, obj));
    if (k->order == LIST_BY_NAMESPACE_ID)
        return mem_printf(ctx, "%s.%s", str_at(k->ns, obj), str_at(k->id, obj));
    return mem_strdup(ctx, str_at(k->id, obj));
}

/* Is obj before the place that the token names (which begins the page)? */
static bool
before_token(const struct keys *k, const void *obj, const char *token, bool reverse)
{
    int r;

    if (k->order == LIST_BY_CREATE) {
        const char *dot = strchr(token, '.');
        uint64_t at = 0;
        for (const char *p = token; p < dot && *p >= '0' && *p <= '9'; p++)
            at = at * 10 + (uint64_t)(*p - '0');
        uint64_t mine = u64_at(k->create, obj);
        r = mine < at ? -1 : mine > at;
        if (r == 0)
            r = strcmp(str_at(k->id, obj), dot ? dot + 1 : "");
    } else if (k->order == LIST_BY_NAMESPACE_ID) {
        const char *ns = str_at(k->ns, obj);
        size_t n = strlen(ns);
        r = strncmp(ns, token, n);
        if (r == 0 && token[n] != '.')
            r = -1;
        if (r == 0)
            r = strcmp(str_at(k->id, obj), token + n + 1);
    } else {
        r = strcmp(str_at(k->id, obj), token);
    }
    return reverse ? r > 0 : r < 0;
}

static struct filter *
list_filter(struct ask *a, const struct type *t, bool *ok)
{
    struct err e = ERR_INIT;

    *ok = true;
    if (str_empty(a->q->filter))
        return NULL;
    struct filter *f = filter_compile(a, t, a->q->filter, &e);
    if (!f) {
        *ok = false;
        ask_fail(a, 400, "failed to read filter expression: %s", e.text);
    }
    return f;
}

/* --- lists that come in pages --- */

struct listing {
    enum rpc_id id;
    struct list_request *r;
    void **v;
    size_t n, cap, memory;
    struct query_meta meta; /* of the first page */
    bool more;
};

/* A page is too large for a frame: a smaller one. */
static bool
too_large(struct ask *a, const struct err *e)
{
    struct listing *g = a->listing;
    if (e->code != -ERR_LIMIT || a->asked.per_page <= 1)
        return false;
    a->asked.per_page /= 4;
    if (a->asked.per_page == 0)
        a->asked.per_page = 1;
    ask_call(a, g->id, g->r, a->done);
    return true;
}

/* The server's rows are in order of ids: a page of that order begins where it is asked to. */
static bool
by_key(const struct ask *a, enum list_order order)
{
    return !a->q->reverse && (order != LIST_BY_CREATE || !str_empty(a->q->prefix));
}

void
ask_pages(struct ask *a, enum rpc_id id, struct list_request *r, enum list_order order,
          ask_done *done)
{
    a->listing = mem_new(a, struct listing);
    a->listing->id = id;
    a->listing->r = r;
    a->on_error = too_large;
    a->asked.per_page = API_LIST_PAGE;
    if (by_key(a, order)) {
        a->asked.next_token = a->q->next_token;
        if (a->q->per_page > 0 && a->q->per_page < API_LIST_PAGE && str_empty(a->q->filter))
            a->asked.per_page = a->q->per_page + 1; /* and the one that begins the next page */
    }
    ask_call(a, id, r, done);
}

/* Adds a page. True: there is more to come, and it was asked for. */
static bool
add_page(struct ask *a, struct list *l, const struct query_meta **m, struct filter *f)
{
    struct listing *g = a->listing;
    if (g->n == 0 && g->memory == 0)
        g->meta = **m;
    g->meta.next_token = NULL;
    const char *next = (*m)->next_token;
    void *resp = (void *)(uintptr_t)l->resp;
    g->memory += talloc_total_size(resp);
    talloc_steal(g, resp);
    for (size_t i = 0; i < l->n; i++) {
        if (f && !filter_match(f, l->v[i]))
            continue;
        if (g->n == g->cap) {
            g->cap = g->cap ? g->cap * 2 : 256;
            mem_resize(g, g->v, void *, g->cap);
        }
        g->v[g->n++] = l->v[i];
    }
    bool enough = by_key(a, l->order) && a->q->per_page > 0 && g->n > (size_t)a->q->per_page;
    if (str_empty(next) || enough) {
        l->v = g->v;
        l->n = g->n;
        *m = &g->meta;
        return false;
    }
    if (g->memory > API_LIST_MAX) {
        ask_fail(a, 413, "the list takes more than %d MiB: ask for less (prefix)%s", API_LIST_MAX >> 20,
                 by_key(a, l->order) ? " or for pages (per_page)" : "");
        return true;
    }
    a->asked.next_token = next; /* in `resp`, which is ours now */
    a->asked.min_query_index = 0;
    ask_call(a, g->id, g->r, a->done);
    return true;
}

void
ask_list(struct ask *a, const struct list *l, const struct query_meta *m)
{
    const struct type *t = l->type;
    struct list all = *l;
    struct keys k = {type_field(t, "ID", 2), type_field(t, "Namespace", 9),
                     type_field(t, "CreateIndex", 11), l->order};
    size_t per_page = (size_t)a->q->per_page, n = 0;
    bool ok;

    if (k.order == LIST_BY_CREATE && !str_empty(a->q->prefix))
        k.order = LIST_BY_ID;
    struct filter *f = list_filter(a, t, &ok);
    if (!ok)
        return;
    if (a->listing && m && l->resp && add_page(a, &all, &m, f))
        return;
    struct query_meta meta = m ? *m : (struct query_meta){0};
    void **v = mem_array(a, void *, all.n);
    for (size_t i = 0; i < all.n; i++)
        if (a->listing || !f || filter_match(f, all.v[i]))
            v[n++] = all.v[i];
    qsort_r(v, n, sizeof(*v), compare, &k);
    for (size_t i = 0; a->q->reverse && i < n / 2; i++) {
        void *x = v[i];
        v[i] = v[n - 1 - i];
        v[n - 1 - i] = x;
    }
    size_t first = 0;
    while (!str_empty(a->q->next_token) && first < n &&
           before_token(&k, v[first], a->q->next_token, a->q->reverse))
        first++;
    size_t count = n - first;
    if (per_page && count > per_page) {
        count = per_page;
        meta.next_token = token_of(a, &k, v[first + count]);
    }
    ask_meta(a, &meta);
    struct buf b = BUF_INIT(API_ANSWER_MAX);
    json_encode_list(&b, t, (const void *const *)(v + first), count, flags_of(a));
    send_json(a, &b);
}
