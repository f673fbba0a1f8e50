/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of libraft and ours: see consensus_int.h.
 */
#include "server/raft/consensus_int.h"

#include <errno.h>

#include "common/mem.h"

int
library_code(int rv)
{
    switch (rv) {
    case 0:
        return 0;
    case RAFT_NOTLEADER:
    case RAFT_LEADERSHIPLOST:
        return -ERR_NOT_LEADER;
    case RAFT_CANTCHANGE:
    case RAFT_BUSY:
        return -ERR_BUSY;
    case RAFT_NOSPACE:
        return -ENOSPC;
    case RAFT_BADID:
    case RAFT_BADROLE:
    case RAFT_INVALID:
        return -ERR_INVALID;
    case RAFT_MALFORMED:
    case RAFT_CORRUPT:
    case RAFT_SHUTDOWN: /* a committed entry conflicts with the leader's */
        return -ERR_CORRUPT;
    case RAFT_NOMEM:
        return -ENOMEM;
    default:
        return -ERR_INTERNAL;
    }
}

enum consensus_role
library_role(unsigned short state)
{
    return state == RAFT_LEADER      ? CONSENSUS_LEADER
           : state == RAFT_CANDIDATE ? CONSENSUS_CANDIDATE
                                     : CONSENSUS_FOLLOWER;
}

/* --- configurations --- */

int
library_conf(const struct peer_list *l, struct raft_configuration *ret)
{
    raft_configuration_init(ret);
    for (size_t i = 0; i < l->n; i++) {
        static const int roles[] = {
            [PEER_STANDBY] = RAFT_STANDBY, [PEER_VOTER] = RAFT_VOTER, [PEER_SPARE] = RAFT_SPARE};
        if (l->v[i].role > PEER_SPARE || l->v[i].addr == NULL ||
            raft_configuration_add(ret, l->v[i].id, l->v[i].addr, roles[l->v[i].role]) != 0) {
            raft_configuration_close(ret);
            return -ERR_INVALID;
        }
    }
    return 0;
}

void
library_conf_read(const void *ctx, const struct raft_configuration *c, struct peer_list *ret)
{
    ret->v = mem_array(ctx, struct peer, c->n);
    ret->n = c->n;
    for (unsigned i = 0; i < c->n; i++) {
        int role = c->servers[i].role;
        ret->v[i] = (struct peer){.id = c->servers[i].id,
                                  .addr = mem_strdup(ret->v, c->servers[i].address),
                                  .role = role == RAFT_VOTER     ? PEER_VOTER
                                          : role == RAFT_STANDBY ? PEER_STANDBY
                                                                 : PEER_SPARE};
    }
}
