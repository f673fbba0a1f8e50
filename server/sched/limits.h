/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of server/sched/, named. `make check-docs` holds paddock-limits(7) against this file:
 * the comment of each is its text there.
 */
#ifndef PADDOCK_SERVER_SCHED_LIMITS_H
#define PADDOCK_SERVER_SCHED_LIMITS_H

enum {
    /* --- server: constraints --- */
    REGEX_MATCH_LIMIT = 100000, /* steps of one match; beyond, it does not match */
    REGEX_CACHE_MAX = 256,      /* compiled patterns that are kept */

    /* --- server: scheduling --- */
    METRIC_TEXT_MAX = 256,   /* bytes of a reason in the metrics of a placement */
    METRIC_REASONS_MAX = 64, /* reasons of a kind there; further ones are "others" */
    METRICS_BYTES_MAX =
        2 << 20, /* bytes of the metrics of an evaluation; further ones are numbers */
    EXPLAIN_CHECKS_MAX = 1000000, /* groups times nodes of an explanation */
    PREEMPT_OPTIONS = 8,          /* nodes that are compared for one preemption */
    PREEMPT_CANDIDATES = 50000    /* allocations that an attempt considers for preemption */
};

#endif
