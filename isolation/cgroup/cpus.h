/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of processors. Pure.
 */
#ifndef PADDOCK_ISOLATION_CGROUP_CPUS_H
#define PADDOCK_ISOLATION_CGROUP_CPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "isolation/limits.h"

/* Processors, by number. "0-3,7" as the kernel has it. */
struct cgroup_cpus {
    uint64_t bits[CGROUP_CPUS_MAX / 64];
};
void cgroup_cpus_add(struct cgroup_cpus *s, unsigned cpu); /* below CGROUP_CPUS_MAX */
bool cgroup_cpus_has(const struct cgroup_cpus *s, unsigned cpu); /* likewise */
unsigned cgroup_cpus_count(const struct cgroup_cpus *s);
bool cgroup_cpus_parse(const char *text, struct cgroup_cpus *ret);
const char *cgroup_cpus_text(const struct cgroup_cpus *s, char out[CGROUP_CPUS_TEXT_MAX]);

#endif
