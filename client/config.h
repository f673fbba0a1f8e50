/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of the client role.
 */
#ifndef PADDOCK_CLIENT_CONFIG_H
#define PADDOCK_CLIENT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "common/err.h"

/* Copied by client_new. What is NULL takes the default in brackets. */
struct client_config {
    const char *state_dir;  /* node id, secret and the state database; made 0700; required */
    const char *hand;        /* address of the engine hand; with engines */
    struct str_list engines; /* drivers whose engines are turned on */
    const char *alloc_dir;  /* host path of the allocation directories (the warden's); required */
    const char *volumes_dir; /* host path of volumes that are made while servers run [""] */
    const char *name;       /* node name [host name] */
    const char *region;     /* [global] */
    const char *datacenter; /* [dc1] */
    const struct agent_config *plugins; /* whose plugin blocks drivers read; NULL: none */
    const struct agent_client *agent; /* the client block of the configuration [an empty one] */
    const char *http_addr; /* advertised "ip:port" of this agent's HTTP API, */
    bool http_tls;         /* which speaks TLS */
    uint16_t ports[3]; /* on which the agent listens: no check looks there; 0: none */
    bool dev;              /* loopback fingerprint */
    bool stop_tasks;       /* client_stop ends all tasks and removes their directories (-dev) */
    /* The servers that there are, "ip:port" each, as the last time (in client_new) or by now: 1:
     * they are new, 0: they were known, < 0: one is no address. NULL: nobody connects to them, none
     * are kept. */
    int (*servers)(void *arg, const struct str_list *l, struct err *e);
    void (*leave)(void *arg); /* the server that is asked has no leader: another one; or NULL */
    void *servers_arg; /* of both */
    /* Serves the API on a socket of a task's, which listens, until it is closed. NULL: nobody does.
     */
    void *(*door_open)(void *arg, int fd, const char *alloc_id, const char *task);
    void (*door_close)(void *door);
    void *door_arg;
    const char *version; /* our own version, e.g. "0.1.0" */
};

/* The end of what was asked for, on the loop; e NULL: done. */
typedef void client_done(void *arg, const struct err *e);
typedef void client_identity_done(void *arg, const struct err *e, const struct node_identity *id);

#endif
