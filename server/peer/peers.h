/* SPDX-License-Identifier: Apache-2.0
 *
 * The other servers: a connection to each, over which this server speaks, and one from each, over
 * which it is spoken to (server/raft/wire.h); both on a loop thread of their own, so that what the
 * main loop is busy with delays no heartbeat.
 *
 * A connection is made when there is something to say, and again after 50 to 500 ms, at once after
 * one that worked. Few messages to a server out of reach are kept, and none beyond PEER_QUEUE_BYTES
 * to a slow one: consensus says again what was lost. A host that refuses the connection has no such
 * process any more, and the core is told.
 */
#ifndef PADDOCK_SERVER_PEER_PEERS_H
#define PADDOCK_SERVER_PEER_PEERS_H

#include "common/err.h"
#include "net/filter.h"
#include "server/core/core.h"

struct peers;

struct peers_opts {
    uint64_t id;       /* ours, */
    const char *addr;  /* and the address by which others know us */
    struct core *core; /* outlives the peers */
    const struct filter *filter; /* of the connections; NULL: plain; borrowed */
    bool falls_back;             /* see struct dialer */
    const char *name;            /* who other servers are to it; NULL: whoever is there */
};

/* NULL with an error. Strings are copied. */
struct peers *peers_start(const struct peers_opts *o, struct err *e);
/* Any thread. The cluster that this server is of; "": none yet, and every server is refused. */
void peers_set_cluster(struct peers *p, const char *cluster);
/* core_net.send; `arg` is the struct peers. */
bool peers_send(void *arg, uint64_t to, const char *addr, struct buf *body);
/* rpc_take_fn; `arg` is the struct peers. Main loop. */
void peers_take(void *arg, int fd, bool filtered, const uint8_t *p, size_t n);
/* Closes all and ends the thread; the core is stopped before. Blocks for moments. NULL is fine. */
void peers_stop(struct peers *p);

#endif
