/* SPDX-License-Identifier: Apache-2.0
 *
 * How several servers become one cluster, and how they know each other's names. Servers that are to
 * be joined, and those they have heard, are asked for their hello. When exactly `expect` new
 * servers, of one region and with different names, have heard each other, the one with the lowest
 * id founds: it asks each for its consent, which is made durable ("raft/founder") before the
 * answer, and is given to a single founder. With all consents it alone writes the first entry: the
 * servers, as members of a cluster with an id. The others get that from it. So there cannot be two
 * clusters, whatever fails meanwhile; a founder lost for good between the consents and that entry
 * leaves servers that wait: they say so, and an operator removes the file.
 *
 * A server that expects EXPECT_NONE founds none, and waits for one to join.
 * A server that is of a cluster founds none and joins none; who its other servers are, and whether
 * they are there, it hears by gossip (found_hears). Main loop thread.
 */
#ifndef PADDOCK_SERVER_PEER_FOUND_H
#define PADDOCK_SERVER_PEER_FOUND_H

#include "api/api.h"
#include "common/err.h"
#include "net/filter.h"
#include "server/core/core.h"

struct found;

struct found_opts {
    struct dialer dialer; /* of other servers */
    const struct env *env;
    struct core *core;
    const char *dir;       /* for the file "founder": that of the log */
    struct server_hello self; /* without cluster and seen; Expect: as configured */
    const char *known;     /* the cluster that the log names; NULL: none. For found_new() */
    struct str_list join;  /* "host:port" or names of servers */
    /* Says whether a server is a member no more. */
    bool (*is_gone)(void *arg, uint64_t id, struct server_gone *ret);
    /* The cluster has this id from now on; the core is to be started if it is not. */
    void (*ready)(void *arg, const char *cluster);
    /* Tells that this server's words on itself may be others by now. */
    void (*news)(void *arg);
    void *arg;
};

/* Borrows what `o` refers to. Reads the file; -ERR_CORRUPT. */
int found_new(const struct found_opts *o, struct found **ret, struct err *e);
/* Begins to ask; ready() comes in it if the cluster is known. */
void found_start(struct found *f);
/* Makes the words of this server on itself; owned by ctx. `from`: who asks, NULL: nobody. */
struct server_hello *found_hello(struct found *f, const void *ctx, const struct server_hello *from);
/* Durable when it returns 0. -ERR_CONFLICT: given to another, or there is a cluster. */
int found_consent(struct found *f, const struct server_consent_request *r, struct err *e);
/* By gossip: a server of this region says this of itself; or, `alive` false, is not there. */
void found_hears(struct found *f, const struct server_hello *h, bool alive);
/* When that server last answered; 0: never. */
int64_t found_heard_ms(const struct found *f, uint64_t id);
/* Asks there too from now on. How many of the addresses can be asked. */
size_t found_join(struct found *f, const struct str_list *addrs, struct err *e);
/* Asks that server now. */
void found_ask(struct found *f, uint64_t id);
/* This server says that it leaves. */
void found_leaves(struct found *f);
/* NULL is fine. */
void found_free(struct found *f);

#endif
