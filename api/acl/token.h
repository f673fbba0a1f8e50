/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens, policies and roles of access control, as objects: their words, and when a token ends.
 * The rights that policies grant are acl/acl.h's. Pure.
 */
#ifndef PADDOCK_API_ACL_TOKEN_H
#define PADDOCK_API_ACL_TOKEN_H

#include <stdbool.h>

#include "api/api.h"

#define ACL_TOKEN_CLIENT "client"
#define ACL_TOKEN_MANAGEMENT "management"
#define ACL_ANONYMOUS "anonymous" /* accessor and policy of who has no token */

/* Says whether the token has ended at that time, in ns since the epoch. */
bool acl_token_ended(const struct acl_token *t, int64_t now_ns);

#endif
