/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of objects (see object.h).
 */
#include "api/object.h"

#include "common/mem.h"
#include "common/str.h"

#define OBJECT(TABLE, id, type, ...)                                                               \
    static int check_##type(const void *obj, bool deleted, struct err *e)                          \
    {                                                                                              \
        return type##_check(obj, deleted, e);                                                      \
    }
API_OBJECTS(OBJECT)
#undef OBJECT

/* The methods of those that have them of their line. */
static const struct {
    const struct type *type;
    enum rpc_id upsert, delete;
} methods[] = {
#define OBJECT(TABLE, type, TYPE, ...) {&type_##type, RPC_##TYPE##_UPSERT, RPC_##TYPE##_DELETE},
    API_COMMON_OBJECTS(OBJECT)
#undef OBJECT
};

#define OBJECT(TABLE, id, type, TYPE, table, words, key, member)                                   \
    {&type_##type, key, table, words, check_##type},
static const struct object_kind kinds[] = {API_OBJECTS(OBJECT)};
#undef OBJECT

const struct object_kind *
object_kind_of(enum rpc_id id)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (methods[i].upsert == id || methods[i].delete == id)
            return object_kind(methods[i].type);
    return NULL;
}

const struct object_kind *
object_kind(const struct type *type)
{
    const struct object_kind *k = kinds;

    while (k->type != type)
        k++;
    return k;
}

const char *
object_key(const struct object_kind *k, const void *obj)
{
    return str_or(*(const char *const *)type_member(k->type, obj, k->key), "");
}

bool
object_is_shared(const struct object_kind *k, const void *obj)
{
    const bool *global = type_member(k->type, obj, "Global");

    return global == NULL || *global;
}
