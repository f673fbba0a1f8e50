/* SPDX-License-Identifier: Apache-2.0
 *
 * A login: the claims of a token whose signature is good, held against a method and its binding
 * rules. Pure; any thread.
 */
#ifndef PADDOCK_SERVER_JWT_LOGIN_H
#define PADDOCK_SERVER_JWT_LOGIN_H

#include <stdbool.h>

#include "api/api.h"
#include "common/err.h"

/* Checks that the claims hold now, and are for this method: their times, audience and issuer.
 * -ERR_FORBIDDEN. */
int login_check(const struct acl_auth_method_config *c, const struct value *claims, int64_t now_ns,
                struct err *e);

/* Returns the claims that the method's mappings name; NULL with -ERR_FORBIDDEN: one of them cannot
 * be mapped. Owned by ctx. */
struct acl_login_claims *login_claims(const void *ctx, const struct acl_auth_method_config *c,
                                      const struct value *claims, struct err *e);

/* The rights that the rules of a method give. */
struct login_rights {
    bool management;       /* and nothing else counts */
    struct str_list roles; /* by name; they need not be there */
    struct str_list policies;
};

/* Adds what the rule gives, if it is for a login with these claims; texts are owned by ctx.
 * -ERR_FORBIDDEN: it names something that cannot be the name of a role or policy. */
int login_bind(const void *ctx, const struct acl_binding_rule *r, const struct acl_login_claims *l,
               struct login_rights *to, struct err *e);

/* Returns the name of the login's token; NULL: -ERR_FORBIDDEN. Owned by ctx. */
const char *login_token_name(const void *ctx, const struct acl_auth_method *m,
                             const struct acl_login_claims *l, struct err *e);

#endif
