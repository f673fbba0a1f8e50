/* SPDX-License-Identifier: Apache-2.0
 *
 * The serving side of one RPC connection: calls from frames to handlers and back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#include "common/log.h"
#include "common/mem.h"
#include "net/rpc_wire.h"

struct rpc_call {
    struct rpc_session *session; /* NULL: nobody waits */
    uint64_t id;
    const struct rpc_method *method;
    const struct rpc_envelope *env;
    int64_t deadline_ms;
    const char *peer;
    struct timer *timer;
    loop_fn *cancel;
    void *cancel_arg;
    bool in_handler, answered;
    UT_hash_handle hh;
};

struct rpc_session {
    struct rpc_session_config cfg;
    char *peer;
    struct rpc_call *calls;
};

struct rpc_session *
rpc_session_new(const struct rpc_session_config *cfg)
{
    struct rpc_session *s = mem_new(NULL, struct rpc_session);
    s->cfg = *cfg;
    s->peer = mem_strdup(s, cfg->peer);
    if (s->cfg.inflight_max == 0)
        s->cfg.inflight_max = RPC_INFLIGHT_MAX;
    return s;
}

/* The call leaves its session: its answer will be dropped. */
static void
call_detach(struct rpc_call *c)
{
    HASH_DEL(c->session->calls, c);
    c->session = NULL;
    timer_stop(TAKE(c->timer));
    c->peer = mem_strdup(c, c->peer);
}

static void
call_cancel(struct rpc_call *c)
{
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
rpc_session_free(struct rpc_session *s)
{
    struct rpc_call *c, *tmp;

    if (!s)
        return;
    s->cfg.send = NULL;
    HASH_ITER (hh, s->calls, c, tmp)
        call_cancel(c);
    talloc_free(s);
}

/* The answer to a call of that head. */
static void
send_error(struct rpc_session *s, const struct rpc_head *to, const struct err *e)
{
    struct rpc_head h = {
        .kind = RPC_KIND_ERROR, .version = to->version, .method = to->method, .id = to->id};
    struct buf b = BUF_INIT(RPC_HEAD + 4 + ERR_TEXT_MAX);

    size_t at = rpc_frame_begin(&b, &h);
    rpc_put_error(&b, e->code ? e->code : -ERR_INTERNAL, e->text);
    rpc_frame_end(&b, at);
    s->cfg.send(s->cfg.carrier, &b);
}

static const struct rpc_service *
service_find(const struct rpc_session *s, uint16_t method)
{
    for (size_t i = 0; i < s->cfg.n; i++)
        if ((uint16_t)s->cfg.services[i].id == method)
            return &s->cfg.services[i];
    return NULL;
}

static void
call_start(struct rpc_session *s, const struct rpc_head *h, const uint8_t *body, struct err *e)
{
    const struct rpc_method *m = rpc_method_by_id((enum rpc_id)h->method);
    const struct rpc_service *svc = service_find(s, h->method);
    void *req;

    if (!m || !svc) {
        err_set(e, -ERR_METHOD, "rpc method %u is not served here", h->method);
        return;
    }
    if (HASH_COUNT(s->calls) >= s->cfg.inflight_max) {
        err_set(e, -ERR_BUSY, "more than %u calls are open on this connection", s->cfg.inflight_max);
        return;
    }
    struct rpc_call *c = mem_new(NULL, struct rpc_call);
    size_t used;
    if (rpc_get_envelope(c, body, h->len, &c->env, &used, e) < 0 ||
        rpc_decode(c, m->req, body + used, h->len - used, &req, e) < 0) {
        err_prefix(e, "rpc %s", m->name);
        talloc_free(c);
        return;
    }
    int64_t wait = h->deadline_ms ? h->deadline_ms : RPC_TIMEOUT_DEFAULT_MS;
    if (wait > RPC_TIMEOUT_MAX_MS)
        wait = RPC_TIMEOUT_MAX_MS;
    c->session = s;
    c->id = h->id;
    c->method = m;
    c->peer = s->peer;
    c->deadline_ms = loop_now_ms(s->cfg.loop) + wait;
    HASH_ADD(hh, s->calls, id, sizeof(c->id), c);
    c->in_handler = true;
    svc->handle(s->cfg.arg, c, req);
    c->in_handler = false;
    if (c->answered)
        talloc_free(c);
    else if (c->session && !s->cfg.local)
        c->timer = timer_start(s->cfg.loop, wait, deadline_cb, c);
}

bool
rpc_session_frame(struct rpc_session *s, const struct rpc_head *h, const uint8_t *body)
{
    struct err e = ERR_INIT;
    struct rpc_call *c = NULL;

    HASH_FIND(hh, s->calls, &h->id, sizeof(h->id), c);
    if (h->kind == RPC_KIND_CANCEL) {
        if (c)
            call_cancel(c);
        return true;
    }
    if (h->kind != RPC_KIND_CALL || c)
        return false; /* not for a server, or an id used twice */
    if (h->version != RPC_VERSION)
        err_set(&e, -ERR_METHOD,
                "the caller speaks version %u of the RPC protocol, this server %d: run the same release "
                "on both",
                h->version, RPC_VERSION);
    else
        call_start(s, h, body, &e);
    if (e.code)
        send_error(s, h, &e);
    return true;
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

static void
call_end(struct rpc_call *c)
{
    if (c->session)
        call_detach(c);
    c->answered = true;
    c->cancel = NULL;
    if (!c->in_handler)
        talloc_free(c);
}

void
rpc_reply(struct rpc_call *c, const void *resp)
{
    struct rpc_session *s = c->session;

    ASSERT(!c->answered);
    if (s) {
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
            send_error(s, &h, &e);
        } else {
            s->cfg.send(s->cfg.carrier, &b);
        }
    }
    call_end(c);
}

void
rpc_fail(struct rpc_call *c, const struct err *e)
{
    ASSERT(!c->answered);
    struct rpc_head h = call_head(c, RPC_KIND_ERROR);
    if (c->session)
        send_error(c->session, &h, e);
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
