/* SPDX-License-Identifier: Apache-2.0
 *
 * ACL.Why: which rule of which policy of a token meets a need, or does not.
 */
#include "server/rpc/acl_int.h"

/* Names the policies that the token has and nobody has written, if any. */
static const char *
say_missing(const void *ctx, const struct caller *c)
{
    char *text = NULL;

    for (size_t i = 0; c->token != NULL && i < c->token->policies.n; i++) {
        const char *name = c->token->policies.v[i];
        if (!caller_has_policy(c, name))
            text = mem_printf(ctx, "%s; policy \"%s\" does not exist", str_or(text, ""), name);
    }
    return str_or(text, "");
}

static void
why_explain(struct read *r, const struct caller *of, const struct acl_need *need,
            struct acl_why *why)
{
    const struct acl_why_request *req = r->req;
    const char *bad = NULL;
    const struct acl_source *v = acl_sources(r->ctx, &of->policies, &bad);

    why->allowed = req->rows || acl_allows(of->rights, need, req->name, req->path);
    if (of->token != NULL && acl_token_ended(of->token, env_wall_ns(server_env(r->s)))) {
        why->allowed = false;
        why->why = "the token has expired";
    } else if (of->too_much != NULL) {
        why->why = mem_printf(r->ctx,
                              "policy \"%s\" is too much: the token has more than %d bytes of "
                              "policies, and so no right at all",
                              of->too_much, ACL_SUM_MAX);
    } else if (req->rows) {
        why->why = "anybody may ask, and is shown what the token may see";
    } else if (acl_is_management(of->rights) && why->allowed) {
        why->why = "a management token may do everything";
    } else if (v == NULL) {
        why->why = mem_printf(r->ctx,
                              "policy \"%s\" is not understood, so the token has no right at all",
                              bad);
    } else {
        why->why = mem_printf(r->ctx, "%s%s",
                              acl_why(r->ctx, v, of->policies.n, need, req->name, req->path),
                              why->allowed ? "" : say_missing(r->ctx, of));
    }
}

static int
why_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct acl_why_request *req = r->req;
    const struct caller *c = read_caller(r);
    struct acl_why_response *resp = read_resp(r);
    struct acl_need need;
    struct err none = ERR_INIT;

    if (acl_endpoint_on(r->s, e) < 0)
        return e->code;
    if (!acl_is_management(c->rights) && !str_eq(c->accessor, str_or(req->accessor_id, "")))
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    if (acl_need_parse(str_or(req->need, ""), &need, e) < 0)
        return e->code;
    struct caller *of = caller_by_accessor(t, str_or(req->accessor_id, ""), &none);
    r->index = state_index(t, STATE_RIGHTS);
    if (of == NULL)
        return err_set(e, -ERR_NOT_FOUND, "ACL token not found");
    resp->why = type_new(r->ctx, &type_acl_why);
    resp->why->needs = req->need;
    resp->why->name = req->name;
    why_explain(r, of, &need, resp->why);
    caller_unref(of);
    return 0;
}

const struct read_row read_acl_why = {.tables = STATE_RIGHTS, .run = why_run};
