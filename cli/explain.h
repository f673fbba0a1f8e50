/* SPDX-License-Identifier: Apache-2.0
 *
 * Explanations of where a job's allocations can go.
 */
#ifndef PADDOCK_CLI_EXPLAIN_H
#define PADDOCK_CLI_EXPLAIN_H

#include "cli/format.h"

struct explain_opts {
    struct output out;
    const char *group, *node; /* NULL: all */
    bool verbose;
};

/* Asks for the one of a job, by its whole id, and prints it; the exit code. */
int explain_job(struct cmd *c, const char *job, const struct explain_opts *o);
void explanation_print(struct cmd *c, const struct job_explanation *x, bool verbose);

#endif
