/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks before a network of an allocation is made: free ports of the host, and whose container a
 * namespace is of.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_NET_CHECK_H
#define PADDOCK_ISOLATION_WARDEN_NET_CHECK_H

#include "isolation/network/network.h"
#include "isolation/warden/warden.h"

/* -ERR_CONFLICT: a program of the host has it; -ERR_INVALID: no such address. */
int net_check_free(const struct net_port *p, struct err *e);

/* The network namespace of the process, for the caller to close. It must see the shared directory
 * of the allocation as /alloc, which nobody but root can have given to it, and not be in the
 * host's network: -ERR_POLICY. -ERR_BUSY: it has just ended. */
int net_check_container(const struct warden *w, const char *alloc, int64_t pid, struct err *e);

#endif
