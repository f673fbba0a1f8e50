/* SPDX-License-Identifier: Apache-2.0
 *
 * Times and durations as Go's time prints them. All times are UTC.
 */
#ifndef PADDOCK_TEMPLATE_FUNC_GOTIME_H
#define PADDOCK_TEMPLATE_FUNC_GOTIME_H

#include "template/run.h"

/* Time.Format: the layout is the reference time, Mon Jan 2 15:04:05 MST 2006. */
struct gv gotime_format(struct run *r, int64_t ns, struct gv layout);

/* dependency.nanoTime: a whole number that prints as a time. */
extern const struct gv_type gotime_nanos;

#endif
