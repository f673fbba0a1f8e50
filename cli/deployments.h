/* SPDX-License-Identifier: Apache-2.0
 *
 * How deployments are shown and watched, as Nomad's commands do it.
 */
#ifndef PADDOCK_CLI_DEPLOYMENTS_H
#define PADDOCK_CLI_DEPLOYMENTS_H

#include "cli/command.h"
#include "cli/death.h"

/* The list of a target, newest first. 0, or a negative code with words. */
int deployments_get(struct cmd *c, const char *target, struct deployment_list *ret, struct err *e);
/* A row for each, or that there is none. */
void deployments_list(struct cmd *c, const struct deployment_list *l, bool verbose);
/* One with its groups; NULL: that there is none. `brief`: without what the job's status has said.
 */
void deployments_show(struct cmd *c, const struct deployment *d, bool verbose, bool brief);
/* Prints what a deployment waits for and which command ends that; nothing where it goes on by
 * itself. */
void deployments_waits(struct cmd *c, const struct deployment *d);
/* Prints the same, and why its tasks do not come up. `keep` as for death_report(). */
void deployments_troubles(struct cmd *c, const struct deployment *d, struct death_told *keep,
                          bool verbose);
/* Fetches the latest deployment, which `job status` and others ask for: *ret NULL when the job has
 * none. */
int deployments_latest(struct cmd *c, const char *job, struct deployment **ret, struct err *e);
/* Prints the deployment at each change, until it ends or is blocked; asks every `wait_ns` at the
 * latest. A rollback is watched, too. The status of the first, or NULL: failed, which was said
 * after `mark`. */
const char *deployments_watch(struct cmd *c, const char *id, int64_t wait_ns, bool verbose,
                              const char *mark);

#endif
