/* SPDX-License-Identifier: Apache-2.0
 *
 * From the agent's configuration to the launch policy that binds it. Runs in the policy compiler,
 * as root where the warden is root.
 */
#ifndef PADDOCK_AGENT_POLICY_H
#define PADDOCK_AGENT_POLICY_H

#include "api/api.h"
#include "common/err.h"

/* Directories, owners, drivers and limits. `data_dir` stands in where the configuration names none
 * (-dev); may be NULL. *ret is owned by ctx. */
int agent_policy(const void *ctx, const struct agent_config *cfg, const char *data_dir,
                 struct policy **ret, struct err *e);

/* Rules for p->agent_denied: the addresses at which this agent listens, as they are now. */
void policy_deny_agent(struct policy *p, const struct agent_config *cfg);

#endif
