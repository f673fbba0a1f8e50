/* SPDX-License-Identifier: Apache-2.0
 *
 * What the job commands share.
 */
#ifndef PADDOCK_CLI_JOB_JOB_H
#define PADDOCK_CLI_JOB_JOB_H

#include "cli/command.h"

/* job/plan.c: what a plan would change, or what a version did. */
void job_print_diff(struct cmd *c, const struct job_diff *d, bool verbose);

#endif
