/* SPDX-License-Identifier: Apache-2.0
 *
 * `paddock agent`: the agent program.
 */
#ifndef PADDOCK_AGENT_AGENT_H
#define PADDOCK_AGENT_AGENT_H

#include "common/opt.h"

/* argv[0] is "agent". The exit status. Not supervised yet, it becomes the supervisor, which starts
 * it again with -supervised RUNDIR (isolation/supervisor.h). */
int agent_main(int argc, char **argv);

/* Returns the agent's options, for help and completion. */
const struct opt *agent_options(const void *ctx);

/* `paddock policy`: compiles the launch policy from the configuration (root, offline). argv[0] is
 * "policy"; takes the agent's -config and -dev flags and -out FILE. */
int policy_main(int argc, char **argv);

#endif
