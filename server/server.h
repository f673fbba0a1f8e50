/* SPDX-License-Identifier: Apache-2.0
 *
 * A server: Raft, state, and what a leader runs, put together. For the agent, which starts and
 * stops it; what its own modules use is in host.h. Loop thread.
 */
#ifndef PADDOCK_SERVER_SERVER_H
#define PADDOCK_SERVER_SERVER_H

#include "net/loop.h"
#include "net/rpc.h"
#include "server/host.h"

/* Opens log and state, replays; nothing runs yet. Slow for a big log (seconds). */
int server_new(struct loop *loop, const struct server_config *cfg, struct server **ret,
               struct err *e);
/* Starts the threads; a single server is leader soon after. */
int server_start(struct server *s, struct err *e);
/* The agent is about to end: nothing is scheduled any more, so that its tasks, which end first, are
 * not placed again. All else goes on until server_stop(). */
void server_retire(struct server *s);
/* Stops leading, fails what is pending with -ERR_CANCELED, ends threads; done() on the loop, after
 * which `s` is gone. */
void server_stop(struct server *s, void (*done)(void *arg), void *arg);

/* Handlers of server/rpc/; their `arg` is the struct server *. */
const struct rpc_service *server_services(struct server *s, size_t *ret_n);

/* The two of them by which servers become a cluster, for the address at which they are asked. */
const struct rpc_service *server_join_services(struct server *s, size_t *ret_n);
/* rpc_take_fn, of WIRE_PROTOCOL_BYTE ('R'); `arg` is the struct server. */
void server_peer_take(void *arg, int fd, bool filtered, const uint8_t *p, size_t n);
enum { SERVER_PEER_BYTE = 'R' };

/* For agent-info. */
struct server_info {
    const char *leader_addr; /* owned by ctx; "": none is known */
    unsigned expect, role;   /* 0 follower, 1 candidate, 2 leader */
    uint64_t peers;          /* servers of the cluster */
    uint64_t term, last, commit, members, failed, left, regions;
    int64_t last_contact_ms; /* 0: this server leads; INT64_MAX: never */
};
void server_info(struct server *s, const void *ctx, struct server_info *ret);

/* For metrics. */
void server_figures(struct server *s, struct server_figures *ret);

/* The counts of gossip, since the start; all 0 where there is none. */
struct server_gossip_figures {
    unsigned health; /* 0: well; more: it trusts itself less */
    bool encrypted;
    uint64_t stalls, denied;          /* how often it stood still; was suspected, and denied that */
    uint64_t sent, received, refused; /* packets */
    uint64_t domains; /* failures of servers, those that went together as one */
};
void server_gossip_figures(struct server *s, struct server_gossip_figures *ret);

/* Before server_stop() of one that leaves its cluster: from now on it says so to others. The id by
 * which it is then to be taken out (Operator.RemovePeer); 0: there is no cluster to leave. */
uint64_t server_leaves(struct server *s);
/* If it leads: another one is to, soon. False: it does not lead. */
bool server_hand_over(struct server *s);

#endif
