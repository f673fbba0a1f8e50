/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: objects with a name are stored and deleted, all of an entry or none. Nothing
 * but the kind's own function (entry_keeps_NAME) knows who uses one.
 */
#include "api/object.h"
#include "api/validate.h"
#include "server/fsm/fsm_int.h"

typedef void keeps_fn(struct apply *a, const char *name, const char *region, struct str_list *why);

static keeps_fn *const keeps[STATE_TABLES] = {
#define KEPT(TABLE, type) [STATE_##TABLE] = entry_keeps_##type,
    API_KEPT_OBJECTS(KEPT)
#undef KEPT
};

typedef int refuses_fn(struct apply *a, const void *obj);

#define CHECKED(TABLE, type)                                                                       \
    static int refuses_##type(struct apply *a, const void *obj)                                    \
    {                                                                                              \
        return entry_refuses_##type(a, obj);                                                       \
    }
API_CHECKED_OBJECTS(CHECKED)
#undef CHECKED

static refuses_fn *const refuses[STATE_TABLES] = {
#define CHECKED(TABLE, type) [STATE_##TABLE] = refuses_##type,
    API_CHECKED_OBJECTS(CHECKED)
#undef CHECKED
};

void
fsm_object_uses(struct state_txn *t, void *ctx, enum state_table table, const char *name,
                const char *region, struct str_list *why)
{
    struct apply a = {.ctx = ctx, .tmp = ctx, .t = t};

    if (keeps[table] != NULL)
        keeps[table](&a, name, region, why);
}

static int
put_objects(struct apply *a, enum state_table table, const struct type *t,
            const struct object_list *l)
{
    for (size_t i = 0; refuses[table] != NULL && i < l->n; i++)
        if (refuses[table](a, l->v[i]) < 0)
            return a->res->err.code;
    for (size_t i = 0; i < l->n; i++)
        entry_put_object(a, table, t, codec_clone(a->ctx, t, l->v[i]));
    return 0;
}

static int
delete_objects(struct apply *a, enum state_table table, const char *words,
               const struct object_delete *in)
{
    struct str_list why = {NULL, 0};

    for (size_t i = 0; i < in->elsewhere.n; i++)
        list_add(a->tmp, why, in->elsewhere.v[i]);
    for (size_t i = 0; i < in->names.n; i++) {
        const char *name = in->names.v[i];
        if (state_row_bytes(a->t, table, (struct state_key){.a = name}) == 0)
            return entry_refuse(a, -ERR_NOT_FOUND, "%s \"%.128s\" not found", words, name);
        if (keeps[table] != NULL)
            keeps[table](a, name, in->region, &why);
    }
    if (why.n > 0)
        return entry_refuse(a, -ERR_CONFLICT, "%s", job_errors_text(a->tmp, &why));
    for (size_t i = 0; i < in->names.n; i++)
        (void)state_del_row(a->t, a->index, table, (struct state_key){.a = in->names.v[i]});
    return 0;
}

int
intent_objects_init(struct apply *a, const struct empty *in)
{
    (void)in;
    if (state_namespace(a->t, a->tmp, NS_DEFAULT) == NULL)
        entry_make_namespaces(a);
    if (state_node_pool(a->t, a->tmp, POOL_DEFAULT) == NULL)
        entry_make_pools(a);
    return 0;
}

#define OBJECT(TABLE, id, type, TYPE, table, words, key, member)                                   \
    int intent_##type##_upsert(struct apply *a, const struct type##_upsert *in)                    \
    {                                                                                              \
        return put_objects(a, STATE_##TABLE, &type_##type, (const struct object_list *)in);        \
    }                                                                                              \
    int intent_##type##_delete(struct apply *a, const struct object_delete *in)                    \
    {                                                                                              \
        return delete_objects(a, STATE_##TABLE, words, in);                                        \
    }
API_OBJECTS(OBJECT)
#undef OBJECT
