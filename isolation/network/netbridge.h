/* SPDX-License-Identifier: Apache-2.0
 *
 * The bridge of network mode bridge, and what ties an allocation to it: a veth pair, an address, a
 * default route. In the network worker only; every call may wait for the kernel.
 *
 * Each port of the bridge is isolated (frames go to and from the host alone; see set_port()), knows
 * one hardware address, learns none, is flooded with nothing, and takes frames of that address
 * only; the hardware address follows from the allocation's own, so that the neighbours can be told
 * beforehand. An allocation's address has no network around it: everything goes through the host,
 * where netmap.h decides.
 */
#ifndef PADDOCK_ISOLATION_NETWORK_NETBRIDGE_H
#define PADDOCK_ISOLATION_NETWORK_NETBRIDGE_H

#include <stdbool.h>

#include "isolation/network/network.h"

/* "pd" and the address in hex: the host's end of the pair. */
void netbridge_port(char out[NET_NAME_MAX], uint32_t addr);
void netbridge_mac(uint8_t out[6], uint32_t addr);

/* Makes the bridge if it is not there; its index in *ret. -EEXIST: it is somebody else's. */
int netbridge_open(const struct net_conf *c, int *ret_index, const char **what);
bool netbridge_is_ours(const struct net_conf *c); /* it is there, and ours */
/* Ties the namespace `ns` to it; `home` is the bridge's. Nothing is left behind on failure. */
int netbridge_attach(const struct net_conf *c, int home, int ns, uint32_t addr, const char **what);
int netbridge_detach(const struct net_conf *c, uint32_t addr, const char **what);
/* Removes the ports of ours for which `keep` says false; the others are set as they should be. */
int netbridge_prune(const struct net_conf *c, bool (*keep)(uint32_t addr, void *arg), void *arg,
                    const char **what);
int netbridge_remove(const struct net_conf *c, const char **what); /* the bridge itself */

#endif
