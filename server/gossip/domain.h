/* SPDX-License-Identifier: Apache-2.0
 *
 * Failure domains: servers of a region and redundancy zone that fail within DOMAIN_MS of each
 * other, or while others of them are suspected, are one event, since a rack or a switch was lost,
 * and not they. Pure.
 */
#ifndef PADDOCK_SERVER_GOSSIP_DOMAIN_H
#define PADDOCK_SERVER_GOSSIP_DOMAIN_H

#include "api/api.h"

enum {
    DOMAIN_MS = 5000,
    DOMAIN_WAIT_MS = 1000,
    DOMAIN_MOST_MS = 30000 /* an event is told then */
};

struct domains;

struct domains *domains_new(const void *ctx);
/* Adds a server that failed and has a zone. False: there is no room, it is an event of its own. */
bool domains_add(struct domains *d, int64_t now, const struct server_hello *h);
/* Notes that a server is suspected: the event of its zone, if one is open, waits for the
 * verdict. */
void domains_wait(struct domains *d, int64_t now, const struct server_hello *h);
/* When the next event is whole; INT64_MAX: none is open. */
int64_t domains_due(const struct domains *d);

struct domain_event {
    const char *region, *zone;
    struct domain_servers { const struct server_hello **v; size_t n; } servers;
};
/* One that is whole; false: none. Owned by ctx. */
bool domains_take(struct domains *d, const void *ctx, int64_t now, struct domain_event *ret);

#endif
