/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that came in over a link: from frames to handlers and back. In this order: how a call is
 * let go (answered, cancelled, late, its link closed); dispatch, after the check of room; large
 * requests, which a worker decodes and frees; frames; and what handlers use.
 *
 * A call is freed when it is answered, and lives on after its link: a late answer is dropped, never
 * written to a link that is gone.
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
    struct large *large; /* NULL: its request is not */
    UT_hash_handle hh;
};

/* A request that a worker decodes and frees. */
struct large {
    struct rpc_call *call;
    struct buf body;
    void *ctx; /* of what is decoded: the worker's */
    void *req;
    struct err err;
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
large_free(void *arg)
{
    struct large *x = arg;
    buf_done(&x->body);
    talloc_free(x->ctx);
    free(x);
}

static void
large_is_free(void *arg)
{
    (void)arg;
}

/* `l`: its link; NULL: it has none, and the loop may end. */
static void
call_free(struct rpc_call *c, struct rpc_link *l)
{
    struct large *x = c->large;
    talloc_free(c);
    if (x != NULL && l != NULL)
        loop_work(l->cfg.loop, large_free, large_is_free, x);
    else if (x != NULL)
        large_free(x);
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
    struct rpc_link *l = c->link;
    bool within = c->in_handler, open;
    ASSERT(!c->answered);
    c->in_handler = true;
    if (l != NULL)
        l->refs++;
    fn(arg, c, req);
    c->in_handler = within;
    open = !c->answered;
    if (!open && !within)
        call_free(c, l != NULL && !l->closed ? l : NULL);
    if (l != NULL)
        rpc_link_unref(l);
    return open;
}

/* From now on the caller's time runs here as well. */
static void
call_handle(struct rpc_call *c, const void *req)
{
    struct rpc_link *l = c->link;
    int64_t left = c->deadline_ms - loop_now_ms(l->cfg.loop);
    l->refs++;
    rpc_handler *handle = service_find(l, c->method->id)->handle;
    if (rpc_call_handle(c, handle, l->cfg.arg, req) && c->link && !l->cfg.local)
        c->timer = timer_start(l->cfg.loop, left > 0 ? left : 0, deadline_cb, c);
    rpc_link_unref(l);
}

/* --- large requests --- */

static void
large_decode(void *arg)
{
    struct large *x = arg;
    (void)rpc_decode(x->ctx, x->call->method->req, x->body.data, x->body.len, &x->req, &x->err);
}

static void
large_decoded(void *arg)
{
    struct large *x = arg;
    struct rpc_call *c = x->call;
    if (c->link == NULL) { /* given up meanwhile */
        call_free(c, NULL);
    } else if (x->err.code != 0) {
        err_prefix(&x->err, "rpc %s", c->method->name);
        rpc_fail(c, &x->err);
    } else {
        call_handle(c, x->req);
    }
}

static void
large_start(struct rpc_call *c, const uint8_t *body, size_t n)
{
    struct large *x = calloc(1, sizeof(*x));
    ASSERT(x != NULL);
    x->call = c;
    buf_init(&x->body, n);
    buf_put(&x->body, body, n);
    x->ctx = mem_ctx("large request");
    c->large = x;
    loop_work(c->link->cfg.loop, large_decode, large_decoded, x);
}

/* --- calls --- */

static int64_t
time_of(const struct rpc_head *h)
{
    int64_t wait = h->deadline_ms ? h->deadline_ms : RPC_TIMEOUT_DEFAULT_MS;
    return wait > RPC_TIMEOUT_MAX_MS ? RPC_TIMEOUT_MAX_MS : wait;
}

/* Nothing of the envelope lives outside of it. */
static bool
envelope_is_plain(const struct rpc_envelope *env)
{
    for (size_t i = 0; i < type_rpc_envelope.n_fields; i++) {
        const struct field *f = &type_rpc_envelope.fields[i];
        const char *const *text = (const void *)((const char *)env + f->offset);
        if (f->type == FT_STRING && *text != NULL)
            return false;
    }
    return true;
}

static void
call_start(struct rpc_link *l, const struct rpc_head *h, const uint8_t *body, struct err *e)
{
    const struct rpc_method *m = rpc_method_by_id((enum rpc_id)h->method);
    void *req = NULL;

    if (!m || !service_find(l, h->method)) {
        err_set(e, -ERR_METHOD, "rpc method %u is not served here", h->method);
        return;
    }
    if (check_room(l, m, e) < 0)
        return;
    struct rpc_call *c = mem_new(NULL, struct rpc_call);
    size_t used;
    bool large = h->len >= RPC_LARGE && !(m->flags & RPC_STREAM);
    if (rpc_get_envelope(c, body, h->len, &c->env, &used, e) < 0 ||
        (!large && rpc_decode(c, m->req, body + used, h->len - used, &req, e) < 0)) {
        err_prefix(e, "rpc %s", m->name);
        talloc_free(c);
        return;
    }
    if (used > 2 && envelope_is_plain(c->env)) {
        c->plain = *c->env;
        talloc_free((void *)(uintptr_t)c->env);
        c->env = &c->plain;
    }
    c->link = l;
    c->id = h->id;
    c->method = m;
    c->peer = l->cfg.peer;
    int64_t now = loop_now_ms(l->cfg.loop);
    c->in_turn = l->in_turn = l->turn_ms == now ? l->in_turn + 1 : 1;
    l->turn_ms = now;
    c->deadline_ms = now + time_of(h);
    if (m->flags & RPC_STREAM)
        c->stream = rpc_stream_new(l, m->id, c->id, false);
    HASH_ADD(hh, l->calls, id, sizeof(c->id), c);
    if (large)
        large_start(c, body + used, h->len - used);
    else
        call_handle(c, req);
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
                "the caller speaks version %u of the RPC protocol, this server %d: run the same "
                "release "
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

const struct buf *
rpc_call_encoded(const struct rpc_call *c)
{
    return c->large != NULL ? &c->large->body : NULL;
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

struct peer_identity
rpc_call_identity(const struct rpc_call *c)
{
    const struct rpc_link *l = c->link;
    const struct peer_identity *who = NULL;

    if (l != NULL && l->cfg.local)
        return (struct peer_identity){PEER_SERVER, "local", "", ""};
    if (l != NULL && l->cfg.identity != NULL)
        who = l->cfg.identity(l->cfg.carrier);
    return who != NULL ? *who : (struct peer_identity){PEER_OTHER, "", "", ""};
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
    struct rpc_link *l = c->link;
    if (l)
        call_detach(c);
    c->answered = true;
    c->cancel = NULL;
    if (!c->in_handler)
        call_free(c, l);
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
