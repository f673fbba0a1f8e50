/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether an allocation is healthy, for its deployment or, without one, for a drain that waits:
 * from the records of its tasks and the time alone. Pure.
 *
 *   good   every task that counts has been running for min_healthy_time, and is watched for so
 *          long; so long all checks of services have passed, unless health_check is task_states
 *   bad    a task has failed, or has ended that was to go on; or not good at the deadline
 *
 * Tasks before and after the main ones that end well do not count, poststop tasks never do.
 */
#ifndef PADDOCK_CLIENT_ALLOC_HEALTH_H
#define PADDOCK_CLIENT_ALLOC_HEALTH_H

#include "client/task/task_sm.h"

enum health { HEALTH_OPEN, HEALTH_GOOD, HEALTH_BAD };

struct health_policy {
    bool judged;    /* somebody wants to know: else it stays open */
    bool deploy;    /* by the update block, not by the migrate block */
    bool checks;    /* those of services count as well */
    int64_t min_ns; /* min_healthy_time */
    int64_t max_ns; /* healthy_deadline */
};

struct health_in {
    const struct task_sm *const *tasks;
    size_t n;
    struct health_policy policy;
    int64_t now;   /* wall clock, ns */
    int64_t began; /* when one began to look */
    size_t checks, passing; /* of services: how many count, and pass */
    int64_t passing_since;  /* all of them, without a break; wall clock, ns */
};

/* Reads the job's policy for the allocation: batch jobs and health_check "manual" are not judged
 * here. */
struct health_policy health_policy_of(const struct allocation *a, const struct task_group *tg);
/* *ret_at: when it may be otherwise though nothing happens, wall ns; for HEALTH_OPEN. */
enum health health_judge(const struct health_in *in, int64_t *ret_at);
/* Why the allocation is bad on account of task i: an event's message, owned by ctx, or NULL. */
const char *health_reason(const void *ctx, const struct health_in *in, size_t i);

#endif
