/* SPDX-License-Identifier: Apache-2.0
 *
 * Namespaces and their quotas (see namespace.h), and what may be stored of either.
 */
#include "api/namespace.h"

#include <inttypes.h>

#include "api/limits.h"
#include "api/object.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"

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
    if (object_check_name(n->name, e) < 0)
        return err_prefix(e, "Invalid namespace \"%.128s\"", str_or(n->name, ""));
    if (n->vault_configuration != NULL || n->consul_configuration != NULL)
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

/* --- quotas --- */

static int
check_limit(const struct quota_limit *l, struct err *e)
{
    const struct quota_resources *r = l->region_limit;

    if (r != NULL && (r->cores != 0 || r->memory_max_mb != 0 || r->devices != NULL ||
                      r->numa != NULL || r->node_pools != NULL || r->storage != NULL))
        return err_set(e, -ERR_INVALID,
                       "cores, memory_max, devices, numa, node pools and storage have no limit in "
                       "this release: use cpu, memory, count and variables_limit");
    return 0;
}

int
quota_check(const struct quota *q, bool deleted, struct err *e)
{
    if (deleted)
        return 0;
    if (object_check_name(q->name, e) == 0 && object_check_texts(q->description, NULL, e) == 0 &&
        q->limits.n == 0)
        err_set(e, -ERR_INVALID, "at least one limit is wanted");
    for (size_t i = 0; i < q->limits.n && e->code == 0; i++) {
        if (str_empty(q->limits.v[i]->region))
            err_set(e, -ERR_INVALID, "a limit names no region");
        for (size_t k = 0; k < i && e->code == 0; k++)
            if (str_eq(q->limits.v[k]->region, q->limits.v[i]->region))
                err_set(e, -ERR_INVALID, "region \"%s\" has more than one limit",
                        q->limits.v[i]->region);
        if (e->code == 0)
            (void)check_limit(q->limits.v[i], e);
    }
    return e->code == 0 ? 0 : err_prefix(e, "Invalid quota \"%.128s\"", str_or(q->name, ""));
}

static int64_t
limit_of(int64_t said)
{
    return said == 0 ? INT64_MAX : said < 0 ? 0 : said;
}

int64_t
quota_limit_bytes(const struct quota *q, const char *region)
{
    int64_t mb = INT64_MAX;

    for (size_t i = 0; i < q->limits.n; i++)
        if (str_eq(q->limits.v[i]->region, region))
            mb = limit_of(q->limits.v[i]->variables_limit);
    return mb > INT64_MAX / QUOTA_MB ? INT64_MAX : mb * QUOTA_MB;
}

struct quota_use
quota_limit(const struct quota *q, const char *region)
{
    static const struct quota_resources none;
    const struct quota_resources *r = &none;

    for (size_t i = 0; i < q->limits.n; i++)
        if (str_eq(q->limits.v[i]->region, region) && q->limits.v[i]->region_limit != NULL)
            r = q->limits.v[i]->region_limit;
    return (struct quota_use){limit_of(r->count), limit_of(r->cpu), limit_of(r->memory_mb)};
}

void
quota_add(struct quota_use *to, const struct quota_use *more, int64_t sign)
{
    to->count += sign * more->count;
    to->cpu += sign * more->cpu;
    to->mem += sign * more->mem;
}

struct str_list
quota_exceeded(const void *ctx, const struct quota_room *q, const struct quota_use *more)
{
    const struct {
        const char *what;
        int64_t used, more, limit;
    } rows[] = {{"count", q->used.count, more->count, q->limit.count},
                {"cpu", q->used.cpu, more->cpu, q->limit.cpu},
                {"memory", q->used.mem, more->mem, q->limit.mem}};
    struct str_list why = {NULL, 0};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].more > 0 && rows[i].used + rows[i].more > rows[i].limit)
            list_add(ctx, why,
                     mem_printf(ctx, "%s exhausted (%" PRId64 " needed > %" PRId64 " limit)",
                                rows[i].what, rows[i].used + rows[i].more, rows[i].limit));
    return why;
}
