/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: namespaces: those that are there from the start, their quotas, who keeps one.
 * The rules for the jobs of one are api/namespace.h's.
 */
#include "server/fsm/fsm_int.h"

static void
make_namespace(struct apply *a, const char *name, const char *description)
{
    struct namespace *n = type_new(a->ctx, &type_namespace);

    n->name = mem_strdup(n, name);
    n->description = description;
    entry_put_object(a, STATE_NAMESPACES, &type_namespace, n);
}

void
entry_make_namespaces(struct apply *a)
{
    struct str_map names = {NULL, 0};
    struct state_iter *it = state_jobs(a->t, a->tmp, NS_ALL, NULL);
    struct lean *lean = lean_new(a->tmp, &type_job, &type_job, "Namespace", "");

    for (struct job *j; (j = state_next_lean(it, a->tmp, lean)) != NULL; talloc_free(j))
        str_map_set(a->tmp, &names, mem_strdup(a->tmp, j->namespace), "");
    make_namespace(a, NS_DEFAULT, "Default shared namespace");
    for (size_t i = 0; i < names.n; i++)
        if (!str_eq(names.v[i].k, NS_DEFAULT))
            make_namespace(a, names.v[i].k, NULL);
}

/* --- quotas --- */

int
entry_refuses_namespace(struct apply *a, const struct namespace *n)
{
    if (str_empty(n->quota) ||
        state_row_bytes(a->t, STATE_QUOTAS, (struct state_key){.a = n->quota}) > 0)
        return 0;
    return entry_refuse(a, -ERR_INVALID,
                        "namespace \"%s\" names quota \"%.128s\", which does not exist: apply the "
                        "quota first",
                        n->name, n->quota);
}

void
entry_keeps_quota(struct apply *a, const char *name, const char *region, struct str_list *why)
{
    struct state_iter *it = state_ids(a->t, a->tmp, STATE_NAMESPACES, NULL);

    for (struct namespace *n; (n = state_next(it, a->tmp)) != NULL; talloc_free(n))
        if (str_eq(n->quota, name))
            list_add(a->tmp, *why,
                     mem_printf(a->tmp, "quota \"%s\" is used by namespace \"%s\" in region %s",
                                name, n->name, region));
}

/* --- deletion --- */

static bool
has_live_jobs(struct apply *a, const char *ns)
{
    struct lean *lean = lean_new(a->tmp, &type_job, &type_job, "Status", "");
    struct state_iter *it = state_jobs(a->t, a->tmp, ns, NULL);

    for (struct job *j; (j = state_next_lean(it, a->tmp, lean)) != NULL; talloc_free(j))
        if (!str_eq(j->status, JOB_STATUS_DEAD)) {
            state_iter_end(it);
            return true;
        }
    return false;
}

static bool
has_running_allocs(struct apply *a, const char *ns)
{
    struct lean *lean = lean_new(a->tmp, &type_allocation, &type_allocation, "ClientStatus", "");
    struct state_iter *it = state_by(a->t, a->tmp, ALLOCS_BY_JOB, ns);

    for (struct allocation *al; (al = state_next_lean(it, a->tmp, lean)) != NULL; talloc_free(al))
        if (!alloc_client_terminal(al)) {
            state_iter_end(it);
            return true;
        }
    return false;
}

void
entry_keeps_namespace(struct apply *a, const char *name, const char *region, struct str_list *why)
{
    if (has_live_jobs(a, name))
        list_add(a->tmp, *why,
                 mem_printf(a->tmp, "namespace \"%s\" has non-terminal jobs in regions: [%s]", name,
                            region));
    if (has_running_allocs(a, name))
        list_add(a->tmp, *why,
                 mem_printf(a->tmp,
                            "namespace \"%s\" has non-terminal allocations in regions: [%s]", name,
                            region));
    struct state_iter *vars = state_variables(a->t, a->tmp, name, NULL);
    if (state_next(vars, a->tmp) == NULL)
        return;
    state_iter_end(vars);
    list_add(a->tmp, *why,
             mem_printf(a->tmp,
                        "namespace \"%s\" has variables associated with it in regions: [%s]", name,
                        region));
}
