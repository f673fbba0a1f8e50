/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: what is asked of any transport: limits, time-outs and an orderly end. Listeners are in
 * listener.c, sockets in transport.c.
 */
#include "net/stream.h"

#include "common/mem.h"
#include "net/limits.h"
#include "net/loop_int.h"
#include "net/stream_int.h"

static const struct stream_ops no_ops;

static void
on_closed(void *arg)
{
    struct stream *s = arg;
    if (s->on_gone)
        s->on_gone(s->gone_arg);
    loop_note_close(s->loop);
    if (s->ops->on_close)
        s->ops->on_close(s->arg, s->close_code);
    talloc_free(s);
}

static void
close_with(struct stream *s, int code)
{
    if (s->closing)
        return;
    s->closing = true;
    s->close_code = code;
    timer_stop(TAKE(s->stall));
    timer_stop(TAKE(s->linger));
    s->t->ops->close(s->t);
}

void
stream_close(struct stream *s)
{
    close_with(s, 0);
}

static size_t
stream_bytes_queued(const struct stream *s)
{
    return s->t->ops->queued(s->t);
}

/* --- reading --- */

static void
on_got(void *arg, const uint8_t *p, size_t n)
{
    struct stream *s = arg;
    if (!s->finishing)
        s->ops->on_data(s->arg, p, n);
}

static void
on_ended(void *arg, int status)
{
    struct stream *s = arg;

    s->reading = false;
    if (status < 0) {
        close_with(s, status);
    } else if (s->finishing) {
        if (stream_bytes_queued(s) == 0)
            close_with(s, 0);
    } else if (s->ops->on_eof) {
        s->ops->on_eof(s->arg);
    } else {
        close_with(s, -ERR_CLOSED);
    }
}

void
stream_read(struct stream *s, bool on)
{
    if (s->closing || s->reading == on)
        return;
    int r = s->t->ops->read(s->t, on);
    if (r < 0)
        close_with(s, r);
    else
        s->reading = on;
}

/* --- writing --- */

size_t
stream_queued(const struct stream *s)
{
    return s->closing ? 0 : stream_bytes_queued(s);
}

static void stall_cb(void *arg);

static void
stall_watch(struct stream *s)
{
    size_t left = stream_queued(s);
    if (s->stall || left == 0 || s->t->patient)
        return;
    s->stall_goal = s->enqueued - left + (left < STREAM_STALL_BYTES ? left : STREAM_STALL_BYTES);
    s->stall = timer_start(s->loop, STREAM_STALL_MS, stall_cb, s);
}

static void
stall_cb(void *arg)
{
    struct stream *s = arg;
    s->stall = NULL;
    if (s->enqueued - stream_bytes_queued(s) < s->stall_goal)
        close_with(s, -ERR_TIMEOUT);
    else
        stall_watch(s);
}

static void
linger_cb(void *arg)
{
    struct stream *s = arg;
    s->linger = NULL;
    close_with(s, 0);
}

/* All is written: the end that stream_finish asked for. */
static void
stream_finished(struct stream *s)
{
    if (s->closing || s->linger)
        return;
    if (s->linger_ms <= 0 || !s->reading || s->t->ops->shutdown(s->t) < 0) {
        close_with(s, 0);
        return;
    }
    s->linger = timer_start(s->loop, s->linger_ms, linger_cb, s);
}

void
stream_finish(struct stream *s, int64_t linger_ms)
{
    if (s->closing || s->finishing)
        return;
    s->finishing = true;
    s->linger_ms = linger_ms;
    if (stream_bytes_queued(s) == 0)
        stream_finished(s);
}

void
stream_end(struct stream *s)
{
    if (s->closing || s->finishing || s->ended)
        return;
    s->ended = true;
    if (stream_bytes_queued(s) == 0)
        (void)s->t->ops->shutdown(s->t);
}

static void
on_wrote(void *arg, int status)
{
    struct stream *s = arg;

    if (status < 0) {
        close_with(s, status);
        return;
    }
    size_t left = stream_bytes_queued(s);
    if (left == 0)
        timer_stop(TAKE(s->stall));
    if (left == 0 && s->ended && !s->finishing)
        (void)s->t->ops->shutdown(s->t);
    if (left == 0 && s->finishing)
        stream_finished(s);
    else if (s->above && left < STREAM_LOW_WATER) {
        s->above = false;
        if (s->ops->on_drain && !s->finishing)
            s->ops->on_drain(s->arg);
    }
}

void
stream_write(struct stream *s, struct buf *bufs, size_t n)
{
    size_t total = 0;
    int error = 0;

    for (size_t i = 0; i < n; i++) {
        if (buf_error(&bufs[i]))
            error = buf_error(&bufs[i]);
        total += bufs[i].len;
    }
    ASSERT(s->way.filter == NULL || s->t != carrier_transport(s->carrier)); /* it would be clear */
    if (!s->closing && error)
        close_with(s, error);
    else if (!s->closing && stream_queued(s) + total > STREAM_QUEUE_MAX)
        close_with(s, -ERR_LIMIT);
    if (s->closing || s->finishing || s->ended || total == 0) {
        for (size_t i = 0; i < n; i++)
            buf_done(&bufs[i]);
        return;
    }
    size_t before = stream_bytes_queued(s);
    int r = s->t->ops->write(s->t, bufs, n);
    if (r < 0) {
        close_with(s, r);
        return;
    }
    s->enqueued += stream_bytes_queued(s) - before;
    if (stream_bytes_queued(s) >= STREAM_LOW_WATER)
        s->above = true;
    stall_watch(s);
}

/* --- connecting --- */

static void
connect_timeout(void *arg)
{
    struct stream *s = arg;
    s->stall = NULL;
    close_with(s, -ERR_TIMEOUT);
}

static void
on_connected(void *arg, int status)
{
    struct stream *s = arg;

    if (status < 0) {
        close_with(s, status);
    } else if (s->dialled) {
        timer_stop(TAKE(s->stall));
        s->ops->on_connect(s->arg);
        stream_read(s, true);
    }
}

static const struct transport_events events = {
    .connected = on_connected,
    .got = on_got,
    .ended = on_ended,
    .wrote = on_wrote,
    .closed = on_closed,
};

/* Puts a filter between the stream and its transport. */
static void
put_filter(struct stream *s, const struct filter *f, const struct filter_use *u)
{
    s->t = talloc_steal(s, f->wrap(f->arg, s->t, u));
    s->t->up = &events;
    s->t->arg = s;
}

/* The socket of a stream that is dialled. */
static void
on_carrier_connected(void *arg, int status)
{
    struct stream *s = arg;
    struct buf first = BUF_INIT(1);

    if (status == 0 && s->way.first != 0) {
        buf_put_u8(&first, s->way.first);
        status = s->t->ops->write(s->t, &first, 1);
    }
    if (status < 0 || s->way.filter == NULL) {
        s->t->up = &events;
        on_connected(s, status);
        return;
    }
    timer_stop(TAKE(s->stall));
    s->stall = timer_start(s->loop, STREAM_CONNECT_MS, connect_timeout, s);
    put_filter(s, s->way.filter,
               &(struct filter_use){.loop = s->loop,
                                    .peer = s->peer,
                                    .name = s->way.name,
                                    .protocol = s->way.protocol});
}

static const struct transport_events carrier_events = {
    .connected = on_carrier_connected,
    .closed = on_closed,
};

void
stream_wrap(struct stream *s, const struct filter *f, const char *protocol, const uint8_t *p,
            size_t n)
{
    bool reading = s->reading;

    if (s->closing)
        return;
    stream_read(s, false);
    put_filter(s, f,
               &(struct filter_use){.loop = s->loop,
                                    .accepted = true,
                                    .peer = s->peer,
                                    .protocol = protocol,
                                    .p = p,
                                    .n = n});
    if (reading)
        stream_read(s, true);
}

struct stream *
stream_make(struct loop *l, struct transport *t)
{
    struct stream *s = mem_new(NULL, struct stream);

    s->loop = l;
    s->ops = &no_ops;
    s->t = talloc_steal(s, t);
    t->up = &events;
    t->arg = s;
    return s;
}

struct stream *
stream_over(struct loop *l, struct carrier *c)
{
    struct stream *s = stream_make(l, carrier_transport(c));
    s->carrier = c;
    return s;
}

struct stream *
stream_connect(struct loop *l, const struct addr *a, const struct stream_way *way,
               const struct stream_ops *ops, void *arg)
{
    struct stream *s = stream_over(l, carrier_new(l, a->is_unix));
    char text[ADDR_TEXT];

    s->ops = ops;
    s->arg = arg;
    s->dialled = true;
    if (way != NULL)
        s->way = *way;
    s->t->up = &carrier_events;
    s->stall = timer_start(l, STREAM_CONNECT_MS, connect_timeout, s);
    s->peer = mem_strdup(s, addr_format(a, text));
    int r = carrier_connect(s->carrier, a);
    if (r < 0)
        close_with(s, r);
    return s;
}

const char *
stream_peer(const struct stream *s)
{
    return s->peer;
}

void
stream_reached(const struct stream *s, struct addr *ret)
{
    *ret = (struct addr){0};
    transport_peer(s->t, ret);
}

const char *
stream_why(const struct stream *s)
{
    return s->t->ops->why != NULL ? s->t->ops->why(s->t) : NULL;
}

const struct peer_identity *
stream_identity(const struct stream *s)
{
    return s->t->ops->identity != NULL ? s->t->ops->identity(s->t) : NULL;
}
