/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is heard becomes a member: first one without a vote, who gets the log; then, with the log, a
 * voter, so that a server that cannot catch up never counts for a majority. A server that is not to
 * vote stays as it began; a vote that it had is taken. Pure.
 */
#ifndef PADDOCK_SERVER_PEER_GROW_H
#define PADDOCK_SERVER_PEER_GROW_H

#include "server/core/core.h"

enum { GROW_NEAR = 256 /* entries that a member may lack when it gets its vote */ };

/* A server that is heard, of this cluster, and neither leaves nor was removed. */
struct grow_server {
    uint64_t id;
    const char *addr;
    bool no_vote; /* it wants none */
};

enum grow { GROW_NOTHING, GROW_JOINS, GROW_REPLACES, GROW_YIELDS, GROW_VOTES, GROW_MOVES };

/* The next change of the configuration that the leader is to make, at most one; *ret (owned by ctx)
 * is the new configuration, *who whom the change concerns. A server may be heard at the address of
 * a member which is not heard: its data was lost. The member goes (GROW_REPLACES), and the server
 * joins. */
enum grow grow_next(const void *ctx, const struct core_status *st, const struct grow_server *v,
                    size_t n, struct peer_list *ret, const struct grow_server **who);
/* Without that server; false: it is not in it, leads, or is the last voter. */
bool grow_without(const void *ctx, const struct core_status *st, uint64_t id,
                  struct peer_list *ret);

#endif
