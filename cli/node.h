/* SPDX-License-Identifier: Apache-2.0
 *
 * What the node commands share: which node is meant, and the list of nodes.
 */
#ifndef PADDOCK_CLI_NODE_H
#define PADDOCK_CLI_NODE_H

#include "cli/command.h"

/* Full id from a name, or a prefix of the id; NULL when that was said and *ret_code set. */
const char *node_find(struct cmd *c, const char *prefix, int *ret_code);
/* The node that is named, or with `self` the agent's. */
const char *node_arg(struct cmd *c, bool self, int *ret_code);

struct node_columns {
    bool verbose, allocs, os;
};
/* node/map.c: a character for each node; `filter` may be NULL. The exit code. */
int node_map(struct cmd *c, const char *filter);
void node_table(struct cmd *c, const struct node_list_stub_list *l, const struct node_columns *o);

#endif
