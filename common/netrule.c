/* SPDX-License-Identifier: Apache-2.0 */
#include "common/netrule.h"

#include <arpa/inet.h>
#include <string.h>

#include "common/num.h"
#include "common/str.h"

static int
netrule_bad(const char *text, const char *why, struct err *e)
{
    return err_set(e, -ERR_INVALID, "\"%.100s\" is no network rule: %s", text, why);
}

static bool
parse_number(const char *s, uint64_t max, uint64_t *ret)
{
    return *s >= '0' && *s <= '9' && strlen(s) <= 5 && num_parse_u64(s, ret) == 0 && *ret <= max;
}

/* "tcp", "udp" or "any" behind the last slash; what stands in front of it stays in `s`. The slash
 * of a prefix length is told by the digit behind it. */
static const char *
cut_proto(char *s, struct netrule *r)
{
    char *slash = strrchr(s, '/');
    r->protos = NETRULE_ANY;
    if (slash == NULL || (slash[1] >= '0' && slash[1] <= '9') || strchr(slash, ']') != NULL)
        return NULL;
    if (str_eq(slash + 1, "tcp"))
        r->protos = NETRULE_TCP;
    else if (str_eq(slash + 1, "udp"))
        r->protos = NETRULE_UDP;
    else
        return "the protocol must be tcp or udp";
    *slash = '\0';
    return NULL;
}

static const char *
parse_ports(char *s, struct netrule *r)
{
    uint64_t lo, hi;
    char *dash = strchr(s, '-');
    if (dash != NULL)
        *dash++ = '\0';
    if (!parse_number(s, 65535, &lo) || (dash != NULL && !parse_number(dash, 65535, &hi)))
        return "ports are a number up to 65535, or two with a dash";
    if (dash == NULL)
        hi = lo;
    if (lo > hi)
        return "the first port is above the last";
    r->lo = (uint16_t)lo;
    r->hi = (uint16_t)hi;
    return NULL;
}

/* Bits behind the prefix are a mistake that would be hidden by clearing them. */
static bool
host_bits(const struct netrule *r)
{
    for (unsigned i = r->bits; i < (r->v6 ? 128u : 32u); i++)
        if (r->addr[i / 8] & (0x80u >> i % 8))
            return true;
    return false;
}

static const char *
parse_address(char *s, struct netrule *r)
{
    uint64_t bits;
    if (str_eq(s, "*")) {
        r->v4 = r->v6 = true;
        return NULL;
    }
    char *slash = strchr(s, '/');
    if (slash != NULL)
        *slash++ = '\0';
    if (inet_pton(AF_INET, s, r->addr) == 1)
        r->v4 = true;
    else if (inet_pton(AF_INET6, s, r->addr) == 1)
        r->v6 = true;
    else
        return "it must begin with an address, a network (10.0.0.0/8, [2001:db8::/32]) or *";
    r->bits = r->v6 ? 128 : 32;
    if (slash != NULL && !parse_number(slash, r->bits, &bits))
        return "the prefix length is out of range";
    if (slash != NULL)
        r->bits = (uint8_t)bits;
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (r->v6 && r->bits >= 96 && memcmp(r->addr, mapped, sizeof(mapped)) == 0)
        return "write an IPv4 address as such";
    return host_bits(r) ? "the address has bits behind its prefix length" : NULL;
}

int
netrule_parse(const char *text, struct netrule *ret, struct err *e)
{
    char s[NETRULE_TEXT_MAX + 1];
    struct netrule r = {.hi = 65535};
    if (text == NULL || !str_copy(s, sizeof(s), text))
        return netrule_bad(str_or(text, ""), "too long", e);
    const char *why = cut_proto(s, &r);
    char *addr = s, *ports = NULL;
    if (why == NULL && s[0] == '[') {
        addr = s + 1;
        char *end = strchr(s, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return netrule_bad(text, "behind [ an address, ] and perhaps :PORTS belong", e);
        *end = '\0';
        ports = end[1] == ':' ? end + 2 : NULL;
        if (strchr(addr, ':') == NULL)
            why = "only an IPv6 address stands in brackets";
    } else if (why == NULL && strchr(s, ':') == strrchr(s, ':') && strchr(s, ':') != NULL) {
        ports = strchr(s, ':'); /* one colon: no IPv6 address */
        *ports++ = '\0';
    }
    if (why == NULL && ports != NULL)
        why = parse_ports(ports, &r);
    if (why == NULL)
        why = parse_address(addr, &r);
    if (why != NULL)
        return netrule_bad(text, why, e);
    *ret = r;
    return 0;
}
