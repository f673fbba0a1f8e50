/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion of command lines: see complete.c.
 */
#ifndef PADDOCK_CLI_COMPLETE_H
#define PADDOCK_CLI_COMPLETE_H

#include "cli/command.h"

/* `paddock -complete`, for `complete -C` of bash: prints how the line in $COMP_LINE may go on at
 * $COMP_POINT. `agent` are the options of the one command that is not here. The exit code. */
int cli_complete(const struct opt *agent);

#endif
