/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection: a transport that encrypts for its upper side what its carrier bears. Bytes go
 * through a BIO of ours, that reads what the carrier has just brought and writes to a buffer which
 * the carrier takes as a whole: nothing is copied but what stays. In this order: the BIO; what goes
 * out; the handshake and its end; what comes in; the upper side's operations; the carrier's events.
 */
#include <inttypes.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "net/tls/tls_int.h"

enum {
    RECORD = SSL3_RT_MAX_PLAIN_LENGTH,
    OUT_MAX = 2 * STREAM_QUEUE_MAX,
    TELL_NS = 1000000000
};

/* A record costs less than setting its memory to zero would. */
#define UNSET __attribute__((uninitialized))

enum tls_state {
    TLS_WAITING, /* for its turn */
    TLS_SHAKING,
    TLS_OPEN,
    TLS_FAILED
};

struct tls_conn {
    struct transport base; /* first */
    struct transport *carrier;
    struct loop *loop;
    struct tls *tls;
    struct tls_set *set;
    struct tls_peer peer;
    struct tls_turn turn;
    struct tls_lane *lane;
    struct tls_step step;
    struct tls_seat seat;
    SSL *ssl; /* NULL: waits for its turn */
    enum tls_state state;
    bool reading, carrier_reads, closing, shut;
    uint8_t first; /* byte that came; 0: none */
    bool ended; /* the carrier, with this status */
    int status;
    const uint8_t *in; /* what the BIO reads */
    size_t in_n;
    struct buf held;  /* came and was not read */
    struct buf out;   /* what the BIO has written */
    struct buf early; /* written before the handshake was over */
    struct timer *limit, *kick;
};

static struct tls_conn *
tls_conn_self(const struct transport *t)
{
    return (struct tls_conn *)(uintptr_t)t;
}

static void tls_conn_soon(struct tls_conn *c);

/* --- the BIO --- */

static int
bio_read(BIO *b, char *p, int size)
{
    struct tls_conn *c = BIO_get_data(b);
    size_t n = size < 0 ? 0 : (size_t)size;

    BIO_clear_retry_flags(b);
    if (c->in_n == 0) {
        BIO_set_retry_read(b);
        return -1;
    }
    if (n > c->in_n)
        n = c->in_n;
    memcpy(p, c->in, n);
    c->in += n;
    c->in_n -= n;
    return (int)n;
}

static int
bio_write(BIO *b, const char *p, int n)
{
    struct tls_conn *c = BIO_get_data(b);

    BIO_clear_retry_flags(b);
    buf_put(&c->out, p, n < 0 ? 0 : (size_t)n);
    return buf_error(&c->out) ? -1 : n;
}

static long
bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
    (void)b;
    (void)num;
    (void)ptr;
    return cmd == BIO_CTRL_FLUSH;
}

static pthread_once_t bio_once = PTHREAD_ONCE_INIT;
static BIO_METHOD *bio_method;

static void
bio_make_method(void)
{
    bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "carrier");
    ASSERT(bio_method != NULL && BIO_meth_set_read(bio_method, bio_read) == 1 &&
           BIO_meth_set_write(bio_method, bio_write) == 1 &&
           BIO_meth_set_ctrl(bio_method, bio_ctrl) == 1);
}

static BIO *
bio_of(struct tls_conn *c)
{
    ASSERT(pthread_once(&bio_once, bio_make_method) == 0);
    BIO *b = BIO_new(bio_method);
    ASSERT(b != NULL);
    BIO_set_data(b, c);
    BIO_set_init(b, 1);
    return b;
}

/* --- out --- */

/* Gives the carrier what the BIO has written. */
static int
tls_flush(struct tls_conn *c)
{
    struct buf b = c->out;

    if (buf_error(&b))
        return -ERR_LIMIT;
    if (b.len == 0)
        return 0;
    buf_init(&c->out, OUT_MAX);
    return c->carrier->ops->write(c->carrier, &b, 1);
}

/* Encrypts; what OpenSSL refuses is told as an error of the connection. */
static int
tls_encrypt(struct tls_conn *c, const uint8_t *p, size_t n)
{
    size_t done;

    ERR_clear_error();
    while (n > 0) {
        size_t part = n < (1u << 30) ? n : 1u << 30;
        if (SSL_write_ex(c->ssl, p, part, &done) != 1) {
            tls_peer_why(&c->peer, c->ssl, false);
            return -ERR_CLOSED;
        }
        p += done;
        n -= done;
    }
    return 0;
}

/* Says what went wrong, once in a second: connections that fail come by the thousand. */
static void
tls_tell(struct tls_conn *c)
{
    struct tls *t = c->tls;
    int64_t now = clock_mono_ns(), last = atomic_load(&t->told_ns);

    if (c->set->quiet)
        return;
    if ((last != 0 && now - last < TELL_NS) ||
        !atomic_compare_exchange_strong(&t->told_ns, &last, now)) {
        atomic_fetch_add(&t->untold, 1);
        return;
    }
    log_warn("tls", c->peer.accepted ? "a connection is refused" : "a connection fails", "peer",
             c->peer.address, "why", c->peer.why, "others", LOG_U64(atomic_exchange(&t->untold, 0)),
             NULL);
}

/* --- the handshake --- */

/* Says in plain text that TLS is wanted, to who speaks HTTP: records begin with no letter. */
static void
tls_answer_plain(struct tls_conn *c)
{
    static const char text[] = "Client sent an HTTP request to an HTTPS server.\n";

    if (!c->peer.accepted || c->peer.use != TLS_HTTP || c->first < 'A' || c->first > 'Z')
        return;
    buf_done(&c->out);
    buf_init(&c->out, OUT_MAX);
    buf_printf(&c->out,
               "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n"
               "Content-Length: %zu\r\n\r\n%s",
               sizeof(text) - 1, text);
}

/* Ends with an error, for which c->peer.why has words. In an event. */
static void
tls_fail(struct tls_conn *c, int code)
{
    bool was_open = c->state == TLS_OPEN;

    c->state = TLS_FAILED;
    timer_stop(TAKE(c->limit));
    tls_gate_leave(c->tls, &c->turn);
    tls_lane_unseat(&c->seat);
    if (!was_open)
        tls_answer_plain(c);
    (void)tls_flush(c); /* the alert */
    tls_tell(c);
    if (was_open)
        c->base.up->ended(c->base.arg, code);
    else
        c->base.up->connected(c->base.arg, code);
}

static void
tls_late(void *arg)
{
    struct tls_conn *c = arg;

    c->limit = NULL;
    (void)snprintf(c->peer.why, sizeof(c->peer.why), "%s did not end its handshake in %d s",
                   c->peer.address, TLS_HANDSHAKE_MS / 1000);
    tls_fail(c, -ERR_TIMEOUT);
}

/* The carrier bears what was written meanwhile. */
static int
tls_flush_early(struct tls_conn *c)
{
    int r = tls_encrypt(c, c->early.data, c->early.len);

    buf_done(&c->early);
    if (r == 0 && c->shut)
        (void)SSL_shutdown(c->ssl);
    if (r == 0)
        r = tls_flush(c);
    return r == 0 && c->shut ? c->carrier->ops->shutdown(c->carrier) : r;
}

/* Says whether a renewal since the connection began has revoked the other end's certificate. */
static bool
tls_is_revoked(struct tls_conn *c)
{
    struct tls_set *now = tls_set_now(c->tls);
    bool revoked = now != c->set && tls_peer_revoked(c->ssl, now, &c->peer);

    tls_set_unref(now);
    return revoked;
}

static void
tls_judge_again(void *arg)
{
    struct tls_conn *c = arg;

    if (tls_is_revoked(c))
        tls_fail(c, -ERR_FORBIDDEN);
}

/* False: the connection has failed or closed. */
static bool
tls_shaken(struct tls_conn *c)
{
    timer_stop(TAKE(c->limit));
    tls_gate_leave(c->tls, &c->turn);
    if (!tls_peer_check(c->ssl, c, &c->peer) || tls_is_revoked(c)) {
        tls_fail(c, -ERR_FORBIDDEN);
        return false;
    }
    c->state = TLS_OPEN;
    tls_lane_seat(c->lane, &c->seat);
    int r = tls_flush_early(c);
    if (r < 0) {
        c->state = TLS_SHAKING;
        tls_peer_why(&c->peer, c->ssl, false);
        tls_fail(c, r);
        return false;
    }
    c->base.up->connected(c->base.arg, 0);
    return !c->closing;
}

/* Says whether who dialled has gone while its first words waited: they are not worth a step. */
static bool
tls_is_forsaken(const struct tls_conn *c)
{
    return c->peer.accepted && c->ended && !c->step.begun && c->first == SSL3_RT_HANDSHAKE;
}

/* Takes a slice of the handshake. False: nothing more can be done now. */
static bool
tls_shake(struct tls_conn *c)
{
    if (tls_is_forsaken(c)) {
        tls_peer_why(&c->peer, c->ssl, true);
        tls_fail(c, -ERR_CLOSED);
        return false;
    }
    c->step.begun |= c->first != 0;
    ERR_clear_error();
    int r = SSL_do_handshake(c->ssl);
    int why = SSL_get_error(c->ssl, r);

    int sent = why == SSL_ERROR_SSL ? 0 : tls_flush(c);
    if (r == 1 && sent == 0)
        return tls_shaken(c);
    if (why == SSL_ERROR_WANT_READ && !c->ended && sent == 0)
        return false;
    tls_peer_why(&c->peer, c->ssl, true);
    tls_fail(c, why == SSL_ERROR_SSL ? -ERR_FORBIDDEN : -ERR_CLOSED);
    return false;
}

static void
tls_begin(void *arg)
{
    struct tls_conn *c = arg;

    c->ssl = SSL_new(c->set->ctx);
    ASSERT(c->ssl != NULL);
    BIO *b = bio_of(c);
    SSL_set_bio(c->ssl, b, b);
    tls_peer_ask(c->ssl, &c->peer);
    c->state = TLS_SHAKING;
    tls_conn_soon(c);
}

/* --- in --- */

/* The carrier is read as long as somebody takes what it brings. */
static void
tls_steer(struct tls_conn *c)
{
    bool shakes = c->state == TLS_SHAKING && c->held.len < RECORD; /* also to hear of its end */
    bool on = !c->closing && !c->ended && (shakes || (c->state == TLS_OPEN && c->reading));

    if (on == c->carrier_reads || c->closing)
        return;
    int r = c->carrier->ops->read(c->carrier, on);
    if (r == 0) {
        c->carrier_reads = on;
    } else if (!c->ended) {
        c->ended = true;
        c->status = r;
        tls_conn_soon(c);
    }
}

/* The peer sends no more. */
static void
tls_over(struct tls_conn *c, int status)
{
    c->reading = false;
    c->ended = true;
    c->base.up->ended(c->base.arg, status);
}

/* Hands a record to the upper side. False: nothing more can be done now. */
static bool
tls_take(struct tls_conn *c)
{
    uint8_t record[RECORD] UNSET;
    size_t n = 0;

    ERR_clear_error();
    int r = SSL_read_ex(c->ssl, record, sizeof(record), &n);
    int why = SSL_get_error(c->ssl, r);
    if (r == 1) {
        c->base.up->got(c->base.arg, record, n);
        return !c->closing && (c->in_n > 0 || c->ended || SSL_has_pending(c->ssl));
    }
    (void)tls_flush(c); /* an answer to a question of the protocol */
    if (why == SSL_ERROR_ZERO_RETURN)
        tls_over(c, 0);
    else if (why == SSL_ERROR_WANT_READ && c->ended)
        tls_over(c, c->status < 0 ? c->status : -ERR_CLOSED); /* cut off */
    else if (why != SSL_ERROR_WANT_READ) {
        tls_peer_why(&c->peer, c->ssl, false);
        tls_fail(c, -ERR_CLOSED);
    }
    return false;
}

/* Goes on with what has come. */
static void
tls_go_on(struct tls_conn *c)
{
    bool more = true;

    while (more && !c->closing)
        if (c->state == TLS_SHAKING)
            more = tls_shake(c);
        else if (c->state == TLS_OPEN && c->reading)
            more = tls_take(c);
        else
            more = false;
}

static void
tls_feed(struct tls_conn *c, const uint8_t *p, size_t n)
{
    bool was_held = c->held.len > 0;

    if (was_held) {
        if (n > 0)
            buf_put(&c->held, p, n);
        p = c->held.data;
        n = c->held.len;
    }
    if (c->first == 0 && n > 0)
        c->first = p[0];
    c->in = p;
    c->in_n = n;
    tls_go_on(c);
    if (was_held)
        buf_consume(&c->held, n - c->in_n);
    else if (c->in_n > 0 && !c->closing)
        buf_put(&c->held, c->in, c->in_n);
    c->in_n = 0;
    c->in = NULL;
    if (c->held.len == 0)
        buf_done(&c->held);
    tls_steer(c);
}

static void
tls_kicked(void *arg)
{
    struct tls_conn *c = arg;

    c->kick = NULL;
    if (c->ssl != NULL)
        tls_feed(c, NULL, 0);
}

static void
tls_step_run(void *arg)
{
    tls_feed(arg, NULL, 0);
}

/* Goes on in a later turn, a handshake when it has its own. */
static void
tls_conn_soon(struct tls_conn *c)
{
    if (c->closing)
        return;
    if (c->state == TLS_SHAKING)
        tls_lane_put(c->lane, &c->step);
    else if (c->kick == NULL)
        c->kick = timer_start(c->loop, 0, tls_kicked, c);
}

/* --- the upper side --- */

static int
tls_read_op(struct transport *t, bool on)
{
    struct tls_conn *c = tls_conn_self(t);

    c->reading = on;
    if (on)
        tls_conn_soon(c);
    else
        tls_steer(c);
    return 0;
}

static int
tls_write_op(struct transport *t, struct buf *bufs, size_t n)
{
    struct tls_conn *c = tls_conn_self(t);
    uint8_t record[RECORD] UNSET;
    size_t total = 0, at = 0;
    int r = c->state == TLS_FAILED ? -ERR_CLOSED : 0;

    for (size_t i = 0; i < n; i++)
        total += bufs[i].len;
    for (size_t i = 0; i < n; i++) {
        if (r < 0 || bufs[i].len == 0)
            ;
        else if (c->state != TLS_OPEN)
            buf_put(&c->early, bufs[i].data, bufs[i].len);
        else if (total > sizeof(record))
            r = tls_encrypt(c, bufs[i].data, bufs[i].len);
        else
            memcpy(record + at, bufs[i].data, bufs[i].len);
        at += bufs[i].len;
        buf_done(&bufs[i]);
    }
    if (r == 0 && c->state == TLS_OPEN && total <= sizeof(record))
        r = tls_encrypt(c, record, total);
    if (r == 0 && buf_error(&c->early))
        r = -ERR_LIMIT;
    return r < 0 ? r : tls_flush(c);
}

static size_t
tls_queued_op(const struct transport *t)
{
    const struct tls_conn *c = tls_conn_self(t);
    return c->early.len + c->carrier->ops->queued(c->carrier);
}

static int
tls_shutdown_op(struct transport *t)
{
    struct tls_conn *c = tls_conn_self(t);

    if (c->state == TLS_FAILED)
        return -ERR_CLOSED;
    c->shut = true;
    if (c->state != TLS_OPEN)
        return 0;
    ERR_clear_error();
    (void)SSL_shutdown(c->ssl);
    int r = tls_flush(c);
    return r < 0 ? r : c->carrier->ops->shutdown(c->carrier);
}

static void
tls_close_op(struct transport *t)
{
    struct tls_conn *c = tls_conn_self(t);

    /* the other end then knows that nothing was cut off */
    if (c->state == TLS_OPEN && !c->shut && tls_queued_op(t) == 0) {
        ERR_clear_error();
        (void)SSL_shutdown(c->ssl);
        (void)tls_flush(c);
    }
    c->closing = true;
    timer_stop(TAKE(c->limit));
    timer_stop(TAKE(c->kick));
    tls_gate_leave(c->tls, &c->turn);
    tls_lane_out(&c->step);
    tls_lane_unseat(&c->seat);
    c->carrier->ops->close(c->carrier);
}

static void
tls_peer_op(const struct transport *t, struct addr *ret)
{
    transport_peer(tls_conn_self(t)->carrier, ret);
}

static void
tls_patience_op(const struct transport *t, unsigned ms)
{
    transport_patience(tls_conn_self(t)->carrier, ms);
}

static bool
tls_fds_short_op(const struct transport *t, unsigned kept)
{
    return transport_fds_short(tls_conn_self(t)->carrier, kept);
}

static const char *
tls_why_op(const struct transport *t)
{
    const struct tls_conn *c = tls_conn_self(t);
    return c->peer.why[0] != '\0' ? c->peer.why : NULL;
}

static const struct peer_identity *
tls_identity_op(const struct transport *t)
{
    const struct tls_conn *c = tls_conn_self(t);
    return c->state == TLS_OPEN ? &c->peer.is : NULL;
}

static const struct transport_ops tls_ops = {
    .read = tls_read_op,
    .write = tls_write_op,
    .queued = tls_queued_op,
    .shutdown = tls_shutdown_op,
    .close = tls_close_op,
    .peer = tls_peer_op,
    .patience = tls_patience_op,
    .fds_short = tls_fds_short_op,
    .why = tls_why_op,
    .identity = tls_identity_op,
};

/* --- the carrier --- */

/* The carrier is a filter as well. */
static void
carrier_connected(void *arg, int status)
{
    struct tls_conn *c = arg;

    if (status < 0 && c->state != TLS_FAILED) {
        tls_peer_why(&c->peer, c->ssl, true);
        tls_fail(c, status);
    }
}

static void
carrier_got(void *arg, const uint8_t *p, size_t n)
{
    struct tls_conn *c = arg;

    if (c->state == TLS_SHAKING) {
        buf_put(&c->held, p, n);
        tls_steer(c);
        tls_conn_soon(c);
    } else {
        tls_feed(c, p, n);
    }
}

static void
carrier_ended(void *arg, int status)
{
    struct tls_conn *c = arg;

    c->carrier_reads = false;
    if (!c->ended) {
        c->ended = true;
        c->status = status;
        tls_conn_soon(c);
    }
}

static void
carrier_wrote(void *arg, int status)
{
    struct tls_conn *c = arg;

    if (c->state == TLS_OPEN) {
        c->base.up->wrote(c->base.arg, status);
    } else if (status < 0 && c->state != TLS_FAILED) {
        tls_peer_why(&c->peer, c->ssl, true);
        tls_fail(c, status);
    }
}

static void
carrier_closed(void *arg)
{
    struct tls_conn *c = arg;
    struct tls *t = c->tls;
    struct tls_set *s = c->set;

    tls_lane_unref(t, c->lane);
    SSL_free(c->ssl);
    buf_done(&c->held);
    buf_done(&c->out);
    buf_done(&c->early);
    c->base.up->closed(c->base.arg);
    tls_set_unref(s);
    tls_unref(t);
}

static const struct transport_events carrier_events = {
    .connected = carrier_connected,
    .got = carrier_got,
    .ended = carrier_ended,
    .wrote = carrier_wrote,
    .closed = carrier_closed,
};

struct transport *
tls_wrap(void *arg, struct transport *carrier, const struct filter_use *u)
{
    struct tls_end *end = arg;
    struct tls_conn *c = mem_new(NULL, struct tls_conn);

    c->base.ops = &tls_ops;
    c->base.patient = carrier->patient;
    c->carrier = talloc_steal(c, carrier);
    carrier->up = &carrier_events;
    carrier->arg = c;
    c->loop = u->loop;
    c->tls = tls_ref(end->tls);
    c->set = tls_set_now(end->tls);
    c->peer = (struct tls_peer){.set = c->set,
                                .use = end->use,
                                .accepted = u->accepted,
                                .address = mem_strdup(c, u->peer),
                                .name = mem_strdup(c, u->name),
                                .protocol = mem_strdup(c, u->protocol)};
    buf_init(&c->held, STREAM_QUEUE_MAX);
    buf_init(&c->out, OUT_MAX);
    buf_init(&c->early, STREAM_QUEUE_MAX);
    buf_put(&c->held, u->p, u->n);
    c->turn = (struct tls_turn){.begin = tls_begin, .arg = c};
    c->lane = tls_lane_ref(c->tls, c->loop);
    c->step = (struct tls_step){.run = tls_step_run, .arg = c};
    c->seat = (struct tls_seat){.judge = tls_judge_again, .arg = c};
    c->limit = timer_start(c->loop, TLS_HANDSHAKE_MS, tls_late, c);
    if (!u->accepted || tls_gate_enter(c->tls, c->loop, c->peer.address, &c->turn))
        tls_begin(c);
    return &c->base;
}
