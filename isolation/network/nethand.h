/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden's network hand: a child of the warden, without a program of its own, that does what
 * may wait for locks of the kernel's network code: it makes network namespaces (some ahead of
 * time), puts allocations on the bridge and takes them off. It serves one request after the other
 * and ends with the warden's end of the socket. Both sides are one program, so structs cross as
 * they are.
 */
#ifndef PADDOCK_ISOLATION_NETWORK_NETHAND_H
#define PADDOCK_ISOLATION_NETWORK_NETHAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "isolation/limits.h"

enum { NET_NAME_MAX = 16 }; /* IFNAMSIZ */
#define NET_IFACE "eth0"    /* in the namespace of an allocation */

/* Of the client: the same for all allocations. */
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

enum hand_op {
    HAND_SPARE = 1, /* a namespace for later */
    HAND_MAKE,      /* one for `net`: with the fd that came along, or a new one */
    HAND_REMOVE, /* what HAND_MAKE made but the namespace, which goes with its last process and fd
                  */
    HAND_RESET,  /* the bridge and all maps anew, from the records in the memfd that came along */
    HAND_CLEAR,  /* nothing of ours stays */
};

struct hand_request {
    uint32_t op;
    uint32_t seq;
    struct net_record net;
};

/* With an fd: the namespace, of HAND_SPARE and HAND_MAKE. */
struct hand_answer {
    uint32_t op;
    uint32_t seq;
    int32_t code;   /* 0 or -errno */
    char what[124]; /* the step that failed */
};

/* In the child: serves `socket` until its end. `lock` (a file) is held meanwhile: the hand of a
 * warden that was killed finishes what it does before another begins. */
_Noreturn void nethand_run(const struct net_conf *conf, int socket, int lock);

/* Tries everything in a namespace of its own, which is then gone. 0, or why bridges cannot work. */
int nethand_probe(const struct net_conf *conf, struct hand_answer *ret);

#endif
