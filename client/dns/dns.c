/* SPDX-License-Identifier: Apache-2.0
 *
 * The server of names, see dns.h. In this order: one question; over UDP; over TCP, one question at
 * a time of each connection; start and stop.
 */
#include "client/dns/dns.h"

#include <string.h>
#include <utlist.h>

#include "client/dns/lookup.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/addr.h"
#include "net/datagram.h"
#include "net/stream.h"

enum {
    CONNS_MAX = 256,
    CONN_IDLE_MS = 10 * 1000,
    QUESTION_MAX = DNS_UDP_MAX /* bytes of a message that asks */
};

struct dns {
    struct ground *g;
    struct lookup *names;
    struct datagram *udp;
    struct listener *tcp;
    struct dns_later *later; /* questions by UDP that wait for a server */
    struct dns_conn *conns;
    size_t turn;
    struct buf answer;
};

/* --- one question --- */

/* True: d->answer has the answer, or is empty, and none is due. False: *s is to be waited for. */
static bool
dns_look(struct dns *d, const uint8_t *p, size_t n, size_t max, struct zone_service *s)
{
    struct dns_question q;
    const struct zone_set *set = NULL;
    int code = dns_parse(p, n, &q);
    buf_reset(&d->answer);
    if (code > DNS_OK)
        zone_refuse(&q, (enum dns_code)code, &d->answer);
    if (code != DNS_OK)
        return true;
    if (zone_asks(&q, s) && !lookup_get(d->names, s, &set))
        return false;
    zone_answer(&q, set, d->turn++, max > 0 ? max : q.size, &d->answer);
    return true;
}

/* The same, when the set has come. */
static void
dns_look_again(struct dns *d, const uint8_t *p, size_t n, size_t max, const struct zone_set *set)
{
    struct dns_question q;
    buf_reset(&d->answer);
    if (dns_parse(p, n, &q) == DNS_OK)
        zone_answer(&q, set, d->turn++, max > 0 ? max : q.size, &d->answer);
}

/* --- UDP --- */

struct dns_later {
    struct lookup_wait wait; /* the first member */
    struct dns_later *prev, *next;
    struct dns *d;
    const char *from;
    uint8_t *question;
    size_t n;
};

static void
dns_send(struct dns *d, const char *to)
{
    if (d->answer.len > 0)
        (void)datagram_send(d->udp, to, d->answer.data, d->answer.len);
}

static void
later_free(struct dns_later *l)
{
    lookup_unwait(&l->wait);
    DL_DELETE(l->d->later, l);
    talloc_free(l);
}

static void
on_later(struct lookup_wait *w, const struct zone_set *set)
{
    struct dns_later *l = (struct dns_later *)w;
    dns_look_again(l->d, l->question, l->n, 0, set);
    dns_send(l->d, l->from);
    later_free(l);
}

static void
on_datagram(void *arg, const char *from, const uint8_t *p, size_t n)
{
    struct dns *d = arg;
    if (n > QUESTION_MAX)
        return;
    struct zone_service s;
    if (dns_look(d, p, n, 0, &s)) {
        dns_send(d, from);
        return;
    }
    struct dns_later *l = mem_new(d, struct dns_later);
    *l = (struct dns_later){.wait = {.found = on_later}, .d = d, .n = n};
    l->from = mem_strdup(l, from);
    l->question = mem_dup(l, p, n);
    lookup_wait(d->names, &s, &l->wait);
    DL_APPEND(d->later, l);
}

/* --- TCP (RFC 7766) --- */

struct dns_conn {
    struct lookup_wait wait; /* the first member */
    struct dns_conn *prev, *next;
    struct dns *d;
    struct stream *st;
    struct timer *idle;
    struct buf in;
    bool busy; /* a question waits for a server */
};

static void conn_go_on(struct dns_conn *c);

static void
conn_answer(struct dns_conn *c)
{
    struct buf b = BUF_INIT(2 + DNS_TCP_MAX);
    if (c->d->answer.len == 0)
        return;
    buf_put_u16(&b, (uint16_t)c->d->answer.len);
    buf_put(&b, c->d->answer.data, c->d->answer.len);
    stream_write(c->st, &b, 1);
}

static void
conn_close(void *arg)
{
    struct dns_conn *c = arg;
    c->idle = NULL;
    stream_close(c->st);
}

static void
on_conn_close(void *arg, int code)
{
    struct dns_conn *c = arg;
    (void)code;
    lookup_unwait(&c->wait);
    timer_stop(c->idle);
    buf_done(&c->in);
    DL_DELETE(c->d->conns, c);
    hold_release(&c->d->g->hold);
    talloc_free(c);
}

static void
on_conn_found(struct lookup_wait *w, const struct zone_set *set)
{
    struct dns_conn *c = (struct dns_conn *)w;
    size_t n = (size_t)big_endian(c->in.data, 2);
    dns_look_again(c->d, c->in.data + 2, n, DNS_TCP_MAX, set);
    conn_answer(c);
    buf_consume(&c->in, 2 + n);
    c->busy = false;
    conn_go_on(c);
}

/* Answers what is there, one after the other. */
static void
conn_go_on(struct dns_conn *c)
{
    struct zone_service s;
    while (!c->busy && c->in.len >= 2) {
        size_t n = (size_t)big_endian(c->in.data, 2);
        if (n > QUESTION_MAX) {
            stream_close(c->st);
            return;
        }
        if (c->in.len < 2 + n)
            break;
        if (!dns_look(c->d, c->in.data + 2, n, DNS_TCP_MAX, &s)) {
            c->busy = true;
            lookup_wait(c->d->names, &s, &c->wait);
        } else {
            conn_answer(c);
            buf_consume(&c->in, 2 + n);
        }
    }
    stream_read(c->st, !c->busy);
}

static void
on_conn_data(void *arg, const uint8_t *p, size_t n)
{
    struct dns_conn *c = arg;
    timer_stop(c->idle);
    c->idle = timer_start(c->d->g->loop, CONN_IDLE_MS, conn_close, c);
    buf_put(&c->in, p, n);
    if (buf_error(&c->in))
        stream_close(c->st);
    else
        conn_go_on(c);
}

static void
on_accept(void *arg, struct stream *st)
{
    static const struct stream_ops ops = {.on_data = on_conn_data, .on_close = on_conn_close};
    struct dns *d = arg;
    struct dns_conn *c = mem_new(NULL, struct dns_conn);
    *c = (struct dns_conn){.wait = {.found = on_conn_found}, .d = d, .st = st};
    buf_init(&c->in, 256 << 10);
    DL_APPEND(d->conns, c);
    hold_take(&d->g->hold);
    c->idle = timer_start(d->g->loop, CONN_IDLE_MS, conn_close, c);
    stream_accept(st, &ops, c);
    stream_read(st, true);
}

/* --- start and stop --- */

struct dns *
dns_start(struct ground *g, struct err *e)
{
    const struct agent_dns *cfg = g->cfg.agent->dns;
    struct addr a;
    if (!cfg || !cfg->enabled)
        return NULL;
    struct dns *d = mem_new(g, struct dns);
    *d = (struct dns){.g = g};
    buf_init(&d->answer, DNS_TCP_MAX);
    const struct listener_config tcp = {
        .conns_max = CONNS_MAX, .per_peer = CONNS_MAX, .on_accept = on_accept, .arg = d};
    if (addr_parse(str_or(cfg->address, DNS_ADDRESS), 53, &a, e) < 0 ||
        datagram_open(g->loop, &a, on_datagram, d, &d->udp, e) < 0 ||
        !(d->tcp = listener_new(g->loop, &a, &tcp, e))) {
        datagram_close(d->udp);
        talloc_free(d);
        err_prefix(e, "dns");
        return NULL;
    }
    d->names = lookup_new(g);
    log_info("client", "names of services are told by DNS", "address",
             str_or(cfg->address, DNS_ADDRESS), NULL);
    return d;
}

void
dns_stop(struct dns *d)
{
    if (!d)
        return;
    datagram_close(TAKE(d->udp));
    listener_close(d->tcp);
    while (d->later)
        later_free(d->later);
    for (struct dns_conn *c = d->conns, *next; c; c = next) {
        next = c->next;
        lookup_unwait(&c->wait);
        stream_close(c->st);
    }
    lookup_stop(d->names);
    buf_done(&d->answer);
}
