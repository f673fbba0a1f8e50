/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways to nodes: a node is reached over the connection over which it last proved itself. Loop
 * thread.
 */
#ifndef PADDOCK_SERVER_CALL_WAYS_H
#define PADDOCK_SERVER_CALL_WAYS_H

#include "common/hash.h"
#include "net/rpc.h"

struct server;

struct way { /* of the link's memory, and gone with it */
    struct ways *ways;
    struct rpc_link *link;
    char *node_id;
    struct relay *reads; /* those that last as long as their reader likes, */
    unsigned n_reads;    /* of which there are so many */
    UT_hash_handle hh;
};

struct relay {
    struct call *call; /* NULL: answered */
    struct way *way;   /* among whose reads it is; NULL: of none */
    struct relay *prev, *next;
};

/* A server has one; it is empty when all connections have gone. */
struct ways *ways_new(const void *ctx);
/* The way to that node; NULL: it has not proved itself over a connection that is here. */
struct way *way_find(struct server *s, const char *node_id);

#endif
