/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line: everything but `paddock agent`, which main.c sends to agent/.
 */
#ifndef PADDOCK_CLI_CLI_H
#define PADDOCK_CLI_CLI_H

#include "common/opt.h"

/* Runs the command named by argv[1] (and argv[2]); returns the exit code. */
int cli_main(int argc, char **argv);
/* `paddock -complete`, for `complete -C` of bash: prints how the line in $COMP_LINE may go on at
 * $COMP_POINT. `agent` are the options of the one command that is not here. The exit code. */
int cli_complete(const struct opt *agent);

#endif
