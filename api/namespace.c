/* SPDX-License-Identifier: Apache-2.0
 *
 * Namespaces (see namespace.h), and what may be stored of one.
 */
#include "api/namespace.h"

#include <string.h>

#include "api/limits.h"
#include "api/object.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"

static bool
name_is_valid(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    size_t n = strspn(str_or(name, ""), allowed);

    return n > 0 && n <= OBJECT_NAME_MAX && name[n] == '\0';
}

static int
check_claims(const struct str_map *required, const struct str_map *optional, struct err *e)
{
    if (object_check_texts(NULL, required, e) < 0)
        return err_prefix(e, "required_extra_claims");
    if (object_check_texts(NULL, optional, e) < 0)
        return err_prefix(e, "optional_extra_claims");
    return 0;
}

int
namespace_check(const struct namespace *n, bool deleted, struct err *e)
{
    if (deleted)
        return !str_eq(n->name, NS_DEFAULT)
                   ? 0
                   : err_set(e, -ERR_INVALID, "can not delete default namespace");
    if (!name_is_valid(n->name))
        return err_set(e, -ERR_INVALID,
                       "Invalid namespace \"%.128s\": invalid name \"%.128s\". A name has 1 to %d "
                       "letters, digits and '-'",
                       str_or(n->name, ""), str_or(n->name, ""), OBJECT_NAME_MAX);
    if (!str_empty(n->quota))
        err_set(e, -ERR_INVALID, "quota is of Nomad Enterprise: leave it out");
    else if (n->vault_configuration != NULL || n->consul_configuration != NULL)
        err_set(e, -ERR_INVALID, "vault and consul have no effect in this release: remove them");
    else if (object_check_texts(n->description, &n->meta, e) == 0)
        (void)check_claims(&n->required_extra_claims, &n->optional_extra_claims, e);
    return e->code == 0 ? 0 : err_prefix(e, "Invalid namespace \"%s\"", n->name);
}

/* --- what its jobs may be --- */

static bool
has_name(const struct str_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i], name))
            return true;
    return false;
}

static bool
is_allowed(const struct str_list *enabled, const struct str_list *disabled, const char *name)
{
    return (enabled->n == 0 || has_name(enabled, name)) && !has_name(disabled, name);
}

static bool
fits_any(const struct str_list *patterns, const char *name)
{
    for (size_t i = 0; i < patterns->n; i++)
        if (str_glob(patterns->v[i], name))
            return true;
    return false;
}

void
namespace_defaults(const struct namespace *n, struct job *j)
{
    const struct namespace_names *pools = n != NULL ? n->node_pool_configuration : NULL;

    if (pools != NULL && str_empty(j->node_pool) && !str_empty(pools->default_))
        j->node_pool = mem_strdup(j, pools->default_);
}

/* The default of the namespace is allowed in any case. */
static void
admit_pool(const void *ctx, const struct namespace *n, const struct job *j,
           struct str_list *errors)
{
    const struct namespace_names *p = n->node_pool_configuration;
    const char *pool = str_or(j->node_pool, POOL_DEFAULT);

    if (p == NULL || str_eq(pool, str_or(p->default_, POOL_DEFAULT)))
        return;
    if ((p->allowed.n > 0 && !fits_any(&p->allowed, pool)) || fits_any(&p->denied, pool))
        list_add(ctx, *errors,
                 mem_printf(ctx, "node pool \"%s\" is not allowed in namespace \"%s\"", pool,
                            n->name));
}

static void
admit_group(const void *ctx, const struct namespace *n, const struct task_group *g,
            struct str_list *errors)
{
    const struct namespace_capabilities *may = n->capabilities;

    for (size_t i = 0; i < g->networks.n; i++) {
        const char *mode = str_or(g->networks.v[i]->mode, "host");
        if (!is_allowed(&may->enabled_network_modes, &may->disabled_network_modes, mode))
            list_add(ctx, *errors,
                     mem_printf(ctx,
                                "used group network mode \"%s\" is not allowed in namespace "
                                "\"%s\" (group \"%s\")",
                                mode, n->name, str_or(g->name, "")));
    }
    for (size_t i = 0; i < g->tasks.n; i++) {
        const struct task *t = g->tasks.v[i];
        if (!is_allowed(&may->enabled_task_drivers, &may->disabled_task_drivers,
                        str_or(t->driver, "")))
            list_add(ctx, *errors,
                     mem_printf(ctx,
                                "used task driver \"%s\" is not allowed in namespace \"%s\" "
                                "(task \"%s\" of group \"%s\")",
                                str_or(t->driver, ""), n->name, str_or(t->name, ""),
                                str_or(g->name, "")));
    }
}

void
namespace_admits(const void *ctx, const struct namespace *n, const struct job *j,
                 struct str_list *errors)
{
    admit_pool(ctx, n, j, errors);
    for (size_t i = 0; n->capabilities != NULL && i < j->task_groups.n; i++)
        admit_group(ctx, n, j->task_groups.v[i], errors);
}
