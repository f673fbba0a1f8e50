/* SPDX-License-Identifier: Apache-2.0
 *
 * The places that artifacts may come from, by the operator's policy: schemes and hosts of each URL
 * that is asked for, and each address that is connected to. None is a metadata service's, or
 * another link-local one, whatever name or redirect leads there. With a proxy of the operator's
 * only that is connected to, and addresses are judged where a URL has one.
 */
#ifndef PADDOCK_FETCH_REACH_H
#define PADDOCK_FETCH_REACH_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "api/api.h"
#include "common/err.h"

enum { REACH_CONNECT_MS = 30000, REACH_HOST_MAX = 255 };

struct reach_name { /* an address in digits */
    char text[INET6_ADDRSTRLEN];
};

struct reach_proxy {
    char host[REACH_HOST_MAX + 1], port[8];
    const char *user; /* "user:password", owned by ctx; NULL: none */
};

/* `p` is NULL below where there is no policy. A scheme may be a kind, too: "git". */
int reach_scheme(const struct artifact_policy *p, const char *scheme, struct err *e);
int reach_host(const struct artifact_policy *p, const char *host, struct err *e);
/* Judges the address, and *name is its text. -ERR_POLICY. */
int reach_address(const struct artifact_policy *p, const struct sockaddr *sa,
                  struct reach_name *name, struct err *e);
/* Finds the first address of the host that may be reached. -ERR_POLICY: there are others only. */
int reach_lookup(const struct artifact_policy *p, const char *host, const char *port,
                 struct reach_name *ret, struct err *e);
/* Connects to the host. The fd, which does not block; -ERR_POLICY as above. */
int reach_connect(const struct artifact_policy *p, const char *host, const char *port,
                  struct err *e);

/* Takes the policy's proxy apart. False: there is none. */
bool reach_proxy(const void *ctx, const struct artifact_policy *p, struct reach_proxy *ret);
/* Connects to that. */
int reach_connect_proxy(const struct reach_proxy *x, struct err *e);

#endif
