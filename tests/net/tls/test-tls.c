/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS between two of ours, by table; what a stranger that speaks OpenSSL, or no TLS at all, is told.
 */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/stream.h"
#include "net/tls/tls.h"
#include "net/tls/tls_int.h"
#include "tests/lib/filter.h"
#include "tests/lib/test.h"
#include "tests/lib/tls.h"

#define WAIT_MS 30000
#define RPC "paddock-rpc"
#define RAFT "paddock-raft"

static struct loop *loop;
static void *ctx;
static struct test_pem ca, other_ca, server, client, stranger;

static void
setup(void)
{
    loop = loop_new();
    ctx = mem_ctx("test");
    ca = test_ca(ctx, "One CA");
    other_ca = test_ca(ctx, "Other CA");
    server = test_cert(ctx, ca, "server.global.nomad,localhost", 0, 10);
    client = test_cert(ctx, ca, "client.global.nomad", 0, 10);
    stranger = test_cert(ctx, other_ca, "server.global.nomad", 0, 10);
}

static void
teardown(void)
{
    loop_free(loop);
    talloc_free(ctx);
}

static struct tls *
tls_of(struct test_pem own, const char *cas, bool verify)
{
    struct err e = ERR_INIT;
    struct tls *t = tls_new(&(struct tls_config){.ca = cas,
                                                 .cert = own.cert,
                                                 .key = own.key,
                                                 .verify_server_hostname = verify,
                                                 .verify_https_client = verify},
                            &e);
    ck_assert_msg(t != NULL, "%s", e.text);
    return t;
}

/* --- ends --- */

struct end {
    struct stream *s;
    bool open, eof, closed, echoes, ends;
    int code;
    size_t n;       /* bytes that came */
    uint64_t sum;   /* of them */
    char why[ERR_TEXT_MAX], first[64];
    enum peer_kind kind;
};

static void
end_open(void *arg)
{
    ((struct end *)arg)->open = true;
}

static void
end_data(void *arg, const uint8_t *p, size_t n)
{
    struct end *d = arg;
    for (size_t i = 0; i < n; i++) {
        if (d->n < sizeof(d->first) - 1)
            d->first[d->n] = (char)p[i];
        d->sum = d->sum * 31 + p[i];
        d->n++;
    }
    if (stream_identity(d->s) != NULL)
        d->kind = stream_identity(d->s)->kind;
    if (d->echoes) {
        struct buf b = BUF_INIT(1 << 20);
        buf_put(&b, p, n);
        stream_write(d->s, &b, 1);
    }
}

static void
end_eof(void *arg)
{
    struct end *d = arg;
    d->eof = true;
    stream_finish(d->s, 0);
}

static void
end_close(void *arg, int code)
{
    struct end *d = arg;
    d->closed = true;
    d->code = code;
    snprintf(d->why, sizeof(d->why), "%s", str_or(stream_why(d->s), ""));
    d->s = NULL;
}

static const struct stream_ops end_ops = {
    .on_connect = end_open, .on_data = end_data, .on_eof = end_eof, .on_close = end_close};

enum { GUESTS = 64 };

static struct end guest[GUESTS];
static size_t guests;
static struct listener *listening;

static void
on_accept(void *arg, struct stream *s)
{
    (void)arg;
    ck_assert_uint_lt(guests, GUESTS);
    struct end *d = &guest[guests++];
    *d = (struct end){.s = s, .echoes = true};
    stream_accept(s, &end_ops, d);
}

static void
listen_at(const struct filter *f, const char *protocol)
{
    struct err e = ERR_INIT;
    struct addr a = {.host = "0.0.0.0"};
    guests = 0;
    listening = listener_new(loop, &a,
                             &(struct listener_config){.conns_max = GUESTS,
                                                       .per_peer = GUESTS,
                                                       .on_accept = on_accept,
                                                       .filter = f,
                                                       .protocol = protocol},
                             &e);
    ck_assert_msg(listening != NULL, "%s", e.text);
}

static void
dial(struct end *d, const struct filter *f, const char *name, const char *protocol, const char *from)
{
    struct addr a = {.host = "127.0.0.1", .port = listener_port(listening)};
    const struct stream_way way = {.filter = f, .name = name, .protocol = protocol};
    (void)str_copy(a.from, sizeof(a.from), str_or(from, ""));
    *d = (struct end){NULL};
    d->s = stream_connect(loop, &a, &way, &end_ops, d);
}

static void
say(struct end *d, const void *p, size_t n)
{
    struct buf b = BUF_INIT(64 << 20);
    if (d->s == NULL)
        return;
    buf_put(&b, p, n);
    stream_write(d->s, &b, 1);
}

static void
turn_until(const bool *flag)
{
    ck_assert(loop_run_until(loop, flag, WAIT_MS));
}

static void
turn_for_bytes(const struct end *d, size_t n)
{
    int64_t until = clock_mono_ns() + WAIT_MS * NS_PER_MS;
    while (d->n < n && !d->closed) {
        bool never = false;
        ck_assert_int_lt(clock_mono_ns(), until);
        loop_run_until(loop, &never, 1);
    }
}

/* It is open, or never will be. */
static void
turn_until_settled(const struct end *d)
{
    while (!d->open && !d->closed) {
        bool never = false;
        loop_run_until(loop, &never, 1);
    }
}

static void
close_all(void)
{
    for (size_t i = 0; i < guests; i++)
        if (guest[i].s != NULL) {
            stream_close(guest[i].s);
            turn_until(&guest[i].closed);
        }
    listener_close(TAKE(listening));
}

/* --- pairs --- */

struct pair {
    struct test_pem at, from; /* who listens, who dials */
    const char *at_ca, *from_ca;
    bool verify;
    const char *name, *protocol;
    const char *why_at, *why_from; /* NULL: it works */
    enum peer_kind at_kind, from_kind;
};

static void
check_works(const struct pair *p, struct end *d, size_t i)
{
    ck_assert_msg(d->open && !d->closed && str_eq(d->first, "hello"), "%zu: %s", i, d->why);
    ck_assert_int_eq(guest[0].kind, p->from_kind);
    ck_assert_int_eq(d->kind, p->at_kind);
    stream_end(d->s);
    turn_until(&d->closed);
    turn_until(&guest[0].closed);
    ck_assert_msg(guest[0].eof && d->eof && d->code == 0, "%zu: %d", i, d->code);
}

static void
check_refused(const struct pair *p, struct end *d, size_t i)
{
    turn_until(&d->closed);
    turn_until(&guest[0].closed);
    ck_assert_msg(strstr(guest[0].why, p->why_at) != NULL, "%zu: %s", i, guest[0].why);
    ck_assert_msg(strstr(d->why, p->why_from) != NULL, "%zu: %s", i, d->why);
    ck_assert(d->code < 0 && guest[0].code < 0 && guest[0].n == 0);
}

static void
check_pairs(const struct pair *pairs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct pair *p = &pairs[i];
        struct tls *at = tls_of(p->at, p->at_ca, p->verify);
        struct tls *from = tls_of(p->from, p->from_ca, p->verify);
        struct end d;
        listen_at(tls_rpc(at), p->protocol);
        dial(&d, tls_rpc(from), p->name, p->protocol, NULL);
        turn_until_settled(&d);
        say(&d, "hello", 5);
        turn_for_bytes(&d, 5);
        if (p->why_at == NULL)
            check_works(p, &d, i);
        else
            check_refused(p, &d, i);
        close_all();
        tls_unref(at);
        tls_unref(from);
    }
}

#define GLOBAL "server.global.nomad"
#define FOR_CLIENT "is for client.global.nomad, a server.global.nomad was wanted"
#define FOR_EU "is for server.eu.nomad, a server.global.nomad was wanted"
#define REFUSES "refuses this certificate"

START_TEST(two_of_ours_by_table)
{
    const struct test_pem none = {NULL, NULL}, eu = test_cert(ctx, ca, "server.eu.nomad", 0, 10);
    const char *one = ca.cert, *other = other_ca.cert;
    const char *both = mem_printf(ctx, "%s%s", one, other);
    const struct pair pairs[] = {
        {server, client, one, one, true, GLOBAL, RPC, NULL, NULL, PEER_SERVER, PEER_NODE},
        {server, server, one, one, true, GLOBAL, RAFT, NULL, NULL, PEER_SERVER, PEER_SERVER},
        {eu, server, one, one, true, "server.*.nomad", RPC, NULL, NULL, PEER_SERVER, PEER_SERVER},
        {client, server, one, one, false, GLOBAL, RPC, NULL, NULL, PEER_NODE, PEER_SERVER},
        {server, stranger, one, other, true, GLOBAL, RPC, "does not know the CA",
         "is signed by \"One CA\", which is not among the CAs"},
        {stranger, client, other, both, true, GLOBAL, RPC,
         "is signed by \"One CA\", which is not among the CAs", "does not know the CA"},
        {client, server, one, one, true, GLOBAL, RPC, REFUSES, FOR_CLIENT},
        {eu, server, one, one, true, GLOBAL, RPC, REFUSES, FOR_EU},
        {server, client, one, one, true, GLOBAL, RAFT, FOR_CLIENT, REFUSES},
        {server, eu, one, one, true, GLOBAL, RAFT, FOR_EU, REFUSES},
        {server, none, one, one, true, GLOBAL, RPC, "presents no certificate", "wants a certificate"},
    };
    check_pairs(pairs, ARRAY_LEN(pairs));
}
END_TEST

START_TEST(protocols_are_not_mistaken_for_each_other)
{
    struct tls *t = tls_of(server, ca.cert, true);
    struct end d;
    listen_at(tls_rpc(t), RAFT);
    dial(&d, tls_rpc(t), "server.global.nomad", RPC, NULL);
    turn_until(&d.closed);
    ck_assert(!d.open);
    turn_until(&guest[0].closed);
    ck_assert(guest[0].code < 0);
    close_all();
    tls_unref(t);
}
END_TEST

START_TEST(https_wants_the_host)
{
    static const struct {
        const char *name, *why;
    } hosts[] = {{"localhost", NULL},
                 {"127.0.0.1", NULL},
                 {"example.org", "is for server.global.nomad, localhost, a example.org was wanted"},
                 {"127.0.0.2", "a 127.0.0.2 was wanted"}};
    struct tls *t = tls_of(server, ca.cert, false);
    struct err e = ERR_INIT;
    struct tls *plain = tls_new(&(struct tls_config){.ca = ca.cert}, &e);
    struct tls *blind = tls_new(&(struct tls_config){.skip_verify = true, .ca = other_ca.cert}, &e);
    ck_assert(plain != NULL && blind != NULL);
    for (size_t i = 0; i < 2 * ARRAY_LEN(hosts); i++) {
        struct end d;
        bool skips = i >= ARRAY_LEN(hosts);
        const char *why = skips ? NULL : hosts[i].why;
        listen_at(tls_http(t), "http/1.1");
        dial(&d, tls_http(skips ? blind : plain), hosts[i % ARRAY_LEN(hosts)].name, "http/1.1", NULL);
        turn_until_settled(&d);
        say(&d, "hello", 5);
        turn_for_bytes(&d, 5);
        ck_assert_msg(why == NULL ? d.n == 5 : strstr(d.why, why) != NULL, "%zu: %s", i, d.why);
        if (d.s != NULL)
            stream_close(d.s);
        turn_until(&d.closed);
        close_all();
    }
    tls_unref(t);
    tls_unref(plain);
    tls_unref(blind);
}
END_TEST

/* --- bytes --- */

static uint64_t
sum_of(const uint8_t *p, size_t n)
{
    uint64_t s = 0;
    for (size_t i = 0; i < n; i++)
        s = s * 31 + p[i];
    return s;
}

/* TLS over a carrier that turns bytes over, delays and cuts. */
static struct transport *
wrap_both(void *arg, struct transport *carrier, const struct filter_use *u)
{
    const struct filter *upper = arg;
    struct transport *lower = filter_turning.wrap(filter_turning.arg, carrier, u);
    struct filter_use rest = *u;
    rest.p = NULL;
    rest.n = 0;
    return upper->wrap(upper->arg, lower, &rest);
}

/* The writer writes it all at once, the reader stops now and then. */
static void
go_through_and_back(struct tls *t, const struct filter *f)
{
    enum { TOTAL = 3000000 };
    uint8_t *block = malloc(TOTAL);
    struct end d;
    for (size_t i = 0; i < TOTAL; i++)
        block[i] = (uint8_t)(i * 7 + i / 251);
    listen_at(f, RPC);
    dial(&d, f, "server.global.nomad", RPC, NULL);
    turn_until(&d.open);
    say(&d, block, TOTAL);
    for (int i = 0; i < 20 && !d.closed && d.n < TOTAL; i++) {
        turn_for_bytes(&d, d.n + TOTAL / 30);
        size_t before = d.n;
        bool never = false;
        stream_read(d.s, false);
        loop_run_until(loop, &never, 5);
        ck_assert_uint_eq(d.n, before);
        stream_read(d.s, true);
    }
    turn_for_bytes(&d, TOTAL);
    ck_assert_uint_eq(d.n, TOTAL);
    ck_assert_uint_eq(d.sum, sum_of(block, TOTAL));
    stream_end(d.s);
    turn_until(&guest[0].closed);
    turn_until(&d.closed);
    ck_assert(guest[0].eof && d.eof && d.code == 0);
    close_all();
    free(block);
    tls_unref(t);
}

START_TEST(much_goes_through_and_back)
{
    struct tls *t = tls_of(server, ca.cert, true);
    go_through_and_back(t, tls_rpc(t));
}
END_TEST

START_TEST(much_goes_over_a_bad_carrier)
{
    struct tls *t = tls_of(server, ca.cert, true);
    const struct filter both = {wrap_both, (void *)(uintptr_t)tls_rpc(t)};
    go_through_and_back(t, &both);
}
END_TEST

/* --- strangers --- */

struct raw {
    struct test_pem own;
    int min, max;      /* versions; 0: any */
    const char *bytes; /* in place of TLS */
    size_t n;
    const char *ciphers;
    bool listens;
    int fd; /* of the listener */
    uint16_t port;
    bool shook, done;
};

static void
raw_done(void *arg)
{
    ((struct raw *)arg)->done = true;
}

static void
raw_use(SSL_CTX *c, struct test_pem own)
{
    BIO *cert = BIO_new_mem_buf(own.cert, -1), *key = BIO_new_mem_buf(own.key, -1);
    X509 *x = PEM_read_bio_X509(cert, NULL, NULL, NULL);
    EVP_PKEY *k = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);
    ck_assert(SSL_CTX_use_certificate(c, x) == 1 && SSL_CTX_use_PrivateKey(c, k) == 1);
    X509_free(x);
    EVP_PKEY_free(k);
    BIO_free(cert);
    BIO_free(key);
}

static void
raw_shake(struct raw *r, int fd)
{
    static const uint8_t alpn[] = "\x0bpaddock-rpc";
    SSL_CTX *c = SSL_CTX_new(TLS_method());
    SSL_CTX_set_security_level(c, 0);
    SSL_CTX_set_min_proto_version(c, r->min);
    SSL_CTX_set_max_proto_version(c, r->max);
    if (r->ciphers != NULL)
        ck_assert_int_eq(SSL_CTX_set_cipher_list(c, r->ciphers), 1);
    if (r->own.cert != NULL)
        raw_use(c, r->own);
    SSL *s = SSL_new(c);
    SSL_set_fd(s, fd);
    SSL_set_alpn_protos(s, alpn, sizeof(alpn) - 1);
    char byte;
    r->shook = r->listens ? SSL_accept(s) == 1
                          : SSL_connect(s) == 1 && SSL_write(s, "x", 1) == 1 && SSL_read(s, &byte, 1) == 1;
    ERR_clear_error();
    SSL_free(s);
    SSL_CTX_free(c);
}

static void *
raw_thread(void *arg)
{
    struct raw *r = arg;
    struct sockaddr_in sin = {AF_INET, htons(r->port), {htonl(INADDR_LOOPBACK)}, {0}};
    int fd = r->listens ? accept(r->fd, NULL, NULL) : socket(AF_INET, SOCK_STREAM, 0);
    if (!r->listens && connect(fd, (struct sockaddr *)&sin, sizeof(sin)) < 0)
        abort();
    if (r->bytes != NULL) {
        (void)!send(fd, r->bytes, r->n, MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        char c[512];
        while (recv(fd, c, sizeof(c), 0) > 0)
            ;
    } else {
        raw_shake(r, fd);
    }
    close(fd);
    loop_post(loop, raw_done, r);
    return NULL;
}

static void
raw_run(struct raw *r)
{
    pthread_t t;
    r->done = false;
    ck_assert_int_eq(pthread_create(&t, NULL, raw_thread, r), 0);
    turn_until(&r->done);
    pthread_join(t, NULL);
}

enum { DAY = 86400 };

START_TEST(strangers_are_refused_by_table)
{
    const struct test_pem expired = test_cert(ctx, ca, "server.global.nomad", -20 * DAY, 10);
    const struct test_pem early = test_cert(ctx, ca, "server.global.nomad", 5 * DAY, 10);
    const struct {
        struct raw raw;
        const char *why; /* NULL: it is let in */
    } strangers[] = {
        {{.own = client}, NULL},
        {{.own = client, .max = TLS1_2_VERSION}, NULL},
        {{.own = client, .min = TLS1_VERSION, .max = TLS1_1_VERSION}, "no version of TLS"},
        {{.own = client, .max = TLS1_2_VERSION, .ciphers = "ECDHE-ECDSA-AES128-SHA"}, "no cipher"},
        {{.own = expired}, "\"server.global.nomad\" of 127.0.0.1:"},
        {{.own = expired}, "has expired at"},
        {{.own = early}, "is not valid before"},
        {{.own = stranger}, "is signed by \"Other CA\", which is not among the CAs"},
        {{.min = TLS1_3_VERSION}, "presents no certificate"},
        {{.max = TLS1_2_VERSION}, "presents no certificate"},
        {{.bytes = "GET / HTTP/1.1\r\n\r\n", .n = 18}, "does not speak TLS: say https://"},
        {{.bytes = "P\0\0\0\0\1\2\0\0\0\0\0\0", .n = 13}, "does not speak TLS"},
        {{.bytes = "\x16\x03\x01\x02\x00\x01", .n = 6}, "ended the connection during the handshake"},
        {{.bytes = "", .n = 0}, "ended the connection during the handshake"},
        {{.bytes = "\x15\x03\x03\x00\x02\x02\x28", .n = 7}, "unexpected message"},
        {{.bytes = "\x14\x03\x03\x00\x01\x01", .n = 6}, ""},
    };
    struct tls *t = tls_of(server, ca.cert, true);
    for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
        struct raw r = strangers[i].raw;
        listen_at(tls_rpc(t), RPC);
        r.port = listener_port(listening);
        raw_run(&r);
        turn_until(&guest[0].closed);
        ck_assert_msg(r.shook == (strangers[i].why == NULL), "%zu: %s", i, guest[0].why);
        ck_assert_msg(strstr(guest[0].why, str_or(strangers[i].why, "")) != NULL, "%zu: %s", i,
                      guest[0].why);
        ck_assert(strangers[i].why == NULL || guest[0].n == 0);
        close_all();
    }
    tls_unref(t);
}
END_TEST

START_TEST(servers_that_are_strangers)
{
    const struct {
        struct test_pem own;
        const char *why;
    } strangers[] = {
        {test_cert(ctx, ca, "server.global.nomad", -20 * DAY, 10), "has expired at"},
        {test_cert(ctx, ca, "server.global.nomad", 5 * DAY, 10), "is not valid before"},
        {stranger, "is signed by \"Other CA\""},
        {server, "speaks another protocol"}, /* that one knows no ALPN */
    };
    struct tls *t = tls_of(client, ca.cert, true);
    for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
        struct sockaddr_in sin = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}};
        socklen_t len = sizeof(sin);
        struct raw r = {.own = strangers[i].own, .listens = true};
        struct end d = {NULL};
        pthread_t th;
        r.fd = socket(AF_INET, SOCK_STREAM, 0);
        ck_assert(bind(r.fd, (struct sockaddr *)&sin, len) == 0 && listen(r.fd, 5) == 0);
        ck_assert_int_eq(getsockname(r.fd, (struct sockaddr *)&sin, &len), 0);
        ck_assert_int_eq(pthread_create(&th, NULL, raw_thread, &r), 0);
        struct addr a = {.host = "127.0.0.1", .port = ntohs(sin.sin_port)};
        const struct stream_way way = {
            .filter = tls_rpc(t), .name = "server.global.nomad", .protocol = RPC};
        d.s = stream_connect(loop, &a, &way, &end_ops, &d);
        turn_until(&d.closed);
        turn_until(&r.done);
        pthread_join(th, NULL);
        close(r.fd);
        ck_assert_msg(!d.open && strstr(d.why, strangers[i].why) != NULL, "%zu: %s", i, d.why);
    }
    tls_unref(t);
}
END_TEST

START_TEST(a_newer_version_can_be_demanded)
{
    struct err e = ERR_INIT;
    struct tls_config cfg = {
        .ca = ca.cert, .cert = server.cert, .key = server.key, .min_version = "tls13"};
    struct tls *t = tls_new(&cfg, &e);
    ck_assert_msg(t != NULL, "%s", e.text);
    for (int i = 0; i < 2; i++) {
        struct raw r = {.own = client, .max = i == 0 ? TLS1_2_VERSION : 0};
        listen_at(tls_rpc(t), RPC);
        r.port = listener_port(listening);
        raw_run(&r);
        turn_until(&guest[0].closed);
        ck_assert_int_eq(r.shook, i);
        close_all();
    }
    tls_unref(t);
}
END_TEST

/* The connection is lost in the middle: no end of file. */
START_TEST(a_cut_is_no_end)
{
    struct tls *t = tls_of(server, ca.cert, true);
    struct raw r = {.own = client};
    listen_at(tls_rpc(t), RPC);
    r.port = listener_port(listening);
    raw_run(&r); /* closes without a word of TLS */
    turn_until(&guest[0].closed);
    ck_assert(r.shook && !guest[0].eof && guest[0].code < 0);
    close_all();
    tls_unref(t);
}
END_TEST

/* --- handshakes that do not end --- */

static int
silent(const char *from)
{
    struct sockaddr_in sin = {AF_INET, 0, {0}, {0}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(inet_pton(AF_INET, from, &sin.sin_addr), 1);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
    sin.sin_port = htons(listener_port(listening));
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
    return fd;
}

START_TEST(half_open_ones_keep_out_their_own_address)
{
    enum { SILENT = 20 };
    struct tls *t = tls_of(server, ca.cert, true);
    struct end other, same;
    int fd[SILENT];
    listen_at(tls_rpc(t), RPC);
    for (int i = 0; i < SILENT; i++)
        fd[i] = silent("127.0.0.2");
    while (guests < SILENT) {
        bool never = false;
        loop_run_until(loop, &never, 1);
    }
    dial(&same, tls_rpc(t), "server.global.nomad", RPC, "127.0.0.2");
    while (guests <= SILENT) {
        bool never = false;
        loop_run_until(loop, &never, 1);
    }
    dial(&other, tls_rpc(t), "server.global.nomad", RPC, "127.0.0.3");
    turn_until(&other.open);
    ck_assert(!same.open); /* its turn has not come */
    for (int i = 0; i < SILENT; i++)
        close(fd[i]);
    turn_until(&same.open);
    stream_close(same.s);
    stream_close(other.s);
    turn_until(&same.closed);
    turn_until(&other.closed);
    close_all();
    tls_unref(t);
}
END_TEST

struct turns {
    struct timer *next;
    const struct end *ends;
    size_t n, open, most;
};

static void
count_turn(void *arg)
{
    struct turns *t = arg;
    size_t open = 0;
    for (size_t i = 0; i < t->n; i++)
        open += t->ends[i].open;
    if (open - t->open > t->most)
        t->most = open - t->open;
    t->open = open;
    t->next = open < t->n ? timer_start(loop, 0, count_turn, t) : NULL;
}

START_TEST(a_storm_leaves_others_their_turns)
{
    enum { STORM = 40 };
    struct tls *t = tls_of(server, ca.cert, true);
    struct end ends[STORM];
    struct turns turns = {.ends = ends, .n = STORM};
    listen_at(tls_rpc(t), RPC);
    for (int i = 0; i < STORM; i++) {
        char from[32];
        snprintf(from, sizeof(from), "127.0.0.%d", 2 + i);
        dial(&ends[i], tls_rpc(t), "server.global.nomad", RPC, from);
    }
    turns.next = timer_start(loop, 0, count_turn, &turns);
    for (int i = 0; i < STORM; i++)
        turn_until(&ends[i].open);
    ck_assert_uint_ge(turns.most, 1);
    ck_assert_uint_le(turns.most, TLS_STEPS);
    timer_stop(turns.next);
    for (int i = 0; i < STORM; i++) {
        stream_close(ends[i].s);
        turn_until(&ends[i].closed);
    }
    close_all();
    tls_unref(t);
}
END_TEST

/* --- renewal --- */

START_TEST(new_texts_are_for_new_connections)
{
    auto_mem char *both = mem_printf(NULL, "%s%s", ca.cert, other_ca.cert);
    struct tls *at = tls_of(server, both, true), *from = tls_of(client, ca.cert, true);
    struct end old, next;
    struct err e = ERR_INIT;
    listen_at(tls_rpc(at), RPC);
    dial(&old, tls_rpc(from), "server.global.nomad", RPC, NULL);
    turn_until(&old.open);
    /* a set that nobody could use */
    struct tls_config cfg = {.ca = both, .cert = stranger.cert, .key = server.key};
    ck_assert_int_lt(tls_renew(at, &cfg, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "the key is not that of certificate"));
    dial(&next, tls_rpc(from), "server.global.nomad", RPC, NULL);
    turn_until(&next.open);
    stream_close(next.s);
    turn_until(&next.closed);
    cfg.key = stranger.key;
    e = (struct err)ERR_INIT;
    ck_assert_msg(tls_renew(at, &cfg, &e) == 0, "%s", e.text);
    dial(&next, tls_rpc(from), "server.global.nomad", RPC, NULL);
    turn_until(&next.closed);
    ck_assert_msg(strstr(next.why, "is signed by \"Other CA\"") != NULL, "%s", next.why);
    cfg = (struct tls_config){.ca = both, .cert = client.cert, .key = client.key};
    ck_assert_int_eq(tls_renew(from, &cfg, &e), 0);
    dial(&next, tls_rpc(from), "server.global.nomad", RPC, NULL);
    turn_until(&next.open);
    say(&old, "still", 5);
    turn_for_bytes(&old, 5);
    ck_assert_str_eq(old.first, "still");
    stream_close(next.s);
    stream_close(old.s);
    turn_until(&next.closed);
    turn_until(&old.closed);
    close_all();
    tls_unref(at);
    tls_unref(from);
}
END_TEST

START_TEST(texts_are_judged)
{
    const struct test_pem expired = test_cert(ctx, ca, "server.global.nomad", -20 * DAY, 10);
    const struct {
        struct tls_config cfg;
        const char *why;
    } texts[] = {
        {{.ca = "nonsense"}, "ca_file: no certificate"},
        {{.ca = ca.cert, .cert = server.cert}, "cert_file and key_file go together"},
        {{.ca = ca.cert, .cert = server.cert, .key = client.key}, "the key is not that of"},
        {{.ca = ca.cert, .cert = expired.cert, .key = expired.key}, "has expired"},
        {{.ca = ca.cert, .cert = stranger.cert, .key = stranger.key}, "which is not among the CAs"},
        {{.ca = ca.cert, .cert = client.cert, .key = client.key, .own_name = GLOBAL},
         "\"client.global.nomad\" is not for server.global.nomad"},
        {{.ca = ca.cert, .cert = server.cert, .key = server.key, .own_name = GLOBAL}, NULL},
        {{.ca = ca.cert, .min_version = "tls11"}, "tls_min_version \"tls11\""},
        {{.ca = ca.cert, .ciphers = "TLS_RSA_WITH_AES_128_CBC_SHA"}, "unknown or weak"},
        {{.ca = ca.cert, .ciphers = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,"
                                    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
         NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct err e = ERR_INIT;
        struct tls *t = tls_new(&texts[i].cfg, &e);
        ck_assert_msg((t != NULL) == (texts[i].why == NULL), "%zu: %s", i, e.text);
        ck_assert_msg(t != NULL || strstr(e.text, texts[i].why) != NULL, "%zu: %s", i, e.text);
        tls_unref(t);
    }
}
END_TEST

TEST_SUITE_FIXTURE("tls", 120, setup, teardown, two_of_ours_by_table,
                   protocols_are_not_mistaken_for_each_other, https_wants_the_host,
                   much_goes_through_and_back, much_goes_over_a_bad_carrier, strangers_are_refused_by_table,
                   servers_that_are_strangers, a_newer_version_can_be_demanded, a_cut_is_no_end,
                   half_open_ones_keep_out_their_own_address, a_storm_leaves_others_their_turns,
                   new_texts_are_for_new_connections,
                   texts_are_judged)
