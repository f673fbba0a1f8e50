/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: who may ask for what this agent answers itself: the need of a route, asked before its
 * handler, and again of what lasts whenever rights may have changed.
 */
#include "agent/api/api.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"

static void
gate_gone(struct request *a)
{
    rights_forget(a->api->rights, a);
    reply_fail(a, 499, "client gone");
}

static int
request_end(struct request *a)
{
    if (a->at_open != NULL) {
        *a->at_open = a->next_open;
        if (a->next_open != NULL)
            a->next_open->at_open = a->at_open;
    }
    if (a->api->rights != NULL)
        rights_forget(a->api->rights, a);
    acl_unref(a->acl);
    return 0;
}

static void
request_open(struct request *a)
{
    struct request **head = &a->api->open;

    a->next_open = *head;
    a->at_open = head;
    if (a->next_open != NULL)
        a->next_open->at_open = &a->next_open;
    *head = a;
}

static bool
route_allows(const struct request *a, const struct acl *acl, const char *ns)
{
    struct acl_need need;
    struct err e = ERR_INIT;
    int rc = acl_need_parse(a->route->cap, &need, &e);

    ASSERT(rc == 0);
    return acl_allows(acl, &need, need.kind == ACL_NAMESPACE ? str_or(ns, NS_ALL) : NULL, NULL);
}

static void
gate_answered(void *arg, const struct err *e, const struct acl *acl, const char *accessor)
{
    struct request *a = arg;

    a->gone = NULL;
    record_accessor(a, accessor);
    if (e == NULL && route_allows(a, acl, NULL)) {
        a->acl = acl_ref((struct acl *)(uintptr_t)acl);
        talloc_set_destructor(a, request_end);
        if (a->route->verbs & VERB_LONG)
            request_open(a);
        a->route->handle(a);
    } else if (e != NULL && e->code != -ERR_FORBIDDEN) {
        reply_error(a, e);
    } else {
        reply_fail(a, 403, "Permission denied");
    }
}

/* Notes who asks; a server decides whether that is allowed. */
static void
gate_named(void *arg, const struct err *e, const struct acl *acl, const char *accessor)
{
    struct request *a = arg;

    (void)e, (void)acl;
    a->gone = NULL;
    record_accessor(a, accessor);
    a->route->handle(a);
}

static bool
is_open(const struct request *a)
{
    bool ours = a->route->cap != BY_SERVER;

    return str_eq(ours ? a->route->cap : rpc_method_by_id(a->route->rpc)->cap, "none");
}

/* A node of another region decides itself of what is passed on to it. */
static bool
is_decided_away(const struct request *a)
{
    bool of_a_node = str_prefix(a->req->path, "/v1/client/") ||
                     str_prefix(a->req->path, "/v1/allocation/") ||
                     (a->route->verbs & VERB_SESSION) != 0;

    return of_a_node && !request_is_for_our_region(a);
}

void
request_admit(struct request *a)
{
    record_target(a);
    bool later = (a->route->verbs & VERB_SESSION) && str_empty(a->env.auth_token) &&
                 http_query(a->req, "ws_handshake") != NULL;

    if (a->api->rights == NULL || a->route->cap == BY_SERVER || later || is_decided_away(a) ||
        str_eq(a->route->cap, "none")) {
        if (a->line == NULL || a->api->rights == NULL || is_open(a) ||
            !request_is_for_our_region(a)) {
            a->route->handle(a);
            return;
        }
        a->gone = gate_gone;
        rights_ask(a->api->rights, a->env.auth_token, gate_named, a);
        return;
    }
    a->gone = gate_gone;
    rights_ask(a->api->rights, a->env.auth_token, gate_answered, a);
}

bool
request_may(struct request *a, const char *ns)
{
    a->allowed_ns = mem_strdup(a, str_or(ns, NS_DEFAULT));
    if (a->acl == NULL || route_allows(a, a->acl, a->allowed_ns))
        return true;
    reply_fail(a, 403, "Permission denied");
    return false;
}

static void
open_answered(void *arg, const struct err *e, const struct acl *acl, const char *accessor)
{
    struct request *a = arg;

    (void)accessor;
    bool ended = e != NULL ? e->code == -ERR_FORBIDDEN : !route_allows(a, acl, a->allowed_ns);
    if (ended && a->gone != NULL)
        a->gone(a);
}

void
api_rights_changed(struct api *api)
{
    for (struct request *a = api->open, *next; a != NULL; a = next) {
        next = a->next_open;
        rights_ask(api->rights, a->env.auth_token, open_answered, a);
    }
}
