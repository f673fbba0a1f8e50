/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks: the bridge that a client's allocations share, and the part of a single allocation.
 */
#ifndef PADDOCK_ISOLATION_NETWORK_NETWORK_H
#define PADDOCK_ISOLATION_NETWORK_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include "isolation/limits.h"

enum { NET_NAME_MAX = 16 }; /* IFNAMSIZ */
#define NET_IFACE "eth0"    /* in the namespace of an allocation */

/* The settings of the client, the same for all allocations. */
struct net_conf {
    char bridge[NET_NAME_MAX]; /* also the name of the nftables table */
    char owner[256];           /* marks the bridge as ours */
    uint32_t subnet;           /* host byte order, as all addresses here */
    uint32_t bits;             /* 8 to 29 */
};
static inline uint32_t
net_gateway(const struct net_conf *c)
{
    return c->subnet + 1;
}

/* A port of the host that leads to one of the allocation, for TCP and UDP. */
struct net_port {
    uint32_t host_ip;
    uint16_t port;
    uint16_t to;
};

/* One allocation's network; also what is written to disk. */
struct net_record {
    uint32_t magic;
    uint32_t version;
    uint64_t ns_ino; /* inode of the network namespace; 0: not made yet */
    uint32_t addr;   /* on the bridge; 0: mode none */
    uint32_t n_ports;
    struct net_port ports[NET_PORTS_MAX];
};
#define NET_RECORD_BYTES(n) (offsetof(struct net_record, ports) + (n) * sizeof(struct net_port))

#endif
