/* SPDX-License-Identifier: Apache-2.0
 *
 * Network rules: what is written, and that the compiled form says of every address and port what the
 * policies say.
 */
#include "isolation/bpf/netrules.h"

#include <arpa/inet.h>
#include <string.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "tests/lib/test.h"

START_TEST(parses)
{
    static const struct {
        const char *text, *addr;
        int bits, lo, hi, protos;
    } good[] = {
        {"10.0.0.0/8", "10.0.0.0", 8, 0, 65535, NETRULE_ANY},
        {"10.0.0.0/8:5432", "10.0.0.0", 8, 5432, 5432, NETRULE_ANY},
        {"192.0.2.7:8000-8100/tcp", "192.0.2.7", 32, 8000, 8100, NETRULE_TCP},
        {"192.0.2.7/udp", "192.0.2.7", 32, 0, 65535, NETRULE_UDP},
        {"0.0.0.0/0:443", "0.0.0.0", 0, 443, 443, NETRULE_ANY},
        {"[2001:db8::/32]:443", "2001:db8::", 32, 443, 443, NETRULE_ANY},
        {"[::1]:1-2/udp", "::1", 128, 1, 2, NETRULE_UDP},
        {"2001:db8::/32", "2001:db8::", 32, 0, 65535, NETRULE_ANY},
        {"::/0", "::", 0, 0, 65535, NETRULE_ANY},
        {"fd00:ec2::254", "fd00:ec2::254", 128, 0, 65535, NETRULE_ANY},
        {"*:53/udp", NULL, 0, 53, 53, NETRULE_UDP},
        {"*", NULL, 0, 0, 65535, NETRULE_ANY},
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct netrule r;
        struct err e = ERR_INIT;
        uint8_t addr[16] = {0};
        bool v6 = good[i].addr != NULL && strchr(good[i].addr, ':') != NULL;
        ck_assert_msg(netrule_parse(good[i].text, &r, &e) == 0, "%s", e.text);
        if (good[i].addr != NULL)
            ck_assert_int_eq(inet_pton(v6 ? AF_INET6 : AF_INET, good[i].addr, addr), 1);
        ck_assert_msg(r.bits == good[i].bits && r.lo == good[i].lo && r.hi == good[i].hi &&
                          r.protos == good[i].protos && memcmp(r.addr, addr, 16) == 0 &&
                          r.v6 == (v6 || good[i].addr == NULL) && r.v4 == !v6,
                      "%s: /%d %d-%d %d", good[i].text, r.bits, r.lo, r.hi, r.protos);
    }
}
END_TEST

START_TEST(refuses)
{
    static const char *const bad[] = {
        "", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/8:", "10.0.0.0/8:65536", "10.0.0.0/8:9-1",
        "10.0.0.0/8:1-", "10.0.0.0/8:-1", "10.0.0.0/8:80/sctp", "host.example:80", "[10.0.0.1]:80",
        "[2001:db8::", "[::1]80", "::1/129", "2001:db8::1/32", "*/8", "**", "10.0.0.0/", "10.0.0.0/08x",
        "::ffff:10.0.0.1", "1.2.3", " 1.2.3.4", "1.2.3.4 ", "1.2.3.4:0x50", "[::1]:", "[]", ":80",
        "fe80::1%eth0",
        "1.2.3.4:80/tcp/tcp",
        "11111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111",
    };
    struct netrule r;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = ERR_INIT;
        ck_assert_msg(netrule_parse(bad[i], &r, &e) == -ERR_INVALID && e.text[0], "\"%s\"", bad[i]);
    }
    ck_assert_int_eq(netrule_parse(NULL, &r, NULL), -ERR_INVALID);
}
END_TEST

/* --- an oracle that knows nothing of prefixes and ranges --- */

static uint64_t seed;

static uint32_t
rnd(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(seed >> 33) % n;
}

static bool
in_prefix(const uint8_t *a, const uint8_t *p, unsigned bits)
{
    for (unsigned i = 0; i < bits; i++)
        if ((a[i / 8] ^ p[i / 8]) & (0x80 >> i % 8))
            return false;
    return true;
}

struct packet {
    bool v6;
    uint8_t addr[16];
    unsigned proto, port;
};

static bool
hit(const struct netrule *v, size_t n, const struct packet *p)
{
    for (size_t i = 0; i < n; i++) {
        bool everybody = v[i].v4 && v[i].v6;
        bool there = everybody || (v[i].v6 == p->v6 && in_prefix(p->addr, v[i].addr, v[i].bits));
        bool ports = p->proto == NETRULE_OTHER ? v[i].lo == 0 && v[i].hi == 65535
                                               : p->port >= v[i].lo && p->port <= v[i].hi;
        if (there && ports && (v[i].protos & p->proto))
            return true;
    }
    return false;
}

static bool
said(const struct netrules_side *s, size_t n, const struct packet *p)
{
    for (size_t i = 0; i < n; i++) {
        bool a = hit(s[i].deny, s[i].n_deny, p)    ? false
                 : hit(s[i].allow, s[i].n_allow, p) ? true
                                                    : s[i].otherwise;
        if (!a)
            return false;
    }
    return true;
}

/* Judges as the program in the kernel does: the longest prefix, then its ports. */
static bool
compiled(const struct netrules *r, const struct packet *p)
{
    const struct netrules_entry *best = NULL;
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].v6 == p->v6 && in_prefix(p->addr, r->v[i].addr, r->v[i].bits) &&
            (best == NULL || r->v[i].bits > best->bits))
            best = &r->v[i];
    ck_assert_ptr_nonnull(best);
    if (best->rule.whole & p->proto)
        return true;
    for (size_t i = 0; i < best->rule.n; i++)
        if ((best->rule.ranges[i].protos & p->proto) && p->port >= best->rule.ranges[i].lo &&
            p->port <= best->rule.ranges[i].hi)
            return true;
    return false;
}

static struct netrule
any_rule(void)
{
    static const uint16_t ports[] = {0, 1, 22, 80, 443, 8000, 65534, 65535};
    struct netrule r = {.hi = 65535, .protos = NETRULE_ANY};
    uint32_t kind = rnd(5);
    r.v4 = kind != 0;
    r.v6 = kind < 2;
    if (kind != 1) {
        r.bits = (uint8_t)(r.v6 ? rnd(17) * 8 : rnd(5) * 8);
        for (unsigned i = 0; i < r.bits / 8u; i++)
            r.addr[i] = (uint8_t)rnd(2);
    }
    if (rnd(3) != 0) {
        r.lo = ports[rnd(8)];
        r.hi = rnd(2) ? r.lo : 65535;
    }
    if (rnd(2))
        r.protos = rnd(2) ? NETRULE_TCP : NETRULE_UDP;
    return r;
}

static void
one_policy(unsigned round)
{
    static const unsigned ports[] = {0, 1, 2, 21, 22, 23, 80, 81, 443, 7999, 8000, 65533, 65534, 65535};
    auto_mem void *ctx = mem_ctx("round");
    struct netrule v[24];
    struct netrules_side sides[2];
    struct netrules rules;
    struct err e = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        v[i] = any_rule();
    size_t n = 1 + rnd(2);
    for (size_t i = 0; i < n; i++)
        sides[i] = (struct netrules_side){&v[i * 12], rnd(7), &v[i * 12 + 6], rnd(7), rnd(2)};
    ck_assert_msg(netrules_compile(ctx, sides, n, &rules, &e) == 0, "%s", e.text);
    for (int k = 0; k < 400; k++) {
        struct packet p = {.v6 = rnd(2), .port = ports[rnd(ARRAY_LEN(ports))], .proto = 1u << rnd(3)};
        for (int i = 0; i < (p.v6 ? 16 : 4); i++)
            p.addr[i] = (uint8_t)rnd(2);
        ck_assert_msg(said(sides, n, &p) == compiled(&rules, &p), "round %u, %s port %u proto %u", round,
                      p.v6 ? "v6" : "v4", p.port, p.proto);
    }
}

START_TEST(compiles_what_is_said)
{
    seed = 42;
    for (unsigned i = 0; i < 2000; i++)
        one_policy(i);
}
END_TEST

START_TEST(defaults)
{
    auto_mem void *ctx = mem_ctx("t");
    struct netrules_side s;
    struct err e = ERR_INIT;
    const char *rule[] = {"10.0.0.0/8"};
    struct net_policy p = {0};
    ck_assert_int_eq(netrules_side(ctx, &p, &s, &e), 0);
    ck_assert(s.otherwise);
    p.allow = (struct str_list){rule, 1};
    ck_assert_int_eq(netrules_side(ctx, &p, &s, &e), 0);
    ck_assert(!s.otherwise);
    p.default_ = "allow";
    ck_assert_int_eq(netrules_side(ctx, &p, &s, &e), 0);
    ck_assert(s.otherwise);
    p.default_ = "maybe";
    ck_assert_int_eq(netrules_side(ctx, &p, &s, &e), -ERR_INVALID);
    const char *many[JOB_NET_RULES_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = rule[0];
    p = (struct net_policy){.deny = {many, ARRAY_LEN(many)}};
    ck_assert_int_eq(netrules_side(ctx, &p, &s, &e), -ERR_LIMIT);
}
END_TEST

START_TEST(bounds_ranges)
{
    auto_mem void *ctx = mem_ctx("t");
    struct err e = ERR_INIT;
    struct netrule v[17];
    struct netrules rules;
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        v[i] = (struct netrule){.v4 = true, .v6 = true, .protos = NETRULE_ANY,
                                .lo = (uint16_t)(i * 10), .hi = (uint16_t)(i * 10)};
    struct netrules_side s = {.allow = v, .n_allow = 16};
    ck_assert_int_eq(netrules_compile(ctx, &s, 1, &rules, &e), 0);
    s.n_allow = 17;
    ck_assert_int_eq(netrules_compile(ctx, &s, 1, &rules, &e), -ERR_LIMIT);
}
END_TEST

/* The largest policy that the agent can ask for must not hold up the warden. */
START_TEST(worst_case_is_quick)
{
    auto_mem void *ctx = mem_ctx("t");
    struct err e = ERR_INIT;
    struct netrule v[4][JOB_NET_RULES_MAX];
    struct netrules_side s[2];
    struct netrules rules;
    for (unsigned l = 0; l < 4; l++)
        for (unsigned i = 0; i < JOB_NET_RULES_MAX; i++)
            v[l][i] = (struct netrule){.v6 = true, .bits = (uint8_t)(i * 2 + l % 2), .protos = NETRULE_ANY,
                                       .lo = (uint16_t)(l * 256 + i * 2), .hi = 65535};
    for (unsigned i = 0; i < 2; i++)
        s[i] = (struct netrules_side){v[i * 2], JOB_NET_RULES_MAX, v[i * 2 + 1], JOB_NET_RULES_MAX, true};
    int64_t t = clock_mono_ns();
    (void)netrules_compile(ctx, s, 2, &rules, &e);
    ck_assert_int_lt(clock_mono_ns() - t, NS_PER_S);
}
END_TEST

TEST_SUITE("netrules", parses, refuses, compiles_what_is_said, defaults, bounds_ranges,
           worst_case_is_quick)
