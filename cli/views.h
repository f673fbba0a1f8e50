/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables that several commands show.
 */
#ifndef PADDOCK_CLI_VIEWS_H
#define PADDOCK_CLI_VIEWS_H

#include "cli/command.h"

/* ID, Node ID, Task Group, Version, Desired, Status, Created, Modified. */
void view_allocs(struct cmd *c, const struct alloc_list_stub_list *l, bool verbose);
/* ID, Namespace (where all are shown), Type, Priority, Status, Submit Date. */
void view_jobs(struct cmd *c, const struct job_list_stub_list *l);
const char *view_job_status(struct cmd *c, const char *status, bool stop);
/* Evaluation: "true", "false" or "N/A - In Progress". */
const char *view_placement(const struct evaluation *ev);
/* Tells of a next page, if there is one: its command line, with all options of this one. */
void view_next_page(struct cmd *c, const char *token);
/* For qsort of evaluations: newest first. */
int view_eval_cmp(const void *a, const void *b);

#endif
