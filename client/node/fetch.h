/* SPDX-License-Identifier: Apache-2.0
 *
 * Fetches the allocations that the list of this node named as new or changed: in parts, as many as
 * the server gives at once, each job once. A part that cannot be had is asked for in smaller ones;
 * a single allocation that cannot be had is reported as failed, and holds up no other.
 */
#ifndef PADDOCK_CLIENT_NODE_FETCH_H
#define PADDOCK_CLIENT_NODE_FETCH_H

#include "client/alloc/gc.h"
#include "client/node/gone.h"

struct fetch;

/* The modules that the answers go to. */
struct fetch_to {
    struct allocs *allocs;
    struct gc *gc;
    struct gone_set *gone;
    void (*done)(void *arg, const struct err *e); /* the fetch is freed; e NULL: all is here */
    void *arg;
};

struct fetch *fetch_new(const struct fetch_to *to);
void fetch_add(struct fetch *f, const char *id, uint64_t index);
void fetch_start(struct fetch *f);
void fetch_cancel(struct fetch *f); /* `done` comes */

#endif
