/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of objects that are searched, and who may find them: see kinds.h.
 */
#include "server/search/kinds.h"

#include <ctype.h>
#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/call/caller.h"

const struct search_kind search_kinds[] = {
    {"allocs", &type_allocation, STATE_ALLOCS, true, "read-job"},
    {"deployment", &type_deployment, STATE_DEPLOYMENTS, true, "read-job"},
    {"evals", &type_evaluation, STATE_EVALS, true, "read-job"},
    {"host_volumes", .hex = true, .need = "host-volume-read"},
    {"jobs", &type_job, STATE_JOBS, false, "read-job"},
#define OBJECT(TABLE, type, TYPE, table, ...) {table, &type_##type, STATE_##TABLE, false, NULL},
    API_COMMON_OBJECTS(OBJECT)
#undef OBJECT
        {"nodes", &type_node, STATE_NODES, true, "node:read"},
    {"plugins", .hex = false, .need = "plugin:list"},
    {"scaling_policy", &type_job_scaling_policy, STATE_SCALING_POLICIES, true, "read-job"},
    {"vars", &type_sealed_variable, STATE_VARIABLES, false, "variable:list"},
    {"volumes", .need = "csi-list-volume|csi-read-volume|list-jobs|read-job"},
};
const size_t search_kinds_n = ARRAY_LEN(search_kinds);

const char *
search_text(const struct type *t, const void *obj, const char *wire)
{
    const char *const *p = type_member(t, obj, wire);
    return p != NULL ? str_or(*p, "") : NULL;
}

/* --- rights --- */

struct acl_need
search_need(const struct search_kind *k)
{
    const char *word = k->need                      ? k->need
                       : k->type == &type_node_pool ? "node-pool:any"
                       : k->type == &type_namespace ? "namespace:any"
                                                    : "quota:read";
    struct acl_need need;
    struct err e = ERR_INIT;
    int rc = acl_need_parse(word, &need, &e);

    ASSERT(rc == 0);
    return need;
}

/* `name`: of the object, or the namespace that it is in; "*": of any. `path`: of a variable. */
static bool
may_find(const struct read *r, const struct acl_need *need, const char *name, const char *path)
{
    const struct caller *c = read_caller(r);

    return c == NULL || acl_allows(c->rights, need, name, path);
}

bool
search_may(const struct read *r, const struct search_kind *k, const struct acl_need *need)
{
    bool of_jobs = k->type != NULL && need->kind == ACL_NAMESPACE && k->need != NULL;
    bool any = str_eq(read_ns(r), NS_ALL) || need->kind == ACL_NODE_POOL || k->need == NULL;

    return of_jobs && !any ? call_may(r->call, read_ns(r))
                           : may_find(r, need, any ? NS_ALL : read_ns(r), NULL);
}

/* --- rows --- */

const char *
search_bytes(const struct read *r, const char *prefix)
{
    size_t digits = 0, n = strlen(prefix);

    for (size_t i = 0; i < n; i++) {
        if (prefix[i] != '-' && !isxdigit((unsigned char)prefix[i]))
            return NULL;
        digits += prefix[i] != '-';
    }
    while (digits % 2 != 0)
        digits -= prefix[--n] != '-';
    return mem_strndup(r->ctx, prefix, n);
}

struct state_iter *
search_rows(const struct read *r, struct state_txn *t, const struct search_kind *k, const char *key)
{
    return k->table == STATE_JOBS        ? state_jobs(t, r->ctx, read_ns(r), key)
           : k->table == STATE_VARIABLES ? state_variables(t, r->ctx, read_ns(r), key)
                                         : state_ids(t, r->ctx, k->table, key);
}

const char *
search_id(const struct search_kind *k, const void *obj)
{
    static const char *const members[] = {"ID", "Path", "Name"};
    const char *id = NULL;

    for (size_t i = 0; i < ARRAY_LEN(members) && id == NULL; i++)
        id = search_text(k->type, obj, members[i]);
    return id;
}

bool
search_may_row(const struct read *r, const struct acl_need *need, const char *ns, const char *id)
{
    if (ns == NULL)
        return may_find(r, need, id, NULL);
    if (need->kind != ACL_VARIABLE)
        return read_ns_matches(r, ns);
    return (str_eq(read_ns(r), NS_ALL) || str_eq(read_ns(r), ns)) && may_find(r, need, ns, id);
}
