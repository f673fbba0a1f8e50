/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to the kernel by netlink, one at a time, each with its acknowledgement. Messages are put
 * together with libmnl in a buffer of the caller's; answers are bounded, must come from the kernel
 * and must carry the request's number. Everything returns 0 or -errno.
 */
#ifndef PADDOCK_ISOLATION_NETWORK_NETLINK_H
#define PADDOCK_ISOLATION_NETWORK_NETLINK_H

#include <libmnl/libmnl.h>
#include <stdint.h>

enum { NETLINK_BUFFER = 8192 };

struct netlink {
    struct mnl_socket *s;
    uint32_t seq;
};

/* Opens a socket in the network namespace that the process is in now. `bus`: NETLINK_ROUTE,
 * NETLINK_NETFILTER. */
int netlink_open(struct netlink *n, int bus);
void netlink_close(struct netlink *n);
/* The start of a request in `buf`, with `extra` zeroed bytes of a fixed header behind it. */
struct nlmsghdr *netlink_begin(char *buf, uint16_t type, uint16_t flags, size_t extra,
                               void **ret_extra);
/* Sends, and waits for the acknowledgement. */
int netlink_ack(struct netlink *n, struct nlmsghdr *h);
/* Sends a dump or get request; `fn` sees each message, and may end with -errno. */
int netlink_each(struct netlink *n, struct nlmsghdr *h, int (*fn)(const struct nlmsghdr *, void *),
                 void *arg);
/* Sends a batch of `bytes` whose last message that asks for an acknowledgement is number `last`,
 * all numbers being >= `first`: the first error, or 0. */
int netlink_batch(struct netlink *n, const void *p, size_t bytes, uint32_t first, uint32_t last);

#endif
