/* SPDX-License-Identifier: Apache-2.0
 *
 * Services: names, and the ids of their registrations.
 */
#include "api/service/service.h"

#include <string.h>

#include "common/str.h"

static bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool
service_name_valid(const char *name)
{
    size_t n = strlen(str_or(name, ""));

    if (n == 0 || n > SERVICE_NAME_MAX || !is_word(name[0]) || !is_word(name[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_word(name[i]) && name[i] != '-')
            return false;
    return true;
}

bool
service_id_is_of(const char *id, const char *alloc_id)
{
    size_t prefix = strlen(SERVICE_ID_PREFIX), n = strlen(str_or(alloc_id, ""));

    return n > 0 && id != NULL && strlen(id) <= SERVICE_ID_MAX &&
           str_prefix(id, SERVICE_ID_PREFIX) && strncmp(id + prefix, alloc_id, n) == 0 &&
           id[prefix + n] == '-' && id[prefix + n + 1] != '\0';
}
