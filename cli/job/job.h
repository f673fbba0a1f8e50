/* SPDX-License-Identifier: Apache-2.0
 *
 * What the job commands share.
 */
#ifndef PADDOCK_CLI_JOB_JOB_H
#define PADDOCK_CLI_JOB_JOB_H

#include "cli/command.h"

/* job/check.c: why a job would not be registered, or not run. */
struct job_findings {
    struct str_list errors;
    struct str_list drivers; /* that no node of this release has */
    struct str_list later;   /* fields without effect in this release */
};

/* Appends what can be told without the servers, each place by itself. */
void job_check(struct cmd *c, const struct job *job, struct job_findings *ret);
/* True when there is a finding: all were printed, with those of the servers, which are asked about
 * `job`; NULL: they were asked. */
bool job_refuse(struct cmd *c, const struct job *job, const struct job_findings *f);

/* job/plan.c: what a plan would change, or what a version did. */
void job_print_diff(struct cmd *c, const struct job_diff *d, bool verbose);

/* job/periodic.c: "2026-01-01T00:00:00Z (1h0m0s from now)" of a job with a periodic block, by the
 * clocks of its time zone; and as a line. */
int job_next_launch(struct cmd *c, const struct job *j, const char **ret, struct err *e);
void job_say_next_launch(struct cmd *c, const struct job *j);

#endif
