/* SPDX-License-Identifier: Apache-2.0
 *
 * A filter that carries bytes as badly as it may (see filter.h).
 */
#include "tests/lib/filter.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "net/transport_int.h"

enum { DELAY_EACH = 10, CUT_EACH = 100, DELAY_MS = 1, QUEUE_MAX = 64 << 20 };

struct turning {
    struct transport base; /* first */
    struct transport *carrier;
    struct loop *loop;
    struct buf held; /* what is not passed up yet */
    struct timer *later;
    unsigned reads;
    bool connected, reading, closing;
    bool ended; /* the carrier, with this status */
    int status;
};

static struct turning *
turning_self(const struct transport *t)
{
    return (struct turning *)(uintptr_t)t;
}

static void
turn_over(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)~p[i];
}

static void pass_up(void *arg);

static void
pass_later(struct turning *t, int64_t ms)
{
    if (t->later == NULL && !t->closing)
        t->later = timer_start(t->loop, ms, pass_up, t);
}

/* Passes up what is held; the second half of it later, if it is to be cut. */
static void
pass_up(void *arg)
{
    struct turning *t = arg;
    bool cut = ++t->reads % CUT_EACH == 0 && t->held.len > 1;

    t->later = NULL;
    if (!t->connected) {
        t->connected = true;
        t->base.up->connected(t->base.arg, 0);
    }
    if (t->closing || !t->reading)
        return;
    struct buf all = t->held;
    size_t n = cut ? all.len / 2 : all.len;
    buf_init(&t->held, QUEUE_MAX);
    if (n < all.len)
        buf_put(&t->held, all.data + n, all.len - n);
    if (n > 0)
        t->base.up->got(t->base.arg, all.data, n);
    buf_done(&all);
    if (t->closing || !t->reading)
        return;
    if (t->held.len > 0) {
        pass_later(t, DELAY_MS);
    } else if (t->ended) {
        t->ended = t->reading = false;
        t->base.up->ended(t->base.arg, t->status);
    }
}

/* --- of the carrier --- */

static void
turning_got(void *arg, const uint8_t *p, size_t n)
{
    struct turning *t = arg;
    size_t at = t->held.len;

    buf_put(&t->held, p, n);
    turn_over(t->held.data + at, n);
    if (t->later != NULL)
        return;
    if (++t->reads % DELAY_EACH == 0 || !t->connected)
        pass_later(t, DELAY_MS);
    else
        pass_up(t);
}

static void
turning_ended(void *arg, int status)
{
    struct turning *t = arg;

    t->ended = true;
    t->status = status;
    pass_later(t, 0);
}

static void
turning_wrote(void *arg, int status)
{
    struct turning *t = arg;

    if (t->connected)
        t->base.up->wrote(t->base.arg, status);
}

static void
turning_closed(void *arg)
{
    struct turning *t = arg;

    buf_done(&t->held);
    t->base.up->closed(t->base.arg);
}

static const struct transport_events turning_events = {
    .got = turning_got,
    .ended = turning_ended,
    .wrote = turning_wrote,
    .closed = turning_closed,
};

/* --- of the upper side --- */

static int
turning_read(struct transport *base, bool on)
{
    struct turning *t = turning_self(base);

    t->reading = on;
    if (on)
        pass_later(t, 0);
    return t->ended ? 0 : t->carrier->ops->read(t->carrier, on);
}

static int
turning_write(struct transport *base, struct buf *bufs, size_t n)
{
    struct turning *t = turning_self(base);

    for (size_t i = 0; i < n; i++)
        turn_over(bufs[i].data, bufs[i].len);
    return t->carrier->ops->write(t->carrier, bufs, n);
}

static size_t
turning_queued(const struct transport *base)
{
    const struct turning *t = turning_self(base);
    return t->carrier->ops->queued(t->carrier);
}

static int
turning_shutdown(struct transport *base)
{
    struct turning *t = turning_self(base);
    return t->carrier->ops->shutdown(t->carrier);
}

static void
turning_close(struct transport *base)
{
    struct turning *t = turning_self(base);

    t->closing = true;
    timer_stop(TAKE(t->later));
    t->carrier->ops->close(t->carrier);
}

static void
turning_peer(const struct transport *base, struct addr *ret)
{
    transport_peer(turning_self(base)->carrier, ret);
}

static void
turning_patience(const struct transport *base, unsigned ms)
{
    transport_patience(turning_self(base)->carrier, ms);
}

static bool
turning_fds_short(const struct transport *base, unsigned kept)
{
    return transport_fds_short(turning_self(base)->carrier, kept);
}

static const struct transport_ops turning_ops = {
    .read = turning_read,
    .write = turning_write,
    .queued = turning_queued,
    .shutdown = turning_shutdown,
    .close = turning_close,
    .peer = turning_peer,
    .patience = turning_patience,
    .fds_short = turning_fds_short,
};

static struct transport *
turning_wrap(void *arg, struct transport *carrier, const struct filter_use *u)
{
    struct turning *t = mem_new(NULL, struct turning);

    (void)arg;
    t->base.ops = &turning_ops;
    t->base.patient = carrier->patient;
    t->carrier = talloc_steal(t, carrier);
    t->loop = u->loop;
    carrier->up = &turning_events;
    carrier->arg = t;
    buf_init(&t->held, QUEUE_MAX);
    if (u->n > 0)
        buf_put(&t->held, u->p, u->n);
    turn_over(t->held.data, t->held.len);
    pass_later(t, 0);
    return &t->base;
}

const struct filter filter_turning = {turning_wrap, NULL};

/* --- sockets --- */

ssize_t
filter_turned_send(int fd, const void *p, size_t n, int flags)
{
    uint8_t *copy = malloc(n + 1);

    ASSERT(copy != NULL);
    memcpy(copy, p, n);
    turn_over(copy, n);
    ssize_t r = send(fd, copy, n, flags);
    free(copy);
    return r;
}

ssize_t
filter_turned_recv(int fd, void *p, size_t n, int flags)
{
    ssize_t r = recv(fd, p, n, flags);

    if (r > 0)
        turn_over(p, (size_t)r);
    return r;
}

void
filter_turn_text(char *text)
{
    turn_over((uint8_t *)text, strlen(text));
}
