/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts that commands of access control share.
 */
#ifndef PADDOCK_CLI_ACL_ACL_H
#define PADDOCK_CLI_ACL_ACL_H

#include "cli/command.h"

/* Prints the token for people, with its secret. */
void acl_token_print(struct cmd *c, const struct acl_token *token);

#endif
