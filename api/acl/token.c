/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of the objects of access control (see token.h).
 */
#include "api/acl/token.h"

#include <string.h>

#include "api/limits.h"
#include "api/object.h"
#include "common/str.h"
#include "common/uuid.h"

bool
acl_token_ended(const struct acl_token *t, int64_t now_ns)
{
    return t->expiration_time != 0 && t->expiration_time <= now_ns;
}

static int
check_job(const struct acl_job *j, struct err *e)
{
    if (j == NULL)
        return 0;
    if ((str_empty(j->namespace) && !str_empty(j->job_id)) ||
        (str_empty(j->job_id) && !str_empty(j->group)) ||
        (str_empty(j->group) && !str_empty(j->task)))
        return err_set(e, -ERR_INVALID,
                       "job ACL: a task needs its group, a group its job, a job its namespace");
    return 0;
}

int
acl_policy_check(const struct acl_policy *p, bool deleted, struct err *e)
{
    const char *name = str_or(p->name, "");

    if (object_check_name(name, e) == 0 && !deleted &&
        object_check_texts(p->description, NULL, e) == 0)
        (void)check_job(p->job_acl, e);
    return e->code == 0 ? 0 : err_prefix(e, "policy \"%.128s\" invalid", name);
}

static int
check_id(const char *id, struct err *e)
{
    return uuid_valid(str_or(id, "")) ? 0 : err_set(e, -ERR_INVALID, "UUID must be 36 characters");
}

int
acl_token_check(const struct acl_token *t, bool deleted, struct err *e)
{
    bool client = str_eq(t->type, ACL_TOKEN_CLIENT);

    if (check_id(t->accessor_id, e) < 0 || deleted)
        return e->code;
    if (check_id(t->secret_id, e) < 0)
        return e->code;
    if (strlen(str_or(t->name, "")) > OBJECT_TEXT_MAX)
        return err_set(e, -ERR_INVALID, "token name too long: at most %d bytes", OBJECT_TEXT_MAX);
    if (!client && !str_eq(t->type, ACL_TOKEN_MANAGEMENT))
        return err_set(e, -ERR_INVALID, "token type must be client or management");
    if (client && t->policies.n == 0 && t->roles.n == 0)
        return err_set(e, -ERR_INVALID, "client token missing policies or roles");
    if (!client && (t->policies.n > 0 || t->roles.n > 0))
        return err_set(e, -ERR_INVALID,
                       "management token cannot be associated with policies or roles");
    return 0;
}

int
acl_role_check(const struct acl_role *r, bool deleted, struct err *e)
{
    if (check_id(r->id, e) < 0 || deleted)
        return e->code;
    if (object_check_name(r->name, e) == 0 && object_check_texts(r->description, NULL, e) == 0 &&
        r->policies.n == 0)
        err_set(e, -ERR_INVALID, "at least one policy should be specified");
    return e->code == 0 ? 0 : err_prefix(e, "role \"%.128s\" invalid", str_or(r->name, ""));
}
