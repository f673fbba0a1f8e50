/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ground.h"

#include "common/mem.h"
#include "common/random.h"
#include "common/str.h"

enum {
    RETRY_MIN_MS = 500, /* doubled, jittered */
    RETRY_MAX_MS = 15 * 1000
};

void
hold_take(struct hold *h)
{
    for (; h; h = h->above)
        h->n++;
}

void
hold_release(struct hold *h)
{
    while (h) {
        struct hold *above = h->above;
        ASSERT(h->n > 0);
        h->n--;
        h->released(h->arg);
        h = above;
    }
}

const struct network_resource *
alloc_network(const struct alloc_core *a)
{
    const struct network_resource *n = a->tg->networks.n > 0 ? a->tg->networks.v[0] : NULL;
    return n && !str_empty(n->mode) && !str_eq(n->mode, "host") ? n : NULL;
}

int64_t
backoff_next(int64_t *backoff_ms)
{
    int64_t ms = *backoff_ms < RETRY_MIN_MS ? RETRY_MIN_MS : *backoff_ms;
    *backoff_ms = ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : ms * 2;
    return ms + (int64_t)(rand_u64() % (uint64_t)(ms / 2));
}
