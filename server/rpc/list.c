/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists: filter, pages, and parts as JSON. Rows come in order; each is seen, taken or not, and
 * added. A list is answered in one of two forms: its rows (what is asked within), or a part of it
 * as JSON, which ends after LIST_PART_NS, _BYTES or _ROWS of work: NextToken says where the next
 * one begins. Each part is of its own snapshot: no row of a later part is older than the index of
 * the first. Runs on worker threads.
 */
#include <inttypes.h>
#include <string.h>

#include "api/filter/filter.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/call/method.h"

enum {
    ROW_ROOM = 64 << 10, /* of a frame, for what is beside the rows */
    ROW_BYTES = 8 << 10  /* of a part, for the row that ends it */
};

struct rows {
    struct read *r;
    void *row_ctx; /* of the row that is made, in a part */
    const struct type *type;
    const struct projection *project; /* NULL: rows are whole */
    struct lean *job;                 /* of allocations, where they are lean */
    struct filter *filter;            /* NULL: none */
    uint32_t id_at, ns_at, create_at, index_at; /* members of what is listed */
    uint64_t max, seen;
    int64_t end_ns;
    const char *whole; /* that was seen last */
    bool over, too_large;
    struct buf *json;
    struct object_list rows;
    void *ret; /* where they belong in the response */
};

static uint32_t
list_offset(const struct type *t, const char *wire)
{
    const struct field *f = type_field(t, wire, strlen(wire));
    return f != NULL ? f->offset : 0;
}

/* The member that rows are known by. */
static const char *
list_id(const struct type *whole)
{
    static const char *const ids[] = {"ID", "AccessorID", "Path", "KeyID"};

    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        if (type_field(whole, ids[i], strlen(ids[i])) != NULL)
            return ids[i];
    return "Name";
}

static const char *
text_at(const struct rows *l, uint32_t at)
{
    return *(const char *const *)(const void *)(l->whole + at);
}

static uint64_t
number_at(const struct rows *l, uint32_t at)
{
    return *(const uint64_t *)(const void *)(l->whole + at);
}

/* Prefix of ids: hex digits, an even number of them (hyphens aside). */
static int
check_prefix(const char *prefix, struct err *e)
{
    size_t n = 0;

    for (const char *s = str_or(prefix, ""); *s != '\0'; s++) {
        if (*s == '-')
            continue;
        if (strchr("0123456789abcdefABCDEF", *s) == NULL)
            return err_set(e, -ERR_INVALID, "prefix '%.64s' is not part of an id", prefix);
        n++;
    }
    if (n % 2 != 0)
        return err_set(e, -ERR_INVALID, "Input (without hyphens) must be even length");
    return 0;
}

/* The list is the first member of the response. Fails when prefix or filter are malformed. */
static int
rows_begin(struct rows *l, struct read *r, struct err *e)
{
    const struct type *whole = r->method->of;
    const struct field *list = &r->method->resp->fields[0];

    if (r->row->no_prefix && !str_empty(r->list->prefix))
        return err_set(e, -ERR_UNSUPPORTED, "prefix argument not allowed");
    if (r->row->hex && check_prefix(r->list->prefix, e) < 0)
        return e->code;
    *l = (struct rows){.r = r, .row_ctx = r->ctx, .type = list->sub};
    l->id_at = list_offset(whole, list_id(whole));
    l->ns_at = list_offset(whole, "Namespace");
    l->create_at = list_offset(whole, "CreateIndex");
    l->index_at = list_offset(whole, "ModifyIndex");
    l->max = r->list->per_page > 0 ? (uint64_t)r->list->per_page
                                   : r->list->per_page < 0 ? 0 : UINT64_MAX;
    l->end_ns = env_mono_ns(server_env(r->s)) + LIST_PART_NS;
    l->json =
        read_buf(r, RPC_FRAME_MAX - ROW_ROOM, r->list->part != 0 ? LIST_PART_BYTES + ROW_BYTES : 0);
    r->lean = read_lean(r, list->sub, whole);
    if (r->lean != NULL && whole == &type_allocation)
        l->job = lean_new(r->ctx, &type_job, &type_job, "Type Version CreateIndex", "");
    if (list->sub != whole)
        l->project = projection_new(r->ctx, list->sub, whole);
    l->ret = (char *)read_resp(r) + list->offset;
    if (str_empty(r->list->filter))
        return 0;
    l->filter = filter_compile(r->ctx, whole, r->list->filter, e);
    return l->filter != NULL ? 0 : err_prefix(e, "failed to read filter expression");
}

/* For the next row, and what is made of it. */
static void *
rows_ctx(struct rows *l)
{
    if (l->r->list->part == 0)
        return l->r->ctx;
    if (l->row_ctx != l->r->ctx)
        talloc_free(l->row_ctx);
    return l->row_ctx = talloc_new(l->r->ctx);
}

/* Ends the page or part, and notes where the next one begins. */
static void
end_before_this(struct rows *l)
{
    const struct read *r = l->r;
    const char *id = text_at(l, l->id_at);

    if (r->row->order == ORDER_NS)
        r->meta->next_token = mem_printf(r->meta, "%s.%s", text_at(l, l->ns_at), id);
    else if (r->row->order == ORDER_CREATE && str_empty(r->list->prefix))
        r->meta->next_token = mem_printf(r->meta, "%" PRIu64 ".%s", number_at(l, l->create_at), id);
    else
        r->meta->next_token = mem_strdup(r->meta, id);
    l->over = true;
}

/* False: the part or page is over. */
static bool
rows_see(struct rows *l, const void *whole)
{
    l->whole = whole;
    bool long_enough = l->json->len >= LIST_PART_BYTES || l->seen >= LIST_PART_ROWS ||
                       env_mono_ns(server_env(l->r->s)) > l->end_ns;
    if (!l->over && l->r->list->part != 0 && l->seen > 0 && long_enough)
        end_before_this(l);
    l->seen++;
    return !l->over;
}

static bool
rows_take(struct rows *l, const void *whole)
{
    const struct read_row *row = l->r->row;

    if (l->over || (l->ns_at != 0 && !read_ns_matches(l->r, text_at(l, l->ns_at))) ||
        !call_may_name(l->r->call, text_at(l, l->id_at)) ||
        (row->takes != NULL && !row->takes(l->r, whole)) ||
        (l->filter != NULL && !filter_match(l->filter, whole)))
        return false;
    if (l->r->meta->n < l->max)
        return true;
    end_before_this(l);
    l->r->meta->full = true;
    return false;
}

static void
rows_add(struct rows *l, struct state_txn *t, const void *row)
{
    struct query_meta *m = l->r->meta;

    if (l->r->list->part == 0) {
        list_add(l->r->ctx, l->rows, (void *)(uintptr_t)row);
    } else {
        unsigned pretty = l->r->list->part == 2 ? JSON_PRETTY : 0;
        size_t before = l->json->len;
        if (l->r->lean != NULL)
            lean_write_row(l->json, l->r->lean, row, JSON_HIDE_SECRETS | pretty);
        else
            json_encode_row(l->json, l->type, row, JSON_HIDE_SECRETS | pretty);
        if (buf_error(l->json) == -ERR_CORRUPT)
            state_damaged(t, l->type->name);
        if (buf_error(l->json) != 0) { /* what was written of it goes again */
            l->json->error = 0;
            l->json->len = before;
            l->too_large = m->n == 0;
            end_before_this(l);
            return;
        }
    }
    m->n++;
    read_saw(l->r, text_at(l, l->id_at), number_at(l, l->index_at));
}

static int
rows_end(struct rows *l, struct state_txn *t, struct err *e)
{
    struct read *r = l->r;
    struct query_meta *m = r->meta;

    if (l->too_large) {
        return err_set(e, -ERR_LIMIT, "'%s' alone is larger than %d MiB", m->next_token,
                       RPC_FRAME_MAX >> 20);
    }
    if (r->list->part != 0)
        m->rows = (struct bytes){l->json->data, l->json->len};
    memcpy(l->ret, &l->rows, sizeof(l->rows));
    r->index = state_index(t, r->row->tables);
    if (!str_empty(m->next_token))
        r->print = 0; /* there is more than was seen */
    else if (r->print == 0)
        r->print = 1;
    return 0;
}

int
read_list(struct read *r, struct state_txn *t, struct err *e)
{
    const struct read_row *row = r->row;
    bool allocs = r->method->of == &type_allocation;
    struct rows l;

    if (rows_begin(&l, r, e) < 0)
        return e->code;
    struct state_iter *it = read_rows(r, t);
    state_iter_seek(it, r->list->next_token, r->list->reverse);
    for (;;) {
        void *ctx = rows_ctx(&l), *whole;
        whole = state_next_lean(it, ctx, r->lean);
        if (whole == NULL || !rows_see(&l, whole))
            break;
        if (l.job != NULL)
            state_alloc_job_lean(t, whole, l.job);
        else if (allocs)
            state_alloc_job(t, whole);
        if (!rows_take(&l, whole))
            continue;
        void *one = l.project != NULL ? codec_project(whole, l.project, whole) : whole;
        if (row->finish != NULL)
            row->finish(r, t, whole, one);
        rows_add(&l, t, one);
    }
    return rows_end(&l, t, e);
}
