/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: services, where path and query are not all. Instances are chosen here, by a hash of
 * each and of the caller's key: the same key finds the same ones as long as they are there.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/api/api.h"
#include "common/hash.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

/* --- what there is --- */

static void
services_done(struct request *a, const void *resp)
{
    const struct service_list_response *r = resp;

    reply_meta(a, r->meta);
    reply_rows(a, &type_services_of_namespace, &r->services);
}

static void
routes_service_list(struct request *a)
{
    call_server(a, RPC_SERVICE_LIST, mem_new(a, struct empty), services_done);
}

/* --- one of them --- */

struct ranked {
    uint64_t rank;
    struct service_registration *s;
};

static int
by_rank(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return strcmp(str_or(a->s->id, ""), str_or(b->s->id, ""));
}

/* Parses "N|KEY"; NULL: it is not so, which was answered. */
static const char *
choose_key(struct request *a, const char *text, uint64_t *ret_n)
{
    const char *bar = strchr(text, '|');
    uint64_t n = 0;

    if (bar != NULL && bar[1] != '\0' &&
        num_parse_u64(mem_strndup(a, text, (size_t)(bar - text)), &n) == 0 && n > 0) {
        *ret_n = n;
        return bar + 1;
    }
    reply_fail(a, 400, "malformed choose parameter: write choose=N|KEY");
    return NULL;
}

static void
choose_done(struct request *a, const void *resp)
{
    const struct services_response *r = resp;
    struct service_registration_list chosen = {NULL, 0};
    uint64_t n;
    const char *key = choose_key(a, http_query(a->req, "choose"), &n);

    if (key == NULL)
        return;
    struct ranked *all = mem_array(a, struct ranked, r->services.n + 1);
    for (size_t i = 0; i < r->services.n; i++) {
        struct service_registration *s = r->services.v[i];
        all[i] = (struct ranked){hash_rank(key, str_or(s->address, ""), s->port), s};
    }
    if (r->services.n > 0)
        qsort(all, r->services.n, sizeof(*all), by_rank);
    for (size_t i = 0; i < r->services.n && i < n; i++)
        list_add(a, chosen, all[i].s);
    reply_meta(a, r->meta);
    reply_rows(a, &type_service_registration, &chosen);
}

static void
routes_service_get(struct request *a)
{
    const char *choose = http_query(a->req, "choose");
    struct id_request *r = request_by_id(a);
    uint64_t n;

    r->healthy = true;
    if (!param_bool(a, "healthy", &r->healthy))
        return;
    if (str_empty(choose)) {
        reply_list(a, RPC_SERVICE_GET, r);
    } else if (choose_key(a, choose, &n) != NULL) {
        r->list = &a->list;
        call_server(a, RPC_SERVICE_GET, r, choose_done);
    }
}

static void
routes_service_delete(struct request *a)
{
    struct service_delete_request *r = mem_new(a, struct service_delete_request);
    const char *slash = strchr(a->id, '/');

    if (slash == NULL || slash[1] == '\0' || slash == a->id) {
        reply_fail(a, 400, "a name and the id of a registration are needed: /v1/service/NAME/ID");
        return;
    }
    r->service_name = mem_strndup(r, a->id, (size_t)(slash - a->id));
    r->id = slash + 1;
    call_server(a, RPC_SERVICE_DELETE, r, method_done);
}

const struct route routes_service[] = {
    {VERB_GET, "/v1/services", NULL, routes_service_list, RPC_SERVICE_LIST, BY_SERVER},
    {VERB_GET, "/v1/service/", "", routes_service_get, RPC_SERVICE_GET, BY_SERVER},
    {VERB_DELETE, "/v1/service/", "", routes_service_delete, RPC_SERVICE_DELETE, BY_SERVER},
    ROUTES_END,
};
