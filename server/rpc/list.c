/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists: filter, pages, and parts as JSON (see endpoint_int.h). Runs on worker threads.
 */
#include <inttypes.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "server/rpc/endpoint_int.h"

enum { ROW_ROOM = 64 << 10 }; /* of a frame, for what is beside the rows */

int
rows_begin(struct rows *l, struct read *r, void *ctx, const struct row_types *types, struct err *e)
{
    *l = (struct rows){.r = r, .ctx = ctx, .row_ctx = ctx, .types = types};
    l->max = r->q->per_page > 0 ? (uint64_t)r->q->per_page : r->q->per_page < 0 ? 0 : UINT64_MAX;
    l->end_ns = clock_mono_ns() + LIST_PART_NS;
    buf_init(&l->json, RPC_FRAME_MAX - ROW_ROOM);
    if (str_empty(r->q->filter))
        return 0;
    l->filter = filter_compile(ctx, types->whole, r->q->filter, e);
    return l->filter != NULL ? 0 : err_prefix(e, "failed to read filter expression");
}

void
rows_seek(const struct rows *l, struct state_iter *it)
{
    state_iter_seek(it, l->r->q->next_token, l->r->q->reverse);
}

void *
rows_ctx(struct rows *l)
{
    if (l->r->q->part == 0)
        return l->ctx;
    if (l->row_ctx != l->ctx)
        talloc_free(l->row_ctx);
    return l->row_ctx = talloc_new(l->ctx);
}

/* Where the next page or part begins. */
static void
end_before_this(struct rows *l)
{
    const struct row_key *k = &l->key;

    if (k->create_index != 0)
        l->r->meta->next_token = mem_printf(l->ctx, "%" PRIu64 ".%s", k->create_index, k->id);
    else if (k->ns != NULL)
        l->r->meta->next_token = mem_printf(l->ctx, "%s.%s", k->ns, k->id);
    else
        l->r->meta->next_token = mem_strdup(l->ctx, k->id);
    l->over = true;
}

bool
rows_see(struct rows *l, struct row_key key)
{
    l->key = key;
    bool long_enough = l->json.len >= LIST_PART_BYTES || l->seen >= LIST_PART_ROWS ||
                       clock_mono_ns() > l->end_ns;
    if (!l->over && l->r->q->part != 0 && l->seen > 0 && long_enough)
        end_before_this(l);
    l->seen++;
    return !l->over;
}

bool
rows_take(struct rows *l, const void *whole)
{
    if (l->over || (l->filter != NULL && !filter_match(l->filter, whole)))
        return false;
    if (l->r->meta->n < l->max)
        return true;
    end_before_this(l);
    l->r->meta->full = true;
    return false;
}

void
rows_add(struct rows *l, const void *row, uint64_t modify_index)
{
    struct query_meta *m = l->r->meta;

    if (l->r->q->part == 0) {
        list_add(l->ctx, l->rows, (void *)(uintptr_t)row);
    } else {
        unsigned pretty = l->r->q->part == 2 ? JSON_PRETTY : 0;
        auto_buf struct buf b = BUF_INIT(RPC_FRAME_MAX - ROW_ROOM);
        json_encode_row(&b, l->types->row, row, JSON_HIDE_SECRETS | pretty);
        if (buf_error(&b) != 0 || l->json.len + b.len > RPC_FRAME_MAX - ROW_ROOM) {
            l->too_large = m->n == 0;
            end_before_this(l);
            return;
        }
        buf_put(&l->json, b.data, b.len);
    }
    m->n++;
    read_saw(l->r, l->key.id, modify_index);
}

int
rows_end(struct rows *l, struct state_txn *t, struct object_list *ret, struct err *e)
{
    struct query_meta *m = l->r->meta;

    if (l->too_large) {
        buf_done(&l->json);
        return err_set(e, -ERR_LIMIT, "'%s' alone is larger than %d MiB", m->next_token, RPC_FRAME_MAX >> 20);
    }
    if (l->r->q->part != 0)
        m->rows = (struct bytes){mem_dup(l->ctx, l->json.data, l->json.len), l->json.len};
    buf_done(&l->json);
    *ret = l->rows;
    read_list(l->r, t);
    return 0;
}
