/* SPDX-License-Identifier: Apache-2.0
 *
 * The roles of an agent: server, client, HTTP API, and the way between them. Started and stopped as
 * a whole.
 */
#ifndef PADDOCK_AGENT_ROLES_H
#define PADDOCK_AGENT_ROLES_H

#include "agent/api/api.h"
#include "common/err.h"

struct roles_config {
    struct loop *loop;
    const struct agent_config *cfg;
    const struct policy *policy; /* directories and the warden's socket */
    reload_ask_fn *reload; /* for the HTTP API */
    void (*reload_forget)(void *arg, void *done_arg);
    void *reload_arg;
    struct tls *tls; /* outlives the roles; NULL: all is plain */
};

struct tls;
struct warden_client;

struct roles {
    struct roles_config rc;
    struct api api;
    struct server *server;
    struct rpc_server *rpc;
    struct rpc_server *join; /* of several servers: by which they become a cluster */
    struct rpc_client *servers;  /* of the client role: a flood of API requests does not fill it */
    struct rpc_client *api_servers; /* of the HTTP API */
    struct warden_client *warden;
    struct client *client;
    struct http_server *http;
    struct http_server *passed_on; /* of what servers pass on to this node */
    struct http_server *doors;     /* of the sockets of tasks */
    const struct filter *rpc_filter, *http_filter; /* of connections of each; NULL: plain */
    bool rpc_plain; /* connections without it are taken as well */
    const char *region, *datacenter, *name, *node_id;
    const char *http_bind, *rpc_bind, *http_advertise, *rpc_advertise,
        *serf_advertise;            /* "host:port" */
    struct drain_wait *drain_waits; /* who waits for the end of a drain */
    bool draining, drained;
    bool stopping;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

/* NULL with an error; what was started is stopped again (the loop is run for that). Owned by ctx.
 */
struct roles *roles_start(const void *ctx, const struct roles_config *rc, struct err *e);
/* Does what precedes the stop of an agent that leaves for long (a signal with leave_on_*, or the
 * machine goes down): drains this node if client.drain_on_shutdown says so, and waits until its
 * allocations are gone or the deadline is over. `done` comes once, on the loop, never from inside:
 * at once where there is nothing to do (not configured, no client role, -dev, drained and idle
 * since), and when a drain that an earlier call began ends. It does not come any more after
 * roles_stop. What went wrong is logged: the way on is the same. */
void roles_drain(struct roles *r, void (*done)(void *arg), void *arg);
/* The longest it may take, for inhibitors and stop timeouts; 0: there is nothing to drain,
 * INT64_MAX: as long as it takes. */
int64_t roles_drain_ns(const struct roles *r);

/* A server of a cluster takes itself out of it, by another leader if it leads; within 5 s. `done`
 * comes once, on the loop, never from inside: at once where there is no cluster. What went wrong is
 * logged. */
void roles_leave(struct roles *r, void (*done)(void *arg), void *arg);

/* HTTP first, then the client, then the server; `stopped` comes on the loop when all is down. */
void roles_stop(struct roles *r, void (*stopped)(void *arg), void *arg);

#endif
