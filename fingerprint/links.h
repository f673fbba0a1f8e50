/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel says of this network namespace's links, addresses, default route and neighbours,
 * by rtnetlink(7) through libnl's core: each is asked for when it is wanted, and nothing is kept
 * between two calls. Blocks for as long as the kernel takes to answer.
 */
#ifndef PADDOCK_FINGERPRINT_LINKS_H
#define PADDOCK_FINGERPRINT_LINKS_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct link {
    int index;
    char name[IF_NAMESIZE];
    char mac[32]; /* "52:54:00:12:34:56"; "": none */
    bool up, loopback;
};

struct link_address {
    int index; /* of its link */
    int family;
    int prefix;
    char text[INET6_ADDRSTRLEN];
    bool link_local; /* of IPv6 */
};

struct link_route { /* a default route */
    int index;       /* of its link; 0: there is none */
    unsigned metric;
    char gateway[INET6_ADDRSTRLEN]; /* "": the link itself */
};

struct link_neighbour {
    int index;
    char text[INET6_ADDRSTRLEN], mac[32];
    const char *state; /* "reachable" */
};

struct links {
    struct link *links;
    size_t n_links;
    struct link_address *addresses;
    size_t n_addresses;
    struct link_route route; /* of IPv4, the best one */
    struct link_neighbour *neighbours;
    size_t n_neighbours;
};

enum { LINKS_LINKS = 1, LINKS_ADDRESSES = 2, LINKS_ROUTE = 4, LINKS_NEIGHBOURS = 8 };

/* Reads those parts that `what` names; the arrays are owned by ctx, and bounded
 * (FINGERPRINT_LINKS_MAX each). 0, or *e. */
int links_read(const void *ctx, unsigned what, struct links *ret, struct err *e);
const struct link *links_by_name(const struct links *l, const char *name);
const struct link *links_by_index(const struct links *l, int index); /* NULL: there is none */

#endif
