/* SPDX-License-Identifier: Apache-2.0
 *
 * A binary min-heap of pointers that know their place, so that any element can be removed or moved.
 * `before(a, b)` is the order; `slot(a)` is where an element keeps its position (0: not in a heap).
 * Small on purpose: broker and heartbeats use it.
 */
#ifndef PADDOCK_SERVER_LEADER_HEAP_H
#define PADDOCK_SERVER_LEADER_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct pheap {
    void **v; /* 1-based; talloc'ed under ctx */
    size_t n, cap;
    const void *ctx;
    bool (*before)(const void *a, const void *b);
    size_t *(*slot)(void *e);
};

void pheap_push(struct pheap *h, void *e);
void *pheap_top(const struct pheap *h); /* NULL when empty */
void pheap_remove(struct pheap *h, void *e);
/* After the key of `e` changed. */
void pheap_update(struct pheap *h, void *e);

#endif
