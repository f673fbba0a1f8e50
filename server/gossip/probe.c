/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is asked whether he is there, and what his silence means: see swim.h. Order to read: lanes,
 * one question, rounds, questions for others, all.
 */
#include "common/mem.h"
#include "server/gossip/swim_int.h"

enum { ROUND_TRIES = 64 };

const struct swim_profile swim_lan = {.interval = 1000, .timeout = 500, .suspect_min = 1000};
const struct swim_profile swim_wan = {.interval = 5000, .timeout = 3000, .suspect_min = 10000};

static int64_t
probe_scaled(const struct swim *s, int64_t ms)
{
    return ms * (1 + s->figures.health);
}

static int64_t
chance_of(struct swim *s, int64_t ms)
{
    return (int64_t)(swim_random(s) % (uint64_t)ms);
}

static bool
is_there(const struct member *m)
{
    return m->state == MEMBER_ALIVE || m->state == MEMBER_SUSPECT;
}

/* --- lanes --- */

void
probe_begin(struct swim *s)
{
    s->lanes[0] = (struct lane){.p = &swim_lan, .near = true, .next = NEVER};
    s->lanes[1] = (struct lane){.p = &swim_wan, .next = NEVER};
}

static struct lane *
lane_of(struct swim *s, const struct member *m)
{
    return &s->lanes[m->near ? 0 : 1];
}

void
probe_wake(struct swim *s, const struct member *m, bool urgent)
{
    struct lane *l = lane_of(s, m);
    if (l->next == NEVER)
        l->next = s->t + chance_of(s, l->p->interval);
    if (!urgent || (l->q.token != 0 && l->q.target == m->id))
        return;
    l->urgent = m->id;
    if (l->q.token == 0)
        l->next = s->t;
}

/* Returns the member that was not heard, or asked, for the longest time. */
static struct member *
lane_pick(struct swim *s, struct lane *l)
{
    struct member *m = l->urgent != 0 ? swim_find(s, l->urgent) : NULL;
    unsigned alike = 0;
    l->urgent = 0;
    if (m != NULL && is_there(m))
        return m;
    m = NULL;
    for (size_t i = 1; i < s->n; i++) {
        struct member *o = s->v[i];
        if (o->near != l->near || !is_there(o) || (m != NULL && o->heard > m->heard))
            continue;
        alike = m != NULL && o->heard == m->heard ? alike + 1 : 1;
        if (swim_random(s) % alike == 0)
            m = o;
    }
    return m;
}

/* --- one question --- */

static void
probe_ping(struct swim *s, uint64_t to, uint64_t token, const char *addr, struct swim_out *out)
{
    swim_put(s, out, &(struct packet){.kind = PACKET_PING, .to = to, .token = token}, addr);
}

static bool
may_help(const struct swim *s, const struct member *m, uint64_t target)
{
    (void)s;
    return m->state == MEMBER_ALIVE && m->id != target;
}

static void
lane_ask(struct swim *s, struct lane *l, struct member *m, uint64_t round, struct swim_out *out)
{
    l->q = (struct question){.token = swim_random(s) | 1,
                             .target = m->id,
                             .ask = s->t + probe_scaled(s, l->p->timeout),
                             .end = s->t + probe_scaled(s, l->p->interval)};
    m->heard = s->t;
    l->next = l->q.end;
    swim_put(
        s, out,
        &(struct packet){.kind = PACKET_PING, .to = m->id, .token = l->q.token, .target = round},
        m->about->serf);
}

/* No answer yet: others ask too, and so do we once more. */
static void
lane_ask_others(struct swim *s, struct lane *l, const struct member *m, struct swim_out *out)
{
    struct member *v[SWIM_ASKED_N];
    size_t n = swim_choose(s, may_help, m->id, v, SWIM_ASKED_N);
    struct packet p = {
        .kind = PACKET_ASK, .token = l->q.token, .target = m->id, .addr = m->about->serf};
    l->q.asked = true;
    l->q.nacks_due = (unsigned)n;
    for (size_t i = 0; i < n; i++) {
        p.to = v[i]->id;
        swim_put(s, out, &p, v[i]->about->serf);
    }
    probe_ping(s, m->id, l->q.token, m->about->serf, out);
}

/* Accuses a member that did not answer. If others do not even say that they got no answer, it may
 * be our own fault. */
static void
lane_unanswered(struct swim *s, struct lane *l, struct member *m, struct swim_out *out)
{
    if (l->q.nacks_due == 0 || l->q.nacks < l->q.nacks_due)
        swim_health(s, 1);
    l->q.token = 0;
    if (m != NULL && is_there(m))
        swim_accuse(s, m, s->v[0]->id, out);
}

static int64_t
lane_due(const struct lane *l)
{
    if (l->q.token == 0)
        return l->next;
    return l->q.asked ? l->q.end : l->q.ask;
}

/* --- rounds --- */

/* The pings of a round make a ring of all that are there, in another order in each round. */
static uint64_t
probe_place(uint64_t id, uint64_t round)
{
    uint64_t z = (id ^ round) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 32) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Behind this server; NULL: there is nobody. */
static struct member *
next_in(const struct swim *s, const struct lane *l, uint64_t round)
{
    uint64_t us = probe_place(s->v[0]->id, round), best = 0;
    struct member *m = NULL;
    for (size_t i = 1; i < s->n; i++) {
        struct member *o = s->v[i];
        uint64_t behind = probe_place(o->id, round) - us; /* around the end */
        if (o->near != l->near || !is_there(o) || (m != NULL && behind >= best))
            continue;
        m = o;
        best = behind;
    }
    return m;
}

/* A round in which member `m` is behind this server, as far as chance finds one. */
static uint64_t
round_with(struct swim *s, const struct lane *l, const struct member *m)
{
    uint64_t round = 0;
    for (unsigned i = 0; i < ROUND_TRIES; i++) {
        round = swim_random(s);
        if (next_in(s, l, round) == m)
            break;
    }
    return round;
}

static void
lane_begin(struct swim *s, struct lane *l, struct swim_out *out)
{
    struct member *m = lane_pick(s, l);
    if (m == NULL) {
        l->next = NEVER;
        return;
    }
    l->began = l->near ? round_with(s, l, m) : 0;
    lane_ask(s, l, m, l->began, out);
}

/* By chance, so that one of them is first when who began is gone. */
static int64_t
probe_slack(struct swim *s)
{
    return SWIM_SLACK_MS / 2 + chance_of(s, SWIM_SLACK_MS);
}

/* A ping of that round has come, and ours is due soon: it goes now, to the next in the ring. So
 * each is asked once a round, and wakes once for both; and waits somewhat longer for the next round
 * than who begins it. One that is not well does not hurry. */
static void
lane_hurry(struct swim *s, struct lane *l, uint64_t round, struct swim_out *out)
{
    if (round == 0 || l->next == NEVER)
        return;
    if (l->began != 0 && l->began != round) {
        l->began = 0;
        l->next += swim_random(s) % 2 == 0 ? probe_slack(s) : 0;
    }
    if (l->q.token != 0 || l->urgent != 0 || s->figures.health > 0 ||
        s->t < l->next - SWIM_EARLY_MS)
        return;
    struct member *m = next_in(s, l, round);
    if (m == NULL)
        return;
    lane_ask(s, l, m, round, out);
    l->began = 0;
    l->next += probe_slack(s);
}

static void
lane_tick(struct swim *s, struct lane *l, struct swim_out *out)
{
    struct member *m = l->q.token != 0 ? swim_find(s, l->q.target) : NULL;
    if (l->q.token != 0 && (m == NULL || !is_there(m)))
        l->q.token = 0;
    if (l->q.token != 0 && !l->q.asked && s->t >= l->q.ask)
        lane_ask_others(s, l, m, out);
    if (l->q.token != 0 && s->t >= l->q.end)
        lane_unanswered(s, l, m, out);
    if (l->q.token == 0 && s->t >= l->next)
        lane_begin(s, l, out);
}

/* --- questions for others --- */

static void
relay_end(struct relay *r)
{
    mem_free(r->addr);
    mem_free(r->from_addr);
    *r = (struct relay){0};
}

static void
relay_begin(struct swim *s, const struct packet *p, const char *from, struct swim_out *out)
{
    const struct member *m = swim_find(s, p->target);
    struct relay *r = NULL;
    for (size_t i = 0; i < RELAYS_MAX && r == NULL; i++)
        if (s->relays[i].token == 0)
            r = &s->relays[i];
    if (r == NULL || m == NULL || m == s->v[0])
        return; /* whom we do not know, we do not ask for others */
    const struct swim_profile *f = m->near ? &swim_lan : &swim_wan;
    int64_t time = f->interval - f->timeout;
    *r = (struct relay){.token = swim_random(s) | 1,
                        .target = m->id,
                        .from = p->from,
                        .from_token = p->token,
                        .from_addr = mem_strdup(s, from),
                        .addr = mem_strdup(s, m->about->serf),
                        .nack = s->t + time * 4 / 5,
                        .end = s->t + time};
    probe_ping(s, r->target, r->token, r->addr, out);
}

static void
relay_answer(struct swim *s, const struct relay *r, enum packet_kind kind, struct swim_out *out)
{
    swim_put(s, out, &(struct packet){.kind = kind, .to = r->from, .token = r->from_token},
             r->from_addr);
}

static void
relay_tick(struct swim *s, struct relay *r, struct swim_out *out)
{
    if (s->t >= r->nack) {
        relay_answer(s, r, PACKET_NACK, out);
        r->nack = NEVER;
    }
    if (s->t >= r->end)
        relay_end(r);
}

/* --- all --- */

int64_t
probe_due(const struct swim *s)
{
    int64_t due = NEVER;
    for (size_t i = 0; i < ARRAY_LEN(s->lanes); i++)
        due = lane_due(&s->lanes[i]) < due ? lane_due(&s->lanes[i]) : due;
    for (size_t i = 0; i < RELAYS_MAX; i++) {
        const struct relay *r = &s->relays[i];
        int64_t at = r->nack < r->end ? r->nack : r->end;
        due = r->token != 0 && at < due ? at : due;
    }
    return due;
}

void
probe_tick(struct swim *s, struct swim_out *out)
{
    for (size_t i = 0; i < RELAYS_MAX; i++)
        if (s->relays[i].token != 0)
            relay_tick(s, &s->relays[i], out);
    for (size_t i = 0; i < ARRAY_LEN(s->lanes) && !s->left; i++)
        lane_tick(s, &s->lanes[i], out);
}

void
probe_void(struct swim *s)
{
    for (size_t i = 0; i < ARRAY_LEN(s->lanes); i++) {
        struct lane *l = &s->lanes[i];
        if (l->next == NEVER)
            continue;
        l->q.token = 0;
        l->next = s->left ? NEVER : s->t + chance_of(s, l->p->interval);
    }
    for (size_t i = 0; i < RELAYS_MAX; i++)
        relay_end(&s->relays[i]);
}

static struct lane *
lane_asked(struct swim *s, uint64_t token)
{
    for (size_t i = 0; i < ARRAY_LEN(s->lanes); i++)
        if (s->lanes[i].q.token != 0 && s->lanes[i].q.token == token)
            return &s->lanes[i];
    return NULL;
}

bool
swim_awaits(const struct swim *s, const struct packet *p)
{
    if (p->kind != PACKET_ACK && p->kind != PACKET_NACK)
        return false;
    if (lane_asked((struct swim *)(uintptr_t)s, p->token) != NULL)
        return true;
    for (size_t i = 0; i < RELAYS_MAX; i++)
        if (s->relays[i].token != 0 && s->relays[i].token == p->token)
            return true;
    return false;
}

void
probe_again(struct swim *s, uint64_t id, struct swim_out *out)
{
    for (size_t i = 0; i < ARRAY_LEN(s->lanes); i++) {
        struct question *q = &s->lanes[i].q;
        const struct member *m = q->token != 0 && q->target == id ? swim_find(s, id) : NULL;
        if (m != NULL)
            probe_ping(s, id, q->token, m->about->serf, out);
    }
    for (size_t i = 0; i < RELAYS_MAX; i++) {
        const struct relay *r = &s->relays[i];
        if (r->token != 0 && r->target == id)
            probe_ping(s, id, r->token, r->addr, out);
    }
}

static void
probe_acked(struct swim *s, const struct packet *p, struct swim_out *out)
{
    struct lane *l = lane_asked(s, p->token);
    if (l != NULL) {
        l->q.token = 0;
        l->next = l->urgent != 0 ? s->t : l->next;
        swim_health(s, -1);
        return;
    }
    for (size_t i = 0; i < RELAYS_MAX; i++) {
        struct relay *r = &s->relays[i];
        if (r->token != p->token || r->target != p->from)
            continue;
        relay_answer(s, r, PACKET_ACK, out);
        relay_end(r);
    }
}

void
probe_take(struct swim *s, const struct packet *p, const char *from, struct swim_out *out)
{
    struct member *m = swim_find(s, p->from);
    struct lane *l;
    if (m != NULL)
        m->heard = s->t;
    switch (p->kind) {
    case PACKET_PING:
        if (s->left)
            break;
        swim_put(s, out, &(struct packet){.kind = PACKET_ACK, .to = p->from, .token = p->token},
                 from);
        lane_hurry(s, &s->lanes[0], p->target, out);
        break;
    case PACKET_ASK:
        if (!s->left)
            relay_begin(s, p, from, out);
        break;
    case PACKET_ACK:
        probe_acked(s, p, out);
        break;
    case PACKET_NACK:
        l = lane_asked(s, p->token);
        if (l != NULL)
            l->q.nacks++;
        break;
    default:
        break;
    }
}
