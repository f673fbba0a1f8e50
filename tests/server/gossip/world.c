/* SPDX-License-Identifier: Apache-2.0
 *
 * Gossip in virtual time: see world.h.
 */
#include "tests/server/gossip/world.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

/* A packet under way; of a sync all of them, and whether it is the answer. */
struct letter {
    struct letter *next;
    int64_t at;
    size_t from, to;
    bool sync, answer;
    struct buf b;
};

static const struct gossip_keys no_keys;
static const uint8_t no_nonce[PACKET_NONCE];

uint64_t
world_random(struct world *w, uint64_t below)
{
    uint64_t z = w->rng += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return below != 0 ? (z ^ z >> 31) % below : 0;
}

static const char *
one_region(size_t i)
{
    (void)i;
    return "global";
}

struct world *
world_new(uint64_t seed, size_t n)
{
    struct world *w = mem_new(NULL, struct world);
    ASSERT(n <= NODES_MAX);
    *w = (struct world){.rng = seed * 7919 + 1, .n = n, .delay_max = 1, .region = one_region};
    return w;
}

void
world_free(struct world *w)
{
    for (struct letter *l = w->letters, *next; l != NULL; l = next) {
        next = l->next;
        buf_done(&l->b);
        mem_free(l);
    }
    mem_free(w);
}

static void
post(struct world *w, struct letter *l)
{
    l->at = w->t + w->delay_min + (int64_t)world_random(w, (uint64_t)(w->delay_max - w->delay_min + 1));
    struct letter **at = &w->letters;
    while (*at != NULL)
        at = &(*at)->next;
    *at = l;
}

static void
put(struct world *w, size_t from, size_t to, struct packet p, bool doubled)
{
    struct host *x = &w->v[from];
    p.session = x->session;
    if (!doubled)
        p.seq = ++x->seq;
    p.cookie = p.kind == PACKET_WHO ? p.cookie : x->cookies[to];
    struct letter *l = mem_new(NULL, struct letter);
    *l = (struct letter){.from = from, .to = to, .b = BUF_INIT(GOSSIP_PACKET_MAX)};
    packet_put(&l->b, &p, &no_keys, no_nonce);
    ASSERT(buf_error(&l->b) == 0 && l->b.len <= GOSSIP_DATAGRAM_MAX);
    w->sent++;
    post(w, l);
    if (!doubled && world_random(w, 100) < w->doubles) {
        p.seq = x->seq;
        put(w, from, to, p, true);
    }
}

static size_t
index_of(const char *addr)
{
    return (size_t)(addr[0] - 'a'); /* "b:4648" */
}

static bool
reaches(const struct world *w, size_t from, size_t to)
{
    return !w->v[from].cut[to] && !w->v[to].dead && !w->v[from].dead;
}

static void
sync_letter(struct world *w, size_t from, size_t to, bool answer)
{
    struct letter *l = mem_new(NULL, struct letter);
    *l = (struct letter){.from = from, .to = to, .sync = true, .answer = answer};
    post(w, l);
}

static void
events(struct world *w, struct host *x, struct swim_out *out)
{
    for (size_t i = 0; i < out->events.n; i++) {
        const struct swim_event *e = &out->events.v[i];
        size_t k = index_of(e->about->serf);
        x->failed_at[k] = e->change == SWIM_FAILED ? w->t : -1;
        x->failed_n[k] += e->change == SWIM_FAILED;
        x->joined_n[k] += e->change == SWIM_JOIN;
        x->left_n[k] += e->change == SWIM_LEAVE;
    }
}

static void
outcome(struct world *w, size_t i, struct swim_out *out)
{
    events(w, &w->v[i], out);
    for (size_t k = 0; k < out->sends.n; k++) {
        const struct swim_send *s = &out->sends.v[k];
        size_t to = index_of(s->addr);
        if (s->sync && reaches(w, i, to))
            sync_letter(w, i, to, false);
        else if (!s->sync)
            put(w, i, to, s->p, false);
    }
    mem_free(out->ctx);
}

static int64_t
clock_of(const struct world *w, size_t i)
{
    return w->t + w->v[i].ahead;
}

static void
woken(struct world *w, size_t i)
{
    w->v[i].woken += w->v[i].woken_at != w->t;
    w->v[i].woken_at = w->t;
}

static void
take_sync(struct world *w, const struct letter *l)
{
    auto_mem void *tmp = mem_ctx("sync");
    struct swim_out out = {.ctx = mem_ctx("out")};
    struct swim_sync all;
    swim_all(w->v[l->from].swim, tmp, w->v[l->to].id, &all);
    for (size_t i = 0; i < all.n; i++)
        swim_take(w->v[l->to].swim, clock_of(w, l->to), &all.v[i], "", &out);
    outcome(w, l->to, &out);
    if (!l->answer && reaches(w, l->to, l->from))
        sync_letter(w, l->to, l->from, true);
}

static void
take_packet(struct world *w, const struct letter *l)
{
    struct host *x = &w->v[l->to];
    auto_mem void *tmp = mem_ctx("packet");
    struct swim_out out = {.ctx = mem_ctx("out")};
    struct packet p;
    uint64_t cookie = 0;
    char from[32];
    (void)snprintf(from, sizeof(from), "%c:4648", (char)('a' + l->from));
    ASSERT(packet_get(tmp, l->b.data, l->b.len, &no_keys, &p) == PACKET_FINE);
    if (p.to == x->id && p.kind == PACKET_WHO && p.target == x->session) {
        x->cookies[l->from] = p.cookie;
        swim_again(x->swim, p.from, from, &out);
    } else if (p.to == x->id && p.kind != PACKET_WHO) {
        switch (guard_take(x->guard, &p, swim_awaits(x->swim, &p), &cookie)) {
        case GUARD_FRESH:
            swim_take(x->swim, clock_of(w, l->to), &p, from, &out);
            break;
        case GUARD_WHO:
            put(w, l->to, l->from,
                (struct packet){.kind = PACKET_WHO, .from = x->id, .to = p.from, .target = p.session,
                                .cookie = cookie},
                false);
            break;
        case GUARD_AGAIN:
            w->refused++;
            break;
        }
    }
    outcome(w, l->to, &out);
}

static void
deliver(struct world *w)
{
    for (struct letter **at = &w->letters; *at != NULL;) {
        struct letter *l = *at;
        if (l->at > w->t || w->v[l->to].frozen) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        woken(w, l->to);
        bool lost = !reaches(w, l->from, l->to) || (!l->sync && world_random(w, 100) < w->loss);
        if (!lost && l->sync)
            take_sync(w, l);
        else if (!lost)
            take_packet(w, l);
        buf_done(&l->b);
        mem_free(l);
        at = &w->letters;
    }
}

void
world_run(struct world *w, int64_t ms)
{
    for (int64_t end = w->t + ms; w->t < end; w->t++) {
        /* timers come before packets, as on the loop */
        for (size_t i = 0; i < w->n; i++) {
            struct host *x = &w->v[i];
            if (x->swim == NULL || x->dead || x->frozen ||
                swim_next(x->swim, clock_of(w, i)) > clock_of(w, i))
                continue;
            woken(w, i);
            struct swim_out out = {.ctx = mem_ctx("out")};
            swim_tick(x->swim, clock_of(w, i), &out);
            outcome(w, i, &out);
        }
        deliver(w);
    }
}

void
world_start(struct world *w, size_t i)
{
    struct host *x = &w->v[i];
    char name[32], addr[32];
    uint64_t key[2] = {world_random(w, UINT64_MAX), world_random(w, UINT64_MAX)};
    (void)snprintf(name, sizeof(name), "server-%zu.%s", i, w->region(i));
    (void)snprintf(addr, sizeof(addr), "%c:4648", (char)('a' + i));
    struct server_hello h = {.id = i + 1, .name = name, .region = w->region(i), .addr = addr, .serf = addr};
    struct swim_opts o = {&h, 1000 + ++w->lives, world_random(w, UINT64_MAX), w->without};
    struct err e = ERR_INIT;
    mem_free(x->swim);
    mem_free(x->guard);
    *x = (struct host){.id = i + 1, .session = world_random(w, UINT64_MAX) | 1};
    memset(x->failed_at, 0xff, sizeof(x->failed_at));
    ASSERT(swim_new(w, &o, &x->swim, &e) == 0);
    x->guard = guard_new(w, key);
}

void
world_join(struct world *w, size_t i, size_t by)
{
    if (reaches(w, i, by))
        sync_letter(w, i, by, false);
}

struct world *
world_joined(uint64_t seed, size_t n)
{
    return world_of(seed, n, 0);
}

struct world *
world_of(uint64_t seed, size_t n, unsigned without)
{
    struct world *w = world_new(seed, n);
    w->without = without;
    for (size_t i = 0; i < n; i++) {
        world_start(w, i);
        if (i > 0)
            world_join(w, i, 0);
    }
    world_run(w, 5000);
    ASSERT(world_agrees(w));
    return w;
}

enum member_state
world_state(const struct world *w, size_t i, size_t k)
{
    auto_mem void *tmp = mem_ctx("members");
    size_t n;
    struct swim_member *v = swim_members(w->v[i].swim, tmp, &n);
    for (size_t m = 0; m < n; m++)
        if (index_of(v[m].about->serf) == k)
            return v[m].state;
    return 0;
}

bool
world_until(struct world *w, size_t i, size_t k, enum member_state st, int64_t ms)
{
    int64_t end = w->t + ms;
    while (w->t < end && world_state(w, i, k) != st)
        world_run(w, 10);
    return world_state(w, i, k) == st;
}

bool
world_agrees(const struct world *w)
{
    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < w->n; k++)
            if (!w->v[i].dead && !w->v[k].dead && world_state(w, i, k) != MEMBER_ALIVE)
                return false;
    return true;
}

void
world_leave(struct world *w, size_t i)
{
    struct swim_out out = {.ctx = mem_ctx("out")};
    swim_leave(w->v[i].swim, clock_of(w, i), &out);
    outcome(w, i, &out);
}
