/* SPDX-License-Identifier: Apache-2.0
 *
 * ACL.*: methods of login and their binding rules. What is left out of a change of a method, or of
 * a rule, stays as it is.
 */
#include "api/acl/method.h"
#include "api/filter/filter.h"
#include "common/duration.h"
#include "server/jwt/jwks.h"
#include "server/jwt/key.h"
#include "server/rpc/acl_int.h"

/* --- reads --- */

static int
list_run(struct read *r, struct state_txn *t, struct err *e)
{
    return acl_endpoint_on(r->s, e) < 0 ? e->code : read_list(r, t, e);
}

static int
method_run(struct read *r, struct state_txn *t, struct err *e)
{
    if (acl_endpoint_on(r->s, e) < 0)
        return e->code;
    return acl_reply_one(r, t, state_acl_auth_method(t, r->ctx, read_id(r)));
}

static int
rule_run(struct read *r, struct state_txn *t, struct err *e)
{
    if (acl_endpoint_on(r->s, e) < 0)
        return e->code;
    return acl_reply_one(r, t, state_acl_binding_rule(t, r->ctx, read_id(r)));
}

const struct read_row read_acl_list_auth_methods = {.tables = STATE_BIT(STATE_ACL_AUTH_METHODS),
                                                    .run = list_run};
const struct read_row read_acl_get_auth_method = {
    .tables = STATE_BIT(STATE_ACL_AUTH_METHODS), .about = WATCH_ACL_AUTH_METHOD, .run = method_run};
const struct read_row read_acl_list_binding_rules = {.tables = STATE_BIT(STATE_ACL_BINDING_RULES),
                                                     .run = list_run};
const struct read_row read_acl_get_binding_rule = {
    .tables = STATE_BIT(STATE_ACL_BINDING_RULES), .about = WATCH_ACL_BINDING_RULE, .run = rule_run};

/* --- methods --- */

static int
check_default(const struct acl_auth_method *m, struct state_txn *t, struct err *e)
{
    auto_mem void *tmp = mem_ctx("default");
    struct state_iter *it = state_ids(t, tmp, STATE_ACL_AUTH_METHODS, NULL);

    for (struct acl_auth_method *o; m->default_ && (o = state_next(it, tmp)) != NULL;)
        if (o->default_ && !str_eq(o->name, m->name))
            err_set(e, -ERR_INVALID, "default method already exists: %s", o->name);
    if (!m->default_)
        state_iter_end(it);
    return e->code;
}

/* A token of the method may live as long as the cluster lets one. */
static int
check_ttl(const struct acl_auth_method *m, const struct server_config *cfg, struct err *e)
{
    struct acl_token *probe = type_new(m, &type_acl_token);

    probe->expiration_ttl = m->max_token_ttl;
    return acl_token_set_end(cfg, probe, e) < 0 ? err_prefix(e, "MaxTokenTTL") : 0;
}

/* Writes a duration as Go does. */
static const char *
plain_duration(const void *ctx, const char *text)
{
    char out[DURATION_TEXT];
    int64_t ns = 0;

    return duration_parse(str_or(text, ""), &ns) == 0 ? mem_strdup(ctx, duration_format(ns, out))
                                                      : text;
}

/* Reads all that is PEM. */
static int
check_keys(const struct acl_auth_method_config *c, struct err *e)
{
    struct jwt_keys *keys = jwt_keys_new();

    for (size_t i = 0; i < c->jwt_validation_pub_keys.n; i++)
        if (jwt_keys_add_pem(keys, str_or(c->jwt_validation_pub_keys.v[i], ""), e) < 0)
            (void)err_prefix(e, "JWTValidationPubKeys %zu", i);
    jwt_keys_unref(keys);
    (void)jwks_check_ca("JWKSCACert", c->jwks_ca, e);
    for (size_t i = 0; i < c->discovery_ca_pem.n; i++)
        (void)jwks_check_ca("DiscoveryCaPem", c->discovery_ca_pem.v[i], e);
    return e->code;
}

static void
take_stored(struct acl_auth_method *m, const struct acl_auth_method *old)
{
    m->type = str_empty(m->type) ? old->type : m->type;
    m->token_locality = str_empty(m->token_locality) ? old->token_locality : m->token_locality;
    m->token_name_format =
        str_empty(m->token_name_format) ? old->token_name_format : m->token_name_format;
    m->max_token_ttl = acl_leeway(m->max_token_ttl) == 0 ? old->max_token_ttl : m->max_token_ttl;
    m->config = m->config == NULL ? old->config : m->config;
}

static int
prepare_methods(struct write *w, struct state_txn *t, struct err *e)
{
    const struct acl_auth_method_upsert *req = w->req;
    struct acl_auth_method_upsert *put = type_new(w->ctx, &type_acl_auth_method_upsert);

    if (acl_endpoint_on(w->s, e) < 0)
        return e->code;
    if (req->acl_auth_methods.n == 0)
        return err_set(e, -ERR_INVALID, "must specify at least one auth method");
    if (codec_check(&type_acl_auth_method_upsert, req, e) < 0)
        return e->code;
    for (size_t i = 0; i < req->acl_auth_methods.n; i++) {
        struct acl_auth_method *m =
            codec_clone(w->ctx, &type_acl_auth_method, req->acl_auth_methods.v[i]);
        const struct acl_auth_method *old = state_acl_auth_method(t, w->ctx, str_or(m->name, ""));
        int64_t now = env_wall_ns(server_env(w->s));
        if (old != NULL)
            take_stored(m, old);
        m->max_token_ttl = plain_duration(m, m->max_token_ttl);
        if (str_empty(m->token_name_format))
            m->token_name_format = ACL_METHOD_TOKEN_NAME;
        m->create_time = old != NULL ? old->create_time : now;
        m->modify_time = now;
        if (acl_prepare_object(&type_acl_auth_method, m, e) < 0 || check_default(m, t, e) < 0 ||
            check_ttl(m, server_cfg(w->s), e) < 0 || check_keys(m->config, e) < 0)
            return e->code;
        m->create_index = old != NULL ? old->create_index : 0;
        list_add(w->ctx, put->acl_auth_methods, m);
    }
    w->memo = put;
    w->in.acl_auth_method_upsert = put;
    return 0;
}

static void
reply_methods(struct write *w, uint64_t index, struct fsm_result *res)
{
    const struct acl_auth_method_upsert *put = w->memo;
    struct acl_auth_methods_response resp = {.auth_methods = put->acl_auth_methods, .index = index};

    (void)res;
    for (size_t i = 0; i < resp.auth_methods.n; i++)
        acl_stamp(&type_acl_auth_method, resp.auth_methods.v[i], index);
    rpc_reply(w->call, &resp);
}

const struct write_row write_acl_upsert_auth_methods = {prepare_methods, reply_methods};

static int
prepare_delete_methods(struct write *w, struct state_txn *t, struct err *e)
{
    (void)t;
    w->in.acl_auth_method_delete = codec_clone(w->ctx, &type_object_delete, w->req);
    return acl_endpoint_on(w->s, e);
}

const struct write_row write_acl_delete_auth_methods = {prepare_delete_methods, write_reply_index,
                                                        .here = true};

/* --- binding rules --- */

static int
take_stored_rule(struct acl_binding_rule *r, const struct acl_binding_rule *old, struct err *e)
{
    if (!str_empty(r->auth_method) && !str_eq(r->auth_method, old->auth_method))
        return err_set(e, -ERR_INVALID,
                       "cannot update auth method for binding rule, create a new "
                       "rule instead");
    r->auth_method = old->auth_method;
    r->bind_type = str_empty(r->bind_type) ? old->bind_type : r->bind_type;
    if (str_empty(r->bind_name) && !str_eq(r->bind_type, ACL_BIND_MANAGEMENT))
        r->bind_name = old->bind_name;
    return 0;
}

static int
check_selector(const char *text, struct err *e)
{
    auto_mem void *tmp = mem_ctx("selector");

    if (str_empty(text) || filter_compile(tmp, &type_acl_login_claims, text, e) != NULL)
        return 0;
    return err_prefix(e, "Selector is invalid");
}

static int
prepare_rule(struct write *w, struct acl_binding_rule *r, struct state_txn *t, struct err *e)
{
    const struct acl_binding_rule *old =
        !str_empty(r->id) ? state_acl_binding_rule(t, w->ctx, r->id) : NULL;
    int64_t now = env_wall_ns(server_env(w->s));

    if (!str_empty(r->id) && old == NULL)
        return err_set(e, -ERR_INVALID, "cannot find binding rule %.64s", r->id);
    if (old != NULL && take_stored_rule(r, old, e) < 0)
        return e->code;
    if (old == NULL)
        r->id = write_new_id(w);
    r->create_time = old != NULL ? old->create_time : now;
    r->modify_time = now;
    if (acl_prepare_object(&type_acl_binding_rule, r, e) < 0 || check_selector(r->selector, e) < 0)
        return e->code;
    if (state_acl_auth_method(t, w->ctx, r->auth_method) == NULL)
        return err_set(e, -ERR_INVALID, "auth-method \"%.128s\" not found", r->auth_method);
    r->create_index = old != NULL ? old->create_index : 0;
    return 0;
}

static int
prepare_rules(struct write *w, struct state_txn *t, struct err *e)
{
    const struct acl_binding_rule_upsert *req = w->req;
    struct acl_binding_rule_upsert *put = type_new(w->ctx, &type_acl_binding_rule_upsert);

    if (acl_endpoint_on(w->s, e) < 0)
        return e->code;
    if (req->acl_binding_rules.n == 0)
        return err_set(e, -ERR_INVALID, "must specify at least one binding rule");
    if (codec_check(&type_acl_binding_rule_upsert, req, e) < 0)
        return e->code;
    for (size_t i = 0; i < req->acl_binding_rules.n; i++) {
        struct acl_binding_rule *r =
            codec_clone(w->ctx, &type_acl_binding_rule, req->acl_binding_rules.v[i]);
        if (prepare_rule(w, r, t, e) < 0)
            return e->code;
        list_add(w->ctx, put->acl_binding_rules, r);
    }
    w->memo = put;
    w->in.acl_binding_rule_upsert = put;
    return 0;
}

static void
reply_rules(struct write *w, uint64_t index, struct fsm_result *res)
{
    const struct acl_binding_rule_upsert *put = w->memo;
    struct acl_binding_rules_response resp = {.binding_rules = put->acl_binding_rules,
                                              .index = index};

    (void)res;
    for (size_t i = 0; i < resp.binding_rules.n; i++)
        acl_stamp(&type_acl_binding_rule, resp.binding_rules.v[i], index);
    rpc_reply(w->call, &resp);
}

const struct write_row write_acl_upsert_binding_rules = {prepare_rules, reply_rules};

static int
prepare_delete_rules(struct write *w, struct state_txn *t, struct err *e)
{
    (void)t;
    w->in.acl_binding_rule_delete = codec_clone(w->ctx, &type_object_delete, w->req);
    return acl_endpoint_on(w->s, e);
}

const struct write_row write_acl_delete_binding_rules = {prepare_delete_rules, write_reply_index,
                                                         .here = true};
