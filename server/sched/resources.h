/* SPDX-License-Identifier: Apache-2.0
 *
 * What nodes have and allocations take; the fit score. Pure arithmetic.
 */
#ifndef PADDOCK_SERVER_SCHED_RESOURCES_H
#define PADDOCK_SERVER_SCHED_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"

/* Scalar demand or capacity. MHz, MB. */
struct usage {
    int64_t cpu;
    int64_t mem;
    int64_t disk;
};

/* Totals minus reserved, at least 0 each. */
struct usage resources_capacity(const struct node *n);
int64_t resources_core_mhz(const struct node *n);

/* The resources that a group asks for: tasks flattened by lifecycle. Tasks of one phase run
 * together; the phases prestart, main (with everything that stays) and poststop do not overlap, so
 * the demand is the largest of the three sums. */
struct ask {
    struct usage u;   /* without reserved cores */
    int64_t cores;    /* cores to reserve, of all tasks together */
};
struct ask resources_ask(const struct task_group *tg);
/* The same of an existing allocation; zero when it is client-terminal. */
struct usage resources_of_alloc(const struct allocation *a);

/* Score of a node as it would be with `used` of `cap` taken, 0..1: bin-pack prefers full nodes,
 * spread empty ones. A dimension without capacity counts as full. */
double resources_score_binpack(const struct usage *cap, const struct usage *used);
double resources_score_spread(const struct usage *cap, const struct usage *used);
/* The two terms of the fit score, 10 ^ (free / capacity): the score is 20 minus their sum, within
 * 0..18, over 18. More use of x multiplies a term by 10 ^ (-x / capacity). */
void resources_powers(const struct usage *cap, const struct usage *used, double *cpu, double *mem);
/* NULL when `used` fits `cap`, else the first exhausted dimension: "cpu", "memory", "disk". */
const char *resources_exhausted(const struct usage *cap, const struct usage *used);

/* "1,3-5" as a list of numbers within 0..max: calls `fn` for each. False when it is malformed, or
 * names more than 2 * (max + 1) numbers. */
bool resources_ranges(const char *s, int64_t max, void (*fn)(void *arg, int64_t v), void *arg);

#endif
