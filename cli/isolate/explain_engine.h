/* SPDX-License-Identifier: Apache-2.0
 *
 * isolate explain of a task that an engine runs.
 */
#ifndef PADDOCK_CLI_ISOLATE_EXPLAIN_ENGINE_H
#define PADDOCK_CLI_ISOLATE_EXPLAIN_ENGINE_H

#include "cli/command.h"

void explain_engine(struct cmd *c, const struct task_group *g, const struct task *t);

#endif
