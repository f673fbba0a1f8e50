/* SPDX-License-Identifier: Apache-2.0
 *
 * Search.PrefixSearch: what has an id that begins so, by kind.
 */
#include "common/mem.h"
#include "common/str.h"
#include "server/search/kinds.h"

bool
search_prefix(const struct read *r, struct state_txn *t, const struct search_kind *k,
              const char *prefix, struct str_list *found)
{
    struct acl_need need = search_need(k);
    const char *key = k->hex ? search_bytes(r, prefix) : prefix;

    if (k->type == NULL || key == NULL)
        return false;
    struct state_iter *it = search_rows(r, t, k, key);
    for (void *obj; (obj = state_next(it, r->ctx)) != NULL; talloc_free(obj)) {
        const char *ns = search_text(k->type, obj, "Namespace"), *id = search_id(k, obj);
        if (!str_prefix(id, prefix) || !search_may_row(r, &need, ns, id))
            continue;
        if (found->n == SEARCH_MATCHES_MAX) {
            state_iter_end(it);
            return true;
        }
        list_add(r->ctx, *found, mem_strdup(r->ctx, id));
    }
    return false;
}

static int
search_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct search_request *req = r->req;
    struct search_response *resp = read_resp(r);
    bool all = str_eq(req->context, "all"), known = all;

    for (size_t i = 0; i < search_kinds_n; i++) {
        if (!all && !str_eq(req->context, search_kinds[i].name))
            continue;
        known = true;
        struct acl_need need = search_need(&search_kinds[i]);
        bool may = search_may(r, &search_kinds[i], &need);
        if (!may && !all)
            return err_set(e, -ERR_FORBIDDEN, "Permission denied");
        if (may) {
            struct str_list found = {0};
            map_put(resp, resp->truncations, search_kinds[i].name)->v =
                search_prefix(r, t, &search_kinds[i], str_or(req->prefix, ""), &found);
            map_put(resp, resp->matches, search_kinds[i].name)->v = found;
        }
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

const struct read_row read_search_prefix_search = {.tables = SEARCH_TABLES, .run = search_run};
