/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets of gossip. The input as it is, behind a right checksum, and sealed by a key. Oracle: what
 * decodes is encoded to what decodes to the same; the machine takes it, and is due again.
 */
#include <stdint.h>
#include <string.h>

#include "common/crc.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/gossip/guard.h"
#include "server/gossip/swim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const uint8_t nonce[PACKET_NONCE];

static void
same(const struct packet *a, const struct packet *b)
{
    ASSERT(a->kind == b->kind && a->from == b->from && a->to == b->to && a->session == b->session);
    ASSERT(a->seq == b->seq && a->cookie == b->cookie && a->token == b->token && a->target == b->target);
    ASSERT(a->more == b->more && str_eq(a->addr, b->addr) && a->says.n == b->says.n);
    for (size_t i = 0; i < a->says.n; i++) {
        const struct statement *x = &a->says.v[i], *y = &b->says.v[i];
        ASSERT(x->state == y->state && x->id == y->id && x->incarnation == y->incarnation && x->by == y->by);
        ASSERT((x->about == NULL) == (y->about == NULL));
        ASSERT(x->about == NULL || codec_equal(&type_server_hello, x->about, y->about, 0));
    }
}

static void
take(const struct packet *p)
{
    static struct swim *s;
    static struct guard *g;
    static int64_t now;
    struct swim_out out = {.ctx = mem_ctx("out")};
    struct err e = ERR_INIT;
    uint64_t cookie = 0;
    if (s == NULL) {
        struct server_hello us = {.id = 1, .name = "a", .region = "r", .addr = "a:1", .serf = "a:1"};
        struct swim_opts o = {&us, 1, 1, 0};
        ASSERT(swim_new(NULL, &o, &s, &e) == 0);
        g = guard_new(NULL, (uint64_t[2]){1, 2});
    }
    (void)guard_take(g, p, swim_awaits(s, p), &cookie);
    swim_take(s, now, p, "b:1", &out);
    now += (int64_t)(p->seq % 1000);
    swim_tick(s, now, &out);
    ASSERT(swim_next(s, now) > now || swim_next(s, now) <= now + SWIM_REAP_MS);
    mem_free(out.ctx);
}

static void
one(const uint8_t *p, size_t n, const struct gossip_keys *keys)
{
    auto_mem void *tmp = mem_ctx("fuzz");
    struct packet a, b;
    if (packet_get(tmp, p, n, keys, &a) != PACKET_FINE)
        return;
    auto_buf struct buf out = BUF_INIT(2 * GOSSIP_PACKET_MAX);
    packet_put(&out, &a, keys, nonce);
    if (buf_error(&out) == 0 && out.len <= GOSSIP_PACKET_MAX) {
        ASSERT(packet_get(tmp, out.data, out.len, keys, &b) == PACKET_FINE);
        same(&a, &b);
    }
    take(&a);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct gossip_keys none, ring = {.n = 2, .v = {{.n = 32}, {.v = {1}, .n = 16}}};
    one(data, n, &none);
    one(data, n, &ring);
    if (n > GOSSIP_PACKET_MAX)
        return 0;
    auto_mem uint8_t *p = mem_array(NULL, uint8_t, n + 6);
    p[0] = PACKET_VERSION;
    if (n > 0)
        memcpy(p + 2, data, n);
    uint32_t crc = crc32c(0, p, n + 2);
    for (size_t i = 0; i < 4; i++)
        p[n + 2 + i] = (uint8_t)(crc >> (24 - 8 * i));
    one(p, n + 6, &none);
    return 0;
}
