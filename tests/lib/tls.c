/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/tls.h"

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
