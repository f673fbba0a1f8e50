/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of a task from its cgroup directory: needs the directory fd and no privilege.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/duration.h"
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

static const struct cgroup_stats unknown = {
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

static int
read_stats(int dirfd, struct cgroup_stats *s)
{
    const struct flat cpu[] = {
        {"usage_usec", &s->usage_us},       {"user_usec", &s->user_us},
        {"system_usec", &s->system_us},     {"nr_periods", &s->nr_periods},
        {"nr_throttled", &s->nr_throttled}, {"throttled_usec", &s->throttled_us},
    };
    const struct flat memory[] = {
        {"anon", &s->memory_rss}, {"file", &s->memory_cache}, {"file_mapped", &s->memory_mapped}};
    const struct flat events[] = {{"oom_kill", &s->oom_kills}};
    if (!read_flat(dirfd, "cpu.stat", cpu, ARRAY_LEN(cpu)))
        return -ENOENT; /* every cgroup has this file: the directory is gone */
    if (read_flat(dirfd, "memory.stat", memory, ARRAY_LEN(memory)))
        (void)read_flat(dirfd, "memory.events", events, ARRAY_LEN(events));
    read_number(dirfd, "memory.current", &s->memory_current);
    read_number(dirfd, "memory.peak", &s->memory_peak);
    read_number(dirfd, "memory.swap.current", &s->memory_swap);
    read_number(dirfd, "pids.current", &s->pids_current);
    char text[CGROUP_STATS_MAX];
    if (read_text(dirfd, "io.stat", text))
        cgroup_parse_io(text, s);
    read_psi(dirfd, "cpu.pressure", &s->cpu);
    read_psi(dirfd, "memory.pressure", &s->memory);
    read_psi(dirfd, "io.pressure", &s->io);
    return 0;
}

int
cgroup_stats_read(int dirfd, struct cgroup_stats *ret)
{
    struct cgroup_stats s = unknown;
    int r = read_stats(dirfd, &s);
    if (r == 0)
        *ret = s;
    return r;
}

/* --- of an engine's cgroup --- */

static void
in_us(int64_t *ns)
{
    if (*ns >= 0)
        *ns /= NS_PER_US;
}

static bool
stats_names(const char *controllers, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = controllers; (p = strstr(p, name)) != NULL; p += n)
        if ((p == controllers || p[-1] == ',') && (p[n] == 0 || p[n] == ','))
            return true;
    return false;
}

static void
read_v1(int dirfd, const char *controllers, struct cgroup_stats *s)
{
    const struct flat cpu[] = {{"nr_periods", &s->nr_periods},
                               {"nr_throttled", &s->nr_throttled},
                               {"throttled_time", &s->throttled_us}};
    const struct flat memory[] = {{"total_rss", &s->memory_rss},
                                  {"total_cache", &s->memory_cache},
                                  {"total_swap", &s->memory_swap},
                                  {"total_mapped_file", &s->memory_mapped}};
    if (stats_names(controllers, "memory") &&
        read_flat(dirfd, "memory.stat", memory, ARRAY_LEN(memory))) {
        read_number(dirfd, "memory.usage_in_bytes", &s->memory_current);
        read_number(dirfd, "memory.max_usage_in_bytes", &s->memory_peak);
    }
    if (stats_names(controllers, "cpuacct")) {
        read_number(dirfd, "cpuacct.usage", &s->usage_us);
        read_number(dirfd, "cpuacct.usage_user", &s->user_us);
        read_number(dirfd, "cpuacct.usage_sys", &s->system_us);
        in_us(&s->usage_us);
        in_us(&s->user_us);
        in_us(&s->system_us);
    }
    if (stats_names(controllers, "cpu") && read_flat(dirfd, "cpu.stat", cpu, ARRAY_LEN(cpu)))
        in_us(&s->throttled_us);
    if (stats_names(controllers, "pids"))
        read_number(dirfd, "pids.current", &s->pids_current);
}

/* One line, ID:CONTROLLERS:PATH; -1 where it is of no use. */
static int
open_line(const void *ctx, char *line, const char *mark, const char **ret_controllers)
{
    char *controllers = strchr(line, ':'),
         *path = controllers ? strchr(controllers + 1, ':') : NULL;
    struct cgroup_info v2;
    if (!path || path[1] != '/' || !strstr(path, mark))
        return -1;
    *controllers++ = *path++ = 0;
    *ret_controllers = controllers;
    const char *base = strcmp(line, "0") != 0 ? mem_printf(ctx, "/sys/fs/cgroup/%s", controllers)
                       : cgroup_find(ctx, &v2, NULL) == 0 ? v2.mount
                                                          : NULL;
    return base ? open(mem_printf(ctx, "%s%s", base, path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                : -1;
}

int
cgroup_process_stats(int64_t pid, const char *mark, struct cgroup_stats *ret, int *ret_dir)
{
    auto_mem void *tmp = mem_ctx("cgroup");
    char *text = NULL, *save = NULL;
    struct cgroup_stats s = unknown;
    auto_fd int dir = -1;
    if (!*mark || file_read(tmp, AT_FDCWD, mem_printf(tmp, "/proc/%lld/cgroup", (long long)pid),
                            CGROUP_STATS_MAX, &text, NULL) < 0)
        return -ENOENT;
    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        const char *controllers = NULL;
        auto_fd int fd = open_line(tmp, l, mark, &controllers);
        if (fd < 0)
            continue;
        if (*controllers)
            read_v1(fd, controllers, &s);
        else if (s.memory_current < 0)
            (void)read_stats(fd, &s);
        if (dir < 0 || stats_names(controllers, "memory")) {
            fd_close(&dir);
            dir = TAKE_FD(fd);
        }
    }
    if (dir < 0)
        return -ENOENT;
    *ret = s;
    if (ret_dir)
        *ret_dir = TAKE_FD(dir);
    return 0;
}
