/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether another server may lead by now. A leader that stood still (stopped, suspended, swapped
 * out) learns from others when its lead is over; what it is asked before must not be answered as by
 * a leader. So an append bears the time at which it left, by its sender's clock, and each answer
 * brings back the newest time heard in that term. What a majority has answered, the leader's own
 * word included, left at a time at which that majority was in no later term: a leader of one was
 * elected after it. Answers that lay in a socket meanwhile bear old times.
 */
#include <stdlib.h>

#include "server/core/core_int.h"

static void
lease_begin(struct lease *l, uint64_t term)
{
    if (term > l->term)
        *l = (struct lease){.term = term};
}

void
lease_stamp(struct core *c, struct peer_msg *m)
{
    struct lease *l = &c->raft.lease;

    if (m->type == MSG_APPEND)
        m->stamp = (uint64_t)env_boot_ms(c->env);
    else if (m->type == MSG_APPEND_RESULT && m->term == l->term && m->peer == l->leader)
        m->stamp = l->heard;
}

void
lease_take(struct core *c, const struct peer_msg *m)
{
    struct lease *l = &c->raft.lease;

    if (m->type == MSG_APPEND && m->term >= l->term && m->term >= c->raft.term) {
        lease_begin(l, m->term);
        if (l->leader != m->peer)
            l->heard = 0;
        l->leader = m->peer;
        if (m->stamp > l->heard)
            l->heard = m->stamp;
    }
    if (m->type != MSG_APPEND_RESULT || c->raft.role != CONSENSUS_LEADER ||
        m->term != c->raft.term || m->stamp > (uint64_t)env_boot_ms(c->env))
        return;
    lease_begin(l, m->term);
    for (size_t i = 0; i < CONSENSUS_PEERS_MAX; i++) {
        if (l->acked[i].id != m->peer && l->acked[i].id != 0)
            continue;
        l->acked[i].id = m->peer;
        if (m->stamp > l->acked[i].stamp)
            l->acked[i].stamp = m->stamp;
        return;
    }
}

static int64_t
acked_by(const struct core *c, uint64_t id)
{
    const struct lease *l = &c->raft.lease;

    if (id == c->raft.id)
        return INT64_MAX;
    for (size_t i = 0; i < CONSENSUS_PEERS_MAX && l->term == c->raft.term; i++)
        if (l->acked[i].id == id)
            return (int64_t)l->acked[i].stamp;
    return 0;
}

static int
later_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x > y ? -1 : x < y;
}

void
lease_publish(struct core *c, const struct peer_list *conf)
{
    int64_t at[CONSENSUS_PEERS_MAX] = {0};
    size_t n = 0;

    for (size_t i = 0; i < conf->n && c->raft.role == CONSENSUS_LEADER; i++)
        if (conf->v[i].role == PEER_VOTER)
            at[n++] = acked_by(c, conf->v[i].id);
    qsort(at, n, sizeof(at[0]), later_first);
    atomic_store(&c->sure_ms, n > 0 ? at[n / 2] : 0);
}

bool
core_leads_surely(const struct core *c, int64_t within_ms)
{
    int64_t sure = atomic_load(&c->sure_ms);

    return sure == INT64_MAX || (sure != 0 && env_boot_ms(c->env) - sure <= within_ms);
}
