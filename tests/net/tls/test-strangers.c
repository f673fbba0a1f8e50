/* SPDX-License-Identifier: Apache-2.0
 *
 * Strangers by TLS: what one that speaks OpenSSL, or no TLS at all, is told, and what the log says.
 */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/str.h"
#include "tests/lib/test.h"
#include "tests/net/tls/ends.h"

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
    char got[512]; /* in answer to bytes */
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
        size_t at = 0;
        ssize_t n;
        while (at < sizeof(r->got) - 1 && (n = recv(fd, r->got + at, sizeof(r->got) - 1 - at, 0)) > 0)
            at += (size_t)n;
        r->got[at] = '\0';
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
        {{.bytes = "GET / HTTP/1.1\r\n\r\n", .n = 18}, "does not speak TLS"},
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

START_TEST(plain_http_is_told)
{
    static const struct {
        const char *bytes;
        bool told;
    } requests[] = {{"GET / HTTP/1.1\r\n\r\n", true},
                    {"DELETE /v1/job/j HTTP/1.1\r\nHost: a\r\n\r\n", true},
                    {"PUT /v1/jobs HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", true},
                    {"POST", true},
                    {"\x01\x02\x03\x04\x05\x06", false}};
    static const char head[] = "HTTP/1.1 400 Bad Request\r\n";
    static const char end[] = "\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    struct tls *t = tls_of(server, ca.cert, false);
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct raw r = {.bytes = requests[i].bytes, .n = strlen(requests[i].bytes)};
        listen_at(tls_http(t), "http/1.1");
        r.port = listener_port(listening);
        raw_run(&r);
        turn_until(&guest[0].closed);
        bool told = str_prefix(r.got, head) && str_suffix(r.got, end);
        ck_assert_msg(told == requests[i].told, "%zu: %s", i, r.got);
        ck_assert_uint_eq(guest[0].n, 0);
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

TEST_SUITE_FIXTURE("strangers", 120, ends_setup, ends_teardown, strangers_are_refused_by_table,
                   plain_http_is_told, servers_that_are_strangers,
                   a_newer_version_can_be_demanded, a_cut_is_no_end)
