/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: the routes that are all in the lines of their methods (api/schema/rpc.schema): the
 * request is what path and query say, or the body, the answer what the server answers.
 */
#include <string.h>

#include "agent/api/api.h"
#include "common/mem.h"
#include "common/str.h"

static uint64_t
routes_schema_number(const struct type *t, const void *obj, const char *wire)
{
    const uint64_t *n = type_member(t, obj, wire);
    return n != NULL ? *n : 0;
}

/* False: answered. */
static bool
take_parameter(struct request *a, const struct field *f, void *p)
{
    if (f->flags & F_LABEL) {
        *(const char **)p = a->id;
        return true;
    }
    if (!(f->flags & F_ATTR))
        return true;
    if (f->type == FT_STRING) {
        *(const char **)p = http_query(a->req, f->hcl);
        return true;
    }
    if (f->type == FT_INT)
        return param_int(a, f->hcl, p);
    *(bool *)p = str_eq(f->dflt, "true");
    return param_bool(a, f->hcl, p);
}

void
route_call(struct request *a)
{
    const struct rpc_method *m = rpc_method_by_id(a->route->rpc);
    auto_mem void *tmp = mem_ctx("request"); /* a list asks again, an object may park for minutes */
    char *req = type_new(m->of != NULL ? (void *)a : tmp, m->req);

    for (size_t i = 0; i < m->req->n_fields; i++)
        if (!take_parameter(a, &m->req->fields[i], req + m->req->fields[i].offset))
            return;
    if (m->of != NULL) {
        reply_list(a, a->route->rpc, req);
        return;
    }
    struct list_options **list = type_member(m->req, req, "List");
    if (list != NULL) { /* one object, as JSON */
        a->asked.part = a->pretty ? 2 : 1;
        *list = &a->asked;
    }
    /* `a` may be gone afterwards if not */
    bool parks = a->api->servers != NULL && a->env.min_index > 0;
    call_server(a, a->route->rpc, req, method_done);
    if (parks)
        http_forget(a->req);
}

/* The body has to name the object of the path, or may. False: answered. */
static bool
names_label(struct request *a, const struct field *f, const char *name)
{
    int kind = (int)strlen(f->wire) - (int)strlen("ID");

    if (str_empty(name) && (f->flags & F_REQUIRED))
        reply_fail(a, 400, "%s must be specified", f->wire);
    else if (!str_empty(name) && !str_eq(name, a->id))
        reply_fail(a, 400, "%.*s ID does not match", kind, f->wire);
    else
        return true;
    return false;
}

/* The body is the request, with the label and the parameters of path and query. */
static void
route_call_body(struct request *a)
{
    const struct type *t = rpc_method_by_id(a->route->rpc)->req;
    char *req = request_body(a, t, false);

    for (size_t i = 0; req != NULL && i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        void *p = req + f->offset;
        if ((f->flags & F_LABEL) && !names_label(a, f, *(const char *const *)p))
            return;
        if (!take_parameter(a, f, p))
            return;
    }
    if (req != NULL)
        call_server(a, a->route->rpc, req, method_done);
}

/* "NodePool.Get": "node pool not found"; of an ACLPolicy: "ACL policy not found". */
static const char *
routes_schema_missing(struct request *a, const struct rpc_method *m)
{
    bool acl = str_prefix(m->name, "ACL."), by_type = str_prefix(m->name, "Scaling.");
    const char *name = acl       ? m->resp->fields[0].sub->name + strlen("ACL")
                       : by_type ? m->resp->fields[0].wire
                                 : m->name;
    size_t group = strcspn(name, "."), n = 0;
    char *text = mem_array(a, char, 2 * group + 1);

    for (size_t i = 0; i < group; i++) {
        if (i > 0 && name[i] < 'a')
            text[n++] = ' ';
        text[n++] = (char)(name[i] | 0x20);
    }
    return mem_printf(a, "%s%.*s not found", acl ? "ACL " : "", (int)n, text);
}

/* One object with its Meta; or the response itself, with the index that it names. */
void
method_done(struct request *a, const void *resp)
{
    const struct rpc_method *m = rpc_method_by_id(a->method);
    const struct type *t = m->resp;
    const struct query_meta *const *meta = type_member(t, resp, "Meta");

    if (meta != NULL) {
        const void *obj = *(void *const *)type_member(t, resp, t->fields[0].wire);
        reply_object(a, t->fields[0].sub, obj, *meta, routes_schema_missing(a, m));
        return;
    }
    uint64_t index = routes_schema_number(t, resp, "Index");
    if (index == 0)
        index = routes_schema_number(t, resp, "JobModifyIndex") |
                routes_schema_number(t, resp, "NodeModifyIndex");
    if (m->flags & RPC_READ)
        reply_meta(a, &(struct query_meta){.index = index, .known_leader = true});
    else if (type_member(t, resp, "Index") != NULL)
        reply_index(a, index);
    reply_json(a, t, resp);
}

#define ROUTE(verb, path, suffix, handler, id) {VERB_##verb, path, suffix, handler, id, BY_SERVER},
const struct route routes_schema[] = {RPC_ROUTES(ROUTE) ROUTES_END};
