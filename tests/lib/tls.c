/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/tls.h"

#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>
#include <time.h>

#include "cli/tls/issue.h"
#include "common/mem.h"

struct test_pem
test_ca(const void *ctx, const char *name)
{
    struct issue i = {.subject = {.name = name}, .now_s = (int64_t)time(NULL), .days = 30};
    struct test_pem p;
    struct err e = ERR_INIT;

    ASSERT(issue_make(ctx, &i, &p.cert, &p.key, &e) == 0);
    return p;
}

struct test_pem
test_cert(const void *ctx, struct test_pem ca, const char *names, int64_t from_s, int64_t days)
{
    auto_mem void *tmp = mem_ctx("cert");
    struct issue i = {.now_s = (int64_t)time(NULL) + from_s, .days = days};
    struct cert_list cas;
    struct cert_key *key;
    struct test_pem p;
    struct err e = ERR_INIT;

    ASSERT(cert_read(tmp, ca.cert, strlen(ca.cert), &cas, &e) == 0);
    ASSERT(cert_read_key(tmp, ca.key, strlen(ca.key), &key, &e) == 0);
    i.ca = cas.v[0];
    i.ca_key = key;
    for (const char *at = names; *at; at += strspn(at, ",")) {
        size_t n = strcspn(at, ",");
        list_add(tmp, i.dns, mem_strndup(tmp, at, n));
        at += n;
    }
    i.subject.name = i.dns.n > 0 ? i.dns.v[0] : "nobody";
    list_add(tmp, i.ips, "127.0.0.1");
    ASSERT(issue_make(ctx, &i, &p.cert, &p.key, &e) == 0);
    return p;
}

static void
add_revoked(X509_CRL *crl, const struct test_pem *p)
{
    auto_mem void *tmp = mem_ctx("crl");
    struct cert_list l;
    struct err e = ERR_INIT;
    X509_REVOKED *r = X509_REVOKED_new();
    ASN1_TIME *at = ASN1_TIME_set(NULL, time(NULL) - 60);

    ASSERT(cert_read(tmp, p->cert, strlen(p->cert), &l, &e) == 0 && r != NULL && at != NULL);
    ASSERT(X509_REVOKED_set_serialNumber(
               r, (ASN1_INTEGER *)(uintptr_t)X509_get0_serialNumber(l.v[0]->x509)) == 1 &&
           X509_REVOKED_set_revocationDate(r, at) == 1 && X509_CRL_add0_revoked(crl, r) == 1);
    ASN1_TIME_free(at);
}

const char *
test_crl(const void *ctx, struct test_pem ca, const struct test_pem *revoked, size_t n,
         int64_t next_s)
{
    auto_mem void *tmp = mem_ctx("crl");
    struct cert_list cas;
    struct cert_key *key;
    struct err e = ERR_INIT;
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *now = ASN1_TIME_set(NULL, time(NULL) - 120);
    ASN1_TIME *next = ASN1_TIME_set(NULL, time(NULL) + next_s);
    BIO *b = BIO_new(BIO_s_mem());
    char *text;

    ASSERT(cert_read(tmp, ca.cert, strlen(ca.cert), &cas, &e) == 0 &&
           cert_read_key(tmp, ca.key, strlen(ca.key), &key, &e) == 0);
    ASSERT(X509_CRL_set_version(crl, 1) == 1 &&
           X509_CRL_set_issuer_name(crl, X509_get_subject_name(cas.v[0]->x509)) == 1 &&
           X509_CRL_set1_lastUpdate(crl, now) == 1 && X509_CRL_set1_nextUpdate(crl, next) == 1);
    for (size_t i = 0; i < n; i++)
        add_revoked(crl, &revoked[i]);
    ASSERT(X509_CRL_sort(crl) == 1 && X509_CRL_sign(crl, key->key, EVP_sha256()) > 0 &&
           PEM_write_bio_X509_CRL(b, crl) == 1);
    size_t len = (size_t)BIO_get_mem_data(b, &text);
    const char *pem = mem_strndup(ctx, text, len);
    BIO_free(b);
    ASN1_TIME_free(now);
    ASN1_TIME_free(next);
    X509_CRL_free(crl);
    return pem;
}

struct tls *
test_tls(void)
{
    static struct tls *made;

    if (made == NULL) {
        auto_mem void *tmp = mem_ctx("tls");
        struct err e = ERR_INIT;
        struct test_pem ca = test_ca(tmp, "Test CA");
        struct test_pem own = test_cert(tmp, ca, "server.global.nomad,localhost", 0, 10);
        made = tls_new(&(struct tls_config){.ca = ca.cert,
                                            .cert = own.cert,
                                            .key = own.key,
                                            .verify_server_hostname = true},
                       &e);
        ASSERT(made != NULL);
    }
    return made;
}
