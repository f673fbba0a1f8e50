/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: writes of objects with a name, a row of routes per line `object` of api/schema. Reads
 * need no function (routes_schema.c).
 */
#include "agent/api/api.h"
#include "api/object.h"
#include "common/mem.h"
#include "common/str.h"

/* Answers 400 to what is wrong with a node pool, as Nomad does, and 500 to what is with others. */
static bool
object_refused(struct request *a, const struct err *e)
{
    if (e->code != -ERR_INVALID || object_kind_of(a->method)->type != &type_node_pool)
        return false;
    reply_refuse(a, 400, e);
    return true;
}

static void
object_written(struct request *a, const void *resp)
{
    reply_index(a, ((const struct write_response *)resp)->index);
    http_reply(a->req, 200, NULL, "", 0);
}

/* The request is a list of one. */
static void
object_upsert(struct request *a)
{
    const struct object_kind *k = object_kind_of(a->route->rpc);
    struct object_list *req = type_new(a, rpc_method_by_id(a->route->rpc)->req);
    void *obj = request_body(a, k->type, false);

    if (obj == NULL)
        return;
    const char **name = type_member(k->type, obj, "Name");
    if (a->id != NULL && str_empty(*name))
        *name = a->id;
    if (a->id != NULL && !str_eq(*name, a->id)) {
        reply_fail(a, 400, "%c%s name does not match request path", k->words[0] & ~0x20,
                   k->words + 1);
        return;
    }
    record_object(a, *name, NULL);
    list_add(req, *req, obj);
    a->on_error = object_refused;
    call_server(a, a->route->rpc, req, object_written);
}

static void
object_delete(struct request *a)
{
    struct object_delete *req = mem_new(a, struct object_delete);

    list_add(req, req->names, a->id);
    a->on_error = object_refused;
    call_server(a, a->route->rpc, req, object_written);
}

#define OBJECT(TABLE, type, TYPE, table, words, list, put, one, file)                              \
    {VERB_WRITE, put, NULL, object_upsert, RPC_##TYPE##_UPSERT, BY_SERVER},                        \
        {VERB_WRITE, one, "", object_upsert, RPC_##TYPE##_UPSERT, BY_SERVER},                      \
        {VERB_DELETE, one, "", object_delete, RPC_##TYPE##_DELETE, BY_SERVER},
const struct route routes_object[] = {API_COMMON_OBJECTS(OBJECT) ROUTES_END};
