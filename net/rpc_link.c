/* SPDX-License-Identifier: Apache-2.0
 *
 * A link: which part of it a frame is for, and its life (rpc_link_int.h).
 */
#include "common/mem.h"
#include "net/rpc_link_int.h"

struct rpc_link *
rpc_link_new(const struct rpc_link_config *cfg)
{
    struct rpc_link *l = mem_new(NULL, struct rpc_link);

    l->cfg = *cfg;
    l->cfg.peer = mem_strdup(l, cfg->peer);
    l->up = cfg->wanted == NULL;
    l->refs = 1;
    l->ctx = mem_ctx("rpc link");
    return l;
}

void
rpc_link_unref(struct rpc_link *l)
{
    if (--l->refs == 0)
        talloc_free(l);
}

void
rpc_link_put(struct rpc_link *l, struct buf *frame)
{
    if (l->up)
        l->cfg.send(l->cfg.carrier, frame, 1);
    else
        buf_done(frame);
}

void
rpc_link_put_head(struct rpc_link *l, const struct rpc_head *h)
{
    struct buf b = BUF_INIT(RPC_HEAD);

    rpc_frame_end(&b, rpc_frame_begin(&b, h));
    rpc_link_put(l, &b);
}

unsigned
rpc_link_calls_max(const struct rpc_link *l)
{
    return l->cfg.local ? RPC_INFLIGHT_LOCAL_MAX : RPC_INFLIGHT_MAX;
}

unsigned
rpc_link_streams_max(const struct rpc_link *l)
{
    return l->cfg.local ? RPC_STREAMS_LOCAL_MAX : RPC_STREAMS_MAX;
}

static bool
stream_frame(struct rpc_link *l, const struct rpc_head *h, const uint8_t *body)
{
    bool back = h->kind >= RPC_KIND_BACK_DATA;
    struct rpc_stream *s = rpc_stream_find(l, h->id, back);

    if (h->version != RPC_VERSION || h->id > (back ? l->next_id : l->last_id))
        return false;
    return s == NULL || rpc_stream_frame(s, h, body); /* NULL: it has ended here */
}

bool
rpc_link_frame(struct rpc_link *l, const struct rpc_head *h, const uint8_t *body)
{
    bool ok = true;

    l->refs++;
    l->heard_ms = loop_now_ms(l->cfg.loop);
    if (h->kind == RPC_KIND_CALL)
        ok = rpc_serve_call(l, h, body);
    else if (h->kind == RPC_KIND_CANCEL)
        rpc_serve_cancel(l, h->id);
    else if (h->kind == RPC_KIND_REPLY || h->kind == RPC_KIND_ERROR)
        ok = rpc_calls_answer(l, h, body);
    else
        ok = stream_frame(l, h, body);
    rpc_link_unref(l);
    return ok;
}

void
rpc_link_up(struct rpc_link *l)
{
    l->up = true;
    l->why = NULL;
    rpc_calls_up(l);
    rpc_link_drained(l);
}

void
rpc_link_drained(struct rpc_link *l)
{
    l->refs++;
    rpc_stream_turns(l);
    rpc_link_unref(l);
}

void
rpc_link_down(struct rpc_link *l, const char *why, const char *lost)
{
    l->refs++;
    l->up = false;
    l->why = why;
    rpc_serve_end(l);
    rpc_stream_over_all(l, -ERR_CLOSED);
    rpc_calls_down(l, lost);
    rpc_link_unref(l);
}

void
rpc_link_close(struct rpc_link *l, int code, const char *why)
{
    if (l == NULL || l->closed)
        return;
    l->closed = true;
    l->up = false;
    rpc_calls_end(l, code, why);
    rpc_serve_end(l);
    rpc_stream_over_all(l, code);
    talloc_free(l->ctx);
    rpc_link_unref(l);
}

void *
rpc_link_ctx(struct rpc_link *l)
{
    return l->ctx;
}
