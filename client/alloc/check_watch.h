/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks at the checks of an allocation again and again: the first time after half of an interval,
 * then an interval after the end of the look before. Results are in the allocation's record, which
 * is written when a status changes; with those in it an agent begins that is back.
 *
 * A check that has failed for long restarts tasks (check_restart): a time of grace counts from the
 * start of the task, and a restart like a failure of it.
 */
#ifndef PADDOCK_CLIENT_ALLOC_CHECK_WATCH_H
#define PADDOCK_CLIENT_ALLOC_CHECK_WATCH_H

#include "client/alloc/alloc_runner.h"
#include "client/alloc/checks.h"

struct check_watches;

/* Steals the plans: those that are new begin, what is not among them ends. */
void check_watch_set(struct alloc_runner *ar, struct check_plans *plans);
/* Returns the health of a registration. */
const char *check_watch_health(const struct alloc_runner *ar, const char *registration);
/* Counts the checks that are not of readiness alone. Returns since when those that pass do so
 * without a break, wall clock in ns. */
int64_t check_watch_since(const struct alloc_runner *ar, size_t *ret_passing, size_t *ret_n);
void check_watch_stop(struct alloc_runner *ar);

#endif
