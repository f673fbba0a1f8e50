/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: allocations, evaluations and search, where path and query are not all.
 */
#include <string.h>

#include "agent/api/api.h"
#include "api/filter/filter.h"
#include "api/limits.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"

static void
alloc_get(struct request *a)
{
    if (strchr(a->id, '/'))
        reply_fail(a, 404, "resource not found"); /* of an allocation */
    else
        route_call(a);
}

static void
evals_list(struct request *a)
{
    bool narrowed =
        !str_empty(http_query(a->req, "status")) || !str_empty(http_query(a->req, "job"));

    if (!str_empty(a->list.filter) && narrowed)
        reply_fail(a, 400, "filter cannot be combined with status or job");
    else
        route_call(a);
}

/* --- deleting and counting evaluations --- */

enum { DELETE_PAGE = 1000 };

/* By a filter: a page of those that it matches is asked for, and deleted or counted, until there is
 * no more. */
struct deletion {
    struct list_request list;
    struct list_options options; /* of it */
    struct eval_delete_request del;
    int64_t count;
    bool last, counts; /* only */
};

static void page_deleted(struct request *a, const void *resp);

static void
page_found(struct request *a, const void *resp)
{
    struct deletion *d = a->user;
    const struct eval_list_response *r = resp;

    d->last = str_empty(r->meta->next_token);
    d->options.next_token = mem_strdup(d, r->meta->next_token);
    if (d->counts) {
        d->count += (int64_t)r->evaluations.n;
        if (!d->last) {
            call_server(a, RPC_EVAL_LIST, &d->list, page_found);
            return;
        }
        struct eval_count_response all = {d->count, r->meta->index, r->meta->last_contact,
                                          r->meta->known_leader, NULL};
        reply_meta(a, r->meta);
        reply_json(a, &type_eval_count_response, &all);
        return;
    }
    mem_free(d->del.eval_ids.v);
    d->del.eval_ids = (struct str_list){NULL, 0};
    for (size_t i = 0; i < r->evaluations.n; i++)
        list_add(d, d->del.eval_ids, mem_strdup(d, r->evaluations.v[i]->id));
    call_server(a, RPC_EVAL_DELETE, &d->del, page_deleted);
}

static void
page_deleted(struct request *a, const void *resp)
{
    struct deletion *d = a->user;
    const struct eval_delete_response *r = resp;

    d->count += r->count;
    if (!d->last) {
        call_server(a, RPC_EVAL_LIST, &d->list, page_found);
        return;
    }
    struct eval_delete_response all = {d->count, r->index};
    reply_index(a, r->index);
    reply_json(a, &type_eval_delete_response, &all);
}

/* False: the filter is malformed, which was answered. */
static bool
routes_alloc_begin(struct request *a, const char *filter)
{
    struct deletion *d = a->user = mem_new(a, struct deletion);
    struct err e = ERR_INIT;

    d->options = (struct list_options){.filter = filter, .per_page = DELETE_PAGE};
    d->list.list = &d->options;
    if (str_empty(filter) || filter_compile(a, &type_evaluation, filter, &e) != NULL)
        return true;
    reply_fail(a, 400, "failed to read filter expression: %s", e.text);
    return false;
}

static void
evals_count(struct request *a)
{
    if (!routes_alloc_begin(a, a->list.filter))
        return;
    struct deletion *d = a->user;
    d->counts = true;
    call_server(a, RPC_EVAL_LIST, &d->list, page_found);
}

static void
evals_delete(struct request *a)
{
    struct eval_delete_request *r = request_body(a, &type_eval_delete_request, false);

    if (r == NULL)
        return;
    r->skip = false;
    if (str_empty(r->filter) && r->eval_ids.n == 0) {
        reply_fail(a, 400, "evals must be deleted by either ID or filter");
    } else if (r->eval_ids.n > EVAL_DELETE_MAX) {
        reply_fail(a, 400, "request includes %zu evaluation IDs, must be %d or fewer",
                   r->eval_ids.n, EVAL_DELETE_MAX);
    } else if (str_empty(r->filter)) {
        call_server(a, RPC_EVAL_DELETE, r, method_done);
    } else if (r->eval_ids.n > 0) {
        reply_fail(a, 400, "evals cannot be deleted by both ID and filter");
    } else if (routes_alloc_begin(a, r->filter)) {
        struct deletion *d = a->user;
        d->del.skip = true;
        a->env.namespace = NS_ALL;
        a->env.stale = false;
        call_server(a, RPC_EVAL_DELETE, &d->del, page_deleted); /* of none: says whether it may */
    }
}

const struct route routes_alloc[] = {
    {VERB_DELETE, "/v1/evaluations", NULL, evals_delete, RPC_EVAL_DELETE, BY_SERVER},
    {VERB_GET, "/v1/evaluations/count", NULL, evals_count, RPC_EVAL_LIST, BY_SERVER},
    {VERB_GET, "/v1/allocation/", "", alloc_get, RPC_ALLOC_GET_ALLOC, BY_SERVER},
    {VERB_GET, "/v1/evaluations", NULL, evals_list, RPC_EVAL_LIST, BY_SERVER},
    ROUTES_END,
};
