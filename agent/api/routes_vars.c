/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: variables and their locks, and the key ring, where path and query are not all.
 */
#include <inttypes.h>

#include "agent/api/api.h"
#include "agent/limits.h"
#include "api/vars/vars.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

#define LOCK_RENEW "lock-renew"

/* --- variables --- */

static void
variable_done(struct request *a, const void *resp)
{
    const struct variable_response *r = resp;

    a->secrets = true;
    reply_object(a, &type_variable, r->variable, r->meta, "variable not found");
}

static void
routes_var_get(struct request *a)
{
    struct variable_request *r = mem_new(a, struct variable_request);

    r->path = a->id;
    call_server(a, RPC_VARIABLES_READ, r, variable_done);
}

/* Answers a conflict as Nomad does: JSON, which says that it is text. */
static void
variable_conflict(struct request *a, const struct variable *v)
{
    struct buf b = BUF_INIT(API_ANSWER_MAX);

    json_encode(&b, &type_variable, v, 0);
    http_reply(a->req, 409, "text/plain; charset=utf-8", b.data, b.len);
    buf_done(&b);
}

static void
variable_applied(struct request *a, const void *resp)
{
    const struct variable_apply_response *r = resp;
    const struct variable_apply_request *req = a->user;

    reply_index(a, r->index);
    a->secrets = true;
    if (r->conflict)
        variable_conflict(a, r->variable);
    else if (str_eq(req->op, VAR_DELETE))
        http_reply(a->req, 204, NULL, "", 0);
    else
        reply_json(a, &type_variable, r->variable);
}

/* Reads "cas". False: it was answered. */
static bool
take_cas(struct request *a, struct variable_apply_request *r)
{
    const char *cas = http_query(a->req, "cas");

    if (cas == NULL)
        return true;
    if (num_parse_u64(cas, &r->modify_index) < 0)
        reply_fail(a, 400, "can not parse cas: \"%.40s\" is no number", cas);
    else
        r->cas = true;
    return r->cas;
}

static void
variable_call(struct request *a, struct variable_apply_request *r)
{
    r->path = a->id;
    a->user = r;
    call_server(a, RPC_VARIABLES_APPLY, r, variable_applied);
}

/* --- locks --- */

/* The operation that the query asks for, "": none. NULL: more than one, which was answered. */
static const char *
lock_op(struct request *a)
{
    static const char *const ops[] = {VAR_LOCK_ACQUIRE, LOCK_RENEW, VAR_LOCK_RELEASE};
    const char *op = "";

    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        if (http_query(a->req, ops[i]) == NULL)
            continue;
        if (*op != '\0') {
            reply_fail(a, 400, "multiple lock operations");
            return NULL;
        }
        op = ops[i];
    }
    if (*op == '\0' || http_query(a->req, "cas") == NULL)
        return op;
    reply_fail(a, 400, "cas does not go with an operation on a lock");
    return NULL;
}

/* Answers 409 to who has lost the lock. */
static bool
lock_refused(struct request *a, const struct err *e)
{
    if (e->code != -ERR_CONFLICT)
        return false;
    reply_refuse(a, 409, e);
    return true;
}

static void
lock_renewed(struct request *a, const void *resp)
{
    const struct variable_renew_response *r = resp;

    reply_index(a, r->index);
    reply_json(a, &type_variable_metadata, r->variable);
}

static void
lock_renew(struct request *a, const struct variable *v)
{
    struct variable_renew_request *r = mem_new(a, struct variable_renew_request);

    r->path = a->id;
    r->lock_id = v->lock != NULL ? v->lock->id : NULL;
    a->on_error = lock_refused;
    call_server(a, RPC_VARIABLES_RENEW_LOCK, r, lock_renewed);
}

/* --- writes --- */

static void
routes_var_put(struct request *a)
{
    struct variable_apply_request *r = mem_new(a, struct variable_apply_request);
    const char *op = lock_op(a);

    if (op == NULL || !take_cas(a, r))
        return;
    r->op = *op == '\0' ? VAR_SET : op;
    r->variable = request_body(a, &type_variable, false);
    if (r->variable == NULL)
        return;
    if (!str_empty(r->variable->namespace))
        a->env.namespace = r->variable->namespace;
    if (str_eq(op, LOCK_RENEW))
        lock_renew(a, r->variable);
    else
        variable_call(a, r);
}

static void
routes_var_delete(struct request *a)
{
    struct variable_apply_request *r = mem_new(a, struct variable_apply_request);

    r->op = VAR_DELETE;
    if (take_cas(a, r))
        variable_call(a, r);
}

/* --- the key ring --- */

static void
keyring_rotated(struct request *a, const void *resp)
{
    const struct keyring_rotate_response *r = resp;

    reply_index(a, r->index);
    reply_json(a, &type_keyring_rotate_response, r);
}

static void
routes_keyring_rotate(struct request *a)
{
    struct keyring_rotate_request *r = mem_new(a, struct keyring_rotate_request);

    r->algorithm = http_query(a->req, "algo");
    r->full = http_query(a->req, "full") != NULL;
    if (param_int(a, "publish_time", &r->publish_time))
        call_server(a, RPC_KEYRING_ROTATE, r, keyring_rotated);
}

static void
keyring_removed(struct request *a, const void *resp)
{
    reply_index(a, ((const struct write_response *)resp)->index);
    http_reply(a->req, 200, NULL, "", 0);
}

static void
routes_keyring_delete(struct request *a)
{
    struct keyring_delete_request *r = mem_new(a, struct keyring_delete_request);

    r->key_id = a->id;
    if (param_bool(a, "force", &r->force))
        call_server(a, RPC_KEYRING_DELETE, r, keyring_removed);
}

static void
public_done(struct request *a, const void *resp)
{
    const struct keyring_public_response *r = resp;

    reply_meta(a, r->meta);
    http_header_add(a->req, "Cache-Control", mem_printf(a, "max-age=%" PRId64, r->max_age));
    struct buf b = BUF_INIT(API_ANSWER_MAX);
    buf_puts(&b, "{\"keys\":");
    json_encode_list(&b, &type_json_web_key, (const void *const *)r->keys.v, r->keys.n, 0);
    buf_putc(&b, '}');
    reply_text(a, &b, "application/json");
}

static void
routes_jwks(struct request *a)
{
    call_server(a, RPC_KEYRING_LIST_PUBLIC, mem_new(a, struct empty), public_done);
}

static void
discovery_done(struct request *a, const void *resp)
{
    reply_json(a, &type_oidc_config, resp);
}

static void
routes_discovery(struct request *a)
{
    call_server(a, RPC_KEYRING_GET_CONFIG, mem_new(a, struct empty), discovery_done);
}

const struct route routes_vars[] = {
    {VERB_GET, "/v1/var/", "", routes_var_get, RPC_VARIABLES_READ, BY_SERVER},
    {VERB_WRITE, "/v1/var/", "", routes_var_put, RPC_VARIABLES_APPLY, BY_SERVER},
    {VERB_DELETE, "/v1/var/", "", routes_var_delete, RPC_VARIABLES_APPLY, BY_SERVER},
    {VERB_WRITE, "/v1/operator/keyring/rotate", NULL, routes_keyring_rotate, RPC_KEYRING_ROTATE,
     BY_SERVER},
    {VERB_DELETE, "/v1/operator/keyring/key/", "", routes_keyring_delete, RPC_KEYRING_DELETE,
     BY_SERVER},
    {VERB_GET, "/.well-known/jwks.json", NULL, routes_jwks, RPC_KEYRING_LIST_PUBLIC, BY_SERVER},
    {VERB_GET, "/.well-known/openid-configuration", NULL, routes_discovery, RPC_KEYRING_GET_CONFIG,
     BY_SERVER},
    ROUTES_END,
};
