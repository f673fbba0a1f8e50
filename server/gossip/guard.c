/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of servers, and windows of their packets: see guard.h.
 */
#include "server/gossip/guard.h"

#include "common/mem.h"
#include "common/siphash.h"

enum { WINDOW = 64 };

struct sender {
    uint64_t id, session; /* session 0: none is known yet */
    uint64_t accepted;    /* sessions so far: part of the cookie */
    uint64_t top, seen; /* the newest packet, and which of the 64 up to it came (bit 0: that one) */
    uint64_t turn;        /* when it was last of use */
};

struct guard {
    uint64_t key[2];
    uint64_t turn;
    uint64_t dropped; /* senders that made room: their cookies stay apart */
    struct sender *v; /* GOSSIP_MEMBERS_MAX at most */
    size_t n;
};

struct guard *
guard_new(const void *ctx, const uint64_t key[2])
{
    struct guard *g = mem_new(ctx, struct guard);
    g->key[0] = key[0];
    g->key[1] = key[1];
    return g;
}

/* Finds the sender, or makes it: the one that was longest of no use makes room. */
static struct sender *
sender_of(struct guard *g, uint64_t id)
{
    size_t oldest = 0;
    for (size_t i = 0; i < g->n; i++) {
        if (g->v[i].id == id)
            return &g->v[i];
        if (g->v[i].turn < g->v[oldest].turn)
            oldest = i;
    }
    g->dropped += g->n == GOSSIP_MEMBERS_MAX;
    struct sender s = {.id = id, .accepted = g->dropped << 32};
    if (g->n < GOSSIP_MEMBERS_MAX) {
        list_add(g, *g, s);
        return &g->v[g->n - 1];
    }
    g->v[oldest] = s;
    return &g->v[oldest];
}

static uint64_t
cookie_of(const struct guard *g, const struct sender *s, uint64_t session)
{
    struct siphash h;
    siphash_init(&h, g->key);
    siphash_add(&h, s->id);
    siphash_add(&h, session);
    siphash_add(&h, s->accepted);
    uint64_t c = siphash_end(&h);
    return c != 0 ? c : 1; /* 0: none */
}

static enum guard_says
window_take(struct sender *s, uint64_t seq)
{
    if (seq > s->top) {
        uint64_t by = seq - s->top;
        s->seen = (by < WINDOW ? s->seen << by : 0) | 1;
        s->top = seq;
        return GUARD_FRESH;
    }
    uint64_t back = s->top - seq;
    if (back >= WINDOW || s->seen >> back & 1)
        return GUARD_AGAIN;
    s->seen |= UINT64_C(1) << back;
    return GUARD_FRESH;
}

enum guard_says
guard_take(struct guard *g, const struct packet *p, bool proved, uint64_t *ret_cookie)
{
    ASSERT(p->from != 0 && p->session != 0);
    struct sender *s = sender_of(g, p->from);
    s->turn = ++g->turn;
    if (s->session == p->session)
        return window_take(s, p->seq);
    uint64_t cookie = cookie_of(g, s, p->session);
    if (!proved && p->cookie != cookie) {
        *ret_cookie = cookie;
        return GUARD_WHO;
    }
    s->accepted++;
    s->session = p->session;
    s->top = p->seq;
    s->seen = 1;
    return GUARD_FRESH;
}

void
guard_forget(struct guard *g, uint64_t id)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].id == id) {
            g->v[i] = g->v[--g->n];
            g->dropped++;
            return;
        }
}
