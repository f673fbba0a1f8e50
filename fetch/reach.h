/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses that artifacts come from: none of a metadata service or another link-local one,
 * whatever name or redirect leads there. The judged address is the one to connect to.
 */
#ifndef PADDOCK_FETCH_REACH_H
#define PADDOCK_FETCH_REACH_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "common/err.h"

enum { REACH_CONNECT_MS = 30000 };

struct reach_name { /* an address in digits */
    char text[INET6_ADDRSTRLEN];
};

bool reach_refused(const struct sockaddr *sa, struct reach_name *name);
int reach_explain(const struct reach_name *name, struct err *e);
/* Finds the first address of the host that may be reached. -ERR_POLICY: there are others only. */
int reach_lookup(const char *host, const char *port, struct reach_name *ret, struct err *e);
/* Connects to the host. The fd, which does not block; -ERR_POLICY as above. */
int reach_connect(const char *host, const char *port, struct err *e);

#endif
