/* SPDX-License-Identifier: Apache-2.0
 *
 * How a command reaches its agent: what the options and variables of TLS say.
 */
#ifndef PADDOCK_CLI_CONNECT_H
#define PADDOCK_CLI_CONNECT_H

#include "cli/command.h"

/* Makes c->dialer where the address begins with https://, of files that are read now. */
int connect_prepare(struct cmd *c, struct err *e);

#endif
