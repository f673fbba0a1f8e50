/* SPDX-License-Identifier: Apache-2.0 */
#include "client/dns/zone.h"

#include <arpa/inet.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

#define ZONE "paddock"
#define SERVICES ".service." ZONE
#define ADDRESSES ".addr." ZONE

/* --- sets --- */

static struct zone_address
address_of(const char *text)
{
    struct zone_address a = {0};
    if (inet_pton(AF_INET, text, a.bytes) == 1)
        a.n = 4;
    else if (inet_pton(AF_INET6, text, a.bytes) == 1)
        a.n = 16;
    return a;
}

static bool
address_is_there(const struct zone_set *s, const struct zone_address *a)
{
    for (size_t i = 0; i < s->n_addresses; i++)
        if (s->addresses[i].n == a->n && memcmp(s->addresses[i].bytes, a->bytes, a->n) == 0)
            return true;
    return false;
}

/* The name of an address as a target, for no record has an address there (RFC 2782). */
static void
address_name(const struct zone_address *a, char ret[DNS_NAME_MAX])
{
    for (size_t i = 0; i < a->n; i++)
        snprintf(ret + 2 * i, 3, "%02x", a->bytes[i]);
    memcpy(ret + 2 * a->n, ADDRESSES, sizeof(ADDRESSES));
}

/* False: its address is no name either. */
static bool
instance_of(const struct service_registration *s, struct zone_instance *ret)
{
    char target[DNS_NAME_MAX];
    const char *name = str_or(s->address, "");
    *ret = (struct zone_instance){.address = address_of(name)};
    if (ret->address.n > 0) {
        address_name(&ret->address, target);
        name = target;
    }
    size_t n = dns_put_name(ret->srv + 6, name);
    ret->srv[3] = 1; /* priority 0, weight 1 */
    ret->srv[4] = (uint8_t)(s->port >> 8);
    ret->srv[5] = (uint8_t)s->port;
    ret->srv_n = (uint16_t)(6 + n);
    return n > 1;
}

struct zone_set *
zone_set_new(const void *ctx, const struct service_registration_list *l)
{
    struct zone_set *s = mem_new(ctx, struct zone_set);
    size_t most = l->n < ZONE_INSTANCES_MAX ? l->n : ZONE_INSTANCES_MAX;
    s->instances = mem_array(s, struct zone_instance, most + 1);
    s->addresses = mem_array(s, struct zone_address, most + 1);
    for (size_t i = 0; i < most; i++) {
        struct zone_instance *t = &s->instances[s->n];
        if (!instance_of(l->v[i], t))
            continue;
        s->n++;
        if (t->address.n > 0 && !address_is_there(s, &t->address))
            s->addresses[s->n_addresses++] = t->address;
    }
    return s;
}

/* --- names --- */

static bool
ends_with(const char *name, const char *end, size_t *ret_before)
{
    size_t n = strlen(name), k = strlen(end);
    if (n < k || strcmp(name + n - k, end) != 0)
        return false;
    *ret_before = n - k;
    return true;
}

static bool
in_zone(const char *name)
{
    size_t n;
    return str_eq(name, ZONE) || ends_with(name, "." ZONE, &n);
}

/* Splits the first n bytes of a name into labels, at most `most`; their number, or most + 1. */
static size_t
labels_of(const char *name, size_t n, struct slice *v, size_t most)
{
    size_t count = 0;
    while (n > 0) {
        const char *dot = memchr(name, '.', n);
        size_t k = dot ? (size_t)(dot - name) : n;
        if (count == most)
            return most + 1;
        v[count++] = SLICE(name, k);
        n -= k + (dot != NULL);
        name += k + (dot != NULL);
    }
    return count;
}

static void
label_text(struct slice label, char ret[DNS_LABEL_MAX + 1])
{
    memcpy(ret, label.p, label.n);
    ret[label.n] = 0;
}

bool
zone_asks(const struct dns_question *q, struct zone_service *ret)
{
    struct slice v[3];
    size_t n;
    if (!ends_with(q->name, SERVICES, &n))
        return false;
    size_t count = labels_of(q->name, n, v, 3);
    if (count == 2) {
        ret->srv_only = false;
    } else if (count == 3 && v[1].n == 4 &&
               (memcmp(v[1].p, "_tcp", 4) == 0 || memcmp(v[1].p, "_udp", 4) == 0) &&
               *(const char *)v[0].p == '_' && v[0].n > 1) {
        ret->srv_only = true;
        v[0] = SLICE((const char *)v[0].p + 1, v[0].n - 1);
        v[1] = v[2];
    } else {
        return false;
    }
    label_text(v[0], ret->name);
    label_text(v[1], ret->namespace);
    return !memchr(ret->name, '_', v[0].n) && !memchr(ret->namespace, '_', v[1].n);
}

/* Reads HEX.addr.paddock. */
static bool
name_address(const char *name, struct zone_address *ret)
{
    size_t n;
    *ret = (struct zone_address){0};
    if (!ends_with(name, ADDRESSES, &n) || (n != 8 && n != 32) ||
        strspn(name, "0123456789abcdef") != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        int digit = name[i] <= '9' ? name[i] - '0' : name[i] - 'a' + 10;
        ret->bytes[i / 2] = (uint8_t)(ret->bytes[i / 2] << 4 | digit);
    }
    ret->n = (uint8_t)(n / 2);
    return true;
}

/* Says whether it is a name above those that have records. */
static bool
name_is_above(const char *name)
{
    struct slice v[1];
    size_t n;
    return str_eq(name, ZONE) || str_eq(name, &SERVICES[1]) || str_eq(name, &ADDRESSES[1]) ||
           (ends_with(name, SERVICES, &n) && labels_of(name, n, v, 1) == 1);
}

/* --- answers --- */

static bool
asks_for(const struct dns_question *q, enum dns_type type)
{
    return q->type == type || q->type == DNS_ANY;
}

/* The record that says how long a name that is not there is not there: not at all. */
static void
add_soa(struct dns_answer *a, enum dns_section s)
{
    uint8_t data[2 * DNS_NAME_MAX + 20];
    size_t n = dns_put_name(data, "ns." ZONE), at = DNS_ASKED;
    n += dns_put_name(data + n, "hostmaster." ZONE);
    static const uint8_t times[20] = {0, 0, 0, 1}; /* serial; refresh, retry, expire, minimum */
    memcpy(data + n, times, sizeof(times));
    at += a->q->raw_n - 4 - (sizeof(ZONE) + 1); /* the last label and the root */
    (void)dns_add(a, s, at, DNS_SOA, SLICE(data, n + sizeof(times)), NULL);
}

static bool
add_address(struct dns_answer *a, enum dns_section s, size_t at, const struct zone_address *v)
{
    return dns_add(a, s, at, v->n == 4 ? DNS_A : DNS_AAAA, SLICE(v->bytes, v->n), NULL);
}

static bool
asks_for_address(const struct dns_question *q, const struct zone_address *v)
{
    return asks_for(q, v->n == 4 ? DNS_A : DNS_AAAA);
}

static void
add_addresses(struct dns_answer *a, const struct zone_set *s, size_t turn)
{
    for (size_t i = 0; i < s->n_addresses; i++) {
        const struct zone_address *v = &s->addresses[(turn + i) % s->n_addresses];
        if (asks_for_address(a->q, v))
            (void)add_address(a, DNS_ANSWER, DNS_ASKED, v);
    }
}

static void
add_srv(struct dns_answer *a, const struct zone_set *s, size_t turn)
{
    size_t at[ZONE_INSTANCES_MAX], n = 0;
    for (; n < s->n; n++) {
        const struct zone_instance *t = &s->instances[(turn + n) % s->n];
        if (!dns_add(a, DNS_ANSWER, DNS_ASKED, DNS_SRV, SLICE(t->srv, t->srv_n), &at[n]))
            return;
    }
    for (size_t i = 0; i < n; i++) { /* where there is room: addresses of the targets */
        const struct zone_instance *t = &s->instances[(turn + i) % s->n];
        if (t->address.n > 0 && !add_address(a, DNS_OTHER, at[i] + 6, &t->address))
            return;
    }
}

void
zone_refuse(const struct dns_question *q, enum dns_code code, struct buf *b)
{
    struct dns_answer a;
    dns_begin(&a, q, DNS_UDP_MIN, b);
    dns_end(&a, code);
}

void
zone_answer(const struct dns_question *q, const struct zone_set *set, size_t turn, size_t max,
            struct buf *b)
{
    struct zone_service s;
    struct zone_address v;
    struct dns_answer a;
    enum dns_code code = DNS_OK;
    bool service = zone_asks(q, &s);
    if (!in_zone(q->name) || (service && !set)) {
        zone_refuse(q, service ? DNS_SERVFAIL : DNS_REFUSED, b);
        return;
    }
    dns_begin(&a, q, max, b);
    if (service) {
        code = set->n > 0 ? DNS_OK : DNS_NXDOMAIN;
        if (!s.srv_only)
            add_addresses(&a, set, turn);
        if (asks_for(q, DNS_SRV))
            add_srv(&a, set, turn);
    } else if (name_address(q->name, &v)) {
        if (asks_for_address(q, &v))
            (void)add_address(&a, DNS_ANSWER, DNS_ASKED, &v);
    } else if (str_eq(q->name, ZONE)) {
        if (asks_for(q, DNS_SOA))
            add_soa(&a, DNS_ANSWER);
    } else if (!name_is_above(q->name)) {
        code = DNS_NXDOMAIN;
    }
    if (a.n[DNS_ANSWER] == 0 && !a.cut)
        add_soa(&a, DNS_AUTHORITY);
    dns_end(&a, code);
}
