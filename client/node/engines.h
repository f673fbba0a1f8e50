/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engines of drivers say of themselves. g->engine has the last of each.
 */
#ifndef PADDOCK_CLIENT_NODE_ENGINES_H
#define PADDOCK_CLIENT_NODE_ENGINES_H

#include "client/ground.h"

struct engines;
/* `changed` comes when there is something else to register. Owned by g. */
struct engines *engines_new(struct ground *g, void (*changed)(void *arg), void *arg);
/* Recalls the engines' last words, which are believed until they speak: after the state is open,
 * before the node is built. */
void engines_recall(struct engines *n);
void engines_start(struct engines *n); /* nothing where no engine is turned on */
void engines_stop(struct engines *n);

#endif
