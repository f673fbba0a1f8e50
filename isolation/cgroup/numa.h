/* SPDX-License-Identifier: Apache-2.0
 *
 * Which processors are near which memory, from sysfs. What cannot be read is not there; a machine
 * without nodes has none.
 */
#ifndef PADDOCK_ISOLATION_CGROUP_NUMA_H
#define PADDOCK_ISOLATION_CGROUP_NUMA_H

#include <stddef.h>

#include "isolation/cgroup/cpus.h"
#include "isolation/limits.h"

#define NUMA_DIR "/sys/devices/system/node"

struct numa_nodes {
    size_t n;
    struct numa_node {
        unsigned id;
        bool memory; /* some nodes have processors only */
        struct cgroup_cpus cpus;
    } nodes[NUMA_NODES_MAX];
};

/* `dir`: NUMA_DIR, or what a test has in its place. */
void numa_read(const char *dir, struct numa_nodes *ret);
/* The nodes that have memory and one of `cores`: false where that says nothing, because there is
 * one node or none of them has. */
bool numa_near(const struct numa_nodes *all, const struct cgroup_cpus *cores,
               struct cgroup_cpus *ret);

#endif
