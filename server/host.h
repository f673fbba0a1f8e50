/* SPDX-License-Identifier: Apache-2.0
 *
 * What the modules of server/ use of the server that they are part of: configuration, environment,
 * state, writes, watches. It is below all of them; server.c, on top, puts them together and
 * implements it. Functions are called on the loop thread unless they say otherwise.
 *
 * Threads: the loop (endpoints, watches, completions); those of server/core/core.h: raft
 * (consensus) and apply (state and leader's machines); the log writer. A write travels
 *   server_propose -> raft -> log (fsync, group commit) -> raft -> apply -> done() at its home
 * and is durable and readable (server_read_begin) when done() is called without error.
 */
#ifndef PADDOCK_SERVER_HOST_H
#define PADDOCK_SERVER_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "common/err.h"
#include "net/filter.h"
#include "server/env.h"
#include "server/limits.h"
#include "server/propose.h"

struct fsm_result;
struct forwards;
struct regions;
struct rpc_client;
struct gate;
struct jwks;
struct keys;
struct leader;
struct server;
struct state_txn;
struct ways;
struct callers;
struct events;

/* The settings that a server is started with (server.h); strings are copied. */
struct server_config {
    const char *data_dir;   /* the agent's; ours is data_dir/server (made 0700) */
    const char *name;       /* "host.region" */
    const char *region;     /* NULL: "global" */
    const char *datacenter; /* NULL: "dc1" */
    const char *authoritative_region; /* makes node pools; NULL: this one */
    const char *node_id;    /* this agent's; NULL: made and kept in data_dir/server/id */
    const char *rpc_addr;   /* "ip:port" that others reach us by */
    const char *serf_addr;  /* "ip:port" that others gossip with, */
    const char *serf_bind;  /* and to listen at; NULL: no gossip */
    const char *http_addr;
    const char *version;    /* shown in members */
    unsigned expect;        /* servers that found the cluster; 0, 1: this one alone; EXPECT_NONE */
    struct str_list
        join; /* where others are asked, "host[:port]"; borrowed until server_new() returns */
    int64_t retry_join_max; /* attempts at each of `join` before the server ends; 0: no end */
    int64_t retry_join_ms;  /* longest time from one such question to the next; 0: default */
    bool dev;               /* small log segments and map */
    /* The server block of the configuration; NULL: an empty one. */
    const struct agent_server *agent;
    uint64_t state_max;      /* bytes that the state may use; 0: 16 GiB (dev: 1 GiB) */
    uint64_t snapshot_bytes; /* local snapshot after so many bytes of log; 0: 64 MiB */
    unsigned workers;        /* scheduler workers; 0: default. Of a server: as many as there are */
    bool no_workers;         /* there are none */
    /* Tells what no node would run of a valid job; any thread. NULL: nothing. */
    void (*admit)(const void *ctx, const struct job *job, struct str_list *errors);
    /* Whether the caller may see and change what is in a namespace; any thread. NULL: everybody. */
    bool (*may)(const struct rpc_envelope *env, const char *ns);
    const struct filter *filter; /* of connections to other servers; NULL: plain; borrowed */
    bool falls_back; /* of those connections: see struct dialer */
    bool acl_enabled;                  /* tokens decide who may; else everybody may everything */
    const char *acl_replication_token; /* of the authoritative region; NULL: none */
    int64_t acl_token_ttl_min, acl_token_ttl_max; /* ns, of a token that ends; 0: 1m, 24h */
    const struct agent_keyring *transit; /* what seals the file of that key; NULL: nothing does */
    const char *wrapping_key; /* file of the key that wraps the key ring, which is only read; NULL:
                                 one of data_dir, which is made */
    bool makes_keys; /* a leader makes the first root key of all, and those that follow */
    bool verify_servers; /* methods of servers, and of nodes, are for whose certificate says so */
    bool bind_node_name; /* ... and a node's certificate bears the node's name */
    const struct agent_autopilot *autopilot; /* until another one is set; NULL: defaults */
    int64_t eval_nack_ms;    /* a worker's time for an evaluation; default BROKER_NACK_MS */
};

const struct server_config *server_cfg(const struct server *s);
const struct env *server_env(const struct server *s);
/* How a server of a region is dialled ("*": of any); the name in it is owned by ctx. */
struct dialer server_dialer(const struct server *s, const void *ctx, struct loop *l,
                            const char *region);
/* Returns a connection to another server of this region ("ip:port"); NULL: `e` says why. */
struct rpc_client *server_dial(struct server *s, const void *ctx, const char *addr, struct err *e);
/* A snapshot of the state, for state_read_end(); any thread. Nobody reaches the state by another
 * way. */
struct state_txn *server_read_begin(const struct server *s, const void *ctx);
/* Every function that runs on a worker thread of the loop and reads the state goes in by this gate,
 * which server_stop() closes. The caller refs it. */
struct gate *server_gate(const struct server *s);
/* Returns the leader's machines, for the endpoints (server/leader/leader.h). */
struct leader *server_leader(const struct server *s);
/* The connections of nodes (server/call/endpoint.h). */
struct ways *server_ways(const struct server *s);
/* The key ring (server/keys/keys.h); any thread. */
struct keys *server_keys(const struct server *s);
/* Public keys of those who sign tokens of logins (server/jwt/jwks.h). */
struct jwks *server_jwks(const struct server *s);
/* Those who call, by their tokens (server/call/caller.h). */
struct callers *server_callers(const struct server *s);

/* The newest events of the log (server/events/ring.h). */
struct events *server_events(const struct server *s);

/* Explanations and simulations take a processor for a while: one at a time, whoever asks. False:
 * one is being made. Any thread. */
bool server_query_begin(struct server *s);
void server_query_end(struct server *s);

/* The cluster that this server is of, "": it is one alone. Any thread, once the core runs. */
const char *server_cluster(const struct server *s);

/* Calls that other servers answer (server/call/forward.c). */
struct forwards *server_forwards(const struct server *s);

/* Calls that other regions answer (server/call/region.c). */
struct regions *server_abroad(const struct server *s);

/* --- other servers (loop thread) --- */
/* Returns this server's words on itself, to `from`; NULL: it is alone, or stops. Owned by ctx. */
struct server_hello *server_hello(struct server *s, const void *ctx,
                                  const struct server_hello *from);
int server_consent(struct server *s, const struct server_consent_request *r, struct err *e);
struct server_member {
    const struct server_hello *hello;
    bool alive;
    bool left; /* it is a member no more, and not heard */
    int64_t heard_ms; /* last; of this server 0 */
};
/* With this one; owned by ctx. */
struct server_member *server_members(struct server *s, const void *ctx, size_t *ret_n);
struct core_status;
/* Asks a leader to hand over to that server. It may not come to that. */
void server_transfer(struct server *s, uint64_t to);
/* Asks a leader to take that server out. -ERR_CONFLICT: it leads, or is the last that votes. It may
 * not come to that. */
int server_remove(struct server *s, uint64_t id, struct err *e);
/* Other servers are asked at these addresses from now on; how many can be. */
size_t server_join(struct server *s, const struct str_list *addrs, struct err *e);
/* Asks server `id` whether it is there. */
void server_ask(struct server *s, uint64_t id);
/* How many of them have answered; `e`: why one has not. */
size_t server_joined(struct server *s, const struct str_list *addrs, struct err *e);
/* Another server tells what it knows of servers, and is told. */
int server_sync(struct server *s, const void *ctx, const struct server_sync *req,
                struct server_sync *ret, struct err *e);
/* Does what an operator asks of the key rings of gossip (server/gossip/gossip.h). */
typedef void server_gossip_keys_fn(void *arg, const struct err *e,
                                   const struct gossip_keys_response *resp);
void server_gossip_keys(struct server *s, const char *op, const char *key,
                        server_gossip_keys_fn *done, void *arg);
/* A failed server counts as one that left, in all regions; `prune`: it is not shown any more.
 */
void server_forget(struct server *s, uint64_t id, bool prune);
/* The RPC addresses of the servers of that region that are there. Owned by ctx. */
struct str_list server_region(struct server *s, const void *ctx, const char *region);
/* The connection to the servers of another region, for a call of this server's own: its envelope
 * names the region, and hops 1. NULL: there is no path. Not borrowed beyond the turn. */
struct rpc_client *server_region_client(struct server *s, const char *region, struct err *e);
/* All regions of which servers are known, sorted. */
struct str_list server_regions(struct server *s, const void *ctx);
void server_raft_status(struct server *s, const void *ctx, struct core_status *ret);

/* Returns what autopilot keeps to, owned by ctx: what was set, or this server's configuration. Any
 * thread. */
struct autopilot_configuration *server_autopilot(const struct server *s, const void *ctx,
                                                 struct state_txn *t);
/* Returns the health of the cluster's servers, as a leader sees it; owned by ctx. */
struct operator_health_reply *server_health(struct server *s, const void *ctx);

/* The RPC addresses of those that vote and were not found dead, for clients. Valid in this turn. */
const struct str_list *server_addrs(struct server *s);

/* --- leadership (any thread) --- */
/* Returns the age of the state here: 0 where this server leads; INT64_MAX: no leader was heard
 * yet. */
int64_t server_last_contact_ms(const struct server *s);
bool server_is_leader(const struct server *s);
/* No other server has led for as long as a new leader waits before it misses a node, nor for
 * SURE_MS: what is answered without an entry is answered by the leader. False: not known
 * (core/lease.c). */
bool server_leads_surely(const struct server *s);
/* The last entry that the state holds. */
uint64_t server_applied(struct server *s);
/* Backups: see core_backup(), core_backup_read(), core_backup_drop(). */
struct core_backup;
int server_backup(struct server *s, struct state_txn *t, struct core_backup *ret, struct err *e);
int server_backup_read(struct server *s, uint64_t index, uint64_t offset, void *to, size_t n,
                       struct err *e);
void server_backup_drop(struct server *s, uint64_t index);
/* Returns how large a backup may be to be restored here. */
uint64_t server_restore_max(const struct server *s);
/* The leader's RPC address into `out`; false when unknown. */
bool server_leader_addr(const struct server *s, char *out, size_t size);
/* The same, and in which term it leads. Loop thread. */
bool server_leader_at(struct server *s, char *out, size_t size, uint64_t *ret_term);

/* The counts of what waits here, for metrics; 0 where this server does not lead. */
struct server_figures {
    size_t evals_ready, evals_unacked, evals_pending, evals_waiting; /* of the broker */
    size_t evals_blocked, plans, heartbeats;
    int64_t raft_turn_ns, apply_turn_ns; /* the longest so far of these threads; leading or not */
    /* the counts of Raft, since the start; leading or not */
    uint64_t writes;      /* proposed here */
    uint64_t entered[3]; /* how often it became follower, candidate, leader (enum consensus_role) */
    struct server_times { /* ns; n 0: none */
        uint64_t n;
        int64_t sum, min, max;
    } commit,      /* a write, from here to its answer; of some */
        establish; /* from an election that was won until writes were taken */
};

/* --- writes --- */
/* Any thread. The intent is encoded before it returns and stamped with the wall clock where
 * intent->time is 0. done() comes exactly once, at its home, never from inside. When the server
 * stops meanwhile, done() comes with -ERR_CANCELED; at HOME_APPLY perhaps after the end of the
 * apply thread, on the thread that ended it. */
void server_propose(struct server *s, struct intent *intent, enum home home, propose_fn *done,
                    void *arg);

/* --- blocking queries --- */
/* Parks until what `on` names changes. Spurious wake-ups happen: run the query again and park
 * again. fn() comes exactly once, on the loop, never from inside; the handle is then gone. NULL
 * when SERVER_WATCHES_MAX are parked (answer -ERR_BUSY). Loop thread. */
/* Returns the index of the log's last change of rights that a snapshot from now on has. */
uint64_t server_rights_index(const struct server *s);
struct server_watch *server_watch(struct server *s, const struct watch_on *on, wake_fn *fn,
                                  void *arg);

/* --- what runs on the apply thread --- */
/* Any thread: runs fn(arg) on the apply thread, between two batches, behind what was posted before.
 * After server_stop began: not run any more, `arg` stays with its owner. Returns false then. */
bool server_post_apply(struct server *s, void (*fn)(void *arg), void *arg);

#endif
