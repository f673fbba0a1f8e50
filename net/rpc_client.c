/* SPDX-License-Identifier: Apache-2.0
 *
 * RPC client: a link over one connection that is made when needed, or two links in process. In this
 * order: the carrier in process, two queues; the carrier over the network, which connects, waits
 * and goes on to the next server; calls, which are the link's; the list of servers and how clients
 * spread over it; life.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/random.h"
#include "common/str.h"
#include "net/rpc_link_int.h"

enum way { WAY_DOWN, WAY_CONNECTING, WAY_UP };

struct rpc_client {
    struct loop *loop;
    struct rpc_link *link;
    size_t refs; /* owner and connection */
    bool closed;
    struct rpc_reader reader;
    /* over the network */
    struct stream_way how; /* a connection is made */
    bool falls_back, plain; /* may be plain; is, this time */
    bool heard;             /* bytes over this connection */
    struct addr
        *servers; /* in the order in which they are tried: those learned, then those given */
    size_t n_servers, n_given, next;
    struct addr at; /* the one that is connected, or is to be */
    struct stream *stream;
    enum way way;
    int64_t backoff_ms;
    struct timer *retry;
    struct timer *late;      /* it does not connect */
    size_t failed;           /* servers that were tried since there was a connection */
    struct timer *rebalance; /* there is one more */
    bool moving;             /* to the next one, without anything lost */
    char last_error[256];
    /* in process */
    struct rpc_link *there; /* the server's side */
    struct rpc_reader serve;
    struct pipe {
        struct buf *v; /* pieces of frames */
        size_t n, bytes;
    } to_server, to_client;
    struct timer *pump;
};

static void
pipe_drop(struct pipe *p)
{
    for (size_t i = 0; i < p->n; i++)
        buf_done(&p->v[i]);
    mem_free(p->v);
    p->n = p->bytes = 0;
}

static void
client_unref(struct rpc_client *c)
{
    if (--c->refs == 0) {
        rpc_reader_done(&c->reader);
        rpc_reader_done(&c->serve);
        pipe_drop(&c->to_server);
        pipe_drop(&c->to_client);
        talloc_free(c);
    }
}

static bool
on_frame(void *arg, const struct rpc_head *h, const uint8_t *body)
{
    struct rpc_client *c = arg;

    if (!rpc_link_frame(c->link, h, body)) {
        ASSERT(c->closed || c->stream != NULL); /* in process they are our own */
        if (c->stream)
            stream_close(c->stream);
    }
    return !c->closed;
}

/* --- in process --- */

static void pump_cb(void *arg);

static void
pipe_put(struct rpc_client *c, struct pipe *to, struct buf *bufs, size_t n)
{
    mem_resize(c, to->v, struct buf, to->n + n);
    for (size_t i = 0; i < n; i++) {
        to->v[to->n++] = bufs[i];
        to->bytes += bufs[i].len;
        ASSERT(buf_error(&bufs[i]) == 0);
        buf_init(&bufs[i], bufs[i].max);
    }
    if (!c->pump && !c->closed)
        c->pump = timer_start(c->loop, 0, pump_cb, c);
}

static void
send_there(void *arg, struct buf *bufs, size_t n)
{
    struct rpc_client *c = arg;
    pipe_put(c, &c->to_server, bufs, n);
}

static void
send_here(void *arg, struct buf *bufs, size_t n)
{
    struct rpc_client *c = arg;
    pipe_put(c, &c->to_client, bufs, n);
}

static void
hand_here(void *arg, uint64_t id, const void *resp)
{
    struct rpc_client *c = arg;
    if (!c->closed)
        rpc_calls_hand(c->link, id, resp);
}

static size_t
queued_there(void *arg)
{
    return ((struct rpc_client *)arg)->to_server.bytes;
}

static size_t
queued_here(void *arg)
{
    return ((struct rpc_client *)arg)->to_client.bytes;
}

static bool
on_serve_frame(void *arg, const struct rpc_head *h, const uint8_t *body)
{
    struct rpc_client *c = arg;
    bool ok = rpc_link_frame(c->there, h, body);
    ASSERT(ok || c->closed); /* our own frames */
    return !c->closed;
}

static void
pump_one(struct rpc_client *c, struct pipe *from, struct rpc_reader *to)
{
    struct pipe p = *from;

    *from = (struct pipe){0};
    for (size_t i = 0; i < p.n && !c->closed; i++)
        ASSERT(rpc_reader_feed(to, p.v[i].data, p.v[i].len) >= 0);
    pipe_drop(&p);
}

static void
pump_cb(void *arg)
{
    struct rpc_client *c = arg;
    c->pump = NULL;
    c->refs++;
    pump_one(c, &c->to_server, &c->serve);
    pump_one(c, &c->to_client, &c->reader);
    if (!c->closed)
        rpc_link_drained(c->link);
    if (!c->closed)
        rpc_link_drained(c->there);
    client_unref(c);
}

/* --- over the network --- */

static void connect_next(struct rpc_client *c);
static void late_cb(void *arg);

static void
send_out(void *arg, struct buf *bufs, size_t n)
{
    struct rpc_client *c = arg;
    stream_write(c->stream, bufs, n);
}

static size_t
queued_out(void *arg)
{
    return stream_queued(((struct rpc_client *)arg)->stream);
}

static const struct peer_identity *
identity_out(void *arg)
{
    const struct rpc_client *c = arg;
    return c->stream != NULL ? stream_identity(c->stream) : NULL;
}

static void
on_connect(void *arg)
{
    struct rpc_client *c = arg;

    c->way = WAY_UP;
    c->heard = false;
    timer_stop(TAKE(c->late));
    c->failed = 0;
    c->last_error[0] = 0;
    rpc_link_up(c->link);
}

static void
on_data(void *arg, const uint8_t *p, size_t n)
{
    struct rpc_client *c = arg;
    c->refs++;
    c->heard = true;
    c->backoff_ms = RPC_BACKOFF_MIN_MS; /* not before: it may end at once */
    if (rpc_reader_feed(&c->reader, p, n) < 0 && !c->closed)
        stream_close(c->stream);
    client_unref(c);
}

static void
on_drain(void *arg)
{
    struct rpc_client *c = arg;
    rpc_link_drained(c->link);
}

static void
retry_cb(void *arg)
{
    struct rpc_client *c = arg;
    c->retry = NULL;
    connect_next(c);
}

/* Says whether one who speaks plain text was sent away before it heard anything. */
static bool
was_sent_away(const struct rpc_client *c, int code)
{
    return c->way == WAY_UP && c->how.filter == NULL && !c->heard &&
           (code == -ERR_CLOSED || code == -ECONNRESET);
}

static void
on_close(void *arg, int code)
{
    struct rpc_client *c = arg;
    char text[ADDR_TEXT];
    const char *why = stream_why(c->stream); /* as long as this runs */
    bool away = was_sent_away(c, code);

    c->plain = c->falls_back && !c->plain && c->way == WAY_CONNECTING && why != NULL &&
               code == -ERR_CLOSED;
    c->way = WAY_DOWN;
    c->stream = NULL;
    timer_stop(TAKE(c->late));
    rpc_reader_done(&c->reader);
    if (!c->closed) {
        snprintf(c->last_error, sizeof(c->last_error), "no server reachable: %s: %s",
                 addr_format(&c->at, text),
                 why != NULL ? why
                 : away      ? "it ended the connection without a word: does it want TLS (tls.rpc)?"
                 : code      ? err_name(code)
                             : "no answer");
        if (c->moving)
            rpc_calls_again(c->link);
        c->moving = false;
        rpc_link_down(c->link, c->last_error,
                      away ? c->last_error : "connection to the server closed");
    }
    if (!c->closed && c->link->pending && !c->retry && c->way == WAY_DOWN) {
        /* half fixed, half random, so that clients of a lost server do not come in step */
        int64_t d = c->backoff_ms / 2 + (int64_t)(rand_u64() % (uint64_t)c->backoff_ms);
        c->backoff_ms =
            c->backoff_ms * 2 > RPC_BACKOFF_MAX_MS ? RPC_BACKOFF_MAX_MS : c->backoff_ms * 2;
        c->retry = timer_start(c->loop, d, retry_cb, c);
    }
    client_unref(c);
}

static const struct stream_ops client_ops = {
    .on_connect = on_connect, .on_data = on_data, .on_drain = on_drain, .on_close = on_close};

/* Away from this server; what is asked meanwhile waits for the next one. */
static void
rpc_client_leave(struct rpc_client *c)
{
    c->link->up = false;
    stream_close(c->stream);
}

static void
late_cb(void *arg)
{
    struct rpc_client *c = arg;
    c->late = NULL;
    rpc_client_leave(c);
}

static void
rpc_client_mute(void *arg)
{
    struct rpc_client *c = arg;
    if (c->n_servers > 1 && c->way == WAY_UP)
        rpc_client_leave(c);
}

void
rpc_leave(struct rpc_client *c)
{
    c->moving = c->n_servers > 1 && c->way == WAY_UP;
    rpc_client_mute(c);
}

static void
connect_next(struct rpc_client *c)
{
    if (c->closed || c->way != WAY_DOWN || c->retry || !c->link->pending)
        return;
    c->way = WAY_CONNECTING;
    c->refs++;
    if (!c->plain) { /* else where it was tried with the filter */
        c->at = c->servers[c->next];
        c->next = (c->next + 1) % c->n_servers;
    }
    /* Looking up a name may be what takes long: in a second round it gets all its time. What is
     * sent to an address and lost is sent again by us; the kernel would do so later and later. */
    if (addr_is_numeric(&c->at) || (c->n_servers > 1 && c->failed++ < c->n_servers))
        c->late = timer_start(c->loop, RPC_CONNECT_MS, late_cb, c);
    const struct stream_way plain = {.first = RPC_PROTOCOL_BYTE};
    c->stream = stream_connect(c->loop, &c->at, c->plain ? &plain : &c->how, &client_ops, c);
}

static void
rpc_client_wanted(void *arg)
{
    connect_next(arg);
}

/* --- calls --- */

struct rpc_link *
rpc_client_link(struct rpc_client *c)
{
    return c->link;
}

bool
rpc_client_up(const struct rpc_client *c)
{
    return c->way == WAY_UP;
}

uint64_t
rpc_send(struct rpc_client *c, const struct rpc_request *r, rpc_done *done, void *arg)
{
    return rpc_link_send(c->link, r, done, arg);
}

void
rpc_cancel(struct rpc_client *c, uint64_t call_id)
{
    rpc_link_cancel(c->link, call_id);
}

void
rpc_serve(struct rpc_client *c, const struct rpc_service *services, size_t n, void *arg)
{
    c->link->cfg.services = services;
    c->link->cfg.n = n;
    c->link->cfg.arg = arg;
}

/* --- which servers --- */

static bool
rpc_client_same(const struct addr *a, const struct addr *b)
{
    return a->port == b->port && a->is_unix == b->is_unix && str_eq(a->host, b->host);
}

static bool
rpc_client_known(const struct addr *v, size_t n, const struct addr *a)
{
    for (size_t i = 0; i < n; i++)
        if (rpc_client_same(&v[i], a))
            return true;
    return false;
}

/* So that clients of one configuration do not all ask the same server. */
static void
rpc_client_shuffle(struct addr *v, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)(rand_u64() % i);
        struct addr a = v[i - 1];
        v[i - 1] = v[k];
        v[k] = a;
    }
}

static size_t
rpc_client_learned(const struct rpc_client *c)
{
    return c->n_servers - c->n_given;
}

static void rebalance_in(struct rpc_client *c, int64_t ms);

void
rpc_client_rebalance(struct rpc_client *c)
{
    if (c->way != WAY_UP)
        return; /* it connects to one of them by itself */
    if (c->link->calls || c->link->streams[0] || c->link->streams[1] ||
        !rpc_calls_only_reads(c->link)) {
        rebalance_in(c, RPC_REBALANCE_MS / 2);
        return;
    }
    size_t to = (size_t)(rand_u64() % rpc_client_learned(c));
    if (rpc_client_same(&c->servers[to], &c->at))
        return;
    c->next = to;
    c->moving = true;
    rpc_client_leave(c);
}

static void
rebalance_cb(void *arg)
{
    struct rpc_client *c = arg;
    c->rebalance = NULL;
    rpc_client_rebalance(c);
}

static void
rebalance_in(struct rpc_client *c, int64_t ms)
{
    if (!c->rebalance)
        c->rebalance = timer_start(c->loop, ms, rebalance_cb, c);
}

static int
parse_all(const struct str_list *from, struct addr *v, size_t *ret_n, struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < from->n && n < RPC_SERVERS_MAX; i++) {
        if (addr_parse(from->v[i], 4647, &v[n], e) < 0)
            return e->code;
        if (v[n].is_unix)
            return err_set(e, -ERR_INVALID, "\"%.100s\" is no address of a server", from->v[i]);
        n += !rpc_client_known(v, n, &v[n]);
    }
    *ret_n = n;
    return n > 0 ? 0 : err_set(e, -ERR_INVALID, "missing server address");
}

int
rpc_set_servers(struct rpc_client *c, const struct str_list *servers, struct err *e)
{
    auto_mem struct addr *v = mem_array(NULL, struct addr, RPC_SERVERS_MAX + c->n_given);
    size_t n = 0, old = rpc_client_learned(c);
    bool more = false;
    ASSERT(c->n_given > 0);
    if (parse_all(servers, v, &n, e) < 0)
        return e->code;
    for (size_t i = 0; i < n; i++)
        more |= !rpc_client_known(c->servers, old, &v[i]);
    if (!more && n == old)
        return 0;
    rpc_client_shuffle(v, n);
    for (size_t i = 0; i < n + c->n_given; i++) {
        if (i >= n)
            v[i] = c->servers[old + i - n];
        (void)str_copy(v[i].from, sizeof(v[i].from), c->servers[old].from);
    }
    mem_free(c->servers);
    c->n_servers = n + c->n_given;
    c->servers = mem_array(c, struct addr, c->n_servers);
    memcpy(c->servers, v, c->n_servers * sizeof(*v));
    c->next = rpc_client_same(&c->servers[0], &c->at) ? 1 % c->n_servers : 0;
    if (more && (n > 1 || !rpc_client_same(&c->servers[0], &c->at)))
        rebalance_in(c, RPC_REBALANCE_MS +
                            (int64_t)(rand_u64() % (RPC_REBALANCE_MAX_MS - RPC_REBALANCE_MS)));
    return 1;
}

struct str_list
rpc_servers(const struct rpc_client *c, const void *ctx)
{
    struct str_list l = {0};
    char text[ADDR_TEXT];
    size_t n = rpc_client_learned(c) > 0 ? rpc_client_learned(c) : c->n_given;
    for (size_t i = 0; i < n; i++)
        list_add(ctx, l, mem_strdup(ctx, addr_format(&c->servers[i], text)));
    return l;
}

/* --- life --- */

static struct rpc_client *
client_make(struct loop *l, const struct rpc_link_config *cfg)
{
    struct rpc_client *c = mem_new(NULL, struct rpc_client);
    struct rpc_link_config own = *cfg;

    c->loop = own.loop = l;
    c->refs = 1;
    c->backoff_ms = RPC_BACKOFF_MIN_MS;
    rpc_reader_init(&c->reader, on_frame, c);
    own.carrier = c;
    c->link = rpc_link_new(&own);
    return c;
}

struct rpc_client *
rpc_dial(const struct dialer *d, const struct str_list *servers, struct err *e)
{
    struct rpc_client *c =
        client_make(d->loop, &(struct rpc_link_config){.peer = "server",
                                                       .send = send_out,
                                                       .queued = queued_out,
                                                       .identity = identity_out,
                                                       .wanted = rpc_client_wanted,
                                                       .mute = rpc_client_mute});

    c->how = (struct stream_way){
        .filter = d->filter,
        .name = mem_strdup(c, d->name),
        .protocol = RPC_PROTOCOL,
        .first = RPC_PROTOCOL_BYTE | (d->filter != NULL ? RPC_FILTERED : 0)};
    c->falls_back = d->falls_back && d->filter != NULL;
    if (servers->n == 0)
        err_set(e, -ERR_INVALID, "no server address given");
    c->servers = mem_array(c, struct addr, servers->n);
    for (size_t i = 0; i < servers->n; i++)
        if (addr_parse(servers->v[i], 4647, &c->servers[i], e) < 0)
            break;
        else if (!str_copy(c->servers[i].from, sizeof(c->servers[i].from), str_or(d->from, "")))
            err_set(e, -ERR_INVALID, "address to connect from is too long");
    c->n_servers = c->n_given = servers->n;
    if (!e->code)
        rpc_client_shuffle(c->servers, c->n_servers);
    if (e->code) {
        rpc_client_close(c);
        return NULL;
    }
    return c;
}

struct rpc_client *
rpc_local(struct loop *l, const struct rpc_service *services, size_t n, void *arg)
{
    struct rpc_link_config cfg = {
        .peer = "local", .local = true, .send = send_there, .queued = queued_there};
    struct rpc_client *c = client_make(l, &cfg);

    rpc_reader_init(&c->serve, on_serve_frame, c);
    cfg = (struct rpc_link_config){.loop = l,
                                   .services = services,
                                   .n = n,
                                   .arg = arg,
                                   .peer = "local",
                                   .local = true,
                                   .send = send_here,
                                   .hand = hand_here,
                                   .queued = queued_here,
                                   .carrier = c};
    c->there = rpc_link_new(&cfg);
    return c;
}

void
rpc_client_close(struct rpc_client *c)
{
    if (!c)
        return;
    c->closed = true;
    timer_stop(TAKE(c->retry));
    timer_stop(TAKE(c->late));
    timer_stop(TAKE(c->rebalance));
    timer_stop(TAKE(c->pump));
    if (c->stream)
        stream_close(c->stream);
    rpc_link_close(c->link, -ERR_CANCELED, "the agent stops");
    rpc_link_close(c->there, -ERR_CLOSED, "the agent stops");
    c->link = c->there = NULL;
    client_unref(c);
}
