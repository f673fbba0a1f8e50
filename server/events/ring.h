/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring of events: the rows that the newest entries of the log wrote, on each server, fed by its
 * own apply (struct log_listener), so that each server has the same at the same index. What is kept
 * is bounded in entries and in memory; readers hold nothing of it while they wait. Readers come on
 * any thread.
 */
#ifndef PADDOCK_SERVER_EVENTS_RING_H
#define PADDOCK_SERVER_EVENTS_RING_H

#include <stddef.h>
#include <stdint.h>

#include "server/events/event.h"
#include "server/limits.h"
#include "server/propose.h"

struct events;

/* `kept`, `bytes`: 0: EVENTS_KEPT_MAX, EVENTS_KEPT_BYTES. */
struct events *events_new(const void *ctx, size_t kept, size_t bytes);
/* Follows a log; its argument is a struct events. */
extern const struct log_listener events_listener;

/* The entries after an index, the oldest first. */
struct events_part {
    struct event_batch *v[EVENTS_PART_ENTRIES];
    size_t n;
    uint64_t base; /* entries up to it are not kept */
    uint64_t last; /* entry that the ring has heard of */
};
/* `after` is taken as the base where it is less. */
void events_after(struct events *r, uint64_t after, struct events_part *ret);
void events_part_done(struct events_part *p);

#endif
