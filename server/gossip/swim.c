/* SPDX-License-Identifier: Apache-2.0
 *
 * The members, and what is said of them: see swim.h. Order to read: clock, news, suspicion,
 * statements, rounds, what the caller asks.
 */
#include "server/gossip/swim.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "server/gossip/swim_int.h"

/* splitmix64 */
uint64_t
swim_random(struct swim *s)
{
    uint64_t z = s->rng += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

struct member *
swim_find(const struct swim *s, uint64_t id)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i]->id == id)
            return s->v[i];
    return NULL;
}

void
swim_health(struct swim *s, int by)
{
    int h = (int)s->figures.health + (s->without & SWIM_WITHOUT_HEALTH ? 0 : by);
    s->figures.health = (unsigned)(h < 0 ? 0 : h > SWIM_HEALTH_MAX ? SWIM_HEALTH_MAX : h);
}

static bool
is_there(const struct member *m)
{
    return m->state == MEMBER_ALIVE || m->state == MEMBER_SUSPECT;
}

/* Members that count: of all, or of one distance. */
static size_t
swim_count(const struct swim *s, bool near_only, bool near)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += is_there(s->v[i]) && (!near_only || s->v[i]->near == near);
    return n;
}

/* --- the clock --- */

static int64_t
swim_due(const struct swim *s)
{
    int64_t at = probe_due(s);
    at = s->spread < at ? s->spread : at;
    at = s->sync < at ? s->sync : at;
    at = s->again < at ? s->again : at;
    for (size_t i = 1; i < s->n; i++) {
        const struct member *m = s->v[i];
        int64_t end = m->state == MEMBER_SUSPECT ? m->suspicion.until
                      : is_there(m)              ? NEVER
                                                 : m->since + SWIM_REAP_MS;
        at = end < at ? end : at;
    }
    return at;
}

/* Puts off to another round what was to be judged while we stood still. */
static void
stood_still(struct swim *s)
{
    s->figures.stalls++;
    swim_health(s, 1);
    probe_void(s);
    for (size_t i = 1; i < s->n; i++) {
        struct member *m = s->v[i];
        int64_t least = s->t + (m->near ? swim_lan.interval : swim_wan.interval);
        if (m->state == MEMBER_SUSPECT && m->suspicion.until < least)
            m->suspicion.until = least;
    }
}

static void
clock_on(struct swim *s, int64_t now)
{
    int64_t at = swim_due(s);
    int64_t by = s->begun && now > s->real ? now - s->real : 0;
    s->begun = true;
    s->real = now;
    if (at != NEVER && s->t + by > at + SWIM_LATE_MS && !(s->without & SWIM_WITHOUT_STALLS)) {
        s->t = at > s->t ? at : s->t;
        stood_still(s);
    } else {
        s->t += by;
    }
}

int64_t
swim_next(const struct swim *s, int64_t now)
{
    int64_t at = swim_due(s);
    if (at == NEVER)
        return NEVER;
    return (s->begun ? s->real : now) + (at > s->t ? at - s->t : 0);
}

/* --- news --- */

static unsigned
log10_up(size_t n)
{
    unsigned k = 1;
    for (size_t most = 10; most <= n; most *= 10)
        k++;
    return k;
}

static void
swim_news(struct swim *s, struct member *m)
{
    m->told = SWIM_TOLD_FACTOR * log10_up(swim_count(s, false, false));
    if (s->spread == NEVER)
        s->spread = s->t + SWIM_SPREAD_MS;
}

static struct statement
statement_of(const struct member *m)
{
    return (struct statement){.state = m->state,
                              .id = m->id,
                              .incarnation = m->incarnation,
                              .by = m->by,
                              .about = m->state == MEMBER_ALIVE ? m->about : NULL};
}

static size_t
statement_size(const struct member *m)
{
    return STATEMENT_HEAD + (m->state == MEMBER_ALIVE ? m->about_size : 0);
}

void
swim_again(struct swim *s, uint64_t id, const char *from, struct swim_out *out)
{
    struct packet p = {.kind = PACKET_TELL, .to = id};
    size_t room = GOSSIP_DATAGRAM_MAX - PACKET_HEAD;
    for (size_t i = 0; i < s->n; i++) {
        const struct member *m = s->v[i];
        if (s->t - m->since > SWIM_LATELY_MS || m->id == id || statement_size(m) > room)
            continue;
        list_add(out->ctx, p.says, statement_of(m));
        room -= statement_size(m);
    }
    p.from = s->v[0]->id;
    p.addr = "";
    if (p.says.n > 0) {
        struct swim_send x = {.to = id, .addr = mem_strdup(out->ctx, from), .p = p};
        list_add(out->ctx, out->sends, x);
    }
    probe_again(s, id, out);
}

/* Adds the news that were told least; a member that is spoken of as not alive hears that first. */
static void
add_news(struct swim *s, void *ctx, struct packet *p)
{
    size_t room = GOSSIP_DATAGRAM_MAX - PACKET_HEAD - strlen(str_or(p->addr, ""));
    struct member *about = swim_find(s, p->to);
    if (about == s->v[0] || (about != NULL && about->state == MEMBER_ALIVE) ||
        s->without & SWIM_WITHOUT_BUDDY)
        about = NULL;
    if (about != NULL) {
        list_add(ctx, p->says, statement_of(about));
        room -= statement_size(about);
    }
    for (;;) {
        struct member *best = NULL;
        for (size_t i = 0; i < s->n; i++) {
            struct member *m = s->v[i];
            if (m->told == 0 || m == about || m->id == p->to || statement_size(m) > room ||
                (best != NULL && m->told <= best->told))
                continue;
            bool twice = false;
            for (size_t k = 0; k < p->says.n && !twice; k++)
                twice = p->says.v[k].id == m->id;
            best = twice ? best : m;
        }
        if (best == NULL)
            return;
        list_add(ctx, p->says, statement_of(best));
        room -= statement_size(best);
        best->told--;
    }
}

void
swim_put(struct swim *s, struct swim_out *out, const struct packet *p, const char *addr)
{
    struct swim_send x = {.to = p->to, .addr = mem_strdup(out->ctx, addr), .p = *p};
    x.p.from = s->v[0]->id;
    x.p.addr = mem_strdup(out->ctx, str_or(p->addr, ""));
    add_news(s, out->ctx, &x.p);
    list_add(out->ctx, out->sends, x);
}

static void
swim_add_event(struct swim_out *out, enum swim_change change, const struct member *m)
{
    struct swim_event e = {change, codec_clone(out->ctx, &type_server_hello, m->about)};
    list_add(out->ctx, out->events, e);
}

size_t
swim_choose(struct swim *s,
            bool (*fits)(const struct swim *s, const struct member *m, uint64_t not ), uint64_t not,
            struct member **ret, size_t max)
{
    size_t n = 0, seen = 0;
    for (size_t i = 1; i < s->n; i++) {
        if (!fits(s, s->v[i], not))
            continue;
        size_t k = n < max ? n++ : (size_t)(swim_random(s) % (seen + 1));
        if (k < max)
            ret[k] = s->v[i];
        seen++;
    }
    return n;
}

/* --- suspicion --- */

static void
swim_become(struct swim *s, struct member *m, enum member_state to, uint64_t by)
{
    m->state = to;
    m->by = by;
    m->since = s->t;
    swim_news(s, m);
    if (!is_there(m) && s->again == NEVER)
        s->again = s->t + SWIM_AGAIN_MS;
    if (is_there(m) && m != s->v[0] && !s->left) {
        probe_wake(s, m, false);
        if (s->sync == NEVER)
            s->sync = s->t + (int64_t)(swim_random(s) % SWIM_SYNC_MS);
    }
}

/* From the longest time to the shortest, as others accuse it too; from now on, if that is over:
 * what is due since long would look as if this server had stood still. */
static void
suspicion_time(const struct swim *s, struct suspicion *x)
{
    bool shortest = x->wanted == 0 || s->without & SWIM_WITHOUT_DYNAMIC;
    double part = shortest ? 1 : log(x->n) / log(x->wanted + 1);
    int64_t time = x->most - (int64_t)((double)(x->most - x->least) * (part < 1 ? part : 1));
    x->until = x->begun + time > s->t ? x->begun + time : s->t;
}

static void
swim_suspect(struct swim *s, struct member *m, uint64_t by)
{
    size_t n = swim_count(s, true, m->near) + (m->near ? 0 : 1);
    double size = log((double)n) / log(10);
    const struct swim_profile *p = m->near ? &swim_lan : &swim_wan;
    int64_t least =
        (int64_t)((double)p->suspect_min * (size > 1 ? size : 1)) * (2 + s->figures.health) / 2;
    m->suspicion = (struct suspicion){.begun = s->t,
                                      .least = least,
                                      .most = SWIM_SUSPECT_FACTOR * least,
                                      .wanted = n < 2                ? 0
                                                : n - 2 > ACCUSERS_MAX ? ACCUSERS_MAX
                                                                       : (unsigned)n - 2,
                                      .n = 1,
                                      .accusers = {by}};
    suspicion_time(s, &m->suspicion);
    swim_become(s, m, MEMBER_SUSPECT, by);
    s->spread = s->t; /* others are to look, too */
}

void
swim_accuse(struct swim *s, struct member *m, uint64_t by, struct swim_out *out)
{
    struct suspicion *x = &m->suspicion;
    (void)out;
    ASSERT(is_there(m) && m != s->v[0]);
    if (m->state == MEMBER_ALIVE) {
        swim_suspect(s, m, by);
        return;
    }
    for (unsigned i = 0; i < x->n; i++)
        if (x->accusers[i] == by)
            return;
    if (x->n > x->wanted)
        return;
    x->accusers[x->n++] = by;
    suspicion_time(s, x);
    m->by = by;
    swim_news(s, m);
}

/* --- statements --- */

/* Says whether a server is of another cluster in this region: not one of us. */
static bool
is_foreign(const struct swim *s, const struct server_hello *h)
{
    const struct server_hello *us = s->v[0]->about;
    return str_eq(h->region, us->region) && !str_empty(h->cluster) && !str_empty(us->cluster) &&
           !str_eq(h->cluster, us->cluster);
}

static void
set_about(struct swim *s, struct member *m, const struct server_hello *h, void *old_owner)
{
    if (m->about != NULL)
        talloc_reparent(m, old_owner, m->about); /* packets of this call refer to it */
    m->about = codec_clone(m, &type_server_hello, h);
    m->about_size = packet_about_size(m->about);
    m->near = str_eq(h->region, s->v[0]->about->region);
}

static void
swim_add(struct swim *s, const struct statement *st, struct swim_out *out)
{
    if (st->about == NULL)
        return;
    if (s->n == GOSSIP_MEMBERS_MAX || packet_about_size(st->about) == 0) {
        s->figures.full++;
        return;
    }
    struct member *m = mem_new(s, struct member);
    m->id = st->id;
    m->incarnation = st->incarnation;
    set_about(s, m, st->about, out->ctx);
    list_add(s, *s, m);
    bool there = st->state == MEMBER_ALIVE || st->state == MEMBER_SUSPECT;
    swim_become(s, m, there ? MEMBER_ALIVE : st->state, st->by);
    if (there)
        swim_add_event(out, SWIM_JOIN, m);
    if (st->state == MEMBER_SUSPECT)
        swim_suspect(s, m, st->by);
}

static void
say_alive(struct swim *s, struct member *m, const struct statement *st, struct swim_out *out)
{
    bool was = is_there(m);
    if (st->incarnation <= m->incarnation || (st->about == NULL && m->state >= MEMBER_LEFT))
        return;
    m->incarnation = st->incarnation;
    bool changed = st->about != NULL && !codec_equal(&type_server_hello, st->about, m->about, 0);
    if (changed)
        set_about(s, m, st->about, out->ctx);
    swim_become(s, m, MEMBER_ALIVE, st->by);
    if (!was)
        swim_add_event(out, SWIM_JOIN, m);
    else if (changed)
        swim_add_event(out, SWIM_UPDATE, m);
}

/* Adds the event of a member that failed or left; `was`: it was there before. */
static void
gone_event(struct swim_out *out, const struct member *m, bool was)
{
    if (m->state == MEMBER_PRUNED)
        swim_add_event(out, SWIM_REAP, m);
    else if (was || m->state == MEMBER_LEFT)
        swim_add_event(out, m->state == MEMBER_LEFT ? SWIM_LEAVE : SWIM_FAILED, m);
}

static void
say_gone(struct swim *s, struct member *m, const struct statement *st, struct swim_out *out)
{
    bool was = is_there(m);
    if (st->incarnation < m->incarnation || m->state >= st->state)
        return;
    m->incarnation = st->incarnation;
    swim_become(s, m, st->state, st->by);
    gone_event(out, m, was);
}

/* Contradicts what others say of this server: it is here. */
static void
say_us(struct swim *s, const struct statement *st)
{
    struct member *us = s->v[0];
    bool same = st->state == MEMBER_ALIVE && st->incarnation == us->incarnation &&
                (st->about == NULL || codec_equal(&type_server_hello, st->about, us->about, 0));
    if (s->left || st->incarnation < us->incarnation || same || st->incarnation == UINT32_MAX)
        return;
    if (st->state == MEMBER_SUSPECT || st->state == MEMBER_FAILED) {
        s->figures.denied++;
        swim_health(s, 1);
    }
    us->incarnation = st->incarnation + 1;
    us->since = s->t;
    swim_news(s, us);
}

static void
swim_say(struct swim *s, const struct statement *st, bool sync, struct swim_out *out)
{
    struct member *m = swim_find(s, st->id);
    if (m == s->v[0]) {
        say_us(s, st);
        return;
    }
    if (st->about != NULL && is_foreign(s, st->about)) {
        s->figures.foreign++;
        s->figures.foreign_id = st->id;
        mem_free(s->figures.foreign_name);
        s->figures.foreign_name = mem_strdup(s, st->about->name);
        return;
    }
    if (m == NULL) {
        swim_add(s, st, out);
        return;
    }
    struct statement as = *st;
    /* a failure that another server found while we did not hear of it is looked at again here */
    if (sync && st->state == MEMBER_FAILED && is_there(m))
        as.state = MEMBER_SUSPECT;
    switch (as.state) {
    case MEMBER_ALIVE:
        say_alive(s, m, &as, out);
        break;
    case MEMBER_SUSPECT:
        if (as.incarnation < m->incarnation || !is_there(m))
            break;
        if (as.incarnation > m->incarnation) {
            m->incarnation = as.incarnation;
            m->state = MEMBER_ALIVE;
        }
        swim_accuse(s, m, as.by, out);
        probe_wake(s, m, as.by != s->v[0]->id);
        break;
    case MEMBER_FAILED:
    case MEMBER_LEFT:
    case MEMBER_PRUNED:
        say_gone(s, m, &as, out);
        break;
    }
}

/* --- rounds --- */

/* Says whether a member failed, and no other server is at its address now. */
static bool
may_come_back(const struct swim *s, const struct member *m)
{
    for (size_t i = 0; i < s->n; i++)
        if (is_there(s->v[i]) && str_eq(s->v[i]->about->serf, m->about->serf))
            return false;
    return m->state == MEMBER_FAILED;
}

static bool
may_hear(const struct swim *s, const struct member *m, uint64_t not)
{
    if (m->id == not)
        return false;
    return is_there(m) || (s->t - m->since < SWIM_LATELY_MS && may_come_back(s, m));
}

static void
spread_tick(struct swim *s, struct swim_out *out)
{
    struct member *v[SWIM_SPREAD_N];
    size_t n = swim_choose(s, may_hear, 0, v, SWIM_SPREAD_N);
    bool more = false;
    s->spread = NEVER;
    for (size_t i = 0; i < n; i++)
        swim_put(s, out, &(struct packet){.kind = PACKET_TELL, .to = v[i]->id}, v[i]->about->serf);
    for (size_t i = 0; i < s->n; i++) {
        if (n == 0)
            s->v[i]->told = 0; /* there is nobody */
        more |= s->v[i]->told > 0;
    }
    if (more)
        s->spread = s->t + SWIM_SPREAD_MS;
}

static bool
is_alive(const struct swim *s, const struct member *m, uint64_t not)
{
    (void)s;
    return m->id != not && m->state == MEMBER_ALIVE;
}

static bool
has_failed(const struct swim *s, const struct member *m, uint64_t not)
{
    return m->id != not && may_come_back(s, m);
}

/* False: there is nobody to exchange with. */
static bool
swim_exchange(struct swim *s,
              bool (*with)(const struct swim *s, const struct member *m, uint64_t not ),
              struct swim_out *out)
{
    struct member *m;
    if (s->left || swim_choose(s, with, 0, &m, 1) == 0)
        return false;
    struct swim_send x = {.to = m->id, .addr = mem_strdup(out->ctx, m->about->serf), .sync = true};
    list_add(out->ctx, out->sends, x);
    return true;
}

static void
ends_tick(struct swim *s, struct swim_out *out)
{
    for (size_t i = s->n; i > 1; i--) {
        struct member *m = s->v[i - 1];
        if (m->state == MEMBER_SUSPECT && s->t >= m->suspicion.until) {
            swim_become(s, m, MEMBER_FAILED, s->v[0]->id);
            swim_add_event(out, SWIM_FAILED, m);
        } else if (!is_there(m) && s->t - m->since >= SWIM_REAP_MS) {
            if (m->state != MEMBER_PRUNED)
                swim_add_event(out, SWIM_REAP, m);
            s->v[i - 1] = s->v[--s->n];
            talloc_reparent(s, out->ctx, m);
        }
    }
}

void
swim_tick(struct swim *s, int64_t now, struct swim_out *out)
{
    clock_on(s, now);
    ends_tick(s, out);
    probe_tick(s, out);
    if (s->t >= s->spread)
        spread_tick(s, out);
    if (s->t >= s->sync)
        s->sync = swim_exchange(s, is_alive, out) ? s->t + SWIM_SYNC_MS : NEVER;
    if (s->t >= s->again)
        s->again = swim_exchange(s, has_failed, out) ? s->t + SWIM_AGAIN_MS : NEVER;
}

void
swim_take(struct swim *s, int64_t now, const struct packet *p, const char *from,
          struct swim_out *out)
{
    clock_on(s, now);
    for (size_t i = 0; i < p->says.n; i++)
        swim_say(s, &p->says.v[i], p->kind == PACKET_SYNC, out);
    probe_take(s, p, from, out);
}

/* --- what the caller asks --- */

int
swim_new(const void *ctx, const struct swim_opts *o, struct swim **ret, struct err *e)
{
    size_t n = packet_about_size(o->self);
    if (n == 0)
        return err_set(
            e, -ERR_INVALID,
            "name, region or an address of this server is longer than %d bytes, or they are %d "
            "with all else that it tells, or hold control characters: change them",
            GOSSIP_ADDR_MAX, GOSSIP_ABOUT_MAX);
    struct swim *s = mem_new(ctx, struct swim);
    struct member *us = mem_new(s, struct member);
    s->rng = o->seed;
    s->without = o->without;
    s->spread = s->sync = s->again = NEVER;
    *us = (struct member){.id = o->self->id,
                          .about = codec_clone(us, &type_server_hello, o->self),
                          .about_size = n,
                          .state = MEMBER_ALIVE,
                          .incarnation = o->incarnation,
                          .by = o->self->id,
                          .near = true};
    list_add(s, *s, us);
    probe_begin(s);
    *ret = s;
    return 0;
}

void
swim_all(struct swim *s, const void *ctx, uint64_t to, struct swim_sync *ret)
{
    struct packet p = {.kind = PACKET_SYNC, .from = s->v[0]->id, .to = to, .addr = ""};
    size_t room = GOSSIP_PACKET_MAX - PACKET_HEAD;
    *ret = (struct swim_sync){0};
    for (size_t i = 0; i < s->n; i++) {
        struct statement st = statement_of(s->v[i]);
        size_t size = STATEMENT_HEAD + s->v[i]->about_size;
        st.about = s->v[i]->about;
        if (size > room) {
            p.more = true;
            list_add(ctx, *ret, p);
            p.says = (struct statements){0};
            room = GOSSIP_PACKET_MAX - PACKET_HEAD;
        }
        list_add(ctx, p.says, st);
        room -= size;
    }
    p.more = false;
    list_add(ctx, *ret, p);
}

void
swim_set_self(struct swim *s, int64_t now, const struct server_hello *self, struct swim_out *out)
{
    struct member *us = s->v[0];
    clock_on(s, now);
    ASSERT(self->id == us->id);
    if (codec_equal(&type_server_hello, self, us->about, 0) || packet_about_size(self) == 0)
        return;
    set_about(s, us, self, out->ctx);
    us->incarnation++;
    us->since = s->t;
    swim_news(s, us);
}

void
swim_leave(struct swim *s, int64_t now, struct swim_out *out)
{
    clock_on(s, now);
    if (s->left)
        return;
    s->left = true;
    swim_become(s, s->v[0], MEMBER_LEFT, s->v[0]->id);
    probe_void(s);
    s->spread = s->t;
    (void)out;
}

void
swim_force(struct swim *s, int64_t now, uint64_t id, bool prune, struct swim_out *out)
{
    clock_on(s, now);
    struct member *m = swim_find(s, id);
    enum member_state to = prune ? MEMBER_PRUNED : MEMBER_LEFT;
    if (m == NULL || is_there(m) || m->state >= to)
        return;
    swim_become(s, m, to, s->v[0]->id);
    gone_event(out, m, false);
}

struct swim_member *
swim_members(const struct swim *s, const void *ctx, size_t *ret_n)
{
    struct swim_member *v = mem_array(ctx, struct swim_member, s->n);
    for (size_t i = 0; i < s->n; i++)
        v[i] = (struct swim_member){s->v[i]->about, s->v[i]->state, s->v[i]->incarnation};
    *ret_n = s->n;
    return v;
}

const struct swim_figures *
swim_figures(const struct swim *s)
{
    return &s->figures;
}
