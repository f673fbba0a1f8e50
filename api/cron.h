/* SPDX-License-Identifier: Apache-2.0
 *
 * When a periodic job is due, by Nomad's grammar of cron: five fields (minute, hour, day of month,
 * month, day of week), six (and year) or seven (and second, in front), more are ignored; "*", "?",
 * lists, ranges, steps, names; "L", "LW", "15W" of days of the month, "5L" and "5#3" of those of
 * the week; "@daily" and the like. Both days restricted: either will do.
 *
 * A time is due at each second whose time on the wall there matches: where clocks go forward not at
 * all, where they go back twice. Pure.
 */
#ifndef PADDOCK_API_CRON_H
#define PADDOCK_API_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "common/err.h"

struct zone;

struct cron;

#define CRON_NEVER INT64_MAX

/* All expressions of a periodic block. */
struct cron_set {
    size_t n;
    struct cron *v;
    const struct zone *zone;
};

/* `z` is that of p->time_zone; memory of `ctx`. The words of an error are Nomad's. */
int cron_set_parse(const void *ctx, const struct periodic_config *p, const struct zone *z,
                   struct cron_set *ret, struct err *e);
/* The first second behind `after_s` that is due, or CRON_NEVER. */
int64_t cron_set_next(const struct cron_set *s, int64_t after_s);
/* The last second of (after_s, until_s] that was due, or CRON_NEVER. */
int64_t cron_set_last(const struct cron_set *s, int64_t after_s, int64_t until_s);
/* Adds what is wrong with the block, in Nomad's words. */
void cron_validate(const void *ctx, const struct periodic_config *p, struct str_list *errors);

#endif
