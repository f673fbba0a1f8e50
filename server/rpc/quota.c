/* SPDX-License-Identifier: Apache-2.0
 *
 * Quota.Usage and Quota.Usages: what the allocations of a quota's namespaces hold in this region,
 * and the variables in them.
 * Quotas themselves are objects with a name (object.c).
 */
#include <openssl/evp.h>

#include "common/mem.h"
#include "server/call/method.h"
#include "server/leader/live.h"

/* Fills in what is used of the limit of this region. */
static void
usage_fill(struct read *r, struct state_txn *t, const struct quota *q, struct quota_usage *u)
{
    const void *ctx = q; /* lives as long as the answer */
    const char *region = str_or(server_cfg(r->s)->region, "global");

    for (size_t i = 0; i < q->limits.n; i++) {
        const struct quota_limit *of = q->limits.v[i];
        if (!str_eq(of->region, region))
            continue;
        struct quota_use used = quota_used(t, q->name);
        struct quota_limit *l = type_new(ctx, &type_quota_limit);
        l->region = of->region;
        l->hash = of->hash;
        l->region_limit = type_new(l, &type_quota_resources);
        l->region_limit->count = used.count;
        l->region_limit->cpu = used.cpu;
        l->region_limit->memory_mb = used.mem;
        l->variables_limit = (int64_t)((state_quota_bytes(t, q->name) + QUOTA_MB - 1) / QUOTA_MB);
        unsigned char *key = mem_array(ctx, unsigned char, 4 * (of->hash.n / 3 + 1) + 1);
        (void)EVP_EncodeBlock(key, of->hash.v, (int)of->hash.n);
        map_put(ctx, u->used, (const char *)key)->v = l;
    }
}

static void *
usage_get(struct read *r, struct state_txn *t)
{
    const struct quota *q = state_get(t, r->ctx, QUOTAS, read_id(r));

    if (q == NULL)
        return NULL;
    struct quota_usage *u = type_new(r->ctx, &type_quota_usage);
    u->name = q->name;
    u->create_index = q->create_index;
    u->modify_index = q->modify_index;
    usage_fill(r, t, q, u);
    return u;
}

static struct state_iter *
usages_rows(struct read *r, struct state_txn *t)
{
    return state_ids(t, r->ctx, STATE_QUOTAS, r->list->prefix);
}

static void
usages_finish(struct read *r, struct state_txn *t, void *whole, void *row)
{
    usage_fill(r, t, state_get(t, whole, QUOTAS, ((const struct quota *)whole)->name), row);
}

#define USAGE_TABLES                                                                               \
    STATE_BIT(STATE_QUOTAS) | STATE_BIT(STATE_NAMESPACES) | STATE_BIT(STATE_ALLOCS) |              \
        STATE_BIT(STATE_VARIABLES)

const struct read_row read_quota_usage = {
    .tables = USAGE_TABLES, .run = read_one, .get = usage_get};
const struct read_row read_quota_usages = {.tables = USAGE_TABLES,
                                           .run = read_list,
                                           .rows = usages_rows,
                                           .finish = usages_finish,
                                           .needs = "Name",
                                           .makes = "Used"};
