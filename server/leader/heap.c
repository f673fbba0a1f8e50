/* SPDX-License-Identifier: Apache-2.0
 *
 * A heap with removal (see heap.h).
 */
#include "server/leader/heap.h"

#include "common/mem.h"

static void
heap_put(struct pheap *h, size_t i, void *e)
{
    h->v[i] = e;
    *h->slot(e) = i;
}

static void
heap_up(struct pheap *h, size_t i)
{
    void *e = h->v[i];

    for (; i > 1 && h->before(e, h->v[i / 2]); i /= 2)
        heap_put(h, i, h->v[i / 2]);
    heap_put(h, i, e);
}

static void
heap_down(struct pheap *h, size_t i)
{
    void *e = h->v[i];
    size_t k;

    while ((k = i * 2) <= h->n) {
        if (k < h->n && h->before(h->v[k + 1], h->v[k]))
            k++;
        if (!h->before(h->v[k], e))
            break;
        heap_put(h, i, h->v[k]);
        i = k;
    }
    heap_put(h, i, e);
}

void
pheap_push(struct pheap *h, void *e)
{
    ASSERT(*h->slot(e) == 0);
    if (h->n + 1 >= h->cap) {
        h->cap = h->cap ? h->cap * 2 : 16;
        mem_resize(h->ctx, h->v, void *, h->cap);
    }
    h->v[++h->n] = e;
    heap_up(h, h->n);
}

void *
pheap_top(const struct pheap *h)
{
    return h->n > 0 ? h->v[1] : NULL;
}

void
pheap_remove(struct pheap *h, void *e)
{
    size_t i = *h->slot(e);

    if (i == 0)
        return;
    ASSERT(i <= h->n && h->v[i] == e);
    *h->slot(e) = 0;
    void *last = h->v[h->n--];
    if (last == e)
        return;
    h->v[i] = last;
    *h->slot(last) = i;
    pheap_update(h, last);
}

void
pheap_update(struct pheap *h, void *e)
{
    size_t i = *h->slot(e);

    if (i > 1 && h->before(e, h->v[i / 2]))
        heap_up(h, i);
    else
        heap_down(h, i);
}
