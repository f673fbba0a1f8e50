/* SPDX-License-Identifier: Apache-2.0
 *
 * Logins (see login.h): times, audience and issuer; then claims by name; then what rules make of
 * them.
 */
#include "server/jwt/login.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "api/acl/method.h"
#include "api/filter/filter.h"
#include "api/object.h"
#include "common/buf.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/limits.h"

enum { LEEWAY_S = 150, SKEW_S = 60 };

#define TIME_MAX_S INT64_C(253402300799) /* the end of the year 9999 */

/* --- times --- */

/* Seconds since the epoch; 0: the claim is not there. */
static int
time_of(const struct value *claims, const char *name, int64_t *ret, struct err *e)
{
    const struct value *v = value_get(claims, name);

    *ret = 0;
    if (v == NULL || v->kind == VALUE_NULL)
        return 0;
    if (v->kind == VALUE_INT && v->i >= 0 && v->i <= TIME_MAX_S)
        *ret = v->i;
    else if (v->kind == VALUE_FLOAT && v->f >= 0 && v->f <= (double)TIME_MAX_S)
        *ret = (int64_t)v->f;
    else
        return err_set(e, -ERR_FORBIDDEN, "its claim \"%s\" is no time", name);
    return 0;
}

/* The seconds of a leeway; `dflt` where it is not set, 0 where it is negative. */
static int64_t
leeway_s(const char *text, int64_t dflt)
{
    int64_t ns = acl_leeway(text);

    return ns == 0 ? dflt : ns < 0 ? 0 : ns / NS_PER_S;
}

static int
check_times(const struct acl_auth_method_config *c, const struct value *claims, int64_t now,
            struct err *e)
{
    int64_t exp, nbf, iat, skew = leeway_s(c->clock_skew_leeway, SKEW_S);

    if (time_of(claims, "exp", &exp, e) < 0 || time_of(claims, "nbf", &nbf, e) < 0 ||
        time_of(claims, "iat", &iat, e) < 0)
        return e->code;
    if (exp == 0 && nbf == 0 && iat == 0)
        return err_set(e, -ERR_FORBIDDEN, "it has none of exp, nbf and iat");
    if (exp == 0)
        exp = (iat > nbf ? iat : nbf) + leeway_s(c->expiration_leeway, LEEWAY_S);
    if (nbf == 0)
        nbf = iat != 0 ? iat : exp - leeway_s(c->not_before_leeway, LEEWAY_S);
    if (now > exp + skew)
        return err_set(e, -ERR_FORBIDDEN, "it has expired %" PRId64 " s ago", now - exp);
    if (now < nbf - skew)
        return err_set(e, -ERR_FORBIDDEN, "it is not valid for another %" PRId64 " s", nbf - now);
    if (now < iat - skew)
        return err_set(e, -ERR_FORBIDDEN, "it was issued %" PRId64 " s in the future", iat - now);
    return 0;
}

/* --- audience and issuer --- */

static bool
is_for(const struct str_list *audiences, const struct value *aud)
{
    if (aud == NULL)
        return false;
    if (aud->kind == VALUE_STRING)
        return str_list_has(audiences, aud->str.s);
    for (size_t i = 0; aud->kind == VALUE_LIST && i < aud->list.n; i++)
        if (aud->list.v[i]->kind == VALUE_STRING && str_list_has(audiences, aud->list.v[i]->str.s))
            return true;
    return false;
}

int
login_check(const struct acl_auth_method_config *c, const struct value *claims, int64_t now_ns,
            struct err *e)
{
    const struct value *iss = value_get(claims, "iss");
    const char *issuer = iss != NULL && iss->kind == VALUE_STRING ? iss->str.s : "";

    if (check_times(c, claims, now_ns / NS_PER_S, e) < 0)
        return e->code;
    if (c->bound_audiences.n > 0 && !is_for(&c->bound_audiences, value_get(claims, "aud")))
        return err_set(e, -ERR_FORBIDDEN, "its audience is none of BoundAudiences");
    if (c->bound_issuer.n > 0 && !str_list_has(&c->bound_issuer, issuer))
        return err_set(e, -ERR_FORBIDDEN, "its issuer \"%.100s\" is none of BoundIssuer", issuer);
    return 0;
}

/* --- claims --- */

static const struct value *
child_of(const struct value *v, const char *name)
{
    size_t i = 0, n = strlen(name);

    if (v->kind == VALUE_MAP)
        return value_get(v, name);
    if (v->kind != VALUE_LIST || n == 0 || n > 6 || strspn(name, "0123456789") != n)
        return NULL;
    for (const char *p = name; *p != '\0'; p++)
        i = i * 10 + (size_t)(*p - '0');
    return i < v->list.n ? v->list.v[i] : NULL;
}

/* A claim by its name, or by a JSON pointer (RFC 6901). */
static const struct value *
claim_of(const void *ctx, const struct value *claims, const char *source)
{
    const struct value *v = claims;

    if (source[0] != '/')
        return value_get(claims, source);
    for (const char *p = source; v != NULL && *p == '/';) {
        size_t n = strcspn(p + 1, "/"), k = 0;
        char *name = mem_strndup(ctx, p + 1, n);
        for (size_t i = 0; i < n; i++, k++) {
            bool escaped = name[i] == '~' && (name[i + 1] == '0' || name[i + 1] == '1');
            name[k] = !escaped ? name[i] : name[i + 1] == '0' ? '~' : '/';
            i += escaped ? 1 : 0;
        }
        name[k] = '\0';
        v = child_of(v, name);
        p += 1 + n;
    }
    return v;
}

/* The text of a plain value; NULL: it is none. */
static const char *
plain_text(const void *ctx, const struct value *v)
{
    switch (v->kind) {
    case VALUE_STRING:
        return v->str.s;
    case VALUE_BOOL:
        return v->b ? "true" : "false";
    case VALUE_INT:
        return mem_printf(ctx, "%" PRId64, v->i);
    case VALUE_FLOAT:
        return v->f >= -9e18 && v->f <= 9e18 ? mem_printf(ctx, "%" PRId64, (int64_t)v->f) : NULL;
    default:
        return NULL;
    }
}

static const char *
value_text(const void *ctx, const struct value *v)
{
    auto_buf struct buf b = BUF_INIT(LOGIN_CLAIM_MAX);

    if (v->kind != VALUE_LIST)
        return plain_text(ctx, v);
    json_encode_value(&b, v, 0);
    return buf_error(&b) == 0 ? mem_strdup(ctx, buf_str(&b)) : NULL;
}

static int
add_list(const void *ctx, struct acl_login_claims *l, const char *name, const struct value *v)
{
    struct strs_map *m = &l->list;
    __auto_type row = map_put(ctx, *m, name);
    size_t n = v->kind == VALUE_LIST ? v->list.n : 1;

    row->v = (__typeof__(row->v)){NULL, 0};
    for (size_t i = 0; i < n; i++) {
        const char *text = plain_text(ctx, v->kind == VALUE_LIST ? v->list.v[i] : v);
        if (text == NULL || row->v.n >= LOGIN_LIST_MAX)
            return -ERR_FORBIDDEN;
        if (*text != '\0')
            list_add(ctx, row->v, text);
    }
    return 0;
}

struct acl_login_claims *
login_claims(const void *ctx, const struct acl_auth_method_config *c, const struct value *claims,
             struct err *e)
{
    struct acl_login_claims *l = type_new(ctx, &type_acl_login_claims);

    for (size_t i = 0; i < c->claim_mappings.n; i++) {
        const char *source = c->claim_mappings.v[i].k;
        const struct value *v = claim_of(l, claims, source);
        if (v == NULL || v->kind == VALUE_NULL)
            continue;
        const char *text = value_text(l, v);
        if (text == NULL || strlen(text) > LOGIN_CLAIM_MAX) {
            err_set(e, -ERR_FORBIDDEN, "its claim \"%.100s\" is no plain value", source);
            return NULL;
        }
        str_map_set(l, &l->value, c->claim_mappings.v[i].v, text);
    }
    for (size_t i = 0; i < c->list_claim_mappings.n; i++) {
        const char *source = c->list_claim_mappings.v[i].k;
        const struct value *v = claim_of(l, claims, source);
        if (v == NULL || v->kind == VALUE_NULL)
            continue;
        if (add_list(l, l, c->list_claim_mappings.v[i].v, v) < 0) {
            err_set(e, -ERR_FORBIDDEN, "its claim \"%.100s\" is no list of at most %d plain values",
                    source, LOGIN_LIST_MAX);
            return NULL;
        }
    }
    return l;
}

/* --- rules --- */

/* The claim that a template names; that of no mapping is empty as well. */
static const char *
claim_value(const void *ctx, const void *arg, const char *name)
{
    const struct acl_login_claims *l = arg;

    (void)ctx;
    if (!str_prefix(name, "value."))
        return NULL;
    __auto_type row = map_get(l->value, name + strlen("value."));
    return row != NULL ? str_or(row->v, "") : "";
}

static const char *
claim_in_lower_case(const void *ctx, const void *arg, const char *name)
{
    const char *text = claim_value(ctx, arg, name);
    char *lower = text != NULL ? mem_strdup(ctx, text) : NULL;

    for (char *p = lower; p != NULL && *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    return lower;
}

static bool
rule_is_for(const void *ctx, const struct acl_binding_rule *r, const struct acl_login_claims *l)
{
    struct err ignored = ERR_INIT;

    if (str_empty(r->selector))
        return true;
    const struct filter *f = filter_compile(ctx, &type_acl_login_claims, r->selector, &ignored);
    return f != NULL && filter_match(f, l);
}

int
login_bind(const void *ctx, const struct acl_binding_rule *r, const struct acl_login_claims *l,
           struct login_rights *to, struct err *e)
{
    if (!rule_is_for(ctx, r, l))
        return 0;
    if (str_eq(r->bind_type, ACL_BIND_MANAGEMENT)) {
        to->management = true;
        return 0;
    }
    struct err why = ERR_INIT;
    const char *name = acl_template(ctx, str_or(r->bind_name, ""), claim_in_lower_case, l, &why);
    if (name == NULL || object_check_name(name, &why) < 0)
        return err_set(e, -ERR_FORBIDDEN, "binding rule %s: %.300s", str_or(r->id, ""), why.text);
    struct str_list *names = str_eq(r->bind_type, ACL_BIND_ROLE) ? &to->roles : &to->policies;
    if (!str_list_has(names, name))
        list_add(ctx, *names, name);
    return 0;
}

/* --- the token --- */

struct naming {
    const struct acl_auth_method *m;
    const struct acl_login_claims *l;
};

static const char *
name_part(const void *ctx, const void *arg, const char *name)
{
    const struct naming *x = arg;

    return str_eq(name, "auth_method_type")   ? str_or(x->m->type, "")
           : str_eq(name, "auth_method_name") ? str_or(x->m->name, "")
                                              : claim_value(ctx, x->l, name);
}

const char *
login_token_name(const void *ctx, const struct acl_auth_method *m, const struct acl_login_claims *l,
                 struct err *e)
{
    const struct naming x = {m, l};
    struct err why = ERR_INIT;
    const char *name =
        acl_template(ctx, str_or(m->token_name_format, ACL_METHOD_TOKEN_NAME), name_part, &x, &why);

    if (name == NULL)
        err_set(e, -ERR_FORBIDDEN, "the name of its token: %.300s", why.text);
    return name;
}
