/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of objects (see object.h).
 */
#include "api/object.h"

#include <string.h>

#include "api/limits.h"
#include "common/mem.h"
#include "common/str.h"

#define OBJECT(TABLE, id, type, ...)                                                               \
    static int check_##type(const void *obj, bool deleted, struct err *e)                          \
    {                                                                                              \
        return type##_check(obj, deleted, e);                                                      \
    }
API_OBJECTS(OBJECT)
#undef OBJECT

#define OBJECT(TABLE, id, type, TYPE, table, words, list, put, one, file, replicated)              \
    {&type_##type,        table,      words,       RPC_##TYPE##_UPSERT,                            \
     RPC_##TYPE##_DELETE, replicated, check_##type},
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

int
object_check_texts(const char *description, const struct str_map *meta, struct err *e)
{
    size_t bytes = 0;

    if (strlen(str_or(description, "")) > OBJECT_TEXT_MAX)
        return err_set(e, -ERR_INVALID, "description longer than %d", OBJECT_TEXT_MAX);
    for (size_t i = 0; i < meta->n; i++)
        bytes += strlen(meta->v[i].k) + strlen(str_or(meta->v[i].v, ""));
    if (meta->n > OBJECT_META_MAX || bytes > OBJECT_META_BYTES_MAX)
        return err_set(e, -ERR_INVALID,
                       "meta has %zu entries of %zu bytes: %d entries and %d bytes are allowed",
                       meta->n, bytes, OBJECT_META_MAX, OBJECT_META_BYTES_MAX);
    return 0;
}
