/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of login and their binding rules, as objects: their words, and the templates in them.
 * Tokens of others are read by server/jwt. Pure.
 */
#ifndef PADDOCK_API_ACL_METHOD_H
#define PADDOCK_API_ACL_METHOD_H

#include "api/api.h"
#include "common/err.h"

#define ACL_METHOD_JWT "JWT"
#define ACL_METHOD_OIDC "OIDC"
#define ACL_METHOD_GLOBAL "global" /* its tokens hold in all regions */
#define ACL_METHOD_LOCAL "local"
#define ACL_METHOD_TOKEN_NAME "${auth_method_type}-${auth_method_name}"

#define ACL_BIND_ROLE "role"
#define ACL_BIND_POLICY "policy"
#define ACL_BIND_MANAGEMENT "management"

/* Returns the value of a name in a template, owned by `ctx` or longer; NULL: it has none. */
typedef const char *acl_template_fn(const void *ctx, const void *arg, const char *name);

/* Replaces each "${name}" of the text; "$${" stands for "${". NULL with an error: a name has no
 * value, or "${" no end. Owned by ctx. */
const char *acl_template(const void *ctx, const char *text, acl_template_fn *value, const void *arg,
                         struct err *e);

/* Checks a URL of a method, called `name`; empty is fine. -ERR_INVALID. */
int acl_url_check(const char *name, const char *url, struct err *e);

/* A duration of the configuration of a method; 0: it is not set, negative: none at all. The text
 * was checked. */
int64_t acl_leeway(const char *text);

#endif
