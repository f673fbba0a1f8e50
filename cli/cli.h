/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line: everything but `paddock agent`, which main.c sends to agent/.
 */
#ifndef PADDOCK_CLI_CLI_H
#define PADDOCK_CLI_CLI_H

#include "cli/complete.h"

/* Runs the command named by argv[1] (and argv[2]); returns the exit code. */
int cli_main(int argc, char **argv);

#endif
