/* SPDX-License-Identifier: Apache-2.0
 *
 * The time of day as a process believes it (clock_civil_ns() of num.h): the wall clock, but for its
 * jumps. Pure.
 *
 * Deadlines and ages are kept over restarts, as times of day. A clock that is set would end them
 * early or late, and is mostly set right again soon. So a jump of more than 5 s is followed only
 * when the clock has stayed there for a sixth of the jump, 10 minutes at least; until then time
 * goes on as before, by the clock that nobody sets. A clock of before 2020 was not set yet (a
 * machine boots without one): the first other time is followed at once.
 */
#ifndef PADDOCK_COMMON_CIVIL_H
#define PADDOCK_COMMON_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

struct civil { /* zeroed: nothing is known yet */
    bool known;
    bool doubting;     /* the wall clock has jumped */
    int64_t offset_ns; /* of the time of day that is believed to the clock since boot */
    int64_t doubted_ns, since_ns; /* the offset after the jump, and when it was seen first */
};

/* Both clocks at the same moment; the time of day that is believed. */
int64_t civil_now(struct civil *c, int64_t boot_ns, int64_t wall_ns);

#endif
