/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent in a box of its own (isolation/confine/sandbox.h): which files it needs, and when the
 * box closes.
 */
#ifndef PADDOCK_AGENT_SELFBOX_H
#define PADDOCK_AGENT_SELFBOX_H

#include "agent/config/config.h"
#include "api/api.h"

/* Before the first thread. `run_dir`: the warden's socket, the policy and the configuration. */
void selfbox_files(const struct agent_config *cfg, const struct policy *p, const char *run_dir);
/* Before the first event loop. */
void selfbox_rings(void);
/* Once everything is started. */
void selfbox_calls(void);

#endif
