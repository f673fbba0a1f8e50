/* SPDX-License-Identifier: Apache-2.0
 *
 * Node pools (see pool.h).
 */
#include "api/pool.h"

#include <string.h>

#include "api/limits.h"
#include "api/object.h"
#include "api/terms.h"
#include "common/str.h"

int
pool_check_name(const char *name, struct err *e)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t n = strspn(str_or(name, ""), allowed);

    if (n > 0 && n <= OBJECT_NAME_MAX && name[n] == '\0')
        return 0;
    return err_set(e, -ERR_INVALID,
                   "invalid node pool \"%.160s\": a name has 1 to %d letters, digits, '-' and '_'",
                   str_or(name, ""), OBJECT_NAME_MAX);
}

int
node_pool_check(const struct node_pool *p, bool deleted, struct err *e)
{
    const struct node_pool_scheduler_configuration *s = p->scheduler_configuration;

    if (str_eq(p->name, POOL_ALL) || str_eq(p->name, POOL_DEFAULT))
        return err_set(e, -ERR_INVALID, "%s node pool \"%s\" is not allowed",
                       deleted ? "deleting" : "modifying", p->name);
    if (deleted)
        return 0;
    if (pool_check_name(p->name, e) < 0)
        return e->code;
    if (p->node_identity_ttl < 0)
        err_set(e, -ERR_INVALID, "node_identity_ttl is negative");
    else if (s != NULL && !str_empty(s->scheduler_algorithm) &&
             !str_eq(s->scheduler_algorithm, "binpack") &&
             !str_eq(s->scheduler_algorithm, "spread"))
        err_set(e, -ERR_INVALID, "invalid scheduler algorithm \"%.64s\": binpack or spread",
                s->scheduler_algorithm);
    else
        (void)object_check_texts(p->description, &p->meta, e);
    return e->code == 0 ? 0 : err_prefix(e, "invalid node pool \"%s\"", p->name);
}

static const struct node_pool_scheduler_configuration *
pool_own(const struct node_pool *p)
{
    return p != NULL ? p->scheduler_configuration : NULL;
}

const char *
pool_algorithm(const struct node_pool *p, const struct scheduler_configuration *all)
{
    if (pool_own(p) != NULL && !str_empty(pool_own(p)->scheduler_algorithm))
        return pool_own(p)->scheduler_algorithm;
    return all != NULL ? all->scheduler_algorithm : NULL;
}

bool
pool_oversubscribes(const struct node_pool *p, const struct scheduler_configuration *all)
{
    if (pool_own(p) != NULL && pool_own(p)->memory_oversubscription_enabled.set)
        return pool_own(p)->memory_oversubscription_enabled.v;
    return all != NULL && all->memory_oversubscription_enabled;
}
