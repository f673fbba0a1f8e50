/* SPDX-License-Identifier: Apache-2.0
 *
 * The parent of all tasks' cgroups, as all files here see it; what is done with it: cgroup.h.
 */
#ifndef PADDOCK_ISOLATION_CGROUP_ROOT_H
#define PADDOCK_ISOLATION_CGROUP_ROOT_H

#include <stddef.h>

#include "isolation/cgroup/cpus.h"

enum {
    CGROUP_CPU = 1,
    CGROUP_MEMORY = 2,
    CGROUP_PIDS = 4,
    CGROUP_IO = 8,
    CGROUP_CPUSET = 16,
    CGROUP_HUGETLB = 32,
};
enum { CGROUP_WEIGHT_MAX = 10000 };

struct cgroup_root {
    int fd;               /* directory */
    int lock;             /* shared, if it was opened to be made: cgroup_root_remove(); else -1 */
    uint32_t controllers; /* that tasks below can use */
    const char *owner;    /* borrowed; marks what is made (trusted.paddock.owner). NULL: no marks */
    bool hugetlb; /* set before: limit huge pages, which costs every launch, also on a machine that
                     has none yet */
    struct cgroup_huge { /* sizes of huge pages, as files have them: "2MB" */
        char size[CGROUP_HUGE_MAX][8];
        size_t n;
    } huge;
    bool top;                  /* nobody is above that could protect its memory */
    bool cores;                /* some task has cores of its own: */
    struct cgroup_cpus shared; /* what is left for those that have not */
};

#endif
