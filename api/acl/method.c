/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of login and their binding rules (see method.h): templates, then the checks of both.
 */
#include "api/acl/method.h"

#include <string.h>

#include "api/limits.h"
#include "api/object.h"
#include "common/buf.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"

/* --- templates --- */

const char *
acl_template(const void *ctx, const char *text, acl_template_fn *value, const void *arg,
             struct err *e)
{
    auto_buf struct buf b = BUF_INIT(OBJECT_META_BYTES_MAX);

    for (const char *p = text; *p != '\0';) {
        if (str_prefix(p, "$${")) {
            buf_puts(&b, "${");
            p += 3;
        } else if (str_prefix(p, "${")) {
            const char *start = p + 2 + strspn(p + 2, " "), *end = strchr(start, '}');
            size_t n = strcspn(start, " }");
            const char *name = mem_strndup(ctx, start, n);
            const char *to = end != NULL && start + n + strspn(start + n, " ") == end
                                 ? value(ctx, arg, name)
                                 : NULL;
            if (to == NULL) {
                err_set(e, -ERR_INVALID, "\"%.128s\" has no value in the template \"%.128s\"", name,
                        text);
                return NULL;
            }
            buf_puts(&b, to);
            p = end + 1;
        } else {
            buf_putc(&b, *p++);
        }
    }
    if (buf_error(&b) == 0)
        return mem_strdup(ctx, buf_str(&b));
    err_set(e, -ERR_LIMIT, "the template \"%.128s\" becomes too long", text);
    return NULL;
}

static bool
is_claim(const char *name)
{
    return str_prefix(name, "value.") && name[strlen("value.")] != '\0';
}

/* The names that a template may have. */
static const char *
any_claim(const void *ctx, const void *arg, const char *name)
{
    (void)ctx;
    (void)arg;
    return is_claim(name) ? "" : NULL;
}

static const char *
any_of_method(const void *ctx, const void *arg, const char *name)
{
    bool method = str_eq(name, "auth_method_type") || str_eq(name, "auth_method_name");

    (void)ctx;
    (void)arg;
    return method || is_claim(name) ? "" : NULL;
}

static int
check_template(const char *text, acl_template_fn *names, struct err *e)
{
    auto_mem void *tmp = mem_ctx("template");

    return acl_template(tmp, text, names, NULL, e) != NULL ? 0 : e->code;
}

/* --- methods --- */

int64_t
acl_leeway(const char *text)
{
    int64_t ns = 0;

    (void)duration_parse(str_or(text, "0"), &ns);
    return ns;
}

static int
check_leeway(const char *name, const char *text, struct err *e)
{
    int64_t ns;

    if (str_empty(text) || duration_parse(text, &ns) == 0)
        return 0;
    return err_set(e, -ERR_INVALID, "%s \"%.40s\" is no duration: write it as 30s", name, text);
}

int
acl_url_check(const char *name, const char *url, struct err *e)
{
    if (str_empty(url))
        return 0;
    if (strlen(url) > ACL_URL_MAX)
        return err_set(e, -ERR_INVALID, "%s has more than %d bytes", name, ACL_URL_MAX);
    if (!str_prefix(url, "https://") && !str_prefix(url, "http://"))
        return err_set(e, -ERR_INVALID, "%s \"%.100s\" must begin with https:// (or http://)", name,
                       url);
    for (const char *p = url; *p != '\0'; p++)
        if (*p <= ' ' || *p >= 127 || strchr("@\"<>\\^`{|}#", *p) != NULL)
            return err_set(e, -ERR_INVALID,
                           "%s \"%.100s\" may have no blank, \"%c\" or the like: write it "
                           "percent-encoded, without user and fragment",
                           name, url, *p > ' ' && *p < 127 ? *p : '?');
    return 0;
}

static int
check_algorithms(const struct str_list *l, struct err *e)
{
    static const char *const known[] = {"RS256", "RS384", "RS512", "ES256", "ES384",
                                        "ES512", "PS256", "PS384", "PS512", "EdDSA"};

    for (size_t i = 0; i < l->n; i++) {
        bool is = false;
        for (size_t k = 0; k < ARRAY_LEN(known); k++)
            is |= str_eq(l->v[i], known[k]);
        if (!is)
            return err_set(e, -ERR_INVALID,
                           "signing algorithm \"%.40s\" is none of RS256, RS384, RS512, ES256, "
                           "ES384, ES512, PS256, PS384, PS512, EdDSA",
                           str_or(l->v[i], ""));
    }
    return 0;
}

/* A name that templates and selectors can say. */
static bool
target_is_plain(const char *s)
{
    return !str_empty(s) && strlen(s) <= OBJECT_NAME_MAX &&
           s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] == '\0';
}

static int
check_mappings(const char *name, const struct str_map *m, struct err *e)
{
    if (m->n > ACL_CLAIMS_MAX)
        return err_set(e, -ERR_INVALID, "%s has more than %d claims", name, ACL_CLAIMS_MAX);
    for (size_t i = 0; i < m->n; i++) {
        if (str_empty(m->v[i].k) || strlen(m->v[i].k) > OBJECT_TEXT_MAX)
            return err_set(e, -ERR_INVALID, "%s: the name of a claim has 1 to %d bytes", name,
                           OBJECT_TEXT_MAX);
        if (!target_is_plain(m->v[i].v))
            return err_set(e, -ERR_INVALID,
                           "%s: claim \"%.64s\" becomes \"%.64s\", which is no name of letters, "
                           "digits, _ and -",
                           name, m->v[i].k, str_or(m->v[i].v, ""));
    }
    return 0;
}

/* Members that only the flow through a browser has. */
static int
refuse_oidc(const struct acl_auth_method_config *c, struct err *e)
{
    const char *name = !str_empty(c->oidc_client_id)       ? "OIDCClientID"
                       : !str_empty(c->oidc_client_secret) ? "OIDCClientSecret"
                       : c->oidc_enable_pkce               ? "OIDCEnablePKCE"
                       : c->oidc_disable_user_info         ? "OIDCDisableUserInfo"
                       : c->oidc_scopes.n > 0              ? "OIDCScopes"
                       : c->allowed_redirect_uris.n > 0    ? "AllowedRedirectURIs"
                                                           : NULL;

    return name == NULL ? 0
                        : err_set(e, -ERR_INVALID,
                                  "%s is of methods of type OIDC, which are not here yet: leave it "
                                  "out, a method of type JWT has no use for it",
                                  name);
}

static int
check_config(const struct acl_auth_method_config *c, struct err *e)
{
    if (c == NULL)
        return err_set(e, -ERR_INVALID, "Config is missing");
    if (c->jwt_validation_pub_keys.n == 0 && str_empty(c->jwks_url) &&
        str_empty(c->oidc_discovery_url))
        return err_set(e, -ERR_INVALID,
                       "JWT needs one of JWTValidationPubKeys, JWKSURL and OIDCDiscoveryURL");
    if (refuse_oidc(c, e) < 0 || acl_url_check("JWKSURL", c->jwks_url, e) < 0 ||
        acl_url_check("OIDCDiscoveryURL", c->oidc_discovery_url, e) < 0 ||
        check_algorithms(&c->signing_algs, e) < 0 ||
        check_leeway("ExpirationLeeway", c->expiration_leeway, e) < 0 ||
        check_leeway("NotBeforeLeeway", c->not_before_leeway, e) < 0 ||
        check_leeway("ClockSkewLeeway", c->clock_skew_leeway, e) < 0 ||
        check_mappings("ClaimMappings", &c->claim_mappings, e) < 0 ||
        check_mappings("ListClaimMappings", &c->list_claim_mappings, e) < 0)
        return e->code;
    return 0;
}

static int
check_method(const struct acl_auth_method *m, struct err *e)
{
    int64_t ttl = 0;

    if (str_eq(m->type, ACL_METHOD_OIDC))
        return err_set(e, -ERR_INVALID,
                       "type OIDC, which logs in through a browser, is not here yet: use type JWT "
                       "with OIDCDiscoveryURL and a token of that provider");
    if (!str_eq(m->type, ACL_METHOD_JWT))
        return err_set(e, -ERR_INVALID, "invalid type \"%.40s\": it must be JWT",
                       str_or(m->type, ""));
    if (!str_eq(m->token_locality, ACL_METHOD_LOCAL) &&
        !str_eq(m->token_locality, ACL_METHOD_GLOBAL))
        return err_set(e, -ERR_INVALID, "invalid token locality \"%.40s\": it is local or global",
                       str_or(m->token_locality, ""));
    if (duration_parse(str_or(m->max_token_ttl, ""), &ttl) < 0 || ttl <= 0)
        return err_set(e, -ERR_INVALID, "invalid MaxTokenTTL \"%.40s\": write it as 8h",
                       str_or(m->max_token_ttl, ""));
    if (strlen(str_or(m->token_name_format, "")) > OBJECT_TEXT_MAX)
        return err_set(e, -ERR_INVALID, "TokenNameFormat has more than %d bytes", OBJECT_TEXT_MAX);
    if (check_template(str_or(m->token_name_format, ""), any_of_method, e) < 0)
        return err_prefix(e, "TokenNameFormat");
    return check_config(m->config, e);
}

int
acl_auth_method_check(const struct acl_auth_method *m, bool deleted, struct err *e)
{
    if (object_check_name(m->name, e) == 0 && !deleted)
        (void)check_method(m, e);
    return e->code == 0 ? 0
                        : err_prefix(e, "ACL auth method \"%.128s\" invalid", str_or(m->name, ""));
}

/* --- binding rules --- */

static int
check_rule(const struct acl_binding_rule *r, struct err *e)
{
    bool management = str_eq(r->bind_type, ACL_BIND_MANAGEMENT);

    if (object_check_texts(r->description, NULL, e) < 0)
        return e->code;
    if (str_empty(r->auth_method))
        return err_set(e, -ERR_INVALID, "auth method is missing");
    if (!management && !str_eq(r->bind_type, ACL_BIND_ROLE) &&
        !str_eq(r->bind_type, ACL_BIND_POLICY))
        return err_set(e, -ERR_INVALID,
                       "unsupported bind type \"%.40s\": it is role, policy or management",
                       str_or(r->bind_type, ""));
    if (management != str_empty(r->bind_name))
        return err_set(e, -ERR_INVALID,
                       management ? "bind name should be empty, as management has none"
                                  : "bind name is missing");
    if (strlen(str_or(r->bind_name, "")) > OBJECT_TEXT_MAX)
        return err_set(e, -ERR_INVALID, "bind name has more than %d bytes", OBJECT_TEXT_MAX);
    if (check_template(str_or(r->bind_name, ""), any_claim, e) < 0)
        return err_prefix(e, "bind name");
    return 0;
}

int
acl_binding_rule_check(const struct acl_binding_rule *r, bool deleted, struct err *e)
{
    if (!uuid_valid(str_or(r->id, "")))
        err_set(e, -ERR_INVALID, "UUID must be 36 characters");
    else if (!deleted)
        (void)check_rule(r, e);
    return e->code == 0 ? 0 : err_prefix(e, "ACL binding rule invalid");
}
