/* SPDX-License-Identifier: Apache-2.0
 *
 * The events that rows of the state become: topic, type, keys, and payload as JSON, as Nomad's
 * event stream has them; paddock-events(7).
 */
#ifndef PADDOCK_SERVER_EVENTS_EVENT_H
#define PADDOCK_SERVER_EVENTS_EVENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "common/buf.h"
#include "server/fsm/fsm.h"

/* The events of one entry: immutable, but for texts that are made when they are first asked for;
 * counted. Any thread. */
struct event_batch {
    atomic_uint refs;
    uint64_t index;
    unsigned by;  /* enum intent_member */
    size_t bytes; /* of memory, about */
    struct fsm_events *rows;
    pthread_mutex_t lock;
    struct buf *texts; /* under the lock: of each row its payload; NULL: none was asked for */
};
struct event_batch *event_batch_new(uint64_t index, const struct intent *in,
                                    const struct fsm_result *res);
struct event_batch *event_batch_ref(struct event_batch *b);
void event_batch_unref(struct event_batch *b); /* NULL is fine */

/* A kind of events. */
struct event_topic {
    const char *name;
    const char *need; /* of acl_need_parse(): what a reader must be allowed */
};
/* Topics that are asked for by name; NULL: there is none of that name. */
const struct event_topic *event_topic(const char *name);

/* Says whether a row is of a topic. */
bool event_any(const struct fsm_events *rows);

/* Fills in the head of the i-th row of a batch, which borrows from it; lists are owned by ctx.
 * NULL: the row is of no topic. */
const struct event_topic *event_head(const void *ctx, const struct event_batch *b, size_t i,
                                     struct event_head *ret);

/* Says whether "Topic:key" is the event's; "*" is any of either. */
bool event_matches(const struct event_head *h, const char *want);

/* Writes the event with its payload, or with null where `whole` is false. Any thread. */
void event_write(struct buf *out, struct event_batch *b, size_t i, const struct event_head *h,
                 bool whole);

#endif
