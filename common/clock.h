/* SPDX-License-Identifier: Apache-2.0
 *
 * The clocks of the machine, in nanoseconds. Any thread.
 */
#ifndef PADDOCK_COMMON_CLOCK_H
#define PADDOCK_COMMON_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC, CLOCK_BOOTTIME (which goes on while the machine is suspended) and
 * CLOCK_REALTIME. */
int64_t clock_mono_ns(void);
int64_t clock_boot_ns(void);
int64_t clock_wall_ns(void);
/* The time of day as this process believes it (civil.h), any thread; and a time that the wall clock
 * just had, in that. */
int64_t clock_civil_ns(void);
int64_t clock_civil_of(int64_t wall_ns);

#endif
