/* SPDX-License-Identifier: Apache-2.0
 *
 * Validation of a task's isolation block: what is wrong whatever the client allows. Pure.
 */
#ifndef PADDOCK_API_VALIDATE_ISOLATION_H
#define PADDOCK_API_VALIDATE_ISOLATION_H

#include "api/api.h"

/* Appends one text per problem to *errors, owned by ctx. Without a block there is none. */
void validate_isolation(const void *ctx, const struct task *t, struct str_list *errors);

/* Calls that the start of a task makes behind its filter, up to NULL: mode "audit" cannot deny
 * them, because who is denied waits until the shim listens. */
extern const char *const audit_cannot_deny[];

#endif
