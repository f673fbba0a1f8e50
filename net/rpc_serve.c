/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that came in over a link: from frames to handlers and back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#include "common/mem.h"
#include "net/rpc_link_int.h"

struct rpc_call {
    struct rpc_link *link; /* NULL: nobody waits */
    uint64_t id;
    const struct rpc_method *method;
    const struct rpc_envelope *env;
    struct rpc_envelope plain; /* env, where it has no strings */
    int64_t deadline_ms;
    unsigned in_turn;
    const char *peer;
    struct timer *timer;
    struct rpc_stream *stream; /* until the handler takes it */
    loop_fn *cancel;
    void *cancel_arg;
    bool in_handler, answered;
    UT_hash_handle hh;
};

/* The call leaves its link: its answer will be dropped. */
static void
call_detach(struct rpc_call *c)
{
    HASH_DEL(c->link->calls, c);
    c->link = NULL;
    timer_stop(TAKE(c->timer));
    c->peer = mem_strdup(c, c->peer);
    if (c->stream)
        rpc_stream_drop(TAKE(c->stream));
}

static void
call_cancel(struct rpc_call *c)
{
    struct rpc_stream *s = rpc_stream_find(c->link, c->id, false);

    if (s && !c->stream)
        rpc_stream_over(s, -ERR_CANCELED);
    call_detach(c);
    loop_fn *fn = TAKE(c->cancel);
    if (fn)
        fn(c->cancel_arg);
}

static void
deadline_cb(void *arg)
{
    struct rpc_call *c = arg;
    c->timer = NULL;
    call_cancel(c); /* the caller has given up by its own clock */
}

void
rpc_serve_end(struct rpc_link *l)
{
    struct rpc_call *c, *tmp;

    HASH_ITER (hh, l->calls, c, tmp)
        call_cancel(c);
}

/* The answer to a call of that head. */
void
rpc_link_put_error(struct rpc_link *l, const struct rpc_head *to, const struct err *e)
{
    struct rpc_head h = {
        .kind = RPC_KIND_ERROR, .version = to->version, .method = to->method, .id = to->id};
    struct buf b = BUF_INIT(RPC_HEAD + 4 + ERR_TEXT_MAX);

    size_t at = rpc_frame_begin(&b, &h);
    rpc_put_error(&b, e->code ? e->code : -ERR_INTERNAL, e->text);
    rpc_frame_end(&b, at);
    rpc_link_put(l, &b);
}

static const struct rpc_service *
service_find(const struct rpc_link *l, uint16_t method)
{
    for (size_t i = 0; i < l->cfg.n; i++)
        if ((uint16_t)l->cfg.services[i].id == method)
            return &l->cfg.services[i];
    return NULL;
}

static int
check_room(const struct rpc_link *l, const struct rpc_method *m, struct err *e)
{
    if (HASH_COUNT(l->calls) >= rpc_link_calls_max(l))
        return err_set(e, -ERR_BUSY, "more than %u calls are open on this connection",
                       rpc_link_calls_max(l));
    if ((m->flags & RPC_STREAM) && rpc_stream_count(l, false) >= rpc_link_streams_max(l))
        return err_set(e, -ERR_BUSY, "more than %u streams are open on this connection",
                       rpc_link_streams_max(l));
    return 0;
}

bool
rpc_call_handle(struct rpc_call *c, rpc_handler *fn, void *arg, const void *req)
{
    bool within = c->in_handler, open;
    ASSERT(!c->answered);
    c->in_handler = true;
    fn(arg, c, req);
    c->in_handler = within;
    open = !c->answered;
    if (!open && !within)
        talloc_free(c);
    return open;
}

static void
call_start(struct rpc_link *l, const struct rpc_head *h, const uint8_t *body, struct err *e)
{
    const struct rpc_method *m = rpc_method_by_id((enum rpc_id)h->method);
    const struct rpc_service *svc = service_find(l, h->method);
    void *req;

    if (!m || !svc) {
        err_set(e, -ERR_METHOD, "rpc method %u is not served here", h->method);
        return;
    }
    if (check_room(l, m, e) < 0)
        return;
    struct rpc_call *c = mem_new(NULL, struct rpc_call);
    size_t used;
    if (rpc_get_envelope(c, body, h->len, &c->env, &used, e) < 0 ||
        rpc_decode(c, m->req, body + used, h->len - used, &req, e) < 0) {
        err_prefix(e, "rpc %s", m->name);
        talloc_free(c);
        return;
    }
    if (used > 2 && !c->env->region && !c->env->namespace && !c->env->auth_token) {
        c->plain = *c->env;
        talloc_free((void *)(uintptr_t)c->env);
        c->env = &c->plain;
    }
    int64_t wait = h->deadline_ms ? h->deadline_ms : RPC_TIMEOUT_DEFAULT_MS;
    if (wait > RPC_TIMEOUT_MAX_MS)
        wait = RPC_TIMEOUT_MAX_MS;
    c->link = l;
    c->id = h->id;
    c->method = m;
    c->peer = l->cfg.peer;
    int64_t now = loop_now_ms(l->cfg.loop);
    c->in_turn = l->in_turn = l->turn_ms == now ? l->in_turn + 1 : 1;
    l->turn_ms = now;
    c->deadline_ms = now + wait;
    if (m->flags & RPC_STREAM)
        c->stream = rpc_stream_new(l, m->id, c->id, false);
    HASH_ADD(hh, l->calls, id, sizeof(c->id), c);
    if (rpc_call_handle(c, svc->handle, l->cfg.arg, req) && c->link && !l->cfg.local)
        c->timer = timer_start(l->cfg.loop, wait, deadline_cb, c);
}

bool
rpc_serve_call(struct rpc_link *l, const struct rpc_head *h, const uint8_t *body)
{
    struct err e = ERR_INIT;
    struct rpc_call *c = NULL;

    HASH_FIND(hh, l->calls, &h->id, sizeof(h->id), c);
    if (c || rpc_stream_find(l, h->id, false))
        return false; /* an id used twice */
    if (h->id > l->last_id)
        l->last_id = h->id;
    if (h->version != RPC_VERSION)
        err_set(&e, -ERR_METHOD,
                "the caller speaks version %u of the RPC protocol, this server %d: run the same release "
                "on both",
                h->version, RPC_VERSION);
    else
        call_start(l, h, body, &e);
    if (e.code)
        rpc_link_put_error(l, h, &e);
    return true;
}

void
rpc_serve_cancel(struct rpc_link *l, uint64_t id)
{
    struct rpc_stream *s = rpc_stream_find(l, id, false);
    struct rpc_call *c = NULL;

    HASH_FIND(hh, l->calls, &id, sizeof(id), c);
    if (c)
        call_cancel(c);
    else if (s)
        rpc_stream_over(s, -ERR_CANCELED);
}

static struct rpc_head
call_head(const struct rpc_call *c, enum rpc_kind kind)
{
    return (struct rpc_head){
        .kind = kind, .version = RPC_VERSION, .method = c->method->id, .id = c->id};
}

/* --- what handlers use --- */

void *
rpc_call_ctx(struct rpc_call *c)
{
    return c;
}

const struct rpc_method *
rpc_call_method(const struct rpc_call *c)
{
    return c->method;
}

const struct rpc_envelope *
rpc_call_envelope(const struct rpc_call *c)
{
    return c->env;
}

unsigned
rpc_call_in_turn(const struct rpc_call *c)
{
    return c->in_turn;
}

int64_t
rpc_call_deadline_ms(const struct rpc_call *c)
{
    return c->deadline_ms;
}

const char *
rpc_call_peer(const struct rpc_call *c)
{
    return c->peer;
}

void
rpc_call_on_cancel(struct rpc_call *c, loop_fn *fn, void *arg)
{
    c->cancel = fn;
    c->cancel_arg = arg;
}

struct rpc_link *
rpc_call_link(const struct rpc_call *c)
{
    return c->link;
}

struct stream *
rpc_call_stream(struct rpc_call *c, const char *peer)
{
    ASSERT(c->stream != NULL);
    return rpc_stream_take(TAKE(c->stream), peer);
}

static void
call_end(struct rpc_call *c)
{
    if (c->link)
        call_detach(c);
    c->answered = true;
    c->cancel = NULL;
    if (!c->in_handler)
        talloc_free(c);
}

void
rpc_reply(struct rpc_call *c, const void *resp)
{
    struct rpc_link *l = c->link;

    ASSERT(!c->answered && !c->stream);
    if (l) {
        struct rpc_head h = call_head(c, RPC_KIND_REPLY);
        struct buf b = BUF_INIT(RPC_HEAD + RPC_FRAME_MAX);
        size_t at = rpc_frame_begin(&b, &h);
        mp_encode(&b, c->method->resp, resp);
        rpc_frame_end(&b, at);
        if (buf_error(&b)) {
            struct err e = ERR_INIT;
            buf_done(&b);
            err_set(&e, -ERR_LIMIT,
                    "the answer to %s is over 16 MiB: ask for pages (per_page), or without diff",
                    c->method->name);
            rpc_link_put_error(l, &h, &e);
        } else {
            rpc_link_put(l, &b);
        }
    }
    call_end(c);
}

void
rpc_hand_over(struct rpc_call *c, const void *resp)
{
    struct rpc_link *l = c->link;

    if (l == NULL || l->cfg.hand == NULL) {
        rpc_reply(c, resp);
        return;
    }
    ASSERT(!c->answered && !c->stream);
    call_detach(c); /* the caller may close its link */
    l->cfg.hand(l->cfg.carrier, c->id, resp);
    call_end(c);
}

void
rpc_fail(struct rpc_call *c, const struct err *e)
{
    ASSERT(!c->answered);
    struct rpc_head h = call_head(c, RPC_KIND_ERROR);
    struct rpc_stream *s = c->link && !c->stream ? rpc_stream_find(c->link, c->id, false) : NULL;
    if (c->link)
        rpc_link_put_error(c->link, &h, e);
    if (s)
        rpc_stream_over(s, -ERR_CANCELED);
    call_end(c);
}

void
rpc_failf(struct rpc_call *c, int code, const char *fmt, ...)
{
    struct err e = {.code = code < 0 ? code : -code};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(e.text, sizeof(e.text), fmt, ap);
    va_end(ap);
    rpc_fail(c, &e);
}
