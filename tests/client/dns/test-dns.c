/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of DNS and the zone of services: which questions are taken, and answers of every size.
 */
#include <arpa/inet.h>
#include <string.h>

#include "client/dns/zone.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/lib/test.h"

#define HEAD(flags, qd, an, ns, ar) "\0\7" flags "\0" qd "\0" an "\0" ns "\0" ar
#define ASK HEAD("\1\0", "\1", "\0", "\0", "\0")
#define ASK_MORE HEAD("\1\0", "\1", "\0", "\0", "\1")
#define WEB "\3wEb\7default\7service\7paddocK\0"
#define A_IN "\0\1\0\1"
#define OPT(size, version) "\0\0\x29" size "\0" version "\0\0\0\0"
#define ROW(code, bytes, name) {code, bytes, sizeof(bytes) - 1, name}

static const struct {
    int code;
    const char *bytes;
    size_t n;
    const char *name;
} rows[] = {
    ROW(DNS_OK, ASK WEB A_IN, "web.default.service.paddock"),
    ROW(DNS_OK, ASK "\0" A_IN, ""),
    ROW(DNS_OK, ASK "\3a\0b\0" A_IN, ""), /* no name of ours */
    ROW(DNS_OK, ASK "\3a.b\0" A_IN, ""),
    ROW(DNS_OK, ASK_MORE WEB A_IN OPT("\x10\0", "\0"), "web.default.service.paddock"),
    ROW(DNS_OK, ASK_MORE WEB A_IN "\xc0\x0c\0\1\0\1\0\0\0\0\0\4abcd", "web.default.service.paddock"),
    ROW(DNS_BADVERS, ASK_MORE WEB A_IN OPT("\x10\0", "\1"), NULL),
    ROW(DNS_REFUSED, ASK WEB "\0\1\0\3", NULL),
    ROW(DNS_NOTIMP, HEAD("\x28\0", "\1", "\0", "\0", "\0") WEB A_IN, NULL),
    ROW(DNS_FORMERR, HEAD("\1\0", "\2", "\0", "\0", "\0") WEB A_IN WEB A_IN, NULL),
    ROW(DNS_FORMERR, HEAD("\1\0", "\0", "\0", "\0", "\0"), NULL),
    ROW(DNS_FORMERR, ASK "\xc0\x0c" A_IN, NULL), /* it leads to itself */
    ROW(DNS_FORMERR, ASK "\x41" WEB A_IN, NULL), /* a label of 65 bytes */
    ROW(DNS_FORMERR, ASK WEB "\0\1\0", NULL),
    ROW(DNS_FORMERR, ASK_MORE WEB A_IN, NULL),
    ROW(DNS_FORMERR, ASK_MORE WEB A_IN "\0\0\x29\x10\0\0\0\0\0\0\4abc", NULL),
    ROW(DNS_FORMERR, HEAD("\1\0", "\1", "\0", "\0", "\2") WEB A_IN OPT("\4\0", "\0") OPT("\4\0", "\0"),
        NULL),
    ROW(-1, HEAD("\x81\0", "\1", "\0", "\0", "\0") WEB A_IN, NULL), /* an answer */
    ROW(-1, "\0\7\1\0\0\1\0\0\0\0\0", NULL),
};

START_TEST(questions)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct dns_question q;
        auto_buf struct buf b = BUF_INIT(DNS_TCP_MAX);
        int code = dns_parse((const uint8_t *)rows[i].bytes, rows[i].n, &q);
        ck_assert_msg(code == rows[i].code, "row %zu: %d", i, code);
        if (code == DNS_OK)
            ck_assert_str_eq(q.name, rows[i].name);
        if (code <= DNS_OK)
            continue;
        zone_refuse(&q, (enum dns_code)code, &b);
        ck_assert_uint_eq(b.data[1], 7);
        ck_assert_uint_eq(b.data[2] & 0x80, 0x80);
        ck_assert_uint_eq(b.data[3], code & 15);
    }
}
END_TEST

START_TEST(who_is_asked_for)
{
    static const struct {
        const char *name, *is; /* NULL: no service */
        bool srv_only;
    } names[] = {
        {"web.default.service.paddock", "web default", false},
        {"_web._tcp.default.service.paddock", "web default", true},
        {"_web._udp.default.service.paddock", "web default", true},
        {"_web._sctp.default.service.paddock", NULL, false},
        {"web._tcp.default.service.paddock", NULL, false},
        {"__web._tcp.default.service.paddock", NULL, false},
        {"_._tcp.default.service.paddock", NULL, false},
        {"_web.default.service.paddock", NULL, false},
        {"default.service.paddock", NULL, false},
        {"a.web.default.service.paddock", NULL, false},
        {"web.default.service.paddock.com", NULL, false},
        {"web.default.servicepaddock", NULL, false},
        {"", NULL, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct dns_question q = {0};
        struct zone_service s;
        auto_mem void *ctx = mem_ctx("t");
        str_copy(q.name, sizeof(q.name), names[i].name);
        bool is = zone_asks(&q, &s);
        ck_assert_msg(is == (names[i].is != NULL), "%s", names[i].name);
        if (!is)
            continue;
        ck_assert_str_eq(mem_printf(ctx, "%s %s", s.name, s.namespace), names[i].is);
        ck_assert_int_eq(s.srv_only, names[i].srv_only);
    }
}
END_TEST

static unsigned
count_at(const struct buf *b, size_t at)
{
    return (unsigned)big_endian(b->data + at, 2);
}

/* Sizes, for each number of instances: TC is set when some are missing. */
START_TEST(answers_of_every_size)
{
    static const uint8_t types[] = {DNS_A, DNS_AAAA, DNS_SRV, DNS_ANY};
    auto_mem void *ctx = mem_ctx("t");
    struct service_registration_list l = {0};
    for (int n = 0; n < 2 * ZONE_INSTANCES_MAX; n++) {
        struct service_registration *s = mem_new(ctx, struct service_registration);
        s->address = n % 3 == 2 ? mem_printf(ctx, "host-%d.example", n)
                                : mem_printf(ctx, n % 3 ? "fd00::%x" : "10.0.%d.1", n / 2);
        s->port = 1000 + n;
        list_add(ctx, l, s);
    }
    for (size_t n = 0; n <= l.n; n += n < 40 ? 1 : 37)
        for (size_t t = 0; t < ARRAY_LEN(types); t++)
            for (size_t max = DNS_UDP_MIN; max <= DNS_TCP_MAX; max = max < 700 ? max + 31 : max * 3) {
                char bytes[] = ASK_MORE WEB A_IN OPT("\x10\0", "\0");
                bytes[12 + 29 + 1] = (char)types[t];
                struct dns_question q;
                ck_assert_int_eq(dns_parse((const uint8_t *)bytes, sizeof(bytes) - 1, &q), DNS_OK);
                auto_mem struct zone_set *set = zone_set_new(
                    NULL, &(struct service_registration_list){l.v, n});
                auto_buf struct buf b = BUF_INIT(DNS_TCP_MAX);
                zone_answer(&q, set, n, max, &b);
                ck_assert(!buf_error(&b) && b.len <= max);
                bool cut = b.data[2] & 2;
                size_t want = types[t] == DNS_SRV ? set->n : 0;
                for (size_t i = 0; i < set->n_addresses && types[t] != DNS_SRV; i++)
                    want += types[t] == DNS_ANY || set->addresses[i].n == (types[t] == DNS_A ? 4 : 16);
                want += types[t] == DNS_ANY ? set->n : 0;
                ck_assert_msg(cut == (count_at(&b, 6) < want), "%zu %d %zu: %u of %zu", n,
                              types[t], max, count_at(&b, 6), want);
                ck_assert_uint_eq(b.data[3] & 15, n == 0 ? DNS_NXDOMAIN : DNS_OK);
            }
}
END_TEST

TEST_SUITE("dns", questions, who_is_asked_for, answers_of_every_size)
