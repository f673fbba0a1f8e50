/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocked evaluations: what could not be placed, waiting for capacity. Pure; the leader's apply
 * thread drives it and it can be rebuilt from the stored evaluations.
 *
 * Invariants: one blocked evaluation per job; for every gain of capacity at index i, every blocked
 * evaluation that was computed from a snapshot older than i and may use it is released (no lost
 * wake-up: what happened between its snapshot and its arrival counts too).
 */
#ifndef PADDOCK_SERVER_LEADER_BLOCKED_H
#define PADDOCK_SERVER_LEADER_BLOCKED_H

#include <stddef.h>
#include <stdint.h>

#include "api/api.h"

enum { BLOCKED_RETRY_MS = 60000 }; /* of those that lost too many races (max-plan-attempts) */

struct blocked;

struct blocked *blocked_new(const void *ctx);
void blocked_clear(struct blocked *b);

/* Takes a clone in, releases it at once when capacity came meanwhile, or, when the job has an
 * evaluation here already, keeps the one with the newer snapshot and hands the other out as a
 * duplicate. */
void blocked_add(struct blocked *b, const struct evaluation *e, int64_t now_ms);
/* Capacity of a class appeared at `index`. */
void blocked_capacity(struct blocked *b, const char *computed_class, uint64_t index);
/* The quota has more room, or another limit, since `index`. An evaluation that waits for a quota
 * alone is released by nothing else. */
void blocked_quota(struct blocked *b, const char *quota, uint64_t index);
/* The job's work is done, or its evaluation was cancelled. */
void blocked_untrack(struct blocked *b, const char *ns, const char *job_id);

/* Forgets an evaluation that is not in the state any more. */
void blocked_forget(struct blocked *b, const struct evaluation *e);

void blocked_tick(struct blocked *b, int64_t now_ms);
int64_t blocked_next_ms(const struct blocked *b); /* INT64_MAX: never */

/* Evaluations to hand to the broker, and those to cancel in the log; owned by ctx. NULL: none. */
struct evaluation *blocked_take_released(struct blocked *b, const void *ctx);
struct evaluation *blocked_take_duplicate(struct blocked *b, const void *ctx);
size_t blocked_count(const struct blocked *b);

#ifdef FAULT_INJECTION
void test_hook_blocked(const struct blocked *b, void *ctx, struct str_list *ret); /* ids */
#endif

#endif
