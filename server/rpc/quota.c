/* SPDX-License-Identifier: Apache-2.0
 *
 * Quota.Usage and Quota.Usages: what the allocations of a quota's namespaces hold in this region.
 * Quotas themselves are objects with a name (object.c).
 */
#include <openssl/evp.h>

#include "common/mem.h"
#include "server/call/method.h"
#include "server/leader/live.h"

static struct quota_usage *
usage_of(struct read *r, struct state_txn *t, const struct quota *q)
{
    const char *region = str_or(server_cfg(r->s)->region, "global");
    struct quota_use used = quota_used(t, q->name);
    struct quota_usage *u = type_new(r->ctx, &type_quota_usage);

    u->name = q->name;
    u->create_index = q->create_index;
    u->modify_index = q->modify_index;
    for (size_t i = 0; i < q->limits.n; i++) {
        const struct quota_limit *of = q->limits.v[i];
        if (!str_eq(of->region, region))
            continue;
        struct quota_limit *l = type_new(u, &type_quota_limit);
        l->region = of->region;
        l->hash = of->hash;
        l->region_limit = type_new(l, &type_quota_resources);
        l->region_limit->count = used.count;
        l->region_limit->cpu = used.cpu;
        l->region_limit->memory_mb = used.mem;
        unsigned char *key = mem_array(u, unsigned char, 4 * (of->hash.n / 3 + 1) + 1);
        (void)EVP_EncodeBlock(key, of->hash.v, (int)of->hash.n);
        map_put(u, u->used, (const char *)key)->v = l;
    }
    return u;
}

static int
usage_run(struct read *r, struct state_txn *t, struct err *e)
{
    struct quota_usage_response *resp = read_resp(r);
    const struct quota *q = state_get(t, r->ctx, QUOTAS, read_id(r));

    (void)e;
    r->index = state_index(t, r->row->tables);
    resp->usage = q != NULL ? usage_of(r, t, q) : NULL;
    return 0;
}

const struct read_row read_quota_usage = {
    .tables = STATE_BIT(STATE_QUOTAS) | STATE_BIT(STATE_NAMESPACES) | STATE_BIT(STATE_ALLOCS),
    .run = usage_run};

static int
usages_run(struct read *r, struct state_txn *t, struct err *e)
{
    struct quota_usage_list_response *resp = read_resp(r);
    struct state_iter *it = state_ids(t, r->ctx, STATE_QUOTAS, r->list->prefix);

    (void)e;
    r->index = state_index(t, r->row->tables);
    for (struct quota *q; (q = state_next(it, r->ctx)) != NULL;)
        list_add(r->ctx, resp->usages, usage_of(r, t, q));
    return 0;
}

const struct read_row read_quota_usages = {
    .tables = STATE_BIT(STATE_QUOTAS) | STATE_BIT(STATE_NAMESPACES) | STATE_BIT(STATE_ALLOCS),
    .run = usages_run};
