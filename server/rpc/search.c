/* SPDX-License-Identifier: Apache-2.0
 *
 * Search.PrefixSearch: what has an id that begins so, by kind.
 */
#include <ctype.h>

#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/call/caller.h"
#include "server/call/method.h"

/* Nomad's kinds of objects. `type` NULL: there are none. Rights to objects that are in no namespace
 * are asked for by name. */
static const struct kind {
    const char *name;
    const struct type *type;
    enum state_table table;
    bool hex; /* ids of hex digits */
    const char *need; /* NULL: that of its object */
} kinds[] = {
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
    {"scaling_policy", .hex = true, .need = "read-job"},
    {"vars", &type_sealed_variable, STATE_VARIABLES, false, "variable:list"},
    {"volumes", .need = "csi-list-volume|csi-read-volume|list-jobs|read-job"},
};

static const char *
member_text(const struct type *t, const void *obj, const char *wire)
{
    const char *const *p = type_member(t, obj, wire);
    return p != NULL ? str_or(*p, "") : NULL;
}

/* --- rights --- */

static struct acl_need
need_of(const struct kind *k)
{
    const char *word = k->need                        ? k->need
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

/* Says whether anything of that kind can be found. */
static bool
may_search(const struct read *r, const struct kind *k, const struct acl_need *need)
{
    bool of_jobs = k->type != NULL && need->kind == ACL_NAMESPACE && k->need != NULL;
    bool any = str_eq(read_ns(r), NS_ALL) || need->kind == ACL_NODE_POOL || k->need == NULL;

    return of_jobs && !any ? call_may(r->call, read_ns(r))
                           : may_find(r, need, any ? NS_ALL : read_ns(r), NULL);
}

/* --- finding --- */

/* The part of a prefix of hex digits by which rows are found: whole bytes. NULL: no id begins so.
 */
static const char *
bytes_of(const struct read *r, const char *prefix)
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

static struct state_iter *
search_rows(const struct read *r, struct state_txn *t, const struct kind *k, const char *key)
{
    return k->table == STATE_JOBS        ? state_jobs(t, r->ctx, read_ns(r), key)
           : k->table == STATE_VARIABLES ? state_variables(t, r->ctx, read_ns(r), key)
                                         : state_ids(t, r->ctx, k->table, key);
}

static const char *
search_id(const struct kind *k, const void *obj)
{
    static const char *const members[] = {"ID", "Path", "Name"};
    const char *id = NULL;

    for (size_t i = 0; i < ARRAY_LEN(members) && id == NULL; i++)
        id = member_text(k->type, obj, members[i]);
    return id;
}

static bool
may_find_row(const struct read *r, const struct acl_need *need, const char *ns, const char *id)
{
    if (ns == NULL)
        return may_find(r, need, id, NULL);
    if (need->kind != ACL_VARIABLE)
        return read_ns_matches(r, ns);
    return (str_eq(read_ns(r), NS_ALL) || str_eq(read_ns(r), ns)) && may_find(r, need, ns, id);
}

static void
search_find(const struct read *r, struct state_txn *t, const struct kind *k, const char *prefix,
            struct search_response *resp)
{
    struct acl_need need = need_of(k);
    struct str_list *found = &map_put(resp, resp->matches, k->name)->v;
    bool *more = &map_put(resp, resp->truncations, k->name)->v;
    const char *key = k->hex ? bytes_of(r, prefix) : prefix;

    if (k->type == NULL || key == NULL)
        return;
    struct state_iter *it = search_rows(r, t, k, key);
    for (void *obj; (obj = state_next(it, r->ctx)) != NULL; talloc_free(obj)) {
        const char *ns = member_text(k->type, obj, "Namespace"), *id = search_id(k, obj);
        if (!str_prefix(id, prefix) || !may_find_row(r, &need, ns, id))
            continue;
        if (found->n == SEARCH_MATCHES_MAX) {
            *more = true;
            state_iter_end(it);
            return;
        }
        list_add(resp, *found, mem_strdup(resp, id));
    }
}

static int
search_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct search_request *req = r->req;
    struct search_response *resp = read_resp(r);
    bool all = str_eq(req->context, "all"), known = all;

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!all && !str_eq(req->context, kinds[i].name))
            continue;
        known = true;
        struct acl_need need = need_of(&kinds[i]);
        bool may = may_search(r, &kinds[i], &need);
        if (!may && !all)
            return err_set(e, -ERR_FORBIDDEN, "Permission denied");
        if (may)
            search_find(r, t, &kinds[i], str_or(req->prefix, ""), resp);
    }
    if (!known)
        return err_set(
            e, -ERR_INVALID,
            "context must be one of [allocs jobs nodes node_pools evals deployment plugins "
            "volumes scaling_policy vars namespaces host_volumes] or 'all' for all contexts; "
            "got \"%.64s\"",
            str_or(req->context, ""));
    r->index = state_index(t, r->row->tables);
    resp->index = r->index;
    resp->known_leader = true;
    return 0;
}

const struct read_row read_search_prefix_search = {
    .tables = STATE_BIT(STATE_JOBS) | STATE_BIT(STATE_ALLOCS) | STATE_BIT(STATE_EVALS) |
              STATE_BIT(STATE_NODES) |
              STATE_BIT(STATE_DEPLOYMENTS) | STATE_BIT(STATE_VARIABLES)
#define OBJECT(TABLE, ...) | STATE_BIT(STATE_##TABLE)
                  API_COMMON_OBJECTS(OBJECT),
#undef OBJECT
    .run = search_run};
