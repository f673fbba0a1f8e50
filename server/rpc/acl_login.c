/* SPDX-License-Identifier: Apache-2.0
 *
 * ACL.Login: a token of another service is exchanged for one of ours.
 *
 *   LOOKING    a worker     method and header; keys in the method: VERIFYING, elsewhere: FETCHING
 *   FETCHING   jwks_get()   VERIFYING
 *   VERIFYING  a worker     signature, claims, rules: WRITING
 *   WRITING    the log      answered
 */
#include <string.h>

#include "api/acl/method.h"
#include "net/rpc.h"
#include "server/jwt/jwks.h"
#include "server/jwt/key.h"
#include "server/jwt/login.h"
#include "server/rpc/acl_int.h"

enum { CLAIMS_BUDGET = 4 << 20 };

/* Memory of the call. */
struct login {
    struct server *s;
    struct gate *gate;
    struct rpc_call *call;
    const char *name, *token; /* of the request */
    struct acl_auth_method *method;
    struct jwt_token parts;
    struct jwt_keys *keys; /* NULL: they are at `source` */
    struct jwks_source source;
    struct acl_token *made;
    struct acl_token_role_list named; /* its roles, for the answer */
    struct err err;
};

/* --- the method --- */

static int
own_keys(struct login *l, struct err *e)
{
    const struct str_list *pems = &l->method->config->jwt_validation_pub_keys;

    l->keys = jwt_keys_new();
    for (size_t i = 0; i < pems->n; i++)
        if (jwt_keys_add_pem(l->keys, str_or(pems->v[i], ""), e) < 0)
            return err_prefix(e, "public key %zu of auth method \"%s\"", i, l->method->name);
    return 0;
}

static void
find_source(struct login *l)
{
    const struct acl_auth_method_config *c = l->method->config;
    bool set = !str_empty(c->jwks_url);
    const char *ca = set ? c->jwks_ca : NULL;

    for (size_t i = 0; !set && i < c->discovery_ca_pem.n; i++)
        ca = mem_printf(l, "%s%s\n", str_or(ca, ""), str_or(c->discovery_ca_pem.v[i], ""));
    l->source = (struct jwks_source){set ? c->jwks_url : c->oidc_discovery_url, !set, ca};
}

static int
login_look(struct login *l, struct state_txn *t, struct err *e)
{
    if (acl_endpoint_on(l->s, e) < 0)
        return e->code;
    if (str_empty(l->name) || str_empty(l->token))
        return err_set(e, -ERR_INVALID, "%s is missing",
                       str_empty(l->name) ? "AuthMethodName" : "LoginToken");
    l->method = state_acl_auth_method(t, l, l->name);
    if (l->method == NULL)
        return err_set(e, -ERR_INVALID, "auth-method \"%.128s\" not found", l->name);
    if (!str_eq(l->method->type, ACL_METHOD_JWT))
        return err_set(e, -ERR_INVALID, "unsupported auth-method type: %s",
                       str_or(l->method->type, ""));
    if (jwt_read(l, l->token, JWT_LOGIN_MAX, &l->parts, e) < 0)
        return err_prefix(e, "unable to validate provided token");
    if (l->method->config->jwt_validation_pub_keys.n > 0)
        return own_keys(l, e);
    find_source(l);
    return 0;
}

/* --- the token --- */

static int
gather_rights(struct login *l, struct state_txn *t, const struct acl_login_claims *claims,
              struct login_rights *ret, struct err *e)
{
    struct state_iter *it = state_ids(t, l, STATE_ACL_BINDING_RULES, NULL);

    for (struct acl_binding_rule *r; (r = state_next(it, l)) != NULL;)
        if (e->code == 0 && str_eq(r->auth_method, l->method->name))
            (void)login_bind(l, r, claims, ret, e);
    return e->code;
}

/* Gives the token what there is of the rights. */
static int
set_rights(struct login *l, struct state_txn *t, const struct login_rights *r, struct err *e)
{
    struct acl_token *token = l->made;

    token->type = r->management ? ACL_TOKEN_MANAGEMENT : ACL_TOKEN_CLIENT;
    for (size_t i = 0; !r->management && i < r->policies.n; i++)
        if (state_acl_policy(t, l, r->policies.v[i]) != NULL)
            list_add(token, token->policies, r->policies.v[i]);
    for (size_t i = 0; !r->management && i < r->roles.n; i++) {
        struct acl_role *role = acl_role_named(t, l, r->roles.v[i]);
        if (role == NULL)
            continue;
        struct acl_token_role *link = type_new(token, &type_acl_token_role);
        link->id = role->id;
        list_add(token, token->roles, link);
        struct acl_token_role *named = type_new(token, &type_acl_token_role);
        *named = (struct acl_token_role){role->id, role->name};
        list_add(token, l->named, named);
    }
    if (!r->management && token->policies.n == 0 && token->roles.n == 0)
        return err_set(e, -ERR_INVALID, "no role or policy bindings matched");
    return 0;
}

static int
make_token(struct login *l, struct state_txn *t, const struct acl_login_claims *claims,
           struct err *e)
{
    struct acl_token *token = type_new(l, &type_acl_token);
    struct login_rights rights = {.management = false};
    const struct env *env = server_env(l->s);
    char id[UUID_TEXT];

    l->made = token;
    token->name = login_token_name(l, l->method, claims, e);
    if (token->name == NULL || gather_rights(l, t, claims, &rights, e) < 0 ||
        set_rights(l, t, &rights, e) < 0)
        return e->code;
    token->accessor_id = mem_strdup(token, env_id(env, id));
    token->secret_id = mem_strdup(token, env_id(env, id));
    token->global = str_eq(l->method->token_locality, ACL_METHOD_GLOBAL);
    token->create_time = env_wall_ns(env);
    token->expiration_ttl = l->method->max_token_ttl;
    if (acl_token_set_end(server_cfg(l->s), token, e) < 0 || caller_check_sum(t, token, e) < 0)
        return e->code;
    return acl_prepare_object(&type_acl_token, token, e);
}

static int
login_verify(struct login *l, struct state_txn *t, struct err *e)
{
    const struct acl_auth_method_config *c = l->method->config;
    struct value *claims = NULL;
    struct acl_login_claims *mapped = NULL;
    struct err why = ERR_INIT;

    if (jwt_keys_verify(l->keys, &l->parts, &c->signing_algs, &why) == 0 &&
        (json_decode_value(l, l->parts.payload, BUDGET(CLAIMS_BUDGET), &claims, &why) < 0 ||
         claims->kind != VALUE_MAP)) {
        struct err is = ERR_INIT;
        err_set(&is, -ERR_FORBIDDEN, "its claims are no JSON object: %.300s", why.text);
        why = is;
    }
    if (why.code == 0 && login_check(c, claims, env_wall_ns(server_env(l->s)), &why) == 0)
        mapped = login_claims(l, c, claims, &why);
    if (mapped == NULL)
        return err_set(e, -ERR_FORBIDDEN, "unable to validate provided token: %.400s", why.text);
    return make_token(l, t, mapped, e);
}

/* --- the steps --- */

static void
login_free(struct login *l)
{
    jwt_keys_unref(TAKE(l->keys));
    gate_unref(TAKE(l->gate)); /* *l is memory of the call */
}

static void
login_fail(struct login *l, const struct err *e)
{
    const struct err why = *e;
    struct rpc_call *call = l->call;

    login_free(l);
    rpc_fail(call, &why);
}

static void
login_written(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct login *l = arg;
    struct rpc_call *call = l->call;

    (void)res;
    if (e != NULL) {
        login_fail(l, e);
        return;
    }
    l->made->roles = l->named;
    acl_stamp(&type_acl_token, l->made, index);
    const struct acl_login_response resp = {.token = l->made, .index = index};
    login_free(l);
    rpc_reply(call, &resp);
}

/* A worker does a step with a snapshot. */
static void
login_step(struct login *l, int (*step)(struct login *l, struct state_txn *t, struct err *e))
{
    if (!gate_enter(l->gate)) {
        err_set(&l->err, -ERR_UNAVAILABLE, "the server is stopping");
        return;
    }
    struct state_txn *t = server_read_begin(l->s, l);
    (void)step(l, t, &l->err);
    state_read_end(t);
    gate_leave(l->gate);
}

static void
verify_work(void *arg)
{
    login_step(arg, login_verify);
}

static void
verify_done(void *arg)
{
    struct login *l = arg;
    struct acl_token_upsert up = {.acl_tokens = {&l->made, 1}};
    struct intent in = {.acl_token_upsert = &up};

    if (l->err.code == 0 && gate_is_closed(l->gate))
        err_set(&l->err, -ERR_UNAVAILABLE, "the server is stopping");
    if (l->err.code != 0)
        login_fail(l, &l->err);
    else
        server_propose(l->s, &in, HOME_LOOP, login_written, l);
}

static void
login_has_keys(void *arg, struct jwt_keys *keys, const struct err *e)
{
    struct login *l = arg;

    if (e != NULL) {
        login_fail(l, e);
        return;
    }
    l->keys = jwt_keys_ref(keys);
    env_work(server_env(l->s), verify_work, verify_done, l);
}

static void
look_work(void *arg)
{
    login_step(arg, login_look);
}

static void
look_done(void *arg)
{
    struct login *l = arg;

    if (l->err.code == 0 && gate_is_closed(l->gate))
        err_set(&l->err, -ERR_UNAVAILABLE, "the server is stopping");
    if (l->err.code != 0)
        login_fail(l, &l->err);
    else if (l->keys != NULL)
        env_work(server_env(l->s), verify_work, verify_done, l);
    else
        jwks_get(server_jwks(l->s), &l->source, l->parts.kid, login_has_keys, l);
}

void
call_acl_login(void *arg, struct rpc_call *call, const void *p)
{
    const struct acl_login_request *req = p;
    struct login *l = mem_new(rpc_call_ctx(call), struct login);

    *l = (struct login){.s = arg,
                        .call = call,
                        .name = mem_strdup(l, str_or(req->auth_method_name, "")),
                        .token = mem_strdup(l, str_or(req->login_token, "")),
                        .err = ERR_INIT};
    l->gate = gate_ref(server_gate(l->s));
    env_work(server_env(l->s), look_work, look_done, l);
}
