/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: writes of access control, and reads of tokens. Other reads need no function
 * (routes_schema.c). Answers about a token show its secret, to who may see the token.
 */
#include "agent/api/api.h"
#include "common/mem.h"
#include "common/str.h"

/* Answers 400 to what is wrong with a request, as Nomad does here. */
static bool
acl_refused(struct request *a, const struct err *e)
{
    if (e->code != -ERR_INVALID)
        return false;
    reply_refuse(a, 400, e);
    return true;
}

static void
acl_written(struct request *a, const void *resp)
{
    reply_index(a, ((const struct write_response *)resp)->index);
    http_reply(a->req, 200, NULL, "", 0);
}

static void
acl_call(struct request *a, enum rpc_id id, const void *req, request_done *done)
{
    a->on_error = acl_refused;
    a->secrets = a->unsaid = true;
    call_server(a, id, req, done);
}

static void
acl_delete(struct request *a)
{
    struct object_delete *req = type_new(a, &type_object_delete);

    list_add(req, req->names, a->id);
    acl_call(a, a->route->rpc, req, acl_written);
}

/* --- policies --- */

static void
policy_put(struct request *a)
{
    struct acl_policy *p = request_body(a, &type_acl_policy, false);
    struct acl_policy_upsert *req;

    if (p == NULL)
        return;
    if (!str_empty(p->name) && !str_eq(p->name, a->id)) {
        reply_fail(a, 400, "ACL policy name does not match request path");
        return;
    }
    p->name = a->id;
    req = type_new(a, &type_acl_policy_upsert);
    list_add(req, req->acl_policies, p);
    acl_call(a, RPC_ACL_UPSERT_POLICIES, req, acl_written);
}

/* --- introductions of nodes --- */

static void
introduction_made(struct request *a, const void *resp)
{
    reply_json(a, &type_introduction_response, resp);
}

static void
introduction_put(struct request *a)
{
    struct introduction_request *req = request_body(a, &type_introduction_request, true);

    if (req != NULL)
        acl_call(a, RPC_ACL_CREATE_INTRODUCTION, req, introduction_made);
}

static void
policy_self(struct request *a)
{
    reply_list(a, RPC_ACL_LIST_POLICIES, type_new(a, &type_list_request));
}

/* --- tokens --- */

static void
token_answer(struct request *a, const void *resp)
{
    const struct acl_token_response *r = resp;

    reply_object(a, &type_acl_token, r->token, r->meta, "ACL token not found");
}

static void
token_get(struct request *a)
{
    acl_call(a, RPC_ACL_GET_TOKEN, request_by_id(a), token_answer);
}

static void
token_self(struct request *a)
{
    static const struct empty none;

    acl_call(a, RPC_ACL_WHO_AM_I, &none, token_answer);
}

static void
tokens_written(struct request *a, const void *resp)
{
    const struct acl_tokens_response *r = resp;

    reply_index(a, r->index);
    reply_json(a, &type_acl_token, r->tokens.n > 0 ? r->tokens.v[0] : NULL);
}

static void
token_put(struct request *a)
{
    struct acl_token *t = request_body(a, &type_acl_token, false);
    struct acl_token_upsert *req;

    if (t == NULL)
        return;
    if (a->id != NULL && !str_eq(t->accessor_id, a->id)) {
        reply_fail(a, 400, "ACL token accessor ID does not match request path");
        return;
    }
    req = type_new(a, &type_acl_token_upsert);
    list_add(req, req->acl_tokens, t);
    acl_call(a, RPC_ACL_UPSERT_TOKENS, req, tokens_written);
}

static void
acl_bootstrap(struct request *a)
{
    struct acl_bootstrap_request *r = request_body(a, &type_acl_bootstrap_request, true);

    if (r != NULL)
        acl_call(a, RPC_ACL_BOOTSTRAP, r, tokens_written);
}

static void
one_time_written(struct request *a, const void *resp)
{
    reply_index(a, ((const struct acl_one_time_response *)resp)->index);
    reply_json(a, &type_acl_one_time_response, resp);
}

static void
one_time_put(struct request *a)
{
    static const struct empty none;

    acl_call(a, RPC_ACL_UPSERT_ONE_TIME, &none, one_time_written);
}

static void
one_time_exchanged(struct request *a, const void *resp)
{
    reply_index(a, ((const struct acl_exchange_response *)resp)->index);
    reply_json(a, &type_acl_exchange_response, resp);
}

static void
one_time_exchange(struct request *a)
{
    struct acl_one_time_exchange *r = request_body(a, &type_acl_one_time_exchange, false);

    if (r != NULL)
        acl_call(a, RPC_ACL_EXCHANGE_ONE_TIME, r, one_time_exchanged);
}

/* --- roles --- */

static void
roles_written(struct request *a, const void *resp)
{
    const struct acl_roles_response *r = resp;

    reply_index(a, r->index);
    reply_json(a, &type_acl_role, r->roles.n > 0 ? r->roles.v[0] : NULL);
}

static void
role_put(struct request *a)
{
    struct acl_role *r = request_body(a, &type_acl_role, false);
    struct acl_role_upsert *req;

    if (r == NULL)
        return;
    if (a->id != NULL && !str_empty(r->id) && !str_eq(r->id, a->id)) {
        reply_fail(a, 400, "ACL role ID does not match request path");
        return;
    }
    if (a->id != NULL)
        r->id = a->id;
    req = type_new(a, &type_acl_role_upsert);
    list_add(req, req->acl_roles, r);
    acl_call(a, RPC_ACL_UPSERT_ROLES, req, roles_written);
}

/* --- methods of login --- */

static void
methods_written(struct request *a, const void *resp)
{
    const struct acl_auth_methods_response *r = resp;

    reply_index(a, r->index);
    reply_json(a, &type_acl_auth_method, r->auth_methods.n > 0 ? r->auth_methods.v[0] : NULL);
}

static void
method_put(struct request *a)
{
    struct acl_auth_method *m = request_body(a, &type_acl_auth_method, false);
    struct acl_auth_method_upsert *req;

    if (m == NULL)
        return;
    if (a->id != NULL && !str_empty(m->name) && !str_eq(m->name, a->id)) {
        reply_fail(a, 400, "ACL auth method name does not match request path");
        return;
    }
    if (a->id != NULL)
        m->name = a->id;
    req = type_new(a, &type_acl_auth_method_upsert);
    list_add(req, req->acl_auth_methods, m);
    acl_call(a, RPC_ACL_UPSERT_AUTH_METHODS, req, methods_written);
}

static void
rules_written(struct request *a, const void *resp)
{
    const struct acl_binding_rules_response *r = resp;

    reply_index(a, r->index);
    reply_json(a, &type_acl_binding_rule, r->binding_rules.n > 0 ? r->binding_rules.v[0] : NULL);
}

static void
rule_put(struct request *a)
{
    struct acl_binding_rule *r = request_body(a, &type_acl_binding_rule, false);
    struct acl_binding_rule_upsert *req;

    if (r == NULL)
        return;
    if (a->id != NULL && !str_empty(r->id) && !str_eq(r->id, a->id)) {
        reply_fail(a, 400, "ACL binding rule ID does not match request path");
        return;
    }
    if (a->id != NULL)
        r->id = a->id;
    req = type_new(a, &type_acl_binding_rule_upsert);
    list_add(req, req->acl_binding_rules, r);
    acl_call(a, RPC_ACL_UPSERT_BINDING_RULES, req, rules_written);
}

/* Answers 401 to a token that is not taken, as Nomad does. */
static bool
login_refused(struct request *a, const struct err *e)
{
    if (e->code == -ERR_FORBIDDEN)
        reply_refuse(a, 401, e);
    return e->code == -ERR_FORBIDDEN || acl_refused(a, e);
}

static void
login_done(struct request *a, const void *resp)
{
    const struct acl_login_response *r = resp;

    reply_index(a, r->index);
    reply_json(a, &type_acl_token, r->token);
}

static void
login_put(struct request *a)
{
    struct acl_login_request *r = request_body(a, &type_acl_login_request, false);

    if (r == NULL)
        return;
    a->on_error = login_refused;
    a->secrets = a->unsaid = true;
    call_server(a, RPC_ACL_LOGIN, r, login_done);
}

const struct route routes_acl[] = {
    {VERB_WRITE, "/v1/acl/bootstrap", NULL, acl_bootstrap, RPC_ACL_BOOTSTRAP, BY_SERVER},
    {VERB_GET, "/v1/acl/policy/self", NULL, policy_self, RPC_ACL_LIST_POLICIES, BY_SERVER},
    {VERB_WRITE, "/v1/acl/policy/", "", policy_put, RPC_ACL_UPSERT_POLICIES, BY_SERVER},
    {VERB_DELETE, "/v1/acl/policy/", "", acl_delete, RPC_ACL_DELETE_POLICIES, BY_SERVER},
    {VERB_WRITE, "/v1/acl/identity/client-introduction-token", NULL, introduction_put,
     RPC_ACL_CREATE_INTRODUCTION, BY_SERVER},
    {VERB_WRITE, "/v1/acl/token", NULL, token_put, RPC_ACL_UPSERT_TOKENS, BY_SERVER},
    {VERB_GET, "/v1/acl/token/self", NULL, token_self, RPC_ACL_WHO_AM_I, BY_SERVER},
    {VERB_WRITE, "/v1/acl/token/onetime", NULL, one_time_put, RPC_ACL_UPSERT_ONE_TIME, BY_SERVER},
    {VERB_WRITE, "/v1/acl/token/onetime/exchange", NULL, one_time_exchange,
     RPC_ACL_EXCHANGE_ONE_TIME, BY_SERVER},
    {VERB_GET, "/v1/acl/token/", "", token_get, RPC_ACL_GET_TOKEN, BY_SERVER},
    {VERB_WRITE, "/v1/acl/token/", "", token_put, RPC_ACL_UPSERT_TOKENS, BY_SERVER},
    {VERB_DELETE, "/v1/acl/token/", "", acl_delete, RPC_ACL_DELETE_TOKENS, BY_SERVER},
    {VERB_WRITE, "/v1/acl/role", NULL, role_put, RPC_ACL_UPSERT_ROLES, BY_SERVER},
    {VERB_WRITE, "/v1/acl/role/", "", role_put, RPC_ACL_UPSERT_ROLES, BY_SERVER},
    {VERB_DELETE, "/v1/acl/role/", "", acl_delete, RPC_ACL_DELETE_ROLES, BY_SERVER},
    {VERB_GET, "/v1/acl/why", NULL, acl_why_get, RPC_ACL_WHY, BY_SERVER},
    {VERB_WRITE, "/v1/acl/auth-method", NULL, method_put, RPC_ACL_UPSERT_AUTH_METHODS, BY_SERVER},
    {VERB_WRITE, "/v1/acl/auth-method/", "", method_put, RPC_ACL_UPSERT_AUTH_METHODS, BY_SERVER},
    {VERB_DELETE, "/v1/acl/auth-method/", "", acl_delete, RPC_ACL_DELETE_AUTH_METHODS, BY_SERVER},
    {VERB_WRITE, "/v1/acl/login", NULL, login_put, RPC_ACL_LOGIN, BY_SERVER},
    {VERB_WRITE, "/v1/acl/binding-rule", NULL, rule_put, RPC_ACL_UPSERT_BINDING_RULES, BY_SERVER},
    {VERB_WRITE, "/v1/acl/binding-rule/", "", rule_put, RPC_ACL_UPSERT_BINDING_RULES, BY_SERVER},
    {VERB_DELETE, "/v1/acl/binding-rule/", "", acl_delete, RPC_ACL_DELETE_BINDING_RULES, BY_SERVER},
    ROUTES_END};
