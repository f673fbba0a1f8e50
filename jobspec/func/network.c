/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions on CIDR prefixes, IPv4 and IPv6.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/num.h"
#include "jobspec/func/func.h"

struct prefix {
    uint8_t ip[16];
    int family;
    unsigned bits; /* of an address: 32 or 128 */
    unsigned len;
};

static void
network_mask(struct prefix *p)
{
    for (unsigned i = p->len; i < p->bits; i++)
        p->ip[i / 8] &= (uint8_t) ~(0x80u >> (i % 8));
}

static bool
arg_prefix(struct call *c, size_t i, struct prefix *p)
{
    char text[80];
    const char *s = arg_str(c, i), *slash = strchr(s, '/');
    int64_t len;
    memset(p, 0, sizeof(*p));
    if (slash == NULL || (size_t)(slash - s) >= sizeof(text))
        goto bad;
    memcpy(text, s, (size_t)(slash - s));
    text[slash - s] = '\0';
    p->family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
    p->bits = p->family == AF_INET6 ? 128 : 32;
    if (inet_pton(p->family, text, p->ip) != 1 || num_parse_i64(slash + 1, &len) != 0 || len < 0 ||
        len > (int64_t)p->bits)
        goto bad;
    p->len = (unsigned)len;
    network_mask(p);
    return true;
bad:
    arg_error(c, i, "a prefix such as 10.0.0.0/8 is needed");
    return false;
}

static struct value *
ret_prefix(struct call *c, const struct prefix *p, bool with_len)
{
    char ip[INET6_ADDRSTRLEN], out[INET6_ADDRSTRLEN + 8];
    inet_ntop(p->family, p->ip, ip, sizeof(ip));
    snprintf(out, sizeof(out), with_len ? "%s/%u" : "%s", ip, p->len);
    return ret_str(c, out);
}

/* Adds n << shift to the address. */
static void
network_add(struct prefix *p, uint64_t n, unsigned shift)
{
    unsigned carry = 0;
    for (unsigned bit = 0; bit + shift < p->bits; bit++) {
        unsigned at = p->bits - 1 - bit - shift;
        unsigned sum = (unsigned)(bit < 64 ? n >> bit & 1 : 0) + carry;
        sum += p->ip[at / 8] >> (7 - at % 8) & 1;
        if (sum & 1)
            p->ip[at / 8] |= (uint8_t)(0x80u >> (at % 8));
        else
            p->ip[at / 8] &= (uint8_t) ~(0x80u >> (at % 8));
        carry = sum >> 1;
    }
}

static struct value *
fn_cidrhost(struct call *c)
{
    struct prefix p;
    if (!arg_prefix(c, 0, &p))
        return NULL;
    int64_t n = arg_int(c, 1);
    unsigned host = p.bits - p.len;
    uint64_t size = host >= 63 ? (uint64_t)INT64_MAX : (uint64_t)1 << host;
    if (n < 0 ? (uint64_t) - (n + 1) >= size : (uint64_t)n >= size)
        return arg_error(c, 1, "the prefix has no host %lld", (long long)n);
    if (n < 0) { /* from the end: all ones, minus what is left */
        for (unsigned i = p.len; i < p.bits; i++)
            p.ip[i / 8] |= (uint8_t)(0x80u >> (i % 8));
        uint64_t back = (uint64_t) - (n + 1);
        for (unsigned bit = 0; bit < 64 && bit < host; bit++)
            if (back >> bit & 1)
                p.ip[(p.bits - 1 - bit) / 8] &= (uint8_t) ~(0x80u >> ((p.bits - 1 - bit) % 8));
    } else {
        network_add(&p, (uint64_t)n, 0);
    }
    return ret_prefix(c, &p, false);
}

static struct value *
fn_cidrnetmask(struct call *c)
{
    struct prefix p;
    if (!arg_prefix(c, 0, &p))
        return NULL;
    if (p.family != AF_INET)
        return arg_error(c, 0, "only IPv4 has netmasks");
    memset(p.ip, 0xff, sizeof(p.ip));
    network_mask(&p);
    return ret_prefix(c, &p, false);
}

static bool
network_subnet(struct call *c, struct prefix *p, size_t arg, int64_t newbits, uint64_t num)
{
    if (newbits < 0 || p->len + (uint64_t)newbits > p->bits || newbits > 63) {
        arg_error(c, arg, "the prefix cannot be extended by %lld bits", (long long)newbits);
        return false;
    }
    if (num >> newbits != 0) {
        arg_error(c, arg + 1, "%lld bits are not enough for subnet %llu", (long long)newbits,
                  (unsigned long long)num);
        return false;
    }
    p->len += (unsigned)newbits;
    network_add(p, num, p->bits - p->len);
    return true;
}

static struct value *
fn_cidrsubnet(struct call *c)
{
    struct prefix p;
    if (!arg_prefix(c, 0, &p))
        return NULL;
    int64_t newbits = arg_int(c, 1), num = arg_int(c, 2);
    if (num < 0)
        return arg_error(c, 2, "a number that is not negative is needed");
    return network_subnet(c, &p, 1, newbits, (uint64_t)num) ? ret_prefix(c, &p, true) : NULL;
}

/* Consecutive subnets of the given sizes, each at the next fitting place. */
static struct value *
fn_cidrsubnets(struct call *c)
{
    struct prefix base, next;
    if (!arg_prefix(c, 0, &base))
        return NULL;
    struct value *out = ret_list(c, c->n - 1);
    next = base;
    for (size_t i = 1; out != NULL && i < c->n; i++) {
        int64_t newbits = arg_int(c, i);
        if (newbits < 1 || newbits > 32 || base.len + newbits > base.bits)
            return arg_error(c, i, "the prefix cannot be extended by %lld bits",
                             (long long)newbits);
        struct prefix p = next;
        p.len = base.len + (unsigned)newbits;
        network_mask(&p);
        if (memcmp(p.ip, next.ip, sizeof(p.ip)) != 0)
            network_add(&p, 1, p.bits - p.len); /* up to its own alignment */
        struct prefix in = p;
        in.len = base.len;
        network_mask(&in);
        if (memcmp(in.ip, base.ip, sizeof(in.ip)) != 0 ||
            (i > 1 && memcmp(p.ip, base.ip, sizeof(p.ip)) == 0))
            return arg_error(c, i, "no room is left in the prefix for this subnet");
        if ((out->list.v[i - 1] = ret_prefix(c, &p, true)) == NULL)
            return NULL;
        next = p;
        network_add(&next, 1, p.bits - p.len);
    }
    return out;
}

const struct func func_network[] = {{"cidrhost", 2, 2, fn_cidrhost, false},
                                    {"cidrnetmask", 1, 1, fn_cidrnetmask, false},
                                    {"cidrsubnet", 3, 3, fn_cidrsubnet, false},
                                    {"cidrsubnets", 1, -1, fn_cidrsubnets, false},
                                    {NULL, 0, 0, NULL, false}};
