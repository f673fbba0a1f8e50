/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of objects (see object.h).
 */
#include "api/object.h"

#include "common/mem.h"

#define OBJECT(TABLE, id, type, ...)                                                               \
    static int check_##type(const void *obj, bool deleted, struct err *e)                          \
    {                                                                                              \
        return type##_check(obj, deleted, e);                                                      \
    }
API_OBJECTS(OBJECT)
#undef OBJECT

#define OBJECT(TABLE, id, type, TYPE, table, words, list, put, one, file)                          \
    {&type_##type, table, words, RPC_##TYPE##_UPSERT, RPC_##TYPE##_DELETE, check_##type},
static const struct object_kind kinds[] = {API_OBJECTS(OBJECT)};
#undef OBJECT

const struct object_kind *
object_kind_of(enum rpc_id id)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].upsert == id || kinds[i].delete == id)
            return &kinds[i];
    return NULL;
}
