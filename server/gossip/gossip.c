/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine of gossip on a socket: see gossip.h. Order to read: sending, what is refused,
 * receiving, events, life.
 */
#include "server/gossip/gossip.h"

#include <inttypes.h>
#include <string.h>

#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "server/gossip/gossip_int.h"

static int64_t
now_ms(const struct gossip *g)
{
    return env_mono_ms(g->o.env);
}

/* --- sending --- */

static uint64_t
cookie_for(const struct gossip *g, uint64_t id)
{
    for (size_t i = 0; i < g->cookies.n; i++)
        if (g->cookies.v[i].id == id)
            return g->cookies.v[i].cookie;
    return 0;
}

void
gossip_keep_cookie(struct gossip *g, uint64_t id, uint64_t cookie)
{
    struct cookie c = {id, cookie};
    size_t i = 0;
    while (i < g->cookies.n && g->cookies.v[i].id != id)
        i++;
    if (i == GOSSIP_MEMBERS_MAX)
        i = g->next_cookie++ % GOSSIP_MEMBERS_MAX;
    if (i < g->cookies.n)
        g->cookies.v[i] = c;
    else
        list_add(g, g->cookies, c);
}

void
gossip_seal(struct gossip *g, struct buf *out, struct packet *p)
{
    uint8_t nonce[2 * sizeof(uint64_t)];
    uint64_t chance[2] = {env_random(g->o.env), env_random(g->o.env)};
    memcpy(nonce, chance, sizeof(nonce));
    p->from = g->id;
    p->session = g->session;
    p->seq = ++g->seq;
    if (p->kind != PACKET_WHO)
        p->cookie = cookie_for(g, p->to);
    packet_put(out, p, &g->keys, nonce);
}

static void
send_packet(struct gossip *g, const char *to, struct packet *p)
{
    auto_buf struct buf b = BUF_INIT(GOSSIP_PACKET_MAX);
    gossip_seal(g, &b, p);
    ASSERT(buf_error(&b) == 0 && b.len <= GOSSIP_DATAGRAM_MAX);
    g->figures.sent += datagram_send(g->socket, to, b.data, b.len);
}

/* --- what is refused --- */

static const char *
refusal_text(const struct gossip *g, const void *ctx, unsigned why)
{
    const char *name = swim_figures(g->swim)->foreign_name;
    switch (why) {
    case REFUSED_AGAIN:
        return "sent again, or long under way";
    case REFUSED_MISLED:
        return "for another server than this one, or from one with the same id";
    case REFUSED_MEMBER:
        if (name == NULL)
            return "more members than there may be";
        return mem_printf(ctx, "server \"%s\" is of another cluster of this region", name);
    default:
        return packet_fault_text((enum packet_fault)why);
    }
}

void
gossip_refuse(struct gossip *g, unsigned why, const char *from)
{
    auto_mem void *tmp = mem_ctx("refused");
    int64_t now = now_ms(g);
    ASSERT(why != PACKET_FINE && why < REFUSALS);
    uint64_t n = ++g->figures.refused[why];
    if (g->told[why].ms != 0 && now - g->told[why].ms < GOSSIP_TELL_MS)
        return;
    log_warn("serf", "packets of gossip are refused", "n", LOG_U64(n - g->told[why].n), "last_from",
             from, "why", refusal_text(g, tmp, why), NULL);
    g->told[why].ms = now;
    g->told[why].n = n;
}

/* --- receiving --- */

static void gossip_arm(struct gossip *g);

void
gossip_carry(struct gossip *g, struct swim_out *out)
{
    for (size_t i = 0; i < out->sends.n; i++) {
        struct swim_send *s = &out->sends.v[i];
        if (s->sync)
            exchange_start(g, s->addr, s->to);
        else
            send_packet(g, s->addr, &s->p);
    }
    for (size_t i = 0; i < out->events.n; i++) {
        struct swim_event e = out->events.v[i];
        if (e.change == SWIM_REAP)
            guard_forget(g->guard, e.about->id);
        e.about = codec_clone(g, &type_server_hello, e.about);
        list_add(g, g->events, e);
    }
    mem_free(out->ctx);
    gossip_arm(g);
}

static void
ask_who(struct gossip *g, const struct packet *p, uint64_t cookie, const char *from)
{
    struct packet who = {.kind = PACKET_WHO, .to = p->from, .target = p->session, .cookie = cookie};
    send_packet(g, from, &who);
}

static void
gossip_take(struct gossip *g, const struct packet *p, const char *from)
{
    struct swim_out out = {.ctx = mem_ctx("gossip")};
    uint64_t cookie = 0, before = swim_figures(g->swim)->foreign + swim_figures(g->swim)->full;
    if (p->kind == PACKET_WHO) {
        if (p->target == g->session) {
            gossip_keep_cookie(g, p->from, p->cookie);
            swim_again(g->swim, p->from, from, &out);
        }
    } else {
        switch (guard_take(g->guard, p, swim_awaits(g->swim, p), &cookie)) {
        case GUARD_FRESH:
            swim_take(g->swim, now_ms(g), p, from, &out);
            break;
        case GUARD_WHO:
            ask_who(g, p, cookie, from);
            break;
        case GUARD_AGAIN:
            gossip_refuse(g, REFUSED_AGAIN, from);
            break;
        }
    }
    if (swim_figures(g->swim)->foreign + swim_figures(g->swim)->full != before)
        gossip_refuse(g, REFUSED_MEMBER, from);
    gossip_carry(g, &out);
}

static void
gossip_got(void *arg, const char *from, const uint8_t *bytes, size_t n)
{
    struct gossip *g = arg;
    auto_mem void *tmp = mem_ctx("packet");
    struct packet p;
    g->figures.received++;
    enum packet_fault fault = packet_get(tmp, bytes, n, &g->keys, &p);
    if (fault == PACKET_FINE && (p.kind == PACKET_SYNC || p.kind == PACKET_KEYS))
        fault = PACKET_BAD; /* it comes over a connection */
    if (fault != PACKET_FINE)
        gossip_refuse(g, fault, from);
    else if (p.to != g->id || p.from == g->id)
        gossip_refuse(g, REFUSED_MISLED, from);
    else
        gossip_take(g, &p, from);
}

/* --- events, time --- */

static void
tell_events(void *arg)
{
    struct gossip *g = arg;
    struct events all = g->events;
    g->events = (struct events){0};
    g->telling = false;
    if (g->closing)
        return;
    for (size_t i = 0; i < all.n; i++) {
        g->o.changed(g->o.arg, all.v[i].change, all.v[i].about);
        mem_free(all.v[i].about);
    }
    mem_free(all.v);
}

static void
gossip_tick(void *arg)
{
    struct gossip *g = arg;
    struct swim_out out = {.ctx = mem_ctx("gossip")};
    g->timer = NULL;
    swim_tick(g->swim, now_ms(g), &out);
    gossip_carry(g, &out);
}

static void
gossip_arm(struct gossip *g)
{
    int64_t now = now_ms(g), next = swim_next(g->swim, now);
    if (g->events.n > 0 && !g->telling) {
        g->telling = true;
        env_post(g->o.env, tell_events, g);
    }
    if (g->timer != NULL && g->timer_ms == next)
        return;
    env_timer_stop(g->o.env, TAKE(g->timer));
    g->timer_ms = next;
    if (next != INT64_MAX)
        g->timer = env_timer(g->o.env, next - now, gossip_tick, g);
}

/* --- what is asked --- */

void
gossip_set_self(struct gossip *g, const struct server_hello *self)
{
    struct swim_out out = {.ctx = mem_ctx("gossip")};
    swim_set_self(g->swim, now_ms(g), self, &out);
    gossip_carry(g, &out);
}

struct swim_member *
gossip_members(struct gossip *g, const void *ctx, size_t *ret_n)
{
    return swim_members(g->swim, ctx, ret_n);
}

void
gossip_force(struct gossip *g, uint64_t id, bool prune)
{
    struct swim_out out = {.ctx = mem_ctx("gossip")};
    swim_force(g->swim, now_ms(g), id, prune, &out);
    gossip_carry(g, &out);
}

void
gossip_leave(struct gossip *g)
{
    struct swim_out out = {.ctx = mem_ctx("gossip")};
    swim_leave(g->swim, now_ms(g), &out);
    gossip_carry(g, &out);
}

void
gossip_figures(const struct gossip *g, struct gossip_figures *ret)
{
    *ret = g->figures;
    ret->encrypted = g->keys.n > 0;
    ret->swim = *swim_figures(g->swim);
}

/* --- life --- */

int
gossip_open(const struct gossip_opts *o, struct gossip **ret, struct err *e)
{
    struct gossip *g = mem_new(NULL, struct gossip);
    uint64_t key[2] = {env_random(o->env), env_random(o->env)};
    int64_t wall_s = env_wall_ns(o->env) / NS_PER_S;
    struct swim_opts so = {&o->self, wall_s > 1 ? (uint32_t)wall_s : 1, env_random(o->env), 0};
    g->o = *o;
    g->id = o->self.id;
    g->session = env_random(o->env) | 1;
    g->guard = guard_new(g, key);
    g->keys_path = mem_printf(g, "%s/serf.keyring", o->dir);
    int rc = keys_load(g->keys_path, o->key, &g->keys, e);
    if (rc == 0)
        rc = swim_new(g, &so, &g->swim, e);
    if (rc == 0)
        rc = datagram_open(o->dialer.loop, &o->at, gossip_got, g, &g->socket, e);
    if (rc < 0) {
        mem_free(g);
        return err_prefix(e, "gossip");
    }
    *ret = g;
    return 0;
}

void
gossip_start(struct gossip *g)
{
    exchange_begin(g);
    gossip_arm(g);
}

/* Behind what was posted. */
static void
free_it(void *arg)
{
    struct gossip *g = arg;
    mem_free(g);
}

void
gossip_close(struct gossip *g)
{
    if (g == NULL)
        return;
    g->closing = true;
    exchange_end(g);
    env_timer_stop(g->o.env, TAKE(g->timer));
    datagram_close(TAKE(g->socket));
    env_post(g->o.env, free_it, g);
}
