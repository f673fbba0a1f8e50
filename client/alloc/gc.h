/* SPDX-License-Identifier: Apache-2.0
 *
 * Collection of terminal allocations, oldest first: while there are more than gc_max_allocs, while
 * the disk is too full, or when asked. Looked at when an allocation comes, and gc_interval after
 * one has ended; while none has ended there is no timer.
 */
#ifndef PADDOCK_CLIENT_ALLOC_GC_H
#define PADDOCK_CLIENT_ALLOC_GC_H

#include "client/alloc/alloc_runner.h"

struct gc;

#define GC_ASKED "as was asked for"
#define GC_FORGOTTEN "the servers do not list it any more"

struct gc *gc_new(struct allocs *allocs);
void gc_stop(struct gc *gc);
void gc_wake(struct gc *gc);      /* an allocation has ended: look in gc_interval */
void gc_make_room(struct gc *gc); /* one was added: look now */
/* Destroys a terminal allocation when its turn comes (gc_parallel_destroys). `why` is for who asks
 * for its files then, and outlives it. False: it is not terminal, or on its way already. */
bool gc_collect(struct gc *gc, struct alloc_runner *ar, const char *why, client_done *done,
                void *arg);
void gc_ended(struct gc *gc, struct alloc_runner *ar, const struct err *e); /* it is `gone` */

#endif
