/* SPDX-License-Identifier: Apache-2.0
 *
 * Time zones: those of the system (see zone.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/host/zone.h"
#include "common/mem.h"
#include "common/str.h"

static struct known {
    struct known *next;
    const char *name;
    const struct zone *zone;
} * known_zones;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

#define ZONES "/usr/share/zoneinfo/"

/* Says why a zone cannot be had: its name, or that no zone is there. */
static int
zone_refuse(const char *name, struct err *e)
{
    if (access(ZONES "Etc/UTC", F_OK) < 0)
        return err_set(e, -ERR_NOT_FOUND,
                       "time zone %.128s: this server has no time zone database (package tzdata)",
                       name);
    return err_set(e, -ERR_NOT_FOUND, "unknown time zone %.128s", name);
}

static int
zone_load(const char *name, const struct zone **ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("zone");
    bool local = str_eq(name, "Local");
    const char *path = local ? "/etc/localtime" : mem_printf(tmp, ZONES "%s", name);
    char *text;
    size_t n;
    struct zone *z = NULL;
    struct err why = ERR_INIT;
    int rc = file_read(tmp, AT_FDCWD, path, ZONE_BYTES_MAX, &text, &n);
    /* a machine without a zone, or with a link into a missing database, is at UTC */
    if (!(local && rc == -ENOENT) && (rc < 0 || zone_parse(NULL, text, n, &z, &why) < 0))
        return zone_refuse(name, e);
    struct known *k = mem_new(NULL, struct known);
    k->name = mem_strdup(k, name);
    k->zone = *ret = z;
    k->next = known_zones;
    known_zones = k;
    return 0;
}

int
zone_find(const char *name, const struct zone **ret, struct err *e)
{
    if (str_empty(name) || str_eq(name, "UTC")) {
        *ret = NULL;
        return 0;
    }
    if (*name == '/' || *name == '\\' || strstr(name, "..") != NULL || strlen(name) > ZONE_NAME_MAX)
        return err_set(e, -ERR_INVALID, "time: invalid location name");
    pthread_mutex_lock(&known_lock);
    const struct known *k = known_zones;
    while (k != NULL && !str_eq(k->name, name))
        k = k->next;
    int rc = 0;
    if (k != NULL)
        *ret = k->zone;
    else
        rc = zone_load(name, ret, e);
    pthread_mutex_unlock(&known_lock);
    return rc;
}
