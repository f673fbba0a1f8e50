/* SPDX-License-Identifier: Apache-2.0
 *
 * The nftables table of network mode bridge: ports of the host that lead to allocations, addresses
 * of allocations behind that of the host, and who may reach whom. A fixed handful of rules;
 * allocations are elements of two sets, so neither their number nor that of their ports costs a
 * packet anything, and starting or stopping one changes elements only.
 *
 *     table ip paddock_BRIDGE
 *       map ports    { address . protocol . port : address . port }
 *       set members  { address . hardware address }
 *       prerouting          (raw) from the bridge: nothing to 127/8, nothing from an address that
 *                           is not the sender's
 *       prerouting, output  a mapped port of an address of this host: dnat
 *       postrouting         out of the bridge's network, or back into it by a mapped port:
 *                           masquerade
 *       forward             to the bridge: answers, and what came by a mapped port; nothing else
 *
 * In the network worker only. Everything that is changed is changed by one transaction.
 */
#ifndef PADDOCK_ISOLATION_NETWORK_NETMAP_H
#define PADDOCK_ISOLATION_NETWORK_NETMAP_H

#include "isolation/network/network.h"

/* The whole table anew, with these networks in it. */
int netmap_reset(const struct net_conf *c, const struct net_record *const *v, size_t n,
                 const char **what);
int netmap_add(const struct net_conf *c, const struct net_record *r, const char **what);
/* Remove one allocation's entries, or all; one that is not there is no error. */
int netmap_remove(const struct net_conf *c, const struct net_record *r, const char **what);
int netmap_clear(const struct net_conf *c, const char **what);

#endif
