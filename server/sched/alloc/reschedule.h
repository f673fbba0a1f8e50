/* SPDX-License-Identifier: Apache-2.0
 *
 * Reschedule policies: when a failed allocation may be placed again.
 */
#ifndef PADDOCK_SERVER_SCHED_RESCHEDULE_H
#define PADDOCK_SERVER_SCHED_RESCHEDULE_H

#include <stdbool.h>

#include "api/api.h"
#include "common/duration.h"

#define RESCHEDULE_NOW_WINDOW (1 * NS_PER_S)   /* due within this: now */
#define RESCHEDULE_BATCH_WINDOW (5 * NS_PER_S) /* later ones this close share an evaluation */
#define RESCHEDULE_EVENTS_KEPT 5               /* of an unlimited policy */

/* Delay before the next attempt, from the tracker's past events. */
int64_t reschedule_delay(const struct reschedule_policy *p, const struct allocation *a);
/* Whether the policy allows another attempt; *ret_at is its time. */
bool reschedule_allowed(const struct reschedule_policy *p, const struct allocation *a,
                        int64_t *ret_at);
/* Pending for that reason, and due at `at` or within RESCHEDULE_BATCH_WINDOW. */
bool reschedule_awaits(const struct evaluation *e, const char *trigger, int64_t at);
/* The tracker of the replacement of `prev`: the events that still count, and this one. */
struct reschedule_tracker *reschedule_tracker_next(const void *ctx,
                                                   const struct reschedule_policy *p,
                                                   const struct allocation *prev, int64_t now);

#endif
