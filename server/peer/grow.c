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

/* The address is another server's. */
static bool
taken(const struct core_status *st, const struct grow_server *s)
{
    for (size_t i = 0; i < st->conf.n; i++)
        if (st->conf.v[i].id != s->id && str_eq(st->conf.v[i].addr, s->addr))
            return true;
    return false;
}

/* Without its vote, those that are heard are a majority of who votes. */
static bool
can_yield(const struct core_status *st, uint64_t id, const struct grow_server *v, size_t n)
{
    size_t voters = 0, heard = 0;
    for (size_t i = 0; i < st->conf.n; i++) {
        const struct peer *p = &st->conf.v[i];
        if (p->role != PEER_VOTER || p->id == id)
            continue;
        voters++;
        bool there = p->id == st->leader;
        for (size_t k = 0; k < n && !there; k++)
            there = v[k].id == p->id;
        heard += there;
    }
    return id != st->leader && heard > voters / 2;
}

enum grow
grow_next(const void *ctx, const struct core_status *st, const struct grow_server *v, size_t n,
          struct peer_list *ret, const struct grow_server **who)
{
    enum grow best = GROW_NOTHING;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        const struct peer *p = in_conf(st, v[i].id, &k);
        enum grow what = GROW_NOTHING;
        if (p == NULL)
            what = st->conf.n < CONSENSUS_PEERS_MAX && !taken(st, &v[i]) ? GROW_JOINS : GROW_NOTHING;
        else if (!str_eq(p->addr, v[i].addr))
            what = taken(st, &v[i]) ? GROW_NOTHING : GROW_MOVES;
        else if (p->role == PEER_VOTER && v[i].no_vote)
            what = can_yield(st, v[i].id, v, n) ? GROW_YIELDS : GROW_NOTHING;
        else if (p->role != PEER_VOTER && !v[i].no_vote && st->match[k] != 0 &&
                 st->last - st->match[k] <= GROW_NEAR)
            what = GROW_VOTES;
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
