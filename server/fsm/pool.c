/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: node pools. A pool is a row. People make and delete rows; the registration of
 * the first node in a pool makes one as well. Deletion is refused while nodes or jobs are in the
 * pool.
 */
#include "api/pool.h"
#include "api/validate.h"
#include "server/fsm/fsm_int.h"

/* --- pools that nobody has described --- */

static void
put_pool(struct apply *a, struct node_pool *p)
{
    const struct node_pool *old = state_node_pool(a->t, a->tmp, p->name);

    p->create_index = old != NULL ? old->create_index : a->index;
    p->modify_index = a->index;
    entry_store(a, NODE_POOLS, p->name, p);
}

void
entry_make_pool(struct apply *a, const char *name, const char *description)
{
    struct node_pool *p = type_new(a->ctx, &type_node_pool);

    codec_defaults(p, &type_node_pool, p);
    p->name = mem_strdup(p, name);
    p->description = description;
    put_pool(a, p);
}

/* --- the first ones --- */

static void
add_name(void *ctx, struct str_map *names, const char *pool)
{
    str_map_set(ctx, names, str_or(pool, POOL_DEFAULT), "");
}

/* Nodes and jobs that an older release has stored name pools that have no row yet. */
static struct str_map
names_in_use(struct apply *a)
{
    struct str_map names = {NULL, 0};
    struct lean *lean = lean_new(a->tmp, &type_node, &type_node, "NodePool", "");
    struct state_iter *it = state_nodes(a->t, a->tmp, NULL);

    for (struct node *n; (n = state_next_lean(it, a->tmp, lean)) != NULL; talloc_free(n))
        add_name(a->tmp, &names, mem_strdup(a->tmp, n->node_pool));
    lean = lean_new(a->tmp, &type_job, &type_job, "NodePool", "");
    it = state_jobs(a->t, a->tmp, NS_ALL, NULL);
    for (struct job *j; (j = state_next_lean(it, a->tmp, lean)) != NULL; talloc_free(j))
        add_name(a->tmp, &names, mem_strdup(a->tmp, j->node_pool));
    return names;
}

int
intent_node_pool_init(struct apply *a, const struct empty *in)
{
    (void)in;
    if (state_has_pools(a->t))
        return 0;
    struct str_map names = names_in_use(a);
    entry_make_pool(a, POOL_ALL, "All nodes of the region.");
    entry_make_pool(a, POOL_DEFAULT, "Nodes that name no other pool.");
    for (size_t i = 0; i < names.n; i++)
        if (!state_has_pool(a->t, names.v[i].k))
            entry_make_pool(a, names.v[i].k, NULL);
    return 0;
}

/* --- by people --- */

int
intent_node_pool_upsert(struct apply *a, const struct intent_node_pool_upsert *in)
{
    for (size_t i = 0; i < in->node_pools.n; i++)
        if (pool_is_built_in(in->node_pools.v[i]->name))
            return entry_refuse(a, -ERR_INVALID, "modifying node pool \"%s\" is not allowed",
                                in->node_pools.v[i]->name);
    for (size_t i = 0; i < in->node_pools.n; i++)
        put_pool(a, codec_clone(a->ctx, &type_node_pool, in->node_pools.v[i]));
    return 0;
}

static bool
has_nodes(struct apply *a, const char *name)
{
    struct lean *lean = lean_new(a->tmp, &type_node, &type_node, "ID", "");
    struct state_iter *it = state_by(a->t, a->tmp, NODES_BY_POOL, name);
    bool any = state_next_lean(it, a->tmp, lean) != NULL;

    if (any)
        state_iter_end(it);
    return any;
}

static bool
has_jobs(struct apply *a, const char *name)
{
    struct lean *lean = lean_new(a->tmp, &type_job, &type_job, "Status", "");
    struct state_iter *it = state_by(a->t, a->tmp, JOBS_BY_POOL, name);

    for (struct job *j; (j = state_next_lean(it, a->tmp, lean)) != NULL; talloc_free(j))
        if (!str_eq(j->status, JOB_STATUS_DEAD)) {
            state_iter_end(it);
            return true;
        }
    return false;
}

int
intent_node_pool_delete(struct apply *a, const struct intent_node_pool_delete *in)
{
    struct str_list errors = {NULL, 0};

    for (size_t i = 0; i < in->names.n; i++) {
        const char *name = in->names.v[i];
        if (state_node_pool(a->t, a->tmp, name) == NULL)
            return entry_refuse(a, -ERR_NOT_FOUND, "node pool \"%s\" not found", name);
        if (pool_is_built_in(name))
            return entry_refuse(a, -ERR_INVALID, "deleting node pool \"%s\" is not allowed", name);
        if (has_jobs(a, name))
            list_add(a->tmp, errors,
                     mem_printf(a->tmp, "node pool \"%s\" has non-terminal jobs in regions: [%s]",
                                name, in->region));
        if (has_nodes(a, name))
            list_add(a->tmp, errors,
                     mem_printf(a->tmp, "node pool \"%s\" has nodes in regions: [%s]", name,
                                in->region));
    }
    if (errors.n > 0)
        return entry_refuse(a, -ERR_CONFLICT, "%s", job_errors_text(a->tmp, &errors));
    for (size_t i = 0; i < in->names.n; i++)
        (void)entry_remove(a, NODE_POOLS, in->names.v[i]);
    return 0;
}
