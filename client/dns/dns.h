/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers questions of DNS for services (zone.h) over UDP and TCP, where the configuration says
 * `dns { enabled = true }` in its client block. It resolves nothing else.
 */
#ifndef PADDOCK_CLIENT_DNS_DNS_H
#define PADDOCK_CLIENT_DNS_DNS_H

#include "client/ground.h"

#define DNS_ADDRESS "127.0.0.1:4653"

struct dns;

/* NULL: it is off, or with e->code it cannot listen. Owned by the ground. */
struct dns *dns_start(struct ground *g, struct err *e);
void dns_stop(struct dns *d); /* NULL is fine */

#endif
