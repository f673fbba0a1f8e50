/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/cgroup/numa.h"

#include <fcntl.h>
#include <stdio.h>

#include "common/fd.h"
#include "isolation/cgroup/dir.h"

static bool
read_list(int dirfd, const char *name, struct cgroup_cpus *ret)
{
    char text[CGROUP_CPUS_TEXT_MAX];
    return cgroup_read(dirfd, name, text, sizeof(text)) == 0 && cgroup_cpus_parse(text, ret);
}

void
numa_read(const char *dir, struct numa_nodes *ret)
{
    struct cgroup_cpus online = {0}, memory = {0};
    auto_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ret->n = 0;
    if (fd < 0 || !read_list(fd, "online", &online) || !read_list(fd, "has_memory", &memory))
        return;
    for (unsigned i = 0; i < CGROUP_CPUS_MAX && ret->n < NUMA_NODES_MAX; i++) {
        struct numa_node *n = &ret->nodes[ret->n];
        char name[32];
        if (!cgroup_cpus_has(&online, i))
            continue;
        *n = (struct numa_node){.id = i, .memory = cgroup_cpus_has(&memory, i)};
        (void)snprintf(name, sizeof(name), "node%u/cpulist", i);
        if (read_list(fd, name, &n->cpus))
            ret->n++;
    }
}

bool
numa_near(const struct numa_nodes *all, const struct cgroup_cpus *cores, struct cgroup_cpus *ret)
{
    *ret = (struct cgroup_cpus){0};
    for (size_t i = 0; i < all->n; i++) {
        struct cgroup_cpus both = all->nodes[i].cpus;
        for (size_t k = 0; k < CGROUP_CPUS_MAX / 64; k++)
            both.bits[k] &= cores->bits[k];
        if (all->nodes[i].memory && cgroup_cpus_count(&both))
            cgroup_cpus_add(ret, all->nodes[i].id);
    }
    return all->n > 1 && cgroup_cpus_count(ret);
}
