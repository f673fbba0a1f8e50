/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths of variables (see var_path.h).
 */
#include "api/var_path.h"

#include <stdbool.h>
#include <string.h>

#include "common/str.h"

#define JOBS "nomad/jobs"
#define TEMPLATES "nomad/job-templates/"
#define SENTINEL "nomad/sentinel"

static bool
path_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("-_~/", c) != NULL;
}

/* Says whether somebody may write below the first part "nomad". */
static bool
path_is_free(const char *path)
{
    const char *name = path + strlen(TEMPLATES);

    if (!str_eq(path, "nomad") && !str_prefix(path, "nomad/"))
        return true;
    if (str_eq(path, JOBS) || str_prefix(path, JOBS "/") || str_prefix(path, SENTINEL))
        return true;
    return str_prefix(path, TEMPLATES) && *name != '\0' && strchr(name, '/') == NULL;
}

int
vars_check_path(const char *path, struct err *e)
{
    size_t n = strlen(str_or(path, ""));
    bool known = n > 0 && n <= VAR_PATH_MAX;

    for (size_t i = 0; known && i < n; i++)
        known = path_char(path[i]);
    if (!known)
        return err_set(e, -ERR_INVALID,
                       "invalid path \"%.128s\": it has 1 to %d letters, digits and -, _, ~, /",
                       str_or(path, ""), VAR_PATH_MAX);
    return path_is_free(path)
               ? 0
               : err_set(e, -ERR_INVALID,
                         "path \"%s\" is reserved: below \"nomad\" there are nomad/jobs and "
                         "nomad/job-templates/NAME",
                         path);
}
