/* SPDX-License-Identifier: Apache-2.0
 *
 * Dynamic metadata of the node: set and unset at run time over what the configuration says, kept in
 * the file "meta" of the state directory, registered with the node. A change counts when it is on
 * the disk.
 */
#ifndef PADDOCK_CLIENT_NODE_META_H
#define PADDOCK_CLIENT_NODE_META_H

#include "client/ground.h"

struct meta;

/* Reads the file; NULL: it cannot be read. `changed` comes when something else is to be registered.
 */
struct meta *meta_new(struct ground *g, void (*changed)(void *arg), void *arg, struct err *e);
/* Fills in the metadata of the configuration and those set since, as it is registered. */
void meta_fill(const void *ctx, const struct meta *m, struct str_map *ret);
/* Do what client_meta() and client_meta_apply() say. */
struct node_meta_response *meta_response(const struct meta *m, const void *ctx);
void meta_apply(struct meta *m, const struct value *change, client_done *done, void *arg);

#endif
