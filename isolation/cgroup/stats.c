/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of a task from its cgroup directory: needs the directory fd and no privilege.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/limits.h"

/* Enough for memory.stat and cpu.stat of any kernel; what is cut off is not looked for. */

static bool
read_text(int dirfd, const char *name, char text[static CGROUP_STATS_MAX])
{
    auto_fd int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = fd_read_full(fd, text, CGROUP_STATS_MAX - 1);
    if (n < 0)
        return false;
    text[n] = 0;
    return true;
}

static void
read_number(int dirfd, const char *name, int64_t *ret)
{
    char text[CGROUP_STATS_MAX];
    if (!read_text(dirfd, name, text))
        return;
    text[strcspn(text, "\n")] = 0;
    (void)num_parse_i64(text, ret);
}

struct flat {
    const char *key;
    int64_t *value;
};

static bool
read_flat(int dirfd, const char *name, const struct flat *keys, size_t n)
{
    char text[CGROUP_STATS_MAX];
    if (!read_text(dirfd, name, text))
        return false;
    for (size_t i = 0; i < n; i++)
        (void)cgroup_parse_flat(text, keys[i].key, keys[i].value);
    return true;
}

static void
read_psi(int dirfd, const char *name, struct cgroup_psi *ret)
{
    char text[CGROUP_STATS_MAX];
    if (read_text(dirfd, name, text))
        cgroup_parse_psi(text, ret);
}

int
cgroup_stats_read(int dirfd, struct cgroup_stats *ret)
{
    struct cgroup_stats s = {
        .usage_us = -1,
        .user_us = -1,
        .system_us = -1,
        .nr_periods = -1,
        .nr_throttled = -1,
        .throttled_us = -1,
        .memory_current = -1,
        .memory_peak = -1,
        .memory_swap = -1,
        .memory_rss = -1,
        .memory_cache = -1,
        .memory_mapped = -1,
        .pids_current = -1,
        .oom_kills = -1,
        .io_rbytes = -1,
        .io_wbytes = -1,
        .io_rios = -1,
        .io_wios = -1,
    };
    const struct flat cpu[] = {
        {"usage_usec", &s.usage_us},       {"user_usec", &s.user_us},
        {"system_usec", &s.system_us},     {"nr_periods", &s.nr_periods},
        {"nr_throttled", &s.nr_throttled}, {"throttled_usec", &s.throttled_us},
    };
    const struct flat memory[] = {
        {"anon", &s.memory_rss}, {"file", &s.memory_cache}, {"file_mapped", &s.memory_mapped}};
    const struct flat events[] = {{"oom_kill", &s.oom_kills}};
    if (!read_flat(dirfd, "cpu.stat", cpu, ARRAY_LEN(cpu)))
        return -ENOENT; /* every cgroup has this file: the directory is gone */
    if (read_flat(dirfd, "memory.stat", memory, ARRAY_LEN(memory)))
        (void)read_flat(dirfd, "memory.events", events, ARRAY_LEN(events));
    read_number(dirfd, "memory.current", &s.memory_current);
    read_number(dirfd, "memory.peak", &s.memory_peak);
    read_number(dirfd, "memory.swap.current", &s.memory_swap);
    read_number(dirfd, "pids.current", &s.pids_current);
    char text[CGROUP_STATS_MAX];
    if (read_text(dirfd, "io.stat", text))
        cgroup_parse_io(text, &s);
    read_psi(dirfd, "cpu.pressure", &s.cpu);
    read_psi(dirfd, "memory.pressure", &s.memory);
    read_psi(dirfd, "io.pressure", &s.io);
    *ret = s;
    return 0;
}
