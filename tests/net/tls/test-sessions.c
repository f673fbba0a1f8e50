/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a certificate is good for: lists of revoked ones, also for connections that are open, and
 * sessions of HTTPS that are resumed.
 */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
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

#define GLOBAL "server.global.nomad"

/* --- revoked ones --- */

static struct tls_config
config_of(struct test_pem own, const char *crl)
{
    return (struct tls_config){.ca = ca.cert,
                               .cert = own.cert,
                               .key = own.key,
                               .crl = crl,
                               .verify_server_hostname = true,
                               .verify_https_client = true};
}

static void
renew(struct tls *t, struct test_pem own, const char *crl)
{
    struct tls_config cfg = config_of(own, crl);
    struct err e = ERR_INIT;
    ck_assert_msg(tls_renew(t, &cfg, &e) == 0, "%s", e.text);
}

START_TEST(lists_are_judged)
{
    const char *good = test_crl(ctx, ca, &client, 1, DAY);
    const char *old = test_crl(ctx, ca, &client, 1, -DAY / 2);
    const char *others = test_crl(ctx, other_ca, &stranger, 1, DAY);
    const struct test_pem fake = test_ca(ctx, "One CA"); /* of that name, with another key */
    const struct {
        const char *crl, *why;
    } lists[] = {
        {good, NULL},
        {old, NULL}, /* holds on */
        {mem_printf(ctx, "%s%s", good, old), NULL},
        {"nonsense", "crl_file: no list of revoked certificates"},
        {ca.cert, "crl_file: no list of revoked certificates"},
        {others, "\"CN=Other CA\" is not signed by a CA of ca_file"},
        {mem_printf(ctx, "%s%s", good, others), "\"CN=Other CA\" is not signed by a CA of ca_file"},
        {test_crl(ctx, fake, &client, 1, DAY), "\"CN=One CA\" is not signed by a CA of ca_file"},
        {test_crl(ctx, ca, &server, 1, DAY), "\"server.global.nomad\" is revoked by crl_file"},
        {"-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n", "the list is damaged"},
    };
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct tls_config cfg = config_of(server, lists[i].crl);
        struct err e = ERR_INIT;
        struct tls *t = tls_new(&cfg, &e);
        ck_assert_msg((t != NULL) == (lists[i].why == NULL), "%zu: %s", i, e.text);
        ck_assert_msg(t != NULL || strstr(e.text, lists[i].why) != NULL, "%zu: %s", i, e.text);
        tls_unref(t);
    }
    struct tls_config cfg = {.crl = good};
    struct err e = ERR_INIT;
    ck_assert(tls_new(&cfg, &e) == NULL && strstr(e.text, "crl_file needs a ca_file") != NULL);
}
END_TEST

START_TEST(revoked_ones_are_refused)
{
    const struct test_pem gone[] = {test_cert(ctx, ca, "x", 0, 1), client};
    struct tls *at = tls_of(server, ca.cert, true), *from = tls_of(client, ca.cert, true);
    struct end d;
    renew(at, server, test_crl(ctx, ca, gone, 2, DAY));
    listen_at(tls_rpc(at), RPC);
    dial(&d, tls_rpc(from), GLOBAL, RPC, NULL);
    turn_until(&d.closed);
    turn_until(&guest[0].closed);
    ck_assert_msg(strstr(guest[0].why, "\"client.global.nomad\" of 127.0.0.1:") != NULL &&
                      strstr(guest[0].why, "is revoked since ") != NULL,
                  "%s", guest[0].why);
    ck_assert_msg(strstr(d.why, "finds this certificate revoked") != NULL, "%s", d.why);
    close_all();
    /* a server may be revoked as well */
    renew(from, client, test_crl(ctx, ca, &server, 1, DAY));
    renew(at, server, NULL);
    listen_at(tls_rpc(at), RPC);
    dial(&d, tls_rpc(from), GLOBAL, RPC, NULL);
    turn_until(&d.closed);
    ck_assert_msg(strstr(d.why, "\"server.global.nomad\" of") != NULL, "%s", d.why);
    turn_until(&guest[0].closed);
    close_all();
    tls_unref(at);
    tls_unref(from);
}
END_TEST

/* Those there are live on, but for the one of which the list says so; both ends look. */
START_TEST(open_ones_end_at_the_renewal)
{
    enum { N = 12 };
    const struct test_pem other = test_cert(ctx, ca, "client.global.nomad", 0, 10);
    struct tls *at = tls_of(server, ca.cert, true);
    struct tls *a = tls_of(client, ca.cert, true), *b = tls_of(other, ca.cert, true);
    struct end d[N];
    listen_at(tls_rpc(at), RPC);
    for (int i = 0; i < N; i++) {
        dial(&d[i], tls_rpc(i % 3 == 0 ? a : b), GLOBAL, RPC, NULL);
        turn_until(&d[i].open);
        say(&d[i], "x", 1);
        turn_for_bytes(&d[i], 1);
    }
    renew(at, server, test_crl(ctx, ca, &client, 1, DAY));
    for (int i = 0; i < N; i += 3) {
        turn_until(&d[i].closed);
        turn_until(&guest[i].closed);
        ck_assert_msg(strstr(guest[i].why, "is revoked since ") != NULL, "%s", guest[i].why);
        ck_assert_int_lt(guest[i].code, 0);
    }
    renew(b, other, test_crl(ctx, ca, &client, 1, DAY)); /* of nobody there */
    for (int i = 1; i < N; i += i % 3 == 1 ? 1 : 2) {
        say(&d[i], "y", 1);
        turn_for_bytes(&d[i], 2);
        ck_assert(d[i].n == 2 && !d[i].closed);
    }
    renew(b, other, test_crl(ctx, ca, &server, 1, DAY));
    for (int i = 1; i < N; i += i % 3 == 1 ? 1 : 2) {
        turn_until(&d[i].closed);
        ck_assert_msg(strstr(d[i].why, "\"server.global.nomad\" of") != NULL, "%s", d[i].why);
        turn_until(&guest[i].closed);
    }
    close_all();
    tls_unref(at);
    tls_unref(a);
    tls_unref(b);
}
END_TEST

/* Its handshake began before the list was there, and ends behind it. */
START_TEST(one_that_shakes_at_the_renewal_is_refused)
{
    struct tls *at = tls_of(server, ca.cert, true), *from = tls_of(client, ca.cert, true);
    struct end d;
    listen_at(tls_rpc(at), RPC);
    dial(&d, tls_rpc(from), GLOBAL, RPC, NULL);
    while (guests == 0) {
        bool never = false;
        loop_run_until(loop, &never, 1);
    }
    ck_assert(!guest[0].open);
    renew(at, server, test_crl(ctx, ca, &client, 1, DAY));
    turn_until(&guest[0].closed);
    ck_assert_msg(strstr(guest[0].why, "is revoked since ") != NULL, "%s", guest[0].why);
    turn_until(&d.closed);
    close_all();
    tls_unref(at);
    tls_unref(from);
}
END_TEST

/* --- sessions --- */

/* One of OpenSSL's clients, which keeps its session. */
struct caller {
    struct test_pem own;
    const char *protocol;
    int version;
    uint16_t port;
    SSL_SESSION *session; /* resumed, then the next one; owned */
    bool shook, resumed, done;
};

static int
keep_session(SSL *s, SSL_SESSION *session)
{
    struct caller *c = SSL_get_app_data(s);
    SSL_SESSION_free(c->session);
    c->session = session;
    return 1;
}

static SSL_CTX *
caller_ctx(const struct caller *r)
{
    SSL_CTX *c = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(c, r->version);
    SSL_CTX_set_max_proto_version(c, r->version);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(c, keep_session);
    if (r->own.cert == NULL)
        return c;
    BIO *cert = BIO_new_mem_buf(r->own.cert, -1), *key = BIO_new_mem_buf(r->own.key, -1);
    X509 *x = PEM_read_bio_X509(cert, NULL, NULL, NULL);
    EVP_PKEY *k = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);
    if (SSL_CTX_use_certificate(c, x) != 1 || SSL_CTX_use_PrivateKey(c, k) != 1)
        abort();
    X509_free(x);
    EVP_PKEY_free(k);
    BIO_free(cert);
    BIO_free(key);
    return c;
}

static void
caller_done(void *arg)
{
    ((struct caller *)arg)->done = true;
}

static void *
caller_thread(void *arg)
{
    struct caller *r = arg;
    struct sockaddr_in sin = {AF_INET, htons(r->port), {htonl(INADDR_LOOPBACK)}, {0}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    SSL_CTX *c = caller_ctx(r);
    SSL *s = SSL_new(c);
    uint8_t alpn[32] = {(uint8_t)strlen(r->protocol)};
    char byte;
    memcpy(alpn + 1, r->protocol, alpn[0]);
    if (connect(fd, (struct sockaddr *)&sin, sizeof(sin)) < 0)
        abort();
    SSL_set_app_data(s, r);
    SSL_set_fd(s, fd);
    SSL_set_alpn_protos(s, alpn, alpn[0] + 1u);
    if (r->session != NULL)
        SSL_set_session(s, r->session);
    r->shook = SSL_connect(s) == 1 && SSL_write(s, "x", 1) == 1 && SSL_read(s, &byte, 1) == 1;
    r->resumed = r->shook && SSL_session_reused(s) == 1;
    if (r->shook)
        (void)SSL_shutdown(s);
    ERR_clear_error();
    SSL_free(s);
    SSL_CTX_free(c);
    close(fd);
    loop_post(loop, caller_done, r);
    return NULL;
}

static void
call_once(struct caller *r, struct tls *t)
{
    pthread_t thread;
    bool rpc = str_eq(r->protocol, RPC);
    listen_at(rpc ? tls_rpc(t) : tls_http(t), r->protocol);
    r->port = listener_port(listening);
    r->done = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, caller_thread, r), 0);
    turn_until(&r->done);
    pthread_join(thread, NULL);
    turn_until(&guest[0].closed);
    close_all();
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

START_TEST(who_comes_back_resumes)
{
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct tls *t = tls_of(server, ca.cert, true);
        struct caller c = {.own = client, .protocol = "http/1.1", .version = versions[i]};
        call_once(&c, t);
        ck_assert(c.shook && !c.resumed && c.session != NULL);
        ck_assert_int_eq(guest[0].kind, PEER_NODE);
        for (int again = 0; again < 2; again++) {
            call_once(&c, t);
            ck_assert_msg(c.shook && c.resumed, "%zu: %s", i, guest[0].why);
            ck_assert_int_eq(guest[0].kind, PEER_NODE); /* the certificate is still known */
        }
        c.own = (struct test_pem){NULL, NULL};
        call_once(&c, t); /* the ticket stands for the certificate */
        ck_assert(c.shook && c.resumed);
        SSL_SESSION_free(TAKE(c.session));
        call_once(&c, t);
        ck_assert_msg(!c.shook && strstr(guest[0].why, "presents no certificate") != NULL, "%s",
                      guest[0].why);
        SSL_SESSION_free(TAKE(c.session));
        tls_unref(t);
    }
}
END_TEST

/* A ticket is good for HTTP, and until the next renewal; then the certificate is asked for again. */
START_TEST(tickets_end)
{
    auto_mem char *both = mem_printf(NULL, "%s%s", ca.cert, other_ca.cert);
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct err e = ERR_INIT;
        struct tls *t = tls_of(server, both, true);
        struct caller c = {.own = stranger, .protocol = "http/1.1", .version = versions[i]};
        struct tls_config cfg = config_of(server, NULL);
        call_once(&c, t);
        ck_assert(c.shook && c.session != NULL);
        c.protocol = RPC;
        call_once(&c, t);
        ck_assert_msg(c.shook && !c.resumed, "%zu: %s", i, guest[0].why);
        SSL_SESSION_free(TAKE(c.session));
        call_once(&c, t);
        ck_assert(c.shook && c.session == NULL); /* none of RPC */
        c.protocol = "http/1.1";
        call_once(&c, t);
        cfg.ca = both;
        ck_assert_int_eq(tls_renew(t, &cfg, &e), 0);
        ck_assert_ptr_nonnull(c.session);
        call_once(&c, t);
        ck_assert(c.shook && !c.resumed);
        call_once(&c, t);
        ck_assert(c.resumed);
        cfg.ca = ca.cert; /* that of the caller is not trusted any more */
        ck_assert_int_eq(tls_renew(t, &cfg, &e), 0);
        call_once(&c, t);
        ck_assert_msg(!c.shook && strstr(guest[0].why, "is signed by \"Other CA\"") != NULL, "%s",
                      guest[0].why);
        SSL_SESSION_free(c.session);
        tls_unref(t);
    }
}
END_TEST

TEST_SUITE_FIXTURE("sessions", 120, ends_setup, ends_teardown, lists_are_judged,
                   revoked_ones_are_refused, open_ones_end_at_the_renewal,
                   one_that_shakes_at_the_renewal_is_refused, who_comes_back_resumes, tickets_end)
