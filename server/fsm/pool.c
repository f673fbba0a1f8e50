/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: node pools. People make and delete them (object.c); the registration of the
 * first node in a pool makes one as well. Deletion is refused while nodes or jobs are in the pool.
 */
#include "api/pool.h"
#include "api/validate.h"
#include "server/fsm/fsm_int.h"

/* --- pools that nobody has described --- */

void
entry_make_pool(struct apply *a, const char *name, const char *description)
{
    struct node_pool *p = type_new(a->ctx, &type_node_pool);

    codec_defaults(p, &type_node_pool, p);
    p->name = mem_strdup(p, name);
    p->description = description;
    entry_put_object(a, STATE_NODE_POOLS, &type_node_pool, p);
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

void
entry_make_pools(struct apply *a)
{
    struct str_map names = names_in_use(a);

    entry_make_pool(a, POOL_ALL, "All nodes of the region.");
    entry_make_pool(a, POOL_DEFAULT, "Nodes that name no other pool.");
    for (size_t i = 0; i < names.n; i++)
        if (!state_has_pool(a->t, names.v[i].k))
            entry_make_pool(a, names.v[i].k, NULL);
}

/* --- deletion --- */

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

void
entry_keeps_node_pool(struct apply *a, const char *name, const char *region, struct str_list *why)
{
    if (has_jobs(a, name))
        list_add(a->tmp, *why,
                 mem_printf(a->tmp, "node pool \"%s\" has non-terminal jobs in regions: [%s]", name,
                            region));
    if (has_nodes(a, name))
        list_add(a->tmp, *why,
                 mem_printf(a->tmp, "node pool \"%s\" has nodes in regions: [%s]", name, region));
}
