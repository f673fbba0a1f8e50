/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables that several commands show.
 */
#ifndef PADDOCK_CLI_VIEWS_H
#define PADDOCK_CLI_VIEWS_H

#include "cli/command.h"

/* ID, Node ID, Task Group, Version, Desired, Status, Created, Modified. */
void view_allocs(struct cmd *c, const struct alloc_list_stub_list *l, bool verbose);
/* Evaluation: "true", "false" or "N/A - In Progress". */
const char *view_placement(const struct evaluation *ev);

#endif
