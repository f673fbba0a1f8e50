/* SPDX-License-Identifier: Apache-2.0
 *
 * isolate explain of a task that an engine runs (engine.c).
 */
#ifndef PADDOCK_CLI_ISOLATE_ENGINE_H
#define PADDOCK_CLI_ISOLATE_ENGINE_H

#include "cli/command.h"

void explain_engine(struct cmd *c, const struct task_group *g, const struct task *t);

#endif
