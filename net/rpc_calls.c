/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that went out over a link, or wait for its connection. In this order: how a call ends,
 * answers, the connection that comes and goes, and making a call.
 *
 * When the connection is lost, reads are sent again over the next one; another call fails, since
 * nobody knows whether it was done. Each call is completed exactly once, never from inside
 * rpc_send().
 */
#include <stdlib.h>

#include "common/hash.h"

#include "common/mem.h"
#include "common/str.h"
#include "net/rpc_link_int.h"

struct rpc_pending {
    struct rpc_link *link;
    uint64_t id;
    const struct rpc_method *method;
    rpc_done *done;
    void *arg;
    struct buf frame; /* kept until sent; of a read that may be asked again, until answered */
    bool sent;
    int64_t sent_ms;
    int code;        /* what the timer completes with */
    const char *why; /* static */
    int64_t queued_ms;
    struct timer *timer;
    UT_hash_handle hh; /* insertion order is kept */
};

static struct rpc_pending *
rpc_calls_find(const struct rpc_link *l, uint64_t id)
{
    struct rpc_pending *p = NULL;
    HASH_FIND(hh, l->pending, &id, sizeof(id), p);
    return p;
}

bool
rpc_calls_open(const struct rpc_link *l, uint64_t id)
{
    return rpc_calls_find(l, id) != NULL;
}

static void
rpc_calls_drop(struct rpc_pending *p)
{
    HASH_DEL(p->link->pending, p);
    timer_stop(p->timer);
    buf_done(&p->frame);
    free(p);
}

void
rpc_calls_forget(struct rpc_link *l, uint64_t id)
{
    struct rpc_pending *p = rpc_calls_find(l, id);
    if (p)
        rpc_calls_drop(p);
}

/* Completes and frees; `e` NULL is success. The bytes of a call that fails end with it. */
static void
rpc_calls_finish(struct rpc_pending *p, const struct err *e, const void *resp)
{
    struct rpc_link *l = p->link;
    uint64_t id = p->id;
    rpc_done *done = p->done;
    void *arg = p->arg;

    rpc_calls_drop(p);
    l->refs++;
    if (done)
        done(arg, e, resp);
    struct rpc_stream *s = e ? rpc_stream_find(l, id, true) : NULL;
    if (s)
        rpc_stream_over(s, e->code);
    rpc_link_unref(l);
}

static void
rpc_calls_fail(struct rpc_pending *p, int code, const char *why)
{
    struct err e = ERR_INIT;
    err_set(&e, code, "rpc %s: %s", p->method->name, why);
    rpc_calls_finish(p, &e, NULL);
}

/* --- answers --- */

/* A call that goes on was answered before. */
static void
answer_late(struct rpc_link *l, const struct rpc_head *h, const uint8_t *body)
{
    struct rpc_stream *s = rpc_stream_find(l, h->id, true);
    struct err e = ERR_INIT;

    if (!s || h->kind != RPC_KIND_ERROR)
        return; /* given up meanwhile */
    rpc_get_error(body, h->len, &e);
    rpc_stream_over(s, e.code);
}

bool
rpc_calls_answer(struct rpc_link *l, const struct rpc_head *h, const uint8_t *body)
{
    struct rpc_pending *p = rpc_calls_find(l, h->id);
    struct err e = ERR_INIT;
    void *resp = NULL;

    if (!p) {
        answer_late(l, h, body);
        return h->id <= l->next_id;
    }
    auto_mem void *ctx = mem_ctx("rpc response");
    if (h->version != RPC_VERSION)
        err_set(
            &e, -ERR_METHOD,
            "rpc %s: the server speaks version %u of the RPC protocol, this agent %d: run the same "
            "release on both",
            p->method->name, h->version, RPC_VERSION);
    else if (h->kind == RPC_KIND_ERROR)
        rpc_get_error(body, h->len, &e);
    else if (rpc_decode(ctx, p->method->resp, body, h->len, &resp, &e) < 0)
        err_prefix(&e, "rpc %s: response", p->method->name);
    rpc_calls_finish(p, e.code ? &e : NULL, resp);
    return true;
}

void
rpc_calls_hand(struct rpc_link *l, uint64_t id, const void *resp)
{
    struct rpc_pending *p = rpc_calls_find(l, id);
    if (p)
        rpc_calls_finish(p, NULL, resp);
}

/* --- the connection --- */

static bool
may_repeat(const struct rpc_pending *p)
{
    return p->link->cfg.wanted != NULL && (p->method->flags & RPC_READ) &&
           !(p->method->flags & RPC_STREAM);
}

static void
send_call(struct rpc_pending *p)
{
    p->sent = true;
    p->sent_ms = loop_now_ms(p->link->cfg.loop);
    if (!may_repeat(p)) {
        rpc_link_put(p->link, &p->frame);
        return;
    }
    struct buf copy = BUF_INIT(p->frame.max);
    buf_put(&copy, p->frame.data, p->frame.len);
    rpc_link_put(p->link, &copy);
}

void
rpc_calls_up(struct rpc_link *l)
{
    for (struct rpc_pending *p = l->pending; p; p = p->hh.next)
        if (!p->sent && !p->code)
            send_call(p);
}

bool
rpc_calls_only_reads(const struct rpc_link *l)
{
    for (const struct rpc_pending *p = l->pending; p; p = p->hh.next)
        if (p->sent && !p->code && !may_repeat(p))
            return false;
    return true;
}

void
rpc_calls_again(struct rpc_link *l)
{
    for (struct rpc_pending *p = l->pending; p; p = p->hh.next) {
        p->sent = p->sent && (p->code || !may_repeat(p)); /* what is to fail does so anyway */
        p->queued_ms = loop_now_ms(l->cfg.loop);
    }
}

void
rpc_calls_down(struct rpc_link *l, const char *lost)
{
    int64_t now = loop_now_ms(l->cfg.loop);
    struct rpc_pending *p;

    do { /* completions may do anything to the table: start again after each */
        for (p = l->pending; p; p = p->hh.next)
            if (!p->code && (p->sent || now - p->queued_ms >= RPC_PATIENCE_MS))
                break;
        if (p)
            rpc_calls_fail(p, p->sent ? -ERR_CLOSED : -ERR_UNAVAILABLE,
                           p->sent ? lost : l->why);
    } while (p && !l->closed);
}

void
rpc_calls_end(struct rpc_link *l, int code, const char *why)
{
    while (l->pending)
        rpc_calls_fail(l->pending, code, why);
}

/* --- calls out --- */

/* Tells the other side, if it knows of the call. */
static void
send_cancel(const struct rpc_pending *p)
{
    if (p->sent)
        rpc_link_put_head(p->link, &(struct rpc_head){.kind = RPC_KIND_CANCEL,
                                                      .version = RPC_VERSION,
                                                      .method = p->method->id,
                                                      .id = p->id});
}

static void
expire_cb(void *arg)
{
    struct rpc_pending *p = arg;
    struct rpc_link *l = p->link;
    bool mute = l->cfg.mute && p->sent && !p->code && l->heard_ms <= p->sent_ms;

    p->timer = NULL;
    if (!p->code)
        send_cancel(p);
    if (mute)
        l->cfg.mute(l->cfg.carrier);
    if (p->code)
        rpc_calls_fail(p, p->code, p->why);
    else if (p->sent)
        rpc_calls_fail(p, -ERR_TIMEOUT, "no answer in time");
    else
        rpc_calls_fail(p, -ERR_UNAVAILABLE, str_or(l->why, "no connection in time"));
}

static void
fail_soon(struct rpc_pending *p, int code, const char *why)
{
    p->code = code;
    p->why = why;
    timer_stop(p->timer);
    p->timer = timer_start(p->link->cfg.loop, 0, expire_cb, p);
}

/* The frame of a call; on failure with what it fails. */
static int
put_call(struct rpc_pending *p, const struct rpc_request *r, uint32_t deadline_ms, const char **why)
{
    struct rpc_head h = {.kind = RPC_KIND_CALL,
                         .version = RPC_VERSION,
                         .method = p->method->id,
                         .id = p->id,
                         .deadline_ms = deadline_ms};

    buf_init(&p->frame, RPC_HEAD + RPC_FRAME_MAX);
    size_t at = rpc_frame_begin(&p->frame, &h);
    *why = "its region, namespace and token are over 32 KiB";
    if (rpc_put_envelope(&p->frame, r->env) < 0)
        return -ERR_LIMIT;
    if (r->encoded != NULL)
        buf_put(&p->frame, r->encoded->data, r->encoded->len);
    else
        mp_encode(&p->frame, p->method->req, r->req);
    rpc_frame_end(&p->frame, at);
    *why = "the request is over 16 MiB";
    return buf_error(&p->frame) || (r->encoded != NULL && buf_error(r->encoded)) ? -ERR_LIMIT : 0;
}

void
rpc_encode(struct buf *b, enum rpc_id id, const void *req)
{
    buf_init(b, RPC_FRAME_MAX);
    mp_encode(b, rpc_method_by_id(id)->req, req);
}

static bool
rpc_calls_full(const struct rpc_link *l, const struct rpc_method *m)
{
    return HASH_COUNT(l->pending) >= rpc_link_calls_max(l) ||
           ((m->flags & RPC_STREAM) && rpc_stream_count(l, true) >= rpc_link_streams_max(l));
}

uint64_t
rpc_link_send(struct rpc_link *l, const struct rpc_request *r, rpc_done *done, void *arg)
{
    struct rpc_pending *p = calloc(1, sizeof(*p));
    int64_t timeout_ms = r->timeout_ms > 0 ? r->timeout_ms : RPC_TIMEOUT_DEFAULT_MS;
    const char *why;

    ASSERT(p != NULL);
    if (timeout_ms > RPC_TIMEOUT_MAX_MS)
        timeout_ms = RPC_TIMEOUT_MAX_MS;
    p->link = l;
    p->id = ++l->next_id;
    p->method = rpc_method_by_id(r->id);
    p->done = done;
    p->arg = arg;
    p->queued_ms = loop_now_ms(l->cfg.loop);
    ASSERT(p->method != NULL && !l->closed);
    bool busy = rpc_calls_full(l, p->method);
    HASH_ADD(hh, l->pending, id, sizeof(p->id), p);
    int code = put_call(p, r, (uint32_t)timeout_ms, &why);
    if (code < 0) {
        fail_soon(p, code, why);
        return p->id;
    }
    if (busy) {
        fail_soon(p, -ERR_BUSY, "too many calls wait for the server");
        return p->id;
    }
    p->timer = timer_start(l->cfg.loop, timeout_ms, expire_cb, p);
    if (l->up) {
        send_call(p);
    } else {
        l->cfg.wanted(l->cfg.carrier);
    }
    return p->id;
}

void
rpc_link_cancel(struct rpc_link *l, uint64_t call_id)
{
    struct rpc_pending *p = rpc_calls_find(l, call_id);

    if (!p || p->code)
        return;
    send_cancel(p);
    fail_soon(p, -ERR_CANCELED, "canceled");
}

struct stream *
rpc_link_open(struct rpc_link *l, const struct rpc_request *r, rpc_done *opened, void *arg)
{
    uint64_t id = rpc_link_send(l, r, opened, arg);

    return rpc_stream_take(rpc_stream_new(l, (uint16_t)r->id, id, true), NULL);
}
