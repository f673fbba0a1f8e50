/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables (see vars.h).
 */
#include "api/vars/vars.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/var_path.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"

#define JOBS "nomad/jobs"

int
vars_check_items(const struct str_map *items, struct err *e)
{
    size_t sum = 0;

    if (items->n == 0)
        return err_set(e, -ERR_INVALID, "variable missing required Items object");
    if (items->n > VAR_ITEMS_MAX)
        return err_set(e, -ERR_INVALID, "a variable has at most %d items", VAR_ITEMS_MAX);
    for (size_t i = 0; i < items->n; i++)
        sum += strlen(items->v[i].k) + strlen(str_or(items->v[i].v, ""));
    return sum <= VAR_BYTES_MAX
               ? 0
               : err_set(e, -ERR_INVALID,
                         "a variable's keys and values have at most %d bytes together, not %zu",
                         VAR_BYTES_MAX, sum);
}

/* --- locks --- */

static int64_t
lock_time(const char *text)
{
    int64_t ns = VAR_LOCK_DEFAULT * NS_PER_S;

    return str_empty(text) || duration_parse(text, &ns) == 0 ? ns : -1;
}

int64_t
vars_lock_ttl(const struct variable_lock *l)
{
    return lock_time(l->ttl);
}

int64_t
vars_lock_delay(const struct variable_lock *l)
{
    return lock_time(l->lock_delay);
}

int
vars_check_lock(const void *ctx, struct variable_lock *l, struct err *e)
{
    char text[DURATION_TEXT];
    int64_t ttl = vars_lock_ttl(l), delay = vars_lock_delay(l);

    if (ttl < VAR_LOCK_TTL_MIN * NS_PER_S || ttl > VAR_LOCK_TTL_MAX * NS_PER_S)
        return err_set(e, -ERR_INVALID, "the TTL of a lock is from %ds to %dh, not \"%.64s\"",
                       VAR_LOCK_TTL_MIN, VAR_LOCK_TTL_MAX / 3600, str_or(l->ttl, ""));
    if (delay < 0 || delay > VAR_LOCK_TTL_MAX * NS_PER_S)
        return err_set(e, -ERR_INVALID,
                       "the delay of a lock is a duration of up to %dh, not \"%.64s\"",
                       VAR_LOCK_TTL_MAX / 3600, l->lock_delay);
    if (strlen(str_or(l->id, "")) > VAR_PATH_MAX)
        return err_set(e, -ERR_INVALID, "the id of a lock has at most %d bytes", VAR_PATH_MAX);
    l->ttl = mem_strdup(ctx, duration_format(ttl, text));
    l->lock_delay = mem_strdup(ctx, duration_format(delay, text));
    return 0;
}

/* --- tasks --- */

/* Returns what follows "/part", NULL: it does not begin so. */
static const char *
path_below(const char *path, const char *part)
{
    size_t n = strlen(str_or(part, ""));

    if (path == NULL || path[0] != '/' || n == 0 || strncmp(path + 1, part, n) != 0)
        return NULL;
    path += 1 + n;
    return *path == '\0' || *path == '/' ? path : NULL;
}

bool
vars_is_own(const char *path, const char *job, const char *group, const char *task)
{
    const char *const parts[] = {job, group, task};

    if (!str_prefix(str_or(path, ""), JOBS))
        return false;
    path += strlen(JOBS);
    for (size_t i = 0; i < ARRAY_LEN(parts) && path != NULL && *path != '\0'; i++)
        path = path_below(path, parts[i]);
    return path != NULL && *path == '\0';
}
