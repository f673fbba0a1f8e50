/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion of command lines: see complete.c.
 */
#ifndef PADDOCK_CLI_COMPLETE_H
#define PADDOCK_CLI_COMPLETE_H

#include "cli/command.h"

/* Called by cmd_parse() where c->complete is set: prints the candidates for its word. `verbatim`: as in
 * struct cmd_args. */
void complete_command(struct cmd *c, const struct opt *const *tables, size_t n, bool verbatim);

#endif
