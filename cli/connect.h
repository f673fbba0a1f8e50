/* SPDX-License-Identifier: Apache-2.0
 *
 * How a command reaches its agent: the environment, and what the options of TLS say.
 */
#ifndef PADDOCK_CLI_CONNECT_H
#define PADDOCK_CLI_CONNECT_H

#include "cli/command.h"

/* Returns a variable of the environment; NULL when it is not set or empty. */
const char *cmd_env(const char *name);
/* Makes c->dialer where the address begins with https://, of files that are read now. */
int connect_prepare(struct cmd *c, struct err *e);

#endif
