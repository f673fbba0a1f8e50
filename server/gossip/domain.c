/* SPDX-License-Identifier: Apache-2.0
 *
 * Servers that fail together: see domain.h.
 */
#include "server/gossip/domain.h"

#include "common/mem.h"
#include "common/str.h"
#include "server/limits.h"

struct lost {
    int64_t until, most; /* of the event that it is in */
    const struct server_hello *server;
};

struct domains {
    struct lost *v; /* GOSSIP_MEMBERS_MAX at most */
    size_t n;
};

struct domains *
domains_new(const void *ctx)
{
    return mem_new(ctx, struct domains);
}

static bool
domain_same(const struct server_hello *a, const struct server_hello *b)
{
    return str_eq(a->region, b->region) && str_eq(a->zone, b->zone);
}

bool
domains_add(struct domains *d, int64_t now, const struct server_hello *h)
{
    int64_t until = now + DOMAIN_MS, most = now + DOMAIN_MOST_MS;
    ASSERT(!str_empty(h->zone));
    if (d->n == GOSSIP_MEMBERS_MAX)
        return false;
    for (size_t i = 0; i < d->n; i++)
        if (domain_same(d->v[i].server, h)) {
            until = d->v[i].until;
            most = d->v[i].most;
        }
    struct lost x = {until, most, codec_clone(d, &type_server_hello, h)};
    list_add(d, *d, x);
    return true;
}

void
domains_wait(struct domains *d, int64_t now, const struct server_hello *h)
{
    for (size_t i = 0; i < d->n; i++) {
        struct lost *x = &d->v[i];
        if (domain_same(x->server, h) && x->until < now + DOMAIN_WAIT_MS)
            x->until = now + DOMAIN_WAIT_MS < x->most ? now + DOMAIN_WAIT_MS : x->most;
    }
}

int64_t
domains_due(const struct domains *d)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < d->n; i++)
        due = d->v[i].until < due ? d->v[i].until : due;
    return due;
}

bool
domains_take(struct domains *d, const void *ctx, int64_t now, struct domain_event *ret)
{
    const struct server_hello *first = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < d->n && first == NULL; i++)
        if (d->v[i].until <= now)
            first = d->v[i].server;
    if (first == NULL)
        return false;
    *ret = (struct domain_event){first->region, first->zone, {0}};
    for (size_t i = 0; i < d->n; i++) {
        struct lost x = d->v[i];
        if (!domain_same(x.server, first)) {
            d->v[kept++] = x;
            continue;
        }
        talloc_reparent(d, ctx, x.server);
        list_add(ctx, ret->servers, x.server);
    }
    d->n = kept;
    return true;
}
