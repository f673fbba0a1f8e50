/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: GET /v1/acl/why?accessor=&method=&path=, which says why a token may make a request, or
 * why not. The need of its route is found here; a server holds it against the token's policies.
 */
#include <string.h>

#include "agent/api/api.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"

static const enum http_method methods[] = {METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_PUT,
                                           METHOD_DELETE};

/* METHOD_OTHER: there is none of that name. */
static enum http_method
find_method(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (str_eq(name, http_method_name(methods[i])))
            return methods[i];
    return METHOD_OTHER;
}

/* Returns a parameter of "/path?name=value&...", as it is written there; NULL: absent. */
static const char *
find_parameter(const void *ctx, const char *target, const char *name)
{
    const char *at = strchr(target, '?');
    size_t n = strlen(name);

    for (; at != NULL; at = strchr(at, '&')) {
        at++;
        if (strncmp(at, name, n) == 0 && at[n] == '=')
            return mem_strndup(ctx, at + n + 1, strcspn(at + n + 1, "&"));
    }
    return NULL;
}

/* Sets the word of the route, and the name to ask about; req->name is the namespace before. */
static void
fill_need(const struct request *probe, const struct route *r, const char *target,
          struct acl_why_request *req)
{
    const struct rpc_method *m = r->cap == BY_SERVER ? rpc_method_by_id(r->rpc) : NULL;
    const char *word = m != NULL ? m->cap : r->cap;
    struct acl_need need;
    struct err e = ERR_INIT;
    int rc = acl_need_parse(word, &need, &e);
    ASSERT(rc == 0);
    bool named = need.kind == ACL_NAMESPACE || need.kind == ACL_NODE_POOL ||
                 need.kind == ACL_HOST_VOLUME || need.kind == ACL_VARIABLE;
    bool space = need.kind == ACL_VARIABLE ||
                 (need.kind == ACL_NAMESPACE && (m == NULL || (m->flags & RPC_NS)));

    if (m != NULL && m->id == RPC_JOB_DEREGISTER &&
        str_eq(find_parameter(probe, target, "purge"), "true"))
        word = "submit-job|purge-job";
    if (m != NULL && m->id == RPC_VARIABLES_APPLY)
        word = r->verbs & VERB_DELETE ? "variable:destroy" : "variable:write";
    req->need = word;
    req->path = need.kind == ACL_VARIABLE ? probe->id : NULL;
    req->name = !named ? NULL : space ? req->name : str_or(probe->id, NS_ALL);
    req->rows = m != NULL && m->of != NULL &&
                (need.kind == ACL_ANY ||
                 (named && (!space || need.kind == ACL_VARIABLE) && probe->id == NULL));
}

void
acl_why_get(struct request *a)
{
    const char *target = str_or(http_query(a->req, "path"), "");
    const char *method = str_or(http_query(a->req, "method"), "");
    const char *accessor = str_or(http_query(a->req, "accessor"), "");
    struct request *probe = mem_new(a, struct request);
    struct acl_why_request *req = type_new(a, &type_acl_why_request);
    const struct route *r;

    if (str_empty(target) || str_empty(method) || str_empty(accessor)) {
        reply_fail(a, 400, "accessor, method and path must be given: "
                           "?accessor=<id>&method=GET&path=/v1/jobs");
        return;
    }
    r = a->route_of(probe, find_method(method), mem_strndup(a, target, strcspn(target, "?")));
    if (r == NULL) {
        reply_fail(a, 400, "there is no endpoint %.16s \"%.256s\"", method, target);
        return;
    }
    req->accessor_id = accessor;
    req->name =
        str_or(find_parameter(a, target, "namespace"), str_or(a->env.namespace, NS_DEFAULT));
    fill_need(probe, r, target, req);
    call_server(a, RPC_ACL_WHY, req, method_done);
}
