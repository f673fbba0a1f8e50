/* SPDX-License-Identifier: Apache-2.0
 *
 * The servers that the client knows, as their answers tell or an operator has said: told to whoever
 * connects to them (config.h: servers), and kept in DIR/servers, so that an agent that starts when
 * the servers of its configuration have gone finds the others.
 */
#ifndef PADDOCK_CLIENT_NODE_KNOWN_H
#define PADDOCK_CLIENT_NODE_KNOWN_H

#include "client/ground.h"

struct known;

/* Reads the file and tells what is in it; what is wrong with the file is logged, and it counts as
 * none. Owned by g. */
struct known *known_new(struct ground *g);
/* -ERR_INVALID: one is no address, nothing changed. */
int known_set(struct known *k, const struct str_list *servers, struct err *e);
/* More than one. */
bool known_others(const struct known *k);
/* "ip:port,..." as it was last set; "" before. Valid until the next loop turn. */
const char *known_text(const struct known *k);

#endif
