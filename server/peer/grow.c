/* SPDX-License-Identifier: Apache-2.0
 *
 * The next change of the members: see grow.h.
 */
#include "server/peer/grow.h"

#include "common/mem.h"
#include "common/str.h"

static const struct peer *
in_conf(const struct core_status *st, uint64_t id, size_t *ret_i)
{
    for (size_t i = 0; i < st->conf.n; i++)
        if (st->conf.v[i].id == id) {
            *ret_i = i;
            return &st->conf.v[i];
        }
    return NULL;
}

/* Returns the other server that has the address; NULL: nobody's. */
static const struct peer *
grow_taken(const struct core_status *st, const struct grow_server *s)
{
    for (size_t i = 0; i < st->conf.n; i++)
        if (st->conf.v[i].id != s->id && str_eq(st->conf.v[i].addr, s->addr))
            return &st->conf.v[i];
    return NULL;
}

static bool
is_heard(const struct grow_server *v, size_t n, uint64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].id == id)
            return true;
    return false;
}

/* Without that member, or its vote, those heard are a majority of who votes. */
static bool
can_yield(const struct core_status *st, uint64_t id, const struct grow_server *v, size_t n)
{
    size_t voters = 0, heard = 0;
    for (size_t i = 0; i < st->conf.n; i++) {
        const struct peer *p = &st->conf.v[i];
        if (p->role != PEER_VOTER || p->id == id)
            continue;
        voters++;
        heard += p->id == st->leader || is_heard(v, n, p->id);
    }
    return id != st->leader && heard > voters / 2;
}

/* About a server that is heard; *ret: the member concerned. */
static enum grow
grow_of(const struct core_status *st, const struct grow_server *v, size_t n,
        const struct grow_server *s, size_t *ret)
{
    const struct peer *p = in_conf(st, s->id, ret), *other = grow_taken(st, s);
    if (p == NULL && other != NULL) {
        (void)in_conf(st, other->id, ret);
        return !is_heard(v, n, other->id) && can_yield(st, other->id, v, n) ? GROW_REPLACES
                                                                            : GROW_NOTHING;
    }
    if (p == NULL)
        return st->conf.n < CONSENSUS_PEERS_MAX ? GROW_JOINS : GROW_NOTHING;
    if (!str_eq(p->addr, s->addr))
        return other != NULL ? GROW_NOTHING : GROW_MOVES;
    if (p->role == PEER_VOTER)
        return s->no_vote && can_yield(st, s->id, v, n) ? GROW_YIELDS : GROW_NOTHING;
    bool has_log = st->match[*ret] != 0 && st->last - st->match[*ret] <= GROW_NEAR;
    return has_log && !s->no_vote ? GROW_VOTES : GROW_NOTHING;
}

enum grow
grow_next(const void *ctx, const struct core_status *st, const struct grow_server *v, size_t n,
          struct peer_list *ret, const struct grow_server **who)
{
    enum grow best = GROW_NOTHING;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        enum grow what = grow_of(st, v, n, &v[i], &k);
        if (what > best) { /* who is in it already comes first */
            best = what;
            at = k;
            *who = &v[i];
        }
    }
    if (best == GROW_NOTHING)
        return best;
    struct peer *p = mem_array(ctx, struct peer, st->conf.n + 1);
    *ret = (struct peer_list){p, st->conf.n};
    for (size_t i = 0; i < st->conf.n; i++)
        p[i] = st->conf.v[i];
    if (best == GROW_JOINS)
        p[ret->n++] = (struct peer){(*who)->id, (*who)->addr, PEER_STANDBY};
    else if (best == GROW_REPLACES)
        p[at] = p[--ret->n];
    else if (best == GROW_VOTES)
        p[at].role = PEER_VOTER;
    else if (best == GROW_YIELDS)
        p[at].role = PEER_STANDBY;
    else
        p[at].addr = (*who)->addr;
    return best;
}

bool
grow_without(const void *ctx, const struct core_status *st, uint64_t id, struct peer_list *ret)
{
    struct peer *p = mem_array(ctx, struct peer, st->conf.n + 1);
    size_t voters = 0, at;
    *ret = (struct peer_list){p, 0};
    if (id == st->leader || in_conf(st, id, &at) == NULL)
        return false;
    for (size_t i = 0; i < st->conf.n; i++) {
        if (st->conf.v[i].id == id)
            continue;
        voters += st->conf.v[i].role == PEER_VOTER;
        p[ret->n++] = st->conf.v[i];
    }
    return voters > 0;
}
