/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a call that goes on, as a transport of streams. Each side sends what the other has
 * granted and no more; a grant follows the bytes that the reader took, not those that arrived, so a
 * stalled reader costs a window. What may not be sent yet waits in the stream, and only then counts
 * as queued.
 */
#include "common/hash.h"

#include "common/mem.h"
#include "net/rpc_link_int.h"
#include "net/stream_int.h"

enum { CALLER_KINDS = RPC_KIND_BACK_DATA - RPC_KIND_DATA };

/* Bytes that are put in at the end and taken at the front. */
struct fifo {
    struct buf b;
    size_t at;
};

struct rpc_stream {
    struct transport base; /* first */
    struct rpc_link *link; /* NULL: it is over */
    struct loop *loop;
    uint64_t id;
    uint16_t method;
    bool ours; /* the call went out from here */
    struct fifo out;
    size_t credit; /* bytes that the peer takes */
    struct fifo in; /* came while nobody read */
    size_t room;   /* bytes that the peer may send */
    size_t taken;  /* by the reader, not granted again yet */
    bool reading, closing, turn, told;
    int status; /* of its end */
    struct timer *soon;
    struct rpc_stream *next; /* of those that have a turn */
    UT_hash_handle hh;
};

static struct rpc_stream *
rpc_stream_self(const struct transport *t)
{
    return (struct rpc_stream *)(uintptr_t)t;
}

static struct rpc_head
rpc_stream_head(const struct rpc_stream *s, enum rpc_kind caller_kind)
{
    unsigned kind = s->ours ? caller_kind : (unsigned)caller_kind + CALLER_KINDS;
    return (struct rpc_head){
        .kind = kind, .version = RPC_VERSION, .method = s->method, .id = s->id};
}

static size_t
fifo_len(const struct fifo *f)
{
    return f->b.len - f->at;
}

static void
fifo_put(struct fifo *f, const void *p, size_t n)
{
    if (f->at > f->b.len / 2) {
        buf_consume(&f->b, f->at);
        f->at = 0;
    }
    buf_put(&f->b, p, n);
}

static void
fifo_drop(struct fifo *f)
{
    buf_done(&f->b);
    f->at = 0;
}

static void
fifo_took(struct fifo *f, size_t n)
{
    f->at += n;
    if (f->at == f->b.len)
        fifo_drop(f); /* a stream that is followed is idle most of the time */
}

/* --- turns --- */

static void
turn_add(struct rpc_stream *s)
{
    struct rpc_link *l = s->link;

    if (s->turn || fifo_len(&s->out) == 0 || s->credit == 0)
        return;
    s->turn = true;
    s->next = NULL;
    if (l->first != NULL)
        l->last->next = s;
    else
        l->first = s;
    l->last = s;
}

static void
turn_drop(struct rpc_stream *s)
{
    struct rpc_link *l = s->link;
    struct rpc_stream *before = NULL;

    if (!s->turn)
        return;
    s->turn = false;
    for (struct rpc_stream *at = l->first; at != s; at = at->next)
        before = at;
    if (before != NULL)
        before->next = s->next;
    else
        l->first = s->next;
    if (l->last == s)
        l->last = before;
}

static bool
has_room(struct rpc_link *l)
{
    return l->up && l->cfg.queued(l->cfg.carrier) < STREAM_LOW_WATER;
}

/* One frame. */
static void
send_some(struct rpc_stream *s)
{
    struct rpc_head h = rpc_stream_head(s, RPC_KIND_DATA);
    struct buf v[2] = {BUF_INIT(RPC_HEAD), BUF_INIT(RPC_STREAM_FRAME)};
    size_t n = fifo_len(&s->out) < s->credit ? fifo_len(&s->out) : s->credit;

    if (n > RPC_STREAM_FRAME)
        n = RPC_STREAM_FRAME;
    h.len = (uint32_t)n;
    (void)rpc_frame_begin(&v[0], &h);
    if (n == s->out.b.len) { /* all there is, as it is */
        v[1] = s->out.b;
        buf_init(&s->out.b, v[1].max);
    } else {
        buf_put(&v[1], s->out.b.data + s->out.at, n);
        fifo_took(&s->out, n);
    }
    s->credit -= n;
    s->link->cfg.send(s->link->cfg.carrier, v, 2);
}

void
rpc_stream_turns(struct rpc_link *l)
{
    while (l->first != NULL && has_room(l)) {
        struct rpc_stream *s = l->first;
        turn_drop(s);
        send_some(s);
        turn_add(s);
        s->base.up->wrote(s->base.arg, 0); /* may end it, or the link, which leaves no first */
    }
}

/* --- life --- */

static void
rpc_stream_detach(struct rpc_stream *s)
{
    if (s->link == NULL)
        return;
    turn_drop(s);
    HASH_DEL(s->link->streams[s->ours], s);
    s->link = NULL;
    fifo_drop(&s->out);
}

struct rpc_stream *
rpc_stream_find(const struct rpc_link *l, uint64_t id, bool ours)
{
    struct rpc_stream *s = NULL;
    HASH_FIND(hh, l->streams[ours], &id, sizeof(id), s);
    return s;
}

unsigned
rpc_stream_count(const struct rpc_link *l, bool ours)
{
    return HASH_COUNT(l->streams[ours]);
}

static void soon_cb(void *arg);

static void
rpc_stream_soon(struct rpc_stream *s)
{
    if (s->soon == NULL)
        s->soon = timer_start(s->loop, 0, soon_cb, s);
}

/* The reader has so many bytes more. */
static void
rpc_stream_took(struct rpc_stream *s, size_t n)
{
    struct rpc_head h = rpc_stream_head(s, RPC_KIND_GRANT);
    struct buf b = BUF_INIT(RPC_HEAD + 4);

    s->taken += n;
    if (s->link == NULL || s->taken < RPC_STREAM_WINDOW / 2)
        return;
    size_t at = rpc_frame_begin(&b, &h);
    buf_put_u32(&b, (uint32_t)s->taken);
    rpc_frame_end(&b, at);
    s->room += s->taken;
    s->taken = 0;
    rpc_link_put(s->link, &b);
}

static void
tell_end(struct rpc_stream *s)
{
    bool now = s->link == NULL && !s->closing && !s->told && s->base.up != NULL;

    if (!now || (s->status == 0 && (fifo_len(&s->in) > 0 || !s->reading)))
        return;
    s->told = true;
    s->base.up->ended(s->base.arg, s->status);
}

/* Delivers what came while nobody read, in pieces as a socket has them. */
static void
rpc_stream_deliver(struct rpc_stream *s)
{
    while (fifo_len(&s->in) > 0 && s->reading && !s->closing) {
        size_t n = fifo_len(&s->in) < STREAM_READ_SIZE ? fifo_len(&s->in) : STREAM_READ_SIZE;
        s->base.up->got(s->base.arg, s->in.b.data + s->in.at, n);
        fifo_took(&s->in, n);
        rpc_stream_took(s, n);
    }
    tell_end(s);
}

static void
soon_cb(void *arg)
{
    struct rpc_stream *s = arg;

    s->soon = NULL;
    if (!s->closing) {
        rpc_stream_deliver(s);
        return;
    }
    fifo_drop(&s->in);
    s->base.up->closed(s->base.arg);
}

void
rpc_stream_over(struct rpc_stream *s, int status)
{
    rpc_stream_detach(s);
    s->status = status;
    tell_end(s);
}

void
rpc_stream_over_all(struct rpc_link *l, int status)
{
    struct rpc_stream *s, *tmp;

    for (int ours = 0; ours < 2; ours++)
        HASH_ITER (hh, l->streams[ours], s, tmp)
            if (!ours || !rpc_calls_open(l, s->id))
                rpc_stream_over(s, status);
}

bool
rpc_stream_frame(struct rpc_stream *s, const struct rpc_head *h, const uint8_t *body)
{
    bool end = h->kind == RPC_KIND_BACK_END;
    bool grant = h->kind == RPC_KIND_GRANT || h->kind == RPC_KIND_BACK_GRANT;
    uint64_t more = grant && h->len == 4 ? big_endian(body, 4) : 0;

    if (end) {
        if (h->len == 0)
            rpc_stream_over(s, 0);
        return h->len == 0;
    }
    if (grant) {
        if (more == 0 || more > RPC_STREAM_WINDOW - s->credit)
            return false;
        s->credit += more;
        turn_add(s);
        rpc_stream_turns(s->link);
        return true;
    }
    if (h->len == 0 || h->len > s->room)
        return false;
    s->room -= h->len;
    if (fifo_len(&s->in) > 0 || !s->reading) {
        fifo_put(&s->in, body, h->len);
        return true;
    }
    s->base.up->got(s->base.arg, body, h->len);
    rpc_stream_took(s, h->len);
    return true;
}

/* --- the transport --- */

static int
stream_read_op(struct transport *t, bool on)
{
    struct rpc_stream *s = rpc_stream_self(t);

    s->reading = on;
    if (on && (fifo_len(&s->in) > 0 || s->link == NULL))
        rpc_stream_soon(s);
    return 0;
}

/* The buffers as they are, if they are one frame that may go now. */
static bool
send_whole(struct rpc_stream *s, struct buf *bufs, size_t n)
{
    struct rpc_head h = rpc_stream_head(s, RPC_KIND_DATA);
    struct buf v[TRANSPORT_BUFS_MAX] = {BUF_INIT(RPC_HEAD)};
    size_t total = 0;

    for (size_t i = 0; i < n; i++)
        total += bufs[i].len;
    if (n >= TRANSPORT_BUFS_MAX || fifo_len(&s->out) > 0 || s->link->first != NULL || total == 0 ||
        total > s->credit || total > RPC_STREAM_FRAME || !has_room(s->link))
        return false;
    h.len = (uint32_t)total;
    (void)rpc_frame_begin(&v[0], &h);
    for (size_t i = 0; i < n; i++) {
        v[i + 1] = bufs[i];
        buf_init(&bufs[i], bufs[i].max);
    }
    s->credit -= total;
    s->link->cfg.send(s->link->cfg.carrier, v, n + 1);
    return true;
}

static int
stream_write_op(struct transport *t, struct buf *bufs, size_t n)
{
    struct rpc_stream *s = rpc_stream_self(t);

    if (s->link != NULL && send_whole(s, bufs, n))
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (s->link != NULL) /* else the peer has had enough */
            fifo_put(&s->out, bufs[i].data, bufs[i].len);
        buf_done(&bufs[i]);
    }
    if (s->link == NULL)
        return 0;
    if (buf_error(&s->out.b))
        return buf_error(&s->out.b);
    /* a frame that waits for a turn goes first; without one of those there is no `wrote` to come
     * from in here */
    while (s->link->first == NULL && fifo_len(&s->out) > 0 && s->credit > 0 && has_room(s->link))
        send_some(s);
    turn_add(s);
    return 0;
}

static size_t
stream_queued_op(const struct transport *t)
{
    return fifo_len(&rpc_stream_self(t)->out);
}

static int
stream_shutdown_op(struct transport *t)
{
    (void)t;
    return -ERR_UNSUPPORTED; /* an end is that of the call */
}

/* The caller's end is a cancel; the other's, a clean end of file if all of it went out. */
static void
stream_close_op(struct transport *t)
{
    struct rpc_stream *s = rpc_stream_self(t);
    struct rpc_link *l = s->link;

    s->closing = true;
    rpc_stream_soon(s);
    if (l == NULL)
        return;
    struct rpc_head h = rpc_stream_head(s, RPC_KIND_DATA);
    h.kind = s->ours ? RPC_KIND_CANCEL : RPC_KIND_BACK_END;
    if (s->ours)
        rpc_calls_forget(l, s->id);
    if (!s->ours && fifo_len(&s->out) > 0) {
        struct err e = ERR_INIT;
        err_set(&e, -ERR_CLOSED, "the other side ended in the middle");
        rpc_link_put_error(l, &h, &e);
    } else {
        rpc_link_put_head(l, &h);
    }
    rpc_stream_detach(s);
}

static const struct transport_ops ops = {
    .read = stream_read_op,
    .write = stream_write_op,
    .queued = stream_queued_op,
    .shutdown = stream_shutdown_op,
    .close = stream_close_op,
};

struct rpc_stream *
rpc_stream_new(struct rpc_link *l, uint16_t method, uint64_t id, bool ours)
{
    struct rpc_stream *s = mem_new(NULL, struct rpc_stream);

    s->base.ops = &ops;
    s->base.patient = true;
    s->link = l;
    s->loop = l->cfg.loop;
    s->id = id;
    s->method = method;
    s->ours = ours;
    s->credit = s->room = RPC_STREAM_WINDOW;
    buf_init(&s->out.b, SIZE_MAX);
    buf_init(&s->in.b, 3 * (size_t)RPC_STREAM_WINDOW); /* at most half of it is taken already */
    HASH_ADD(hh, l->streams[ours], id, sizeof(s->id), s);
    return s;
}

struct stream *
rpc_stream_take(struct rpc_stream *s, const char *peer)
{
    struct stream *st = stream_make(s->loop, &s->base);

    st->peer = mem_strdup(st, peer != NULL ? peer : s->link->cfg.peer);
    return st;
}

void
rpc_stream_drop(struct rpc_stream *s)
{
    rpc_stream_detach(s);
    fifo_drop(&s->in);
    talloc_free(s);
}
