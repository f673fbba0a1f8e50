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

/* Copied by client_new. NULL strings and zeros take the default in brackets, else that of
 * api/schema/config.schema. */
struct client_config {
    const char *state_dir;  /* node id, secret and the state database; made 0700; required */
    const char *hand;        /* address of the engine hand; with engines */
    struct str_list engines; /* drivers whose engines are turned on */
    const char *alloc_dir;  /* host path of the allocation directories (the warden's); required */
    const char *name;       /* node name [host name] */
    const char *region;     /* [global] */
    const char *datacenter; /* [dc1] */
    const char *node_class;
    const char *node_pool; /* [default] */
    const char *http_addr; /* advertised "ip:port" of this agent's HTTP API */
    struct str_map meta;
    struct str_map options;        /* client.options of the agent configuration */
    const char *network_interface; /* [interface of the default route; lo with `dev`] */
    int64_t network_speed;         /* Mbit/s [detected or 1000] */
    int64_t cpu_total_compute;     /* MHz [detected] */
    int64_t memory_total_mb;       /* [detected] */
    int64_t disk_total_mb;         /* [detected] */
    int64_t min_dynamic_port;
    int64_t max_dynamic_port;
    struct node_reserved_resources *reserved;
    int64_t max_kill_timeout_ns;
    int64_t gc_max_allocs;          /* beyond so many the oldest that ended goes */
    int64_t gc_interval_ns;         /* how soon after an end to look at that and the disk */
    int64_t gc_parallel_destroys;
    double gc_disk_usage_threshold; /* percent of the file system of alloc_dir */
    double gc_inode_usage_threshold;
    int64_t node_max_allocs;         /* 0: unlimited */
    bool dev;                        /* loopback fingerprint */
    bool stop_tasks; /* client_stop ends all tasks and removes their directories (-dev) */
    bool default_ineligible;
    /* The servers that there are, "ip:port" each, as the last time (in client_new) or by now: 1:
     * they are new, 0: they were known, < 0: one is no address. NULL: nobody connects to them, none
     * are kept. */
    int (*servers)(void *arg, const struct str_list *l, struct err *e);
    void (*leave)(void *arg); /* the server that is asked has no leader: another one; or NULL */
    void *servers_arg; /* of both */
    const char *version; /* our own version, e.g. "0.1.0" */
};

/* The end of what was asked for, on the loop; e NULL: done. */
typedef void client_done(void *arg, const struct err *e);

#endif
