/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions of DNS: any bytes. Oracles: the answer is within its size, an answer to the same
 * question, and no question itself; walked record by record it ends where it says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/dns/zone.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
walk(const struct buf *b)
{
    struct unpack u = {b->data, b->len, false};
    uint64_t count[4];
    (void)unpack_take(&u, 4);
    for (size_t i = 0; i < 4; i++)
        count[i] = unpack_number(&u, 2);
    ASSERT(!u.bad && count[0] <= 1);
    for (uint64_t i = 0; i < count[0]; i++) {
        for (uint64_t label; (label = unpack_number(&u, 1)) != 0;)
            (void)unpack_take(&u, (size_t)label);
        (void)unpack_take(&u, 4);
    }
    for (uint64_t i = 0; i < count[1] + count[2] + count[3]; i++) {
        uint64_t owner = unpack_number(&u, 1);
        if (owner != 0) {
            ASSERT(owner >= 0xc0);
            ASSERT(((owner & 0x3f) << 8 | unpack_number(&u, 1)) < b->len);
        }
        (void)unpack_take(&u, 8);
        (void)unpack_take(&u, (size_t)unpack_number(&u, 2));
    }
    ASSERT(!u.bad && u.n == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const addresses[] = {"10.0.0.1", "fd00::1", "a.example", "10.0.0.1", "-"};
    auto_mem void *ctx = mem_ctx("fuzz");
    struct service_registration_list l = {0};
    struct dns_question q;
    struct zone_service s;
    if (n == 0 || n > DNS_UDP_MAX + 1)
        return 0;
    for (size_t i = 0; i < data[0]; i++) {
        struct service_registration *r = mem_new(ctx, struct service_registration);
        r->address = addresses[i % 5];
        r->port = (int64_t)i;
        list_add(ctx, l, r);
    }
    uint8_t *exact = mem_dup(ctx, data + 1, n - 1);
    int code = dns_parse(exact, n - 1, &q);
    if (code < 0)
        return 0;
    auto_buf struct buf b = BUF_INIT(DNS_TCP_MAX);
    if (code != DNS_OK)
        zone_refuse(&q, (enum dns_code)code, &b);
    else
        zone_answer(&q, zone_asks(&q, &s) ? zone_set_new(ctx, &l) : NULL, data[0], q.size, &b);
    ASSERT(!buf_error(&b) && b.len <= (code == DNS_OK ? q.size : DNS_UDP_MIN));
    ASSERT(memcmp(b.data, exact, 2) == 0 && dns_parse(b.data, b.len, &q) == -1);
    walk(&b);
    return 0;
}
