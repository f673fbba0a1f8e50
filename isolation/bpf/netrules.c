/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/bpf/netrules.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

/* Instance metadata of the large clouds, and what containers get credentials from there. */
static const char *const metadata_deny[] = {
    "169.254.169.254",
    "fd00:ec2::254", /* AWS, Azure, Google, Oracle, OpenStack */
    "fd20:ce::254",
    "100.100.100.200", /* Google, Alibaba */
    "169.254.170.2",
    "169.254.170.23", /* AWS: task and pod credentials */
    "fd00:ec2::23",
    "168.63.129.16:80/tcp",
    "168.63.129.16:32526/tcp", /* AWS; Azure's host agent */
};

const struct net_policy *
netrules_metadata(void)
{
    static struct net_policy p;
    p.deny.v = (const char **)(uintptr_t)metadata_deny;
    p.deny.n = ARRAY_LEN(metadata_deny);
    return &p;
}

static int
parse_list(const void *ctx, const struct str_list *l, const struct netrule **ret, size_t *ret_n,
           struct err *e)
{
    if (l->n > JOB_NET_RULES_MAX)
        return err_set(e, -ERR_LIMIT, "%zu network rules, at most %d can be in a list", l->n,
                       JOB_NET_RULES_MAX);
    struct netrule *v = mem_array(ctx, struct netrule, l->n);
    for (size_t i = 0; i < l->n; i++) {
        int r = netrule_parse(l->v[i], &v[i], e);
        if (r < 0)
            return r;
    }
    *ret = v;
    *ret_n = l->n;
    return 0;
}

int
netrules_side(const void *ctx, const struct net_policy *p, struct netrules_side *ret,
              struct err *e)
{
    struct netrules_side s = {.otherwise = true};
    if (p != NULL) {
        int r = parse_list(ctx, &p->allow, &s.allow, &s.n_allow, e);
        if (r == 0)
            r = parse_list(ctx, &p->deny, &s.deny, &s.n_deny, e);
        if (r < 0)
            return r;
        if (str_eq(p->default_, "deny"))
            s.otherwise = false;
        else if (str_empty(p->default_))
            s.otherwise = s.n_allow == 0;
        else if (!str_eq(p->default_, "allow"))
            return err_set(e, -ERR_INVALID, "the default \"%.32s\" must be allow or deny",
                           p->default_);
    }
    *ret = s;
    return 0;
}

struct prefix {
    bool v6;
    uint8_t bits;
    uint8_t addr[16];
};

static bool
same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    if (memcmp(a, b, bits / 8) != 0)
        return false;
    return bits % 8 == 0 || ((a[bits / 8] ^ b[bits / 8]) & (0xff00u >> bits % 8) & 0xff) == 0;
}

static bool
netrules_covers(const struct netrule *r, const struct prefix *p)
{
    if (r->v4 && r->v6)
        return true;
    return r->v6 == p->v6 && r->bits <= p->bits && same_bits(r->addr, p->addr, r->bits);
}

static bool
netrules_matches(const struct netrule *v, size_t n, const struct prefix *p, unsigned proto,
                 unsigned port)
{
    for (size_t i = 0; i < n; i++) {
        if (!(v[i].protos & proto) || !netrules_covers(&v[i], p))
            continue;
        if (proto == NETRULE_OTHER ? v[i].lo == 0 && v[i].hi == 65535
                                   : port >= v[i].lo && port <= v[i].hi)
            return true;
    }
    return false;
}

static bool
side_allows(const struct netrules_side *s, const struct prefix *p, unsigned proto, unsigned port)
{
    if (netrules_matches(s->deny, s->n_deny, p, proto, port))
        return false;
    return netrules_matches(s->allow, s->n_allow, p, proto, port) || s->otherwise;
}

struct compile {
    const struct netrules_side *sides;
    size_t n_sides;
    struct prefix *prefixes;
    size_t n_prefixes;
    uint32_t *edges; /* ports at which something may change, sorted; 0 to 65536 */
    size_t n_edges;
    uint8_t *masks; /* protocols that are allowed from an edge on, at the prefix at hand */
};

static unsigned
protos_at(const struct compile *c, const struct prefix *p, unsigned port)
{
    unsigned mask = 0;
    for (unsigned proto = 1; proto <= NETRULE_OTHER; proto <<= 1) {
        bool all = true;
        for (size_t i = 0; i < c->n_sides; i++)
            all = all && side_allows(&c->sides[i], p, proto, port);
        mask |= all ? proto : 0;
    }
    return mask;
}

static int
by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void
note_list(struct compile *c, const struct netrule *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        c->edges[c->n_edges++] = v[i].lo;
        c->edges[c->n_edges++] = v[i].hi + 1u;
        if (v[i].v4 && v[i].v6)
            continue; /* everybody's prefix is there */
        struct prefix p = {.v6 = v[i].v6, .bits = v[i].bits};
        memcpy(p.addr, v[i].addr, sizeof(p.addr));
        bool known = false;
        for (size_t k = 0; k < c->n_prefixes && !known; k++)
            known = memcmp(&c->prefixes[k], &p, sizeof(p)) == 0;
        if (!known)
            c->prefixes[c->n_prefixes++] = p;
    }
}

static void
netrules_collect(const void *ctx, struct compile *c)
{
    size_t rules = 0;
    for (size_t i = 0; i < c->n_sides; i++)
        rules += c->sides[i].n_allow + c->sides[i].n_deny;
    c->prefixes = mem_array(ctx, struct prefix, rules + 2);
    c->edges = mem_array(ctx, uint32_t, rules * 2 + 2);
    c->prefixes[c->n_prefixes++] = (struct prefix){.v6 = false};
    c->prefixes[c->n_prefixes++] = (struct prefix){.v6 = true};
    c->edges[c->n_edges++] = 0;
    c->edges[c->n_edges++] = 65536;
    for (size_t i = 0; i < c->n_sides; i++) {
        note_list(c, c->sides[i].allow, c->sides[i].n_allow);
        note_list(c, c->sides[i].deny, c->sides[i].n_deny);
    }
    qsort(c->edges, c->n_edges, sizeof(*c->edges), by_number);
    size_t n = 0;
    for (size_t i = 0; i < c->n_edges; i++)
        if (n == 0 || c->edges[n - 1] != c->edges[i])
            c->edges[n++] = c->edges[i];
    c->n_edges = n;
    c->masks = mem_array(ctx, uint8_t, n);
}

/* The ports in order, neighbours with the same protocols as one range. False: too many. */
static bool
netrules_judge(const struct compile *c, const struct prefix *p, struct bpf_rule *ret)
{
    unsigned whole = NETRULE_ANY;
    struct bpf_rule r = {0};
    for (size_t i = 0; i + 1 < c->n_edges; i++)
        whole &= c->masks[i] = (uint8_t)protos_at(c, p, c->edges[i]);
    r.whole = (uint16_t)whole;
    for (size_t i = 0; i + 1 < c->n_edges; i++) {
        uint32_t lo = c->edges[i], hi = c->edges[i + 1] - 1;
        unsigned mask = c->masks[i] & ~whole & (NETRULE_TCP | NETRULE_UDP);
        struct bpf_rule_range *last = r.n > 0 ? &r.ranges[r.n - 1] : NULL;
        if (mask == 0)
            continue;
        if (last != NULL && last->protos == mask && last->hi + 1u == lo) {
            last->hi = (uint16_t)hi;
            continue;
        }
        if (r.n == BPF_RULE_RANGES)
            return false;
        r.ranges[r.n++] = (struct bpf_rule_range){
            .lo = (uint16_t)lo, .hi = (uint16_t)hi, .protos = (uint16_t)mask};
    }
    *ret = r;
    return true;
}

int
netrules_compile(const void *ctx, const struct netrules_side *sides, size_t n,
                 struct netrules *ret, struct err *e)
{
    _Static_assert(NETRULE_TCP == BPF_RULE_TCP && NETRULE_UDP == BPF_RULE_UDP &&
                       NETRULE_OTHER == BPF_RULE_OTHER,
                   "the same bits");
    ASSERT(n <= NETRULES_SIDES_MAX);
    auto_mem void *tmp = mem_ctx("netrules");
    struct compile c = {.sides = sides, .n_sides = n};
    netrules_collect(tmp, &c);
    struct netrules out = {.v = mem_array(ctx, struct netrules_entry, c.n_prefixes)};
    for (size_t i = 0; i < c.n_prefixes; i++) {
        const struct prefix *p = &c.prefixes[i];
        struct netrules_entry *x = &out.v[out.n++];
        x->v6 = p->v6;
        x->bits = p->bits;
        memcpy(x->addr, p->addr, sizeof(x->addr));
        if (!netrules_judge(&c, p, &x->rule)) {
            char text[INET6_ADDRSTRLEN] = "";
            (void)inet_ntop(p->v6 ? AF_INET6 : AF_INET, p->addr, text, sizeof(text));
            return err_set(
                e, -ERR_LIMIT,
                "network rules: more than %d ranges of ports meet at %s/%u: use wider ones",
                BPF_RULE_RANGES, text, p->bits);
        }
    }
    *ret = out;
    return 0;
}
