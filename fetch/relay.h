/* SPDX-License-Identifier: Apache-2.0
 *
 * The way out for programs of the host that fetch (git, hg): a proxy on loopback, which asks for a
 * word that they alone are told. So redirects, submodules and what a name resolves to later are
 * held to reach.h as well, and bytes and silences are counted. A thread for each
 * connection; it lives as long as the process.
 */
#ifndef PADDOCK_FETCH_RELAY_H
#define PADDOCK_FETCH_RELAY_H

#include <stdint.h>

#include "api/api.h"
#include "common/err.h"

struct relay;

/* Takes no more than `bytes_max` from all servers together, and gives a connection up that is
 * silent for `idle_ms`. */
struct relay *relay_start(const void *ctx, const struct artifact_policy *p, int64_t bytes_max,
                          int64_t idle_ms, struct err *e);
/* "http://paddock:WORD@127.0.0.1:PORT" */
const char *relay_url(const struct relay *r);
int64_t relay_bytes(struct relay *r);
/* Returns the first thing that it refused or gave up, which is why a program failed: its code in
 * `e`, 0: nothing. */
int relay_explain(struct relay *r, struct err *e);

#endif
