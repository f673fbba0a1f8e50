/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts that all kinds of objects have (see object.h).
 */
#include <string.h>

#include "api/limits.h"
#include "api/object.h"
#include "common/str.h"

int
object_check_name(const char *name, struct err *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    size_t n = strspn(str_or(name, ""), allowed);

    if (n > 0 && n <= OBJECT_NAME_MAX && name[n] == '\0')
        return 0;
    return err_set(e, -ERR_INVALID,
                   "invalid name \"%.128s\". A name has 1 to %d letters, digits and '-'",
                   str_or(name, ""), OBJECT_NAME_MAX);
}

int
object_check_texts(const char *description, const struct str_map *meta, struct err *e)
{
    size_t bytes = 0;

    if (strlen(str_or(description, "")) > OBJECT_TEXT_MAX)
        return err_set(e, -ERR_INVALID, "description longer than %d", OBJECT_TEXT_MAX);
    for (size_t i = 0; meta != NULL && i < meta->n; i++)
        bytes += strlen(meta->v[i].k) + strlen(str_or(meta->v[i].v, ""));
    if (meta != NULL && (meta->n > OBJECT_META_MAX || bytes > OBJECT_META_BYTES_MAX))
        return err_set(e, -ERR_INVALID,
                       "meta has %zu entries of %zu bytes: %d entries and %d bytes are allowed",
                       meta->n, bytes, OBJECT_META_MAX, OBJECT_META_BYTES_MAX);
    return 0;
}
